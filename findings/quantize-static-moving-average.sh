#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The moving average of quantize_static neither moves nor reads its constant.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.
#
# CalibMovingAverage is documented as the moving average of the samples' extremes, and
# CalibMovingAverageConstant, 0.01 by default, as its smoothing factor. The calibrator averages the
# extremes of all samples that it has, each with the same weight, and uses the factor only to join such
# averages. quantize_static() hands it all samples at once, so that the factor has no effect, not even 0
# or 1, and the order of the samples has none. Only with CalibStridedMinMax are there averages to join;
# the first of them then has all the weight that the factor leaves.
#
# Output (samples whose largest values are 1, 2, 3 and 10; the largest number of the range):
#
#   constant 0: 4.0, in the opposite order 4.0 (a moving average: 1 and 10)
#   constant 0.01: 4.0, in the opposite order 4.0 (a moving average: 1.12 and 9.76)
#   constant 0.5: 4.0, in the opposite order 4.0 (a moving average: 6.12 and 2.62)
#   constant 1: 4.0, in the opposite order 4.0 (a moving average: 10 and 1)
#   constant 0.01 and CalibStridedMinMax 1: 1.12
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import logging
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

logging.disable(logging.CRITICAL)
WEIGHT = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g", [value("x", 1, [1, 8])],
    [value("y", 1, [1, 8])], [numpy_helper.from_array(WEIGHT, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
          "m.onnx")
MAXIMA = [1, 2, 3, 10]


class Samples(CalibrationDataReader):
    def __init__(self, maxima):
        self.samples = [{"x": np.full((1, 8), m, np.float32)} for m in maxima]
        self.set_range(0, len(self.samples))

    def __len__(self):
        return len(self.samples)

    def set_range(self, start_index, end_index):
        self.iterator = iter(self.samples[start_index:end_index])

    def get_next(self):
        return next(self.iterator, None)


def largest(maxima, constant, **options):
    quantize_static("m.onnx", "q.onnx", Samples(maxima), extra_options={
        "CalibMovingAverage": True, "CalibMovingAverageConstant": constant} | options)
    arrays = {t.name: numpy_helper.to_array(t) for t in onnx.load("q.onnx").graph.initializer}
    return round((127 - int(arrays["x_zero_point"])) * float(arrays["x_scale"]), 2)


def average(maxima, constant):
    """The moving average as it is documented."""
    moved = maxima[0]
    for m in maxima[1:]:
        moved += constant * (m - moved)
    return round(moved, 2)


changed = []
for constant in 0, 0.01, 0.5, 1:
    seen = largest(MAXIMA, constant), largest(MAXIMA[::-1], constant)
    print(f"constant {constant}: {seen[0]}, in the opposite order {seen[1]} (a moving average: "
          f"{average(MAXIMA, constant)} and {average(MAXIMA[::-1], constant)})")
    if seen != (4, 4):
        changed.append(constant)
strided = largest(MAXIMA, 0.01, CalibStridedMinMax=1)
print(f"constant 0.01 and CalibStridedMinMax 1: {strided}")
if changed or strided != average(MAXIMA, 0.01):
    sys.exit(f"changed: {changed}, {strided}")
EOF
