#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles engine/numbers/cuda/*.cu for the emulator, to a CUDA module whose device is the host. It
# is for tests and not installed. Needs a C++ compiler and nothing from CUDA.
#
#   tests/cuda/emulator/build.sh MODULE.so
here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../..
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: >"$work/config.h"

for file in extremes fake histogram moment sums; do
    kernels="$kernels -x c++ $src/engine/numbers/cuda/$file.cu"
done
# Rounds each operation and fuses none, as nvcc does (engine/numbers/cuda/nvcc.flags).
# shellcheck disable=SC2086 # a list
"${CXX:-g++}" -std=c++20 -O2 -ffp-contract=off -shared -fPIC -w -I"$work" \
    -I"$src/engine" -I"$src/engine/include" -I"$here" $kernels "$here/emulator.cc" \
    -o "$1"
