#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The text form of a model leaves out constants of 4 and 2 bits, and cannot be read back.
#
# Seen with onnx 1.23.2, onnx.printer.to_text and onnx.parser.parse_model.
#
# onnx has a text form of models, with a printer and a parser. For constants of 16 and 8 bits, bfloat16
# and float8 among them, what is printed can be parsed, and gives the same model. In place of each constant of int4, uint4, int2, uint2
# and float4e2m1 the printer writes "..." without a message, and the parser refuses its own printer's
# text. So a model whose weights have 4 bits cannot go by way of text, one of int8 can, and a text
# that was stored in place of the model has no weights any more.
#
# Output:
#
#   FLOAT, FLOAT16, BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, INT8, UINT8, INT16, UINT16: the same model
#   INT4, UINT4, INT2, UINT2, FLOAT4E2M1: printed as "...", ParseError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnx
from onnx import TensorProto, checker, helper, numpy_helper

KEPT = ("FLOAT", "FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "INT8", "UINT8", "INT16", "UINT16")
LOST = ("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1")


def convert(name):
    """Returns what becomes of a constant of a type by way of the text form."""
    kind = getattr(TensorProto, name)
    array = np.array([1, 0, 1, 1, 0], np.float32).astype(helper.tensor_dtype_to_np_dtype(kind))
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])], "g", [],
        [helper.make_tensor_value_info("y", kind, array.shape)],
        [numpy_helper.from_array(array, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    checker.check_model(model, full_check=True)
    text = onnx.printer.to_text(model)
    try:
        read = numpy_helper.to_array(onnx.parser.parse_model(text).graph.initializer[0])
    except onnx.parser.ParseError:
        return 'printed as "...", ParseError' if "w = ..." in text else "ParseError"
    return "the same model" if read.dtype == array.dtype and (read == array).all() else "another model"


rows = {}
for name in KEPT + LOST:
    rows.setdefault(convert(name), []).append(name)
for result, names in rows.items():
    print(", ".join(names) + ": " + result)
if rows != {"the same model": list(KEPT), 'printed as "...", ParseError': list(LOST)}:
    sys.exit("changed: other types are lost")
EOF
