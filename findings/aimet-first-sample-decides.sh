#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# AIMET's calibrations by histogram clip all samples at three times what the first one holds.
#
# Seen with aimet-onnx 2.42.0, onnxruntime 1.32.0.
#
# The schemes "percentile" and "tf_enhanced" keep a histogram of each tensor. Its limits come from the first
# sample that is seen, and grow to three times that on either side and no further: what later samples hold beyond is
# left out, without a message. Where the first sample is dark or silent, the range is a small part of what is
# needed, however many samples follow; the same samples in another order are right. Tensors that a Concat ties
# to one range are counted in one histogram, so that the smallest of them, if it is seen first, clips the others.
# The scheme "min_max" is right.
#
# It takes 6 GB of disk.
#
# Output (dB of a node of 8 bits, range; normal numbers in samples of 256):
#
#   min_max, 0.01 and then 7 of 1: 43 dB, -3.10 to 3.07
#   percentile, 0.01 and then 7 of 1: 1 dB, -0.08 to 0.09
#   tf_enhanced, 0.01 and then 7 of 1: 1 dB, -0.08 to 0.09
#   percentile, 7 of 1 and then 0.01: 43 dB, -3.10 to 3.07
#   tf_enhanced, 7 of 1 and then 0.01: 43 dB, -3.10 to 3.07
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    aimet-onnx==2.42.0 onnx==1.23.2 onnxruntime==1.32.0 torch==2.15.0 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import io
import sys

import numpy as np
import onnx
from aimet_onnx.common.defs import QuantScheme
from aimet_onnx.quantsim import QuantizationSimModel
from onnx import helper

graph = helper.make_graph(
    [helper.make_node("Neg", ["x"], ["y"], name="only")], "g",
    [helper.make_tensor_value_info("x", 1, [16, 16])], [helper.make_tensor_value_info("y", 1, [16, 16])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
rng = np.random.default_rng(0)
x = rng.normal(size=(16, 16)).astype(np.float32)
quiet, loud = {"x": x * np.float32(0.01)}, {"x": x}
changed = []
for scheme, name in ((QuantScheme.min_max, "min_max"), (QuantScheme.post_training_percentile, "percentile"),
                     (QuantScheme.post_training_tf_enhanced, "tf_enhanced")):
    for samples, text, right in (([quiet] + [loud] * 7, "0.01 and then 7 of 1", name == "min_max"),
                                 ([loud] * 7 + [quiet], "7 of 1 and then 0.01", True)):
        with contextlib.redirect_stdout(io.StringIO()):
            copy = onnx.ModelProto.FromString(model.SerializeToString())
            simulation = QuantizationSimModel(copy, quant_scheme=scheme)
            simulation.compute_encodings(samples)
        error = simulation.session.run(None, loud)[0] + x
        figure = 10 * np.log10(np.sum(x ** 2) / np.sum(error ** 2))
        encoding = simulation.qc_quantize_op_dict["x"].get_encodings()[0]
        print(f"{name}, {text}: {figure:.0f} dB, {encoding.min:.2f} to {encoding.max:.2f}")
        if (figure > 30) != right:
            changed.append(f"{name}, {text}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
