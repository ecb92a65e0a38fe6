#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenCV adds where a model with pairs subtracts, divides, or takes a maximum.
#
# Seen with opencv-python-headless 5.0.0.93, cv2.dnn.
#
# Where both inputs and the output of an elementwise operator have pairs, OpenCV makes an integer layer
# of it, which knows sums and products. Sub, Div, Pow, Max, Min and Mean become sums, without a message:
# a residual that is subtracted is added, a mask by a minimum is added. Add and Mul are right, and so is
# each operator in the float model, or with pairs on its inputs alone.
#
# Output (dB against numpy, and what the output is closest to):
#
#   Add: 46, closest to Add (46); no pair behind it: 53
#   Mul: 44, closest to Mul (44); no pair behind it: 47
#   Sub: -13, closest to Add (46); no pair behind it: 39
#   Div: -2, closest to Add (46); no pair behind it: 44
#   Pow: 3, closest to Add (46); no pair behind it: 46
#   Max: 3, closest to Add (46); no pair behind it: 51
#   Min: -3, closest to Add (46); no pair behind it: 48
#   Mean: 0, closest to Add (46); no pair behind it: 53
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 opencv-python-headless==5.0.0.93 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import cv2
import numpy as np
from onnx import checker, helper, numpy_helper

rng = np.random.default_rng(0)
A, B = (rng.uniform(0.5, 2, (1, 4, 8, 8)).astype(np.float32) for _ in range(2))
OPERATORS = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Div": np.divide,
             "Pow": np.power, "Max": np.maximum, "Min": np.minimum,
             "Mean": lambda a, b: (a + b) / 2}


def run(op, behind):
    node, value = helper.make_node, helper.make_tensor_value_info
    constants = {"s": np.float32(2 / 127), "t": np.float32(4 / 127), "z": np.uint8(128)}
    nodes = [node(kind, [name, "s", "z"], [out]) for kind, name, out in (
        ("QuantizeLinear", "a", "aq"), ("DequantizeLinear", "aq", "ad"),
        ("QuantizeLinear", "b", "bq"), ("DequantizeLinear", "bq", "bd"))]
    nodes.append(node(op, ["ad", "bd"], ["o" if behind else "y"]))
    if behind:
        nodes += [node("QuantizeLinear", ["o", "t", "z"], ["oq"]),
                  node("DequantizeLinear", ["oq", "t", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value(name, 1, A.shape) for name in "ab"],
                              [value("y", 1, A.shape)],
                              [numpy_helper.from_array(np.asarray(v), k)
                               for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(model.SerializeToString(), np.uint8))
    net.setInput(A, "a")
    net.setInput(B, "b")
    return net.forward("y").reshape(A.shape)


def decibels(real, made):
    return 10 * np.log10((real.astype(float) ** 2).sum() / ((real.astype(float) - made) ** 2).sum())


changed = []
for op, function in OPERATORS.items():
    inside, made = run(op, False), run(op, True)
    db = {name: decibels(f(A, B), made) for name, f in OPERATORS.items()}
    closest = max(db, key=db.get)
    print(f"{op}: {db[op]:.0f}, closest to {closest} ({db[closest]:.0f}); "
          f"no pair behind it: {decibels(function(A, B), inside):.0f}")
    if closest != ("Mul" if op == "Mul" else "Add") or decibels(function(A, B), inside) < 30:
        changed.append(op)
if changed:
    sys.exit(f"changed: {changed}")
EOF
