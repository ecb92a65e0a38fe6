#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ModelOpt leaves each MatMul of a model with an open batch in float32, and calls the result quantized.
#
# Seen with nvidia-modelopt 0.47.0, mode int8, with the onnxruntime-gpu 1.24.4 that it asks for.
#
# ModelOpt leaves a MatMul or a Gemm alone that multiplies one row, as TensorRT gains nothing there. It finds the
# number of rows by running the model, and feeds one row, whatever the data that it was given. So a
# network of dense layers whose batch is open, as exporters write it, stays float32: the file has no pair, is as
# large as before, and the last message says "Quantization process completed". Which layers were left out is
# said at the level "debug" alone. The same layers with the batch stated are quantized, and so they are with
# `calibration_shapes`.
#
# It takes 6 GB of disk.
#
# Output (two MatMuls, 16 rows of data):
#
#   batch of 16: 4 QuantizeLinear
#   open batch: 0 QuantizeLinear, 1.00 times the size
#   open batch, calibration_shapes x:16x256: 4 QuantizeLinear
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    "nvidia-modelopt[onnx]==0.47.0" onnx==1.21.0 torch==2.15.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import io
import os
import sys

import numpy as np
import onnx
from modelopt.onnx.quantization import quantize
from onnx import helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info


def pairs(batch, **options):
    """Returns the number of QuantizeLinear in the result of such a network, and its size over the float one's."""
    rng = np.random.default_rng(1)
    graph = helper.make_graph(
        [node("MatMul", ["x", "v"], ["h"], name="first"), node("Relu", ["h"], ["r"], name="relu"),
         node("MatMul", ["r", "w"], ["y"], name="second")], "g",
        [value("x", 1, [batch, 256])], [value("y", 1, [batch, 64])],
        [numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
         for name, shape in (("v", (256, 128)), ("w", (128, 64)))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "float.onnx")
    with contextlib.redirect_stdout(io.StringIO()):
        quantize("float.onnx", calibration_data={"x": rng.normal(size=(16, 256)).astype(np.float32)},
                 output_path="made.onnx", calibration_eps=["cpu"], high_precision_dtype="fp32", **options)
    made = onnx.load("made.onnx")
    return (sum(item.op_type == "QuantizeLinear" for item in made.graph.node),
            os.path.getsize("made.onnx") / os.path.getsize("float.onnx"))


stated, opened = pairs(16), pairs("N")
shaped = pairs("N", calibration_shapes="x:16x256")
print(f"batch of 16: {stated[0]} QuantizeLinear")
print(f"open batch: {opened[0]} QuantizeLinear, {opened[1]:.2f} times the size")
print(f"open batch, calibration_shapes x:16x256: {shaped[0]} QuantizeLinear")
if not stated[0] or opened[0] or not shaped[0]:
    sys.exit("changed: layers of an open batch")
EOF
