#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sums and means of bfloat16, float8 and 4-bit arrays are kept in those types: the mean of ones is not 1.
#
# Seen with ml_dtypes 0.6.0, numpy 2.4.6.
#
# numpy adds what is smaller than its usual types in a larger one: the sum of int8 is int64, and the mean of float16 is
# computed in float32. Types that ml_dtypes adds to it have no such rule. A sum of bfloat16 stands still at 256 and one
# of float8 at 8 or 16, as what is added is rounded away; one of int4 wraps; np.mean divides that. No warning
# is given. numpy.dot gives the type of its arguments, and `@`, which should be the same, int8 and float32.
# So statistics of quantized weights or of bfloat16 activations are wrong where they were right for float16
# and int8. Minimum, maximum and median of floats are right; the median of int4 is an int4.
#
# Output (1000 ones):
#
#   float16: sum 1000, mean 1, dot 1000, @ 1000
#   bfloat16: sum 256, mean 0.255859, dot 1000, @ 1000
#   float8_e4m3fn: sum 16, mean 0.015625, dot nan, @ 1000
#   float8_e5m2: sum 8, mean 0.0078125, dot 1024, @ 1000
#   float4_e2m1fn: sum 4, mean 0, dot 6, @ 1000
#   int8: sum 1000, mean 1, dot -24, @ -24
#   int4: sum -8, mean 0, dot -8, @ -24
#   uint4: sum 8, mean 0, dot 8, @ -24
#   int2: sum 0, mean 0, dot 0, @ -24
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np

changed = []
for name, right in (("float16", True), ("bfloat16", False), ("float8_e4m3fn", False), ("float8_e5m2", False),
                    ("float4_e2m1fn", False), ("int8", True), ("int4", False), ("uint4", False), ("int2", False)):
    ones = np.ones(1000).astype(np.dtype(getattr(ml_dtypes, name, name)))
    mean, total = float(np.mean(ones)), float(np.sum(ones))
    print(f"{name}: sum {total:g}, mean {mean:g}, dot {float(np.dot(ones, ones)):g}, @ {float(ones @ ones):g}")
    if (mean == 1) != right:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
