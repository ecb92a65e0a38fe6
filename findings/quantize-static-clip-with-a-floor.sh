#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_static drops a Clip whose lower bound is above 0, and values below the bound come through.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.
#
# Where activations are not symmetric, which is the default, the tool removes a Clip behind a quantized
# layer: the QuantizeLinear behind it clips to the range that was observed. But such a range has to hold
# 0, so that it never clips at a bound above 0. A floor under a deviation, a norm or a power that is
# divided by is such a Clip. Its removal also takes a Clip whose bounds are inputs of the model: the
# inputs stay and have no effect. QDQKeepRemovableActivations keeps both.
#
# Output:
#
#   a floor of 1: Clip in the result: False, lowest output 0.00
#   the same, kept: Clip in the result: True, lowest output 1.00
#   a floor that the caller gives: Clip in the result: False, lowest outputs for 0, 1 and 2: 0.00, 0.00, 0.00
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
from onnx import checker, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
X = rng.normal(size=(16, 64)).astype(np.float32)
WEIGHT = (rng.normal(size=(64, 32)) / 8).astype(np.float32)


class Samples(CalibrationDataReader):
    def __init__(self, feed):
        self.samples = iter([feed])

    def get_next(self):
        return next(self.samples, None)


def quantize(given, feed, **options):
    """Returns the operators of the result, and its output."""
    node, value = helper.make_node, helper.make_tensor_value_info
    constants = {"w": WEIGHT} | ({} if given else {"low": np.float32(1)})
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["p"], "product"), node("Clip", ["p", "low"], ["y"], "floor")],
        "g", [value("x", 1, X.shape)] + ([value("low", 1, [])] if given else []),
        [value("y", 1, [16, 32])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    onnx.save(model, "m.onnx")
    quantize_static("m.onnx", "q.onnx", Samples({"x": X} | feed), activation_type=QuantType.QUInt8,
                    reduce_range=True, extra_options=options)
    session = onnxruntime.InferenceSession("q.onnx")
    return ({n.op_type for n in onnx.load("q.onnx").graph.node},
            lambda **more: session.run(None, {"x": X} | more)[0])


changed = []
operators, run = quantize(False, {})
print(f"a floor of 1: Clip in the result: {'Clip' in operators}, lowest output {run().min():.2f}")
if "Clip" in operators or run().min() > 0.5:
    changed.append("a floor of 1")
operators, run = quantize(False, {}, QDQKeepRemovableActivations=True)
print(f"the same, kept: Clip in the result: {'Clip' in operators}, lowest output {run().min():.2f}")
if "Clip" not in operators or run().min() < 0.9:
    changed.append("kept")
operators, run = quantize(True, {"low": np.array(0, np.float32)})
lows = [run(low=np.array(low, np.float32)).min() for low in (0, 1, 2)]
print("a floor that the caller gives: Clip in the result: {}, lowest outputs for 0, 1 and 2: "
      "{:.2f}, {:.2f}, {:.2f}".format("Clip" in operators, *lows))
if "Clip" in operators or len(set(lows)) > 1:
    changed.append("a floor that the caller gives")
if changed:
    sys.exit(f"changed: {changed}")
EOF
