# Unit programs of engine/cuda: what needs no device.
check_PROGRAMS += \
	tests/unit/test_engine_device \
	tests/unit/test_engine_kernels

# A module without CUDA.
check_LTLIBRARIES = tests/unit/libcuda_module.la
tests_unit_libcuda_module_la_SOURCES = tests/unit/cuda_module.c
tests_unit_libcuda_module_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)
EXTRA_tests_unit_test_engine_device_DEPENDENCIES = tests/unit/libcuda_module.la
