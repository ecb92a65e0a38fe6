# Unit programs of engine/data.
EXTRA_DIST += tests/unit/data_files.h
check_PROGRAMS += \
	tests/unit/test_data_feed \
	tests/unit/test_data_npy \
	tests/unit/test_data_npz \
	tests/unit/test_data_random \
	tests/unit/test_data_sets \
	tests/unit/test_data_tar
tests_unit_test_data_sets_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_data_tar_LDFLAGS = $(AM_LDFLAGS) $(FAILING)

# The dataset door: hunts under libFuzzer, replays its corpus here.
check_PROGRAMS += tests/fuzz/fuzz_dataset
