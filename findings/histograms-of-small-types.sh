#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# numpy counts small floats in the wrong bins of a histogram: nearly all of a float8 array whose range is wide.
#
# Seen with ml_dtypes 0.6.0, numpy 2.4.6, x86-64.
#
# Quantized weights and scales come as arrays of ml_dtypes, and who looks at them asks numpy for a histogram, the range
# or rounded numbers. numpy computes the edges of the bins, and the range, in the type of the array. float8 weights that
# use all that the type offers have a range above its largest number: it is NaN, and of 10000 weights more than 97 % are
# counted in another bin. For 4-bit floats that is 40 %. numpy.round to two decimals makes zero of each 4-bit number,
# also of integers. Nothing is said. The same arrays as float32 are right, and so are histograms of integers.
#
# Output (10000 normal weights, 8 bins):
#
#   float8_e4m3fn, largest 384: 97.7% in another bin; range nan, should be 736; zeros after round(2) 0%, should be 0%
#   float8_e4m3fn, largest 4: 2.9% in another bin; range 7.5, should be 7.5; zeros after round(2) 0%, should be 0%
#   float6_e3m2fn, largest 4: 7.8% in another bin; range 8, should be 7.5; zeros after round(2) 2%, should be 2%
#   float4_e2m1fn, largest 4: 40.1% in another bin; range 6, should be 7; zeros after round(2) 100%, should be 19%
#   int4, largest 8: 0.0% in another bin; range 15, should be 15; zeros after round(2) 100%, should be 19%
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ml_dtypes==0.6.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import ml_dtypes
import numpy as np

normal = np.random.default_rng(0).normal(size=10000)
changed = []
for name, factor, right in (("float8_e4m3fn", 100, False), ("float8_e4m3fn", 1, False), ("float6_e3m2fn", 1, False),
                            ("float4_e2m1fn", 1, False), ("int4", 2, True)):
    values = normal * factor
    if name == "int4":
        values = np.clip(np.rint(values), -8, 7)
    weights = values.astype(name)
    exact = weights.astype(np.float32)
    counts, real = (np.histogram(array, 8)[0] for array in (weights, exact))
    moved = np.abs(counts - real).sum() / 2 / len(exact)
    zeros = (np.round(weights, 2).astype(np.float32) == 0).mean()
    print(f"{name}, largest {np.abs(exact).max():g}: {moved:.1%} in another bin; range {float(np.ptp(weights)):g}, "
          f"should be {np.ptp(exact):g}; zeros after round(2) {zeros:.0%}, should be {(exact == 0).mean():.0%}")
    if (moved < 0.005) != right or (name == "int4" and zeros < 1):
        changed.append(f"{name}, {factor}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
