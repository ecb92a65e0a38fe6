# These programs compare kernels with the CPU's arithmetic on a device, and are skipped
# without one. They are built everywhere, because they load the module when they run.
# test_device_memory and test_staging need no device: they use the emulator's module.
EXTRA_DIST += tests/cuda/bare tests/cuda/cuda.h tests/cuda/emulated.h tests/cuda/emulator \
	tests/cuda/quantize.py tests/cuda/serve.py tests/cuda/tensorrt.py
check_PROGRAMS += \
	tests/cuda/test_device \
	tests/cuda/test_extremes \
	tests/cuda/test_fake \
	tests/cuda/test_histogram \
	tests/cuda/test_large \
	tests/cuda/test_moment \
	tests/cuda/test_device_memory \
	tests/cuda/test_staging \
	tests/cuda/test_sums

# The emulator's module, for check-kernels.sh, the programs above and tests/e2e/gpu. Without a
# C++ compiler there is none, and these tests say so.
EMULATOR_FILES = $(addprefix $(srcdir)/engine/numbers/cuda/,extremes.cu fake.cu histogram.cu moment.cu sums.cu) \
	$(wildcard $(addprefix $(srcdir)/engine/,numbers/cuda/*.h numbers/arithmetic/*.h include/qdq/*.h)) \
	$(wildcard $(srcdir)/tests/cuda/emulator/*)
check_DATA += tests/cuda/emulated.so
CLEANFILES += tests/cuda/emulated.so
tests/cuda/emulated.so: $(EMULATOR_FILES)
	$(AM_V_GEN)$(MKDIR_P) tests/cuda && if command -v $${CXX:-g++} >/dev/null; then \
	$(srcdir)/tests/cuda/emulator/build.sh $@; else echo "no C++ compiler for $@"; fi

# By hand: make bench/cuda && bench/cuda
EXTRA_PROGRAMS = bench/cuda
CLEANFILES += bench/cuda
