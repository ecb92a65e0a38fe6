#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the kernels' logic without a GPU: the C++ compiler compiles engine/numbers/cuda/*.cu for an
# emulator (tests/cuda/emulator), and the programs of tests/cuda run with that. It cannot
# show the properties of a device: races, its arithmetic, its speed.
# Runs in the build folder.
module=$PWD/tests/cuda/emulated.so
if [ ! -f "$module" ]; then
    echo "$module was not built: there is no C++ compiler"
    exit 77
fi
unset CK_TAP_LOG_FILE_NAME
export QDQ_CUDA_MODULE="$module" QDQ_CUDA_REQUIRED=yes QDQ_CUDA_BRIEF=yes
export QDQ_CUDA_EMULATED="$module"
failed=0
for name in device extremes fake histogram moment sums device_memory staging; do
    tests/cuda/test_$name || failed=1
done
# The emulator is slow, so only every fifth allocation fails; tools/check --release fails all.
QDQ_FAULT_STRIDE=${QDQ_FAULT_STRIDE:-5} QDQ_CUDA_EMULATED_FAULTS=$QDQ_CUDA_MODULE \
    tests/fault/test_whatif_memory || failed=1
exit $failed
