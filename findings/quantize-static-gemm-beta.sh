#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_static loses the factor beta of a Gemm.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization, both formats.
#
# A Gemm computes alpha A B + beta C. The tool makes int32 of C with the scale of A times that of B times
# beta, which dequantizes to C, and then sets beta to 1 or leaves it out: by the file C is added and not
# beta C. onnxruntime's integer Gemm takes the scale of A times that of B for the integers, whatever the
# file says (onnxruntime-gemm-bias-scale.sh), and adds C / beta. torch.addmm(beta=...) is exported as such
# nodes. Nothing is said.
#
# Output (dB of the output against float; the largest value of C is about 90):
#
#   QDQ, beta 1.0, default: 35 dB; adds beta C (35 dB)
#   QDQ, beta 1.0, literal: 35 dB; adds beta C (35 dB)
#   QDQ, beta 0.5, default: -9 dB; adds C / beta (40 dB)
#   QDQ, beta 0.5, literal: 1 dB; adds C (35 dB)
#   QOperator, beta 1.0, default: 35 dB; adds beta C (35 dB)
#   QOperator, beta 1.0, literal: 35 dB; adds beta C (35 dB)
#   QOperator, beta 0.5, default: -9 dB; adds C / beta (40 dB)
#   QOperator, beta 0.5, literal: -9 dB; adds C / beta (40 dB)
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
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(0)
X = rng.normal(size=(16, 64)).astype(np.float32)
WEIGHT = rng.normal(size=(64, 32)).astype(np.float32)
BIAS = (30 * rng.normal(size=32)).astype(np.float32)


class Samples(CalibrationDataReader):
    def __init__(self):
        self.samples = iter([{"x": X}])

    def get_next(self):
        return next(self.samples, None)


def sqnr_db(beta, style):
    """Returns the dB of the result by default and without optimizations, against A B plus beta C,
    C and C / beta."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "c"], ["y"], "gemm", beta=beta)], "g",
        [value("x", 1, X.shape)], [value("y", 1, [16, 32])],
        [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(BIAS, "c")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    onnx.save(model, "m.onnx")
    quantize_static("m.onnx", "q.onnx", Samples(), quant_format=style,
                    activation_type=QuantType.QUInt8, reduce_range=True,
                    extra_options={"TensorQuantOverrides": {
                        "y": [{"rmin": np.float32(-300), "rmax": np.float32(300)}]}})
    rows = []
    for level in "ORT_ENABLE_ALL", "ORT_DISABLE_ALL":
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        made = onnxruntime.InferenceSession("q.onnx", options).run(None, {"x": X})[0]
        rows.append([10 * np.log10((real ** 2).sum() / ((real - made) ** 2).sum())
                     for real in (X.astype(float) @ WEIGHT + f * BIAS for f in (beta, 1, 1 / beta))])
    return rows


changed = []
for style in QuantFormat.QDQ, QuantFormat.QOperator:
    for beta in 1.0, 0.5:
        seen = []
        for level, db in zip(("default", "literal"), sqnr_db(beta, style)):
            seen.append(("beta C", "C", "C / beta")[int(np.argmax(db))])
            print(f"{style}, beta {beta}, {level}: {db[0]:.0f} dB; adds {seen[-1]} ({max(db):.0f} dB)")
            if max(db) < 25:
                changed.append(f"{style}, {beta}, {level}")
        if beta != 1 and seen != ["C / beta", "C" if style == QuantFormat.QDQ else "C / beta"]:
            changed.append(f"{style}, {beta}: {seen}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
