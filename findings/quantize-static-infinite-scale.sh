#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_static writes a scale of infinity into a valid file, and skips NaN.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization, the default method MinMax.
#
# One calibration sample of four has one infinity. The result is a valid file whose input has the scale
# inf, and whose output is not finite. With NaN in the place of infinity the range is that of the other
# numbers. Neither gives a message, except for a RuntimeWarning of numpy. Entropy and Percentile end
# with an error of numpy's histogram for infinity, which names no tensor and no sample.
#
# Output:
#
#   MinMax: scale of the input 0.029, with an infinity inf, with a NaN 0.029
#   the output of the result with an infinity: not finite
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
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
SHAPE = (1, 4, 8, 8)


class Samples(CalibrationDataReader):
    def __init__(self, odd):
        samples = np.random.default_rng(1).normal(size=(4, *SHAPE)).astype(np.float32)
        samples[1, 0, 0, 0, 0] = odd
        self.samples = iter([{"x": sample} for sample in samples])

    def get_next(self):
        return next(self.samples, None)


value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1] * 4)], "g",
    [value("x", 1, SHAPE)], [value("y", 1, SHAPE)],
    [numpy_helper.from_array(rng.normal(size=(4, 4, 3, 3)).astype(np.float32), "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
          "m.onnx")


def scale_with(odd):
    quantize_static("m.onnx", "q.onnx", Samples(odd))
    model = onnx.load("q.onnx")
    onnx.checker.check_model(model, full_check=True)
    [scale] = [t for t in model.graph.initializer if t.name == "x_scale"]
    return float(numpy_helper.to_array(scale))


plain, nan, infinite = scale_with(0.5), scale_with(np.nan), scale_with(np.inf)
x = rng.normal(size=SHAPE).astype(np.float32)
made = onnxruntime.InferenceSession("q.onnx").run(None, {"x": x})[0]
is_dead = not np.isfinite(made).all()
print(f"MinMax: scale of the input {plain:.2g}, with an infinity {infinite:.2g}, "
      f"with a NaN {nan:.2g}")
print("the output of the result with an infinity:", "not finite" if is_dead else "numbers")
if infinite != np.inf or abs(nan - plain) > 0.1 * plain or not is_dead:
    sys.exit("changed: numbers that are not finite have another effect")
EOF
