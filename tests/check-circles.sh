#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that calls between files go one way: no file uses functions or tables of a file that uses
# its own, directly or by way of others. It reads the symbols of the objects that the build made, and
# runs in the build's folder. tsort names the files of each loop.
objects=$(find . -name '*.o' ! -path './tests/*' ! -path './bench/*')
[ "$objects" ] || {
    echo "there are no objects here: run it in the build's folder"
    exit 1
}

# shellcheck disable=SC2086 # a list
nm -A -P $objects 2>/dev/null | awk '
{
    file = $1
    sub(/:$/, "", file)
    sub(/\.libs\//, "", file)
    sub(/^\.\//, "", file)
    if ($3 == "U")
        wants[file, $2] = 1
    else if ($3 ~ /^[TDBRCVW]$/)
        home[$2] = file
}
END {
    for (want in wants) {
        split(want, part, SUBSEP)
        if (part[2] in home && home[part[2]] != part[1])
            print part[1], home[part[2]]
    }
}' | sort -u | tsort >/dev/null
