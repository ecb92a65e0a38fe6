# Unit programs of judges.
EXTRA_DIST += tests/unit/judges/fake_runner.py
check_PROGRAMS += tests/unit/judges/test_runner
tests_unit_judges_test_runner_CPPFLAGS = $(AM_CPPFLAGS) $(JUDGES_INCLUDE) -I$(top_srcdir)/judges
tests_unit_judges_test_runner_LDADD = judges/libjudges.la $(LDADD)
