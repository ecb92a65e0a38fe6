#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Microscaling weights of opset 24: one runtime refuses the file, the other keeps them compressed.
#
# Seen with onnx 1.23.2, onnxruntime 1.31.1 (CPU provider) and OpenVINO 2026.4.1 (CPU plugin).
#
# Since opset 24 a DequantizeLinear may have scales of float8e8m0, so that float4e2m1 elements with one
# power of two for each block of 32 (MXFP4) are plain ONNX. The checker of onnx accepts such a model.
# onnxruntime lists opset 24 as supported and does not open it: DequantizeLinear is "not implemented"
# for float4e2m1, whatever the type of the scale, and for int8 with a scale of float8e8m0. OpenVINO,
# which reads fewer types of ONNX on the whole (no int2, no uint2), opens it and is exact.
#
# Output:
#
#   float4e2m1, scales float8e8m0: checker accepts, onnxruntime refuses, OpenVINO 132 dB
#   float4e2m1, scales float32: checker accepts, onnxruntime refuses, OpenVINO 136 dB
#   int8, scales float8e8m0: checker accepts, onnxruntime refuses, OpenVINO 134 dB
#   uint2, scales float32: checker accepts, onnxruntime runs, OpenVINO refuses
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np
import onnxruntime
import openvino
from onnx import checker, helper, numpy_helper

rng = np.random.default_rng(0)
onnxruntime.set_default_logger_severity(4)
X = rng.normal(size=(4, 128)).astype(np.float32)
POWERS = np.exp2(rng.integers(-4, 4, (4, 64))).astype(np.float32)
CASES = (("float4e2m1", ml_dtypes.float4_e2m1fn, "float8e8m0", "refuses", True),
         ("float4e2m1", ml_dtypes.float4_e2m1fn, "float32", "refuses", True),
         ("int8", np.int8, "float8e8m0", "refuses", True),
         ("uint2", ml_dtypes.uint2, "float32", "runs", False))


def make_model(elements, scales):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("DequantizeLinear", ["w", "s"], ["wd"], axis=0, block_size=32, output_dtype=1),
         node("MatMul", ["x", "wd"], ["y"])],
        "g", [value("x", 1, [4, 128])], [value("y", 1, [4, 64])],
        [numpy_helper.from_array(elements, "w"), numpy_helper.from_array(scales, "s")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


changed = []
for name, kind, scale_name, expected, is_exact in CASES:
    elements = rng.integers(0, 4, (128, 64)).astype(np.float32).astype(kind)
    scales = POWERS.astype(ml_dtypes.float8_e8m0fnu) if scale_name == "float8e8m0" else POWERS
    model = make_model(elements, scales)
    checker.check_model(model, full_check=True)
    real = X.astype(float) @ (elements.astype(float) * np.repeat(POWERS, 32, axis=0))
    try:
        onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})
        first = "runs"
    except Exception as error:
        first = "refuses" if "NOT_IMPLEMENTED" in str(error) else str(error)
    core = openvino.Core()
    try:
        compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                      {"INFERENCE_PRECISION_HINT": "f32",
                                       "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})
        db = 10 * np.log10((real ** 2).sum() / ((real - compiled([X])[0]) ** 2).sum())
        second = f"{db:.0f} dB"
    except RuntimeError:
        db, second = 0, "refuses"
    print(f"{name}, scales {scale_name}: checker accepts, onnxruntime {first}, OpenVINO {second}")
    if first != expected or (db > 100) != is_exact:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
