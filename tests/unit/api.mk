# Unit programs of api.
API_UNIT_CPPFLAGS = $(UNIT_CPPFLAGS) $(API_INCLUDE) -I$(top_srcdir)/api $(JANSSON_CFLAGS)
API_UNIT_LDADD = api/libapi.la $(UNIT_LDADD) $(JANSSON_LIBS)
EXTRA_DIST += tests/unit/api.h tests/unit/api_spec.h

check_PROGRAMS += tests/unit/test_api_eta tests/unit/test_api_files \
	tests/unit/test_api_header \
	tests/unit/test_api_job tests/unit/test_api_json \
	tests/unit/test_api_lists tests/unit/test_api_markdown tests/unit/test_api_openapi \
	tests/unit/test_api_problem tests/unit/test_api_report \
	tests/unit/test_api_route tests/unit/test_api_spec

tests_unit_test_api_eta_SOURCES = tests/unit/test_api_eta.c
tests_unit_test_api_eta_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_eta_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_files_SOURCES = tests/unit/test_api_files.c
tests_unit_test_api_files_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_files_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_header_SOURCES = tests/unit/test_api_header.c
tests_unit_test_api_header_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_header_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_job_SOURCES = tests/unit/test_api_job.c
tests_unit_test_api_job_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_job_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_json_SOURCES = tests/unit/test_api_json.c
tests_unit_test_api_json_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_json_LDADD = $(API_UNIT_LDADD)

# Its allocations fail one after the other, jansson's and those of api.
tests_unit_test_api_lists_SOURCES = tests/unit/test_api_lists.c
tests_unit_test_api_lists_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_lists_LDADD = $(API_UNIT_LDADD)
tests_unit_test_api_lists_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc

# As above.
tests_unit_test_api_markdown_SOURCES = tests/unit/test_api_markdown.c
tests_unit_test_api_markdown_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_markdown_LDADD = $(API_UNIT_LDADD)
tests_unit_test_api_markdown_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=realloc

tests_unit_test_api_openapi_SOURCES = tests/unit/test_api_openapi.c
tests_unit_test_api_openapi_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_openapi_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_problem_SOURCES = tests/unit/test_api_problem.c
tests_unit_test_api_problem_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_problem_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_report_SOURCES = tests/unit/test_api_report.c
tests_unit_test_api_report_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_report_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_route_SOURCES = tests/unit/test_api_route.c
tests_unit_test_api_route_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_route_LDADD = $(API_UNIT_LDADD)

tests_unit_test_api_spec_SOURCES = tests/unit/test_api_spec.c
tests_unit_test_api_spec_CPPFLAGS = $(API_UNIT_CPPFLAGS)
tests_unit_test_api_spec_LDADD = $(API_UNIT_LDADD)

# Replays the corpus of the spec's fuzz target.
check_PROGRAMS += tests/fuzz/fuzz_spec
tests_fuzz_fuzz_spec_SOURCES = tests/fuzz/fuzz_spec.c
tests_fuzz_fuzz_spec_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/tests/fuzz
tests_fuzz_fuzz_spec_LDADD = api/libapi.la engine/libqdqi.la

# Likewise of what the head of a request says.
check_PROGRAMS += tests/fuzz/fuzz_head
tests_fuzz_fuzz_head_SOURCES = tests/fuzz/fuzz_head.c
tests_fuzz_fuzz_head_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/tests/fuzz
tests_fuzz_fuzz_head_LDADD = api/libapi.la engine/libqdqi.la
EXTRA_DIST += tests/fuzz/replay.h tests/fuzz/corpus
