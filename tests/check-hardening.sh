#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the programs and the library are hardened: position independent, bound and
# read-only before main(), with stack protectors and checked calls of the C library, and on
# x86 with landing pads for indirect branches. Runs in the build folder.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# want FILE WHAT PATTERN LISTING: the listing has a line of the pattern.
want() {
    grep -qE "$3" "$4" || { echo "$1: no $2"; failed=1; }
}

if [ -z "${HARDEN_CFLAGS:-}" ]; then
    echo "this build is not hardened: it has sanitizers"
    exit 77
fi
for file in daemon/qdqd cli/.libs/qdq engine/.libs/libqdq.so; do
    readelf -hW "$file" >"$work/head"
    readelf -lW "$file" >"$work/segments"
    readelf -dW "$file" >"$work/dynamic"
    readelf --dyn-syms -W "$file" >"$work/symbols"
    want "$file" "position independence (PIE)" 'Type: +DYN' "$work/head"
    want "$file" "read-only relocations (RELRO)" 'GNU_RELRO' "$work/segments"
    want "$file" "immediate binding (BIND_NOW)" 'BIND_NOW|FLAGS_1.* NOW' "$work/dynamic"
    want "$file" "stack protector" '__stack_chk_fail' "$work/symbols"
    want "$file" "checked call of the C library (FORTIFY)" '__[a-z]+_chk' "$work/symbols"
    want "$file" "stack that is not executable" 'GNU_STACK.* RW ' "$work/segments"
    if [ "$(uname -m)" = x86_64 ]; then
        objdump -d --no-show-raw-insn "$file" >"$work/code"
        # The start files of the C library have a few of their own.
        if [ "$(grep -c endbr64 "$work/code")" -lt 20 ]; then
            echo "$file: no landing pads for indirect branches (CET)"
            failed=1
        fi
    fi
done
exit $failed
