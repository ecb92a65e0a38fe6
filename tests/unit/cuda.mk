# Unit programs of engine/numbers/cuda that need no device.
check_PROGRAMS += \
	tests/unit/engine/test_device \
	tests/unit/engine/test_kernels

# A CUDA module for tests, built without CUDA.
check_LTLIBRARIES += tests/unit/engine/libcuda_module.la
tests_unit_engine_libcuda_module_la_SOURCES = tests/unit/engine/cuda_module.c
tests_unit_engine_libcuda_module_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)
EXTRA_tests_unit_engine_test_device_DEPENDENCIES = tests/unit/engine/libcuda_module.la
