#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO removes pairs of int16 and uint16, and their clipping with them.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# A Q/DQ pair rounds and clips: a uint16 pair with the zero point 0 is also a Relu, and its scale
# bounds the values, as a Relu6 would. OpenVINO reads 16-bit pairs without a message and strips them,
# so that neither happens: negative numbers and numbers beyond the range pass unchanged. Pairs of 8 and
# of 4 bits are kept. A model whose output is such a pair is refused when it is compiled ("FQ stripping
# failed"), where its input goes into the pair directly.
#
# Output (numbers from -3 to 12, the range of each pair is 0 to 6):
#
#   uint16: onnxruntime [0, 0, 0, 3, 6, 6], OpenVINO [-3, 0, -0.2, 3, 9, 12]
#   uint8: onnxruntime [0, 0, 0, 3, 6, 6], OpenVINO [0, 0, 0, 3, 6, 6]
#   uint4: onnxruntime [0, 0, 0, 3.2, 6, 6], OpenVINO [0, 0, 0, 3.2, 6, 6]
#   a model that is nothing but a uint16 pair: refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np
import onnxruntime
import openvino
from onnx import helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
X = np.float32([-3, 0, -0.2, 3, 9, 12])


def make_model(kind, is_alone=False):
    highest = {"uint4": 15, "uint8": 255, "uint16": 65535}[np.dtype(kind).name]
    constants = {"s": np.float32(6 / highest), "z": np.array(0, kind), "one": np.float32(1)}
    ends = ("x", "y") if is_alone else ("a", "d")
    nodes = [node("QuantizeLinear", [ends[0], "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], [ends[1]])]
    if is_alone:
        del constants["one"]
    else:
        nodes = [node("Add", ["x", "one"], ["b"]), node("Sub", ["b", "one"], ["a"]), *nodes,
                 node("Mul", ["d", "one"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [6])], [value("y", 1, [6])],
                              [numpy_helper.from_array(np.asarray(a), k)
                               for k, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                             ir_version=10).SerializeToString()


def run_openvino(model):
    core = openvino.Core()
    return core.compile_model(core.read_model(model), "CPU",
                              {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]


changed = []
for kind, is_kept in (np.uint16, False), (np.uint8, True), (ml_dtypes.uint4, True):
    model = make_model(kind)
    made = [onnxruntime.InferenceSession(model).run(None, {"x": X})[0], run_openvino(model)]
    name = np.dtype(kind).name
    print("{}: onnxruntime [{}], OpenVINO [{}]".format(
        name, *(", ".join(f"{v + 0:.2g}" for v in m.round(2)) for m in made)))
    if np.allclose(*made, atol=0.01) != is_kept or (not is_kept and abs(made[1][0] + 3) > 0.01):
        changed.append(name)
try:
    run_openvino(make_model(np.uint16, is_alone=True))
    changed.append("a pair alone")
except RuntimeError as error:
    print("a model that is nothing but a uint16 pair: refused")
    if "FQ stripping failed" not in str(error):
        changed.append(str(error))
if changed:
    sys.exit(f"changed: {changed}")
EOF
