#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_static rounds the bias of a LayerNormalization by the scale of its input.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.
#
# The bias of a Conv becomes int32 with the scale of the input times that of the weight, because the
# kernel adds it to such integers. A LayerNormalization divides its input by its deviation, so that
# neither its output nor its bias has to do with the input's scale. The tool takes the same product for
# it all the same, as for InstanceNormalization and BatchNormalization. Where the input is large, as sound
# in units of 16 bits is, one step of the bias is larger than the bias, and all of it becomes 0, without a
# message. QuantizeBias false avoids it.
#
# Output (the same normalization of the same data times a factor, which changes no output; the dB of the
# bias in the file, and of the output against float):
#
#   factor 1: bias 85, 64 of 64 are not 0; output 41
#   factor 1000: bias 24, 61 of 64 are not 0; output 26
#   factor 32768: bias 0, 0 of 64 are not 0; output 2
#   factor 32768, float bias: bias 137, 64 of 64 are not 0; output 41
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
DATA = rng.normal(size=(16, 64)).astype(np.float32)
SCALE = rng.uniform(0.5, 1, 64).astype(np.float32)
BIAS = rng.normal(size=64).astype(np.float32)


class Samples(CalibrationDataReader):
    def __init__(self, x):
        self.samples = iter([{"x": x}])

    def get_next(self):
        return next(self.samples, None)


def decibels(real, made):
    noise = ((real.astype(float) - made) ** 2).sum()
    return 10 * np.log10((real.astype(float) ** 2).sum() / max(noise, 1e-12))


def quantize(factor, **options):
    """Returns the dB of the bias and of the output."""
    value, x = helper.make_tensor_value_info, factor * DATA
    graph = helper.make_graph(
        [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], "norm", epsilon=1e-12)], "g",
        [value("x", 1, x.shape)], [value("y", 1, x.shape)],
        [numpy_helper.from_array(SCALE, "s"), numpy_helper.from_array(BIAS, "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    onnx.save(model, "m.onnx")
    quantize_static("m.onnx", "q.onnx", Samples(x), activation_type=QuantType.QUInt8,
                    extra_options=options)
    arrays = {t.name: numpy_helper.to_array(t) for t in onnx.load("q.onnx").graph.initializer}
    bias = (arrays["b_quantized"].astype(float) * arrays["b_quantized_scale"]
            if "b_quantized" in arrays else arrays["b"])
    real, made = (onnxruntime.InferenceSession(name).run(None, {"x": x})[0]
                  for name in ("m.onnx", "q.onnx"))
    return decibels(BIAS, bias), decibels(real, made), np.count_nonzero(bias)


changed = []
for factor, options, expected in ((1, {}, True), (1000, {}, False), (32768, {}, False),
                                  (32768, {"QuantizeBias": False}, True)):
    bias, output, left = quantize(np.float32(factor), **options)
    print(f"factor {factor}{', float bias' if options else ''}: bias {bias:.0f}, "
          f"{left} of 64 are not 0; output {output:.0f}")
    if (output > 35) != expected:
        changed.append(factor)
if changed:
    sys.exit(f"changed: {changed}")
EOF
