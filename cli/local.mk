# qdq: sees the public headers of engine, api and remote.
bin_PROGRAMS += cli/qdq
cli_qdq_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) $(REMOTE_INCLUDE) $(THREADS_INCLUDE) $(JUDGES_INCLUDE) \
	-I$(top_srcdir)/cli $(INIH_CFLAGS) \
	-DQDQ_CASES='"$(casesdir)"' \
	-DQDQ_CUDA_MODULE='"$(libdir)/qdqd/qdq_cuda.so"'
cli_qdq_LDADD = remote/libremote.la ondemand/libnet.la threads/libthreads.la judges/libjudges.la api/libapi.la engine/libqdq.la $(INIH_LIBS) -lm
cli_qdq_SOURCES = \
	cli/service/client.c cli/service/client.h cli/service/client_store.c \
	cli/commands.h \
	cli/several/compare.c \
	cli/data/command.c \
	cli/service/download.c \
	cli/engine.c \
	cli/external.c cli/external.h \
	cli/files.c cli/files.h \
	cli/folder.c cli/folder.h \
	cli/inspect.c \
	cli/judge.c cli/judge.h \
	cli/lineage/reproduce.c \
	cli/lineage/statement.c cli/lineage/statement.h \
	cli/lineage/verify.c \
	cli/metric.c cli/metric.h \
	cli/pending_id.c cli/pending_id.h \
	cli/main.c \
	cli/options.c cli/options.h \
	cli/data/pack.c \
	cli/data/text.c cli/data/text.h \
	cli/page.c \
	cli/places.c \
	cli/print.c cli/print.h \
	cli/progress.c cli/progress.h \
	cli/pull.c \
	cli/pull_place.c cli/pull_place.h \
	cli/push.c \
	cli/quantize.c \
	cli/remotes.c cli/remotes.h \
	cli/several/one_or_several.c \
	cli/several/results.c cli/several/results.h \
	cli/runners.c cli/runners.h \
	cli/service/inspect.c \
	cli/service/quantize.c \
	cli/spec.c cli/spec.h \
	cli/several/targets.c cli/several/targets.h \
	cli/kept/digests.c cli/kept/digests.h \
	cli/kept/folder.c cli/kept/folder.h \
	cli/kept/file.c cli/kept/file.h cli/kept/observations.c cli/kept/observations.h \
	cli/kept/journal.c cli/kept/journal.h \
	cli/kept/times.c cli/kept/times.h \
	cli/terminal.c cli/terminal.h

# The completion for bash, under the name by which bash-completion finds it.
completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = cli/completions/qdq
