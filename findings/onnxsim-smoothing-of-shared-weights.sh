#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four exact transforms of onnxsim change what a model computes where two nodes read one weight.
#
# Seen with onnxsim 0.8.1, onnx 1.23.2, onnxruntime 1.31.1.
#
# SmoothQuant and its relatives divide the inputs of a layer by factors and multiply the rows of its weight by them.
# Before anything is rounded the model computes what it did. In onnxsim that is so where each layer has a weight of
# its own. Two layers of one weight, as in networks that share layers, give noise, in float already. With a table that
# a Gather and the last layer read, as in most small language models, the model is 20 dB from what it was, and that of
# apply_rptq_reorder is noise, too. Nothing is said.
#
# Output (dB of the transformed float model, which should be above 100):
#
#   apply_smoothquant: own weights 132, two layers of one weight -16, table and last layer 20
#   apply_fptq: own weights 133, two layers of one weight -16, table and last layer 20
#   apply_outlier_suppression_plus: own weights 124, two layers of one weight -12, table and last layer 9
#   apply_rptq_reorder: own weights 127, two layers of one weight -1, table and last layer -1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnxsim==0.8.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
import onnxsim
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)
node, value = helper.make_node, helper.make_tensor_value_info


def weight(*shape):
    return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)


def make(nodes, constants, kind, shape, made):
    """Returns a model of float weights."""
    graph = helper.make_graph(nodes, "g", [value("x", kind, shape)], [value("y", 1, made)],
                              [numpy_helper.from_array(array, name) for name, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def chain(first, second):
    return [node("MatMul", ["x", first], ["a"], "first"), node("Relu", ["a"], ["b"]),
            node("MatMul", ["b", second], ["y"], "second")]


def numbers():
    return rng.normal(size=(16, 256)).astype(np.float32)


def tokens():
    return rng.integers(0, 300, 16)


MODELS = {
    "own weights": (make(chain("v", "w"), {"v": weight(256, 256), "w": weight(256, 256)}, 1, [16, 256], [16, 256]),
                    numbers),
    "two layers of one weight": (make(chain("w", "w"), {"w": weight(256, 256)}, 1, [16, 256], [16, 256]), numbers),
    "table and last layer": (make(
        [node("Gather", ["w", "x"], ["a"]), node("Relu", ["a"], ["b"]),
         node("Gemm", ["b", "w"], ["y"], "last", transB=1)], {"w": weight(300, 64)}, 7, [16], [16, 300]), tokens)}


def run(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].astype(np.float64)


changed = []
for name in ("apply_smoothquant", "apply_fptq", "apply_outlier_suppression_plus", "apply_rptq_reorder"):
    found = {}
    for text, (model, sample) in MODELS.items():
        made = getattr(onnxsim, name)(model, calibration_data=[{"x": sample()} for _ in range(8)])
        made = made[0] if isinstance(made, tuple) else made
        x = sample()
        real = run(model, x)
        found[text] = 10 * np.log10(np.sum(real ** 2) / max(np.sum((run(made, x) - real) ** 2), 1e-30))
    print(f"{name}: " + ", ".join(f"{text} {figure:.0f}" for text, figure in found.items()))
    if any((figure > 90) != (text == "own weights") for text, figure in found.items()):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
