#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onnxsim's GGUF formats make NaN of 32 zeros in a row, and those with a minimum of weights that are not negative.
#
# Seen with onnxsim 0.8.1, gguf 0.19.0, onnxruntime 1.31.1.
#
# onnxsim has functions that round the weights of an ONNX model as the formats of GGUF do. A block of zeros has the
# step 0, and they divide by it: each weight of the block is NaN, and so is each output that it reaches. One pruned
# input of a layer is enough for a model whose outputs are all NaN. In the formats Q2_K, Q4_K and Q5_K the offsets of
# eight blocks (16 in Q2_K) have a common step, which is 0 if none of them holds a weight below zero, so that layers of
# positive weights, as averages and filter banks are, become NaN as a whole. The package of GGUF itself gives zeros for
# zeros. numpy prints a warning of a division, or none where the function is called by its name in C++, which ends in
# _cpp; there Q6_K is NaN, too.
#
# Output (share of NaN in the outputs of a MatMul):
#
#   q4_0: one pruned input 1.00, no weight below zero 0.00
#   q5_1: one pruned input 1.00, no weight below zero 0.00
#   q8_0: one pruned input 1.00, no weight below zero 0.00
#   ternary: one pruned input 1.00, no weight below zero 0.00
#   q2_k: one pruned input 1.00, no weight below zero 1.00
#   q4_k: one pruned input 1.00, no weight below zero 1.00
#   q5_k: one pruned input 1.00, no weight below zero 1.00
#   q3_k: one pruned input 0.00, no weight below zero 0.00
#   q6_k: one pruned input 0.00, no weight below zero 0.00
#   all: weights of both signs 0.00
#   gguf, Q4_0 and Q8_0: 0.00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnxsim==0.8.1 onnx==1.23.2 onnxruntime==1.31.1 gguf==0.19.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import gguf
import numpy as np
import onnx
import onnxruntime
import onnxsim
from gguf import GGMLQuantizationType
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)
x = rng.normal(size=(8, 64)).astype(np.float32)
both = rng.normal(size=(64, 256)).astype(np.float32)
pruned = both.copy()
pruned[7] = 0
positive = np.abs(both)


def share(weight, name):
    """Returns how much of a layer's output is NaN in a format."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info("y", 1, [8, 256])], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    made = getattr(onnxsim, f"apply_gguf_{name}_quantization")(model).SerializeToString()
    return np.isnan(onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"]).run(None, {"x": x})).mean()


changed = []
names = {"q4_0": (1, 0), "q5_1": (1, 0), "q8_0": (1, 0), "ternary": (1, 0), "q2_k": (1, 1), "q4_k": (1, 1),
         "q5_k": (1, 1), "q3_k": (0, 0), "q6_k": (0, 0)}
for name, expected in names.items():
    found = share(pruned, name), share(positive, name)
    print(f"{name}: one pruned input {found[0]:.2f}, no weight below zero {found[1]:.2f}")
    if found != expected:
        changed.append(name)
usual = max(share(both, name) for name in names)
print(f"all: weights of both signs {usual:.2f}")
peer = max(np.isnan(gguf.dequantize(gguf.quantize(pruned, kind), kind)).mean()
           for kind in (GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q8_0))
print(f"gguf, Q4_0 and Q8_0: {peer:.2f}")
if changed or usual or peer:
    sys.exit(f"changed: {changed}")
EOF
