#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Activations of 16 bits are rounded to 8 bits in front of a MatMul, from onnxruntime 1.32.0 on.
#
# Seen with onnxruntime 1.32.0 and 1.31.1, CPU provider, x86-64.
#
# A pair of 16 bits is what one gives a layer whose activations are too fine for 8. onnxruntime has no kernel for 16-bit
# integers, and computed the MatMul behind such a pair in float up to 1.31.1. 1.32.0 makes a MatMulNBits of the
# weight and the MatMul, as it does with weights alone, and that kernel rounds what it multiplies to 8 bits in
# blocks by its default. The same file has half the decibels after an update, without a message. The option
# session.qdq_matmulnbits_accuracy_level of 1, or optimizations switched off, give the numbers of the file. A Gemm
# with transB, weights of 16 bits and pairs of 8 bits are as before.
#
# Output (dB against the literal numbers; 8 by 256 numbers, int8 weights with a scale for each column):
#
#   onnxruntime 1.31.1, uint16: 200
#   onnxruntime 1.32.0, uint16: 45
#   onnxruntime 1.32.0, uint16, accuracy level 1: 200
#   onnxruntime 1.32.0, uint16, optimizations off: 200
#   onnxruntime 1.32.0, int16: 45
#   onnxruntime 1.32.0, uint8: 131
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
for version in 1.31.1 1.32.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet --disable-pip-version-check \
        onnx==1.23.2 onnxruntime==$version numpy==2.4.6 || exit 2
done
cd "$folder"
cat > figures.py <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LEVEL = "session.qdq_matmulnbits_accuracy_level"
node, value, levels = helper.make_node, helper.make_tensor_value_info, onnxruntime.GraphOptimizationLevel
rng = np.random.default_rng(0)
x = rng.normal(size=(8, 256)).astype(np.float32)
weight = rng.integers(-127, 128, size=(256, 64)).astype(np.int8)
scales = rng.uniform(0.01, 0.05, 64).astype(np.float32)


def decibels(dtype, config=None, level=levels.ORT_ENABLE_ALL):
    """Returns the ratio of signal to noise of a pair of this type in front of a MatMul."""
    limits = np.iinfo(dtype)
    constants = {"s": np.float32(10 / (int(limits.max) - int(limits.min))),
                 "z": dtype((int(limits.max) + int(limits.min) + 1) // 2), "w": weight, "ws": scales}
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
         node("DequantizeLinear", ["w", "ws"], ["v"], axis=1), node("MatMul", ["d", "v"], ["y"])], "g",
        [value("x", 1, x.shape)], [value("y", 1, [8, 64])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    if config:
        options.add_session_config_entry(LEVEL, config)
    made = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0].astype(np.float64)
    real = ReferenceEvaluator(model).run(None, {"x": x})[0].astype(np.float64)
    return 10 * np.log10(np.sum(real ** 2) / max(np.sum((made - real) ** 2), np.sum(real ** 2) * 1e-20))


new = onnxruntime.__version__ == "1.32.0"
rows = [("uint16", decibels(np.uint16), not new)]
if new:
    rows += [("uint16, accuracy level 1", decibels(np.uint16, "1"), True),
             ("uint16, optimizations off", decibels(np.uint16, None, levels.ORT_DISABLE_ALL), True),
             ("int16", decibels(np.int16), False), ("uint8", decibels(np.uint8), True)]
for text, figure, right in rows:
    print(f"onnxruntime {onnxruntime.__version__}, {text}: {figure:.0f}")
    if (figure > 100) != right:
        sys.exit(f"changed: {text}")
EOF
1.31.1/bin/python figures.py
1.32.0/bin/python figures.py
