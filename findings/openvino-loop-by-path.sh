#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A model loads from memory, and the same bytes do not load from their file.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32.
#
# A value that a Loop carries from step to step may leave its body as it came: the body's output is its
# input, by the same name. Weights of recurrent layers that converters write as Loops are carried so. read_model() with
# the model's bytes has such a Loop, and its numbers are right. read_model() with the path of a file
# of these bytes counts an input of the body too many and refuses the Loop. An Identity between the
# two makes both load. What was tried in memory says nothing of who loads the file.
#
# Output:
#
#   handed out by an Identity: from memory as onnxruntime, from the file as onnxruntime
#   handed straight out: from memory as onnxruntime, from the file OpConversionFailure
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

X = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)
WEIGHT = np.sin(np.arange(16, dtype=np.float32)).reshape(4, 4)


def make_model(is_direct):
    """Three steps of y = tanh(y W), which carry W."""
    node, value = helper.make_node, helper.make_tensor_value_info
    handed = "w" if is_direct else "w_after"
    nodes = [node("Identity", ["go"], ["go_on"]), node("MatMul", ["y", "w"], ["product"]),
             node("Tanh", ["product"], ["y_after"])]
    if not is_direct:
        nodes.append(node("Identity", ["w"], [handed]))
    body = helper.make_graph(
        nodes, "step",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
         value("y", TensorProto.FLOAT, [1, 4]), value("w", TensorProto.FLOAT, [4, 4])],
        [value("go_on", TensorProto.BOOL, []), value("y_after", TensorProto.FLOAT, [1, 4]),
         value(handed, TensorProto.FLOAT, [4, 4])])
    graph = helper.make_graph(
        [node("Loop", ["steps", "begin", "x", "weight"], ["result", "last"], body=body)], "g",
        [value("x", TensorProto.FLOAT, [1, 4])], [value("result", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(np.int64(3), "steps"), numpy_helper.from_array(np.array(True), "begin"),
         numpy_helper.from_array(WEIGHT, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def answer(model, wanted):
    core = openvino.Core()
    try:
        compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    except RuntimeError as error:
        return "OpConversionFailure" if "OpConversionFailure" in str(error) else str(error)
    made = compiled([X])[0]
    return "as onnxruntime" if np.allclose(made, wanted, atol=1e-5) else f"other numbers: {made}"


changed = False
for is_direct, expected in ((False, "as onnxruntime"), (True, "OpConversionFailure")):
    model = make_model(is_direct)
    onnx.save(model, "model.onnx")
    wanted = onnxruntime.InferenceSession("model.onnx").run(None, {"x": X})[0]
    memory, file = answer(model.SerializeToString(), wanted), answer("model.onnx", wanted)
    print(f"handed {'straight out' if is_direct else 'out by an Identity'}: from memory {memory}, "
          f"from the file {file}")
    changed |= (memory, file) != ("as onnxruntime", expected)
sys.exit("this is not what was seen" if changed else 0)
EOF
