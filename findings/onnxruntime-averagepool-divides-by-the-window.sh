#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An AveragePool with ceil_mode that counts its padding has another divisor between pairs.
#
# Seen with onnxruntime 1.31.1, CPU provider.
#
# PyTorch's AvgPool2d(ceil_mode=True) is exported with ceil_mode and count_include_pad. The reference and
# onnxruntime's float kernel divide windows that reach over the edge of an input without padding by what is inside
# them. The integer kernel that takes the place of the node and its pairs divides by the whole window: the last row
# and column shrink to a half, and the corner to a quarter. A figure taken with optimizations off does not show it.
# Either attribute alone is right.
#
# Output (a pair, the pool, a pair; 5 by 5 ones, windows of 2 by 2; the last row as the runtime answers it):
#
#   no attribute: right
#   ceil_mode: right
#   count_include_pad: right
#   ceil_mode and count_include_pad: 0.5 0.5 0.25, should be 1 1 1
#   ceil_mode and count_include_pad, optimizations off: right
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
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

node, value, levels = helper.make_node, helper.make_tensor_value_info, onnxruntime.GraphOptimizationLevel
x = np.ones((1, 1, 5, 5), np.float32)
changed = []
for names, level, right in (((), levels.ORT_ENABLE_ALL, True), (("ceil_mode",), levels.ORT_ENABLE_ALL, True),
                            (("count_include_pad",), levels.ORT_ENABLE_ALL, True),
                            (("ceil_mode", "count_include_pad"), levels.ORT_ENABLE_ALL, False),
                            (("ceil_mode", "count_include_pad"), levels.ORT_DISABLE_ALL, True)):
    pair = [[node("QuantizeLinear", [a, "s", "z"], [f"{a}q"]), node("DequantizeLinear", [f"{a}q", "s", "z"], [b])]
            for a, b in (("x", "d"), ("p", "y"))]
    pool = node("AveragePool", ["d"], ["p"], kernel_shape=[2, 2], strides=[2, 2], **dict.fromkeys(names, 1))
    graph = helper.make_graph(
        [*pair[0], pool, *pair[1]], "g", [value("x", 1, x.shape)], [value("y", 1, [1, 1, "h", "w"])],
        [helper.make_tensor("s", 1, [], [1 / 128]), helper.make_tensor("z", 2, [], [0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    made = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]
    real = ReferenceEvaluator(model).run(None, {"x": x})[0]
    rows = [" ".join(f"{item:g}" for item in v[0, 0, -1]) for v in (made, real)]
    text = (" and ".join(names) or "no attribute") + ("" if level == levels.ORT_ENABLE_ALL else ", optimizations off")
    print(f"{text}: {'right' if np.array_equal(made, real) else f'{rows[0]}, should be {rows[1]}'}")
    if np.array_equal(made, real) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
