#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the architecture: includes go one way, engine <- api <- remote <- daemon and cli, and each
# third-party header is included in one place only. make check passes the compiler flags
# of each part (ENGINE_FLAGS, API_FLAGS, REMOTE_FLAGS, JUDGES_FLAGS, DAEMON_FLAGS, CLI_FLAGS) as the build uses them.
src=${srcdir:-.}
failed=0

fault() {
    echo "$*"
    failed=1
}

# --- who may include whose header ----------------------------------------------------
# header (a basic regular expression)   files that may include it (shell patterns)
while read -r header allowed; do
    for file in $(grep -rlE --include='*.[ch]' --include='*.cu' "#[[:space:]]*include[[:space:]]*[<\"]$header" \
        "$src/ondemand" "$src/engine" "$src/api" "$src/remote" "$src/threads" "$src/judges" "$src/daemon" "$src/cli" 2>/dev/null); do
        is_allowed=
        set -f
        for pattern in $allowed; do
            # shellcheck disable=SC2254 # a pattern
            case ${file#"$src"/} in
            $pattern) is_allowed=1 ;;
            esac
        done
        set +f
        [ "$is_allowed" ] ||
            fault "${file#"$src"/}: includes $header, allowed only in $allowed"
    done
done <<'TABLE'
microhttpd\.h daemon/http/*
gnutls daemon/http/tls.c daemon/workers/token_key.c
sqlite3\.h daemon/store/*
libpq-fe\.h daemon/store/*
ini\.h daemon/settings/file.c cli/remotes.c cli/runners.c
seccomp\.h daemon/workers/cage.c
jansson\.h api/* remote/* judges/runner/*
openssl/ api/base/digest.c api/base/signing_key.c remote/s3/s3_presign.c remote/webhook/signature.c
curl/ remote/* ondemand/curl.c
lua engine/plan/cases/*
zip\.h engine/files/data/npz.c ondemand/zip.c
archive engine/files/data/tar.c ondemand/archive.c
jpeglib\.h engine/files/images/jpeg.c ondemand/jpeg.c
png\.h engine/files/images/png.c ondemand/png.c
pcre2\.h engine/files/text/pattern.c ondemand/pcre2.c
utf8proc\.h engine/files/text/unicode.c ondemand/utf8proc.c
zlib\.h engine/files/data/gunzip.c engine/files/data/parquet/codec.c remote/oci/untar.c
snappy-c\.h engine/files/data/parquet/codec.c ondemand/snappy.c
zstd\.h engine/files/data/parquet/codec.c ondemand/zstd.c
onnxruntime_c_api\.h engine/run/*
cuda_runtime\.h engine/numbers/cuda/*
onnx\.pb-c\.h engine/files/model/*
protobuf-c/ engine/files/model/*
TABLE

# The engine is a library: it uses no JSON, HTTP, SQL, log, signals or threads.
for header in pthread threads signal syslog sys/socket sys/wait; do
    grep -rnE --include='*.[ch]' "#[[:space:]]*include[[:space:]]*<$header\.h>" \
        "$src/engine" "$src/api" && fault "engine and api do without $header.h"
done
grep -rnE --include='*.[ch]' '#[[:space:]]*include[[:space:]]*"([^"]*/)?\.\./' \
    "$src/engine" "$src/api" "$src/remote" "$src/threads" "$src/judges" "$src/daemon" "$src/cli" "$src/tests" &&
    fault 'no include goes up with ../'

