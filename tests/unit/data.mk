# Unit programs of engine/data.
EXTRA_DIST += tests/unit/data_files.h
check_PROGRAMS += tests/unit/test_data_npy
tests_unit_test_data_npy_SOURCES = tests/unit/test_data_npy.c
tests_unit_test_data_npy_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_data_npy_LDADD = $(UNIT_LDADD)
check_PROGRAMS += tests/unit/test_data_npz
tests_unit_test_data_npz_SOURCES = tests/unit/test_data_npz.c
tests_unit_test_data_npz_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_data_npz_LDADD = $(UNIT_LDADD)
check_PROGRAMS += tests/unit/test_data_feed
tests_unit_test_data_feed_SOURCES = tests/unit/test_data_feed.c
tests_unit_test_data_feed_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_data_feed_LDADD = $(UNIT_LDADD)

# Replays the corpus of the dataset's fuzz target.
check_PROGRAMS += tests/fuzz/fuzz_dataset
tests_fuzz_fuzz_dataset_SOURCES = tests/fuzz/fuzz_dataset.c
tests_fuzz_fuzz_dataset_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_fuzz_fuzz_dataset_LDADD = engine/libqdqi.la

# Placement cases, run by pytest against the installed qdq; measurements, run by hand.
EXTRA_DIST += tests/golden bench
