#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HQQ never makes a step smaller than 1/20000: small weights get the accuracy of fewer bits, or become nothing.
#
# Seen with hqq 0.2.8.post1, torch 2.15.0, CPU.
#
# The step of a group is the distance of its extremes divided by the number of steps, but at least 0.00005, in float32,
# too, whose smallest number is far below. With 8 bits each group whose weights span less than 0.01275 is
# concerned: weights of a deviation of 0.002 lose 2 dB, and those of 0.0005 have the accuracy of 6 bits. For 4 bits
# the same happens a factor of 17 below, and the smallest weights are all zero. Small weights count as much as large
# ones where a normalization or a factor follows, as in adapters. Nothing is said.
#
# It takes 6 GB of disk.
#
# Output (dB of 256 x 1024 normal weights by their deviation, groups of 64 along axis 1, float32):
#
#   8 bits: 1 45.9, 0.002 43.3, 0.0005 31.2, 0.0001 17.3, 1e-05 0.1
#   4 bits: 1 21.3, 0.002 21.3, 0.0005 21.3, 0.0001 17.3, 1e-05 0.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    hqq==0.2.8.post1 torch==2.15.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import torch
from hqq.core.quantize import Quantizer

torch.manual_seed(0)
normal = torch.randn(256, 1024)
found = {}
for bits in 8, 4:
    for deviation in 1, 0.002, 0.0005, 0.0001, 0.00001:
        weights = normal * deviation
        integers, rest = Quantizer.quantize(weights.clone(), nbits=bits, group_size=64, axis=1,
                                            compute_dtype=torch.float32, device="cpu")
        error = Quantizer.dequantize(integers, rest) - weights
        found[bits, deviation] = float(10 * torch.log10(weights.square().sum() / error.square().sum()))
    print(f"{bits} bits: " + ", ".join(f"{k[1]:g} {v:.1f}" for k, v in found.items() if k[0] == bits))
if found[8, 0.0005] > found[8, 1] - 3 or found[4, 0.00001] > found[4, 1] - 3:
    sys.exit("changed: small weights are as accurate as large ones")
EOF
