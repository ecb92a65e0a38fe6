# libthreads: the threads that programs lend the engine; sees the engine's public headers.
noinst_LTLIBRARIES += threads/libthreads.la
threads_libthreads_la_CPPFLAGS = $(QDQ_INCLUDE) $(THREADS_INCLUDE)
threads_libthreads_la_CFLAGS = $(AM_CFLAGS) -pthread
threads_libthreads_la_LIBADD = -lpthread
threads_libthreads_la_SOURCES = threads/include/threads/executor.h threads/executor.c
