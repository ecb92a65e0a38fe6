# SPDX-License-Identifier: Apache-2.0
"""formats.py [FORMAT…]: quantizes the weights of the glyph models of tests/data in each format,
without activations. Prints the file's size, and SQNR over all logits and top-1 on the
1,000 test images. onnxruntime has no kernels for the formats of small floats in blocks: the float
model with the numbers that onnx's reference evaluator makes of them is judged in their place."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from accuracy import DATA, logits
from common import QDQ, Measured, machine, table

BLOCKS = {"block": 32}
SPECS = [("int8", "channel", "max"), ("uint8", "channel", "max"), ("int8", BLOCKS, "max"),
         ("int4", "channel", "max"), ("int4", "channel", "mse"), ("int4", BLOCKS, "max"),
         ("int4", BLOCKS, "mse"), ("uint4", BLOCKS, "max"), ("uint4", BLOCKS, "mse"),
         ("float8e4m3fn", "channel", "max"), ("float8e5m2", "channel", "max"),
         ("int3", BLOCKS, "max"), ("int3", BLOCKS, "mse"), ("int2", BLOCKS, "max"),
         ("int2", BLOCKS, "mse"), ("uint2", BLOCKS, "max"), ("uint2", BLOCKS, "mse"),
         *((name, "its own", method) for name in ("mxfp4", "mxfp6", "mxfp8", "nvfp4")
           for method in ("max", "mse"))]


def with_numbers(model, result):
    """Returns the float model with the weights that a result stands for."""
    result, source = onnx.load(result), onnx.load(model)
    constants = {t.name: t for t in source.graph.initializer}
    makers = {n.output[0]: n for n in result.graph.node if n.op_type == "DequantizeLinear"}
    for node in makers.values():
        name = node.input[0].removesuffix("_quantized")
        if name == node.input[0]:
            continue  # it makes the scales of another one
        own = [makers[i] for i in node.input if i in makers]
        graph = onnx.GraphProto(name="w", node=[*own, node],
                                initializer=result.graph.initializer,
                                output=[onnx.ValueInfoProto(name=node.output[0])])
        made = ReferenceEvaluator(helper.make_model(
            graph, opset_imports=result.opset_import)).run(None, {})[0]
        constants[name].CopyFrom(numpy_helper.from_array(made, name))
    return source.SerializeToString()


def main():
    data = np.load(DATA / "test_1000.npz")
    images, labels = data["images"].astype(np.float32) / np.float32(255), data["labels"]
    models = sorted(DATA.glob("glyph_*.onnx"))
    real = [logits(model, images) for model in models]
    rows = [["float", "", "", *(cell for f, model in zip(real, models) for cell in (
        f"{model.stat().st_size / 1000:.0f}", "", f"{100 * np.mean(f.argmax(1) == labels):.1f}"
    ))]]
    with tempfile.TemporaryDirectory() as folder:
        ours, spec = Path(folder) / "ours.onnx", Path(folder) / "spec.json"
        for dtype, granularity, method in SPECS:
            if sys.argv[1:] and dtype not in sys.argv[1:]:
                continue
            weights = {"dtype": dtype, "storage": "dq", "method": method}
            if granularity != "its own":
                weights["granularity"] = granularity
            spec.write_text(json.dumps({"activations": "none", "evaluate": False,
                                        "rules": {"T33": False}, "weights": weights}))
            cells = []
            for model, f in zip(models, real):
                Measured([QDQ, "quantize", model, "--spec", spec, "-o", ours])
                q = logits(with_numbers(model, ours) if granularity == "its own" else ours,
                           images)
                noise = np.sum((f - q) ** 2)
                cells += [f"{ours.stat().st_size / 1000:.0f}",
                          f"{10 * np.log10(np.sum(f ** 2) / noise):.1f}",
                          f"{100 * np.mean(q.argmax(1) == labels):.1f}"]
            rows.append([dtype, "block 32" if granularity == BLOCKS else granularity,
                         method, *cells])
    machine()
    table("Weights alone", ["dtype", "granularity", "method", *(
        f"{model.stem.removeprefix('glyph_')}: {what}" for model in models
        for what in ("kB", "dB", "top-1"))], rows)


if __name__ == "__main__":
    main()
