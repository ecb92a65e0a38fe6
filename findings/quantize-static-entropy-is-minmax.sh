#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calibration by entropy gives the ranges of minimum and maximum, outliers and all.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.
#
# CalibrationMethod.Entropy is there to clip outliers: it tries thresholds, and takes the one that loses
# the least information. By default it makes 128 bins, and tries those thresholds that leave at least
# 128 of them, which is one: the largest value. quantize_static() has no option for the number of bins
# and hands all samples to the calibrator at once, so that it never adds bins. The class itself clips
# when it gets 2048 bins. So a user pays for all activations in memory and for the search, and gets the
# file of MinMax, byte for byte. (Issue 9597 of 2021 named the number; pull request 10204 made it an
# argument of the class, which no option of quantize_static() reaches.)
#
# Output (a Gaussian with one outlier of 60; the largest number that the input's range holds):
#
#   quantize_static, MinMax: 60.0
#   quantize_static, Entropy: 60.0, the same bytes: True
#   the class with 2048 bins: 10.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import contextlib
import io
import logging
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, quantize_static
from onnxruntime.quantization.calibrate import create_calibrator

logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)
X = rng.normal(size=(64, 64, 64)).astype(np.float32)
X[0, 0, 0] = 60
WEIGHT = rng.normal(size=(64, 64)).astype(np.float32)
value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g", [value("x", 1, [64, 64])],
    [value("y", 1, [64, 64])], [numpy_helper.from_array(WEIGHT, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
          "m.onnx")


class Samples(CalibrationDataReader):
    def __init__(self):
        self.samples = iter([{"x": x} for x in X])

    def get_next(self):
        return next(self.samples, None)


def quantize(method):
    """Returns the largest number of the input's range, and the file."""
    with contextlib.redirect_stdout(io.StringIO()):
        quantize_static("m.onnx", "q.onnx", Samples(), calibrate_method=method)
    arrays = {t.name: numpy_helper.to_array(t) for t in onnx.load("q.onnx").graph.initializer}
    with open("q.onnx", "rb") as file:
        return (127 - int(arrays["x_zero_point"])) * float(arrays["x_scale"]), file.read()


extremes, entropy = quantize(CalibrationMethod.MinMax), quantize(CalibrationMethod.Entropy)
with contextlib.redirect_stdout(io.StringIO()):
    calibrator = create_calibrator("m.onnx", ["MatMul"], calibrate_method=CalibrationMethod.Entropy,
                                   extra_options={"num_bins": 2048})
    calibrator.collect_data(Samples())
    high = float(calibrator.compute_data()["x"].range_value[1])
is_same = extremes[1] == entropy[1]
print(f"quantize_static, MinMax: {extremes[0]:.1f}")
print(f"quantize_static, Entropy: {entropy[0]:.1f}, the same bytes: {is_same}")
print(f"the class with 2048 bins: {high:.1f}")
if not is_same or extremes[0] < 55 or high > 30:
    sys.exit("changed: entropy differs from minimum and maximum")
EOF
