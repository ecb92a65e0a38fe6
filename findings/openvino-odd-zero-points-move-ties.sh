#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Numbers halfway between two steps are rounded the other way where the zero point is odd.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# QuantizeLinear rounds x / scale to the nearest integer, a tie to the even one, and adds the zero point
# behind that. OpenVINO makes a FakeQuantize of a pair, whose range carries the zero point, and so rounds
# the sum. An odd zero point turns each tie around: 0.5 becomes 1 and 1.5 becomes 1, for 0 and 2.
# Ties are rare among float activations, but not where integers meet a scale of 2 or 0.5: pixels, levels
# of a sensor, the output of a layer in integers. There half of the numbers are one step off with one
# zero point and none with its neighbour.
#
# Output (share of the pixels 0 to 255 that differ from the literal numbers; scale 2, uint8):
#
#   zero point 0: onnxruntime 0 %, OpenVINO 0 %
#   zero point 1: onnxruntime 0 %, OpenVINO 50 %
#   zero point 2: onnxruntime 0 %, OpenVINO 0 %
#   zero point 117: onnxruntime 0 %, OpenVINO 50 %
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnxruntime
import openvino
from onnx import checker, helper, numpy_helper

PIXELS = np.arange(256, dtype=np.float32).reshape(1, 1, 16, 16)
SCALE = np.float32(2)


def make_model(zero_point):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
         node("DequantizeLinear", ["q", "s", "z"], ["y"])],
        "g", [value("x", 1, PIXELS.shape)], [value("y", 1, PIXELS.shape)],
        [numpy_helper.from_array(SCALE, "s"), numpy_helper.from_array(np.uint8(zero_point), "z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    checker.check_model(model, full_check=True)
    return model


def run_all(model):
    text = model.SerializeToString()
    core = openvino.Core()
    return [onnxruntime.InferenceSession(text).run(None, {"x": PIXELS})[0],
            core.compile_model(core.read_model(text), "CPU",
                               {"INFERENCE_PRECISION_HINT": "f32"})([PIXELS])[0]]


changed = []
for zero_point in 0, 1, 2, 117:
    real = (np.clip(np.rint(PIXELS / SCALE) + zero_point, 0, 255) - zero_point) * SCALE
    shares = [round(float((made != real).mean() * 100)) for made in run_all(make_model(zero_point))]
    print(f"zero point {zero_point}: onnxruntime {shares[0]} %, OpenVINO {shares[1]} %")
    if shares[0] or (shares[1] > 40) != zero_point % 2:
        changed.append(zero_point)
if changed:
    sys.exit(f"changed: zero points {changed}")
EOF
