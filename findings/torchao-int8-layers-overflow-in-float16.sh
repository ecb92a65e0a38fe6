#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A float16 layer of int8 by torchao gives infinity where its outputs are below 100.
#
# Seen with torchao 0.18.0, torch 2.15.0, CPU.
#
# Int8DynamicActivationInt8WeightConfig multiplies integers, and scales their sums twice: by the scale of the
# activations and by that of the weights. The first product is stored in the type of the model. In float16 it ends at
# 65504, where a sum of 650000 at a scale of 0.1 lies already. The second factor, of about 0.0005, makes infinity of
# infinity. Activations of one sign, as behind a Relu, reach it, and so does one large activation of many, as
# language models have. With zero points the correction is infinite as well, and the difference of both is NaN.
# Int8WeightOnlyConfig multiplies by integers, and has the same fault. Nothing is said. bfloat16 and
# float32 are right, and so is the float16 layer before.
#
# It takes 6 GB of disk.
#
# Output (a Linear of 1024 to 64 channels; dB against float, largest output of the float layer):
#
#   normal, float16: 39 dB, largest output 2
#   one activation of 800, float16: 2 % infinite, largest output 47
#   Relu, float16: 61 % infinite, largest output 56
#   Relu, float16, zero points: 100 % NaN, largest output 56
#   Relu, float16, weights alone: 61 % infinite, largest output 56
#   Relu, float16, the float layer: 73 dB, largest output 56
#   Relu, bfloat16: 51 dB, largest output 56
#   Relu, float32: 58 dB, largest output 56
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    torch==2.15.0 torchao==0.18.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import torch
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_
from torchao.quantization.quant_primitives import MappingType

torch.manual_seed(0)
both, alone = Int8DynamicActivationInt8WeightConfig(), Int8WeightOnlyConfig()
zeros = Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC)
normal, relu = torch.randn(16, 1024), torch.randn(16, 1024).relu() * 10
large = torch.randn(16, 1024)
large[:, 7] = 800
balanced = torch.randn(64, 1024) * 0.02
changed = []
for text, x, shift, kind, config, right in (
        ("normal, float16", normal, 0, torch.float16, both, True),
        ("one activation of 800, float16", large, 0, torch.float16, both, False),
        ("Relu, float16", relu, 0.01, torch.float16, both, False),
        ("Relu, float16, zero points", relu, 0.01, torch.float16, zeros, False),
        ("Relu, float16, weights alone", relu, 0.01, torch.float16, alone, False),
        ("Relu, float16, the float layer", relu, 0.01, torch.float16, None, True),
        ("Relu, bfloat16", relu, 0.01, torch.bfloat16, both, True),
        ("Relu, float32", relu, 0.01, torch.float32, both, True)):
    layer = torch.nn.Linear(1024, 64, bias=False).to(kind)
    layer.weight.data = (balanced + shift).to(kind)
    real = x.double() @ layer.weight.data.double().T
    module = torch.nn.Sequential(layer)
    if config is not None:
        quantize_(module, config)
    made = module(x.to(kind)).double()
    if made.isnan().any():
        said = f"{made.isnan().double().mean() * 100:.0f} % NaN"
    elif made.isinf().any():
        said = f"{made.isinf().double().mean() * 100:.0f} % infinite"
    else:
        said = f"{10 * torch.log10(real.square().sum() / (made - real).square().sum()):.0f} dB"
    print(f"{text}: {said}, largest output {real.abs().max():.0f}")
    if ("dB" in said) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
