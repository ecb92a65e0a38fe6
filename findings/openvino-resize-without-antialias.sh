#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO ignores the attribute antialias of Resize.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# Resize has the attribute antialias from opset 18 on: when it makes an image smaller, its filter gets
# wider. PyTorch's interpolate(antialias=True) is exported so, for example in preprocessing inside a
# model. OpenVINO loads the node without a message and computes it without the filter: the two outputs,
# with antialias 0 and 1, are the same bits. onnxruntime and the reference implementation of onnx agree
# with each other on both. Nothing is quantized here: whoever compares a quantized model in OpenVINO
# with its float model in onnxruntime blames the quantization.
#
# Output (dB against the reference, images of noise at 0.4 of their size):
#
#   linear, antialias 0: onnxruntime 127, OpenVINO 127
#   linear, antialias 1: onnxruntime 133, OpenVINO -5
#   cubic, antialias 0: onnxruntime 121, OpenVINO 121
#   cubic, antialias 1: onnxruntime 118, OpenVINO -6
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
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

X = np.random.default_rng(0).normal(size=(1, 3, 20, 20)).astype(np.float32)


def compare(mode, antialias):
    """Returns the dB of onnxruntime and of OpenVINO, and OpenVINO's output."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, antialias=antialias)], "g",
        [value("x", 1, X.shape)], [value("y", 1, [1, 3, 8, 8])],
        [numpy_helper.from_array(np.float32([1, 1, 0.4, 0.4]), "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    real = ReferenceEvaluator(model).run(None, {"x": X})[0]
    text = model.SerializeToString()
    core = openvino.Core()
    made = [onnxruntime.InferenceSession(text).run(None, {"x": X})[0],
            core.compile_model(core.read_model(text), "CPU",
                               {"INFERENCE_PRECISION_HINT": "f32"})([X])[0]]
    return [10 * np.log10((real ** 2).sum() / ((real - m) ** 2).sum()) for m in made] + [made[1]]


changed = []
for mode in "linear", "cubic":
    outputs = []
    for antialias in 0, 1:
        first, second, output = compare(mode, antialias)
        outputs.append(output)
        print(f"{mode}, antialias {antialias}: onnxruntime {first:.0f}, OpenVINO {second:.0f}")
        if first < 90 or (second > 60) == bool(antialias):
            changed.append(f"{mode}, antialias {antialias}")
    if not np.array_equal(*outputs):
        changed.append(f"{mode}: antialias has an effect")
if changed:
    sys.exit(f"changed: {changed}")
EOF
