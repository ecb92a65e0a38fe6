#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO moves a factor below zero past the Relu in front of it, where a pair follows.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# Conv, Relu, BatchNormalization, pair, Conv: trained networks have some factors below zero in their
# BatchNormalizations. OpenVINO joins all up to the pair with the integer kernel of the first Conv, and
# computes max(f * c, 0) in the place of f * max(c, 0). That is the same for factors above zero alone.
# A Mul by a negative constant, a Neg and 1 - x do it, too, also behind a LeakyRelu, and with a pool
# between. It needs the integer Conv in front: without its pairs, behind a Sigmoid, without an
# activation function or with factors above zero the result is exact. No message is given.
#
# Output (dB against the literal arithmetic, which onnxruntime without optimizations computes):
#
#   Relu, BatchNormalization with factors of both signs: -1
#   Relu, Mul with factors of both signs: -1
#   Relu, 1 - x: -2
#   Relu, MaxPool, Mul with factors of both signs: -4
#   Relu, Mul with factors above zero: exact
#   Sigmoid, Mul with factors of both signs: exact
#   Mul with factors of both signs: exact
#   max(f * c, 0), by hand, against OpenVINO's result for Relu, Mul: exact
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
X = rng.normal(size=(1, 3, 6, 6)).astype(np.float32)
FACTORS = np.float32([1, -2, 0.5, -1])
RELU = node("Relu", ["c"], ["r"])
# Weights up to 63, whose products by uint8 fit the 16-bit sums of processors without VNNI.
CONSTANTS = {"f": FACTORS, "none": np.zeros(4, np.float32), "ones": np.ones(4, np.float32),
             "one": np.float32(1), "both": FACTORS.reshape(-1, 1, 1),
             "above": np.abs(FACTORS).reshape(-1, 1, 1),
             "w": rng.integers(-63, 64, (4, 3, 3, 3)).astype(np.int8),
             "v": rng.integers(-63, 64, (8, 4, 1, 1)).astype(np.int8),
             "ws": np.full(4, 0.006, np.float32), "vs": np.full(8, 0.01, np.float32),
             "sx": np.float32(8 / 255), "sz": np.float32(12 / 255), "z": np.uint8(128)}
CASES = {
    "Relu, BatchNormalization with factors of both signs": (
        [RELU, node("BatchNormalization", ["r", "f", "none", "none", "ones"], ["t"])], True),
    "Relu, Mul with factors of both signs": ([RELU, node("Mul", ["r", "both"], ["t"])], True),
    "Relu, 1 - x": ([RELU, node("Sub", ["one", "r"], ["t"])], True),
    "Relu, MaxPool, Mul with factors of both signs": (
        [RELU, node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2]),
         node("Mul", ["m", "both"], ["t"])], True),
    "Relu, Mul with factors above zero": ([RELU, node("Mul", ["r", "above"], ["t"])], False),
    "Sigmoid, Mul with factors of both signs": (
        [node("Sigmoid", ["c"], ["r"]), node("Mul", ["r", "both"], ["t"])], False),
    "Mul with factors of both signs": ([node("Mul", ["c", "both"], ["t"])], False),
}


def run(between):
    """Returns the output as defined, and OpenVINO's."""
    nodes = [node("QuantizeLinear", ["x", "sx", "z"], ["xq"]),
             node("DequantizeLinear", ["xq", "sx", "z"], ["xd"]),
             node("DequantizeLinear", ["w", "ws"], ["wd"], axis=0),
             node("Conv", ["xd", "wd"], ["c"], pads=[1] * 4), *between,
             node("QuantizeLinear", ["t", "sz", "z"], ["tq"]),
             node("DequantizeLinear", ["tq", "sz", "z"], ["td"]),
             node("DequantizeLinear", ["v", "vs"], ["vd"], axis=0),
             node("Conv", ["td", "vd"], ["y"])]
    used = {name for one in nodes for name in one.input}
    graph = helper.make_graph(nodes, "g", [value("x", 1, X.shape)], [value("y", 1, None)],
                              [numpy_helper.from_array(np.asarray(a), k)
                               for k, a in CONSTANTS.items() if k in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    real = onnxruntime.InferenceSession(model, options).run(None, {"x": X})[0]
    core = openvino.Core()
    made = core.compile_model(core.read_model(model), "CPU",
                              {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]
    return real, made


def sqnr_db(real, made):
    return 10 * np.log10((real ** 2).sum() / max(((real - made) ** 2).sum(), 1e-30))


changed = []
for name, (between, wrong) in CASES.items():
    db = sqnr_db(*run(between))
    print(f"{name}:", "exact" if db > 60 else f"{db:.0f}")
    if (db < 25) != wrong:
        changed.append(name)
moved = run([node("Mul", ["c", "both"], ["n"]), node("Relu", ["n"], ["t"])])[0]
db = sqnr_db(moved, run(CASES["Relu, Mul with factors of both signs"][0])[1])
print("max(f * c, 0), by hand, against OpenVINO's result for Relu, Mul:",
      "exact" if db > 60 else f"{db:.0f}")
if changed or db < 60:
    sys.exit(f"changed: {changed}, {db:.0f} dB")
EOF
