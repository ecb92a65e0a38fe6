#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two of onnxruntime's 4-bit algorithms lose a group of weights that has one sign.
#
# Seen with onnxruntime 1.31.1, MatMulNBitsQuantizer with RTNWeightOnlyQuantConfig and
# KQuantWeightOnlyQuantConfig, CPU.
#
# The integers of a group are 0 to 15 and so is its zero point, which is therefore inside the range only
# if the range holds 0. Both algorithms take the range from the smallest to the largest weight as it is,
# clip the zero point to 0 or 15, and keep the scale. Weights from 0.9 to 1.0 get the scale 0.1 / 15 and
# the largest number 0.1. A group of equal weights gets the scale 1 and becomes 0 where they are below a
# half, as in a matrix that averages. The default algorithm widens the range to 0 first. Filter banks,
# means and positional tables have groups of one sign.
#
# Output (dB of a MatMul against float):
#
#   both signs: default 22, RTN 22, k-quant 22
#   0.5 to 1.5: default 32, RTN 13, k-quant 13
#   -1.5 to -0.5: default 32, RTN 13, k-quant 13
#   all 1/128: default 134, RTN 0, k-quant 0
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

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig, KQuantWeightOnlyQuantConfig, MatMulNBitsQuantizer,
    RTNWeightOnlyQuantConfig)

logging.disable(logging.CRITICAL)
np.seterr(all="ignore")  # k-quant divides by 0 where all weights of a group are equal.
rng = np.random.default_rng(0)
X = rng.normal(size=(64, 128)).astype(np.float32)
WEIGHTS = {
    "both signs": rng.normal(size=(128, 64)),
    "0.5 to 1.5": rng.uniform(0.5, 1.5, (128, 64)),
    "-1.5 to -0.5": rng.uniform(-1.5, -0.5, (128, 64)),
    "all 1/128": np.full((128, 64), 1 / 128)}


def sqnr_db(weight, config):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g", [value("x", 1, X.shape)],
        [value("y", 1, [64, 64])], [numpy_helper.from_array(weight.astype(np.float32), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with contextlib.redirect_stdout(io.StringIO()):
        quantizer = MatMulNBitsQuantizer(model, block_size=32, algo_config=config)
        quantizer.process()
    made = onnxruntime.InferenceSession(
        quantizer.model.model.SerializeToString()).run(None, {"x": X})[0]
    real = X.astype(float) @ weight
    return 10 * np.log10((real ** 2).sum() / ((real - made) ** 2).sum())


changed = []
for name, weight in WEIGHTS.items():
    db = [sqnr_db(weight, config) for config in (
        DefaultWeightOnlyQuantConfig(block_size=32), RTNWeightOnlyQuantConfig(),
        KQuantWeightOnlyQuantConfig())]
    print("{}: default {:.0f}, RTN {:.0f}, k-quant {:.0f}".format(name, *db))
    if any((one > 15) != (name == "both signs") for one in db[1:]) or db[0] < 15:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
