#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernels' logic, without a GPU: engine/cuda/*.cu compiled by the C++ compiler for an
# emulator (tests/cuda/emulator), under the programs of tests/cuda. What this cannot show
# is what a device does: races, its arithmetic, its speed.
# Runs in the build folder.
src=${srcdir:-.}
compiler=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! command -v "$compiler" >/dev/null; then
    echo "$compiler is not here"
    exit 77
fi
"$src/tests/cuda/emulator/build.sh" "$work/emulated.so" || exit 1

unset CK_TAP_LOG_FILE_NAME
export QDQ_CUDA_MODULE="$work/emulated.so" QDQ_CUDA_REQUIRED=yes QDQ_CUDA_BRIEF=yes
export QDQ_CUDA_EMULATED="$QDQ_CUDA_MODULE"
failed=0
for name in device extremes fake histogram sums place; do
    tests/cuda/test_$name || failed=1
done
QDQ_CUDA_EMULATED_FAULTS=$QDQ_CUDA_MODULE tests/fault/test_whatif_memory || failed=1
exit $failed
