#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A float16 QuantizeLinear of 16 bits is 13 dB apart in the standard and in runtimes, which ignore `precision`.
#
# Seen with onnx 1.23.2 (ReferenceEvaluator), onnxruntime 1.31.1 (CPU provider), OpenVINO 2026.4.1.
#
# The standard divides in the type of the scale. For float16 that leaves 11 bits of a quotient, so that the
# upper half of int16 has steps of 16 integers, and a float16 model with activations of 16 bits has the
# accuracy of 14. The reference does that. Both runtimes divide in float32, and are better than the
# standard. Opset 23 has an attribute for it, `precision`: with float32 the reference agrees with the
# runtimes, and with float16 the runtimes do what they do without. With 8 bits and less they seldom differ,
# and by one integer. Who compares a runtime with the reference takes this for an error of the runtime.
#
# Output (largest distance from the exact quotients in integers, 1000 numbers):
#
#   int16, no attribute: reference 7.86, onnxruntime 0.50, OpenVINO 0.50
#   uint16, no attribute: reference 7.86, onnxruntime 0.50, OpenVINO 0.50
#   int16, precision float32: reference 0.50, onnxruntime 0.50, OpenVINO 0.50
#   int16, precision float16: reference 7.86, onnxruntime 0.50, OpenVINO 0.50
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

node, value = helper.make_node, helper.make_tensor_value_info
x = np.random.default_rng(0).normal(size=1000).astype(np.float16)


def make(dtype, precision):
    """Returns a model that quantizes float16 and writes the integers as float32, and its scale."""
    middle = 0 if dtype == "int16" else 32768
    scale = np.float16(np.abs(x).max() / 32767)
    attributes = {} if precision is None else {"precision": precision}
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes),
         node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)],
        "g", [value("x", TensorProto.FLOAT16, x.shape)], [value("y", TensorProto.FLOAT, x.shape)],
        [numpy_helper.from_array(np.asarray(scale), "s"), numpy_helper.from_array(np.array(middle, dtype), "z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    checker.check_model(model, full_check=True)
    exact = np.clip(x.astype(np.float64) / np.float64(scale), -32768, 32767) + middle
    return model, exact


def by_onnxruntime(model):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


def by_openvino(model):
    core = openvino.Core()
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU")([x])[0]


changed = []
for dtype, precision, text, coarse in (
        ("int16", None, "no attribute", True), ("uint16", None, "no attribute", True),
        ("int16", TensorProto.FLOAT, "precision float32", False),
        ("int16", TensorProto.FLOAT16, "precision float16", True)):
    model, exact = make(dtype, precision)
    off = [np.abs(made - exact).max() for made in (
        ReferenceEvaluator(model).run(None, {"x": x})[0], by_onnxruntime(model), by_openvino(model))]
    print(f"{dtype}, {text}: reference {off[0]:.2f}, onnxruntime {off[1]:.2f}, OpenVINO {off[2]:.2f}")
    if (off[0] > 0.51) != coarse or max(off[1:]) > 0.51:
        changed.append(f"{dtype}, {text}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
