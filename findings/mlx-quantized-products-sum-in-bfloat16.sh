#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# MLX's quantized products in bfloat16 lose accuracy with each input, on a CPU: 8 bits become little better than 4.
#
# Seen with mlx and mlx-cpu 0.32.4, x86-64.
#
# mlx.core.quantized_matmul is what a quantized linear layer of MLX runs, and bfloat16 is the type of most of its
# models. On a CPU its error grows with the length of a row, as that of a sum which is rounded to 8 significant bits at
# each addition does. With 4096 inputs the products are 22 dB from those of the very same weights, so that 8 bits are
# 23 dB from the layer before, and 41 by way of mx.dequantize and a plain product, whose error is the same for each
# length. 4 bits lose 2 dB. Weights of the mode mxfp8 lose less, and float32 nothing. Nothing is said.
#
# Output (dB against the exact product of the same dequantized weights, x and scales in bfloat16):
#
#   256 inputs: 8 bits 35, dequantized 55, 4 bits 35, mxfp8 42, float32 131
#   4096 inputs: 8 bits 22, dequantized 56, 4 bits 23, mxfp8 36, float32 119
#   16384 inputs: 8 bits 17, dequantized 56, 4 bits 17, mxfp8 31, float32 112
#   against the weights before: 8 bits 23 and dequantized 41, 4 bits 19 and dequantized 21
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    "mlx[cpu]==0.32.4" numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import mlx.core as mx
import numpy as np

rng = np.random.default_rng(0)


def plain(array):
    return np.array(array.astype(mx.float32)).astype(np.float64)


def decibels(real, made):
    return 10 * np.log10(np.sum(real ** 2) / np.sum((made - real) ** 2))


def make(inputs, kind):
    """Returns an input and a weight."""
    return (mx.array(rng.normal(size=(8, inputs)).astype(np.float32)).astype(kind),
            mx.array((rng.normal(size=(64, inputs)) / np.sqrt(inputs)).astype(np.float32)).astype(kind))


def products(x, weight, options):
    """Returns the exact product, that of the quantized weight, and that of the dequantized one."""
    parts = mx.quantize(weight, **options)
    back = mx.dequantize(*parts, **options).astype(x.dtype)
    return plain(x) @ plain(back).T, plain(mx.quantized_matmul(x, *parts, **options)), plain(x @ back.T)


changed = []
for inputs in 256, 4096, 16384:
    x, weight = make(inputs, mx.bfloat16)
    found = {}
    for name, options in ("8 bits", {"bits": 8}), ("4 bits", {"bits": 4}), ("mxfp8", {"mode": "mxfp8"}):
        real, made, dequantized = products(x, weight, options)
        found[name] = decibels(real, made)
        found["dequantized"] = decibels(real, dequantized)
    real, made, _ = products(*make(inputs, mx.float32), {"bits": 8})
    found["float32"] = decibels(real, made)
    print(f"{inputs} inputs: " + ", ".join(f"{name} {figure:.0f}" for name, figure in found.items()))
    if found["8 bits"] > found["dequantized"] - 15 or found["float32"] < 90:
        changed.append(f"{inputs} inputs")
x, weight = make(4096, mx.bfloat16)
real, said = plain(x) @ plain(weight).T, {}
for bits in 8, 4:
    _, made, dequantized = products(x, weight, {"bits": bits})
    said[bits] = decibels(real, made), decibels(real, dequantized)
print("against the weights before: " + ", ".join(
    f"{bits} bits {figures[0]:.0f} and dequantized {figures[1]:.0f}" for bits, figures in said.items()))
if said[8][0] > said[8][1] - 10:
    changed.append("the whole layer")
if changed:
    sys.exit(f"changed: {changed}")
EOF
