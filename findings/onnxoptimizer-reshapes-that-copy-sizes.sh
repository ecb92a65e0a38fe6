#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onnxoptimizer drops a Reshape in front of one that copies its sizes, and the output has another shape.
#
# Seen with onnxoptimizer 0.4.2, onnx 1.23.2, onnxruntime 1.31.1.
#
# A 0 in the shape of a Reshape copies the size of its own input at that place; exporters write it for the batch and
# for heads of attention. The default pass eliminate_consecutive_idempotent_ops takes a Reshape behind a Reshape for a
# repetition, drops the first, and leaves the 0 of the second, which then copies sizes of the input of the first. The
# result is a valid model that runs without a message: its rows and columns are others. The batch is right where the
# first Reshape does not touch it. onnxsim 0.8.1 keeps the shape of this model.
#
# Output (shapes of a tensor of 2 x 3 x 4 behind Reshape to 4 x 3 x 2, which a second Reshape follows):
#
#   to (0, 0, -1): is 4 x 3 x 2, optimized 2 x 3 x 4
#   to (0, -1): is 4 x 6, optimized 2 x 12
#   to (4, -1): is 4 x 6, optimized 4 x 6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxoptimizer==0.4.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime
from onnx import helper, numpy_helper

node = helper.make_node
x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def run(model):
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return " x ".join(str(size) for size in session.run(None, {"x": x})[0].shape)


changed = []
for shape, right in ((0, 0, -1), False), ((0, -1), False), ((4, -1), True):
    graph = helper.make_graph(
        [node("Reshape", ["x", "first"], ["a"]), node("Reshape", ["a", "second"], ["b"]), node("Neg", ["b"], ["y"])],
        "g", [helper.make_tensor_value_info("x", 1, [2, 3, 4])],
        [helper.make_tensor_value_info("y", 1, [None] * len(shape))],
        [numpy_helper.from_array(np.int64([4, 3, 2]), "first"), numpy_helper.from_array(np.int64(shape), "second")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    real, made = run(model), run(onnxoptimizer.optimize(model))
    print(f"to {shape}: is {real}, optimized {made}")
    if (real == made) != right:
        changed.append(shape)
if changed:
    sys.exit(f"changed: {changed}")
EOF
