#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compressed weights of a Gemm with transB, or of a MatMul with three axes, make files that nothing loads.
#
# Seen with NNCF 3.4.0 (nncf.compress_weights of ONNX models), onnx 1.23.2, onnxruntime 1.31.1,
# OpenVINO 2026.4.1.
#
# Linear layers are exported as Gemm with transB = 1, whose weight has its outputs first. NNCF computes the
# right blocks of 4 bits for it, with scales of outputs by blocks, and writes the axis of the outputs into the
# DequantizeLinear. 8 bits are right there. Weights with three axes, as those of experts or of batched
# products, are wrong with 8 bits, too: their scales have two axes where one is allowed. NNCF says nothing, and
# the checker of onnx accepts the files, since it does not compare the shapes of scales; both runtimes
# refuse them.
# A weight that a MatMul and a Gemm with transB share loads, and has the scales that the first of them needs;
# for the other they stand along the axis that is summed. onnxruntime is right then, and OpenVINO, which
# NNCF is made for, answers noise.
#
# Output (dB against the float model):
#
#   MatMul, INT4_SYM: checker accepts, onnxruntime 22, OpenVINO 22
#   Gemm with transB, INT8_SYM: checker accepts, onnxruntime 44, OpenVINO 44
#   Gemm with transB, INT4_SYM: checker accepts, onnxruntime refuses, OpenVINO refuses
#   MatMul with three axes, INT8_SYM: checker accepts, onnxruntime refuses, OpenVINO refuses
#   MatMul and Gemm that share a weight, INT8_SYM: checker accepts, onnxruntime 45, OpenVINO -2
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    nncf==3.4.0 onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF' 2> nncf.log | grep -v Compression
import logging
import sys

import nncf
import numpy as np
import onnxruntime
import openvino
from onnx import checker, helper, numpy_helper

nncf.set_log_level(logging.ERROR)
onnxruntime.set_default_logger_severity(4)
node, value = helper.make_node, helper.make_tensor_value_info
SIZE = 128


def make(kind):
    """Returns a float model and its input."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(2, SIZE, 64) if kind == "three" else (SIZE, SIZE)).astype(np.float32)
    x = rng.normal(size=(2, 4, SIZE) if kind == "three" else (4, SIZE)).astype(np.float32)
    nodes = {"plain": [node("MatMul", ["x", "w"], ["y"])], "three": [node("MatMul", ["x", "w"], ["y"])],
             "transposed": [node("Gemm", ["x", "w"], ["y"], transB=1)],
             "shared": [node("MatMul", ["x", "w"], ["a"]), node("Gemm", ["a", "w"], ["y"], transB=1)]}[kind]
    graph = helper.make_graph(nodes, "g", [value("x", 1, x.shape)],
                              [value("y", 1, [*x.shape[:-1], weight.shape[-1]])],
                              [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    return model, x


def by_onnxruntime(model, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


def by_openvino(model, x):
    core = openvino.Core()
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                              {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})([x])[0]


changed = []
for kind, mode, name, expected in (
        ("plain", "INT4_SYM", "MatMul", "right"), ("transposed", "INT8_SYM", "Gemm with transB", "right"),
        ("transposed", "INT4_SYM", "Gemm with transB", "refused"),
        ("three", "INT8_SYM", "MatMul with three axes", "refused"),
        ("shared", "INT8_SYM", "MatMul and Gemm that share a weight", "wrong")):
    model, x = make(kind)
    real = by_onnxruntime(model, x)
    options = {"ratio": 1.0, "group_size": 32} if "INT4" in mode else {}
    made = nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode],
                                 **options, **({"all_layers": True} if options else {}))
    try:
        checker.check_model(made, full_check=True)
        valid = "accepts"
    except Exception:
        valid = "refuses"
    figures = []
    for run in by_onnxruntime, by_openvino:
        try:
            figures.append(10 * np.log10(np.sum(real ** 2) / np.sum((run(made, x) - real) ** 2)))
        except Exception:
            figures.append(None)
    texts = ["refuses" if f is None else f"{f:.0f}" for f in figures]
    print(f"{name}, {mode}: checker {valid}, onnxruntime {texts[0]}, OpenVINO {texts[1]}")
    if None in figures or valid == "refuses":
        seen = "refused" if figures == [None, None] and valid == "accepts" else "mixed"
    else:
        low = 12 if "INT4" in mode else 30
        seen = "right" if min(figures) > low else "wrong" if figures[0] > low > 10 > figures[1] else "bad"
    if seen != expected:
        changed.append(f"{name}, {mode}: {seen}")
if changed:
    print(f"changed: {changed}")
    sys.exit(1)
EOF
