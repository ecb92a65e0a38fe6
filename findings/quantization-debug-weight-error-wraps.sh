#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tool that finds badly quantized weights subtracts zero points in 8 bits, and finds the wrong ones.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.qdq_loss_debug.
#
# create_weight_matching() dequantizes the weights of a quantized model, and compute_weight_error() gives
# the dB of each against the float model, so that a user sees which layer to leave in float. It computes
# integer - zero point in the integers' own type: in uint8, 100 - 128 is 228. All weights below their
# zero point come back 256 scales too large. So each weight of uint8, which get_qnn_qdq_config() takes by
# default, seems to be ruined, and the more even its two sides are the more. int8 with a zero point of 0
# is right.
#
# Output (dB of one weight, by the tool and by DequantizeLinear in onnxruntime):
#
#   QInt8: the tool 43, onnxruntime 43
#   QUInt8: the tool -13, onnxruntime 43
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
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.qdq_loss_debug import compute_weight_error, create_weight_matching

logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)
X = rng.normal(size=(16, 64)).astype(np.float32)
WEIGHT = rng.normal(size=(64, 32)).astype(np.float32)
value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g", [value("x", 1, X.shape)],
    [value("y", 1, [16, 32])], [numpy_helper.from_array(WEIGHT, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
          "m.onnx")


class Samples(CalibrationDataReader):
    def __init__(self):
        self.samples = iter([{"x": X}])

    def get_next(self):
        return next(self.samples, None)


def errors(weight_type):
    """Returns the tool's dB of the weight, and those of what onnxruntime makes of it."""
    quantize_static("m.onnx", "q.onnx", Samples(), activation_type=QuantType.QUInt8,
                    weight_type=weight_type)
    by_tool = compute_weight_error(create_weight_matching("m.onnx", "q.onnx"))["w"]
    model = onnx.load("q.onnx")
    made = next(n for n in model.graph.node
                if n.op_type == "DequantizeLinear" and n.input[0] == "w_quantized").output[0]
    model.graph.output.append(value(made, 1, None))
    weight = onnxruntime.InferenceSession(model.SerializeToString()).run([made], {"x": X})[0]
    real = WEIGHT.astype(float)
    return by_tool, 10 * np.log10((real ** 2).sum() / ((real - weight) ** 2).sum())


changed = []
for weight_type, expected in (QuantType.QInt8, True), (QuantType.QUInt8, False):
    by_tool, by_runtime = errors(weight_type)
    print(f"{weight_type}: the tool {by_tool:.0f}, onnxruntime {by_runtime:.0f}")
    if (abs(by_tool - by_runtime) < 0.1) != expected or by_runtime < 35:
        changed.append(str(weight_type))
if changed:
    sys.exit(f"changed: {changed}")
EOF
