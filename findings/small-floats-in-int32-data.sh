#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two runtimes take the bits of small floats in int32_data for numbers: a weight of 0.125 becomes 32.
#
# Seen with OpenVINO 2026.4.1 (CPU plugin), tinygrad 0.14.0 (CPU), onnx 1.23.2 and onnxruntime 1.31.1.
#
# A tensor of ONNX holds its elements in raw_data or in a field for their type. For floats of 8 and 16 bits that is
# int32_data, whose entries are the bits of an element (onnx.proto says so), and helper.make_tensor fills it. OpenVINO
# converts each entry of float8 and bfloat16 as if it were the number: weights of 8 bits are a hundred times too
# large, and those of bfloat16 are 10000 times. tinygrad does so with both of 16 bits. The model loads without a
# message. The same tensor in raw_data, which numpy_helper.from_array makes, is right, and so are 4-bit integers in
# OpenVINO.
#
# Output (largest difference from the reference of onnx, weights below 3):
#
#   FLOAT8E4M3FN: OpenVINO 194.25, from raw_data 0; tinygrad refuses it; onnxruntime 0
#   FLOAT8E5M2: OpenVINO 194.5, from raw_data 0; tinygrad refuses it; onnxruntime 0
#   BFLOAT16: OpenVINO 49154.3, from raw_data 0; tinygrad 49154.3, from raw_data 0; onnxruntime 0
#   FLOAT16: OpenVINO 0, from raw_data 0; tinygrad 49314.3, from raw_data 0; onnxruntime 0
#   INT4: OpenVINO 0, from raw_data 0; tinygrad refuses it; onnxruntime 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export DEV=PYTHON ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 tinygrad==0.14.0 numpy==2.4.6 || exit 2
export XDG_CACHE_HOME="$folder/cache"
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

numbers = np.random.default_rng(0).normal(size=48)
data = {"x": np.zeros((6, 8), np.float32)}
compiler, changed = openvino.Core(), []
expected = {"BFLOAT16": ["OpenVINO", "tinygrad"], "FLOAT16": ["tinygrad"], "INT4": []}


def make(weight):
    """Returns a model that adds a weight, which a Cast makes float32, to its input."""
    graph = helper.make_graph(
        [helper.make_node("Cast", ["w"], ["a"], to=onnx.TensorProto.FLOAT),
         helper.make_node("Add", ["x", "a"], ["y"])], "g",
        [helper.make_tensor_value_info("x", 1, [6, 8])], [helper.make_tensor_value_info("y", 1, [6, 8])], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")
    return model


def run_openvino():
    compiled = compiler.compile_model("model.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled(data)[compiled.outputs[0]]


def run_tinygrad():
    return OnnxRunner("model.onnx")({"x": Tensor(data["x"])})["y"].numpy()


for name in "FLOAT8E4M3FN", "FLOAT8E5M2", "BFLOAT16", "FLOAT16", "INT4":
    values = (np.clip(np.round(numbers * 3), -8, 7).astype(int) if name == "INT4" else numbers).tolist()
    typed = helper.make_tensor("w", onnx.TensorProto.DataType.Value(name), [6, 8], values)
    raw = numpy_helper.from_array(numpy_helper.to_array(typed), "w")
    real = ReferenceEvaluator(make(typed)).run(None, data)[0]
    said, wrong = [], []
    for text, run in ("OpenVINO", run_openvino), ("tinygrad", run_tinygrad):
        differences = []
        for weight in typed, raw:
            make(weight)
            try:
                differences.append(np.abs(run() - real).max())
            except Exception:
                break
        if len(differences) == 2:
            said.append(f"{text} {differences[0]:g}, from raw_data {differences[1]:g}")
            if differences[0] > 1 > differences[1]:
                wrong.append(text)
        else:
            said.append(f"{text} refuses it")
    session = onnxruntime.InferenceSession(make(typed).SerializeToString(), providers=["CPUExecutionProvider"])
    other = np.abs(session.run(None, data)[0] - real).max()
    print(f"{name}: {'; '.join(said)}; onnxruntime {other:g}")
    if wrong != expected.get(name, ["OpenVINO"]) or other > 0:
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