# --- the folders of a part have an order ---------------------------------------------
# From the ground up: a file may include headers of its own folder and of the folders before
# it. Files beside the folders are on top; include/, which all may use, is at the bottom. The
# engine's folders lie in wings, which have the same order.
engine_order='ground/tbl ground/base numbers/arithmetic numbers/cuda numbers/range files/images files/text files/data files/model'
engine_order="$engine_order graph/edit graph/layers graph/weights plan/gates plan/cases plan/placement plan/targets"
engine_order="$engine_order transform/prepare transform/equalize transform/rewrite run/operators run/session"
engine_order="$engine_order runtimes/common runtimes/onnxruntime runtimes/openvino runtimes/process runtimes"
engine_order="$engine_order stages/attempt stages/report stages/smooth stages/calibrate stages/scale stages/reconstruct"
engine_order="$engine_order stages/slices stages/evaluate stages/profile stages/plausible stages/task stages/frontier stages/candidates stages/whatif stages/recipe"
api_order='base spec tokenizer documents lineage http'
remote_order='base s3 oci mlflow webhook'
daemon_order='base settings watch store library workers jobs tenants pool http handlers carriers'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# order_faults PART TREE FOLDERS: a line for each fault, with PART for the tree's name.
order_faults() {
    (
        cd "$2" || exit
        # A folder counts with its first name, or with two where the order has wings.
        find . -mindepth 2 \( -name '*.[ch]' -o -name '*.cu' \) | sed 's,^\./,,; s,/[^/]*$,,' |
            grep -vE '^include(/|$)' | sort -u | while read -r folder; do
            while case " $3 " in *" $folder "*) false ;; esac; do
                case $folder in
                */*) folder=${folder%/*} ;;
                *) echo "$1/$folder/: is not in the order" && break ;;
                esac
            done
        done | sort -u
        for folder in $3; do
            [ -d "$folder" ] || echo "$1/$folder: is in the order and not there"
        done
        top=$(find . -maxdepth 1 -name '*.h' -printf '%f ')
        grep -rnE --include='*.[ch]' --include='*.cu' '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' . |
            awk -F: -v part="$1" -v order="$3" -v top="$top" '
            BEGIN {
                n = split(order, folders, " ")
                for (i = 1; i <= n; i++)
                    rank[folders[i]] = i
                n = split(top, headers, " ")
                for (i = 1; i <= n; i++)
                    is_top[headers[i]] = 1
            }
            # The longest folder of the path that the order has.
            function folder_of(path) {
                while (sub(/\/[^\/]*$/, "", path))
                    if (path in rank)
                        return path
                return ""
            }
            {
                file = substr($1, 3)
                from = folder_of(file)
                header = $3
                sub(/^[^<"]*[<"]/, "", header)
                sub(/[>"].*/, "", header)
                to = folder_of(header)
                if (from != "" && (to == "" ? header in is_top : rank[to] > rank[from]))
                    print part "/" file ":" $2 ": includes " header ", which is above " from "/"
            }'
    )
}

# call_faults PART FOLDERS: a line for each use of a symbol that a folder above defines. The
# symbols come on the standard input: FILE SYMBOL TYPE, with the type of nm. This finds
# calls of functions that a lower folder declares and a higher one defines.
call_faults() {
    awk -v part="$1" -v order="$2" '
    BEGIN {
        n = split(order, folders, " ")
        for (i = 1; i <= n; i++)
            rank[folders[i]] = i
        rank[""] = n + 1
    }
    function folder_of(path) {
        while (sub(/\/[^\/]*$/, "", path))
            if (path in rank)
                return path
        return ""
    }
    { file[NR] = $1; symbol[NR] = $2; is_use[NR] = $3 == "U" }
    $3 ~ /^[TDBRSC]$/ { home[$2] = $1 }
    END {
        for (i = 1; i <= NR; i++) {
            from = folder_of(file[i])
            if (is_use[i] && symbol[i] in home &&
                rank[folder_of(home[symbol[i]])] > rank[from])
                print part "/" file[i] ": uses " symbol[i] " of " home[symbol[i]] ", which is above " from "/"
        }
    }'
}

