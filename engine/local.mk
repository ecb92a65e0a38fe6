# libqdq: sees itself, and of third parties what each file names.
lib_LTLIBRARIES += engine/libqdq.la
noinst_LTLIBRARIES += engine/libqdqi.la

include_HEADERS += engine/include/qdq.h
qdqinclude_HEADERS = \
	engine/include/qdq/codes.h \
	engine/include/qdq/dataset.h \
	engine/include/qdq/error.h \
	engine/include/qdq/model.h \
	engine/include/qdq/plan.h \
	engine/include/qdq/quantize.h \
	engine/include/qdq/report.h \
	engine/include/qdq/spec.h \
	engine/include/qdq/stages.h

ENGINE_CPPFLAGS = $(QDQ_INCLUDE) -I$(top_srcdir)/engine

# All of the engine, with its internals reachable for the unit tests.
engine_libqdqi_la_CPPFLAGS = $(ENGINE_CPPFLAGS) -I$(top_builddir)/engine/model \
	$(PROTOBUF_C_CFLAGS) $(LIBZIP_CFLAGS) $(ORT_CFLAGS)
engine_libqdqi_la_LIBADD = $(PROTOBUF_C_LIBS) $(LIBZIP_LIBS) -lm -ldl
engine_libqdqi_la_SOURCES = \
	engine/base/arena.c engine/base/arena.h \
	engine/base/dtype.c engine/base/dtype.h \
	engine/base/error.c \
	engine/base/map.c engine/base/map.h \
	engine/tbl/dtypes.h

# What is installed: the same code, of which only qdq_* is visible.
engine_libqdq_la_SOURCES =
engine_libqdq_la_LIBADD = engine/libqdqi.la
engine_libqdq_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-export-symbols-regex '^qdq_' -Wl,--no-undefined
