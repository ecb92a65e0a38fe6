#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pairs around a layer make ONNX Runtime quantize its float weight and its float bias.
#
# Seen with onnxruntime 1.31.1, CPU provider, default optimizations and ORT_ENABLE_BASIC.
#
# A Conv has a Q/DQ pair on its input and one on its output. Its bias is float32, or its weight is. A
# model like that asks for a float bias, or for a float weight. When the session is opened, the
# optimizer (WeightBiasQuantization) replaces both by integers of its own, without a message:
#
# - The weight gets one int8 scale for the whole tensor. One weight of 30 among many of 0.1 leaves
#   9.5 dB, where the model as its operators are defined has 36 dB.
# - The bias gets int32 with the scale of the input times that of the weight, whether it fits or not.
#   A bias of 5000 does not fit for a small scale: the sum overflows, and the output is 0.
#
# With the optimizations disabled, both models compute what they say.
#
# Output, on x86-64 (another processor may overflow to the other end):
#
#   float bias: as defined [0, 40, 480, 5000], by default [0, 0, 0, 0]
#   float weight: 36.0 dB as defined, 9.5 dB by default
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
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)
LEVELS = onnxruntime.GraphOptimizationLevel


def make_model(weight, middle, output_scale, output_zero, **constants):
    """Returns a Conv with pairs around it; `middle` are the nodes that make its weight."""
    node = helper.make_node
    constants |= {"so": np.float32(output_scale), "zo": np.uint8(output_zero)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["d"]), *middle,
             node("Conv", ["d", weight] + ["b"] * ("b" in constants), ["c"]),
             node("QuantizeLinear", ["c", "so", "zo"], ["cq"]),
             node("DequantizeLinear", ["cq", "so", "zo"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 4, 8, 8])], [value("y", 1, None)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def run(model, x, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(model, options).run(None, {"x": x})[0]


def sqnr_db(real, made):
    return 10 * np.log10((real ** 2).sum() / ((real - made) ** 2).sum())


bias = make_model(
    "wd", [helper.make_node("DequantizeLinear", ["w", "ws"], ["wd"])], 40, 0,
    s=np.float32(1e-2 / 255), z=np.uint8(0), ws=np.float32(1e-9),
    w=rng.integers(-127, 128, (4, 4, 1, 1)).astype(np.int8), b=np.float32([1, 50, 500, 5000]))
x = rng.uniform(0, 1e-2, (1, 4, 8, 8)).astype(np.float32)
defined, default = (run(bias, x, level)[0, :, 0, 0]
                    for level in (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL))
print("float bias: as defined", defined.astype(int).tolist(), end=", by default ")
print(default.astype(int).tolist())

weights = rng.normal(0, 0.1, (4, 4, 3, 3)).astype(np.float32)
weights[0, 0, 0, 0] = 30
weight = make_model("w", [], 6 / 255, 128, s=np.float32(8 / 255), z=np.uint8(128), w=weights)
x = rng.normal(size=(1, 4, 8, 8)).astype(np.float32)
windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), axis=(1, 2))
real = np.einsum("cyxij,ocij->oyx", windows, weights)[1:]  # The channels without the large one.
db = [sqnr_db(real, run(weight, x, level)[0, 1:])
      for level in (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL)]
print(f"float weight: {db[0]:.1f} dB as defined, {db[1]:.1f} dB by default")

if np.abs(defined - default).max() < 1000 or db[1] > db[0] - 15:
    sys.exit("changed: a float bias or weight behind a pair stays as it is")
EOF
