#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO takes the uint8 weights of a ConvTranspose for int8.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# Behind a quantized activation OpenVINO has integer kernels for int8 weights alone. uint8 weights of a
# Conv are computed in floating point there, which is right and slow. Those of a ConvTranspose go to the
# integer kernel all the same, which reads their bytes as int8: each weight below the zero point of 128
# counts 256 steps too many, so that none is below zero. There is no message. The same weights less 128,
# as int8, are right, and so are the uint8 weights without a pair in front.
#
# Output (dB against the literal arithmetic):
#
#   Conv, int8: exact
#   Conv, uint8: exact
#   ConvTranspose, int8: exact
#   ConvTranspose, uint8: -24
#   ConvTranspose, uint8, no pair on the activation: exact
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
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)
node, value = helper.make_node, helper.make_tensor_value_info
X = rng.uniform(0, 1, (1, 8, 8, 8)).astype(np.float32)
# Up to 63: products by uint8 fit the 16-bit sums of processors without VNNI.
WEIGHT = rng.integers(-63, 64, (8, 8, 4, 4))


def sqnr_db(kind, zero, has_pair=True):
    dtype = np.uint8 if zero else np.int8
    constants = {"s": np.float32(1 / 255), "z": np.uint8(0), "ws": np.full(8, 0.002, np.float32),
                 "w": (WEIGHT + zero).astype(dtype), "wz": np.full(8, zero, dtype)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["d"])] if has_pair else []
    nodes += [node("DequantizeLinear", ["w", "ws", "wz"], ["wd"],
                   axis=0 if kind == "Conv" else 1),
              node(kind, ["d" if has_pair else "x", "wd"], ["y"], strides=[2, 2])]
    used = {name for one in nodes for name in one.input}
    graph = helper.make_graph(nodes, "g", [value("x", 1, X.shape)], [value("y", 1, None)],
                              [numpy_helper.from_array(np.asarray(a), k)
                               for k, a in constants.items() if k in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    real = onnxruntime.InferenceSession(model, options).run(None, {"x": X})[0]
    core = openvino.Core()
    made = core.compile_model(core.read_model(model), "CPU",
                              {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]
    return 10 * np.log10((real ** 2).sum() / max(((real - made) ** 2).sum(), 1e-30))


changed = []
for name, db, wrong in (
        ("Conv, int8", sqnr_db("Conv", 0), False),
        ("Conv, uint8", sqnr_db("Conv", 128), False),
        ("ConvTranspose, int8", sqnr_db("ConvTranspose", 0), False),
        ("ConvTranspose, uint8", sqnr_db("ConvTranspose", 128), True),
        ("ConvTranspose, uint8, no pair on the activation",
         sqnr_db("ConvTranspose", 128, has_pair=False), False)):
    print(f"{name}:", "exact" if db > 60 else f"{db:.0f}")
    if (db < 25) != wrong:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
