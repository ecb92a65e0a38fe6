#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Brevitas exports activations that are rounded down, up or towards zero as ones that are rounded to the nearest.
#
# Seen with brevitas 0.13.4, torch 2.15.0, onnxruntime 1.31.1.
#
# A quantizer of Brevitas takes a rule of rounding, and a network is trained with it. export_onnx_qcdq writes
# a QuantizeLinear for each, which always rounds to the nearest. There is no error and no warning, and the file runs.
# With rounding down or up all activations are half a step away on average, in one direction, and outputs of the next
# layers move by the sum of its weights times that. Weights that are rounded down did not have this fault.
#
# It takes 6 GB of disk.
#
# Output (the exported model against the module; 8 bits, steps of difference on average):
#
#   ROUND: 200 dB, 0.00 steps
#   FLOOR: 33 dB, 0.50 steps
#   CEIL: 33 dB, -0.50 steps
#   ROUND_TO_ZERO: 33 dB, -0.01 steps
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check brevitas==0.13.4 torch==2.15.0 \
    onnx==1.21.0 onnxscript==0.7.2 onnxoptimizer==0.4.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import io
import sys

import brevitas.nn as layers
import numpy as np
import onnxruntime
import torch
from brevitas.export import export_onnx_qcdq

torch.manual_seed(0)
x = torch.randn(64, 64)
changed = []
for rule in "ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO":
    identity = layers.QuantIdentity(bit_width=8, float_to_int_impl_type=rule)
    module = torch.nn.Sequential(identity)
    module(x)  # an observer of Brevitas finds the scale while training
    module.eval()
    with torch.no_grad():
        real = module(x).numpy()
        scale = float(identity.act_quant.scale())
    with contextlib.redirect_stdout(io.StringIO()):
        export_onnx_qcdq(module, args=x, export_path="made.onnx")
    session = onnxruntime.InferenceSession("made.onnx", providers=["CPUExecutionProvider"])
    error = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0] - real
    power = np.sum(real.astype(np.float64) ** 2)
    figure = 10 * np.log10(power / max(np.sum(error.astype(np.float64) ** 2), power * 1e-20))
    print(f"{rule}: {figure:.0f} dB, {np.mean(error) / scale:.2f} steps")
    if (figure > 100) != (rule == "ROUND"):
        changed.append(rule)
if changed:
    sys.exit(f"changed: {changed}")
EOF
