#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 4-bit layers of bitsandbytes lose up to 9 dB on a CPU where a row is no whole number of blocks, as 96 inputs.
#
# Seen with bitsandbytes 0.50.2, torch 2.15.0, CPU with AVX-512.
#
# quantize_4bit cuts a weight into blocks of 64 without regard to rows, so that a block may end in the next row. The
# stored numbers are right: unpacked by hand, with one scale for each 64 numbers in a row, such weights are as good as
# others. The layer, which has its weight from the CPU kernel of dequantize_4bit, computes with other numbers. 64 is
# the default, so layers of 32, 48, 96, 160 or 4304 inputs are concerned, and with larger blocks more sizes: 768 inputs
# with blocks of 512. Nothing is said.
#
# It takes 6 GB of disk.
#
# Output (dB of a layer of 64 outputs against float; by hand: the same integers and scales):
#
#   128 inputs, blocks of 64: nf4 20.7, by hand 20.7; fp4 18.3, by hand 18.3
#   96 inputs, blocks of 64: nf4 12.1, by hand 20.8; fp4 11.6, by hand 18.4
#   160 inputs, blocks of 64: nf4 12.3, by hand 20.8; fp4 11.8, by hand 18.3
#   4304 inputs, blocks of 64: nf4 12.3, by hand 20.7; fp4 11.8, by hand 18.2
#   768 inputs, blocks of 256: nf4 20.2, by hand 20.2; fp4 17.5, by hand 17.5
#   768 inputs, blocks of 512: nf4 14.8, by hand 20.1; fp4 13.7, by hand 17.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    bitsandbytes==0.50.2 torch==2.15.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import bitsandbytes
import torch

if torch.backends.cpu.get_cpu_capability() != "AVX512":
    print("This processor has no AVX-512.")
    sys.exit()
torch.manual_seed(0)


def decibels(real, made):
    return float(10 * torch.log10(real.square().sum() / (made - real).square().sum()))


def by_hand(packed, state, shape):
    """Returns the weight that integers and scales stand for."""
    pairs = packed.flatten().long()
    integers = torch.stack((pairs >> 4, pairs & 15), dim=1).flatten()
    scales = state.absmax.repeat_interleave(state.blocksize)
    return (state.code[integers] * scales[:len(integers)]).reshape(shape)


changed = []
for inputs, block, right in ((128, 64, True), (96, 64, False), (160, 64, False), (4304, 64, False),
                             (768, 256, True), (768, 512, False)):
    weight, x, said = torch.randn(64, inputs), torch.randn(256, inputs), []
    real = x @ weight.T
    for kind in "nf4", "fp4":
        layer = bitsandbytes.nn.Linear4bit(inputs, 64, bias=False, quant_type=kind, compress_statistics=False)
        layer.weight = bitsandbytes.nn.Params4bit(weight, requires_grad=False, quant_type=kind, blocksize=block,
                                                  compress_statistics=False)
        layer.to("cpu")
        made = decibels(real, layer(x))
        hand = decibels(real, x @ by_hand(layer.weight.data, layer.weight.quant_state, weight.shape).T)
        said.append(f"{kind} {made:.1f}, by hand {hand:.1f}")
        if (made > hand - 1) != right or hand < 15:
            changed.append(f"{inputs}, {block}, {kind}")
    print(f"{inputs} inputs, blocks of {block}: {'; '.join(said)}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
