#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The GPTQ of onnxruntime rounds to the nearest number: its calibration data have no effect.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization, GPTQWeightOnlyQuantConfig, CPU.
#
# GPTQ rounds a weight row after row, and adds the error of each row to those that are still to come, by
# the upper triangle of a Cholesky factor. The tool makes that triangle and then reads it by columns,
# from the diagonal down, where there is nothing but the diagonal. So no row hears of another's error:
# two different sets of data give the same file, byte for byte, 10 dB behind the algorithm, and nobody
# sees that but by comparing files. With actorder the data decide about the order of rows alone; groups
# are then other rows than those that the file's scales belong to, everything is rounded a second time,
# and the result is worse than rounding to the nearest number.
#
# Output (dB of a MatMul of correlated data, int4 in groups of 32):
#
#   RTN 22.1, GPTQ 22.1, GPTQ with actorder 19.3
#   GPTQ by other data: the same bytes: True
#   GPTQ in numpy: 32.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 onnx-ir==1.1.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import contextlib
import io
import logging
import sys
import types

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader
from onnxruntime.quantization.matmul_nbits_quantizer import (
    GPTQWeightOnlyQuantConfig, MatMulNBitsQuantizer, RTNWeightOnlyQuantConfig)

logging.disable(logging.CRITICAL)
# The tool asks torch whether arrays of NumPy are tensors of torch, and needs nothing else of it.
sys.modules["torch"] = types.SimpleNamespace(Tensor=())
rng = np.random.default_rng(0)
BASIS = rng.normal(size=(16, 128))
DATA = (rng.normal(size=(9, 256, 16)) @ BASIS
        + 0.3 * rng.normal(size=(9, 256, 128))).astype(np.float32)
OTHER = rng.uniform(0, 9, (8, 256, 128)).astype(np.float32)
WEIGHT = rng.normal(size=(128, 64)).astype(np.float32)
GROUP, LEVELS = 32, 15


class Samples(CalibrationDataReader):
    def __init__(self, data):
        self.left = [{"x": x} for x in data]

    def get_next(self):
        return self.left.pop() if self.left else None


def decibels(made):
    real = DATA[0].astype(float) @ WEIGHT
    return 10 * np.log10((real ** 2).sum() / ((real - made) ** 2).sum())


def quantize(config):
    """Returns the file and the dB of its output."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g",
        [value("x", 1, ["n", 128])], [value("y", 1, ["n", 64])],
        [numpy_helper.from_array(WEIGHT, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with contextlib.redirect_stdout(io.StringIO()):
        quantizer = MatMulNBitsQuantizer(model, block_size=GROUP, algo_config=config)
        quantizer.process()
    text = quantizer.model.model.SerializeToString()
    return text, decibels(onnxruntime.InferenceSession(text).run(None, {"x": DATA[0]})[0])


def by_the_book():
    """GPTQ as it was published, with the grid of the tool."""
    rest, made = WEIGHT.astype(float), np.zeros(WEIGHT.shape)
    x = DATA[1:].reshape(-1, 128).astype(float)
    hessian = x.T @ x
    hessian += 0.01 * np.mean(np.diag(hessian)) * np.eye(128)
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T
    for row in range(128):
        if row % GROUP == 0:
            low = np.minimum(rest[row:row + GROUP].min(axis=0), 0)
            scale = (np.maximum(rest[row:row + GROUP].max(axis=0), 0) - low) / LEVELS
            zero = np.rint(-low / scale)
        made[row] = scale * (np.clip(np.rint(rest[row] / scale) + zero, 0, LEVELS) - zero)
        rest[row:] -= np.outer(upper[row, row:], (rest[row] - made[row]) / upper[row, row])
    return made


rtn, gptq, other, ordered = (quantize(config) for config in (
    RTNWeightOnlyQuantConfig(), GPTQWeightOnlyQuantConfig(Samples(DATA[1:])),
    GPTQWeightOnlyQuantConfig(Samples(OTHER)),
    GPTQWeightOnlyQuantConfig(Samples(DATA[1:]), actorder=True)))
right = decibels(DATA[0] @ by_the_book())
is_same = gptq[0] == other[0]
print(f"RTN {rtn[1]:.1f}, GPTQ {gptq[1]:.1f}, GPTQ with actorder {ordered[1]:.1f}")
print(f"GPTQ by other data: the same bytes: {is_same}")
print(f"GPTQ in numpy: {right:.1f}")
if not is_same or gptq[1] > rtn[1] + 1 or right < gptq[1] + 5 or ordered[1] > rtn[1]:
    sys.exit("changed: the data have an effect")
EOF
