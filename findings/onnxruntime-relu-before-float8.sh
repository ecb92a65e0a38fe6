#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The optimizer drops a Relu in front of an 8-bit float pair.
#
# Seen with onnxruntime 1.31.1, CPU provider, ORT_ENABLE_EXTENDED and the default level.
#
# A QuantizeLinear whose zero point is the lowest number of its type clips at zero, and makes a Relu in
# front of it superfluous. That is so for uint8 with the zero point 0. The optimizer applies it to
# float8e4m3fn and float8e5m2 as well, whose zero point is 0 by definition and whose lowest numbers are
# -448 and -57344: the Relu is gone, and negative numbers pass. Nothing says so. With ORT_ENABLE_BASIC
# the Relu stays.
#
# Output:
#
#   float8e4m3fn: as defined [0, 0, 0, 2], ORT_ENABLE_BASIC [0, 0, 0, 2], by default [-3, -2, -1, 2]
#   float8e5m2: as defined [0, 0, 0, 2], ORT_ENABLE_BASIC [0, 0, 0, 2], by default [-3, -2, -1, 2]
#   uint8: as defined [0, 0, 0, 2], ORT_ENABLE_BASIC [0, 0, 0, 2], by default [0, 0, 0, 2]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
LEVELS = onnxruntime.GraphOptimizationLevel
X = np.float32([-3, -2, -1, 2])


def run(kind, level):
    constants = {"s": np.float32(1), "z": np.array(0, kind), "one": np.eye(4, dtype=np.float32)}
    graph = helper.make_graph(
        [node("Relu", ["x"], ["r"]), node("QuantizeLinear", ["r", "s", "z"], ["q"]),
         node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("MatMul", ["d", "one"], ["y"])],
        "g", [value("x", 1, [4])], [value("y", 1, [4])],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"x": X})[0].astype(int).tolist()


changed = []
for name, kind, lost in (("float8e4m3fn", ml_dtypes.float8_e4m3fn, True),
                         ("float8e5m2", ml_dtypes.float8_e5m2, True), ("uint8", np.uint8, False)):
    defined, basic, default = (run(kind, level) for level in (
        LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_BASIC, LEVELS.ORT_ENABLE_ALL))
    print(f"{name}: as defined {defined}, ORT_ENABLE_BASIC {basic}, by default {default}")
    if defined != basic or (default != defined) != lost:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
