#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After quantize_dynamic, a sample's result depends on the other samples of its batch.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization and its CPU kernels.
#
# DynamicQuantizeLinear, which ONNX defines, takes one scale from the range of the whole tensor. Behind
# quantize_dynamic a row of a batch therefore shares its scale with all other rows. A row beside one
# with numbers a hundred times as large keeps 5 dB of its 37 dB. A server that joins the requests of
# several users into batches gives each an answer that the others decide about, and no test with batches
# of one sees it. A 4-bit weight alone (MatMulNBits with accuracy level 4) also rounds its activations,
# but has a scale for each block of each row, and gives the same bits in any batch.
#
# Output (dB of the same row against float):
#
#   quantize_dynamic: alone 37.3, beside a row of 100 times its size 5.3
#   MatMulNBits: alone and beside it the same bits: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)
node, value = helper.make_node, helper.make_tensor_value_info
ROW = rng.normal(size=(1, 64)).astype(np.float32)
BATCH = np.concatenate([ROW, 100 * rng.normal(size=(1, 64)).astype(np.float32)])
WEIGHT = rng.normal(size=(64, 16)).astype(np.float32)


def open_session(one, constants):
    graph = helper.make_graph([one], "g", [value("x", 1, ["n", 64])], [value("y", 1, ["n", 16])],
                              [numpy_helper.from_array(a, k) for k, a in constants.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    onnx.save(model, "m.onnx")
    if one.op_type == "MatMul":
        quantize_dynamic("m.onnx", "m.onnx")
    return onnxruntime.InferenceSession("m.onnx")


def run(session, x):
    return session.run(None, {"x": x})[0][:1]


real = ROW @ WEIGHT
dynamic = open_session(node("MatMul", ["x", "w"], ["y"], "product"), {"w": WEIGHT})
db = [10 * np.log10((real ** 2).sum() / ((real - run(dynamic, x)) ** 2).sum())
      for x in (ROW, BATCH)]
blocks = open_session(
    node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=64, N=16, bits=4,
         block_size=32, accuracy_level=4),
    {"w": rng.integers(0, 256, (16, 2, 16)).astype(np.uint8),
     "s": rng.uniform(0.1, 0.2, (16, 2)).astype(np.float32)})
is_same = np.array_equal(run(blocks, ROW), run(blocks, BATCH))
print("quantize_dynamic: alone {:.1f}, beside a row of 100 times its size {:.1f}".format(*db))
print("MatMulNBits: alone and beside it the same bits:", is_same)
if db[1] > db[0] - 15:
    sys.exit("changed: a row does not depend on its neighbours")
EOF
