#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One more pair in front of a layer whose weight has other scales than the kernel's makes a model that does not run.
#
# Seen with onnxruntime 1.31.1, CPU provider, default optimizations.
#
# DequantizeLinear may have a scale for each index of any axis. Weights with scales of a Conv's input channels, or a
# quantized left operand of a MatMul with a scale for each of its columns, run as long as the data are floats. With a QuantizeLinear and a
# DequantizeLinear on the data and on the output, which state nothing about the weight, the optimizer makes a
# QLinearConv or QLinearMatMul of it, which has one scale for each output channel, or one for the left operand, and the
# first run fails. ORT_ENABLE_BASIC runs both. The session opens, so that only a run shows it.
#
# Output:
#
#   Conv, scales of input channels, float data: runs
#   Conv, scales of input channels, pairs around it: ORT_ENABLE_BASIC runs, default fails to run
#   MatMul, scales on the left, float data: runs
#   MatMul, scales on the left, pairs around it: ORT_ENABLE_BASIC runs, default fails to run
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

rng = np.random.default_rng(0)
onnxruntime.set_default_logger_severity(4)
node, value = helper.make_node, helper.make_tensor_value_info


def make(operator, paired):
    conv = operator == "Conv"
    shape, weight = ([1, 8, 6, 6], [4, 8, 3, 3]) if conv else ([4, 16], [8, 4])
    n = weight[1]
    constants = {"q": rng.integers(0, 256, weight).astype(np.uint8), "s": np.geomspace(.01, .02, n, dtype=np.float32),
                 "z": np.full(n, 128, np.uint8), "t": np.float32(.05), "o": np.float32(.5), "c": np.uint8(128)}
    nodes = [node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=1)]
    data, out = ("d", "m") if paired else ("x", "y")
    if paired:
        nodes += [node("QuantizeLinear", ["x", "t", "c"], ["xq"]), node("DequantizeLinear", ["xq", "t", "c"], ["d"])]
    nodes.append(node(operator, [data, "w"] if conv else ["w", data], [out]))
    if paired:
        nodes += [node("QuantizeLinear", ["m", "o", "c"], ["yq"]), node("DequantizeLinear", ["yq", "o", "c"], ["y"])]
    used = {name for one in nodes for name in one.input}
    graph = helper.make_graph(nodes, "g", [value("x", 1, shape)], [value("y", 1, [None] * len(shape))],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items() if k in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    return model.SerializeToString(), {"x": rng.normal(size=shape).astype(np.float32)}


def state(model, feed, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    try:
        session = onnxruntime.InferenceSession(model, options)
    except Exception:
        return "fails to load"
    try:
        session.run(None, feed)
    except Exception:
        return "fails to run"
    return "runs"


changed = False
for operator, what in ("Conv", "scales of input channels"), ("MatMul", "scales on the left"):
    plain, paired = make(operator, False), make(operator, True)
    first = state(*plain, "ORT_ENABLE_ALL")
    basic, default = (state(*paired, level) for level in ("ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"))
    print(f"{operator}, {what}, float data: {first}")
    print(f"{operator}, {what}, pairs around it: ORT_ENABLE_BASIC {basic}, default {default}")
    changed |= (first, basic, default) != ("runs", "runs", "fails to run")
if changed:
    sys.exit("changed: other models run")
EOF
