#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An AveragePool that counts its padding takes the lowest stored integer for the zeros around its input.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# With count_include_pad = 1 the zeros of the padding are part of the mean at the edges. OpenVINO takes a
# pair in front into the pool and pads the stored integers with 0, which means -zero point * scale: the lowest
# number of uint8, and another one of int8. The inside of the result is right and its edges are off by up to
# half of the largest number. With zero point 0 or without the attribute all is right.
#
# Output (largest difference from the literal numbers, noise of -3 to 3, pads of 1):
#
#   uint8, zero point 128, counted: edges 1.67, inside 0.00
#   int8, zero point -40, counted: edges 0.52, inside 0.00
#   int8, zero point 0, counted: edges 0.00, inside 0.00
#   uint8, zero point 128, not counted: edges 0.00, inside 0.00
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

X = np.clip(np.random.default_rng(0).normal(size=(1, 4, 16, 16)), -3, 3).astype(np.float32)


def compare(zero_point, counts):
    """Returns the largest difference at the edges and inside."""
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
         node("AveragePool", ["d"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
              count_include_pad=counts)],
        "g", [value("x", 1, X.shape)], [value("y", 1, X.shape)],
        [numpy_helper.from_array(np.float32(6 / 255), "s"), numpy_helper.from_array(zero_point, "z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model, full_check=True)
    text = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    real = onnxruntime.InferenceSession(text, options).run(None, {"x": X})[0]
    core = openvino.Core()
    made = core.compile_model(core.read_model(text), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]
    off = np.abs(real - made)
    inside = off[:, :, 1:-1, 1:-1].max()
    off[:, :, 1:-1, 1:-1] = 0
    return off.max(), inside


changed = []
for zero_point, counts in ((np.uint8(128), 1), (np.int8(-40), 1), (np.int8(0), 1), (np.uint8(128), 0)):
    edges, inside = compare(np.asarray(zero_point), counts)
    print(f"{zero_point.dtype}, zero point {zero_point}, {'' if counts else 'not '}counted: "
          f"edges {edges:.2f}, inside {inside:.2f}")
    if (edges > 0.3) != bool(counts and zero_point) or inside > 0.05:
        changed.append((str(zero_point), counts))
if changed:
    sys.exit(f"changed: {changed}")
EOF
