#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Quark drops Relus in front of pairs that hold negative numbers, with two of its calibrations.
#
# Seen with amd-quark 0.13, onnx 1.21.0, onnxruntime 1.31.1.
#
# A Relu in front of a pair may be dropped where the pair begins at 0. Quark drops it for uint8 activations unless
# the option ActivationSymmetric is set. The calibrations Distribution and PowerOfTwoMethod.MinMSE give symmetric ranges
# without that option: their zero point is 128, and what the Relu cut off goes on. There is no message, and
# the network of three layers is noise. With ActivationSymmetric the same calibrations
# keep the Relu and are right, and so is MinMax.
#
# It takes 6 GB of disk.
#
# Output (Conv, Relu, Conv, Relu, mean, Gemm; uint8 activations):
#
#   MinMax: 0 Relu, 38 dB
#   Distribution: 0 Relu, -0 dB
#   MinMSE: 0 Relu, -0 dB
#   Distribution, ActivationSymmetric: 2 Relu, 37 dB
#   MinMSE, ActivationSymmetric: 2 Relu, 37 dB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    amd-quark==0.13 onnx==1.21.0 onnxruntime==1.31.1 torch==2.15.0 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import io
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader
from quark.onnx import CalibrationMethod, ModelQuantizer, PowerOfTwoMethod, QuantFormat, QuantizationConfig, QuantType
from quark.onnx.quantization.config.config import Config

node, value = helper.make_node, helper.make_tensor_value_info
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.samples = iter(samples)

    def get_next(self):
        return next(self.samples, None)


weights = {"v": normal(8, 3, 3, 3) / 5, "w": normal(8, 8, 3, 3) / 8, "u": normal(10, 8)}
graph = helper.make_graph(
    [node("Conv", ["x", "v"], ["a"], name="first"), node("Relu", ["a"], ["b"], name="relu"),
     node("Conv", ["b", "w"], ["c"], name="second"), node("Relu", ["c"], ["d"], name="other"),
     node("GlobalAveragePool", ["d"], ["e"], name="mean"), node("Flatten", ["e"], ["f"], name="flat"),
     node("Gemm", ["f", "u"], ["y"], name="third", transB=1)], "g",
    [value("x", 1, ["n", 3, 16, 16])], [value("y", 1, ["n", 10])],
    [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "float.onnx")
data = {"x": normal(16, 3, 16, 16)}


def run(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, data)[0]


real, changed = run("float.onnx"), []
for text, method, options, right in (
        ("MinMax", CalibrationMethod.MinMax, {}, True), ("Distribution", CalibrationMethod.Distribution, {}, False),
        ("MinMSE", PowerOfTwoMethod.MinMSE, {}, False),
        ("Distribution, ActivationSymmetric", CalibrationMethod.Distribution, {"ActivationSymmetric": True}, True),
        ("MinMSE, ActivationSymmetric", PowerOfTwoMethod.MinMSE, {"ActivationSymmetric": True}, True)):
    config = QuantizationConfig(calibrate_method=method, quant_format=QuantFormat.QDQ, extra_options=options,
                                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    with contextlib.redirect_stdout(io.StringIO()):
        ModelQuantizer(Config(global_quant_config=config)).quantize_model("float.onnx", "made.onnx", Reader([data]))
    relus = sum(item.op_type == "Relu" for item in onnx.load("made.onnx").graph.node)
    figure = 10 * np.log10(np.sum(real ** 2) / np.sum((run("made.onnx") - real) ** 2))
    print(f"{text}: {relus} Relu, {figure:.0f} dB")
    if (figure > 20) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
