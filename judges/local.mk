# libjudges: processes that judge, for the programs that start them; sees the engine's public headers.
noinst_LTLIBRARIES += judges/libjudges.la
judges_libjudges_la_CPPFLAGS = $(QDQ_INCLUDE) $(JUDGES_INCLUDE)
judges_libjudges_la_SOURCES = judges/include/judges/judges.h judges/include/judges/process.h \
	judges/connect.c judges/process.c
