#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# MLX's layers of nvfp4 have no scale for the tensor: weights of 0.002 become zero, and those of 0.005 lose 3 dB.
#
# Seen with mlx and mlx-cpu 0.32.4, x86-64.
#
# nvfp4 has two scales: one of float8 for 16 weights, and one of float32 for the tensor, which keeps the first inside
# of the range of float8. mlx.core.quantize takes the second one as an option. QuantizedLinear and nn.quantize, which
# make the layers of a model, do not pass it, and quantized_matmul, which runs them, has no such argument. The scales
# of 16 weights are a sixth of the largest of them, and below 1/1024 they are rounded to zero: layers whose weights
# have a deviation of 0.001 give zeros. A layer of 4096 inputs as MLX initializes it, whose weights have a deviation
# of 0.009, is 17 dB from its float form, where mxfp4 gives 20 and integers of 4 bits 23. Nothing is said.
#
# Output (dB of a layer of 512 inputs by the deviation of its weights; share of weights that are zero):
#
#   0.05: nvfp4 20.4, 0.07; mxfp4 18.8, 0.12; affine 20.7, 0.12; nvfp4 with the scale of the tensor 20.4
#   0.005: nvfp4 17.3, 0.09; mxfp4 18.4, 0.11; affine 20.8, 0.12; nvfp4 with the scale of the tensor 20.5
#   0.002: nvfp4 0.5, 0.95; mxfp4 18.8, 0.11; affine 20.9, 0.12; nvfp4 with the scale of the tensor 20.4
#   0.001: nvfp4 0.0, 1.00; mxfp4 18.8, 0.11; affine 20.6, 0.12; nvfp4 with the scale of the tensor 20.4
#   4096 inputs as initialized: nvfp4 16.8, mxfp4 20.1, affine 23.5
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
import mlx.nn as nn
import numpy as np

rng = np.random.default_rng(0)


def plain(array):
    return np.array(array.astype(mx.float32)).astype(np.float64)


def decibels(real, made):
    return 10 * np.log10(np.sum(real ** 2) / np.sum((made - real) ** 2))


def run(layer, mode, x):
    """Returns the dB of a layer's quantized form, and how many of its weights are zero."""
    made = nn.QuantizedLinear.from_linear(layer, mode=mode)
    parts = [made.weight, made.scales] + ([made.biases] if mode == "affine" else [])
    weights = plain(mx.dequantize(*parts, group_size=made.group_size, bits=made.bits, mode=mode))
    return decibels(plain(layer(x)), plain(made(x))), (weights == 0).mean()


found = {}
x = mx.array(rng.normal(size=(64, 512)).astype(np.float32))
for deviation in 0.05, 0.005, 0.002, 0.001:
    layer = nn.Linear(512, 64, bias=False)
    layer.weight = mx.array((rng.normal(size=(64, 512)) * deviation).astype(np.float32))
    figures = {mode: run(layer, mode, x) for mode in ("nvfp4", "mxfp4", "affine")}
    scale = mx.abs(layer.weight).max()
    parts = mx.quantize(layer.weight, mode="nvfp4", global_scale=scale)
    whole = decibels(plain(layer.weight), plain(mx.dequantize(*parts, mode="nvfp4", global_scale=scale)))
    print(f"{deviation}: " + "; ".join(f"{mode} {db:.1f}, {zeros:.2f}" for mode, (db, zeros) in figures.items()) +
          f"; nvfp4 with the scale of the tensor {whole:.1f}")
    found[deviation] = figures["nvfp4"][0], min(whole, figures["affine"][0], figures["mxfp4"][0])
mx.random.seed(0)
layer = nn.Linear(4096, 64, bias=False)
x = mx.array(rng.normal(size=(64, 4096)).astype(np.float32))
usual = {mode: run(layer, mode, x)[0] for mode in ("nvfp4", "mxfp4", "affine")}
print("4096 inputs as initialized: " + ", ".join(f"{mode} {db:.1f}" for mode, db in usual.items()))
if found[0.05][0] < 15 or found[0.001][0] > 3 or found[0.001][1] < 15 or usual["nvfp4"] > usual["mxfp4"] - 1:
    sys.exit(f"changed: {found}, {usual}")
EOF
