#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pair on a four-dimensional tensor exchanges its first two axes, and lowers uint8 by 128 steps.
#
# Seen with MNN 3.6.1: the converter of the Python wheel, and its CPU runtime.
#
# MNN's converter takes the QuantizeLinear and DequantizeLinear of an ONNX model without a message. What
# it makes of a pair with one scale has the first axis of its input as its second, so that a batch of four
# images with four channels is transposed, and the layers behind read other channels. Where the two sizes
# differ, a Conv behind the pair has no output. With uint8 all numbers are 128 steps smaller than they
# are in the file, too, whatever the zero point is. int8 has the right numbers in the wrong places. Behind
# the pair stands a Neg here, since a pair alone may be left out.
#
# Output (4 images, 4 channels; largest difference from the literal numbers, which are at most 3.84):
#
#   int8, zero point 0: as it is 5.25, with the first two axes exchanged 0.00
#   uint8, zero point 128: as it is 9.09, with the first two axes exchanged 3.84
#   no pair: as it is 0.00, with the first two axes exchanged 5.27
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 mnn==3.6.1 numpy==2.4.6 || exit 2
cd "$folder"
cat > convert.py <<'EOF'
# This is what the command mnnconvert does, without the report that it sends.
import _tools
_tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", "m.onnx", "--MNNModel", "m.mnn",
                   "--bizCode", "none"])
EOF
cat > make.py <<'EOF'
import sys

import numpy as np
import onnx
from onnx import checker, helper, numpy_helper

dtype, zero = sys.argv[1:]
x = np.clip(np.random.default_rng(0).normal(size=(4, 4, 5, 5)), -3.8, 3.8).astype(np.float32)
node, value = helper.make_node, helper.make_tensor_value_info
scale = np.float32(0.03)
nodes, constants, real = [node("Neg", ["x"], ["y"])], {}, -x
if dtype != "none":
    constants = {"s": scale, "z": np.array(int(zero), dtype)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("Neg", ["d"], ["y"])]
    limits = np.iinfo(dtype)
    real = -(np.clip(np.rint(x / scale) + int(zero), limits.min, limits.max) - int(zero)) * scale
graph = helper.make_graph(nodes, "g", [value("x", 1, x.shape)], [value("y", 1, x.shape)],
                          [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
checker.check_model(model, full_check=True)
onnx.save(model, "m.onnx")
np.savez("data.npz", x=x, real=real.astype(np.float32))
EOF
cat > run.py <<'EOF'
import sys

import MNN.expr
import MNN.nn
import numpy as np

dtype, zero = sys.argv[1:]
data = np.load("data.npz")
model = MNN.nn.load_module_from_file("m.mnn", ["x"], ["y"])
fed = MNN.expr.placeholder(list(data["x"].shape), MNN.expr.NCHW)
fed.write(data["x"])
made = MNN.expr.convert(model.forward([fed])[0], MNN.expr.NCHW)
made = np.array(made.read()).reshape(made.shape)
plain, exchanged = (np.abs(made - real).max() for real in (data["real"], data["real"].swapaxes(0, 1)))
name = "no pair" if dtype == "none" else f"{dtype}, zero point {zero}"
print(f"{name}: as it is {plain:.2f}, with the first two axes exchanged {exchanged:.2f}")
right = {"none": plain < 0.01, "int8": plain > 1 and exchanged < 0.01, "uint8": min(plain, exchanged) > 1}
sys.exit(not right[dtype])
EOF
for kind in "int8 0" "uint8 128" "none 0"; do
    venv/bin/python make.py $kind
    venv/bin/python convert.py > convert.log 2>&1
    venv/bin/python run.py $kind 2> run.log | grep "as it is" || { echo "changed: $kind"; exit 1; }
done
