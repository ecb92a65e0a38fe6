#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The reference of the standard computes four operators of older opsets by other rules than theirs.
#
# Seen with onnx 1.23.2, onnx.reference.ReferenceEvaluator.
#
# Whoever doubts a runtime asks the reference, and it is wrong about older models, without a message:
#
# - Softmax, LogSoftmax and Hardmax below opset 13 flatten their input at `axis`; the reference has but
#   one implementation, that of opset 13, which does not;
# - a BatchNormalization of opset 9 to 13 with one output is for inference. The reference takes it for
#   training and mixes the mean and the variance of the batch into those of the file, because it asks
#   for a momentum, which has a default (pull request 8442 is open). PyTorch wrote opset 9 for years;
# - of DequantizeLinear there is nothing below opset 19, which is at least an error, while its
#   QuantizeLinear of opset 10 runs.
#
# Output (the largest difference from numpy):
#
#   Softmax, opset 11: onnxruntime 0.00, the reference 0.55
#   Softmax, opset 13: onnxruntime 0.00, the reference 0.00
#   LogSoftmax, opset 11: onnxruntime 0.00, the reference 2.20
#   LogSoftmax, opset 13: onnxruntime 0.00, the reference 0.00
#   Hardmax, opset 11: onnxruntime 0.00, the reference 1.00
#   Hardmax, opset 13: onnxruntime 0.00, the reference 0.00
#   BatchNormalization, opset 9: onnxruntime 0.00, the reference 0.22
#   BatchNormalization, opset 13: onnxruntime 0.00, the reference 0.22
#   BatchNormalization, opset 15: onnxruntime 0.00, the reference 0.00
#   DequantizeLinear, opset 13: No implementation for operator 'DequantizeLinear' domain ''
#   DequantizeLinear, opset 19: 0.0
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
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4)).astype(np.float32)
SCALE, BIAS, MEAN, VARIANCE = rng.uniform(0.5, 2, (4, 3)).astype(np.float32)


def make_model(op, opset, constants, kind=1, **attributes):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *constants], ["y"], **attributes)], "g",
        [value("x", kind, X.shape)], [value("y", 1, X.shape)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              ir_version=7 if opset < 15 else 9)
    checker.check_model(model, full_check=True)
    return model


def compute(op, opset):
    """Computes an operator in float64, by the text of its version."""
    x = X.astype(np.float64)
    if op == "BatchNormalization":
        scale, bias, mean, variance = (v[:, None] for v in (SCALE, BIAS, MEAN, VARIANCE))
        return (x - mean) / np.sqrt(variance + 1e-5) * scale + bias
    rows = x.reshape(2, 12) if opset < 13 else x
    powers = np.exp(rows)
    return {"Softmax": powers / powers.sum(1, keepdims=True),
            "LogSoftmax": rows - np.log(powers.sum(1, keepdims=True)),
            "Hardmax": rows == rows.max(1, keepdims=True)}[op].reshape(x.shape)


changed = []
for op, opset, is_right in (
        ("Softmax", 11, False), ("Softmax", 13, True), ("LogSoftmax", 11, False),
        ("LogSoftmax", 13, True), ("Hardmax", 11, False), ("Hardmax", 13, True),
        ("BatchNormalization", 9, False), ("BatchNormalization", 13, False),
        ("BatchNormalization", 15, True)):
    normalizes = op == "BatchNormalization"
    constants = {"s": SCALE, "b": BIAS, "m": MEAN, "v": VARIANCE} if normalizes else {}
    model = make_model(op, opset, constants, **({} if normalizes else {"axis": 1}))
    real = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})[0]
    made = ReferenceEvaluator(model).run(None, {"x": X})[0]
    off = [float(np.abs(a - compute(op, opset)).max()) for a in (real, made)]
    print(f"{op}, opset {opset}: onnxruntime {off[0]:.2f}, the reference {off[1]:.2f}")
    if off[0] > 0.001 or (off[1] < 0.001) != is_right or 0.001 < off[1] < 0.1:
        changed.append((op, opset))
for opset in (13, 19):
    model = make_model("DequantizeLinear", opset, {"s": np.float32(0.5), "z": np.uint8(3)}, kind=2)
    x = rng.integers(0, 256, X.shape).astype(np.uint8)
    try:
        made = ReferenceEvaluator(model).run(None, {"x": x})[0]
        answer = float(np.abs(made - (x - 3.0) * 0.5).max())
    except RuntimeError as error:
        answer = str(error).split(" and version")[0]
    print(f"DequantizeLinear, opset {opset}: {answer}")
    if (answer == 0) != (opset == 19):
        changed.append(("DequantizeLinear", opset))
if changed:
    sys.exit(f"changed: {changed}")
EOF
