#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A table with a scale for each column is multiplied by the scales of rows where a Gather reads it.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, INFERENCE_PRECISION_HINT f32, x86-64.
#
# A table of embeddings may have a scale for each of its columns, as the weight of a MatMul has, which may be
# the same tensor. OpenVINO loads such a table in front of a Gather, and answers other numbers without a
# message, for 8 and 4 bits, with zero points and without, where rows are gathered and where columns are.
# Scales for each row, one scale, and blocks are right, and so is an Add in the place of the Gather.
#
# Output (dB against the literal numbers, a table of 32 by 96 of which rows are gathered):
#
#   int8, a scale for each row: 200
#   int8, a scale for each column: 6
#   uint8, a scale for each column: 6
#   int4, a scale for each column: 6
#   int8, blocks of 16 along the columns: 200
#   int8, a scale for each column, in front of an Add: 200
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 openvino==2026.4.1 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys

import ml_dtypes
import numpy as np
import openvino
from onnx import checker, helper, numpy_helper

node, value = helper.make_node, helper.make_tensor_value_info
ROWS, COLUMNS, BLOCK = 32, 96, 16
indices = np.int64([0, 7, 31, 5])


def decibels(name, axis, blocks=False, added=False):
    """Returns the ratio of signal to noise of what is read from such a table, in dB."""
    rng = np.random.default_rng(1)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    limits = ml_dtypes.iinfo(dtype)
    table = rng.integers(int(limits.min), int(limits.max) + 1, size=(ROWS, COLUMNS)).astype(dtype)
    shape = (ROWS, COLUMNS // BLOCK) if blocks else ((ROWS, COLUMNS)[axis],)
    scales = rng.uniform(0.01, 0.05, size=shape).astype(np.float32)
    factors = scales.repeat(BLOCK, 1) if blocks else scales.reshape((-1, 1) if axis == 0 else (1, -1))
    floats = table.astype(np.float32) * factors
    attributes = {"axis": axis, **({"block_size": BLOCK} if blocks else {})}
    nodes = [node("DequantizeLinear", ["w", "s"], ["d"], **attributes)]
    if added:
        x, real = np.zeros((ROWS, COLUMNS), np.float32), floats
        nodes.append(node("Add", ["d", "x"], ["y"]))
    else:
        x, real = indices, floats[indices]
        nodes.append(node("Gather", ["d", "x"], ["y"], axis=0))
    graph = helper.make_graph(
        nodes, "g", [value("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [value("y", 1, real.shape)], [numpy_helper.from_array(table, "w"), numpy_helper.from_array(scales, "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU",
                                  {"INFERENCE_PRECISION_HINT": "f32"})
    made = compiled([x])[0].astype(np.float64)
    return 10 * np.log10(np.sum(real ** 2) / max(np.sum((made - real) ** 2), np.sum(real ** 2) * 1e-20))


changed = []
for name, axis, blocks, added, text, right in (
        ("int8", 0, False, False, "a scale for each row", True),
        ("int8", 1, False, False, "a scale for each column", False),
        ("uint8", 1, False, False, "a scale for each column", False),
        ("int4", 1, False, False, "a scale for each column", False),
        ("int8", 1, True, False, "blocks of 16 along the columns", True),
        ("int8", 1, False, True, "a scale for each column, in front of an Add", True)):
    figure = decibels(name, axis, blocks, added)
    print(f"{name}, {text}: {figure:.0f}")
    if (figure > 100) != right:
        changed.append(f"{name}, {text}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
