# The wire: sees the engine's public headers, jansson, nothing of the daemon.
noinst_LTLIBRARIES += api/libapi.la
api_libapi_la_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/api $(JANSSON_CFLAGS)
api_libapi_la_LIBADD = $(JANSSON_LIBS)
api_libapi_la_SOURCES =
