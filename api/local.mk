# The wire: sees the engine's public headers, jansson, nothing of the daemon.
noinst_LTLIBRARIES += api/libapi.la
api_libapi_la_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/api -I$(top_builddir)/api \
	$(JANSSON_CFLAGS)
api_libapi_la_LIBADD = $(JANSSON_LIBS) -lm
api_libapi_la_SOURCES = \
	api/include/api/eta.h api/eta.c \
	api/include/api/files.h api/files.c \
	api/include/api/header.h api/header.c \
	api/include/api/job.h api/job.c \
	api/include/api/version.h api/version.c \
	api/include/api/openapi.h api/openapi.c \
	api/include/api/problem.h api/include/api/problems.h api/problem.c \
	api/problem_json.c \
	api/include/api/report.h api/report.c api/markdown.c api/info.c \
	api/include/api/route.h api/include/api/routes.h api/route.c \
	api/include/api/spec.h api/spec.c api/members.h api/members.c api/values.c \
	api/accept.c api/cases.c api/data.c api/layers.c api/ranges.c api/rules.c api/support.c api/whatif.c \
	api/json.h api/include/api/utf8.h api/json.c

# The contract as a string literal: line by line, with what C would read escaped.
EXTRA_DIST += api/openapi.yaml
BUILT_SOURCES += api/openapi.inc
CLEANFILES += api/openapi.inc
api/openapi.inc: $(top_srcdir)/api/openapi.yaml
	$(AM_V_GEN)$(MKDIR_P) api && \
	sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $(top_srcdir)/api/openapi.yaml >$@.tmp && \
	mv $@.tmp $@
