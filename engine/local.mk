# libqdq: sees itself, and of third parties what each file names.
lib_LTLIBRARIES += engine/libqdq.la
noinst_LTLIBRARIES += engine/libqdqi.la

nobase_include_HEADERS += \
	engine/include/qdq.h \
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
engine_libqdqi_la_CFLAGS = $(AM_CFLAGS) -fPIC -fvisibility=default
engine_libqdqi_la_LIBADD = $(PROTOBUF_C_LIBS) $(LIBZIP_LIBS) -lm -ldl
engine_libqdqi_la_SOURCES = \
	engine/base/arena.c engine/base/arena.h \
	engine/base/dtype.c engine/base/dtype.h \
	engine/base/error.c \
	engine/base/map.c engine/base/map.h \
	engine/tbl/dtypes.h
