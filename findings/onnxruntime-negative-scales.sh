#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ONNX Runtime's 4-bit quantizer writes scales below zero, and clips one end of a symmetric block.
#
# Seen with onnxruntime 1.31.1, MatMulNBitsQuantizer with its default algorithm and is_symmetric.
#
# The scale of a block is its number of largest magnitude, sign included, divided by -8. So that number
# is stored exactly, about half of all scales are negative, and a number of the other sign with the same
# magnitude is clipped: of a block that holds 1 and -1, one comes back as 0.875. Round-to-nearest is
# better by this than with max / 7 (for a normal distribution the error is a tenth less), but readers of
# such files must not take logarithms of scales or compare them with zero, as TensorRT does, which
# refuses scales that are not positive. The checker of onnx accepts them in the form of Q/DQ, which
# says nothing about the sign.
#
# Output:
#
#   scales: 251 of 512 are negative; the checker accepts them
#   a block with 1 first and then -1 comes back as 0.875 and -1.0
#   error by max / -8: 0.0860, by max / 7: 0.0973
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 onnx-ir==1.1.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import logging
import sys

import numpy as np
from onnx import checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_nbits_quantizer import (DefaultWeightOnlyQuantConfig,
                                                             MatMulNBitsQuantizer)

logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)


def quantize(weight):
    """Returns the model of Q/DQ, the scales, and the weight that it dequantizes."""
    value = helper.make_tensor_value_info
    inner, outer = weight.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g",
        [value("x", 1, [inner, inner])], [value("y", 1, [inner, outer])],
        [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    quantizer = MatMulNBitsQuantizer(model, algo_config=DefaultWeightOnlyQuantConfig(
        block_size=32, is_symmetric=True, quant_format=QuantFormat.QDQ))
    quantizer.process()
    made = quantizer.model.model
    [scales] = [numpy_helper.to_array(t) for t in made.graph.initializer if "scales" in t.name]
    stored = ReferenceEvaluator(made).run(None, {"x": np.eye(inner, dtype=np.float32)})[0]
    return made, scales, stored


weight = rng.normal(size=(128, 128)).astype(np.float32)
model, scales, stored = quantize(weight)
checker.check_model(model, full_check=True)
negative = int((scales < 0).sum())
print(f"scales: {negative} of {scales.size} are negative; the checker accepts them")

ends = rng.uniform(-0.5, 0.5, (32, 16)).astype(np.float32)
ends[0], ends[1] = 1, -1
back = quantize(ends)[2][:2, 0]
print("a block with 1 first and then -1 comes back as", back[0], "and", back[1])

blocks = weight.reshape(4, 32, 128)
step = np.abs(blocks).max(axis=1, keepdims=True) / 7
errors = [np.sqrt(((w - weight) ** 2).mean() / (weight ** 2).mean()) for w in (
    stored, (np.rint(blocks / step) * step).reshape(weight.shape))]
print("error by max / -8: {:.4f}, by max / 7: {:.4f}".format(*errors))
if not 0.3 < negative / scales.size < 0.7 or sorted(np.abs(back)) != [0.875, 1]:
    sys.exit("changed: scales have another sign or size")
EOF
