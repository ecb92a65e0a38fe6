#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NNCF writes int4 weights into models of opset 20 that no checker accepts and ONNX Runtime refuses.
#
# Seen with NNCF 3.4.0, onnx 1.23.2 and onnxruntime 1.31.1.
#
# 4-bit types came to DequantizeLinear with opset 21. compress_weights() does not raise the opset of an
# older model, and does not refuse it. It writes one of two things instead:
#
# - With groups: MatMulNBits of com.microsoft, a domain that the file does not import, so that
#   check_model() fails. INT4_SYM runs in onnxruntime all the same. INT4_ASYM does not load: its zero
#   points are one a byte, where the operator has two a byte.
# - With group_size = -1, a scale for each column: a DequantizeLinear of int4 or uint4 at opset 20,
#   which the schema forbids.
#
# At opset 21 the same calls write valid files.
#
# Output (check_model(), and what a session of onnxruntime says):
#
#   opset 20, INT4_SYM, group_size 32: invalid, runs
#   opset 20, INT4_SYM, group_size -1: invalid, refused
#   opset 20, INT4_ASYM, group_size 32: invalid, refused
#   opset 20, INT4_ASYM, group_size -1: invalid, refused
#   opset 21, the same four: valid, runs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    nncf==3.4.0 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import contextlib
import io
import sys

import nncf
import numpy as np
import onnxruntime
from onnx import checker, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
nncf.set_log_level(40)
rng = np.random.default_rng(0)
WEIGHT = rng.normal(size=(256, 256)).astype(np.float32)
X = rng.normal(size=(4, 256)).astype(np.float32)


def compress(opset, mode, group_size):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g",
        [value("x", 1, [4, 256])], [value("y", 1, [4, 256])],
        [numpy_helper.from_array(WEIGHT, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    with contextlib.redirect_stdout(io.StringIO()):  # The bar of its progress.
        return nncf.compress_weights(model, mode=getattr(nncf.CompressWeightsMode, mode),
                                     group_size=group_size, all_layers=True)


def judge(model):
    try:
        checker.check_model(model, full_check=True)
        valid = "valid"
    except Exception:
        valid = "invalid"
    try:
        onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})
        return valid, "runs"
    except Exception:
        return valid, "refused"


lines, changed = [], []
for opset in 20, 21:
    for mode in "INT4_SYM", "INT4_ASYM":
        for group_size in 32, -1:
            name = f"opset {opset}, {mode}, group_size {group_size}"
            verdict = judge(compress(opset, mode, group_size))
            lines.append(f"{name}: {verdict[0]}, {verdict[1]}")
            runs = opset == 21 or (mode == "INT4_SYM" and group_size == 32)
            if verdict != ("valid" if opset == 21 else "invalid", "runs" if runs else "refused"):
                changed.append(name)
print(*lines, sep="\n")
if changed:
    sys.exit(f"changed: {changed}")
EOF
