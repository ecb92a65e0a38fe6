# librunner: programs of the operator's that judge. It sees the engine's public headers and jansson.
noinst_LTLIBRARIES += judges/librunner.la
RUNNER_INCLUDE = -I$(top_srcdir)/judges
judges_librunner_la_CPPFLAGS = $(QDQ_INCLUDE) $(RUNNER_INCLUDE) $(JANSSON_CFLAGS)
judges_librunner_la_LIBADD = $(JANSSON_LIBS) -lm
judges_librunner_la_SOURCES = \
	judges/runner/filter.c judges/runner/filter.h \
	judges/runner/folder.c judges/runner/folder.h \
	judges/runner/program.c judges/runner/program.h \
	judges/runner/runner.c judges/runner/runner.h \
	judges/runner/session.c judges/runner/session.h \
	judges/runner/spawn.c judges/runner/spawn.h \
	judges/runner/tensors.c judges/runner/tensors.h \
	judges/runner/walls.c judges/runner/walls.h \
	judges/walls/landlock.c judges/walls/landlock.h \
	judges/walls/privileges.c judges/walls/privileges.h

runnersdir = $(datadir)/qdqd/runners
dist_runners_SCRIPTS = runners/onnxruntime_ep.py
