#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Converters to float16 change the biases of a quantized model by a tenth and more: their scales are too small.
#
# Seen with onnxconverter-common 1.16.0 and onnxruntime 1.31.1 (onnxruntime.transformers.float16), onnx 1.23.2.
#
# The integers of a bias have the scale of the input times that of the weight: 0.001 times 0.0003 is an ordinary
# product. Both factors are good float16 numbers, and the converters make float16 of the product, too. Below 0.00006 a
# step of float16 is 0.00000006, so that a scale of 0.0000003 is rounded by up to a tenth, and the bias, whose
# integers are exact, with it. The model runs without a message. A scale below 0.0000001 becomes that number, with a
# warning: a bias may double. A bias in floating point, of the same value, has an error of 0.05 % as float16.
#
# Output (scale of the input, mean scale of biases; dB of the outputs against the float32 model, largest change of a
# bias):
#
#   onnxconverter-common, 0.03, scale 1.0e-05: 55 dB, 0.4 %
#   onnxconverter-common, 0.001, scale 3.3e-07: 29 dB, 10.1 %
#   onnxconverter-common, 0.001, float bias: 56 dB
#   onnxruntime, 0.03, scale 1.0e-05: 55 dB, 0.4 %
#   onnxruntime, 0.001, scale 3.3e-07: 29 dB, 10.1 %
#   onnxruntime, 0.001, float bias: 56 dB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 onnxconverter-common==1.16.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import copy
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxconverter_common import float16 as common
from onnxruntime.transformers import float16 as own

node = helper.make_node


def make(scale, whole):
    """A Conv with uint8 activations and int8 weights; its bias is int32 with a scale, or a float of the same value."""
    rng = np.random.default_rng(0)
    weight = (rng.normal(size=(64, 16, 3, 3)) * 0.015).astype(np.float32)
    scales = (np.abs(weight).max((1, 2, 3)) / 127).astype(np.float32)
    products = (scale * scales).astype(np.float32)
    integers = np.round(rng.normal(size=64) * scale * 8 / products).astype(np.int32)
    constants = {"s": np.float32(scale), "z": np.uint8(128), "ws": scales,
                 "w": np.round(weight / scales[:, None, None, None]).astype(np.int8)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["a"]),
             node("DequantizeLinear", ["w", "ws"], ["v"], axis=0)]
    if whole:
        constants |= {"b": integers, "bs": products}
        nodes.append(node("DequantizeLinear", ["b", "bs"], ["c"], axis=0))
    else:
        constants["c"] = (integers * products).astype(np.float32)
    nodes.append(node("Conv", ["a", "v", "c"], ["y"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 16, 8, 8])],
        [helper.make_tensor_value_info("y", 1, [1, 64, 6, 6])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model, (rng.normal(size=(1, 16, 8, 8)) * scale * 40).astype(np.float32), products


def run(model, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


changed = []
for text, module in ("onnxconverter-common", common), ("onnxruntime", own):
    for scale, whole in (0.03, True), (0.001, True), (0.001, False):
        model, x, products = make(scale, whole)
        real = run(model, x)
        converted = module.convert_float_to_float16(copy.deepcopy(model), keep_io_types=True)
        made = run(converted, x)
        figure = 10 * np.log10(np.sum(real.astype(float) ** 2) / np.sum((made.astype(float) - real) ** 2))
        kind = f"scale {products.mean():.1e}" if whole else "float bias"
        line = f"{text}, {scale:g}, {kind}: {figure:.0f} dB"
        if whole:
            new, = (numpy_helper.to_array(item) for item in converted.graph.initializer if item.name == "bs")
            line += f", {np.abs(new.astype(float) / products - 1).max() * 100:.1f} %"
        print(line)
        if (figure < 40) != (whole and scale < 0.01):
            changed.append(line)
if changed:
    sys.exit(f"changed: {changed}")
EOF
