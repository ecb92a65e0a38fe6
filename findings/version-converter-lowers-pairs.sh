#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lowered below the opset that its pairs need, a model is invalid, or refused, by which of their members needs it.
#
# Seen with onnx 1.23.2 (version_converter) and onnxruntime 1.31.1.
#
# Runtimes that know older opsets are served by lowering a model. onnx's converter raises an error where a pair
# cannot be lowered because of blocks, of `output_dtype` on a QuantizeLinear, or of its integers' type. It does
# not where a DequantizeLinear has `output_dtype`, a QuantizeLinear `precision` (both of opset 23), or where a pair
# takes float16 (opset 19): the node stays as it is, the file says the older opset, and nothing is said. Only the
# checker and the runtime find out.
#
# Output:
#
#   blocks, 21 to 20: an error
#   output_dtype of QuantizeLinear, 21 to 20: an error
#   int16, 21 to 20: an error
#   output_dtype of DequantizeLinear, 23 to 21: an invalid model
#   precision of QuantizeLinear, 23 to 21: an invalid model
#   float16, 19 to 18: an invalid model
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

node, value, kinds = helper.make_node, helper.make_tensor_value_info, onnx.TensorProto


def lower(old, new, kind=np.int8, data=np.float32, scale=np.float32(0.02), made=None, quantize=None, dequantize=None):
    """Returns what becomes of a pair that is lowered from one opset to another."""
    quantize, dequantize = quantize or {}, dequantize or {}
    float_type = helper.np_dtype_to_tensor_dtype(np.dtype(data))
    zero = [] if "output_dtype" in quantize else ["z"]
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", *zero], ["q"], **quantize),
         node("DequantizeLinear", ["q", "s", *zero], ["y"], **dequantize)], "g",
        [value("x", float_type, [4, 8])], [value("y", made or float_type, [4, 8])],
        [numpy_helper.from_array(np.asarray(scale), "s"),
         *([numpy_helper.from_array(np.zeros(np.shape(scale), kind), "z")] if zero else [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", old)], ir_version=11)
    onnx.checker.check_model(model, full_check=True)
    try:
        lowered = version_converter.convert_version(model, new)
    except RuntimeError:
        return "an error"
    try:
        onnx.checker.check_model(lowered, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return "an invalid model"
    return "a valid model"


blocks = {"axis": 1, "block_size": 4}
seen = {
    "blocks, 21 to 20": lower(21, 20, scale=np.full((4, 2), 0.02, np.float32), quantize=blocks, dequantize=blocks),
    "output_dtype of QuantizeLinear, 21 to 20": lower(21, 20, quantize={"output_dtype": kinds.INT8}),
    "int16, 21 to 20": lower(21, 20, kind=np.int16),
    "output_dtype of DequantizeLinear, 23 to 21": lower(
        23, 21, made=kinds.FLOAT16, dequantize={"output_dtype": kinds.FLOAT16}),
    "precision of QuantizeLinear, 23 to 21": lower(23, 21, quantize={"precision": kinds.FLOAT}),
    "float16, 19 to 18": lower(19, 18, data=np.float16, scale=np.float16(0.02)),
}
for text, state in seen.items():
    print(f"{text}: {state}")
if list(seen.values()) != ["an error"] * 3 + ["an invalid model"] * 3:
    sys.exit("changed: see above")
EOF
