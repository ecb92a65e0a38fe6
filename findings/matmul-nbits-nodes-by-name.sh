#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# MatMulNBitsQuantizer quantizes nodes that it was told to leave alone, and in 4 bits where 8 were asked.
#
# Seen with onnxruntime 1.31.1, onnxruntime.quantization.matmul_nbits_quantizer.
#
# Three arguments have effect with some algorithms only, and none of the others says so:
#
# - nodes_to_exclude is ignored by GPTQ, so that an output layer that was to stay float has 4 bits;
# - nodes_to_include restricts nothing: nodes of the list are quantized beside all MatMul, with any
#   algorithm;
# - bits is ignored where algo_config is given: RTN, k-quant and GPTQ make 4 bits of 8, and the default
#   algorithm those of its own configuration.
#
# Output (the operators of two layers, "body" and "head", with their bits):
#
#   default, {'nodes_to_exclude': ['head']}: body MatMulNBits 4, head MatMul
#   default, {'nodes_to_include': ['body']}: body MatMulNBits 4, head MatMulNBits 4
#   default, {'bits': 8}: body MatMulNBits 4, head MatMulNBits 4
#   RTN, {'nodes_to_exclude': ['head']}: body MatMulNBits 4, head MatMul
#   RTN, {'nodes_to_include': ['body']}: body MatMulNBits 4, head MatMulNBits 4
#   RTN, {'bits': 8}: body MatMulNBits 4, head MatMulNBits 4
#   k-quant, {'nodes_to_exclude': ['head']}: body MatMulNBits 4, head MatMul
#   k-quant, {'nodes_to_include': ['body']}: body MatMulNBits 4, head MatMulNBits 4
#   k-quant, {'bits': 8}: body MatMulNBits 4, head MatMulNBits 4
#   GPTQ, {'nodes_to_exclude': ['head']}: body MatMulNBits 4, head MatMulNBits 4
#   GPTQ, {'nodes_to_include': ['body']}: body MatMulNBits 4, head MatMulNBits 4
#   GPTQ, {'bits': 8}: body MatMulNBits 4, head MatMulNBits 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 onnx-ir==1.1.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import contextlib
import io
import logging
import sys
import types

import numpy as np
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig, GPTQWeightOnlyQuantConfig, KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer, RTNWeightOnlyQuantConfig)

logging.disable(logging.CRITICAL)
# The tool asks torch whether arrays of NumPy are tensors of torch, and needs nothing else of it.
sys.modules["torch"] = types.SimpleNamespace(Tensor=())
rng = np.random.default_rng(0)
X = rng.normal(size=(64, 64)).astype(np.float32)
WEIGHTS = {name: rng.normal(size=(64, 64)).astype(np.float32) for name in "vw"}


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": X}]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantize(config, **arguments):
    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("MatMul", ["x", "v"], ["h"], "body"), node("MatMul", ["h", "w"], ["y"], "head")], "g",
        [value("x", 1, X.shape)], [value("y", 1, X.shape)],
        [numpy_helper.from_array(array, name) for name, array in WEIGHTS.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with contextlib.redirect_stdout(io.StringIO()):
        quantizer = MatMulNBitsQuantizer(model, block_size=32, algo_config=config, **arguments)
        quantizer.process()
    kinds = {n.name.split("_")[0]: n.op_type + "".join(
        f" {a.i}" for a in n.attribute if a.name == "bits") for n in quantizer.model.model.graph.node}
    return f"body {kinds['body']}, head {kinds['head']}"


ALL = "body MatMulNBits 4, head MatMulNBits 4"
HALF = "body MatMulNBits 4, head MatMul"
changed = []
for name, config, exclude in (
        ("default", lambda: DefaultWeightOnlyQuantConfig(block_size=32), HALF),
        ("RTN", RTNWeightOnlyQuantConfig, HALF), ("k-quant", KQuantWeightOnlyQuantConfig, HALF),
        ("GPTQ", lambda: GPTQWeightOnlyQuantConfig(Samples()), ALL)):
    for arguments, expected in (({"nodes_to_exclude": ["head"]}, exclude),
                                ({"nodes_to_include": ["body"]}, ALL), ({"bits": 8}, ALL)):
        seen = quantize(config(), **arguments)
        print(f"{name}, {arguments}: {seen}")
        if seen != expected:
            changed.append(f"{name}, {arguments}")
if changed:
    sys.exit(f"changed: {changed}")
EOF
