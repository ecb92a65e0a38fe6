# SPDX-License-Identifier: Apache-2.0
"""Networks whose output joins a large head with a small one, so that one scale for both kills the
small one and one figure for both does not show it.

`plant(form, ratio, seed)` makes one. Five forms join the heads so that they share a scale,
and "sequence" so that they do not; `ratio` is that of the magnitudes.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMS = ("concat", "stack", "gather", "split_slice", "pad_transpose_reshape")
RATIOS = (10, 30, 100, 300, 600, 1000, 3000, 6000, 10_000, 30_000, 60_000, 100_000)
SIDE, PLACES, BOXES, SCORES = 16, 256, 4, 8


class Planted:
    """A network, its samples, and how its heads are taken from its output."""

    def __init__(self, model, heads):
        self.model, self.heads = model, heads

    def samples(self, n, seed=0):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(n, 16, SIDE, SIDE)).astype(np.float32)

    def sqnr(self, floats, quantized):
        """The SQNR of each head: the smaller one of that about zero and that about its mean."""
        worst = []
        for take in self.heads:
            f = np.concatenate([take(y).ravel() for y in floats]).astype(np.float64)
            q = np.concatenate([take(y).ravel() for y in quantized]).astype(np.float64)
            noise = ((f - q) ** 2).sum()
            signal = ((f - f.mean()) ** 2).sum()
            worst.append(10 * np.log10(signal / max(noise, 1e-30)))
        return worst


class Builder:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        values = self.rng.laplace(size=shape) / np.sqrt(np.prod(shape[1:]))
        return self.constant(values.astype(np.float32))

    def node(self, op, inputs, outputs=None, **attributes):
        outputs = outputs or [f"t{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, f"{op}_{len(self.nodes)}", **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def reshape(self, value, *shape):
        return self.node("Reshape", [value, self.constant(np.array(shape, np.int64))])

    def float(self, value):
        return self.constant(np.float32(value))

    def boxes(self, value, ratio):
        return self.node("Mul", [self.node("Relu", [value]), self.float(ratio / 2)])

    def scores(self, value):
        return self.node("Sigmoid", [self.node("Sub", [value, self.float(2)])])

    def model(self, output, shape):
        self.nodes[-1].output[0] = output
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "planted", [value("x", TensorProto.FLOAT, ["n", 16, SIDE, SIDE])],
            [value(output, TensorProto.FLOAT, shape)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def trunk(b):
    y = b.node("Conv", ["x", b.weight(64, 16, 3, 3)], pads=[1] * 4)
    return b.node("Relu", [y])


def two_heads(b, ratio, channels=(BOXES, SCORES)):
    y = trunk(b)
    boxes = b.boxes(b.node("Conv", [y, b.weight(channels[0], 64, 1, 1)]), ratio)
    scores = b.scores(b.node("Conv", [y, b.weight(channels[1], 64, 1, 1)]))
    return boxes, scores


def concat(b, ratio):
    heads = [b.reshape(t, 0, n, PLACES) for t, n in zip(two_heads(b, ratio), (BOXES, SCORES), strict=True)]
    b.node("Concat", heads, axis=1)
    return ["n", BOXES + SCORES, PLACES], [lambda y: y[:, :BOXES], lambda y: y[:, BOXES:]]


def stack(b, ratio):
    axes = b.constant(np.array([1], np.int64))
    heads = [b.node("Unsqueeze", [t, axes]) for t in two_heads(b, ratio, (SCORES, SCORES))]
    b.node("Concat", heads, axis=1)
    return ["n", 2, SCORES, SIDE, SIDE], [lambda y: y[:, 0], lambda y: y[:, 1]]


def gather(b, ratio):
    heads = [b.reshape(t, 0, n, PLACES) for t, n in zip(two_heads(b, ratio), (BOXES, SCORES), strict=True)]
    joined = b.node("Concat", heads, axis=1)
    order = np.concatenate([np.arange(BOXES + 2, BOXES + SCORES), np.arange(BOXES + 2)])
    b.node("Gather", [joined, b.constant(order.astype(np.int64))], axis=1)
    where = np.argsort(order)
    return (["n", BOXES + SCORES, PLACES],
            [lambda y: y[:, where[:BOXES]], lambda y: y[:, where[BOXES:]]])


def split_slice(b, ratio):
    y = b.node("Conv", [trunk(b), b.weight(BOXES + SCORES + 1, 64, 1, 1)])
    sizes = b.constant(np.array([BOXES, SCORES, 1], np.int64))
    parts = b.node("Split", [y, sizes], ["first", "second", "rest"], axis=1)
    joined = b.node("Concat", [b.boxes(parts[0], ratio), b.scores(parts[1]), parts[2]], axis=1)
    bounds = [b.constant(np.array([v], np.int64)) for v in (0, BOXES + SCORES, 1)]
    b.node("Slice", [joined, *bounds])
    return ["n", BOXES + SCORES, SIDE, SIDE], [lambda y: y[:, :BOXES], lambda y: y[:, BOXES:]]


def pad_transpose_reshape(b, ratio):
    heads = [b.reshape(t, 0, n, PLACES) for t, n in zip(two_heads(b, ratio), (BOXES, SCORES), strict=True)]
    joined = b.node("Concat", heads, axis=1)
    pads = b.constant(np.array([0, 1, 0, 0, 1, 0], np.int64))
    padded = b.node("Pad", [joined, pads])
    b.reshape(b.node("Transpose", [padded], perm=[0, 2, 1]), 0, PLACES * (BOXES + SCORES + 2))

    def columns(y):
        return y.reshape(len(y), PLACES, BOXES + SCORES + 2)

    return (["n", PLACES * (BOXES + SCORES + 2)],
            [lambda y: columns(y)[..., 1:BOXES + 1], lambda y: columns(y)[..., BOXES + 1:-1]])


def sequence(b, ratio):
    heads = [b.reshape(t, 0, n, PLACES) for t, n in zip(two_heads(b, ratio), (BOXES, SCORES), strict=True)]
    b.node("ConcatFromSequence", [b.node("SequenceConstruct", heads)], axis=1)
    return ["n", BOXES + SCORES, PLACES], [lambda y: y[:, :BOXES], lambda y: y[:, BOXES:]]


def plant(form, ratio, seed=0):
    b = Builder(seed + 1)
    shape, heads = globals()[form](b, ratio)
    return Planted(b.model("y", shape), heads)


def all_planted():
    for form in FORMS:
        for i, ratio in enumerate(RATIOS):
            yield form, ratio, plant(form, ratio, i)


def save(planted, path):
    onnx.save(planted.model, path)
