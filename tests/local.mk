# make check: unit programs (libcheck, TAP) and the scripts that check house rules.
#
# Each part lists its unit programs in tests/unit/PART.mk. One line is enough for a program:
# it is built from the C file of its name, and all have these flags and libraries. A program
# that replaces functions (--wrap) also has LDFLAGS of its own.
# A program prints TAP (tests/unit/unit.h does that); srcdir is in its environment.
AM_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/engine -I$(top_builddir)/engine \
	-I$(top_builddir)/engine/files/model \
	-I$(top_srcdir)/api $(REMOTE_INCLUDE) -I$(top_srcdir)/remote -I$(top_srcdir)/daemon -I$(top_srcdir)/tests/unit -I$(top_srcdir)/tests/fuzz \
	$(CHECK_CFLAGS) $(JANSSON_CFLAGS) $(SQLITE_CFLAGS) $(ORT_CFLAGS) \
	-DQDQ_ORT_LIBRARY='"$(ORT_LIBRARY)"' \
	-DQDQD_DEFAULT_STATE_DIR='"/var/lib/qdqd"' \
	-DQDQD_DEFAULT_CASES='"/etc/qdqd/cases.d"'
LDADD = daemon/libqdqdi.la remote/libremote.la api/libapi.la engine/libqdqi.la $(CHECK_LIBS) $(JANSSON_LIBS) \
	$(SQLITE_LIBS) -lm

TEST_EXTENSIONS = .sh
LOG_DRIVER = env CK_TAP_LOG_FILE_NAME=- AM_TAP_AWK='$(AWK)' $(SHELL) \
	$(top_srcdir)/build-aux/tap-driver.sh

# Headers are listed one by one, because a folder would include build results.
EXTRA_DIST += tests/tsan.supp tests/comments.awk tests/package.sh tests/package-systemd.sh tests/container.sh \
	$(wildcard $(srcdir)/tests/unit/*.h) \
	$(wildcard $(srcdir)/tests/fuzz/*.h) tests/fuzz/corpus tests/data tests/e2e tests/golden tests/pytest.ini tests/models tests/servers tests/pipelines tests/genai tests/tensorrt tests/qnn tests/conftest.py bench docs tools

check_DATA =

if HAVE_CHECK
include tests/unit/engine.mk
include tests/unit/cuda.mk
include tests/cuda/local.mk
include tests/unit/data.mk
include tests/unit/api.mk
include tests/unit/remote.mk
include tests/unit/daemon.mk
include tests/unit/judges.mk
endif

# A locale with a comma in its numbers, for api/test_json; needs Debian's `locales`.
check_DATA += tests/locale/de_DE.UTF-8/LC_NUMERIC
tests/locale/de_DE.UTF-8/LC_NUMERIC:
	$(AM_V_GEN)$(MKDIR_P) tests/locale && \
	localedef --no-archive -i de_DE -f UTF-8 ./tests/locale/de_DE.UTF-8
clean-local:
	rm -rf tests/locale

# The flags of each part, as the build uses them, for check-layers.sh.
AM_TESTS_ENVIRONMENT = CC="$(CC)"; export CC; \
	TEST_LOCALES="$(abs_top_builddir)/tests/locale"; export TEST_LOCALES; \
	ENGINE_FLAGS="$(engine_libqdqi_la_CPPFLAGS)"; export ENGINE_FLAGS; \
	API_FLAGS="$(api_libapi_la_CPPFLAGS)"; export API_FLAGS; \
	REMOTE_FLAGS="$(remote_libremote_la_CPPFLAGS)"; export REMOTE_FLAGS; \
	JUDGES_FLAGS="$(judges_libjudges_la_CPPFLAGS)"; export JUDGES_FLAGS; \
	DAEMON_FLAGS="$(daemon_libqdqdi_la_CPPFLAGS)"; export DAEMON_FLAGS; \
	CLI_FLAGS="$(cli_qdq_CPPFLAGS)"; export CLI_FLAGS; \
	HARDEN_CFLAGS="$(HARDEN_CFLAGS)"; export HARDEN_CFLAGS;
dist_check_SCRIPTS = tests/check-circles.sh tests/check-exports.sh tests/check-format.sh \
	tests/check-hardening.sh tests/check-kernels.sh tests/check-layers.sh tests/check-openapi.sh tests/check-source.sh