# knot_faults PART MOST: a line for each group of more than MOST files that call each other in a
# circle, so that none of them can be read without the others. Reads symbols as above.
knot_faults() {
    awk -v part="$1" -v most="$2" '
    { file[NR] = $1; symbol[NR] = $2; is_use[NR] = $3 == "U"; is_file[$1] = 1 }
    $3 ~ /^[TDBRSC]$/ { home[$2] = $1 }
    function follow(from, at,    callees, n, i) {
        if ((from, at) in reached)
            return
        reached[from, at] = 1
        n = split(calls[at], callees, " ")
        for (i = 1; i <= n; i++)
            follow(from, callees[i])
    }
    END {
        for (i = 1; i <= NR; i++) {
            to = is_use[i] && symbol[i] in home ? home[symbol[i]] : file[i]
            if (to != file[i] && !((file[i], to) in is_call)) {
                is_call[file[i], to] = 1
                calls[file[i]] = calls[file[i]] " " to
            }
        }
        for (from in is_file)
            follow(from, from)
        for (one in is_file) {
            if (one in is_told)
                continue
            n = 0
            group = ""
            for (other in is_file)
                if ((one, other) in reached && (other, one) in reached) {
                    n++
                    group = group " " other
                    is_told[other] = 1
                }
            if (n > most)
                print part ": " n " files call each other in a circle, at most " most " may:" group
        }
    }'
}

# symbols PART: the symbols of the objects that were built from existing sources.
symbols() {
    (cd "$src/$1" && find . -name '*.c' | sed 's,^\./,,') >"$work/sources"
    find "$1" -name '*.o' -exec nm -A -P '{}' + |
        sed -E "s,^$1/,,; s,\.libs/,,; s,[A-Za-z0-9_]+-([^/:]+):,\1:,; s,\.o:,.c," |
        awk 'NR == FNR { is_there[$1] = 1; next } $1 in is_there' "$work/sources" -
}

# Tests the check itself: in a tree with the same folders it must find every forbidden
# include and call, and no other.
order_is_held() {
    part=$1 order=$2
    rm -rf "$work/tree"
    mkdir -p "$work/tree/attic"
    touch "$work/tree/attic/x.c" "$work/tree/summit.h"
    for folder in $order; do
        mkdir -p "$work/tree/$folder"
        for header in $order; do
            echo "#include \"$header/x.h\""
        done >"$work/tree/$folder/x.c"
        echo '# include <summit.h>' >>"$work/tree/$folder/x.c"
    done
    cp "$work/tree/$folder/x.c" "$work/tree/summit.c"
    {
        echo "$part/attic/: is not in the order"
        i=0
        for folder in $order; do
            i=$((i + 1)) j=0
            for header in $order; do
                j=$((j + 1))
                [ $j -le $i ] ||
                    echo "$part/$folder/x.c:$j: includes $header/x.h, which is above $folder/"
            done
            echo "$part/$folder/x.c:$((j + 1)): includes summit.h, which is above $folder/"
        done
    } | sort >"$work/expected"
    order_faults "$part" "$work/tree" "$order" | sort >"$work/found"
    cmp -s "$work/expected" "$work/found" || {
        diff "$work/expected" "$work/found"
        fault "the check of the order of $part/ does not find what it must"
    }
    for folder in $order; do
        echo "$folder/x.c $folder T"
        for callee in $order summit; do
            echo "$folder/x.c $callee U"
        done
    done >"$work/symbols"
    echo "summit.c summit T" >>"$work/symbols"
    sed -nE -e 's,^(.*)/x\.c:[0-9]*: includes (.*)/x\.h,\1/x.c: uses \2 of \2/x.c,p' \
        -e 's,^(.*)/x\.c:[0-9]*: includes summit\.h,\1/x.c: uses summit of summit.c,p' \
        "$work/expected" | sort >"$work/expected_calls"
    call_faults "$part" "$order" <"$work/symbols" | sort | diff "$work/expected_calls" - ||
        fault "the check of the calls of $part/ does not find what it must"

    order_faults "$part" "$src/$part" "$order" >"$work/faults"
    symbols "$part" >"$work/symbols"
    [ -s "$work/symbols" ] || fault "found no objects of $part/: run this by make check"
    call_faults "$part" "$order" <"$work/symbols" >>"$work/faults"
    [ ! -s "$work/faults" ] || fault "$(cat "$work/faults")"
}

order_is_held engine "$engine_order"
order_is_held api "$api_order"
order_is_held remote "$remote_order"
order_is_held daemon "$daemon_order"

