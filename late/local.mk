# late: stand-ins for functions of libraries that are loaded at the first call.
noinst_LTLIBRARIES += late/libarchives.la late/libnet.la
LATE_CPPFLAGS = -I$(top_builddir)/generated -I$(top_srcdir)/late
LATE_LIBS = -ldl

# libzip and libarchive, for libqdq.
late_libarchives_la_CPPFLAGS = $(LATE_CPPFLAGS) $(LIBZIP_CFLAGS) $(LIBARCHIVE_CFLAGS)
late_libarchives_la_SOURCES = late/late.c late/late.h late/archive.c late/zip.c
late_libarchives_la_LIBADD = $(LATE_LIBS)

# libcurl, for qdq.
late_libnet_la_CPPFLAGS = $(LATE_CPPFLAGS) $(LIBCURL_CFLAGS)
late_libnet_la_SOURCES = late/late.c late/late.h late/curl.c
late_libnet_la_LIBADD = $(LATE_LIBS)
