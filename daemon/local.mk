# qdqd: sees the public headers of engine and api.
sbin_PROGRAMS += daemon/qdqd
noinst_LTLIBRARIES += daemon/libqdqdi.la

DAEMON_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) $(REMOTE_INCLUDE) $(THREADS_INCLUDE) $(JUDGES_INCLUDE) -I$(top_srcdir)/daemon \
	-DQDQD_DEFAULT_STATE_DIR='"$(localstatedir)/lib/qdqd"' \
	-DQDQD_DEFAULT_CONFIG='"$(sysconfdir)/qdqd.conf"' \
	-DQDQD_DEFAULT_FOLDERS='"$(sysconfdir)/qdqd/"' \
	-DQDQD_DEFAULT_CUDA_MODULE='"$(libdir)/qdqd/qdq_cuda.so"' \
	-DQDQD_DEFAULT_CASES='"$(casesdir)"'

# All but main(), for the unit tests too.
daemon_libqdqdi_la_CPPFLAGS = $(DAEMON_CPPFLAGS) $(MICROHTTPD_CFLAGS) $(GNUTLS_CFLAGS) \
	$(SQLITE_CFLAGS) $(LIBPQ_CFLAGS) $(INIH_CFLAGS) \
	$(SECCOMP_CFLAGS)
daemon_libqdqdi_la_CFLAGS = $(AM_CFLAGS) -pthread
daemon_libqdqdi_la_LIBADD = remote/libremote.la threads/libthreads.la judges/libjudges.la api/libapi.la engine/libqdqi.la $(LIBCURL_LIBS) $(LIBZIP_LIBS) $(LIBARCHIVE_LIBS) $(LIBJPEG_LIBS) $(LIBPNG_LIBS) \
	$(SNAPPY_LIBS) $(ZSTD_LIBS) $(PCRE2_LIBS) $(UTF8PROC_LIBS) $(MICROHTTPD_LIBS) $(GNUTLS_LIBS) \
	$(SQLITE_LIBS) $(LIBPQ_LIBS) $(INIH_LIBS) $(SECCOMP_LIBS) -lpthread
