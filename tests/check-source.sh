#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# House rules that grep can check: each file names its licence, and no file calls a function
# that has a safer form (unbounded or locale-dependent text, hidden state, the shell).
cd "${srcdir:-.}" || exit 1
failed=0

folders=
for folder in ondemand engine api remote threads judges daemon cli runners tests bench tools etc systemd; do
    [ -d "$folder" ] && folders="$folders $folder"
done
# shellcheck disable=SC2086 # a list of words
sources=$(find $folders -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' \
    -o -name '*.py' -o -path 'tools/*' \) ! -name '*.pyc')

# shellcheck disable=SC2086 # a list of words
unlicensed=$(awk 'FNR == 1 { files[++n] = FILENAME }
    FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { is_licensed[FILENAME] = 1 }
    FNR == 3 { nextfile }
    END {
        for (i = 1; i <= n; i++)
            if (!(files[i] in is_licensed))
                print files[i] ": no SPDX line"
    }' $sources configure.ac Makefile.am
    find $sources -prune -empty -printf '%p: no SPDX line\n')
if [ -n "$unlicensed" ]; then
    echo "$unlicensed"
    failed=1
fi

banned='strcpy|stpcpy|strcat|strncpy|strncat|sprintf|vsprintf|gets|strtok'
banned="$banned|atoi|atol|atoll|atof|rand|srand|random|localtime|gmtime|ctime|asctime"
banned="$banned|alloca|system|popen|setlocale|tmpnam|mktemp|signal"
# shellcheck disable=SC2046 # a list of words
if grep -nHE "(^|[^A-Za-z0-9_>.\"])($banned)[[:space:]]*\(" $(echo "$sources" | grep -E '\.(c|h|cu)$'); then
    echo 'banned functions'
    failed=1
fi

# No sentence of a comment begins with "What", "Who" or "Of" in the place of a subject. First
# the check itself is tried: it must find these sentences, and none of the questions,
# texts and others beside them.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/bad.c" <<'EOF_C'
/* Of one. */
int a; /* It is fine. What is
          not is two. */
/*
 * Fine. "What" and `Of` are fine, and so is the question: What is it?
 *
 * - Whatever is three.
 */
const char *text = "/* What is fine. */"; // Who is four
// What-ifs are fine, and
// Whose is fine; Whoever is five
EOF_C
cp "$work/bad.c" "$work/bad.cu"
printf '"""Of it."""\n\ndef f():\n    """Fine.\n\n    What is two."""\n    x = "# Of"  # Who is three\n' >"$work/bad.py"
printf -- '-- What is one.\nlocal x = "-- Of" -- it is fine\n' >"$work/bad.lua"
printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n# Of one.\necho "# What" # Whose is two?\n' >"$work/bad.sh"
found=$(awk -f tests/comments.awk "$work"/bad.* | awk -F: '{ n[$1]++ } END { for (i in n) print i, n[i] }' |
    sed "s,^$work/,," | LC_ALL=C sort | tr '\n' ' ')
if [ "$found" != 'bad.c 5 bad.cu 5 bad.lua 1 bad.py 3 bad.sh 1 ' ]; then
    awk -f tests/comments.awk "$work"/bad.*
    echo "tests/comments.awk: found $found"
    failed=1
fi
# shellcheck disable=SC2086 # a list of words
riddles=$(find $folders clients examples -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' \
    -o -name '*.lua' -o -name '*.py' -o -name '*.sh' -o -path 'tools/*' \) \
    -exec awk -f tests/comments.awk '{}' +)
if [ -n "$riddles" ]; then
    echo "$riddles"
    failed=1
fi

# A mutex of the daemon has a rank, and its promises are checked.
if grep -rnE 'pthread_mutex|pthread_rwlock|pthread_cond_(timed)?wait' --include='*.[ch]' daemon |
    grep -v '^daemon/base/lock\.[ch]:'; then
    echo 'daemon/: its locks are those of base/lock.h'
    failed=1
fi

# An include guard is the header's path, so that no two are the same: a file that includes
# two headers with one guard silently loses the second. Tables of rows have none.
headers=$(echo "$sources" | tr ' ' '\n' | grep '\.h$')
# shellcheck disable=SC2086 # a list of words
guard_faults=$(awk '
    function guard_of(path) {
        if (!sub(/^engine\/include\//, "", path) && !sub(/^engine\//, "qdqi/", path) &&
            !sub(/^api\/include\//, "", path) &&
            !sub(/^remote\/include\//, "", path) &&
            !sub(/^(threads|judges)\/include\//, "", path))
            sub(/^daemon\//, "qdqd/", path)
        gsub(/[\/.]/, "_", path)
        return toupper(path)
    }
    FNR == 1 {
        has_guard = 0
        if (guard_of(FILENAME) in headers)
            print guard_of(FILENAME) ": the guard of two headers whose paths differ in punctuation alone"
        headers[guard_of(FILENAME)] = 1
    }
    !has_guard && /^#ifndef .*_H$/ {
        has_guard = 1
        if ($2 != guard_of(FILENAME))
            print FILENAME ": its include guard is " $2 " and not " guard_of(FILENAME)
    }' $headers)
if [ -n "$guard_faults" ]; then
    echo "$guard_faults"
    failed=1
fi
# Only a target's own folder in plan/targets/ may compare with its name; all other code uses
# its row and its hooks. Comments may mention it, and a runtime of engine/runtimes/ may have the same name.
code_folders='ondemand engine api remote threads judges daemon cli'
targets=$(sed -n '/^TARGETS = /,/[^\\]$/s,^\t*engine/plan/targets/\([a-z0-9_]*\)/\1\.c.*,\1,p' engine/local.mk | sort -u)
[ -n "$targets" ] || { echo "found no targets in engine/local.mk"; failed=1; }
for target in $targets; do
    # shellcheck disable=SC2086 # a list of words
    if grep -rnE --include='*.[ch]' --include='*.cu' --include='*.lua' --include='*.js' \
        "[\"'\`]$target[\"'\`]|qdqi_target_$target\b|QDQ_TARGET_" $code_folders |
        grep -vE "^engine/plan/targets/$target/"'|^engine/runtimes/|encode_backend\('; then
        echo "$target: a target is named outside of its own files"
        failed=1
    fi
done
# No two headers define a struct, an enum or a union of the same name.
# shellcheck disable=SC2086 # a list of words
for tag in $(sed -nE 's/^(struct|enum|union) ([A-Za-z0-9_]+) \{.*/\2/p' $headers | sort | uniq -d); do
    grep -nE "^(struct|enum|union) $tag \{" $headers
    echo "$tag: defined in more than one header"
    failed=1
done
# A source file has fewer than 700 lines, and a folder of the code holds at most 40 files.
# Objects that a build inside the sources leaves there do not count.
# shellcheck disable=SC2086 # a list of words
too_long=$(find $folders clients examples -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' -o -name '*.lua' \
    -o -name '*.py' -o -name '*.sh' -o -path 'tools/*' \) \
    -exec awk 'FNR == 700 { print FILENAME ": has 700 lines or more" }' '{}' +)
too_full=$(find $code_folders -type f ! -path '*/.*' ! -name '*.o' ! -name '*.l[oa]' | sed 's,/[^/]*$,,' | sort | uniq -c |
    awk '$1 > 40 { print $2 ": has " $1 " files" }')
if [ -n "$too_long$too_full" ]; then
    printf '%s\n' "$too_long" "$too_full" | grep .
    failed=1
fi
# The images that the container is built on are named by digest.
awk '/^FROM/ && !/@sha256:|\$\{(BASE|SLIM)\}/ || /^ARG (BASE|SLIM)=/ && !/@sha256:[0-9a-f]+$/ {
         print "Containerfile:" FNR ": an image without a digest"; bad = 1 }
     END { exit bad }' Containerfile || failed=1
exit $failed
