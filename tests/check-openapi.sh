#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that api/openapi.yaml agrees with the tables: the routes, the error codes, the
# members of the spec, the range methods, the number formats, the stages, the states, and
# the version.
src=${srcdir:-.}
document=$src/api/openapi.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# same WHAT: compares the table's list with the document's, both sorted.
same() {
    if [ ! -s "$work/table" ] || ! diff "$work/table" "$work/document"; then
        echo "$1: < stands in the table alone, > in the document alone"
        failed=1
    fi
}

# enum_of SCHEMA: the values of a schema's enum, as a block or in brackets.
enum_of() {
    awk -v name="    $1:" '
        $0 == name { here = 1; next }
        here && /^    [A-Za-z]/ { exit }
        here && /^ *enum: \[/ { gsub(/.*\[|\].*|,/, " "); for (i = 1; i <= NF; i++) print $i }
        here && /^ *- / { print $2 }' "$document" | sort
}

# values_of MEMBER VALUE: the enum in brackets of the member whose enum has that value.
values_of() {
    grep -A 6 "^ *$1:" "$document" | sed -n "/\\b$2\\b/s/.*enum: \\[\\(.*\\)\\].*/\\1/p" |
        tr -d ' ' | tr ',' '\n' | sort
}

# strings_of MACRO FILE N: the Nth quoted string of each row of a table.
strings_of() {
    grep -vE '^[ /]\*' "$2" | tr '\n' ' ' | grep -oE "\b$1\([A-Z_0-9]+, ?[^)]*" |
        awk -F '"' -v n="$3" '{ print $(2 * n) }' | sort
}

awk -F '"' '/^ROUTE\(/ { print $2, $4 }' "$src/api/include/api/routes.h" |
    sort >"$work/table"
awk '/^paths:/ { here = 1; next } /^[a-z]/ { here = 0 }
    here && /^  \// { sub(/:$/, "", $1); path = $1 }
    here && /^    (get|post|put|delete|patch):$/ {
        sub(/:/, "", $1); print toupper($1), path }' "$document" |
    sort >"$work/document"
same routes

{
    strings_of QDQ_CODE "$src/engine/include/qdq/codes.h" 1
    strings_of PROBLEM "$src/api/include/api/problems.h" 1
} | sort >"$work/table"
enum_of Code >"$work/document"
same 'error codes'

strings_of QDQ_STAGE "$src/engine/include/qdq/stages.h" 1 >"$work/table"
enum_of Stage >"$work/document"
same stages

# The named targets are also the files of a list, and are listed in docs/reference/spec.md.
sed -n '/^TARGETS = /,/[^\\]$/p' "$src/engine/local.mk" |
    sed -n 's|.*/\([a-z0-9_]*\)\.c.*|\1|p' | sort >"$work/table"
values_of target tensorrt >"$work/document"
same targets
sed -n 's/^| `target` | \([^|]*\) |.*/\1/p' "$src/docs/reference/spec.md" | grep -o '`[a-z0-9_]*`' |
    tr -d '`' | sort >"$work/document"
same 'targets in docs/reference/spec.md'

# The named methods are also the files of a list, and have rows in docs/reference/number-formats.md.
sed -n '/^RANGE_METHODS = /,/[^\\]$/p' "$src/engine/local.mk" |
    sed -n 's|.*/\([a-z0-9_]*\)\.c.*|\1|p' | sort >"$work/table"
values_of method entropy >"$work/document"
same 'range methods'
sed -n '/^| method | the range |/,/^$/s/^| `\([a-z0-9_]*\)`.*/\1/p' "$src/docs/reference/number-formats.md" |
    sort >"$work/document"
same 'range methods in docs/reference/number-formats.md'

# formats_for USE: the formats whose rows in the table allow this use.
formats_for() {
    grep -E "^QDQ_([A-Z]+_)?FORMAT\(.*(QDQ_FOR_$1|QDQ_FOR_BOTH)[,)]" "$src/engine/include/qdq/formats.h" |
        cut -d '"' -f 2 | sort
}

formats_for WEIGHTS >"$work/table"
# The entries of layers have the same formats, and float32.
values_of dtype float4e2m1 | grep -vx float32 | sort -u >"$work/document"
same 'formats of weights'
sed -n '/^| dtype | scale |/,/^$/s/^| `\([a-z0-9]*\)`.*/\1/p' "$src/docs/reference/number-formats.md" |
    sort >"$work/document"
same 'formats of weights in docs/reference/number-formats.md'
formats_for ACTIVATIONS >"$work/table"
values_of dtype uint16 | grep -vx float32 | sort -u >"$work/document"
same 'formats of activations'

sed -n '/state_names\[API/,/};/p' "$src/api/documents/job.c" | grep -oE '"[a-z]+"' | tr -d '"' |
    sort >"$work/table"
enum_of JobState >"$work/document"
same 'states of a job'

# members_of FILE: the members in the table of FILE, without those that this version refuses.
members_of() {
    sed -n '/struct member members\[\]/,/^};/p' "$src/api/spec/$1" | tr '\n' ' ' |
        sed 's/}, */},\n/g' | grep -vE 'decode_count, NULL, NO_FIELD' |
        grep -oE '"/[a-z0-9_/]+"' | tr -d '"' | sort
}

# properties_of SCHEMA COLUMN: its members that begin at a column.
properties_of() {
    awk -v name="    $1:" -v column="^$(printf "%$2s" '')[a-z_0-9]+:" '
        $0 == name { here = 1; next }
        here && /^    [A-Za-z#]/ { exit }
        here && $0 ~ column { sub(/:.*/, "", $1); print "/" $1 }' "$document" | sort
}

# formats_of MACRO GROUP: the members that the rows of a macro of formats.c give a group.
formats_of() {
    sed -n "/^#define $1(/,/[^\\\\]\$/p" "$src/api/spec/formats.c" | grep -oE '[{]"/[a-z_]+"' |
        sed "s|{\"\(.*\)\"|/$2\1|"
}

{
    members_of members.c
    formats_of WEIGHTS weights
    formats_of ACTIVATIONS activations
} | sort >"$work/table"
# Members begin at column 8, those of groups at 12, those of values that may be objects at 16, and
# within a group at 20.
awk '/^    Spec:/ { here = 1; next } here && /^    [A-Za-z#]/ { exit }
    here && /^        [a-z_0-9]+:/ { sub(/:.*/, "", $1); group = $1; print "/" group }
    here && (/^            [a-z_0-9]+:/ ||
        ((group == "evaluate" || group == "activations" || group == "smooth" || group == "recipe" || group == "frontier") && /^                [a-z_0-9]+:/)) {
        sub(/:.*/, "", $1); member = $1; print "/" group "/" $1 }
    here && group == "output" && /^                    [a-z_]+:/ {
        sub(/:.*/, "", $1); print "/" group "/" member "/" $1 }' "$document" | sort >"$work/document"
same 'members of the spec'

for row in accept.c:Gate:8 layers.c:LayerEntry:8 cases.c:CaseUse:12 support.c:LayerSupport:8; do
    schema=${row#*:}
    members_of "${row%%:*}" >"$work/table"
    properties_of "${schema%:*}" "${schema#*:}" >"$work/document"
    same "members of ${schema%:*}"
done

sed -n 's/^AC_INIT(\[qdqd\], \[\(.*\)\])/\1/p' "$src/configure.ac" >"$work/table"
awk '/^info:/ { here = 1 } here && $1 == "version:" { print $2; exit }' "$document" \
    >"$work/document"
same version
exit $failed
