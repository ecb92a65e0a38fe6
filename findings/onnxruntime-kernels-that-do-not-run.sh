#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Default optimizations make integer kernels that then refuse the model they were made of.
#
# Seen with onnxruntime 1.31.1, CPU provider.
#
# Three valid models with Q/DQ pairs run with ORT_ENABLE_BASIC and with optimizations disabled. With
# the default level the optimizer replaces operators by integer kernels without looking at a property
# that the kernel lacks, and the session fails:
#
# - a MatMul whose int8 weight has three axes and a scale for each column: loads, fails in its first
#   run (MatMulIntegerToFloat);
# - a MatMul whose int8 weight has a scale for each block of 32, behind a uint8 activation: loads,
#   fails in its first run (MatMulIntegerToFloat);
# - an AveragePool with dilations between two pairs: does not load (QLinearAveragePool).
#
# The first two are found only by running: a check that opens the session passes.
#
# Output:
#
#   batched weight, a scale for each column: ORT_ENABLE_BASIC runs, default fails to run
#   int8 blocks behind uint8: ORT_ENABLE_BASIC runs, default fails to run
#   dilated AveragePool: ORT_ENABLE_BASIC runs, default fails to load
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
PAIR = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"])]
BEHIND = [node("QuantizeLinear", ["p", "s", "z"], ["pq"]),
          node("DequantizeLinear", ["pq", "s", "z"], ["y"])]


def integers(*shape):
    return rng.integers(-127, 128, shape).astype(np.int8)


CASES = {
    "batched weight, a scale for each column": (
        [2, 3, 8], PAIR + [node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=2),
                           node("MatMul", ["d", "wd"], ["y"])],
        {"w": integers(2, 8, 4), "ws": np.full(4, 0.01, np.float32), "wz": np.zeros(4, np.int8)},
        "fails to run"),
    "int8 blocks behind uint8": (
        [4, 64], PAIR + [node("DequantizeLinear", ["w", "ws"], ["wd"], axis=0, block_size=32),
                         node("MatMul", ["d", "wd"], ["y"])],
        {"w": integers(64, 16), "ws": rng.uniform(0.01, 0.02, (2, 16)).astype(np.float32)},
        "fails to run"),
    "dilated AveragePool": (
        [1, 3, 8, 8], PAIR + [node("AveragePool", ["d"], ["p"], kernel_shape=[2, 2],
                                   dilations=[2, 2])] + BEHIND, {}, "fails to load"),
}


def attempt(model, x, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    except Exception:
        return "fails to load"
    try:
        session.run(None, {"x": x})
    except Exception:
        return "fails to run"
    return "runs"


changed = []
for name, (shape, nodes, constants, expected) in CASES.items():
    constants |= {"s": np.float32(6 / 255), "z": np.uint8(128)}
    graph = helper.make_graph(nodes, "g", [value("x", 1, shape)],
                              [value("y", 1, [None] * len(shape))],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    x = rng.normal(size=shape).astype(np.float32)
    basic, default = (attempt(model, x, level) for level in (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL))
    print(f"{name}: ORT_ENABLE_BASIC {basic}, default {default}")
    if (basic, default) != ("runs", expected):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
