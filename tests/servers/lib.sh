#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that start servers for the tests. A script without arguments installs
# what it needs; with FOLDER and PORT it becomes the server, on the loopback and with its state
# in FOLDER. It exits with 77 where the server cannot be had.
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"

missing() {
    say "$*"
    exit 77
}

# pinned_venv NAME: makes the Python of pins/NAME.txt, which lies beside the script that calls this, in
# the cache, unless it is there, and sets $venv.
pinned_venv() {
    local pins
    pins=$(dirname "$(realpath "$0")")/pins/$1.txt
    venv=$cache/server-$1
    cmp -s "$pins" "$venv/installed.txt" && return
    say "installing $1"
    need_packages python3 python3-venv || missing "no Python"
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2 || missing "no venv"
    "$venv/bin/python" -m pip install --quiet --no-deps --only-binary=:all: \
        --require-hashes -r "$pins" >&2 || missing "$1 cannot be installed"
    cp "$pins" "$venv/installed.txt"
}
