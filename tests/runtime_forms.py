# SPDX-License-Identifier: Apache-2.0
"""Makes small models of the forms that exporters write: layers and what stands between them, with sizes that
are open, weights that several layers read in different forms, tables, and pairs that the model has already.
Quantizes each for a target, runs the result where the target's runtime is here, and prints what runs 3 dB
below the literal arithmetic without a warning, does not run, is larger than the given model, or has
a text with a number that is none. Exits 1 where there is one.

    tests/runtime_forms.py [SECONDS [FIRST_SEED [TARGET]]]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from runtime_patterns import QDQ

LEAST_DB, LOST_DB, FLOAT_DB, ALONE_DB, SAMPLES = 8, 3, 60, 35, 12
NO_NUMBER = re.compile(r"(?<![\w.-])-?(nan|inf)(inity)?(?![\w-])", re.IGNORECASE)
BLOCK = {"granularity": {"block": 16}}
CALIBRATED = [{}, {}, {"activations": {"symmetric": True}}, {"activations": {"dtype": "int8"}},
              {"weights": {"granularity": "tensor"}}, {"weights": {"dtype": "uint8"}}, {"mode": "full"},
              {"weights": {"storage": "qdq"}}]
ALONE = [{"activations": "none", "weights": weights} for weights in (
    {"dtype": "int4"}, {"dtype": "int4", **BLOCK}, {"dtype": "uint4", **BLOCK}, {"dtype": "int8"}, {"dtype": "uint8"},
    {"dtype": "int8", **BLOCK}, {"dtype": "int8", "granularity": "tensor"})]
TARGETS = ("onnxruntime", "openvino", "tensorrt")


class Form:
    """A model whose inputs are an image, a sequence, rows, or ids of a table's rows."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.shapes, self.weights = [], {}, {}, []
        self.opset = self.pick(13, 17, 19, 21)
        self.kind = self.pick("image", "tokens", "rows", "ids")
        self.batch, self.open = self.pick(1, 1, 2, 4), self.pick("none", "batch", "all", "rank")
        self.width = self.pick(16, 32, 48)
        self.begin()
        for _ in range(self.rng.integers(1, 5)):
            self.layer() if self.rng.random() < .5 else self.step()
        self.outputs = [self.last]
        if self.rng.random() < .25:
            end = self.last, self.shape
            self.layer()
            self.outputs.append(self.last)
            self.last, self.shape = end
        self.heads()
        self.outputs = [name for name in dict.fromkeys(self.outputs) if name != "x"]

    # --- small things

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, share):
        return self.rng.random() < share

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def floats(self, *shape, scale=1.0):
        return self.constant((scale * self.rng.normal(size=shape)).astype(np.float32))

    def one(self, value):
        return self.constant(np.float32(value))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" if i else f"t{len(self.nodes)}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs or [self.last], names, names[0], **attributes))
        self.last = names[0]
        return names[0]

    # --- the input

    def begin(self):
        self.last = "x"
        w = self.width
        if self.kind == "image":
            self.shape = [self.batch, self.pick(3, 8, 16), 8, 8]
        elif self.kind == "tokens":
            self.shape = [self.batch, 6, w]
        elif self.kind == "rows":
            self.shape = [self.batch, w]
        self.rows = int(self.pick(64, 1024))
        if self.kind == "ids":
            self.given = [self.batch, 6]
            self.table = self.floats(self.rows, w)
            self.shape = [self.batch, 6, w]
            self.node("Gather", self.table, "x", **self.pick({}, {"axis": 0}, {"axis": -2}))
        else:
            self.given = [int(n) for n in self.shape]

    def matrix(self, n, m):
        """Returns a weight [n, m] and its name, perhaps one that another layer has, or its transpose."""
        known = [(name, turned) for name, shape in self.weights for turned in (False, True)
                 if (shape[::-1] if turned else shape) == [n, m]]
        if known and self.chance(.4):
            return self.pick(*known)
        turned = self.chance(.4)
        shape = [m, n] if turned else [n, m]
        name = self.floats(*shape, scale=n ** -.5)
        self.weights.append((name, shape))
        return name, turned

    def heads(self):
        """Heads that read a table of embeddings, in the forms of exporters."""
        if self.kind != "ids" or len(self.shape) < 2 or self.shape[-1] != self.width:
            return
        before, shape = self.last, self.shape
        for _ in range(self.pick(0, 1, 1, 2)):
            self.last, self.shape = before, shape
            self.product(self.table, True, self.rows)
            self.outputs.append(self.last)

    # --- layers

    def layer(self):
        if len(self.shape) == 4:
            return self.conv()
        n, m = self.shape[-1], int(self.pick(16, 24, 32, self.width))
        return self.product(*self.matrix(n, m), m)

    def product(self, name, turned, m):
        form = self.pick("Gemm", "Transpose", "MatMul", "Einsum" if self.opset < 21 else "MatMul")
        bias, before = self.chance(.5), self.shape
        if form == "Gemm" and (len(self.shape) == 2 or self.open in ("none", "batch") or self.chance(.5)):
            if len(self.shape) != 2:
                self.node("Reshape", self.last, self.ints(-1, before[-1]))
            row = [self.floats(*self.pick((m,), (m,), (1, m)))] if bias else []
            more = self.pick({}, {}, {"alpha": .5}, {"beta": 2.0})
            self.node("Gemm", self.last, name, *row, transB=int(turned), **more)
            if len(before) == 3:
                self.node("Reshape", self.last, self.ints(-1, before[1], m))
        elif form == "Einsum" and len(self.shape) == 3:
            self.node("Einsum", self.last, name, equation="bsd,ed->bse" if turned else "bsd,de->bse")
        else:
            data, right = self.last, name
            if turned:
                right = self.node("Transpose", name, **self.pick({}, {"perm": [1, 0]}))
            self.node("MatMul", data, right)
            if bias:
                row = self.floats(m)
                self.node("Add", *self.pick((self.last, row), (row, self.last)))
        self.shape = [*before[:-1], m]
        if self.chance(.4):
            self.activation()

    def conv(self):
        n, m = self.shape[1], int(self.pick(8, 16, 24))
        side = self.shape[2:]
        bias = [self.floats(m, scale=self.pick(.1, 1, 5))] if self.chance(.5) else []
        if self.chance(.15):
            self.node("ConvTranspose", self.last, self.floats(n, m, 2, 2, scale=(4 * n) ** -.5), *bias, strides=[2, 2])
            self.shape = [self.shape[0], m, *(2 * length for length in side)]
            return
        k, group, stride = int(self.pick(1, 3)), 1, int(self.pick(1, 1, 2))
        if min(side) < 3:
            k = stride = 1
        if self.chance(.25):
            group, m, bias = n, n, bias and [self.floats(n)]
        self.node("Conv", self.last, self.floats(m, n // group, k, k, scale=(k * k * n // group) ** -.5), *bias,
                  pads=[k // 2] * 4, group=group, strides=[stride] * 2)
        self.shape = [self.shape[0], m, *((length - 1) // stride + 1 for length in side)]
        if self.chance(.3):
            self.normalize()
        if self.chance(.5):
            self.activation()

    # --- what stands between

    def step(self):
        steps = [self.activation, self.gelu, self.channels, self.scalar, self.residual, self.concat, self.split,
                 self.softmax, self.where]
        if len(self.shape) == 4:
            steps += [self.pool, self.gate, self.normalize, self.pad, self.resize, self.flatten, self.shuffle]
        if len(self.shape) == 3:
            steps += [self.attention, self.attention, self.norm, self.first, self.reduce, self.sequence_conv]
        if len(self.shape) == 2:
            steps += [self.norm]
        self.pick(*steps)()

    def activation(self):
        op = self.pick("Relu", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Clip", "Elu", "PRelu", "Swish",
                       "HardSigmoid", "Softplus")
        if op == "Clip":
            low, high = self.pick(("", self.one(.8)), (self.one(0), self.one(6)), (self.one(-1), self.one(1)),
                                  (self.one(0), ""))
            self.node("Clip", self.last, low, high)
        elif op == "PRelu":
            channels = [self.shape[1], 1, 1] if len(self.shape) == 4 else [self.shape[-1]]
            self.node("PRelu", self.last, self.constant(self.rng.uniform(-.2, .4, channels).astype(np.float32)))
        elif op in ("Swish", "HardSwish"):
            before = self.last
            self.node("Sigmoid" if op == "Swish" or self.opset < 14 else "HardSigmoid")
            self.node("Mul", before, self.last)
        else:
            self.node(op)

    def gelu(self):
        before = self.last
        self.node("Div", before, self.one(2 ** .5))
        self.node("Erf")
        self.node("Add", self.last, self.one(1))
        self.node("Mul", before, self.last)
        self.node("Mul", self.last, self.one(.5))

    def channels(self):
        n = self.shape[1 if len(self.shape) == 4 else -1]
        value = self.rng.uniform(.3, 2, n) * self.rng.choice(self.pick([1, 1, -1], [1]), n)
        if len(self.shape) == 4:
            value = value.reshape(-1, 1, 1)
        name = self.constant(value.astype(np.float32))
        op = self.pick("Mul", "Add", "Div", "Sub", "Max", "Min", "Pow")
        if op == "Pow":
            self.node("Pow", self.last, self.one(2))
        else:
            self.node(op, *self.pick((self.last, name), (self.last, name), (name, self.last))
                      if op != "Div" else (self.last, name))

    def scalar(self):
        one = self.one(self.pick(.5, 1, -1.5, 0))
        self.node(self.pick("Mul", "Add", "Sub"), *self.pick((self.last, one), (one, self.last)))

    def residual(self):
        before, shape = self.last, self.shape
        self.pick(self.activation, self.gelu, self.layer)()
        if self.shape == shape:
            self.node(self.pick("Add", "Add", "Mul", "Sub"), *self.pick((before, self.last), (self.last, before)))

    def concat(self):
        axis = self.pick(1, len(self.shape) - 1)
        before = self.last
        if self.open == "none" and self.chance(.3):
            other, more = self.floats(*[2 if i == axis else n for i, n in enumerate(self.shape)]), 2
        else:
            self.activation()
            other, more = self.last, self.shape[axis]
        if axis == 1 and len(self.shape) == 3 and self.open in ("all", "rank"):
            return
        self.node("Concat", *self.pick((before, other), (other, before)),
                  axis=self.pick(axis, axis - len(self.shape)))
        self.shape = [n + more if i == axis else n for i, n in enumerate(self.shape)]

    def split(self):
        axis = 1 if len(self.shape) == 4 else len(self.shape) - 1
        if self.shape[axis] % 2:
            return
        half = self.shape[axis] // 2
        if self.chance(.4):
            starts = self.pick((0, half), (half, self.shape[axis]), (-half, 2 ** 31))
            self.node("Slice", self.last, self.ints(starts[0]), self.ints(starts[1]),
                      self.ints(self.pick(axis, axis - len(self.shape))))
        else:
            first = self.node("Split", self.last, self.ints(half, half), axis=axis, outputs=2)
            second = first + "_1"
            if self.chance(.5):
                self.node("Sigmoid", second)
                second = self.last
            self.node(self.pick("Mul", "Add"), first, second)
        self.shape = [half if i == axis else n for i, n in enumerate(self.shape)]

    def softmax(self):
        self.node("Softmax", axis=int(self.pick(-1, len(self.shape) - 1, 1)))

    def where(self):
        data = self.last
        self.node("Greater", data, self.one(.1))
        self.node("Where", self.last, data, self.one(self.pick(0, -1, -1e9 if self.shape[-1] > 2 else 0)))
        if self.constants[self.nodes[-1].input[2]] < -1e8:
            self.node("Softmax", axis=-1)

    def pool(self):
        op = self.pick("MaxPool", "AveragePool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean",
                       "ReduceMax")
        if op.startswith("Global"):
            self.node(op)
            self.shape = [*self.shape[:2], 1, 1]
        elif op.startswith("Reduce"):
            keep = int(self.pick(0, 1))
            axes = self.pick([2, 3], [-1, -2])
            if self.opset >= 18:
                self.node(op, self.last, self.ints(*axes), keepdims=keep)
            else:
                self.node(op, axes=axes, keepdims=keep)
            self.shape = [*self.shape[:2], 1, 1] if keep else self.shape[:2]
        elif min(self.shape[2:]) >= 4:
            k, ceil = int(self.pick(2, 3)), int(self.pick(0, 0, 1))
            pads = [int(self.pick(0, 1))] * 4 if k == 3 else [0] * 4
            more = {"count_include_pad": int(self.pick(0, 1))} if op == "AveragePool" else {}
            self.node(op, kernel_shape=[k, k], strides=[2, 2], pads=pads, ceil_mode=ceil, **more)
            size = [n + 2 * pads[0] - k for n in self.shape[2:]]
            self.shape[2:] = [-(-n // 2) + 1 if ceil else n // 2 + 1 for n in size]
            if ceil:
                self.open = "none"

    def gate(self):
        before, shape = self.last, self.shape
        n, m = shape[1], 8
        self.node("GlobalAveragePool")
        self.node("Conv", self.last, self.floats(m, n, 1, 1, scale=n ** -.5), self.floats(m))
        self.node("Relu")
        self.node("Conv", self.last, self.floats(n, m, 1, 1, scale=m ** -.5), self.floats(n))
        self.node(self.pick("Sigmoid", "HardSigmoid"))
        self.node("Mul", *self.pick((before, self.last), (self.last, before)))

    def normalize(self):
        n = self.shape[1]
        factor = self.constant(self.rng.uniform(.5, 1.5, n).astype(np.float32))
        if self.chance(.3) and min(self.shape[2:]) > 2:
            self.node("InstanceNormalization", self.last, factor, self.floats(n))
        else:
            self.node("BatchNormalization", self.last, factor, self.floats(n), self.floats(n, scale=.2),
                      self.constant(self.rng.uniform(.5, 2, n).astype(np.float32)))

    def pad(self):
        mode = self.pick("constant", "constant", "reflect", "edge")
        if min(self.shape[2:]) < 3:
            return
        value = [self.one(self.pick(0, -1, 3))] if mode == "constant" and self.chance(.6) else []
        self.node("Pad", self.last, self.ints(0, 0, 1, 1, 0, 0, 1, 0), *value, mode=mode)
        self.shape = [*self.shape[:2], self.shape[2] + 2, self.shape[3] + 1]

    def resize(self):
        if max(self.shape[2:]) > 16:
            return
        mode = self.pick("nearest", "linear")
        how = self.pick("half_pixel", "asymmetric", "align_corners") if mode == "linear" else "asymmetric"
        self.node("Resize", self.last, "", self.constant(np.array([1, 1, 2, 2], np.float32)), mode=mode,
                  coordinate_transformation_mode=how, nearest_mode="floor")
        self.shape = [*self.shape[:2], *(2 * n for n in self.shape[2:])]

    def flatten(self):
        b, c, h, w = self.shape
        if self.open in ("all", "rank") or self.chance(.4):
            self.node("Reshape", self.last, self.ints(0, c, -1))
            self.node("Transpose", perm=[0, 2, 1])
            self.shape = [b, h * w, c]
            return
        self.node("Flatten", **self.pick({}, {"axis": 1}))
        self.shape = [b, c * h * w]

    def shuffle(self):
        b, c, h, w = self.shape
        if c % 4 or h * w % 4:
            return
        if self.chance(.5):
            self.node("DepthToSpace", blocksize=2, mode=self.pick("DCR", "CRD"))
            self.shape = [b, c // 4, 2 * h, 2 * w]
        elif self.open in ("none", "batch"):
            self.node("Reshape", self.last, self.ints(0, 2, c // 2, h, w))
            self.node("Transpose", perm=[0, 2, 1, 3, 4])
            self.node("Reshape", self.last, self.ints(0, c, h, w))

    def norm(self):
        n = self.shape[-1]
        factor = self.constant(self.rng.uniform(.5, 1.5, n).astype(np.float32))
        if self.opset >= 17 and self.chance(.6):
            self.node("LayerNormalization", self.last, factor, *([self.floats(n)] if self.chance(.7) else []))
            return
        data = self.last
        square = self.node("Mul", data, data) if self.chance(.5) else self.node("Pow", data, self.one(2))
        mean = (self.node("ReduceMean", square, self.ints(-1)) if self.opset >= 18
                else self.node("ReduceMean", square, axes=[-1]))
        self.node("Add", mean, self.one(1e-5))
        root = self.node("Sqrt")
        if self.chance(.5):
            self.node("Div", data, root)
        else:
            self.node("Reciprocal", root)
            self.node("Mul", data, self.last)
        self.node("Mul", *self.pick((self.last, factor), (factor, self.last)))

    def first(self):
        how = self.pick("Gather", "Slice")
        if how == "Gather":
            self.node("Gather", self.last, self.constant(np.int64(self.pick(0, -1))), axis=1)
            self.shape = [self.shape[0], self.shape[2]]
        else:
            self.node("Slice", self.last, self.ints(0), self.ints(1), self.ints(1))
            self.shape = [self.shape[0], 1, self.shape[2]]

    def reduce(self):
        op, keep, axis = self.pick("ReduceMean", "ReduceMax", "ReduceSum"), int(self.pick(0, 1)), int(self.pick(1, -2))
        if self.opset >= 18 or op == "ReduceSum":
            self.node(op, self.last, self.ints(axis), keepdims=keep)
        else:
            self.node(op, axes=[axis], keepdims=keep)
        self.shape = [self.shape[0], 1, self.shape[2]] if keep else [self.shape[0], self.shape[2]]

    def attention(self):
        data, (b, s, n) = self.last, self.shape
        rows = []
        for _ in range(3):
            self.last = data
            name, turned = self.matrix(n, n)
            right = self.node("Transpose", name, perm=[1, 0]) if turned else name
            self.node("MatMul", data, right)
            if self.chance(.5):
                self.node("Add", self.last, self.floats(n))
            heads = 2
            self.node("Reshape", self.last, self.ints(0, -1 if self.open in ("all", "rank") else s, heads, n // heads))
            rows.append(self.node("Transpose", perm=[0, 2, 3, 1] if len(rows) == 1 else [0, 2, 1, 3]))
        self.node("MatMul", rows[0], rows[1])
        self.node(self.pick("Mul", "Div"), self.last, self.one(1.5))
        if self.chance(.3) and self.open in ("none", "batch"):
            mask = np.triu(np.full((s, s), self.pick(-1e4, -3e38), np.float32), 1)
            self.node("Add", self.last, self.constant(mask[None, None]))
        self.node("Softmax", axis=self.pick(-1, 3))
        self.node("MatMul", self.last, rows[2])
        self.node("Transpose", perm=[0, 2, 1, 3])
        self.node("Reshape", self.last, self.ints(0, -1 if self.open in ("all", "rank") else s, n))
        if self.chance(.6):
            self.product(*self.matrix(n, n), n)

    def sequence_conv(self):
        n, m, k = self.shape[2], int(self.pick(16, 32)), int(self.pick(1, 3))
        self.node("Transpose", perm=[0, 2, 1])
        self.node("Conv", self.last, self.floats(m, n, k, scale=(n * k) ** -.5),
                  *([self.floats(m)] if self.chance(.5) else []), pads=[k // 2] * 2)
        self.node("Transpose", perm=[0, 2, 1])
        self.shape = [*self.shape[:2], m]

    # --- the model

    def give_pairs(self):
        """Stores some weights as integers, as models do that are quantized already."""
        for name, value in list(self.constants.items()):
            if value.dtype != np.float32 or value.ndim != 2 or not self.chance(.5):
                continue
            readers = [node for node in self.nodes if name in node.input]
            if any(node.op_type not in ("MatMul", "Gemm", "Transpose") for node in readers):
                continue
            dtype = self.pick(np.int8, np.uint8)
            axis = int(self.pick(0, 1))
            scale = np.abs(value).max(axis=1 - axis) / 100
            zero = (128 if dtype is np.uint8 else 0) + self.pick(0, 0, 3)
            lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
            wide = np.expand_dims(scale, 1 - axis)
            stored = np.clip(np.rint(value / wide) + zero, lowest, highest).astype(dtype)
            given = [stored, scale.astype(np.float32)]
            if zero or self.chance(.5):
                given.append(np.full(scale.shape, zero, dtype))
            names = [self.constant(array) for array in given]
            self.nodes.insert(0, helper.make_node("DequantizeLinear", names, [name], name + "_DQ", axis=axis))
            del self.constants[name]
            self.constants["unused_" + name] = np.float32(0)

    def model(self):
        value = helper.make_tensor_value_info
        shape = list(self.given)
        if self.open in ("batch", "all"):
            shape[0] = "n"
        if self.open == "all" and len(shape) > 1 and self.kind != "rows":
            first = 1 if self.kind in ("tokens", "ids") else 2
            last = 2 if first == 1 else 4
            shape[first:last] = [f"s{i}" for i in range(first, last)]
        if self.open == "rank" and self.kind in ("tokens", "ids"):
            shape[:2] = [None, None]
        used = {name for node in self.nodes for name in node.input}
        graph = helper.make_graph(
            self.nodes, "form", [value("x", 7 if self.kind == "ids" else 1, shape)],
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items() if name in used])
        for output in graph.output:
            output.type.tensor_type.elem_type = 1
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)

    def feed(self, batches=1, length=None):
        """Returns data of the given sizes, or of another length where that is open."""
        shape = [batches * self.given[0], *self.given[1:]]
        if length and self.open in ("all", "rank") and self.kind in ("tokens", "ids"):
            shape[1] = length
        if self.kind == "ids":
            return self.rng.integers(0, self.rows, shape)
        return self.rng.normal(size=shape).astype(np.float32)


    def others(self, whole):
        """Returns data of other lengths and of another batch, where the model runs with them."""
        feeds = [self.feed(length=length) for length in (1, 11)] + [self.feed(3)] * (self.open != "none")
        made = []
        for x in feeds:
            try:
                all_onnxruntime(whole, x, "ORT_DISABLE_ALL")
            except Exception:
                continue  # a Reshape states the size
            made.append(x)
        return made


def many(run, model, x, *more):
    """Returns all outputs of a model for each of the feeds, joined."""
    return [np.concatenate([np.asarray(o, np.float64).ravel() for o in outputs])
            for outputs in zip(*(run(model, one, *more) for one in x))]


def all_onnxruntime(model, x, level="ORT_ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    return onnxruntime.InferenceSession(model, options).run(None, {"x": x})


def all_openvino(model, x):
    import openvino
    core = openvino.Core()
    made = core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})({"x": x})
    return [np.array(made[i]) for i in range(len(made))]


RUN = {"onnxruntime": all_onnxruntime, "openvino": all_openvino, "tensorrt": all_onnxruntime}


def least_db(real, other):
    """Returns the SQNR of the worst output."""
    worst = np.inf
    for f, q in zip(real, other):
        if not np.array_equal(np.isfinite(f), np.isfinite(q)):
            return -np.inf
        good = np.isfinite(f)
        error, signal = np.square(f[good] - q[good]).sum(), np.square(f[good]).sum()
        if error > 0:
            worst = min(worst, 10 * np.log10(max(signal, 1e-30) / error))
    return worst


def quantize(folder, model, target, spec, data):
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "d.npz", x=data)
    (folder / "s.json").write_text(json.dumps({"target": target, "evaluate": False, **spec}))
    for name in ("q.onnx", "r.json"):
        (folder / name).unlink(missing_ok=True)
    given = [] if spec.get("activations") == "none" and not spec.get("data") else ["--calibration", "d.npz"]
    done = subprocess.run([QDQ, "quantize", "m.onnx", "--spec", "s.json", *given, "-o", "q.onnx", "--report", "r.json"],
                          cwd=folder, capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, "QDQD_ENGINE_OPENVINO": ""})
    text = done.stderr + ((folder / "r.json").read_text() if done.returncode == 0 else "")
    if NO_NUMBER.search(text):
        raise ValueError("a text has no number: " + text[max(0, NO_NUMBER.search(text).start() - 60):][:120])
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    return (folder / "q.onnx").read_bytes(), json.loads((folder / "r.json").read_text())


def dequantizes(model, folder):
    """Returns which layers of a model with weights alone are no MatMulNBits in onnxruntime, or None."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(model, options)
    graph = onnx.load(options.optimized_model_filepath).graph
    makers = {name: node for node in graph.node for name in node.output}
    found = []
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm", "FusedMatMul", "FusedGemm") and len(node.input) > 1:
            maker = makers.get(node.input[1])
            while maker is not None and maker.op_type in ("Transpose", "Identity"):
                maker = makers.get(maker.input[0])
            if maker is not None and maker.op_type == "DequantizeLinear":
                found.append(node.name)
    return found


def hides(report):
    return any(one["code"] in ("target_format", "misread_by_target", "onnxruntime_differs", "bias_overflows")
               or "wrong" in one["detail"] for one in report["warnings"])


def try_form(folder, seed, target):
    """Returns whether a result was compared, and what is wrong with it, or None."""
    form = Form(seed)
    alone = form.chance(.35)
    spec = dict(form.pick(*(ALONE if alone else CALIBRATED)))
    if form.chance(.12):
        form.give_pairs()
        spec["existing_qdq"] = form.pick("keep", "strip")
        if target == "tensorrt" and spec["existing_qdq"] == "keep":
            return False, None  # onnxruntime does not run what TensorRT does
    model = form.model()
    if form.chance(.5):
        spec["recipe"] = "none"
    whole = model.SerializeToString()
    feeds = [form.feed() for _ in range(3)] + form.others(whole)
    what = f"{spec} opset {form.opset} {form.given} open {form.open} " + " ".join(
        f"{node.op_type}({', '.join(node.input)})" for node in model.graph.node)
    try:
        real = many(all_onnxruntime, whole, feeds, "ORT_DISABLE_ALL")
        in_float = least_db(real, many(RUN[target], whole, feeds))
    except Exception:
        return False, None  # the runtime does not run the float model either
    if in_float < 60 or not all(np.isfinite(one).all() and np.square(one).sum() > 1e-9 for one in real):
        return False, None
    try:
        made, report = quantize(folder, model, target, spec, form.feed(SAMPLES))
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        return True, f"{error} {what}"
    if any(one["code"] == "nothing_to_quantize" for one in report["warnings"]):
        return False, None
    told_twice = any(one["code"] == "weight_stored_twice" for one in report["warnings"])
    if alone and target != "tensorrt" and spec.get("recipe") != "none" and not told_twice \
            and len(made) > 1.03 * len(whole) + 3000:
        return True, f"{len(made)} bytes of {len(whole)} {what}"
    try:
        literal = least_db(real, many(all_onnxruntime, made, feeds, "ORT_DISABLE_ALL"))
    except Exception as error:
        return True, f"the literal arithmetic does not run: {' '.join(str(error).split())[-200:]} {what}"
    if literal < LEAST_DB or hides(report):
        return False, None
    most = ALONE_DB if alone else FLOAT_DB
    try:
        run = least_db(real, many(RUN[target], made, feeds))
        why = ""
    except Exception as error:
        run, why = -np.inf, " ".join(str(error).split())[-200:]
    if run <= min(literal, most) - LOST_DB:
        return True, f"{literal:.1f} dB literal, {run:.1f} run {why} {what}"
    if target == "onnxruntime" and alone and form.opset >= 13 and spec.get("recipe") != "none":
        slow = dequantizes(made, folder)
        told = [one for one in report["warnings"] if one["code"] == "weight_dequantized"]
        if slow and not told:
            return True, f"dequantizes {slow} {what}"
    return True, None


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    targets = sys.argv[3:] or TARGETS
    end, tried, wrong = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for target in targets:
                compared, what = try_form(Path(folder), seed, target)
                tried += compared
                if what:
                    wrong += 1
                    print(f"seed {seed}, {target}: {what}", flush=True)
            seed += 1
    print(f"forms: {tried} results compared, up to seed {seed}, {wrong} wrong")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
