# libjudges: processes that judge, for the programs that start them; sees the engine's public headers
# and jansson.
noinst_LTLIBRARIES += judges/libjudges.la
judges_libjudges_la_CPPFLAGS = $(QDQ_INCLUDE) $(JUDGES_INCLUDE) -I$(top_srcdir)/judges $(JANSSON_CFLAGS)
judges_libjudges_la_LIBADD = $(JANSSON_LIBS) -lm
judges_libjudges_la_SOURCES = judges/include/judges/judges.h judges/include/judges/process.h \
	judges/include/judges/runner.h judges/include/judges/walls.h \
	judges/include/judges/context.h judges/connect.c judges/context.c judges/landlock.c judges/privileges.c judges/process.c \
	judges/runner/filter.c judges/runner/filter.h \
	judges/runner/folder.c judges/runner/folder.h \
	judges/runner/judge.c \
	judges/runner/program.c judges/runner/program.h \
	judges/runner/runner.c \
	judges/runner/session.c judges/runner/session.h \
	judges/runner/spawn.c judges/runner/spawn.h \
	judges/runner/tensors.c judges/runner/tensors.h \
	judges/runner/walls.c judges/runner/walls.h

# Runners that the product has.
runnersdir = $(datadir)/qdqd/runners
dist_runners_SCRIPTS = runners/onnxruntime_ep.py runners/tensorrt_rtx.py
