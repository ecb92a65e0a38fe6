# qdqd: sees the public headers of engine and api.
sbin_PROGRAMS += daemon/qdqd
noinst_LTLIBRARIES += daemon/libqdqdi.la

DAEMON_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/daemon \
	-DQDQD_DEFAULT_STATE_DIR='"$(localstatedir)/lib/qdqd"' \
	-DQDQD_DEFAULT_CONFIG='"$(sysconfdir)/qdqd.conf"' \
	-DQDQD_DEFAULT_RUNTIME='"$(ORT_LIBRARY)"' \
	-DQDQD_DEFAULT_CUDA_MODULE='"$(libdir)/qdqd/qdq_cuda.so"' \
	-DQDQD_DEFAULT_CASES='"$(casesdir)"'

# All but main(), for the unit tests too.
daemon_libqdqdi_la_CPPFLAGS = $(DAEMON_CPPFLAGS) $(MICROHTTPD_CFLAGS) $(GNUTLS_CFLAGS) \
	$(SQLITE_CFLAGS) $(CRYPTO_CFLAGS) $(INIH_CFLAGS) \
	$(SECCOMP_CFLAGS)
daemon_libqdqdi_la_CFLAGS = $(AM_CFLAGS) -pthread
daemon_libqdqdi_la_LIBADD = api/libapi.la engine/libqdqi.la $(MICROHTTPD_LIBS) $(GNUTLS_LIBS) \
	$(SQLITE_LIBS) $(CRYPTO_LIBS) $(INIH_LIBS) $(SECCOMP_LIBS) -lpthread
daemon_libqdqdi_la_SOURCES = \
	daemon/backends.c daemon/backends.h \
	daemon/backup.c daemon/backup.h \
	daemon/bell.c daemon/bell.h \
	daemon/blob.c daemon/blob.h \
	daemon/cage.c daemon/cage.h \
	daemon/bundle.c daemon/bundle.h \
	daemon/clock.h \
	daemon/descriptors.c daemon/descriptors.h \
	daemon/digest.c daemon/digest.h \
	daemon/gpus.c daemon/gpus.h \
	daemon/errno_code.h \
	daemon/handlers.c daemon/handlers.h \
	daemon/handlers_events.c daemon/handlers_metrics.c daemon/handlers_files.c daemon/handlers_jobs.c daemon/handlers_lists.c \
	daemon/http.c daemon/http.h \
	daemon/http_conns.c daemon/http_conns.h \
	daemon/http_watch.c daemon/http_watch.h \
	daemon/http_tls.c daemon/http_tls.h \
	daemon/http_body.c daemon/body.h daemon/parts.h \
	daemon/job.c daemon/job.h \
	daemon/library.c daemon/library.h \
	daemon/listen.c daemon/listen.h \
	daemon/log.c daemon/log.h \
	daemon/metrics.c daemon/metrics.h daemon/metrics_table.h \
	daemon/message.c daemon/message.h daemon/messages.h \
	daemon/model_files.c daemon/model_files.h \
	daemon/notify.c daemon/notify.h \
	daemon/paces.c daemon/paces.h \
	daemon/pool.c daemon/pool.h \
	daemon/process.c daemon/process.h \
	daemon/request.c daemon/request.h \
	daemon/scripts.c daemon/scripts.h \
	daemon/settings.c daemon/settings.h daemon/settings_keys.h \
	daemon/settings_print.c daemon/settings_rows.h \
	daemon/store.c daemon/store.h daemon/store_sql.h \
	daemon/store_backup.c daemon/store_backup.h \
	daemon/store_files.c daemon/store_inner.h \
	daemon/store_schema.c daemon/store_schema.h daemon/store_steps.h \
	daemon/store_sync.c \
	daemon/sweep.c daemon/sweep.h \
	daemon/sync.c daemon/sync.h \
	daemon/tenants.c daemon/tenants.h \
	daemon/token_command.c daemon/tokens.c daemon/tokens.h \
	daemon/trace.c daemon/trace.h \
	daemon/watchdog.c daemon/watchdog.h \
	daemon/worker.c daemon/worker.h

daemon_qdqd_CPPFLAGS = $(DAEMON_CPPFLAGS)
daemon_qdqd_SOURCES = daemon/main.c
daemon_qdqd_LDADD = daemon/libqdqdi.la

# Writes what people read about the settings.
noinst_PROGRAMS += daemon/settings-doc
daemon_settings_doc_CPPFLAGS = $(DAEMON_CPPFLAGS)
daemon_settings_doc_SOURCES = daemon/settings_doc.c
daemon_settings_doc_LDADD = daemon/libqdqdi.la
