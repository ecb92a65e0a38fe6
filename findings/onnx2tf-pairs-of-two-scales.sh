#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onnx2tf dequantizes with the scale and the zero point of the QuantizeLinear, whatever the file says.
#
# Seen with onnx2tf 2.6.9, ai-edge-litert 2.1.2, onnx 1.20.1, Python 3.12.
#
# A tensor of TFLite has one scale and one zero point, and ONNX has those of both nodes around an integer tensor.
# Where they differ, as where integers are scaled anew or a constant factor was put into the second scale, onnx2tf
# takes the first for both: outputs are the input and not its multiple, and a shift by zero points is lost. A
# QuantizeLinear without a zero point, which is uint8, becomes int8, so that what is below zero is not cut off. There
# is no message. Pairs of one scale and one zero point are
# right.
#
# It needs Python 3.12 or later, which onnx2tf asks for.
#
# Output (error of the outputs, 1 is as large as the outputs):
#
#   int8, one scale, one zero point: 0.00
#   int8, 0.1 and 0.2: 0.50
#   int8, zero points 2 and 50: 0.84
#   uint8, zero point 0: 0.00
#   uint8, no zero point: 1.33
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx2tf==2.6.9 ai-edge-litert==2.1.2 onnx==1.20.1 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import glob
import io
import sys

import numpy as np
import onnx
import onnx2tf
from ai_edge_litert.interpreter import Interpreter
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32) * 3
int8, uint8 = np.int8, np.uint8


def run(number):
    """Returns what LiteRT makes of the model that onnx2tf converts."""
    with contextlib.redirect_stdout(io.StringIO()):
        onnx2tf.convert(input_onnx_file_path="model.onnx", output_folder_path=f"made{number}", non_verbose=True)
    interpreter = Interpreter(glob.glob(f"made{number}/*float32.tflite")[0])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


changed = []
for number, (text, first, second, right) in enumerate((
        ("int8, one scale, one zero point", (0.1, int8(2)), (0.1, int8(2)), True),
        ("int8, 0.1 and 0.2", (0.1, int8(2)), (0.2, int8(2)), False),
        ("int8, zero points 2 and 50", (0.1, int8(2)), (0.1, int8(50)), False),
        ("uint8, zero point 0", (0.1, uint8(0)), (0.1, uint8(0)), True),
        ("uint8, no zero point", (0.1, None), (0.1, None), False))):
    constants, names = [], []
    for i, (scale, zero) in enumerate((first, second)):
        names.append([f"s{i}"] + ([f"z{i}"] if zero is not None else []))
        values = [np.float32(scale)] + ([zero] if zero is not None else [])
        constants += [numpy_helper.from_array(np.asarray(v), k) for k, v in zip(names[i], values)]
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", *names[0]], ["q"]),
         helper.make_node("DequantizeLinear", ["q", *names[1]], ["y"])], "g",
        [helper.make_tensor_value_info("x", 1, [4, 6])], [helper.make_tensor_value_info("y", 1, [4, 6])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")
    real = ReferenceEvaluator(model).run(None, {"x": x})[0]
    error = np.sqrt(np.mean((run(number) - real) ** 2) / np.mean(real ** 2))
    print(f"{text}: {error:.2f}")
    if (error < 0.01) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
