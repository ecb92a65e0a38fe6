# SPDX-License-Identifier: Apache-2.0
"""make_decoder.py FOLDER [SIZE [RANGES]]: makes a decoder with random weights in FOLDER.

SIZE is a row of SIZES: `tiny` (1.1 M parameters, 4 MB), `100m` (27 M, 108 MB), `682m`
(682 M parameters, 2.7 GB, the default), `1b` (1.1 G parameters, 4.4 GB), or `7b` (6.9 G
parameters, 28 GB). The graph is that of a language model without its embedding: norms, attention with one head, a gated part, and
a dense layer at the end. Weights are float32 in FOLDER/SIZE.data, which FOLDER/SIZE.onnx
names; the same SIZE gives the same bytes.

With RANGES the weights share so many ranges of the data file, each as long as the largest
weight, and a hole makes the file a seventh as long as all weights: a model of 28 GB then needs
1 GB of the disk. RANGES 0 gives each weight bytes of its own."""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

# hidden size, size of the gated part, layers, tokens
SIZES = {"tiny": (128, 352, 4, 2048), "100m": (768, 2048, 3, 8000),
         "682m": (2048, 5632, 12, 32000), "1b": (2048, 5632, 20, 32000),
         "7b": (4096, 11008, 33, 32000)}
PIECE = 1 << 24  # elements that are written at once


class Builder:
    def __init__(self, name, ranges, largest):
        self.name, self.ranges, self.largest = name, ranges, largest
        self.nodes, self.weights = [], []
        self.offsets, self.end = [], 0

    def place(self, size):
        """Returns the offset of the next weight in the data file."""
        if self.ranges:
            return len(self.offsets) % self.ranges * self.largest
        offset, self.end = self.end, self.end + (size + 4095) // 4096 * 4096
        return offset

    def node(self, op, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def dense(self, name, x, rows, columns):
        size = rows * columns * 4
        weight = TensorProto(name=f"{name}.weight", data_type=TensorProto.FLOAT,
                             dims=[rows, columns], data_location=TensorProto.EXTERNAL)
        offset = self.place(size)
        self.offsets.append((offset, size))
        for key, text in (("location", f"{self.name}.data"), ("offset", offset),
                          ("length", size)):
            weight.external_data.add(key=key, value=str(text))
        self.weights.append(weight)
        return self.node("MatMul", name, x, weight.name)

    def norm(self, name, x):
        square = self.node("ReduceMean", f"{name}.mean", self.node(
            "Mul", f"{name}.square", x, x), axes=[-1])
        return self.node("Div", name, x, self.node("Sqrt", f"{name}.root", self.node(
            "Add", f"{name}.sum", square, "epsilon")))

    def layer(self, n, x, hidden, wide):
        h = self.norm(f"{n}.norm1", x)
        q, k, v = (self.dense(f"{n}.{part}", h, hidden, hidden) for part in "qkv")
        scores = self.node("MatMul", f"{n}.scores", q, self.node(
            "Transpose", f"{n}.kt", k, perm=[0, 2, 1]))
        scores = self.node("Softmax", f"{n}.softmax", self.node(
            "Mul", f"{n}.scaled", scores, "scale"), axis=-1)
        h = self.dense(f"{n}.o", self.node("MatMul", f"{n}.mixed", scores, v), hidden,
                       hidden)
        x = self.node("Add", f"{n}.add1", x, h)
        h = self.norm(f"{n}.norm2", x)
        gate = self.dense(f"{n}.gate", h, hidden, wide)
        gate = self.node("Mul", f"{n}.silu", gate, self.node(
            "Sigmoid", f"{n}.sigmoid", gate))
        h = self.node("Mul", f"{n}.gated", gate,
                      self.dense(f"{n}.up", h, hidden, wide))
        return self.node("Add", f"{n}.add2", x,
                         self.dense(f"{n}.down", h, wide, hidden))


def write_data(path, size):
    """Writes normal numbers: one piece of them, each time turned by another distance."""
    random = np.random.default_rng(26)
    piece = random.standard_normal(min(PIECE, size // 4), dtype=np.float32) * 0.02
    with open(path, "wb") as file:
        while file.tell() < size:
            turned = np.roll(piece, int(random.integers(len(piece))))
            file.write(turned[:(size - file.tell()) // 4].data)


def make(folder, name="682m", ranges=0):
    """Makes the model and returns its path."""
    hidden, wide, layers, tokens = SIZES[name]
    b = Builder(name, ranges, 4 * hidden * max(wide, tokens))
    x = "embedded"
    for n in range(layers):
        x = b.layer(f"layer{n}", x, hidden, wide)
    b.dense("logits", b.norm("norm", x), hidden, tokens)
    constants = [helper.make_tensor("epsilon", TensorProto.FLOAT, [], [1e-5]),
                 helper.make_tensor("scale", TensorProto.FLOAT, [], [hidden ** -0.5])]
    graph = helper.make_graph(
        b.nodes, f"decoder-{name}",
        [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, [1, "S", hidden])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "S", tokens])],
        b.weights + constants)
    model = helper.make_model(graph, ir_version=8, producer_name="qdqd-bench",
                              opset_imports=[helper.make_opsetid("", 17)])
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    size = max(offset + size for offset, size in b.offsets)
    data = folder / f"{name}.data"
    whole = max(size, sum(size for _, size in b.offsets) // 7) if ranges else size
    if not data.exists() or data.stat().st_size != whole:
        write_data(data, size)
        os.truncate(data, whole)
    onnx.save(model, folder / f"{name}.onnx")
    return folder / f"{name}.onnx"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(make(sys.argv[1], *sys.argv[2:3], *map(int, sys.argv[3:4])))
