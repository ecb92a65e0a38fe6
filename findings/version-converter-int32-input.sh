#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A QuantizeLinear of int32 is valid at opset 13 and at 23, not between, and the converter does not look.
#
# Seen with onnx 1.23.2, onnx.version_converter.convert_version.
#
# Up to opset 18 the input of QuantizeLinear is float or int32 and the scale is float. Opset 19 gave the
# scale the type of the input, for the sake of float16, so that an int32 input needs an int32 scale, which
# cannot be below 1; opset 23 set the scale free again. The version converter raises a model of opset 13
# with an int32 input and a float scale to 19 or 21 without a message, and the checker's full check refuses
# what it made. Sums in int32, as MatMulInteger and ConvInteger make them, are quantized again in this
# way. Opset 23 and later work, and so does a Cast to float in front of the node.
#
# Output:
#
#   opset 13: valid
#   converted to opset 18: valid
#   converted to opset 19: refused
#   converted to opset 21: refused
#   converted to opset 23: valid
#   converted to opset 25: valid
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference, version_converter

node, value = helper.make_node, helper.make_tensor_value_info
graph = helper.make_graph(
    [node("MatMulInteger", ["x", "w"], ["a"]), node("QuantizeLinear", ["a", "s", "z"], ["y"])],
    "g", [value("x", TensorProto.UINT8, [2, 4])], [value("y", TensorProto.INT8, [2, 3])],
    [numpy_helper.from_array(np.ones((4, 3), np.int8), "w"),
     numpy_helper.from_array(np.float32(8), "s"), numpy_helper.from_array(np.int8(0), "z")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
checker.check_model(model, full_check=True)
print("opset 13: valid")
changed = []
for opset, expected in (18, "valid"), (19, "refused"), (21, "refused"), (23, "valid"), (25, "valid"):
    made = version_converter.convert_version(model, opset)
    try:
        checker.check_model(made, full_check=True)
        seen = "valid"
    except shape_inference.InferenceError:
        seen = "refused"
    print(f"converted to opset {opset}: {seen}")
    if seen != expected:
        changed.append(opset)
if changed:
    sys.exit(f"changed: opsets {changed}")
EOF
