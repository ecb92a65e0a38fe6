#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Options that choose what ModelOpt quantizes, and how, have no effect where weights alone become int4.
#
# Seen with nvidia-modelopt 0.47.0, mode int4, with the onnxruntime-gpu 1.24.4 that it asks for.
#
# One function of ModelOpt quantizes ONNX models in each of its modes, and takes one list of options. In the mode
# int4 most of them are dropped without a message: to exclude all MatMuls by their type, to quantize Convs alone, or
# one node by its name gives the same bytes as no option at all. So does `use_zero_point`, except with a method
# that scales activations (awq_lite). Names of operators are even checked for their spelling before they are
# ignored. `nodes_to_exclude` does what it says. In the mode int8 it is the method whose name is not looked at:
# "percentile" and "mean" are taken, and are the maximum.
#
# It takes 6 GB of disk.
#
# Output (two MatMuls):
#
#   int4, op_types_to_exclude MatMul: ignored
#   int4, op_types_to_quantize Conv: ignored
#   int4, nodes_to_quantize first: ignored
#   int4, use_zero_point True: ignored
#   int4, nodes_to_exclude first: heeded
#   int8, calibration_method percentile: ignored
#   int8, calibration_method mean: ignored
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
from modelopt.onnx.quantization import quantize
from onnx import helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
rng = np.random.default_rng(1)
graph = helper.make_graph(
    [node("MatMul", ["x", "v"], ["h"], name="first"), node("Relu", ["h"], ["r"], name="relu"),
     node("MatMul", ["r", "w"], ["y"], name="second")], "g",
    [value("x", 1, [64, 256])], [value("y", 1, [64, 64])],
    [numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
     for name, shape in (("v", (256, 128)), ("w", (128, 64)))])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "float.onnx")
data = rng.standard_t(4, size=(64, 256)).astype(np.float32)


def made(mode, options):
    """Returns the constants and nodes of a result."""
    with contextlib.redirect_stdout(io.StringIO()):
        quantize("float.onnx", mode, calibration_data={"x": data}, output_path="made.onnx",
                 calibration_eps=["cpu"], high_precision_dtype="fp32", **options)
    graph = onnx.load("made.onnx").graph
    return (sorted(item.SerializeToString(deterministic=True) for item in graph.initializer),
            [item.op_type for item in graph.node])


usual = {"int4": made("int4", {}), "int8": made("int8", {"calibration_method": "max"})}
changed = []
for mode, name, choice, heeded in (
        ("int4", "op_types_to_exclude", ["MatMul"], False), ("int4", "op_types_to_quantize", ["Conv"], False),
        ("int4", "nodes_to_quantize", ["first"], False), ("int4", "use_zero_point", True, False),
        ("int4", "nodes_to_exclude", ["first"], True), ("int8", "calibration_method", "percentile", False),
        ("int8", "calibration_method", "mean", False)):
    text = f"{mode}, {name} {choice[0] if isinstance(choice, list) else choice}"
    seen = made(mode, {name: choice}) != usual[mode]
    print(f"{text}: {'heeded' if seen else 'ignored'}")
    if seen != heeded:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