# --- files that call each other in a circle ------------------------------------------
# Tests the check itself: a, b and c make a circle, d calls into it, and e and f make another one.
printf '%s\n' 'a.c a T' 'a.c b U' 'b.c b T' 'b.c c U' 'c.c c T' 'c.c a U' 'd.c d T' 'd.c a U' \
    'e.c e T' 'e.c f U' 'f.c f T' 'f.c e U' 'f.c d U' >"$work/symbols"
group='x: 3 files .*: [abc]\.c [abc]\.c [abc]\.c$'
if [ "$(knot_faults x 2 <"$work/symbols" | grep -c "$group")" != 1 ] ||
    [ "$(knot_faults x 1 <"$work/symbols" | wc -l)" != 2 ]; then
    fault 'the check of circles does not find what it must'
fi
for part in daemon remote; do
    symbols $part | knot_faults $part 4 >"$work/faults"
    [ ! -s "$work/faults" ] || fault "$(cat "$work/faults")"
done

# --- ARCHITECTURE.md has the same folders in the same order ---------------------------
# section TITLE: the text below a title of ARCHITECTURE.md.
section() {
    awk -v title="## $1" '$0 == title { is_in = 1; next } /^## / { is_in = 0 } is_in' "${2:-$src/ARCHITECTURE.md}"
}
# folders: those in the first column of the table on the standard input, in its order.
folders() {
    sed -n 's/^| \(`[^|]*\/`\) |.*/\1/p' | tr -d '`,' | tr '\n' ' ' | sed 's,/ , ,g; s, $,,'
}
same_folders() {
    documented=$(section "$1" | folders)
    [ "$documented" = "$2" ] || {
        echo "documented: $documented"
        echo "in order:   $2"
        fault "ARCHITECTURE.md, $1: not the folders of the order"
    }
}
# The way of reading a table is tried first.
printf '## One\n| `x/` | no |\n## Two\n| `a/`, `b/` | of `c/` |\n| `d/f/` | |\n## Three\n| `e/` | |\n' >"$work/tables.md"
[ "$(section Two "$work/tables.md" | folders)" = 'a b d/f' ] || fault 'the tables of ARCHITECTURE.md are misread'
same_folders "The engine's folders" "$engine_order"
same_folders "The daemon's folders" "$daemon_order"
section "The daemon's folders" >"$work/daemon.md"
for file in "$src"/daemon/*.c; do
    grep -q "\`${file##*/}\`" "$work/daemon.md" ||
        fault "ARCHITECTURE.md, The daemon's folders: daemon/${file##*/} is missing"
done

# --- an illegal include does not compile ---------------------------------------------
# compiles FLAGS HEADER: succeeds when a part with these flags can include the header.
compiles() {
    printf '#include "%s"\n' "$2" >"$work/probe.c"
    # shellcheck disable=SC2086 # a list of flags
    ${CC:-cc} $1 -E -o /dev/null "$work/probe.c" 2>/dev/null
}
probe() {
    part=$1 flags=$2 verdict=$3 header=$4
    if [ -z "$flags" ]; then
        fault "no compiler flags of $part were given: run this by make check"
    elif compiles "$flags" "$header"; then
        [ "$verdict" = may ] || fault "$part can include $header and must not"
    else
        [ "$verdict" = may ] && fault "$part cannot include $header and may"
    fi
}
# One header of each kind that a part must not include. The same probe with an allowed
# header shows that a probe can succeed.
engine_internal=ground/base/arena.h
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
probe api "$API_FLAGS" not remote/remote.h
probe remote "$REMOTE_FLAGS" may api/problem.h
probe remote "$REMOTE_FLAGS" not "$engine_internal"
probe remote "$REMOTE_FLAGS" not base/json.h
probe remote "$REMOTE_FLAGS" not "daemon/$daemon_header"
probe remote "$REMOTE_FLAGS" not "$daemon_header"
probe judges "$JUDGES_FLAGS" may qdq/judge.h
probe judges "$JUDGES_FLAGS" not api/problem.h
probe judges "$JUDGES_FLAGS" not "$engine_internal"
probe judges "$JUDGES_FLAGS" not "$daemon_header"
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
