#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Activations with a scale for each channel stop nine operators, and Softmax takes one scale for all.
#
# Seen with onnxruntime 1.31.1, CPU provider.
#
# A pair with a scale for each channel is as valid on an activation as on a weight, and the reference and
# ONNX Runtime without optimizations compute it. With the default level the optimizer makes integer
# kernels of the operators between two pairs without looking at the shape of the scales. These want
# scalars: six of those below do not load, three load and fail in their first run, which a check that opens
# the session does not find. MaxPool, Relu and Transpose, which keep their pair, run. A Softmax whose pair
# behind it alone has such scales fails nowhere: it divides by the first scale and the pair multiplies by each
# channel's own, so that probabilities are twice, three and four times as large as they are.
#
# Output (uint8, scales for each channel behind the operator alone, default level; all run without it):
#
#   AveragePool: fails to load
#   Sigmoid: fails to load
#   LeakyRelu: fails to load
#   Concat: fails to load
#   Add: fails to load
#   Mul: fails to load
#   GlobalAveragePool: fails to run
#   Conv: fails to run
#   MatMul: fails to run
#   Softmax: runs, factors of the channels 1.0 2.0 3.0 4.0
#   MaxPool: runs, factors of the channels 1.0 1.0 1.0 1.0
#   Relu: runs, factors of the channels 1.0 1.0 1.0 1.0
#   Transpose: runs, factors of the channels 1.0 1.0 1.0 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnxruntime
from onnx import checker, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
node, value = helper.make_node, helper.make_tensor_value_info
X = rng.normal(size=(2, 4, 6, 6)).astype(np.float32)
LEVELS = onnxruntime.GraphOptimizationLevel


def run(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return "fails to load"
    try:
        return session.run(None, {"x": X})[0]
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return "fails to run"


def make_model(op, attributes, weight, second, scales, zeros):
    """Makes a model with one scale in front of the operator and a scale for each channel behind it."""
    constants = {"s": np.float32(0.03), "z": np.uint8(128), "os": scales, "oz": zeros}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["d"])]
    inputs = ["d"]
    if weight is not None:
        constants.update(w=weight, ws=np.float32(0.01), wz=np.int8(0))
        nodes.append(node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]))
        inputs.append("wd")
    if second:
        inputs.append("d")
    nodes += [node(op, inputs, ["o"], **attributes),
              node("QuantizeLinear", ["o", "os", "oz"], ["oq"], axis=1),
              node("DequantizeLinear", ["oq", "os", "oz"], ["y"], axis=1)]
    graph = helper.make_graph(nodes, "g", [value("x", 1, X.shape)], [value("y", 1, ["a", "b", "c", "d"])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model)
    return model


CASES = [
    ("AveragePool", {"kernel_shape": [2, 2]}, None, False, "fails to load"),
    ("Sigmoid", {}, None, False, "fails to load"),
    ("LeakyRelu", {"alpha": 0.2}, None, False, "fails to load"),
    ("Concat", {"axis": 2}, None, True, "fails to load"),
    ("Add", {}, None, True, "fails to load"),
    ("Mul", {}, None, True, "fails to load"),
    ("GlobalAveragePool", {}, None, False, "fails to run"),
    ("Conv", {}, (4, 4, 1, 1), False, "fails to run"),
    ("MatMul", {}, (6, 5), False, "fails to run"),
    ("Softmax", {"axis": -1}, None, False, "runs"),
    ("MaxPool", {"kernel_shape": [2, 2]}, None, False, "runs"),
    ("Relu", {}, None, False, "runs"),
    ("Transpose", {"perm": [0, 1, 3, 2]}, None, False, "runs"),
]
changed = []
for op, attributes, shape, second, expected in CASES:
    weight = None if shape is None else rng.integers(-99, 100, shape).astype(np.int8)
    scales = np.float32([0.002, 0.004, 0.006, 0.008]) * (2 if op == "Softmax" else 5)
    model = make_model(op, attributes, weight, second, scales, np.uint8([0, 0, 0, 0]))
    real = run(model, LEVELS.ORT_DISABLE_ALL)
    made = run(model, LEVELS.ORT_ENABLE_ALL)
    seen = made if isinstance(made, str) else "runs"
    factors = ""
    if seen == "runs":
        axes = tuple(i for i in range(4) if i != 1)
        ratios = np.abs(made).sum(axes) / np.abs(real).sum(axes)
        factors = ", factors of the channels " + " ".join(f"{ratio:.1f}" for ratio in ratios)
        if np.abs(ratios / (scales / scales[0] if op == "Softmax" else 1) - 1).max() > 0.1:
            changed.append(f"{op}:{factors}")
    print(f"{op}: {seen}{factors}")
    if seen != expected or isinstance(real, str):
        changed.append(op)
if changed:
    sys.exit(f"changed: {changed}")
EOF
