#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Weights alone in blocks, or of 2 bits, stay float without a message.
#
# Seen with ai-edge-quantizer 0.10.0, ai-edge-litert 2.3.0.
#
# A recipe of the quantizer says for which operators it holds: ALL_SUPPORTED, or one by name. Where an
# operator does not have what is asked for, ALL_SUPPORTED leaves it out, and nothing says so: weights alone
# in blocks or of 2 bits, and 8 bits in blocks, give the file back that no quantization gives. The printed
# ratio of sizes is the only sign, and other operators of a model hide it. FULLY_CONNECTED by
# name raises an error. Hadamard rotation does not heed that weights alone are asked for: it writes the file that
# it writes for activations of 8 bits, byte for byte.
#
# Output (a layer of 64 by 256; bytes of the float file, and of results):
#
#   float: 66044
#   weights alone, 4 bits, a scale for each channel: 9624
#   weights alone, 4 bits, blocks of 32: the float file
#   weights alone, 2 bits, a scale for each channel: the float file
#   dynamic, 8 bits, blocks of 32: the float file
#   dynamic, 4 bits, blocks of 32: 9856
#   weights alone, 4 bits, blocks of 32, by name: ValueError
#   HADAMARD_ROTATION, weights alone, 8 bits: the dynamic file
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    ai-edge-quantizer==0.10.0 ai-edge-litert==2.3.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF' 2> quantizer.log
import contextlib
import io
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import algorithm_manager, qtyping, quantizer, recipe_manager


def make(weight, rows):
    """Returns a float model of one fully connected layer."""
    model = schema.ModelT()
    model.version, model.buffers = 3, [schema.BufferT(), schema.BufferT()]
    model.buffers[1].data = np.frombuffer(weight.tobytes(), np.uint8)
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    model.operatorCodes = [code]
    graph = schema.SubGraphT()
    graph.tensors, graph.inputs, graph.outputs = [], [0], [2]
    for name, shape, buffer in (("x", (rows, weight.shape[1]), 0), ("w", weight.shape, 1),
                                ("y", (rows, weight.shape[0]), 0)):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
        graph.tensors.append(tensor)
    layer = schema.OperatorT()
    layer.inputs, layer.outputs = [0, 1, -1], [2]
    layer.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
    layer.builtinOptions = schema.FullyConnectedOptionsT()
    graph.operators = [layer]
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.inputs, signature.outputs = "serving_default", [], []
    for names, name, index in (signature.inputs, "x", 0), (signature.outputs, "y", 2):
        item = schema.TensorMapT()
        item.name, item.tensorIndex = name, index
        names.append(item)
    model.subgraphs, model.signatureDefs = [graph], [signature]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(text, x):
    """Returns what a model makes of x, quantizing and dequantizing as its input and output say."""
    interpreter = Interpreter(model_content=text, num_threads=1)
    interpreter.allocate_tensors()
    fed, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    if fed["dtype"] != np.float32:
        scale, zero = fed["quantization"]
        limits = np.iinfo(fed["dtype"])
        x = np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(fed["dtype"])
    interpreter.set_tensor(fed["index"], x)
    interpreter.invoke()
    y = interpreter.get_tensor(made["index"])
    if made["dtype"] != np.float32:
        y = (y.astype(np.float32) - made["quantization"][1]) * made["quantization"][0]
    return y


def decibels(real, made):
    return 10 * np.log10(np.sum(real ** 2) / np.sum((made - real) ** 2))


NAMES, SIZES, OPERATORS = algorithm_manager.AlgorithmName, qtyping.QuantGranularity, qtyping.TFLOperationName


def quantize(text, kind, bits, size, algorithm=NAMES.MIN_MAX_UNIFORM_QUANT, operator=OPERATORS.ALL_SUPPORTED):
    recipe = recipe_manager.RecipeManager()
    getattr(recipe, f"add_{kind}_config")(regex=".*", operation_name=operator, num_bits=bits,
                                          algorithm_key=algorithm, granularity=size)
    with contextlib.redirect_stdout(io.StringIO()):
        made = quantizer.Quantizer(text, recipe.get_quantization_recipe()).quantize()
    return bytes(made.quantized_model)


rng = np.random.default_rng(0)
weight = rng.normal(size=(64, 256)).astype(np.float32)
x = rng.normal(size=(4, 256)).astype(np.float32)
text = make(weight, len(x))
same = quantize(text, "weight_only", 8, SIZES.CHANNELWISE, NAMES.NO_QUANTIZE)
print(f"float: {len(same)}")
changed = []
for kind, bits, size, how in (("weight_only", 4, "CHANNELWISE", "is"), ("weight_only", 4, "BLOCKWISE_32", "float"),
                              ("weight_only", 2, "CHANNELWISE", "float"), ("dynamic", 8, "BLOCKWISE_32", "float"),
                              ("dynamic", 4, "BLOCKWISE_32", "is")):
    made = quantize(text, kind, bits, SIZES[size])
    name = (f"{'weights alone' if kind == 'weight_only' else kind}, {bits} bits, "
            f"{'blocks of 32' if size[0] == 'B' else 'a scale for each channel'}")
    print(f"{name}: {'the float file' if made == same else len(made)}")
    if (made == same) != (how == "float") or decibels(x @ weight.T, run(made, x)) < 14:
        changed.append(name)
try:
    quantize(text, "weight_only", 4, SIZES.BLOCKWISE_32, operator=OPERATORS.FULLY_CONNECTED)
    seen = "no error"
except Exception as error:
    seen = type(error).__name__
print(f"weights alone, 4 bits, blocks of 32, by name: {seen}")
if seen == "no error":
    changed.append("by name")
kinds = [quantize(text, kind, 8, SIZES.CHANNELWISE, NAMES.HADAMARD_ROTATION) for kind in ("weight_only", "dynamic")]
print(f"HADAMARD_ROTATION, weights alone, 8 bits: {'the dynamic file' if kinds[0] == kinds[1] else 'another file'}")
if kinds[0] != kinds[1]:
    changed.append("HADAMARD_ROTATION")
if changed:
    print(f"changed: {changed}")
    sys.exit(1)
EOF
