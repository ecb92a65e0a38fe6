#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# House rules that grep can check: each file names its licence, and no file calls a function
# that has a safer form (unbounded or locale-dependent text, hidden state, the shell).
cd "${srcdir:-.}" || exit 1
failed=0

rooms=
for room in engine api daemon cli tests bench tools etc systemd; do
    [ -d "$room" ] && rooms="$rooms $room"
done
# shellcheck disable=SC2086 # a list of words
sources=$(find $rooms -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' \
    -o -name '*.py' -o -path 'tools/*' \) ! -name '*.pyc')

for file in $sources configure.ac Makefile.am; do
    if ! head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0'; then
        echo "$file: no SPDX line"
        failed=1
    fi
done

banned='strcpy|stpcpy|strcat|strncpy|strncat|sprintf|vsprintf|gets|strtok'
banned="$banned|atoi|atol|atoll|atof|rand|srand|random|localtime|gmtime|ctime|asctime"
banned="$banned|alloca|system|popen|setlocale|tmpnam|mktemp|signal"
for file in $sources; do
    case $file in
    *.c | *.h | *.cu)
        if grep -nHE "(^|[^A-Za-z0-9_>.\"])($banned)[[:space:]]*\(" "$file"; then
            echo "$file: banned function"
            failed=1
        fi
        ;;
    esac
done

# A mutex of the daemon has a rank, and its promises are checked.
if grep -rnE 'pthread_mutex|pthread_rwlock|pthread_cond_(timed)?wait' --include='*.[ch]' daemon |
    grep -v '^daemon/base/lock\.[ch]:'; then
    echo 'daemon/: its locks are those of base/lock.h'
    failed=1
fi

# An include guard is the header's path, so that no two are the same: a file that includes
# two headers with one guard silently loses the second. Tables of rows have none.
guard_of() {
    case $1 in
    engine/include/*) path=${1#engine/include/} ;;
    engine/*) path=qdqi/${1#engine/} ;;
    api/include/*) path=${1#api/include/} ;;
    daemon/*) path=qdqd/${1#daemon/} ;;
    *) path=$1 ;;
    esac
    echo "$path" | tr 'a-z/.' 'A-Z__'
}
headers=$(echo "$sources" | tr ' ' '\n' | grep '\.h$')
for guard in $(for file in $headers; do guard_of "$file"; done | sort | uniq -d); do
    echo "$guard: the guard of two headers whose paths differ in punctuation alone"
    failed=1
done
for file in $headers; do
    guard=$(sed -n 's/^#ifndef \(.*_H\)$/\1/p' "$file" | head -n 1)
    if [ -n "$guard" ] && [ "$guard" != "$(guard_of "$file")" ]; then
        echo "$file: its include guard is $guard and not $(guard_of "$file")"
        failed=1
    fi
done
# Only a target's own files in plan/targets/ may compare with its name; all other code uses
# its row and its hooks. Comments may mention it.
targets=$(sed -n 's,^\t*engine/plan/targets/\([a-z0-9_]*\)\.c.*,\1,p' engine/local.mk | sort -u)
[ -n "$targets" ] || { echo "found no targets in engine/local.mk"; failed=1; }
for target in $targets; do
    if grep -rnE --include='*.[ch]' "\"$target\"|qdqi_target_$target\b|QDQ_TARGET_" engine api daemon cli |
        grep -vE '^engine/plan/targets/|encode_backend\('; then
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
# A source file has fewer than 700 lines, and a folder of the rooms holds at most 40 files.
# Objects that a build inside the sources leaves there do not count.
# shellcheck disable=SC2086 # a list of words
too_long=$(find $rooms -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' -o -name '*.lua' \
    -o -name '*.py' -o -name '*.sh' -o -path 'tools/*' \) \
    -exec awk 'FNR == 700 { print FILENAME ": has 700 lines or more" }' '{}' +)
too_full=$(find engine api daemon cli -type f ! -path '*/.*' ! -name '*.o' ! -name '*.l[oa]' | sed 's,/[^/]*$,,' | sort | uniq -c |
    awk '$1 > 40 { print $2 ": has " $1 " files" }')
if [ -n "$too_long$too_full" ]; then
    printf '%s\n' "$too_long" "$too_full" | grep .
    failed=1
fi
exit $failed
