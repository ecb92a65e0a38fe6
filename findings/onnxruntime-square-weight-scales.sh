#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A square weight with a scale for each row is multiplied by the scales of columns, behind a pair.
#
# Seen with onnxruntime 1.31.1, CPU provider.
#
# An 8-bit weight of a MatMul or Gemm may have a scale for each of its rows, which are the input channels.
# Behind a uint8 pair the default optimizations make one integer kernel of the layer and its pairs, whose
# scales are those of columns, and look at the number of scales alone, not at their axis. Where the weight
# is square, as the projections of most attentions are, the session runs and multiplies column i by the
# scale of row i. Where it is not, the first run of a MatMul fails, and a Gemm is right: it keeps its
# floating-point kernel. ORT_ENABLE_BASIC is right everywhere. Zero points for each row are read for
# columns, too.
#
# Output (dB against the literal numbers):
#
#   64 by 64, a scale for each column: default 136, ORT_ENABLE_BASIC 155
#   64 by 64, a scale for each row: default 4, ORT_ENABLE_BASIC 155
#   64 by 64, a zero point for each row: default 29, ORT_ENABLE_BASIC 154
#   64 by 32, a scale for each row: default fails, ORT_ENABLE_BASIC 153
#   64 by 64, a scale for each row, Gemm: default 4, ORT_ENABLE_BASIC 155
#   64 by 32, a scale for each row, Gemm: default 153, ORT_ENABLE_BASIC 153
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

LEVELS = onnxruntime.GraphOptimizationLevel
onnxruntime.set_default_logger_severity(4)
node, value = helper.make_node, helper.make_tensor_value_info
ROWS = 64
x = np.random.default_rng(0).normal(size=(4, ROWS)).astype(np.float32)


def make(columns, axis, one_scale, operator):
    """Returns a model of a pair and a MatMul or Gemm."""
    rng = np.random.default_rng(1)
    length = (ROWS, columns)[axis]
    scales = rng.uniform(0.001, 0.01, size=length).astype(np.float32)
    if one_scale:
        scales[:] = scales[0]
    constants = {"s": np.float32(0.03), "z": np.uint8(128), "ws": scales,
                 "w": rng.integers(0, 256, size=(ROWS, columns)).astype(np.uint8),
                 "wz": rng.integers(124, 132, size=length).astype(np.uint8)}
    if not one_scale:
        constants["wz"][:] = 128
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
         node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis), node(operator, ["d", "wd"], ["y"])],
        "g", [value("x", 1, x.shape)], [value("y", 1, [4, columns])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model, full_check=True)
    return model.SerializeToString()


def run(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    return onnxruntime.InferenceSession(model, options).run(None, {"x": x})[0]


def decibels(real, made):
    return 10 * np.log10(np.sum(real ** 2) / max(np.sum((made - real) ** 2), 1e-12))


changed = []
for columns, axis, one_scale, operator, expected in (
        (ROWS, 1, False, "MatMul", "right"), (ROWS, 0, False, "MatMul", "wrong"),
        (ROWS, 0, True, "MatMul", "wrong"), (32, 0, False, "MatMul", "fails"),
        (ROWS, 0, False, "Gemm", "wrong"), (32, 0, False, "Gemm", "right")):
    model = make(columns, axis, one_scale, operator)
    real = run(model, LEVELS.ORT_DISABLE_ALL)
    basic = decibels(real, run(model, LEVELS.ORT_ENABLE_BASIC))
    try:
        figure = decibels(real, run(model, LEVELS.ORT_ENABLE_ALL))
        seen, text = "wrong" if figure < 35 else "right", f"{figure:.0f}"
    except Exception:
        seen = text = "fails"
    name = (f"{ROWS} by {columns}, a {'zero point' if one_scale else 'scale'} for each "
            f"{('row', 'column')[axis]}{', Gemm' if operator == 'Gemm' else ''}")
    print(f"{name}: default {text}, ORT_ENABLE_BASIC {basic:.0f}")
    if seen != expected or basic < 100:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
