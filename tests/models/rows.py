# SPDX-License-Identifier: Apache-2.0
"""The table of odd models: a row for each, and the form in which its model is written
(make.py)."""

import zlib
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLES = 16
ROWS = {}
SECTIONS = []


@dataclass
class Row:
    name: str
    build: callable
    says: str
    spec: dict = field(default_factory=dict)
    layers: tuple = ()
    error: str = None
    warnings: tuple = ()
    sqnr_db: float = 20
    runs: bool = True
    checks: bool = True
    section: str = None

    def model(self):
        return self.build()

    def numbers(self, what=""):
        return np.random.default_rng(zlib.crc32(f"{self.name} {what}".encode()))

    def data(self, model):
        """Returns samples of the model's inputs, on an additional first axis."""
        constants = {t.name for t in model.graph.initializer}
        return {v.name: self.sample(v) for v in model.graph.input
                if v.name not in constants and v.type.HasField("tensor_type")}

    def sample(self, value):
        kind = value.type.tensor_type
        shape = [SAMPLES] + [d.dim_value or 8 for d in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        numbers = self.numbers(value.name)
        if kind.elem_type == TensorProto.BOOL:
            return (np.arange(np.prod(shape)).reshape(shape) % 2).astype(bool)
        if np.issubdtype(dtype, np.integer):
            return numbers.integers(1, 4, shape).astype(dtype)
        return numbers.normal(size=shape).astype(dtype)


def row(says, layers="", **more):
    def add(build):
        name = build.__name__
        ROWS[name] = Row(name, build, says, layers=tuple(layers.split()),
                         section=SECTIONS[-1], **more)
        return build
    return add


def section(title):
    SECTIONS.append(title)


# --- making models -----------------------------------------------------------


def array(name, shape, dtype=np.float32):
    numbers = np.random.default_rng(zlib.crc32(name.encode()))
    dtype = np.dtype(dtype)
    if dtype.kind in "fV":
        return numbers.normal(0, 0.5, shape).astype(dtype)
    return np.ones(shape, dtype)


def weight(name, shape, dtype=np.float32):
    return numpy_helper.from_array(array(name, shape, dtype), name)


def fill_graph(graph):
    """Makes initializers of the declared values that no node computes, in nested graphs,
    too."""
    made = {name for node in graph.node for name in node.output}
    made |= {v.name for v in graph.input} | {t.name for t in graph.initializer}
    for value in [v for v in graph.value_info if v.name not in made]:
        kind = value.type.tensor_type
        graph.initializer.append(weight(
            value.name, [d.dim_value for d in kind.shape.dim],
            helper.tensor_dtype_to_np_dtype(kind.elem_type)))
        graph.value_info.remove(value)
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                fill_graph(a.g)


def text(body, opset=17, ir=9, imports=""):
    """Returns the model of its graph's text, and perhaps of functions behind it."""
    model = onnx.parser.parse_model(
        f'<ir_version: {ir}, opset_import: ["": {opset}{imports}]>\n' + body)
    fill_graph(model.graph)
    return model


def of_nodes(nodes, inputs, outputs, initializers=(), opset=17, ir=9, **more):
    def values(table):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
                for n, s in table.items()]

    graph = helper.make_graph(nodes, "odd", values(inputs), values(outputs),
                              list(initializers), **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=ir)
