# The wire: sees the engine's public headers, jansson, nothing of the daemon.
noinst_LTLIBRARIES += api/libapi.la
api_libapi_la_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/api $(JANSSON_CFLAGS)
api_libapi_la_LIBADD = $(JANSSON_LIBS) -lm
api_libapi_la_SOURCES = \
	api/include/api/job.h api/job.c \
	api/include/api/problem.h api/include/api/problems.h api/problem.c \
	api/include/api/report.h api/report.c api/info.c \
	api/include/api/route.h api/include/api/routes.h api/route.c \
	api/include/api/spec.h api/spec.c api/members.h api/members.c api/ranges.c \
	api/json.h api/json.c
