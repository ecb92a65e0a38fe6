#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Both float16 converters make an invalid model of a Q/DQ model below opset 19, and report nothing.
#
# Seen with onnxconverter-common 1.16.0 and onnxruntime.transformers.float16 of onnxruntime 1.31.1.
#
# QuantizeLinear and DequantizeLinear take float16 from opset 19 on. Most quantizers write opset 13 or
# 17. convert_float_to_float16() turns the scales of such a model into float16 without raising its
# opset, and returns without a message. No session opens the result ("Type 'tensor(float16)' of input
# parameter ... is invalid"). From opset 19 on the same call is right. So one converts first and
# quantizes then, or raises the opset before.
#
# Output:
#
#   opset 17, onnxconverter-common: refused
#   opset 17, onnxruntime.transformers: refused
#   opset 19, onnxconverter-common: runs
#   opset 19, onnxruntime.transformers: runs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 onnxconverter-common==1.16.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from onnxconverter_common import float16 as first
from onnxruntime.transformers import float16 as second

onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
node, value = helper.make_node, helper.make_tensor_value_info
X = rng.normal(size=(4, 32)).astype(np.float32)


def make_model(opset):
    constants = {"s": np.float32(0.03), "z": np.uint8(128), "ws": np.float32(0.01),
                 "w": rng.integers(-127, 128, (32, 16)).astype(np.int8)}
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
         node("DequantizeLinear", ["q", "s", "z"], ["d"]),
         node("DequantizeLinear", ["w", "ws"], ["wd"]), node("MatMul", ["d", "wd"], ["y"])],
        "g", [value("x", 1, [4, 32])], [value("y", 1, [4, 16])],
        [numpy_helper.from_array(np.asarray(a), k) for k, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


changed = []
for opset in 17, 19:
    for name, module in ("onnxconverter-common", first), ("onnxruntime.transformers", second):
        model = module.convert_float_to_float16(make_model(opset), keep_io_types=True)
        try:
            onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})
            verdict = "runs"
        except Exception as error:
            verdict = "refused" if "float16" in str(error) else str(error)
        print(f"opset {opset}, {name}: {verdict}")
        if verdict != ("refused" if opset == 17 else "runs"):
            changed.append(f"opset {opset}, {name}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
