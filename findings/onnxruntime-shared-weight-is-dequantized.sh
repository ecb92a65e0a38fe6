#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A quantized weight that another node reads, too, is dequantized in each run.
#
# Seen with onnxruntime 1.31.1, CPU provider, default optimizations.
#
# With weights alone the optimizer makes one MatMulNBits of a DequantizeLinear and the MatMul that reads it.
# It does not where the integers, or only their scale, are an input of any other node: as when one table
# is the embeddings and the head of a model, which is stored once for that reason. Then all of the weight
# is dequantized in each run, which takes many times as long, and nothing is said. A Transpose behind the
# DequantizeLinear, and an Unsqueeze in front of the scale for the other reader, which are both computed when
# the session opens, give each its own tensor, and the MatMulNBits is made. Two products of one weight need even more: a
# DequantizeLinear and a Transpose for each, and scales of its own, though the numbers are the same.
#
# Output (4096 x 512, one row):
#
#   read by the product alone: MatMulNBits
#   its scale is read by another node: DequantizeLinear, MatMul
#   its integers are read by another node: DequantizeLinear, MatMul
#   behind a Transpose and an Unsqueeze: MatMulNBits
#   two products, each behind its own Transpose: DequantizeLinear, MatMul
#   two products, each behind its own Transpose, DequantizeLinear and scales: MatMulNBits
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
rng = np.random.default_rng(1)
WIDTH, ROWS = 512, 4096


def kernels(others, turned):
    shape = (ROWS, WIDTH) if turned else (WIDTH, ROWS)
    constants = {"q": rng.integers(-127, 128, shape).astype(np.int8),
                 "s": np.full(ROWS, .01, np.float32), "z": np.zeros(ROWS, np.int8), "last": np.array([-1])}
    nodes = [node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0 if turned else 1)]
    if turned:
        nodes.append(node("Transpose", ["d"], ["w"], perm=[1, 0]))
    nodes += [node("MatMul", ["x", "w" if turned else "d"], ["y"]), *others]
    made = [output for one in others for output in one.output if output.startswith("o")]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, WIDTH]), value("ids", 7, [2])],
                              [value("y", 1, None), *(value(name, 3 if name == "oq" else 1, None) for name in made)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return made_of(graph)


def of_two(own):
    constants = {"q": rng.integers(-127, 128, (ROWS, WIDTH)).astype(np.int8), "z": np.zeros(ROWS, np.int8)}
    nodes = [] if own else [node("DequantizeLinear", ["q", "s0", "z"], ["d0"], axis=0)]
    for i in range(2):
        constants[f"s{i}"] = np.full(ROWS, .01, np.float32)
        if own:
            nodes.append(node("DequantizeLinear", ["q", f"s{i}", "z"], [f"d{i}"], axis=0))
        nodes += [node("Transpose", [f"d{i * own}"], [f"w{i}"], perm=[1, 0]), node("MatMul", ["x", f"w{i}"], [f"y{i}"])]
    used = {name for one in nodes for name in one.input}
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, WIDTH])], [value("y0", 1, None), value("y1", 1, None)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items() if k in used])
    return made_of(graph)


def made_of(graph):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = "optimized.onnx"
    onnxruntime.InferenceSession(model.SerializeToString(), options)
    wanted = ("DequantizeLinear", "MatMul", "MatMulNBits")
    return ", ".join(sorted({n.op_type for n in onnx.load("optimized.onnx").graph.node} & set(wanted)))


rows = {"read by the product alone": kernels([], False),
        "its scale is read by another node": kernels([node("Gather", ["s", "ids"], ["os"])], False),
        "its integers are read by another node": kernels([node("Gather", ["q", "ids"], ["oq"], axis=1)], False),
        "behind a Transpose and an Unsqueeze": kernels(
            [node("Gather", ["q", "ids"], ["oq"]), node("Unsqueeze", ["s", "last"], ["u"]),
             node("Gather", ["u", "ids"], ["os"])], True),
        "two products, each behind its own Transpose": of_two(False),
        "two products, each behind its own Transpose, DequantizeLinear and scales": of_two(True)}
for name, made in rows.items():
    print(f"{name}: {made}")
if list(rows.values()) != (["MatMulNBits"] + 2 * ["DequantizeLinear, MatMul"] +
                           ["MatMulNBits", "DequantizeLinear, MatMul", "MatMulNBits"]):
    sys.exit("changed: other kernels are made")
EOF
