#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tract answers the same number for every class where a Softmax stands between two pairs.
#
# Seen with tract 0.23.9, the Python wheel.
#
# A classifier whose last layers are in integers ends with a pair, Softmax, and a pair from 0 to 1. tract
# loads it without a message and gives the highest integer for each class, whatever the logits and the
# scales, for uint8 and int8. LogSoftmax is as wrong. With the first pair alone, without the one behind
# the Softmax, it is right, and so are the float model and all other operators that were tried so.
#
# Output (classes of one sample, numpy's softmax of them, and tract's answers):
#
#   numpy: 0.0 0.01 0.03 0.09 0.23 0.63
#   uint8, no pair behind it: 0.0 0.01 0.03 0.09 0.24 0.63
#   uint8, a pair behind it: 1.0 1.0 1.0 1.0 1.0 1.0
#   int8, no pair behind it: 0.0 0.01 0.03 0.09 0.24 0.63
#   int8, a pair behind it: 1.0 1.0 1.0 1.0 1.0 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 tract==0.23.9 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnx
import tract
from onnx import checker, helper, numpy_helper

LOGITS = np.float32([[-2, -1, 0, 1, 2, 3]])


def run(dtype, behind):
    """Returns what tract makes of a Softmax behind a pair, perhaps with another behind it."""
    node, value = helper.make_node, helper.make_tensor_value_info
    low = np.iinfo(dtype).min
    constants = {"s": np.float32(4 / 127), "z": np.array(low + 128, dtype),
                 "t": np.float32(1 / 255), "u": np.array(low, dtype)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             node("Softmax", ["d"], ["p" if behind else "y"], axis=-1)]
    if behind:
        nodes += [node("QuantizeLinear", ["p", "t", "u"], ["pq"]),
                  node("DequantizeLinear", ["pq", "t", "u"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, LOGITS.shape)],
                              [value("y", 1, LOGITS.shape)],
                              [numpy_helper.from_array(np.asarray(v), k)
                               for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    onnx.save(model, "m.onnx")
    runnable = tract.onnx().load("m.onnx").into_model().into_runnable()
    return np.asarray(runnable.run([LOGITS])[0].to_numpy())


real = np.exp(LOGITS) / np.exp(LOGITS).sum()
print("numpy:", *np.round(real[0], 2))
changed = []
for dtype in np.uint8, np.int8:
    for behind in False, True:
        made = run(dtype, behind)
        name = f"{dtype.__name__}, {'a pair behind it' if behind else 'no pair behind it'}"
        print(f"{name}:", *np.round(made[0], 2))
        if (np.abs(made - real).max() < 0.02) == behind:
            changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
