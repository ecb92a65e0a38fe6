#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A QuantizeLinear whose scale has another type than its input is valid, loads, and fails in its first run.
#
# Seen with onnx 1.23.2, onnxruntime 1.31.1 (CPU provider) and OpenVINO 2026.4.1 (CPU plugin).
#
# Up to opset 22 the scale has the type of the input. From opset 23 on "x and y_scale are allowed to have
# different types", so that float32 activations can have scales of float16. The checker and the shape
# inference of onnx take such a model, its reference and OpenVINO compute it. ONNX Runtime opens the session
# and fails when the node runs, although it says that it knows opset 23 to 26, and although a
# DequantizeLinear with output_dtype does the other half. A check that a model loads is not enough to find
# it. A Cast of the scale, or of the input, in front of the node avoids it.
#
# Output (QuantizeLinear, then DequantizeLinear with output_dtype float32):
#
#   scale float: reference runs, OpenVINO runs, onnxruntime loads, runs
#   scale float16: reference runs, OpenVINO runs, onnxruntime loads, fails to run
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

import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


def make_model(opset, kind):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
         node("DequantizeLinear", ["q", "s", "z"], ["y"], output_dtype=TensorProto.FLOAT)],
        "g", [value("x", 1, X.shape)], [value("y", 1, X.shape)],
        [helper.make_tensor("s", kind, [], [0.0625]), numpy_helper.from_array(np.int8(0), "z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    checker.check_model(model, full_check=True)
    return model


real = np.clip(np.rint(X / 0.0625), -128, 127) * 0.0625
changed = []
for name, expected in (("FLOAT", "loads, runs"), ("FLOAT16", "loads, fails to run")):
    model = make_model(23, getattr(TensorProto, name))
    text = model.SerializeToString()
    core = openvino.Core()
    others = [ReferenceEvaluator(model).run(None, {"x": X})[0],
              core.compile_model(core.read_model(text), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]]
    session = onnxruntime.InferenceSession(text)
    try:
        seen = "loads, " + ("runs" if np.array_equal(session.run(None, {"x": X})[0], real) else "is wrong")
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        seen = "loads, fails to run"
    words = ["runs" if np.array_equal(other, real) else "is wrong" for other in others]
    print(f"scale {name.lower()}: reference {words[0]}, OpenVINO {words[1]}, onnxruntime {seen}")
    if seen != expected or words != ["runs", "runs"]:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
