#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_static gives a weight that two layers share the scales of one of them, and sinks the other.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization, per_channel = True.
#
# A table that is an embedding's output layer, too, or a projection and its transpose: a Gemm with
# transB = 1 reads the matrix W by rows and a MatMul reads the same W by columns. Scales for each output
# channel lie along axis 0 for the first and along axis 1 for the second. The tool quantizes W once,
# with scales along axis 1 for both. The Gemm still runs, but its rows, which may differ by factors of
# hundreds, share scales. Two copies of the same matrix under two names are quantized right.
#
# Output (dB of the Gemm's output for the row of least range, by the stored weight alone):
#
#   shared: one DequantizeLinear along axis [1], 0 dB
#   two copies: axes [0, 1], 41 dB
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
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
X = rng.normal(size=(16, 64)).astype(np.float32)
WEIGHT = rng.normal(size=(64, 64)).astype(np.float32) * np.exp2(
    np.linspace(-6, 4, 64)).astype(np.float32)[:, None]


class Samples(CalibrationDataReader):
    def __init__(self):
        self.samples = iter([{"x": X}])

    def get_next(self):
        return next(self.samples, None)


def quantize(second):
    """Returns the axes of the weights' scales, and the dB of the Gemm's row of least range."""
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("Gemm", ["x", "w"], ["a"], "gemm", transB=1),
         node("MatMul", ["x", second], ["b"], "product")],
        "g", [value("x", 1, X.shape)], [value("a", 1, X.shape), value("b", 1, X.shape)],
        [numpy_helper.from_array(WEIGHT, name) for name in dict.fromkeys(["w", second])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              "m.onnx")
    quantize_static("m.onnx", "q.onnx", Samples(), per_channel=True)
    model = onnx.load("q.onnx")
    axes = sorted(a.i for n in model.graph.node if n.op_type == "DequantizeLinear"
                  and n.input[0].endswith("_quantized") and n.input[0][0] in "wv"
                  for a in n.attribute if a.name == "axis")
    arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    scale = arrays["w_scale"] if axes == [1] else arrays["w_scale"][:, None]
    stored = arrays["w_quantized"] * scale.astype(float)
    real = X.astype(float) @ WEIGHT.T
    made = X.astype(float) @ stored.T
    row = np.abs(WEIGHT).max(axis=1).argmin()
    return axes, 10 * np.log10((real[:, row] ** 2).sum()
                               / ((real[:, row] - made[:, row]) ** 2).sum())


shared, copies = quantize("w"), quantize("v")
print(f"shared: one DequantizeLinear along axis {shared[0]}, {shared[1]:.0f} dB")
print(f"two copies: axes {copies[0]}, {copies[1]:.0f} dB")
if shared[0] != [1] or copies[0] != [0, 1] or shared[1] > copies[1] - 10:
    sys.exit("changed: a shared weight has other scales")
EOF
