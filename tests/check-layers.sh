#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The architecture holds: arrows point one way, engine <- api <- daemon and cli, and a
# third party's header stands in one place. make check gives the compiler flags of each
# room (ENGINE_FLAGS, API_FLAGS, DAEMON_FLAGS, CLI_FLAGS) just as the build uses them.
src=${srcdir:-.}
failed=0

fault() {
    echo "$*"
    failed=1
}

# --- who may include whose header ----------------------------------------------------
# header (a basic regular expression)   files that may include it (shell pattern)
while read -r header allowed; do
    for file in $(grep -rlE --include='*.[ch]' --include='*.cu' "#[[:space:]]*include[[:space:]]*[<\"]$header" \
        "$src/engine" "$src/api" "$src/daemon" "$src/cli" 2>/dev/null); do
        # shellcheck disable=SC2254 # a pattern
        case ${file#"$src"/} in
        $allowed) ;;
        *) fault "${file#"$src"/}: includes $header, allowed only in $allowed" ;;
        esac
    done
done <<'TABLE'
microhttpd\.h daemon/http/*
gnutls daemon/http/tls.c
sqlite3\.h daemon/store/*
ini\.h daemon/settings/settings.c
seccomp\.h daemon/workers/cage.c
jansson\.h api/*
lua engine/cases/*
zip\.h engine/data/npz.c
archive engine/data/tar.c
zlib\.h engine/data/gunzip.c
onnxruntime_c_api\.h engine/run/*
cuda_runtime\.h engine/cuda/*
onnx\.pb-c\.h engine/model/*
protobuf-c/ engine/model/*
TABLE

# The engine is a library: it knows no JSON, HTTP, SQL, log, signals or threads.
for header in pthread threads signal syslog sys/socket sys/wait; do
    grep -rnE --include='*.[ch]' "#[[:space:]]*include[[:space:]]*<$header\.h>" \
        "$src/engine" "$src/api" && fault "engine and api do without $header.h"
done
grep -rnE --include='*.[ch]' '#[[:space:]]*include[[:space:]]*"([^"]*/)?\.\./' \
    "$src/engine" "$src/api" "$src/daemon" "$src/cli" "$src/tests" &&
    fault 'no include goes up with ../'

# --- an illegal include does not compile ---------------------------------------------
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# compiles FLAGS HEADER: the room with these flags can include that header.
compiles() {
    printf '#include "%s"\n' "$2" >"$work/probe.c"
    # shellcheck disable=SC2086 # a list of flags
    ${CC:-cc} $1 -E -o /dev/null "$work/probe.c" 2>/dev/null
}
probe() {
    room=$1 flags=$2 verdict=$3 header=$4
    if [ -z "$flags" ]; then
        fault "no compiler flags of $room were given: run this by make check"
    elif compiles "$flags" "$header"; then
        [ "$verdict" = may ] || fault "$room can include $header and must not"
    else
        [ "$verdict" = may ] && fault "$room cannot include $header and may"
    fi
}
# A header for each thing that a room must not see; the same probe with something that
# it may see shows that a probe can succeed.
engine_internal=base/arena.h
[ -f "$src/engine/$engine_internal" ] || fault "engine/$engine_internal has moved"
daemon_header=base/log.h
[ -f "$src/daemon/$daemon_header" ] || fault "daemon/$daemon_header has moved"

probe engine "$ENGINE_FLAGS" may "$engine_internal"
probe engine "$ENGINE_FLAGS" may qdq/model.h
probe engine "$ENGINE_FLAGS" not api/problem.h
probe engine "$ENGINE_FLAGS" not "daemon/$daemon_header"
probe engine "$ENGINE_FLAGS" not "$daemon_header"
probe api "$API_FLAGS" may qdq/model.h
probe api "$API_FLAGS" may api/problem.h
probe api "$API_FLAGS" not "$engine_internal"
probe api "$API_FLAGS" not "engine/$engine_internal"
probe api "$API_FLAGS" not "daemon/$daemon_header"
probe api "$API_FLAGS" not "$daemon_header"
probe daemon "$DAEMON_FLAGS" may qdq/model.h
probe daemon "$DAEMON_FLAGS" may api/problem.h
probe daemon "$DAEMON_FLAGS" not "$engine_internal"
probe daemon "$DAEMON_FLAGS" not "engine/$engine_internal"
probe cli "$CLI_FLAGS" may qdq/model.h
probe cli "$CLI_FLAGS" may api/problem.h
probe cli "$CLI_FLAGS" not "$engine_internal"
probe cli "$CLI_FLAGS" not "daemon/$daemon_header"
probe cli "$CLI_FLAGS" not "$daemon_header"
exit $failed
