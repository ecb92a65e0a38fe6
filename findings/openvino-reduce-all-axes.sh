#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO's ReduceL1, ReduceLogSum and ReduceLogSumExp ignore their axes below opset 18.
#
# Seen with OpenVINO 2026.4.1, CPU plugin.
#
# Reductions got their axes as an input in opset 18 (ReduceSum in 13); before they have an attribute.
# For these three operators OpenVINO reads the input alone. At opset 17 a reduction over the channels
# becomes one over everything: the output has the shape (1, 1, 1, 1) instead of (1, 1, 8, 8), and a Div
# behind it, as in a normalization by the sum of magnitudes, broadcasts it without an error. The seven
# other reductions read the attribute, and all ten are right at opset 18.
#
# Output (shapes at opset 17 and at opset 18 for axes = [1] of a tensor of (1, 3, 8, 8)):
#
#   ReduceL1: (1, 1, 1, 1) wrong, (1, 1, 8, 8) right
#   ReduceL2: (1, 1, 8, 8) right, (1, 1, 8, 8) right
#   ReduceLogSum: (1, 1, 1, 1) wrong, (1, 1, 8, 8) right
#   ReduceLogSumExp: (1, 1, 1, 1) wrong, (1, 1, 8, 8) right
#   ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare: as ReduceL2
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

X = np.random.default_rng(0).uniform(0.5, 2, (1, 3, 8, 8)).astype(np.float32)
WRONG = ["ReduceL1", "ReduceLogSum", "ReduceLogSumExp"]
KINDS = WRONG + ["ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
                 "ReduceSumSquare"]


def compare(kind, opset):
    value = helper.make_tensor_value_info
    by_input = opset >= 18 or kind == "ReduceSum"
    node = helper.make_node(kind, ["x", "a"] if by_input else ["x"], ["y"], keepdims=1,
                            **({} if by_input else {"axes": [1]}))
    graph = helper.make_graph(
        [node], "g", [value("x", 1, X.shape)], [value("y", 1, [1, 1, 8, 8])],
        [numpy_helper.from_array(np.array([1]), "a")] if by_input else [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              ir_version=8).SerializeToString()
    real = onnxruntime.InferenceSession(model).run(None, {"x": X})[0]
    core = openvino.Core()
    made = core.compile_model(core.read_model(model), "CPU",
                              {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]
    is_right = made.shape == real.shape and np.allclose(made, real, rtol=1e-4)
    return is_right, f"{made.shape} {'right' if is_right else 'wrong'}"


changed = []
for kind in sorted(KINDS):
    (old, shown_old), (new, shown_new) = compare(kind, 17), compare(kind, 18)
    print(f"{kind}: {shown_old}, {shown_new}")
    if old != (kind not in WRONG) or not new:
        changed.append(kind)
if changed:
    sys.exit(f"changed: {changed}")
EOF
