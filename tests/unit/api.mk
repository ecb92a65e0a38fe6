# Unit programs of api.
EXTRA_DIST += tests/unit/api.h tests/unit/api_spec.h
check_PROGRAMS += \
	tests/unit/api/test_catalog \
	tests/unit/api/test_client \
	tests/unit/api/test_compare \
	tests/unit/api/test_eta \
	tests/unit/api/test_files \
	tests/unit/api/test_given_members \
	tests/unit/api/test_grow \
	tests/unit/api/test_header \
	tests/unit/api/test_html \
	tests/unit/api/test_job \
	tests/unit/api/test_json \
	tests/unit/api/test_lineage \
	tests/unit/api/test_lists \
	tests/unit/api/test_markdown \
	tests/unit/api/test_openapi \
	tests/unit/api/test_overview \
	tests/unit/api/test_problem \
	tests/unit/api/test_remote \
	tests/unit/api/test_report \
	tests/unit/api/test_report_bounds \
	tests/unit/api/test_route \
	tests/unit/api/test_signature \
	tests/unit/api/test_spec \
	tests/unit/api/test_target_specs \
	tests/unit/api/test_tokenizer \
	tests/unit/api/test_ui

# In these programs each allocation of jansson and api/ fails in turn.
tests_unit_api_test_client_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
tests_unit_api_test_lists_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
tests_unit_api_test_compare_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
tests_unit_api_test_overview_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
tests_unit_api_test_html_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
tests_unit_api_test_ui_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
tests_unit_api_test_markdown_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=realloc

# Fuzz targets of the spec, of a tokenizer and of the head of a request, which replay their corpora.
check_PROGRAMS += tests/fuzz/fuzz_spec tests/fuzz/fuzz_tokenizer tests/fuzz/fuzz_head
EXTRA_DIST += tests/fuzz/replay.h tests/fuzz/corpus
