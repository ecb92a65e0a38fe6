#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_static keeps all activations of its histogram methods, and its limit drops samples.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.
#
# The methods Percentile and Entropy keep every observed tensor of every sample until the last one was
# run: here 12 MiB for each sample of a network of two small Conv, and as many GiB as there are samples
# for a real one. The option CalibMaxIntermediateOutputs = n looks like the remedy. With MinMax it
# clears what was collected after every n samples before it was merged into the range: samples of
# 10, 1, 2 and 3 give the scale of the last one alone for n = 3, and for n that divides their number
# the call ends with "No data is collected". No message tells of the lost samples.
#
# Output (the scale should be 10 / 255 = 0.0392; the memory is that of the process, with Percentile):
#
#   no limit: 0.0392
#   limit 3: 0.0118
#   limit 1, 2, 4: No data is collected.
#   peak with 4 samples 118 MiB, with 36 samples 511 MiB
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
import os
import resource
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, quantize_static

logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)


class Samples(CalibrationDataReader):
    def __init__(self, values, shape):
        self.samples = iter([{"x": np.full(shape, v, np.float32)} for v in values])

    def get_next(self):
        return next(self.samples, None)


def write_model(path, channels, side):
    node, value = helper.make_node, helper.make_tensor_value_info
    shape = [1, channels, side, side]
    weights = [numpy_helper.from_array(
        rng.normal(size=(channels, channels, 3, 3)).astype(np.float32), name) for name in "vw"]
    graph = helper.make_graph(
        [node("Conv", ["x", "v"], ["c"], "first", pads=[1] * 4), node("Relu", ["c"], ["r"], "relu"),
         node("Conv", ["r", "w"], ["y"], "last", pads=[1] * 4)],
        "g", [value("x", 1, shape)], [value("y", 1, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    return shape


def scale_with(limit, shape):
    options = {} if limit is None else {"CalibMaxIntermediateOutputs": limit}
    try:
        quantize_static("m.onnx", "q.onnx", Samples([10, 1, 2, 3], shape), extra_options=options)
    except ValueError as error:
        return str(error)
    [scale] = [t for t in onnx.load("q.onnx").graph.initializer if t.name == "x_scale"]
    return f"{numpy_helper.to_array(scale):.4f}"


def peak_with(samples, shape):
    """Returns the most memory, in MiB, of a child process that quantizes by Percentile."""
    child = os.fork()
    if not child:
        sys.stdout = open(os.devnull, "w")
        quantize_static("m.onnx", "q.onnx", Samples(range(1, samples + 1), shape),
                        calibrate_method=CalibrationMethod.Percentile)
        os._exit(0)
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_maxrss // 1024


large = write_model("m.onnx", 8, 256)
few, many = peak_with(4, large), peak_with(36, large)
shape = write_model("m.onnx", 4, 8)
seen = {limit: scale_with(limit, shape) for limit in (None, 3, 1, 2, 4)}
for limit, scale in seen.items():
    print("no limit:" if limit is None else f"limit {limit}:", scale)
print(f"peak with 4 samples {few} MiB, with 36 samples {many} MiB")
lost = [seen[n] for n in (1, 2, 4)]
if seen[None] != "0.0392" or seen[3] != "0.0118" or lost != ["No data is collected."] * 3:
    sys.exit("changed: the limit gives other scales")
if many - few < 100:
    sys.exit("changed: the activations are not kept")
EOF
