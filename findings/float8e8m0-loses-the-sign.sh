#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Scales of float8e8m0: two libraries that write the same type round to other powers, and one drops signs.
#
# Seen with onnx 1.23.2 and ml_dtypes 0.6.0, on which onnx rests.
#
# float8e8m0 holds powers of two alone, without a sign and without zero: the type of the scales of
# microscaling formats (MXFP4, MXFP8). Since opset 24 a Cast makes them, and numpy arrays of the type are those
# of ml_dtypes, into which onnx.numpy_helper reads them. The two do not agree on a single rule. The Cast
# of onnx, and helper.make_tensor, round up to the next power unless told otherwise, so that 1.05 is 2 (the standard
# of these formats rounds a scale down); ml_dtypes rounds to the nearest. A negative number loses its
# sign in onnx, -2 is 2, and 0 becomes the smallest power; both are NaN in ml_dtypes. 3e38 is the
# largest power here, and NaN there. So whoever computes scales with numpy and whoever does it
# with a Cast of the same numbers have blocks that differ by a factor of two.
#
# Output:
#
#   value           1.05    1.5      3      6      0     -2  3e+38
#   Cast               2      2      4      8 6e-39      2  2e+38
#   Cast, nearest      1      2      4      8 6e-39      2  2e+38
#   Cast, down         1      1      2      4 6e-39      2  2e+38
#   make_tensor        2      2      4      8 6e-39      2  2e+38
#   ml_dtypes          1      2      4      8    nan    nan    nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python -W ignore - <<'EOF'
import sys

import ml_dtypes
import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

VALUES = np.array([1.05, 1.5, 3, 6, 0, -2, 3e38], np.float32)
LEAST, MOST = np.float32(2.0 ** -127), np.float32(2.0 ** 127)


def cast(**attributes):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("Cast", ["x"], ["c"], to=TensorProto.FLOAT8E8M0, **attributes),
         node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)],
        "g", [value("x", TensorProto.FLOAT, [len(VALUES)])], [value("y", TensorProto.FLOAT, [len(VALUES)])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    checker.check_model(model, full_check=True)
    return ReferenceEvaluator(model).run(None, {"x": VALUES})[0]


made = numpy_helper.to_array(helper.make_tensor("t", TensorProto.FLOAT8E8M0, VALUES.shape, VALUES))
nan = np.nan
ROWS = (("Cast", cast(), [2, 2, 4, 8, LEAST, 2, MOST]),
        ("Cast, nearest", cast(round_mode="nearest"), [1, 2, 4, 8, LEAST, 2, MOST]),
        ("Cast, down", cast(round_mode="down"), [1, 1, 2, 4, LEAST, 2, MOST]),
        ("make_tensor", made.astype(np.float32), [2, 2, 4, 8, LEAST, 2, MOST]),
        ("ml_dtypes", VALUES.astype(ml_dtypes.float8_e8m0fnu).astype(np.float32), [1, 2, 4, 8, nan, nan, nan]))
print(f"{'value':13}" + "".join(f"{value:7.3g}" for value in VALUES))
changed = []
for name, seen, expected in ROWS:
    print(f"{name:13}" + "".join(f"{value:7.1g}" for value in seen))
    if not np.array_equal(seen, np.array(expected, np.float32), equal_nan=True):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
