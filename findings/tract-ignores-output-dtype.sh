#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tract makes uint8 of a QuantizeLinear whose attribute asks for int8, and clips all negative values.
#
# Seen with tract 0.23.9, the Python wheel.
#
# From opset 21 on a QuantizeLinear may say its type by output_dtype and have no zero point, which is 0
# then. tract does not read the attribute: such a node makes uint8, its DequantizeLinear follows, and
# every value below 0 becomes 0, without a message. The same pair with a zero point of int8 is right. A
# network whose pairs stand behind Relus does not show it; the others lose half of their values.
#
# Output:
#
#   a zero point of int8: tract -2.02 -1.01 0.0 1.01 2.02 2.99 reference -2.02 -1.01 0.0 1.01 2.02 2.99
#   output_dtype INT8: tract 0.0 0.0 0.0 1.01 2.02 2.99 reference -2.02 -1.01 0.0 1.01 2.02 2.99
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
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

X = np.float32([[-2, -1, 0, 1, 2, 3]])


def run(zero_points, **attributes):
    """Returns what tract and the reference of onnx make of one pair."""
    node, value = helper.make_node, helper.make_tensor_value_info
    constants = {"s": np.float32(4 / 127)} | dict.fromkeys(zero_points, np.int8(0))
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", *zero_points], ["q"], **attributes),
         node("DequantizeLinear", ["q", "s", *zero_points], ["y"])],
        "g", [value("x", 1, X.shape)], [value("y", 1, X.shape)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    onnx.save(model, "m.onnx")
    runnable = tract.onnx().load("m.onnx").into_model().into_runnable()
    return (np.asarray(runnable.run([X])[0].to_numpy()),
            ReferenceEvaluator(model).run(None, {"x": X})[0])


changed = []
for name, zero_points, attributes, expected in (
        ("a zero point of int8", ["z"], {}, True),
        ("output_dtype INT8", [], {"output_dtype": TensorProto.INT8}, False)):
    made, real = run(zero_points, **attributes)
    print(f"{name}: tract", *np.round(made[0], 2), "reference", *np.round(real[0], 2))
    if np.allclose(made, real, atol=1e-3) != expected:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
