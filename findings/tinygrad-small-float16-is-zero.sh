#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tinygrad's device PYTHON reads float16 below 0.00006 as 0: the scales of small weights, and with them the weights.
#
# Seen with tinygrad 0.14.0 (devices PYTHON and CPU), gguf 0.19.0, onnx 1.23.2.
#
# The smallest normal float16 is 0.000061, and numbers down to 0.00000006 have fewer bits. The scales of GGUF are
# float16: those of 8-bit weights are the largest weight of 32 divided by 127, and below 0.000061 where weights have a
# deviation of 0.003 or less. The device PYTHON, which needs no compiler, computes with 0 in their place: the layer is
# zero as a whole. 4 bits, whose scales are 16 times as large, hold longer. A DequantizeLinear of an ONNX model with a
# small scale of float16 gives zeros, too. The device CPU is right. Nothing is said.
#
# Output (dB of weights by their deviation):
#
#   PYTHON, 0.01: F16 74, Q4_0 21, Q5_0 27, Q8_0 45
#   PYTHON, 0.002: F16 74, Q4_0 21, Q5_0 27, Q8_0 0
#   PYTHON, 0.0005: F16 74, Q4_0 21, Q5_0 7, Q8_0 0
#   PYTHON, DequantizeLinear with the scale 4e-05: 0 0 0, should be 0.00508 0.002 -0.004
#   CPU, 0.01: F16 74, Q4_0 21, Q5_0 27, Q8_0 45
#   CPU, 0.002: F16 74, Q4_0 21, Q5_0 27, Q8_0 45
#   CPU, 0.0005: F16 74, Q4_0 21, Q5_0 27, Q8_0 45
#   CPU, DequantizeLinear with the scale 4e-05: 0.00508 0.002 -0.004, should be 0.00508 0.002 -0.004
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    tinygrad==0.14.0 gguf==0.19.0 onnx==1.23.2 numpy==2.4.6 || exit 2
export XDG_CACHE_HOME="$folder/cache"
cd "$folder"
cat > run.py <<'EOF'
import os
import sys

import gguf
import numpy as np
import onnx
from gguf import GGMLQuantizationType as kinds
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner
from tinygrad.llm.gguf import gguf_load

device, rng, changed = os.environ["DEV"], np.random.default_rng(0), []
normal = rng.normal(size=(4, 256)).astype(np.float32)


def decibels(real, made):
    return 10 * np.log10(np.sum(real.astype(float) ** 2) / np.sum((made.astype(float) - real) ** 2))


for deviation in 0.01, 0.002, 0.0005:
    weight, said = normal * np.float32(deviation), []
    writer = gguf.GGUFWriter("weights.gguf", "llama")
    for kind in kinds.F16, kinds.Q4_0, kinds.Q5_0, kinds.Q8_0:
        writer.add_tensor(kind.name, gguf.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    loaded = gguf_load(Tensor(np.fromfile("weights.gguf", np.uint8)))[1]
    figures = {name: decibels(weight, tensor.numpy().astype(np.float32)) for name, tensor in loaded.items()}
    print(f"{device}, {deviation}: " + ", ".join(f"{name} {db:.0f}" for name, db in figures.items()))
    if (figures["Q8_0"] < 3) != (device == "PYTHON" and deviation < 0.01):
        changed.append(deviation)
graph = helper.make_graph(
    [helper.make_node("DequantizeLinear", ["x", "s"], ["y"])], "g", [helper.make_tensor_value_info("x", 3, [3])],
    [helper.make_tensor_value_info("y", 10, [3])], [numpy_helper.from_array(np.float16(0.00004), "s")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "model.onnx")
x = np.int8([127, 50, -100])
real = ReferenceEvaluator(model).run(None, {"x": x})[0]
made = OnnxRunner("model.onnx")({"x": Tensor(x)})["y"].numpy()
print(f"{device}, DequantizeLinear with the scale 4e-05: " + ", should be ".join(
    " ".join(f"{float(number):.3g}" for number in numbers) for numbers in (made, real)))
if (np.abs(made).max() == 0) != (device == "PYTHON"):
    changed.append("DequantizeLinear")
if changed:
    sys.exit(f"changed: {device}, {changed}")
EOF
for device in PYTHON CPU; do
    DEV=$device venv/bin/python run.py 2> messages
done
