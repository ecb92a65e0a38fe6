# ondemand: stand-ins for functions of libraries that are loaded at the first call.
noinst_LTLIBRARIES += ondemand/libarchives.la ondemand/libnet.la
ONDEMAND_CPPFLAGS = -I$(top_builddir)/generated -I$(top_srcdir)/ondemand
ONDEMAND_LIBS = -ldl

# libzip, libarchive, libjpeg, libpng, libsnappy, libzstd, libpcre2-8 and libutf8proc, for libqdq.
ondemand_libarchives_la_CPPFLAGS = $(ONDEMAND_CPPFLAGS) $(LIBZIP_CFLAGS) $(LIBARCHIVE_CFLAGS) $(LIBJPEG_CFLAGS) $(LIBPNG_CFLAGS) \
	$(SNAPPY_CFLAGS) $(ZSTD_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
ondemand_libarchives_la_SOURCES = ondemand/ondemand.c ondemand/ondemand.h ondemand/archive.c ondemand/jpeg.c \
	ondemand/pcre2.c ondemand/png.c ondemand/snappy.c ondemand/utf8proc.c ondemand/zip.c ondemand/zstd.c
ondemand_libarchives_la_LIBADD = $(ONDEMAND_LIBS)

# libcurl, for qdq.
ondemand_libnet_la_CPPFLAGS = $(ONDEMAND_CPPFLAGS) $(LIBCURL_CFLAGS)
ondemand_libnet_la_SOURCES = ondemand/ondemand.c ondemand/ondemand.h ondemand/curl.c
ondemand_libnet_la_LIBADD = $(ONDEMAND_LIBS)
