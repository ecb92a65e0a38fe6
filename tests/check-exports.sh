#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that libqdq.so exports exactly the functions that engine/include declares with
# QDQ_API.
# Runs in the build folder.
set -eu
include=${srcdir:-.}/engine/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo '#include "qdq.h"' | ${CC:-cc} -E -P -I "$include" - | tr '\n' ' ' | tr ';' '\n' |
    grep -F 'visibility("default")' | sed -E 's/.*[ *](qdq_[a-z0-9_]+) *\(.*/\1/' |
    sort >"$work/declared"
nm -D --defined-only engine/.libs/libqdq.so | awk '{ print $3 }' | sort >"$work/exported"

if [ ! -s "$work/declared" ]; then
    echo "found no QDQ_API declaration in $include"
    exit 1
fi
if ! diff -u "$work/declared" "$work/exported"; then
    echo "- declared but not exported, + exported but not declared"
    exit 1
fi
echo "$(wc -l <"$work/exported") symbols"
