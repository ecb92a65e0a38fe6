#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A model with an open batch computes other numbers than the same model with a stated one.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, inference precision float32.
#
# Constant factors of channels in front of a pair, as a normalization of the input has them, become a part of the
# pair. Where one is below zero the result is wrong if the model leaves its batch open, and right if it states
# it; the numbers that are fed are the same. A Conv without biases whose output a Relu and another node
# read is wrong in the same way, and right with biases of 1e-30, which change no sum.
#
# Output (dB between the operators as defined and the plugin):
#
#   factors below zero: batch stated 139, open -2
#   Conv without biases, read twice: batch stated 144, open 0
#   Conv with biases of 1e-30, read twice: batch stated 144, open 144
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

node, value = helper.make_node, helper.make_tensor_value_info
rng = np.random.default_rng(5)


def pair(name, scale, zero):
    return ([node("QuantizeLinear", [name, name + "_s", name + "_z"], [name + "_q"]),
             node("DequantizeLinear", [name + "_q", name + "_s", name + "_z"], [name + "_d"])],
            {name + "_s": np.float32(scale), name + "_z": np.uint8(zero)})


def weight(name, array, axis):
    return ([node("DequantizeLinear", [name, name + "_s"], [name + "_d"], axis=axis)],
            {name: array, name + "_s": np.full(array.shape[axis], .004, np.float32)})


def compare(first, shape, w, op, constants):
    """Returns the dB with a stated and with an open batch."""
    (q, c1), (d, c2) = pair("t", .05, 128), weight("w", w, 0 if w.ndim == 4 else 1)
    nodes = [*first, *q, *d, node(op, ["t_d", "w_d"], ["y"])]
    x, made = rng.normal(size=shape).astype(np.float32), []
    for batch in (shape[0], "n"):
        graph = helper.make_graph(nodes, "g", [value("x", 1, [batch, *shape[1:]])], [value("y", 1, None)],
                                  [numpy_helper.from_array(np.asarray(v), k)
                                   for k, v in {**constants, **c1, **c2}.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                  ir_version=8).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        real = onnxruntime.InferenceSession(model, options).run(None, {"x": x})[0]
        core = openvino.Core()
        got = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": x})[0]
        made.append(round(float(10 * np.log10(np.sum(real ** 2) / max(1e-30, np.sum((real - got) ** 2))))))
    return made


def small(*shape):
    return rng.integers(-127, 128, shape).astype(np.int8)


(cq, cc), (kd, kc) = pair("x", .03, 128), weight("k", small(8, 3, 1, 1), 0)
conv = [*cq, *kd]
after = [node("Relu", ["a"], ["r"]), node("Mul", ["a", "r"], ["t"])]
rows = {
    "factors below zero": compare([node("Mul", ["x", "f"], ["t"])], (12, 16), small(16, 16), "MatMul",
                                  {"f": np.where(np.arange(16) % 2, -1.2, .7).astype(np.float32)}),
    "Conv without biases, read twice": compare(
        [*conv, node("Conv", ["x_d", "k_d"], ["a"]), *after], (1, 3, 8, 8), small(8, 8, 1, 1), "Conv", cc | kc),
    "Conv with biases of 1e-30, read twice": compare(
        [*conv, node("Conv", ["x_d", "k_d", "b"], ["a"]), *after], (1, 3, 8, 8), small(8, 8, 1, 1), "Conv",
        {**cc, **kc, "b": np.full(8, 1e-30, np.float32)})}
for name, (stated, left) in rows.items():
    print(f"{name}: batch stated {stated}, open {left}")
good = [stated > 60 and left < 25 for stated, left in list(rows.values())[:2]]
if not all(good) or min(rows["Conv with biases of 1e-30, read twice"]) < 60:
    sys.exit("changed: the batch makes no difference, or biases do not help")
EOF
