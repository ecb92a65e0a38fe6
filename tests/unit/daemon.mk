# Unit programs of daemon.
DAEMON_UNIT_CPPFLAGS = $(UNIT_CPPFLAGS) $(API_INCLUDE) -I$(top_srcdir)/daemon \
	-DQDQD_DEFAULT_STATE_DIR='"/var/lib/qdqd"' \
	-DQDQD_DEFAULT_RUNTIME='"libonnxruntime.so.1"' \
	-DQDQD_DEFAULT_CASES='"/etc/qdqd/cases.d"'
DAEMON_UNIT_LDADD = daemon/libqdqdi.la $(UNIT_LDADD)
EXTRA_DIST += tests/unit/daemon.h
check_PROGRAMS += tests/unit/test_daemon_blob \
	tests/unit/test_daemon_job \
	tests/unit/test_daemon_library \
	tests/unit/test_daemon_listen \
	tests/unit/test_daemon_log \
	tests/unit/test_daemon_message \
	tests/unit/test_daemon_scripts \
	tests/unit/test_daemon_settings \
	tests/unit/test_daemon_store \
	tests/unit/test_daemon_sweep \
	tests/unit/test_daemon_sync

tests_unit_test_daemon_blob_SOURCES = tests/unit/test_daemon_blob.c
tests_unit_test_daemon_blob_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_blob_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_job_SOURCES = tests/unit/test_daemon_job.c
tests_unit_test_daemon_job_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_job_LDADD = $(DAEMON_UNIT_LDADD)

tests_unit_test_daemon_library_SOURCES = tests/unit/test_daemon_library.c
tests_unit_test_daemon_library_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_library_LDADD = $(DAEMON_UNIT_LDADD)

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

tests_unit_test_daemon_sync_SOURCES = tests/unit/test_daemon_sync.c
tests_unit_test_daemon_sync_CPPFLAGS = $(DAEMON_UNIT_CPPFLAGS)
tests_unit_test_daemon_sync_LDADD = $(DAEMON_UNIT_LDADD)
tests_unit_test_daemon_sync_LDFLAGS = -Wl,--wrap=fdatasync
