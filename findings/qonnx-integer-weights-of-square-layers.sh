#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Integer weights with a scale for each row get the scales of columns in QONNX, where they are square.
#
# Seen with qonnx 1.0.0 (QCDQToQuant), with onnx 1.17.0 and onnxruntime 1.22.0 to run its result.
#
# QCDQToQuant turns pairs of ONNX into the Quant nodes that tools for FPGAs read. Where a file holds float
# weights and a whole pair, scales are put along the axis that the file says. Where it holds integer weights
# and a DequantizeLinear alone, as most quantizers write them, they are not: scales are matched with the
# last axis. For a Gemm with transB and for a Conv they stand along the first. Most shapes raise an error
# where the result is run. A square Gemm, and a Conv with as many output channels as its kernel is wide, become
# other layers without a message.
#
# Output (dB between the file and its conversion):
#
#   Gemm, 8 by 8, float weight and a pair: 200
#   Gemm, 8 by 8, integer weight: 6
#   Gemm, 6 by 8, integer weight: ValueError
#   MatMul, 8 by 8, integer weight: 200
#   Conv of 3 channels, kernel 3 by 3, integer weight: 5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    qonnx==1.0.0 onnx==1.17.0 onnxruntime==1.22.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnxruntime
from onnx import ModelProto, checker, helper, numpy_helper
from qonnx.core.modelwrapper import ModelWrapper
from qonnx.core.onnx_exec import execute_onnx
from qonnx.transformation.infer_shapes import InferShapes
from qonnx.transformation.qcdq_to_qonnx import QCDQToQuant

node, value = helper.make_node, helper.make_tensor_value_info


def make(operator, shape, axis, pair):
    """Returns a model of one layer, and its input."""
    rng = np.random.default_rng(0)
    scales = np.linspace(0.01, 0.1, shape[axis]).astype(np.float32)
    weight = rng.normal(size=shape).astype(np.float32)
    if not pair:
        weight = rng.integers(-127, 128, size=shape).astype(np.int8)
    columns = {"Gemm": shape[0], "MatMul": shape[-1], "Conv": shape[0]}[operator]
    x = rng.normal(size=(1, shape[1], 5, 5) if operator == "Conv" else (2, 8)).astype(np.float32)
    nodes = [node("DequantizeLinear", ["q" if pair else "w", "s", "z"], ["d"], axis=axis),
             node(operator, ["x", "d"], ["y"], **({"transB": 1} if operator == "Gemm" else {}))]
    if pair:
        nodes.insert(0, node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=axis))
    graph = helper.make_graph(
        nodes, "g", [value("x", 1, x.shape)],
        [value("y", 1, [1, columns, 3, 3] if operator == "Conv" else [2, columns])],
        [numpy_helper.from_array(v, k) for k, v in
         {"w": weight, "s": scales, "z": np.zeros(shape[axis], np.int8)}.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model, full_check=True)
    return model.SerializeToString(), x


changed = []
for operator, shape, axis, pair, expected, text in (
        ("Gemm", (8, 8), 0, True, "right", "Gemm, 8 by 8, float weight and a pair"),
        ("Gemm", (8, 8), 0, False, "wrong", "Gemm, 8 by 8, integer weight"),
        ("Gemm", (6, 8), 0, False, "ValueError", "Gemm, 6 by 8, integer weight"),
        ("MatMul", (8, 8), 1, False, "right", "MatMul, 8 by 8, integer weight"),
        ("Conv", (3, 3, 3, 3), 0, False, "wrong", "Conv of 3 channels, kernel 3 by 3, integer weight")):
    model, x = make(operator, shape, axis, pair)
    real = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
    try:
        wrapper = ModelWrapper(ModelProto.FromString(model))
        for transformation in InferShapes(), QCDQToQuant(), InferShapes():
            wrapper = wrapper.transform(transformation)
        made = execute_onnx(wrapper, {"x": x})["y"]
        power = np.sum(real.astype(np.float64) ** 2)
        figure = 10 * np.log10(power / max(np.sum((made - real) ** 2.0), power * 1e-20))
        seen, shown = "right" if figure > 100 else "wrong", f"{figure:.0f}"
    except ValueError as error:
        seen = shown = type(error).__name__
    print(f"{text}: {shown}")
    if seen != expected:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
