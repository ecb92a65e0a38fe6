#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One call of ModelOpt changes the names of operators in the results of all later calls.
#
# Seen with nvidia-modelopt 0.47.0, mode int4, with the onnxruntime-gpu 1.24.4 that it asks for.
#
# The method "rtn_trt" writes pairs of its own name, TRT_INT4DequantizeLinear, for TensorRT alone. It does so by a
# variable of the module, which nothing sets back. In the same process each later result for any other method
# has that name, too: what was a valid ONNX model before is one that onnx's checker and onnxruntime refuse. So a
# script that compares methods gets other files by the order in which it tries them. The method "rtn" gives a
# file that loads, and that onnxruntime refuses in its first run, as its pairs have no block size.
#
# It takes 6 GB of disk.
#
# Output (the same model and options, three calls in one process):
#
#   rtn_dq: DequantizeLinear, runs
#   rtn_trt: TRT_INT4DequantizeLinear, refused
#   rtn_dq: TRT_INT4DequantizeLinear, refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    "nvidia-modelopt[onnx]==0.47.0" onnx==1.21.0 torch==2.15.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import io
import sys

import numpy as np
import onnx
import onnxruntime
from modelopt.onnx.quantization import quantize
from onnx import helper, numpy_helper

rng = np.random.default_rng(1)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"], name="only")], "g",
    [helper.make_tensor_value_info("x", 1, [16, 256])], [helper.make_tensor_value_info("y", 1, [16, 64])],
    [numpy_helper.from_array(rng.normal(size=(256, 64)).astype(np.float32), "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "float.onnx")
data = {"x": rng.normal(size=(16, 256)).astype(np.float32)}
seen = []
for method in "rtn_dq", "rtn_trt", "rtn_dq":
    with contextlib.redirect_stdout(io.StringIO()):
        quantize("float.onnx", "int4", calibration_data=data, calibration_method=method, output_path="made.onnx",
                 calibration_eps=["cpu"], high_precision_dtype="fp32")
    names = {item.op_type for item in onnx.load("made.onnx").graph.node if "Dequantize" in item.op_type}
    try:
        onnxruntime.InferenceSession("made.onnx", providers=["CPUExecutionProvider"]).run(None, data)
        state = "runs"
    except Exception as error:  # its exceptions have no class of their own in common
        state = "refused"
    seen.append((*names, state))
    print(f"{method}: {', '.join(seen[-1])}")
if seen[0] != ("DequantizeLinear", "runs") or seen[2] == seen[0]:
    sys.exit("changed: the second result for rtn_dq")
EOF
