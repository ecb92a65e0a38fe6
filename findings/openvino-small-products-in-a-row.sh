#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two small integer products in a row, fed four, six or eight rows, make numbers that are not theirs.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, on x86-64 with AVX512-VNNI.
#
# Two Gemms or MatMuls with pairs in front and nothing between, as the low-rank halves of a layer
# are, become one kernel where the weights have at most 256 rows and columns. Fed four, six or eight rows it
# answers numbers that are ten and more times as large as they should be. With other numbers of rows, a
# weight of 257 columns, or a vector of biases behind the first product all is right. A factor alpha
# brings the error back in spite of biases. So a model that was tested with one sample is wrong with a
# batch of eight.
#
# Output (dB against the literal numbers):
#
#   Gemm, 64 by 64, 1 row: 128
#   Gemm, 64 by 64, 2 rows: 132
#   Gemm, 64 by 64, 3 rows: 134
#   Gemm, 64 by 64, 4 rows: -21
#   Gemm, 64 by 64, 5 rows: 136
#   Gemm, 64 by 64, 6 rows: -21
#   Gemm, 64 by 64, 7 rows: 137
#   Gemm, 64 by 64, 8 rows: -22
#   Gemm, 64 by 64, 9 rows: 137
#   MatMul, 64 by 64, 8 rows: -22
#   Gemm, 256 by 256, 8 rows: -22
#   Gemm, 257 by 257, 8 rows: 134
#   Gemm with biases, 64 by 64, 8 rows: 141
#   Gemm with biases and alpha, 64 by 64, 8 rows: -108
set -euo pipefail
if ! grep -q avx512_vnni /proc/cpuinfo; then
    echo "This processor has no AVX512-VNNI."
    exit 0
fi
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
from onnx import checker, helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info


def decibels(operator, size, rows, biases, alpha):
    """Returns the ratio of signal to noise of two products in a row, in dB."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, size)).astype(np.float32)
    constants = {"s": np.float32(0.03), "z": np.uint8(128),
                 "ws": np.full(size, 0.1 / 12 / np.sqrt(size), np.float32)}
    nodes, last = [], "x"
    for layer in "ab":
        constants["w" + layer] = rng.integers(-127, 128, size=(size, size)).astype(np.int8)
        inputs = [last + "d", "d" + layer]
        if biases:
            constants["c" + layer] = rng.normal(size=size).astype(np.float32)
            inputs.append("c" + layer)
        nodes += [node("QuantizeLinear", [last, "s", "z"], [last + "q"]),
                  node("DequantizeLinear", [last + "q", "s", "z"], [last + "d"]),
                  node("DequantizeLinear", ["w" + layer, "ws"], ["d" + layer], axis=1),
                  node(operator, inputs, [layer], **({"alpha": alpha} if alpha != 1 else {}))]
        last = layer
    graph = helper.make_graph(nodes, "g", [value("x", 1, x.shape)], [value("b", 1, x.shape)],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    text = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    real = onnxruntime.InferenceSession(text, options).run(None, {"x": x})[0].astype(np.float64)
    core = openvino.Core()
    made = core.compile_model(core.read_model(text), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x])[0]
    return 10 * np.log10(np.sum(real ** 2) / max(np.sum((made - real) ** 2), 1e-12))


changed = []
for operator, size, rows, biases, alpha in (
        *(("Gemm", 64, rows, False, 1) for rows in range(1, 10)), ("MatMul", 64, 8, False, 1),
        ("Gemm", 256, 8, False, 1), ("Gemm", 257, 8, False, 1), ("Gemm", 64, 8, True, 1),
        ("Gemm", 64, 8, True, 0.5)):
    figure = decibels(operator, size, rows, biases, alpha)
    name = (f"{operator}{' with biases' if biases else ''}{' and alpha' if alpha != 1 else ''}, "
            f"{size} by {size}, {rows} row{'s' if rows > 1 else ''}")
    print(f"{name}: {figure:.0f}")
    if (figure < 0) != (rows in (4, 6, 8) and size <= 256 and (not biases or alpha != 1)):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
