# Unit programs of daemon.
EXTRA_DIST += tests/unit/daemon.h tests/unit/running_jobs.h tests/unit/stored_jobs.h
check_PROGRAMS += \
	tests/unit/daemon/test_blob \
	tests/unit/daemon/test_bundle \
	tests/unit/daemon/test_cache \
	tests/unit/daemon/test_cage \
	tests/unit/daemon/test_check \
	tests/unit/daemon/test_derive \
	tests/unit/daemon/test_fences \
	tests/unit/daemon/test_gpus \
	tests/unit/daemon/test_job \
	tests/unit/daemon/test_job_gpus \
	tests/unit/daemon/test_library \
	tests/unit/daemon/test_listen \
	tests/unit/daemon/test_log \
	tests/unit/daemon/test_message \
	tests/unit/daemon/test_scripts \
	tests/unit/daemon/test_outbox \
	tests/unit/daemon/test_remotes \
	tests/unit/daemon/test_sections \
	tests/unit/daemon/test_settings \
	tests/unit/daemon/test_statement_plans \
	tests/unit/daemon/test_states \
	tests/unit/daemon/test_store \
	tests/unit/daemon/test_store_repeats \
	tests/unit/daemon/test_sweep \
	tests/unit/daemon/test_sync \
	tests/unit/daemon/test_target_rows \
	tests/unit/daemon/test_texts \
	tests/unit/daemon/test_tokens \
	tests/unit/daemon/test_trace
# Built with the checks of developer builds, whatever this build is.
tests_unit_daemon_test_check_SOURCES = tests/unit/daemon/test_check.c daemon/base/lock.c
tests_unit_daemon_test_check_CPPFLAGS = $(AM_CPPFLAGS) -DQDQ_DEVELOPER_CHECKS=1
tests_unit_daemon_test_library_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fsync -Wl,--wrap=fdatasync \
	-Wl,--wrap=syncfs
tests_unit_daemon_test_sync_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fdatasync

# The daemon's fuzz targets, which replay their corpora. SERVED lists the functions that
# tests/fuzz/server.h replaces.
SERVED = -Wl,--wrap=pool_ask -Wl,--wrap=pool_is_failing -Wl,--wrap=jobs_wait -Wl,--wrap=getrandom \
	-Wl,--wrap=log_info -Wl,--wrap=log_error
EXTRA_DIST += tests/fuzz/server.h
check_PROGRAMS += tests/fuzz/fuzz_form tests/fuzz/fuzz_http tests/fuzz/fuzz_message
tests_fuzz_fuzz_form_LDFLAGS = $(AM_LDFLAGS) $(SERVED)
tests_fuzz_fuzz_http_LDFLAGS = $(AM_LDFLAGS) $(SERVED)
