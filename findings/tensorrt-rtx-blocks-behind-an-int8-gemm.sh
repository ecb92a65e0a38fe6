#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An int8 weight in blocks builds behind int8, with a vector of factors that fits no output.
#
# Seen with TensorRT for RTX 1.7.1.116 (tensorrt-rtx-cu13), its ONNX parser and its builder on a CPU,
# no GPU, opset 23.
#
# The weight has 128 rows and 64 columns, and a scale for each block of 16 rows of a column: 8 x 64
# scales. Such scales cannot be applied behind an integer product, which has summed over the blocks.
# As the B of a Gemm with transB = 1 the builder refuses the model. As the B of a Gemm without transB,
# or of a MatMul of two axes, it builds: one int8 gemm, and behind it a kernel that multiplies the 64
# columns of the result by a constant of 512 elements. With one scale for each column that constant
# has 64. No GPU was there to run it.
#
# Output:
#
#   MatMul, blocks: int8 gemm, factors [512]
#   Gemm with transB, blocks: refused
#   Gemm, a scale for each column: int8 gemm, factors [64]
#   Gemm, blocks: int8 gemm, factors [512]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 numpy==2.4.6 || exit 2
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    tensorrt-rtx-cu13-libs==1.7.1.116 tensorrt-rtx-cu13-bindings==1.7.1.116 || exit 2
cd "$folder"
cat >one.py <<'EOF'
import re
import sys

import numpy as np
import tensorrt_rtx_bindings as trt
from onnx import helper, numpy_helper

kind, block = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
weight = rng.normal(size=(128, 64)).astype(np.float32)
axis = 0
if kind == "transposed":
    weight, axis = np.ascontiguousarray(weight.T), 1
scales = [128 // block, 64] if block else [64]
if kind == "transposed":
    scales = scales[::-1]
constants = {"s": np.float32(0.03), "z": np.int8(0), "w": weight,
             "ws": np.full(scales, 0.02, np.float32), "wz": np.zeros(scales, np.int8)}
way = {"axis": axis, "block_size": block} if block else {"axis": 1 - axis}
node = helper.make_node
product = (node("MatMul", ["d", "wd"], ["y"]) if kind == "MatMul" else
           node("Gemm", ["d", "wd"], ["y"], transB=int(kind == "transposed")))
graph = helper.make_graph(
    [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
     node("QuantizeLinear", ["w", "ws", "wz"], ["wq"], **way),
     node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"], **way), product],
    "g", [helper.make_tensor_value_info("x", 1, [8, 128])],
    [helper.make_tensor_value_info("y", 1, [8, 64])],
    [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


class Log(trt.ILogger):
    text = ""

    def log(self, severity, message):
        if message.startswith("Layers:"):
            self.text = message


log = Log()
builder = trt.Builder(log)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
parser = trt.OnnxParser(network, log)
config = builder.create_builder_config()
config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
if not parser.parse(model.SerializeToString()) or not builder.build_serialized_network(network, config):
    print("refused")
    sys.exit()
rows = log.text.split("\nName: ")[1:]
gemm = next((r for r in rows if "LayerType: gemm" in r and "Datatype: Int8" in r), None)
behind = rows[rows.index(gemm) + 1] if gemm and rows.index(gemm) + 1 < len(rows) else ""
constants = behind.partition("Constants: [")[2].partition("Outputs")[0]
sizes = [int(n) for dims in re.findall(r"Dimensions: \[([\d,]+)\]", constants) for n in dims.split(",")]
print(f"{'int8' if gemm else 'other'} gemm, factors [{max(sizes, default=0)}]")
EOF
seen=$(
    echo "MatMul, blocks: $(venv/bin/python one.py MatMul 16)"
    echo "Gemm with transB, blocks: $(venv/bin/python one.py transposed 16)"
    echo "Gemm, a scale for each column: $(venv/bin/python one.py Gemm 0)"
    echo "Gemm, blocks: $(venv/bin/python one.py Gemm 16)"
)
echo "$seen"
[ "$seen" = "MatMul, blocks: int8 gemm, factors [512]
Gemm with transB, blocks: refused
Gemm, a scale for each column: int8 gemm, factors [64]
Gemm, blocks: int8 gemm, factors [512]" ] || {
    echo changed
    exit 1
}
