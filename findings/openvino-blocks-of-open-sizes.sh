#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An embedding in 8 bits whose scales are in blocks: refused as soon as the number of tokens is open.
#
# Seen with OpenVINO 2026.4.1 (CPU plugin), onnxruntime 1.31.1 and onnx 1.23.2.
#
# A language model keeps its table of embeddings in integers by three Gathers (integers, scales,
# zero points) and one DequantizeLinear in blocks (opset 21) of what they gathered. Its last axis, the
# one with the blocks, has a known size always; the number of tokens is open in every exported model.
# With five tokens written into the file OpenVINO computes the same bits as onnxruntime. With an open
# number its reader stops: it wants all sizes of the input, also those that blocks have nothing to do
# with. The same by Cast, Sub and Mul, on values reshaped to [batch, tokens, blocks, elements], is taken with open sizes.
#
# Output:
#
#   blocks, 5 tokens: OpenVINO gives the bits of onnxruntime
#   blocks, open: OpenVINO refuses: DequantizeLinear cannot operate with dynamic shapes of input X
#   Cast, Sub and Mul, open: OpenVINO gives the bits of onnxruntime
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
import onnxruntime
import openvino
from onnx import TensorProto, checker, helper, numpy_helper

ROWS, SIZE, BLOCK = 64, 64, 32
rng = np.random.default_rng(0)
INTEGERS = rng.integers(0, 256, (ROWS, SIZE), dtype=np.uint8)
SCALES = rng.uniform(0.01, 0.02, (ROWS, SIZE // BLOCK)).astype(np.float32)
ZEROS = np.full(SCALES.shape, 128, np.uint8)
IDS = np.array([[3, 1, 60, 7, 7]])
REFUSED = "DequantizeLinear cannot operate with dynamic shapes of input X"


def in_blocks(node):
    return [node("DequantizeLinear", ["gq", "gs", "gz"], ["y"], axis=2, block_size=BLOCK)], []


def by_hand(node):
    shape = [numpy_helper.from_array(np.array(list(sizes)), name) for name, sizes in
             (("parts", (0, 0, -1, BLOCK)), ("one", (0, 0, -1, 1)), ("whole", (0, 0, SIZE)))]
    return [node("Reshape", ["gq", "parts"], ["q4"]), node("Reshape", ["gs", "one"], ["s4"]),
            node("Reshape", ["gz", "one"], ["z4"]), node("Cast", ["q4"], ["qf"], to=1),
            node("Cast", ["z4"], ["zf"], to=1), node("Sub", ["qf", "zf"], ["d"]),
            node("Mul", ["d", "s4"], ["p"]), node("Reshape", ["p", "whole"], ["y"])], shape


def make_model(tail, tokens):
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes, constants = tail(node)
    graph = helper.make_graph(
        [node("Gather", [name, "ids"], ["g" + name]) for name in "qsz"] + nodes, "g",
        [value("ids", TensorProto.INT64, [1, tokens])], [value("y", TensorProto.FLOAT, [1, tokens, SIZE])],
        [numpy_helper.from_array(array, name) for name, array in zip("qsz", (INTEGERS, SCALES, ZEROS))] + constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checker.check_model(model, full_check=True)
    return model.SerializeToString()


changed = []
for name, tail, tokens, expected in (("blocks, 5 tokens", in_blocks, 5, True), ("blocks, open", in_blocks, "n", False),
                                     ("Cast, Sub and Mul, open", by_hand, "n", True)):
    data = make_model(tail, tokens)
    real = onnxruntime.InferenceSession(data).run(None, {"ids": IDS})[0]
    core = openvino.Core()
    try:
        seen = core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([IDS])[0]
        same = np.array_equal(seen, real)
        print(f"{name}: OpenVINO {'gives' if same else 'does not give'} the bits of onnxruntime")
    except RuntimeError as error:
        same = None
        print(f"{name}: OpenVINO refuses: {REFUSED if REFUSED in str(error) else str(error)[:200]}")
    if same != (expected or None):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
