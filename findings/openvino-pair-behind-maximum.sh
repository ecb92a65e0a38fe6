#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO computes wrong numbers where an activation's pair stands behind a maximum over an axis.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# Conv, Relu, GlobalMaxPool, pair, Conv is what every squeeze-and-excite block with a maximum, CBAM's
# attention and a PointNet look like when they are quantized. OpenVINO takes the pair into the kernel
# of the GlobalMaxPool, ReduceMax or ReduceMin, which then gives about the same small number for each
# channel, whatever the image: 0 dB are left, without a message. The same pair behind a
# GlobalAveragePool or behind a MaxPool with windows is right, and onnxruntime computes all of them as
# defined.
#
# Output (dB against the literal arithmetic):
#
#   GlobalMaxPool: OpenVINO 0, onnxruntime exact
#   ReduceMax: OpenVINO 0, onnxruntime exact
#   ReduceMin: OpenVINO 0, onnxruntime exact
#   GlobalAveragePool: OpenVINO exact, onnxruntime exact
#   MaxPool: OpenVINO exact, onnxruntime exact
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
AXES = {"axes": [2, 3], "keepdims": 1}
X = rng.normal(size=(1, 3, 6, 6)).astype(np.float32)


def quantize_weight(*shape):
    """Up to 63: products by uint8 fit the 16-bit sums of processors without VNNI."""
    weight = rng.normal(size=shape)
    scale = np.abs(weight).reshape(shape[0], -1).max(axis=1) / 63
    integers = np.rint(weight / scale.reshape(-1, 1, 1, 1)).astype(np.int8)
    return integers, (scale / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def make_model(between):
    (w, ws), (v, vs) = quantize_weight(16, 3, 3, 3), quantize_weight(24, 16, 1, 1)
    constants = {"w": w, "ws": ws, "v": v, "vs": vs, "sx": np.float32(8 / 255),
                 "zx": np.uint8(128), "sz": np.float32(8 / 255), "zz": np.uint8(128)}
    nodes = [node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
             node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
             node("DequantizeLinear", ["w", "ws"], ["wd"], axis=0),
             node("Conv", ["xd", "wd"], ["c"], pads=[1] * 4), node("Relu", ["c"], ["r"]), between,
             node("QuantizeLinear", ["m", "sz", "zz"], ["mq"]),
             node("DequantizeLinear", ["mq", "sz", "zz"], ["md"]),
             node("DequantizeLinear", ["v", "vs"], ["vd"], axis=0),
             node("Conv", ["md", "vd"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, X.shape)], [value("y", 1, None)],
                              [numpy_helper.from_array(np.asarray(a), k)
                               for k, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def sqnr_db(model):
    """Returns OpenVINO's and onnxruntime's distance from onnxruntime without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    real = onnxruntime.InferenceSession(model, options).run(None, {"x": X})[0]
    core = openvino.Core()
    made = [core.compile_model(core.read_model(model), "CPU",
                               {"INFERENCE_PRECISION_HINT": "f32"})([X])[0],
            onnxruntime.InferenceSession(model).run(None, {"x": X})[0]]
    return [10 * np.log10((real ** 2).sum() / max(((real - m) ** 2).sum(), 1e-30)) for m in made]


changed = []
for between, wrong in (
        (node("GlobalMaxPool", ["r"], ["m"]), True),
        (node("ReduceMax", ["r"], ["m"], **AXES), True),
        (node("ReduceMin", ["c"], ["m"], **AXES), True),
        (node("GlobalAveragePool", ["r"], ["m"]), False),
        (node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2]), False)):
    db = sqnr_db(make_model(between))
    print("{}: OpenVINO {}, onnxruntime {}".format(
        between.op_type, *("exact" if one > 60 else f"{one:.0f}" for one in db)))
    if (db[0] < 25) != wrong or db[1] < 30:
        changed.append(between.op_type)
if changed:
    sys.exit(f"changed: {changed}")
EOF
