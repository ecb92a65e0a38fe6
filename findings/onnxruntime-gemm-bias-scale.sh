#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The scale of a Gemm's quantized bias has no effect: onnxruntime takes another one.
#
# Seen with onnxruntime 1.31.1, CPU provider, default optimizations.
#
# A bias of int32 is dequantized by the scale that the file gives. onnxruntime's integer kernels add the
# integers to sums whose unit is the scale of the input times that of the weight, so they fit only where
# the bias has that product as its scale. For a Conv the optimizer compares the two, and leaves the bias
# in float where they differ by more than a hundredth (pull request 28229). For a Gemm it compares
# nothing: a bias with twice the scale comes out half as large, one with a tenth ten times as large.
# Biases with a scale of their own come from quantize_static for a Gemm with beta, and from tools that
# give the bias the scale that suits it best. OpenVINO, and onnxruntime without optimizations, compute
# what is written.
#
# Output (dB against numpy, by the bias scale as a multiple of the product):
#
#   Conv: 1 99, 1.02 99, 2 99, 0.1 99
#   Gemm: 1 99, 1.02 33, 2 6, 0.1 -8
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
node, value = helper.make_node, helper.make_tensor_value_info
SCALES = {"s": np.float32(6 / 255), "ws": np.float32(0.015), "t": np.float32(0.15)}


def make_model(op, factor):
    conv = op == "Conv"
    weight = rng.integers(-63, 64, (8, 16, 3, 3) if conv else (16, 8)).astype(np.int8)
    bias_scale = np.float32(factor) * SCALES["s"] * SCALES["ws"]
    constants = SCALES | {
        "z": np.uint8(128), "w": weight, "wz": np.int8(0), "bs": bias_scale,
        "b": np.rint(5 * rng.normal(size=8) / bias_scale).astype(np.int32)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
             node("DequantizeLinear", ["b", "bs"], ["bd"]), node(op, ["d", "wd", "bd"], ["o"]),
             node("QuantizeLinear", ["o", "t", "z"], ["oq"]),
             node("DequantizeLinear", ["oq", "t", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 16, 5, 5] if conv else [4, 16])],
                              [value("y", 1, [1, 8, 3, 3] if conv else [4, 8])],
                              [numpy_helper.from_array(np.asarray(v), k)
                               for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    checker.check_model(model, full_check=True)
    return model, constants


def literal(op, x, c):
    """What the operators of the file say, in numpy."""
    def rounded(array, scale):
        return (np.clip(np.rint(array / scale) + 128, 0, 255) - 128) * scale.astype(float)

    data, weight = rounded(x, c["s"]), c["w"] * c["ws"].astype(float)
    bias = c["b"] * c["bs"].astype(float)
    if op == "Gemm":
        return rounded(data @ weight + bias, c["t"])
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(2, 3))
    return rounded(np.einsum("ncijkl,mckl->nmij", windows, weight) + bias[:, None, None], c["t"])


changed = []
for op in "Conv", "Gemm":
    seen = []
    for factor in 1, 1.02, 2, 0.1:
        model, constants = make_model(op, factor)
        x = rng.normal(size=[d.dim_value for d in
                             model.graph.input[0].type.tensor_type.shape.dim]).astype(np.float32)
        real = literal(op, x, constants)
        made = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
        seen.append(min(10 * np.log10((real ** 2).sum() / ((real - made) ** 2).sum()), 99))
    print("{}: 1 {:.0f}, 1.02 {:.0f}, 2 {:.0f}, 0.1 {:.0f}".format(op, *seen))
    if seen[0] < 50 or (op == "Conv") != (min(seen[2:]) > 50) or (op == "Gemm" and seen[2] > 15):
        changed.append(op)
if changed:
    sys.exit(f"changed: {changed}")
EOF
