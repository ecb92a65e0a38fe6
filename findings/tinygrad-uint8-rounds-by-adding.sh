#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A uint8 pair rounds other numbers up than the int8 pair of the same scale does.
#
# Seen with onnx 1.23.2 and tinygrad 0.14.0, tinygrad.nn.onnx.OnnxRunner.
#
# A uint8 pair with zero point 128 and an int8 pair with zero point 0 mean the same numbers. tinygrad
# rounds to the nearest even integer for int8, as ONNX has it. For uint8 alone it adds 0.4999999 and the
# zero point and drops the fraction, in float32. With zero point 0 all ties go down, and with a large
# one the sum has no room for the last digit, so that all ties go up. Half of the ties are one step off
# either way. A model in uint8, which is the default of most tools, so differs from its twin in int8.
#
# Output (share of the halves from 0.5 to 99.5 that differ from the literal numbers, scale 1):
#
#   uint8, zero point 0: 50 %, all too low
#   uint8, zero point 128: 50 %, all too high
#   int8, zero point 0: 0 %
#   int8, zero point -20: 0 %
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export DEV=PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 tinygrad==0.14.0 numpy==2.4.6 || exit 2
cd "$folder"
export XDG_CACHE_HOME="$folder/cache"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnx
from onnx import checker, helper, numpy_helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

X = (np.arange(100, dtype=np.float32) + 0.5).reshape(1, 100)


def run(zero_point):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])],
        "g", [value("x", 1, X.shape)], [value("y", 1, X.shape)],
        [numpy_helper.from_array(np.float32(1), "s"), numpy_helper.from_array(zero_point, "z")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    checker.check_model(model, full_check=True)
    onnx.save(model, "m.onnx")
    return OnnxRunner("m.onnx")({"x": Tensor(X)})["y"].numpy()


changed = []
for zero_point in np.uint8(0), np.uint8(128), np.int8(0), np.int8(-20):
    made, real = run(np.asarray(zero_point)), np.rint(X)
    share = (made != real).mean() * 100
    signs = "" if share == 0 else ", all too high" if (made >= real).all() else ", all too low"
    print(f"{zero_point.dtype}, zero point {zero_point}: {share:.0f} %{signs}")
    if (share > 40) != (zero_point.dtype == np.uint8) or 0 < share < 40:
        changed.append(f"{zero_point.dtype} {zero_point}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
