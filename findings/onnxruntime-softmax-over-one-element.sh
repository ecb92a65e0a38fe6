#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An integer Softmax over a single element gives 0 and not 1.
#
# Seen with onnxruntime 1.31.1, CPU provider, default optimizations.
#
# A Softmax between two uint8 pairs becomes the kernel QLinearSoftmax. Its output has the usual scale
# 1/255 or 1/256 and the zero point 0. Where the axis has one element, as in an attention over the
# first token of a sequence whose length is not fixed, the result is 1 by definition. The kernel
# writes 0, so that all of the attention's output is lost. Two elements are right to one step, and so
# is one element with optimizations disabled. The same model is thus right in every test with a
# longer sequence.
#
# Output:
#
#   1 element(s): as defined 1.000, by the integer kernel 0.000
#   2 element(s): as defined 0.047, by the integer kernel 0.047
#   3 element(s): as defined 0.282, by the integer kernel 0.282
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
from onnx import helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
constants = {"s": np.float32(6 / 255), "z": np.uint8(128), "so": np.float32(1 / 255),
             "zo": np.uint8(0)}
graph = helper.make_graph(
    [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
     node("DequantizeLinear", ["q", "s", "z"], ["d"]),
     node("Softmax", ["d"], ["p"], axis=-1),
     node("QuantizeLinear", ["p", "so", "zo"], ["pq"]),
     node("DequantizeLinear", ["pq", "so", "zo"], ["y"])],
    "g", [value("x", 1, [1, "t"])], [value("y", 1, [1, "t"])],
    [numpy_helper.from_array(v, k) for k, v in constants.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def open_session(level):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = level
    options.optimized_model_filepath = "optimized.onnx"
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


plain = open_session(onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
kernel = open_session(onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
kinds = [n.op_type for n in onnx.load("optimized.onnx").graph.node]
rng = np.random.default_rng(3)
made = []
for length in 1, 2, 3:
    x = rng.normal(size=(1, length)).astype(np.float32)
    made.append([session.run(None, {"x": x})[0][0, 0] for session in (plain, kernel)])
    print(f"{length} element(s): as defined {made[-1][0]:.3f}, "
          f"by the integer kernel {made[-1][1]:.3f}")
if "QLinearSoftmax" not in kinds or made[0] != [1, 0] or abs(made[1][0] - made[1][1]) > 0.01:
    sys.exit(f"changed: one element gives {made[0][1]} by {kinds}")
EOF
