#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same 4-bit table without zero points means other numbers in each of four operators.
#
# Seen with onnxruntime 1.31.1, CPU provider.
#
# Zero points are an optional input of all operators that read 4-bit integers. In ONNX's own
# DequantizeLinear a zero point that is left out is 0, also for uint4. ONNX Runtime's MatMulNBits takes
# 8 for it. Its GatherBlockQuantized takes 8 where the integers are packed into uint8, and 0 where they
# have the type uint4, although the bytes of the file are the same. So a change of the container's type
# alone moves each number by 8 scales, and the model still loads and runs.
#
# Output (the integer 3 with the scale 1 and no zero point):
#
#   DequantizeLinear, uint4: 3
#   GatherBlockQuantized, uint4: 3
#   GatherBlockQuantized, packed into uint8: -5
#   MatMulNBits, packed into uint8: -5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
TABLE = np.full((8, 32), 3)
PACKED = (TABLE[:, 0::2] | TABLE[:, 1::2] << 4).astype(np.uint8)
UINT4 = TABLE.astype(ml_dtypes.uint4)
SCALES = np.ones((8, 1), np.float32)
INDEX = value("i", TensorProto.INT64, [1])
GATHER = {"domain": "com.microsoft", "gather_axis": 0, "quantize_axis": 1, "block_size": 32}


def first_number(one, table, scales, given, feed):
    graph = helper.make_graph([one], "g", given, [value("y", 1, None)],
                              [numpy_helper.from_array(table, "t"),
                               numpy_helper.from_array(scales, "s")])
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return float(session.run(None, feed)[0].flat[0])


index = {"i": np.array([0])}
one_hot = np.eye(1, 32, dtype=np.float32)
seen = {
    "DequantizeLinear, uint4": first_number(
        node("DequantizeLinear", ["t", "s"], ["y"], axis=1, block_size=32), UINT4, SCALES, [], {}),
    "GatherBlockQuantized, uint4": first_number(
        node("GatherBlockQuantized", ["t", "i", "s"], ["y"], **GATHER), UINT4, SCALES, [INDEX],
        index),
    "GatherBlockQuantized, packed into uint8": first_number(
        node("GatherBlockQuantized", ["t", "i", "s"], ["y"], bits=4, **GATHER), PACKED, SCALES,
        [INDEX], index),
    "MatMulNBits, packed into uint8": first_number(
        node("MatMulNBits", ["x", "t", "s"], ["y"], domain="com.microsoft", K=32, N=8, bits=4,
             block_size=32), PACKED.reshape(8, 1, 16), SCALES, [value("x", 1, [1, 32])],
        {"x": one_hot}),
}
for name, number in seen.items():
    print(f"{name}: {number:g}")
if [round(number, 1) for number in seen.values()] != [3, 3, -5, -5]:
    sys.exit(f"changed: {seen}")
EOF
