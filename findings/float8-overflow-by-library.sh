#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A number beyond the range becomes the largest float8 in onnx, and NaN or infinity in numpy with ml_dtypes.
#
# Seen with onnx 1.23.2, on which ml_dtypes 0.6.0 rests, and onnxruntime 1.31.1 (CPU provider).
#
# onnx.numpy_helper reads float8 into numpy arrays of ml_dtypes' types, so a script that quantizes weights divides
# by a scale and calls astype. What is beyond the largest number saturates in a Cast of ONNX and in
# helper.make_tensor, both by default, and becomes NaN (float8e4m3fn, both "fnuz" types) or
# infinity (float8e5m2) with astype. One number that is more than half a step above the largest, as a scale from
# a percentile or one rounded down to a power of two makes it, ends in a weight that is NaN, and with it
# each output that reads it. In
# float4e2m1, which has no NaN, astype makes -0 of one.
#
# Output (1e6, 455 and 470, cast to the type and back; onnxruntime agrees with Cast):
#
#   FLOAT8E4M3FN: Cast and make_tensor 448 448 448 - astype nan 448.0 nan
#   FLOAT8E4M3FNUZ: Cast and make_tensor 240 240 240 - astype nan nan nan
#   FLOAT8E5M2: Cast and make_tensor 57344 448 448 - astype inf 448.0 448.0
#   FLOAT8E5M2FNUZ: Cast and make_tensor 57344 448 448 - astype nan 448.0 448.0
#   FLOAT4E2M1: NaN becomes -0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python -W ignore - <<'EOF'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
VALUES = np.array([1e6, 455, 470], np.float32)
nan, inf = np.nan, np.inf
EXPECTED = {"FLOAT8E4M3FN": ([448, 448, 448], [nan, 448, nan]),
            "FLOAT8E4M3FNUZ": ([240, 240, 240], [nan, nan, nan]),
            "FLOAT8E5M2": ([57344, 448, 448], [inf, 448, 448]),
            "FLOAT8E5M2FNUZ": ([57344, 448, 448], [nan, 448, 448])}


def make_model(kind):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("Cast", ["x"], ["c"], to=kind), node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)],
        "g", [value("x", 1, VALUES.shape)], [value("y", 1, VALUES.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    checker.check_model(model, full_check=True)
    return model


changed = []
for name, (saturated, overflowed) in EXPECTED.items():
    kind = getattr(TensorProto, name)
    model = make_model(kind)
    rows = [ReferenceEvaluator(model).run(None, {"x": VALUES})[0],
            numpy_helper.to_array(helper.make_tensor("t", kind, VALUES.shape, VALUES)).astype(np.float32),
            onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": VALUES})[0]]
    plain = VALUES.astype(helper.tensor_dtype_to_np_dtype(kind)).astype(np.float32)
    print(f"{name}: Cast and make_tensor", *rows[0].astype(int), "- astype", *plain)
    if any(not np.array_equal(row, np.float32(saturated)) for row in rows) or \
            not np.array_equal(plain, np.float32(overflowed), equal_nan=True):
        changed.append(name)
four = helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT4E2M1)
made = np.float32([nan]).astype(four).astype(np.float32)[0]
print("FLOAT4E2M1: NaN becomes", made)
if made != 0:
    changed.append("FLOAT4E2M1")
if changed:
    sys.exit(f"changed: {changed}")
EOF
