# Kernels against the CPU's definitions, on a device. Without one each of these is
# skipped; they are built everywhere, for they load the module when they run. test_place is
# not on a device: what the runtime's CPU does, and the module of the emulator beside it.
EXTRA_DIST += tests/cuda/bare tests/cuda/cuda.h tests/cuda/emulator \
	tests/cuda/quantize.py tests/cuda/serve.py
check_PROGRAMS += \
	tests/cuda/test_device \
	tests/cuda/test_extremes \
	tests/cuda/test_fake \
	tests/cuda/test_histogram \
	tests/cuda/test_large \
	tests/cuda/test_place \
	tests/cuda/test_sums

# By hand: make bench/cuda && bench/cuda
EXTRA_PROGRAMS = bench/cuda
CLEANFILES += bench/cuda
