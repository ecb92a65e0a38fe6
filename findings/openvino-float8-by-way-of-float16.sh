#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO's 8-bit floats round twice, and what lies beyond their range depends on the operator.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32, beside onnxruntime 1.31.1.
#
# - float32 becomes float8 by way of float16. A number just above the middle of two neighbours becomes
#   that middle first, and then the even one: 1.06251 gives 1 and not 1.125. No float8 tensor that was
#   made elsewhere can be compared bit by bit.
# - Cast to float8 has the attribute saturate, 1 by default: numbers above the highest, 448, become 448.
#   OpenVINO's Cast makes NaN of those that do not round to 448, while its QuantizeLinear saturates.
#   onnxruntime saturates in both.
# - NaN in QuantizeLinear becomes -448, the lowest number, where onnxruntime keeps NaN.
#
# Output (float8e4m3fn, from 1.06251, 449, 500, inf, nan):
#
#   QuantizeLinear: onnxruntime [1.125, 448, 448, 448, nan], OpenVINO [1, 448, 448, 448, -448]
#   Cast: onnxruntime [1.125, 448, 448, 448, nan], OpenVINO [1, 448, nan, nan, nan]
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
from onnx import TensorProto, helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
X = np.float32([1.06251, 449, 500, np.inf, np.nan])
CONSTANTS = {"s": np.float32(1), "z": np.array(0, ml_dtypes.float8_e4m3fn)}
CASES = {
    "QuantizeLinear": ([node("QuantizeLinear", ["a", "s", "z"], ["q"]),
                        node("DequantizeLinear", ["q", "s", "z"], ["d"])],
                       [1, 448, 448, 448, -448]),
    "Cast": ([node("Cast", ["a"], ["q"], to=TensorProto.FLOAT8E4M3FN),
              node("Cast", ["q"], ["d"], to=TensorProto.FLOAT)], [1, 448, np.nan, np.nan, np.nan]),
}

changed = []
for name, (nodes, expected) in CASES.items():
    nodes = [node("Mul", ["x", "s"], ["a"]), *nodes, node("Mul", ["d", "s"], ["y"])]
    used = {one for n in nodes for one in n.input}
    graph = helper.make_graph(
        nodes, "g", [value("x", 1, [5])], [value("y", 1, [5])],
        [numpy_helper.from_array(np.asarray(a), k) for k, a in CONSTANTS.items() if k in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                              ir_version=10).SerializeToString()
    core = openvino.Core()
    made = [onnxruntime.InferenceSession(model).run(None, {"x": X})[0],
            core.compile_model(core.read_model(model), "CPU",
                               {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]]
    print("{}: onnxruntime [{}], OpenVINO [{}]".format(
        name, *(", ".join(f"{v:g}" for v in m) for m in made)))
    wanted = [np.float32([1.125, 448, 448, 448, np.nan]), np.float32(expected)]
    if not all(np.array_equal(m, w, equal_nan=True) for m, w in zip(made, wanted)):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
