#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quantize_dynamic drops options without a message, by operator: scales for each channel, types, and whole layers.
#
# Seen with onnxruntime 1.31.1 (quantize_dynamic).
#
# `per_channel=True` gives a MatMul and an LSTM a scale for each column. A Conv and a table of embeddings get one
# scale for all, with the same bytes as without the option: rows of a table that differ by their size lose the small
# ones. A MatMul whose weight has three axes gets scales that its own kernel refuses in the first run.
# `weight_type` has no effect on an LSTM. A Gemm is quantized where alpha and beta are 1 alone, GRU, RNN and
# ConvTranspose never are: they stay float, and the file is larger than before. None of this is said.
#
# Output:
#
#   MatMul, per_channel: heeded
#   Conv, per_channel: ignored
#   Gather, per_channel: ignored
#   MatMul of three axes, per_channel: does not run
#   LSTM, per_channel: heeded
#   LSTM, weight_type QUInt8: ignored
#   Gemm: quantized
#   Gemm with alpha 0.5: stays float
#   GRU: stays float
#   ConvTranspose: stays float
#   table of rows of 1 and 0.01: 40 dB, its small rows 3 dB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

rng = np.random.default_rng(0)
CPU = ["CPUExecutionProvider"]


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def make(operator, x, weights, **attributes):
    """Writes a model of one node."""
    rank = {"LSTM": 4, "GRU": 4, "Gather": 2}.get(operator, x.ndim)
    graph = helper.make_graph(
        [helper.make_node(operator, ["w0", "x"] if operator == "Gather" else ["x", *weights], ["y"], **attributes)],
        "g", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", 1, ["a", "b", "c", "d"][:rank])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "float.onnx")


def quantize(**options):
    """Quantizes it, and returns the result's constants and operators."""
    quantize_dynamic("float.onnx", "made.onnx", **options)
    graph = onnx.load("made.onnx").graph
    return sorted(item.SerializeToString() for item in graph.initializer), {item.op_type for item in graph.node}


def run(path, x):
    return onnxruntime.InferenceSession(path, providers=CPU).run(None, {"x": x})[0]


data, image, steps = normal(5, 32), normal(1, 8, 9, 9), normal(7, 3, 12)
gates = {"w0": normal(1, 64, 12), "w1": normal(1, 64, 16)}
seen = {}
for name, x, weights, attributes in (
        ("MatMul", data, {"w0": normal(32, 24)}, {}), ("Conv", image, {"w0": normal(8, 8, 3, 3)}, {}),
        ("Gather", np.int64([0, 7]), {"w0": normal(40, 24)}, {}),
        ("MatMul of three axes", normal(2, 5, 32), {"w0": normal(2, 32, 24)}, {}),
        ("LSTM", steps, gates, {"hidden_size": 16})):
    make(name.split()[0], x, weights, **attributes)
    usual = quantize()
    other = quantize(per_channel=True)
    seen[f"{name}, per_channel"] = "ignored" if other == usual else "heeded"
    try:
        run("made.onnx", x)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        seen[f"{name}, per_channel"] = "does not run"
seen["LSTM, weight_type QUInt8"] = "ignored" if quantize(weight_type=QuantType.QUInt8) == usual else "heeded"
for name, x, weights, attributes in (
        ("Gemm", data, {"w0": normal(32, 24), "w1": normal(24)}, {}),
        ("Gemm with alpha 0.5", data, {"w0": normal(32, 24), "w1": normal(24)}, {"alpha": 0.5}),
        ("GRU", steps, {"w0": normal(1, 48, 12), "w1": normal(1, 48, 16)}, {"hidden_size": 16}),
        ("ConvTranspose", image, {"w0": normal(8, 8, 3, 3)}, {})):
    make(name.split()[0], x, weights, **attributes)
    seen[name] = "stays float" if quantize()[1] == {name.split()[0]} else "quantized"
for text, state in seen.items():
    print(f"{text}: {state}")
table = normal(40, 24) * np.where(np.arange(40) % 2, 0.01, 1).astype(np.float32)[:, None]
make("Gather", np.arange(40), {"w0": table})
quantize(per_channel=True)
error = run("made.onnx", np.arange(40)) - table
all_rows, small = (10 * np.log10(np.sum(table[i] ** 2) / np.sum(error[i] ** 2))
                   for i in (slice(None), slice(1, None, 2)))
print(f"table of rows of 1 and 0.01: {all_rows:.0f} dB, its small rows {small:.0f} dB")
expected = ["heeded", "ignored", "ignored", "does not run", "heeded", "ignored", "quantized", *["stays float"] * 3]
if list(seen.values()) != expected or small > 6:
    sys.exit("changed: see above")
EOF