daemon_libqdqdi_la_SOURCES = \
	daemon/base/budget.c daemon/base/budget.h \
	daemon/base/check.c daemon/base/check.h \
	daemon/base/clock.h \
	daemon/base/errno_code.h \
	daemon/base/lock.c daemon/base/lock.h daemon/base/locks.h \
	daemon/base/log.c daemon/base/log.h \
	daemon/base/options.c daemon/base/options.h \
	daemon/base/standard_files.c daemon/base/standard_files.h \
	daemon/base/sync.c daemon/base/sync.h \
	daemon/settings/address.c daemon/settings/address.h \
	daemon/settings/environment.c \
	daemon/settings/file.c daemon/settings/file.h \
	daemon/settings/gpu_list.c daemon/settings/gpu_list.h \
	daemon/settings/hook_keys.h \
	daemon/settings/keys.h \
	daemon/settings/print.c \
	daemon/settings/remote_keys.h \
	daemon/settings/remotes.c daemon/settings/remotes.h \
	daemon/settings/rows.c daemon/settings/rows.h \
	daemon/settings/runner_keys.h \
	daemon/settings/runners.c daemon/settings/runners.h \
	daemon/settings/sections.c daemon/settings/sections.h \
	daemon/settings/setting_rows.c \
	daemon/settings/settings.c daemon/settings/settings.h \
	daemon/watch/metrics.c daemon/watch/metrics.h \
	daemon/watch/notify.c daemon/watch/notify.h \
	daemon/watch/trace.c daemon/watch/trace.h \
	daemon/watch/watchdog.c daemon/watch/watchdog.h \
	daemon/store/backup.c daemon/store/backup.h \
	daemon/store/columns.h \
	daemon/store/db.h \
	daemon/store/derive.c daemon/store/derive.h \
	daemon/store/dialect_sqlite.h \
	daemon/store/counts.c \
	daemon/store/files.c \
	daemon/store/group_commit.c \
	daemon/store/hints.h \
	daemon/store/inner.h \
	daemon/store/hook_versions.c daemon/store/hook_versions.h \
	daemon/store/nodes.c daemon/store/nodes.h \
	daemon/store/open.c \
	daemon/store/outage.c daemon/store/texts.c \
	daemon/store/leader.c daemon/store/leader.h \
	daemon/store/log.h \
	daemon/store/outbox.c daemon/store/outbox.h \
	daemon/store/removal.c \
	daemon/store/schema.c daemon/store/schema.h \
	daemon/store/several/states.c daemon/store/several/targets.c \
	daemon/store/several/targets.h \
	daemon/store/unsynced.c daemon/store/unsynced.h \
	daemon/store/sql.h \
	daemon/store/sqlite.c \
	daemon/store/steps.h \
	daemon/store/equal_jobs.c daemon/store/job_states.c \
	daemon/store/store.c daemon/store/store.h \
	daemon/store/tokens.c daemon/store/tokens.h \
	daemon/store/postgres/offline.h \
	daemon/library/adopt.c \
	daemon/library/blob.c daemon/library/blob.h \
	daemon/library/bundle.c daemon/library/bundle.h \
	daemon/library/commit.c \
	daemon/library/files.c \
	daemon/library/inner.h \
	daemon/library/library.c daemon/library/library.h \
	daemon/library/journals.c \
	daemon/library/observations.c \
	daemon/library/open_blobs.c \
	daemon/library/accessors.c \
	daemon/library/place_mark.c daemon/library/publish.c \
	daemon/library/read_blob.c \
	daemon/library/results.c \
	daemon/library/room.c \
	daemon/library/scrub.c \
	daemon/library/spool.c \
	daemon/library/verified_files.c \
	daemon/library/folder/ballast.c \
	daemon/library/folder/blobs_in_folder.c \
	daemon/library/folder/deferred_sync.c \
	daemon/library/folder/state_folder.c daemon/library/folder/state_folder.h \
	daemon/library/bucket/blobs_in_bucket.c \
	daemon/library/bucket/bucket.h \
	daemon/library/bucket/cache.c daemon/library/bucket/cache.h \
	daemon/library/bucket/objects.c \
	daemon/library/sweep/bucket_objects.c \
	daemon/library/sweep/leftovers.c \
	daemon/library/sweep/shared_folder.c \
	daemon/library/sweep/sweep.c \
	daemon/workers/backends.c daemon/workers/backends.h \
	daemon/workers/cage.c daemon/workers/cage.h \
	daemon/workers/confine.c daemon/workers/confine.h \
	daemon/workers/judge.c daemon/workers/judge.h \
	daemon/workers/judge_wanted.c daemon/workers/judge_wanted.h \
	daemon/workers/judging.c daemon/workers/judging.h \
	daemon/workers/message.c daemon/workers/message.h \
	daemon/workers/messages.h \
	daemon/workers/process.c daemon/workers/process.h \
	daemon/workers/scripts.c daemon/workers/scripts.h \
	daemon/workers/signer.c daemon/workers/signer.h daemon/workers/signing.c \
	daemon/workers/token_key.c daemon/workers/token_key.h \
	daemon/workers/trap.c daemon/workers/trap.h \
	daemon/workers/worker.c daemon/workers/worker.h \
	daemon/jobs/bell.c daemon/jobs/bell.h \
	daemon/jobs/end.c \
	daemon/jobs/delivery.c \
	daemon/jobs/fetch.c \
	daemon/jobs/gpus.c daemon/jobs/gpus.h \
	daemon/jobs/inner.h \
	daemon/jobs/job_view.c \
	daemon/jobs/job.c daemon/jobs/job.h \
	daemon/jobs/speeds.c daemon/jobs/speeds.h \
	daemon/jobs/lease.c \
	daemon/jobs/lineage.c daemon/jobs/lineage.h \
	daemon/jobs/run.c \
	daemon/jobs/wait.c \
	daemon/tenants/inner.h \
	daemon/tenants/keeper.c daemon/tenants/keeper.h \
	daemon/tenants/node.c daemon/tenants/node.h \
	daemon/tenants/service.h \
	daemon/tenants/sweeper.c daemon/tenants/sweeper.h \
	daemon/tenants/tenants.c daemon/tenants/tenants.h \
	daemon/tenants/token_check.c \
	daemon/tenants/token_command.c \
	daemon/tenants/token_rows.c daemon/tenants/token_rows.h \
	daemon/tenants/tokens.c daemon/tenants/tokens.h \
	daemon/tenants/turns.c \
	daemon/pool/ending.c daemon/pool/ending.h \
	daemon/pool/judging.c daemon/pool/judging.h \
	daemon/pool/lane.c daemon/pool/lane.h \
	daemon/pool/model_fds.c daemon/pool/model_fds.h \
	daemon/pool/pool.c daemon/pool/pool.h \
	daemon/pool/job_lane.c daemon/pool/job_lane.h \
	daemon/pool/short_work.c daemon/pool/short_work.h \
	daemon/http/access_log.c daemon/http/access_log.h \
	daemon/http/body.c daemon/http/body.h \
	daemon/http/conditions.c daemon/http/conditions.h \
	daemon/http/conns.c daemon/http/conns.h \
	daemon/http/framing.c daemon/http/framing.h \
	daemon/http/head.c daemon/http/head.h \
	daemon/http/listen.c daemon/http/listen.h \
	daemon/http/parts.h \
	daemon/http/reply.c daemon/http/reply.h \
	daemon/http/request.c daemon/http/request.h \
	daemon/http/response.c daemon/http/response.h \
	daemon/http/server.c daemon/http/server.h \
	daemon/http/tls.c daemon/http/tls.h \
	daemon/handlers/compare.c \
	daemon/handlers/events.c \
	daemon/handlers/files.c \
	daemon/handlers/handlers.c daemon/handlers/handlers.h \
	daemon/handlers/hooks.c daemon/handlers/hooks.h \
	daemon/handlers/lineage.c \
	daemon/handlers/jobs.c \
	daemon/handlers/lists.c \
	daemon/handlers/metrics.c \
	daemon/handlers/model_input.c daemon/handlers/model_input.h \
	daemon/handlers/places.c \
	daemon/handlers/results.c \
	daemon/handlers/submit.c \
	daemon/handlers/targets.c \
	daemon/carriers/ask.c daemon/carriers/ask.h \
	daemon/carriers/bucket.c daemon/carriers/bucket.h \
	daemon/carriers/carrier.c daemon/carriers/carrier.h \
	daemon/carriers/carriers.c daemon/carriers/carriers.h \
	daemon/carriers/carry.c daemon/carriers/carry.h \
	daemon/carriers/carry_objects.c \
	daemon/carriers/deliver.c \
	daemon/carriers/fetch.c \
	daemon/carriers/poll.c daemon/carriers/pieces.h \
	daemon/carriers/remote_fds.c daemon/carriers/remote_fds.h \
	daemon/carriers/signers.c daemon/carriers/signers.h \
	daemon/carriers/string_list.c daemon/carriers/string_list.h \
	daemon/adopt.c daemon/adopt.h \
	daemon/backup.c daemon/backup.h \
	daemon/check_store.c daemon/check_store.h \
	daemon/folders.c daemon/folders.h \
	daemon/migrate_blobs.c daemon/migrate_blobs.h \
	daemon/migrate_record.c daemon/migrate_record.h \
	daemon/descriptors.c daemon/descriptors.h
POSTGRES_SOURCES = daemon/store/hints.c daemon/store/postgres/offline.c \
	daemon/store/postgres/connection.c \
	daemon/store/postgres/database.c \
	daemon/store/postgres/dialect.h \
	daemon/store/postgres/inner.h \
	daemon/store/postgres/schema.c daemon/store/postgres/steps.h
if HAVE_LIBPQ
daemon_libqdqdi_la_SOURCES += $(POSTGRES_SOURCES)
else
daemon_libqdqdi_la_SOURCES += daemon/store/postgres/absent.c
endif
EXTRA_DIST += $(POSTGRES_SOURCES) daemon/store/postgres/absent.c

daemon_qdqd_CPPFLAGS = $(DAEMON_CPPFLAGS)
daemon_qdqd_SOURCES = daemon/main.c
daemon_qdqd_LDADD = daemon/libqdqdi.la

# Writes what people read about the settings.
noinst_PROGRAMS += daemon/settings-doc
daemon_settings_doc_CPPFLAGS = $(DAEMON_CPPFLAGS)
daemon_settings_doc_SOURCES = daemon/settings/doc.c
daemon_settings_doc_LDADD = daemon/libqdqdi.la
