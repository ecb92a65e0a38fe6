#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On x86-64, a model with int8 activations loads at opset 20 and not at opset 21.
#
# Seen with onnxruntime 1.31.1, CPU provider, default optimizations, x86-64.
#
# A MatMul of three axes with a constant bias behind it becomes a Gemm between two Reshapes. The
# optimizer then moves the int8 pair past the first Reshape, with a new QuantizeLinear. It gives this
# node the attribute output_dtype INT8, which exists from opset 21 on. On x86-64 another pass changes
# int8 activations to uint8 afterwards, zero point and all, but leaves the attribute. The session then
# refuses its own node: "output_dtype INT8 does not match y_zero_point type UINT8". The same model at
# opset 20 runs. At opset 21 it runs with ORT_ENABLE_BASIC, or with the entry
# session.qdqisint8allowed = 1 of the session's configuration.
#
# On other processors int8 stays int8, so this script has nothing to show there.
#
# Output:
#
#   opset 20: default runs, ORT_ENABLE_BASIC runs, qdqisint8allowed runs
#   opset 21: default refused, ORT_ENABLE_BASIC runs, qdqisint8allowed runs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import platform
import sys

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

if platform.machine() != "x86_64":
    print("nothing to show: the processor is not x86-64")
    sys.exit()
rng = np.random.default_rng(0)
onnxruntime.set_default_logger_severity(4)
node, value = helper.make_node, helper.make_tensor_value_info
LEVELS = onnxruntime.GraphOptimizationLevel
constants = {"s": np.float32(0.03), "z": np.int8(0), "ws": np.float32(0.01),
             "w": rng.normal(0, 0.2, (32, 16)).astype(np.float32),
             "b": rng.normal(size=16).astype(np.float32)}
graph = helper.make_graph(
    [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
     node("DequantizeLinear", ["q", "s", "z"], ["d"]),
     node("QuantizeLinear", ["w", "ws", "z"], ["wq"]),
     node("DequantizeLinear", ["wq", "ws", "z"], ["wd"]),
     node("MatMul", ["d", "wd"], ["t"]), node("Add", ["t", "b"], ["y"])],
    "g", [value("x", 1, [2, 5, 32])], [value("y", 1, [2, 5, 16])],
    [numpy_helper.from_array(v, k) for k, v in constants.items()])
x = rng.normal(size=(2, 5, 32)).astype(np.float32)


def attempt(opset, level, **entries):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    for key, text in entries.items():
        options.add_session_config_entry("session." + key, text)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    except Exception as error:
        return "refused" if "output_dtype INT8" in str(error) else str(error)
    return "runs"


seen = []
for opset in 20, 21:
    seen.append([attempt(opset, LEVELS.ORT_ENABLE_ALL), attempt(opset, LEVELS.ORT_ENABLE_BASIC),
                 attempt(opset, LEVELS.ORT_ENABLE_ALL, qdqisint8allowed="1")])
    print("opset {}: default {}, ORT_ENABLE_BASIC {}, qdqisint8allowed {}".format(
        opset, *seen[-1]))
if seen != [["runs"] * 3, ["refused", "runs", "runs"]]:
    sys.exit(f"changed: {seen}")
EOF
