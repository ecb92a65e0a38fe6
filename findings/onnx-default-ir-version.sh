#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A model of opset 13 that onnx's newest release makes is refused by onnxruntime's newest release.
#
# Seen with onnx 1.23.2 and onnxruntime 1.31.1, released in the same month, and OpenVINO 2026.4.1.
#
# helper.make_model writes the newest version of the file format, 14, whatever operators the model has, and
# the opset that is asked for does not lower it. onnxruntime takes 13 at most, so that scripts that worked
# break by an update of onnx alone; OpenVINO takes the file. helper.make_model_gen_version chooses the lowest
# version for the opset. Without an opset a model has opset 28, of which onnxruntime takes 26. The converter
# of opsets does not raise the version of the format: opset 25 in a file of version 8 passes the checker,
# although that opset came with version 13.
#
# Output:
#
#   make_model, opset 13: version 14, onnxruntime refuses, OpenVINO loads
#   make_model_gen_version, opset 13: version 7, onnxruntime loads, OpenVINO loads
#   make_model without an opset, version 13: opset 28, onnxruntime refuses
#   convert_version to opset 25: version 8, checker accepts, onnxruntime loads
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

import onnxruntime
import openvino
from onnx import checker, helper, version_converter

onnxruntime.set_default_logger_severity(4)


def graph():
    x, y = (helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    return helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])


def by_onnxruntime(model):
    try:
        onnxruntime.InferenceSession(model.SerializeToString())
        return "loads"
    except Exception:
        return "refuses"


def by_openvino(model):
    try:
        openvino.Core().read_model(model.SerializeToString())
        return "loads"
    except Exception:
        return "refuses"


opset = {"opset_imports": [helper.make_opsetid("", 13)]}
first, second = helper.make_model(graph(), **opset), helper.make_model_gen_version(graph(), **opset)
third, fourth = helper.make_model(graph(), ir_version=13), helper.make_model(graph(), ir_version=8, **opset)
for model in first, second, third, fourth:
    checker.check_model(model, full_check=True)
fourth = version_converter.convert_version(fourth, 25)
try:
    checker.check_model(fourth, full_check=True)
    valid = "accepts"
except Exception:
    valid = "refuses"
seen = [
    f"make_model, opset 13: version {first.ir_version}, onnxruntime {by_onnxruntime(first)}, "
    f"OpenVINO {by_openvino(first)}",
    f"make_model_gen_version, opset 13: version {second.ir_version}, onnxruntime {by_onnxruntime(second)}, "
    f"OpenVINO {by_openvino(second)}",
    f"make_model without an opset, version 13: opset {third.opset_import[0].version}, "
    f"onnxruntime {by_onnxruntime(third)}",
    f"convert_version to opset 25: version {fourth.ir_version}, checker {valid}, "
    f"onnxruntime {by_onnxruntime(fourth)}"]
print("\n".join(seen))
expected = [
    "make_model, opset 13: version 14, onnxruntime refuses, OpenVINO loads",
    "make_model_gen_version, opset 13: version 7, onnxruntime loads, OpenVINO loads",
    "make_model without an opset, version 13: opset 28, onnxruntime refuses",
    "convert_version to opset 25: version 8, checker accepts, onnxruntime loads"]
if seen != expected:
    sys.exit(f"changed: {[line for line in seen if line not in expected]}")
EOF
