#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Weights with a scale for each input channel of a Gemm or MatMul are multiplied by other scales.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32, x86-64.
#
# The axis of a DequantizeLinear may be any axis of the weight, and the axis that a product sums over
# is one of them: tools that take the same axis for each weight write such files for Gemms without transB
# and for MatMuls. OpenVINO loads them, square or not, and answers other numbers without a message, for
# weights of 8 and 4 bits. One scale with a zero point for each input channel is as wrong. The float
# weights of the same values, a scale for each output channel, and a Conv with a scale for each input
# channel are right, and so are blocks along the summed axis. Blocks along the other axis are refused.
#
# Output (dB against the literal numbers, a weight of 96 by 64 in front of a MatMul):
#
#   int8, a scale for each output channel: 168
#   int8, a scale for each input channel: 6
#   uint8, a scale for each input channel: 6
#   int4, a scale for each input channel: 1
#   int8, zero points for each input channel alone: 28
#   int8, the same scales as float weights: 167
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 openvino==2026.4.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np
import openvino
from onnx import checker, helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
ROWS, COLUMNS = 96, 64
x = np.random.default_rng(0).normal(size=(2, ROWS)).astype(np.float32)


def decibels(name, axis, one_scale=False, float_weight=False):
    """Returns the ratio of signal to noise of a MatMul with such a weight, in dB."""
    rng = np.random.default_rng(1)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    limits = ml_dtypes.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    weight = rng.integers(low, high + 1, size=(ROWS, COLUMNS)).astype(dtype)
    length = (ROWS, COLUMNS)[axis]
    scales = rng.uniform(0.01, 0.05, size=length).astype(np.float32)
    if one_scale:
        scales[:] = scales[0]
    middle = (low + high + 1) // 2
    zero = (middle + rng.integers(-3, 4, size=length)).astype(dtype)
    shape = (-1, 1) if axis == 0 else (1, -1)
    floats = (weight.astype(np.float32) - zero.astype(np.float32).reshape(shape)) * scales.reshape(shape)
    nodes = [node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=axis), node("MatMul", ["x", "d"], ["y"])]
    constants = {"w": weight, "s": scales, "z": zero}
    if float_weight:
        nodes, constants = [node("MatMul", ["x", "d"], ["y"])], {"d": floats}
    graph = helper.make_graph(nodes, "g", [value("x", 1, x.shape)], [value("y", 1, [2, COLUMNS])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                  {"INFERENCE_PRECISION_HINT": "f32"})
    real, made = x @ floats, compiled([x])[0]
    return 10 * np.log10(np.sum(real ** 2) / max(np.sum((made - real) ** 2), 1e-12))


changed = []
for name, axis, one_scale, float_weight, text in (
        ("int8", 1, False, False, "a scale for each output channel"),
        ("int8", 0, False, False, "a scale for each input channel"),
        ("uint8", 0, False, False, "a scale for each input channel"),
        ("int4", 0, False, False, "a scale for each input channel"),
        ("int8", 0, True, False, "zero points for each input channel alone"),
        ("int8", 0, False, True, "the same scales as float weights")):
    figure = decibels(name, axis, one_scale, float_weight)
    print(f"{name}, {text}: {figure:.0f}")
    if (figure < 35) != (axis == 0 and not float_weight):
        changed.append(f"{name}, {text}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
