#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO scales the weight of a QLinearConv by input channels, where the file says output channels.
#
# Seen with OpenVINO 2026.4.1, CPU device.
#
# The standard lets the weight of a QLinearConv have a scale for each output channel, and that of a
# QLinearMatMul one for each column. quantize_static(per_channel=True) makes such models with
# QuantFormat.QOperator, and onnxruntime runs them. OpenVINO makes a DequantizeLinear of such a weight
# and forgets its axis, which is 1 then, the input channels. With as many inputs as outputs, as in the
# body of a residual network, the model loads and its scales belong to other weights; with another number
# it does not load. Nor does a QLinearMatMul with more than one scale. A DequantizeLinear of the file's own
# is right.
#
# Output (dB against numpy):
#
#   QLinearConv, 8 to 16 channels, one scale: onnxruntime 99, OpenVINO 99
#   QLinearConv, 8 to 16 channels, a scale for each: onnxruntime 99, OpenVINO does not load
#   QLinearConv, 8 to 8 channels, one scale: onnxruntime 59, OpenVINO 99
#   QLinearConv, 8 to 8 channels, a scale for each: onnxruntime 99, OpenVINO -1
#   QLinearMatMul, 8 to 8 channels, one scale: onnxruntime 99, OpenVINO 99
#   QLinearMatMul, 8 to 8 channels, a scale for each: onnxruntime 99, OpenVINO does not load
#   the same, against numpy with a scale for each input channel: OpenVINO 99
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
from onnx import checker, helper, numpy_helper

rng = np.random.default_rng(0)
F32 = {"INFERENCE_PRECISION_HINT": "f32"}


def make_model(op, channels, size, per_channel, shape=(-1, 1, 1, 1)):
    """Returns a model, its input, and what numpy makes of it with the scales in a shape."""
    conv = op == "QLinearConv"
    x = rng.integers(0, 256, (1, 8, 6, 6) if conv else (5, 8)).astype(np.uint8)
    weight = rng.integers(-63, 64, (channels, 8, size, size) if conv else (8, channels)).astype(np.int8)
    scales = np.geomspace(0.001, 0.1, channels, dtype=np.float32)
    zeros = np.zeros(channels, np.int8)
    if not per_channel:
        scales, zeros = scales[-1], zeros[0]
    constants = {"xs": np.float32(0.02), "xz": np.uint8(128), "w": weight, "ws": scales, "wz": zeros,
                 "ys": np.float32(0.5), "yz": np.uint8(128)}
    a = (x.astype(np.float64) - 128) * np.float32(0.02)
    b = weight * (np.float64(scales).reshape(shape) if conv and per_channel else scales)
    if conv:
        windows = np.lib.stride_tricks.sliding_window_view(a, (size, size), axis=(2, 3))
        real = np.einsum("nchwij,ocij->nohw", windows, b)
    else:
        real = a @ b
    real = np.clip(np.rint(real / 0.5) + 128, 0, 255)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *constants], ["y"])], "g",
        [value("x", 2, x.shape)], [value("y", 2, real.shape)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    return model.SerializeToString(), x, real


def judge(real, run):
    try:
        made = run()
    except RuntimeError:
        return "does not load"
    noise = np.square(made - real).sum()
    return f"{min(99, 10 * np.log10(np.square(real - 128).sum() / max(noise, 1e-9))):.0f}"


answers = {}
for op, channels, size in (("QLinearConv", 16, 3), ("QLinearConv", 8, 3), ("QLinearMatMul", 8, 1)):
    for per_channel in (False, True):
        model, x, real = make_model(op, channels, size, per_channel)
        core = openvino.Core()
        made = [judge(real, lambda: onnxruntime.InferenceSession(model).run(None, {"x": x})[0]),
                judge(real, lambda: core.compile_model(core.read_model(model), "CPU", F32)([x])[0])]
        answers[op, channels, per_channel] = made
        print(f"{op}, 8 to {channels} channels, {'a scale for each' if per_channel else 'one scale'}: "
              f"onnxruntime {made[0]}, OpenVINO {made[1]}")
rng = np.random.default_rng(1)
model, x, real = make_model("QLinearConv", 8, 3, True)
rng = np.random.default_rng(1)
_, _, other = make_model("QLinearConv", 8, 3, True, (1, -1, 1, 1))
made = core.compile_model(core.read_model(model), "CPU", F32)([x])[0]
by_inputs = judge(other, lambda: made)
print(f"the same, against numpy with a scale for each input channel: OpenVINO {by_inputs}")
good = float(by_inputs) > 40 and all(float(a) > 40 for a, _ in answers.values()) and all(
    float(b) > 40 for (_, _, per_channel), (_, b) in answers.items() if not per_channel)
refused = "does not load"
if not good or answers["QLinearConv", 16, True][1] != refused or \
        answers["QLinearMatMul", 8, True][1] != refused or \
        answers["QLinearConv", 8, True][1] == refused or float(answers["QLinearConv", 8, True][1]) > 20:
    sys.exit(f"changed: {answers}")
EOF
