# Unit programs of daemon.
DAEMON_UNIT_CPPFLAGS = $(UNIT_CPPFLAGS) $(API_INCLUDE) -I$(top_srcdir)/daemon \
	-DQDQD_DEFAULT_STATE_DIR='"/var/lib/qdqd"' \
	-DQDQD_DEFAULT_RUNTIME='"libonnxruntime.so.1"' \
	-DQDQD_DEFAULT_CASES='"/etc/qdqd/cases.d"'
DAEMON_UNIT_LDADD = daemon/libqdqdi.la $(UNIT_LDADD)
EXTRA_DIST += tests/unit/daemon.h
check_PROGRAMS += tests/unit/test_daemon_blob \
	tests/unit/test_daemon_bundle \
	tests/unit/test_daemon_cage \
	tests/unit/test_daemon_derive \
	tests/unit/test_daemon_gpus \
	tests/unit/test_daemon_job \
	tests/unit/test_daemon_library \
	tests/unit/test_daemon_listen \
	tests/unit/test_daemon_log \
	tests/unit/test_daemon_message \
	tests/unit/test_daemon_scripts \
	tests/unit/test_daemon_settings \
	tests/unit/test_daemon_store \
	tests/unit/test_daemon_sweep \
	tests/unit/test_daemon_sync \
	tests/unit/test_daemon_tokens \
	tests/unit/test_daemon_trace

tests_unit_test_daemon_blob_SOURCES = tests/unit/test_daemon_blob.c
tests_unit_test_daemon_blob_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_blob_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_bundle_SOURCES = tests/unit/test_daemon_bundle.c
tests_unit_test_daemon_bundle_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_bundle_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_cage_SOURCES = tests/unit/test_daemon_cage.c
tests_unit_test_daemon_cage_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_cage_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_derive_SOURCES = tests/unit/test_daemon_derive.c
tests_unit_test_daemon_derive_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_daemon_derive_LDADD = $(DAEMON_UNIT_LDADD) $(SQLITE_LIBS)

tests_unit_test_daemon_gpus_SOURCES = tests/unit/test_daemon_gpus.c
tests_unit_test_daemon_gpus_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_gpus_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_job_SOURCES = tests/unit/test_daemon_job.c
tests_unit_test_daemon_job_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_job_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_library_SOURCES = tests/unit/test_daemon_library.c
tests_unit_test_daemon_library_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_library_LDADD = $(DAEMON_UNIT_LDADD)
tests_unit_test_daemon_library_LDFLAGS = -Wl,--wrap=fsync -Wl,--wrap=fdatasync

tests_unit_test_daemon_listen_SOURCES = tests/unit/test_daemon_listen.c
tests_unit_test_daemon_listen_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_listen_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_log_SOURCES = tests/unit/test_daemon_log.c
tests_unit_test_daemon_log_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_log_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_message_SOURCES = tests/unit/test_daemon_message.c
tests_unit_test_daemon_message_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_message_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_scripts_SOURCES = tests/unit/test_daemon_scripts.c
tests_unit_test_daemon_scripts_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_scripts_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_settings_SOURCES = tests/unit/test_daemon_settings.c
tests_unit_test_daemon_settings_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_settings_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_store_SOURCES = tests/unit/test_daemon_store.c
tests_unit_test_daemon_store_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_store_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_sweep_SOURCES = tests/unit/test_daemon_sweep.c
tests_unit_test_daemon_sweep_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_sweep_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_tokens_SOURCES = tests/unit/test_daemon_tokens.c
tests_unit_test_daemon_tokens_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_tokens_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_trace_SOURCES = tests/unit/test_daemon_trace.c
tests_unit_test_daemon_trace_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_trace_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_sync_SOURCES = tests/unit/test_daemon_sync.c
tests_unit_test_daemon_sync_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_sync_LDADD = $(DAEMON_UNIT_LDADD)
tests_unit_test_daemon_sync_LDFLAGS = -Wl,--wrap=fdatasync

# Replay the corpora of the daemon's fuzz targets. SERVED: what tests/fuzz/server.h puts
# in the way.
SERVED = -Wl,--wrap=pool_ask -Wl,--wrap=pool_is_failing -Wl,--wrap=jobs_wait -Wl,--wrap=getrandom \
	-Wl,--wrap=log_info -Wl,--wrap=log_error
DAEMON_FUZZ_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
EXTRA_DIST += tests/fuzz/server.h
check_PROGRAMS += tests/fuzz/fuzz_form tests/fuzz/fuzz_http tests/fuzz/fuzz_message

tests_fuzz_fuzz_form_SOURCES = tests/fuzz/fuzz_form.c
tests_fuzz_fuzz_form_CPPFLAGS = $(DAEMON_FUZZ_CPPFLAGS)
tests_fuzz_fuzz_form_LDADD = $(DAEMON_UNIT_LDADD)
tests_fuzz_fuzz_form_LDFLAGS = $(SERVED)

tests_fuzz_fuzz_http_SOURCES = tests/fuzz/fuzz_http.c
tests_fuzz_fuzz_http_CPPFLAGS = $(DAEMON_FUZZ_CPPFLAGS)
tests_fuzz_fuzz_http_LDADD = $(DAEMON_UNIT_LDADD)
tests_fuzz_fuzz_http_LDFLAGS = $(SERVED)

tests_fuzz_fuzz_message_SOURCES = tests/fuzz/fuzz_message.c
tests_fuzz_fuzz_message_CPPFLAGS = $(DAEMON_FUZZ_CPPFLAGS)
tests_fuzz_fuzz_message_LDADD = $(DAEMON_UNIT_LDADD)
