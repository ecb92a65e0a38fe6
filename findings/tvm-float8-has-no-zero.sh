#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Cast to float8 in TVM knows neither zero nor the smallest numbers, and gives wrong signs beyond the range.
#
# Seen with apache-tvm 0.27.0.post1 (frontend of ONNX, target llvm, x86-64), onnx 1.23.2.
#
# A Cast to float8 and back is how a model of 8-bit floats rounds its activations. TVM compiles it without a message.
# Zero becomes the number 1/128, whatever its sign, and so does all that is below the normal numbers: activations
# behind a Relu, most of which are 0, get a positive mean. 1000 becomes -1/64, since the exponent runs into the sign.
# 480, which is a NaN by its bits, stays 480. float8e5m2 has the same faults at other places, and the two types whose
# bits have another meaning, float8e4m3fnuz and float8e5m2fnuz, get the numbers of the first two. Numbers within the
# range are right. So are constants of float8 that a Cast makes float32.
#
# Output (x of 0, -0.001, 0.02, 1.06, 448, 480, 1000 and 100000; should be after it):
#
#   FLOAT8E4M3FN: 0.00781 0.00781 0.0195 1 448 480 -0.0156 -1.5; 0 -0.00195 0.0195 1 448 448 448 448
#   FLOAT8E4M3FNUZ: 0.00781 0.00781 0.0195 1 448 480 -0.0156 -1.5; 0 -0.000977 0.0195 1 240 240 240 240
#   FLOAT8E5M2: 3.05e-05 -0.000977 0.0195 1 448 512 1.02e+03 9.83e+04; 0 -0.000977 0.0195 1 448 512 1.02e+03 5.73e+04
#   mean of Relu(x) for normal x of deviation 0.005: 0.00793, should be 0.00201
#   constants: right
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    apache-tvm==0.27.0.post1 onnx==1.23.2 ml_dtypes==0.6.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import ml_dtypes
import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def run(nodes, x, constants=()):
    """Returns the output of TVM, and that of the reference."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, x.shape)],
                              [helper.make_tensor_value_info("y", 1, x.shape)], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    machine = relax.VirtualMachine(tvm.compile(from_onnx(model), target="llvm"), tvm.cpu())
    made = machine["main"](tvm.runtime.tensor(x))
    made = made if hasattr(made, "numpy") else made[0]
    return made.numpy(), ReferenceEvaluator(model).run(None, {"x": x})[0]


def show(values):
    return " ".join(f"{value:.3g}" for value in values)


node, changed = helper.make_node, []
x = np.float32([0, -0.001, 0.02, 1.06, 448, 480, 1000, 100000])
for name in "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2":
    kind = onnx.TensorProto.DataType.Value(name)
    made, real = run([node("Cast", ["x"], ["q"], to=kind), node("Cast", ["q"], ["y"], to=1)], x)
    print(f"{name}: {show(made)}; {show(real)}")
    if made[0] == 0 or np.array_equal(made, real):
        changed.append(name)
small = (np.random.default_rng(0).normal(size=10000) * 0.005).astype(np.float32)
made, real = run([node("Relu", ["x"], ["r"]), node("Cast", ["r"], ["q"], to=onnx.TensorProto.FLOAT8E4M3FN),
                  node("Cast", ["q"], ["y"], to=1)], small)
print(f"mean of Relu(x) for normal x of deviation 0.005: {made.mean():.3g}, should be {real.mean():.3g}")
if made.mean() < 2 * real.mean():
    changed.append("mean")
weight = numpy_helper.from_array(np.float32([0, -0.002, 0.02, 1.06, 448, 400, 100, -30]).astype(
    ml_dtypes.float8_e4m3fn), "w")
made, real = run([node("Cast", ["w"], ["v"], to=1), node("Add", ["x", "v"], ["y"])], np.zeros(8, np.float32), [weight])
print("constants: " + ("right" if np.array_equal(made, real) else "wrong"))
if not np.array_equal(made, real):
    changed.append("constants")
if changed:
    sys.exit(f"changed: {changed}")
EOF
