# Unit programs of engine/files/data.
EXTRA_DIST += tests/unit/data_files.h
check_PROGRAMS += \
	tests/unit/data/test_feed \
	tests/unit/data/test_npy \
	tests/unit/data/test_npz \
	tests/unit/data/test_parquet \
	tests/unit/data/test_random \
	tests/unit/data/test_sets \
	tests/unit/data/test_tar
tests_unit_data_test_parquet_LDFLAGS = $(FAILING)
tests_unit_data_test_sets_LDFLAGS = $(FAILING)
tests_unit_data_test_tar_LDFLAGS = $(FAILING)

# The fuzz targets of datasets and of images. Built without libFuzzer, each replays its corpus.
check_PROGRAMS += tests/fuzz/fuzz_dataset tests/fuzz/fuzz_image
