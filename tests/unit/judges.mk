# Unit programs of judges.
EXTRA_DIST += tests/unit/judges/fake_runner.py
check_PROGRAMS += tests/unit/judges/test_runner
tests_unit_judges_test_runner_CPPFLAGS = $(AM_CPPFLAGS) $(RUNNER_INCLUDE)
tests_unit_judges_test_runner_LDADD = judges/librunner.la $(LDADD)
