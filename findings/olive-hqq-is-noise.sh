#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Olive's HQQ pass writes the transposed weights of each MatMul: all outputs are noise, and the file grows.
#
# Seen with olive-ai 0.13.0, onnxruntime 1.31.1, CPU.
#
# OnnxHqqQuantization makes a MatMulNBits of each MatMul. Its weight has K rows and N columns, and the node wants N
# rows of blocks along K. The pass packs the matrix as it is, and gives it the shape that the node wants, by which no
# number stays in its place: read as K by N, the file of a square layer has the weights of HQQ. That is so for each
# size that was tried, and for both values of the option axis. Sizes whose groups do not fit end with an error. The
# float weight stays in the file, too, so that it is larger than before. OnnxBlockWiseRtnQuantization, with the same
# options, is right. Both give an output of the model that such a node makes another name.
#
# It takes 7 GB of disk.
#
# Output (dB of outputs against the float model, blocks of 128; size of the file, the float model's is 1; outputs):
#
#   OnnxBlockWiseRtnQuantization, 256 x 64: 20 dB, 0.14, y_Q4
#   OnnxHqqQuantization, 256 x 64: -4 dB, 1.14, y_Q4
#   OnnxHqqQuantization, 1024 x 1024: -3 dB, 1.14, y_Q4
#   OnnxHqqQuantization, 128 x 128: -3 dB, 1.14, y_Q4; its weights read as K x N 20 dB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1 OLIVE_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    olive-ai==0.13.0 onnxruntime==1.31.1 torch==2.15.0 onnx==1.19.1 onnxscript==0.7.2 requests==2.34.2 \
    numpy==2.4.6 || exit 2
export HOME="$folder"
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import glob
import io
import logging
import os
import sys

import numpy as np
import onnx
import onnxruntime
from olive.workflows import run as work
from onnx import helper, numpy_helper

logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)


def run(path, x):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def figure(made, real):
    return 10 * np.log10(np.sum(real.astype(float) ** 2) / np.sum((made.astype(float) - real) ** 2))


changed = []
for name, rows, columns in (("OnnxBlockWiseRtnQuantization", 256, 64), ("OnnxHqqQuantization", 256, 64),
                            ("OnnxHqqQuantization", 1024, 1024), ("OnnxHqqQuantization", 128, 128)):
    weight = (rng.normal(size=(rows, columns)) * 0.05).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="layer")], "g",
        [helper.make_tensor_value_info("x", 1, ["n", rows])], [helper.make_tensor_value_info("y", 1, ["n", columns])],
        [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "float.onnx")
    folder = f"made-{name}-{rows}"
    with contextlib.redirect_stdout(io.StringIO()):
        work({"input_model": {"type": "OnnxModel", "model_path": "float.onnx"}, "output_dir": folder,
              "passes": {"quantize": {"type": name}}, "cache_dir": "cache"})
    path, = glob.glob(folder + "/**/*.onnx", recursive=True)
    x = rng.normal(size=(16, rows)).astype(np.float32)
    made = figure(run(path, x), run("float.onnx", x))
    size = os.path.getsize(path) / os.path.getsize("float.onnx")
    line = f"{name}, {rows} x {columns}: {made:.0f} dB, {size:.2f}, {onnx.load(path).graph.output[0].name}"
    right = made > 15
    if rows == 128:
        parts = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
        packed = parts["w_Q4"].reshape(rows, columns // 2)
        integers = np.stack((packed & 15, packed >> 4), axis=2).reshape(rows, columns)
        turned = figure((integers - parts["w_zero_points"]) * parts["w_scales"], weight)
        line += f"; its weights read as K x N {turned:.0f} dB"
        right = right or turned < 15
    print(line)
    if right != (name != "OnnxHqqQuantization"):
        changed.append(line)
if changed:
    sys.exit(f"changed: {changed}")
EOF
