#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plus infinity quantizes to the lowest integer: in float16 by ONNX Runtime, always by the reference.
#
# Seen with onnxruntime 1.31.1 (CPU provider) and onnx 1.23.2 (ReferenceEvaluator) on x86-64.
#
# QuantizeLinear saturates: all that is above the highest integer becomes that, and so should plus
# infinity. ONNX Runtime does so for float32. For float16 the same node gives the lowest integer, so
# that a mask of +inf, or an overflow of float16 in front of a pair, turns into the most negative
# number. The reference implementation of onnx goes through int32, and gives the lowest number for
# infinity in either type and for a finite number from 2^31 scales on. So the two agree on float16 and
# disagree on float32, and a test of one against the other blames the wrong one.
#
# Other processors convert infinity to int32 in another way, so this script has nothing to show there.
#
# Output (uint8, scale 1, zero point 10):
#
#   float32 [inf, 3e9, 65504, 1, -inf]: onnxruntime [255, 255, 255, 11, 0], reference [0, 0, 255, 11, 0]
#   float16 [inf, inf, 65504, 1, -inf]: onnxruntime [0, 0, 255, 11, 0], reference [0, 0, 255, 11, 0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import platform
import sys
import warnings

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

if platform.machine() != "x86_64":
    print("nothing to show: the processor is not x86-64")
    sys.exit()
warnings.simplefilter("ignore")
node, value = helper.make_node, helper.make_tensor_value_info


def quantize(kind, number):
    x = np.array([np.inf, 3e9, 65504, 1, -np.inf]).astype(kind)
    constants = {"s": kind(1), "z": np.uint8(10)}
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["y"])], "g", [value("x", number, [5])],
        [value("y", TensorProto.UINT8, [5])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    made = [session.run(None, {"x": x})[0].tolist(),
            ReferenceEvaluator(model).run(None, {"x": x})[0].tolist()]
    shown = ", ".join(f"{v:.6g}".replace("e+0", "e") for v in x)
    print(f"{kind.__name__} [{shown}]: onnxruntime {made[0]}, reference {made[1]}")
    return made


seen = quantize(np.float32, TensorProto.FLOAT) + quantize(np.float16, TensorProto.FLOAT16)
low = [0, 0, 255, 11, 0]
if seen != [[255, 255, 255, 11, 0], low, low, low]:
    sys.exit("changed: other integers than stated")
EOF
