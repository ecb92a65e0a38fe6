#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The float16 converter of onnxruntime puts the Cast of an input behind its readers: the checker refuses the model.
#
# Seen with onnxruntime 1.31.1 (onnxruntime.transformers.float16), onnx 1.23.2, onnxconverter-common 1.16.0.
#
# The nodes of an ONNX model are sorted: one that reads a tensor stands behind the one that makes it. With
# keep_io_types, convert_float_to_float16 adds a Cast for each input at the end of the graph. onnxruntime sorts nodes
# when it loads a model, and runs it. onnx's checker and its reference refuse it, and tools that
# walk the nodes in their order find an unknown tensor. The function of the same name in onnxconverter-common,
# which it comes from, sorts them.
#
# Output (a Q/DQ model and a float one; the checker, the reference and the runtime):
#
#   onnxruntime, MatMul behind a pair: checker refuses, reference refuses, onnxruntime runs
#   onnxruntime, MatMul: checker refuses, reference refuses, onnxruntime runs
#   onnxconverter-common, MatMul behind a pair: checker takes, reference runs, onnxruntime runs
#   onnxconverter-common, MatMul: checker takes, reference runs, onnxruntime runs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 onnxconverter-common==1.16.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxconverter_common import float16 as common
from onnxruntime.transformers import float16 as own

node = helper.make_node
rng = np.random.default_rng(0)
data = {"x": rng.normal(size=(3, 8)).astype(np.float32)}


def make(pair):
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["a"])]
    nodes = (nodes if pair else []) + [node("MatMul", ["a" if pair else "x", "w"], ["y"])]
    constants = {"w": rng.normal(size=(8, 6)).astype(np.float32)}
    if pair:
        constants |= {"s": np.float32(0.03), "z": np.int8(0)}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [3, 8])], [helper.make_tensor_value_info("y", 1, [3, 6])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def attempt(action, good, bad="refuses"):
    try:
        action()
    except Exception:
        return bad
    return good


found = {}
for name, module in ("onnxruntime", own), ("onnxconverter-common", common):
    for text, pair in ("MatMul behind a pair", True), ("MatMul", False):
        model = module.convert_float_to_float16(make(pair), keep_io_types=True)
        answers = (attempt(lambda: onnx.checker.check_model(model), "takes"),
                   attempt(lambda: ReferenceEvaluator(model).run(None, data), "runs"),
                   attempt(lambda: onnxruntime.InferenceSession(
                       model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, data), "runs"))
        found.setdefault(name, set()).add(answers)
        print(f"{name}, {text}: checker {answers[0]}, reference {answers[1]}, onnxruntime {answers[2]}")
if found != {"onnxruntime": {("refuses", "refuses", "runs")}, "onnxconverter-common": {("takes", "runs", "runs")}}:
    sys.exit("changed: another order of nodes")
EOF
