# SPDX-License-Identifier: Apache-2.0
"""Shared by the placement tests: the command, and the places of a model's Q/DQ pairs.

A row describes one node: (inputs with a pair, has a quantized weight, its channel axis).
Tables write it as {"inputs": …, "weight": …, "axis": …}. An unnamed node is called
@OUTPUT."""

import json
import os
import re
import subprocess
from pathlib import Path

import onnx
from onnx import helper, numpy_helper

HERE = Path(__file__).resolve().parent
INSTALLED = Path(os.environ.get("QDQD_INSTALLED", HERE.parents[1] / "_install"))
QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
TARGETS = HERE.parents[1] / "engine" / "plan" / "targets"
LINTS = {code for path in TARGETS.glob("*/*.c")
         for code in re.findall(r"^    \{QDQI_(?:VETO_)?LINT\((\w+)\),", path.read_text(), re.MULTILINE)}
assert len(LINTS) > 10
BOUNDARY = ("QuantizeLinear", "DequantizeLinear")


def table_rows(table):
    return {name: (row["inputs"], row["weight"], row.get("axis"))
            for name, row in table.items()}


def plan_rows(plan):
    return {row["name"]: (row["quantized_inputs"], row["weight_quantized"],
                          row["weight_axis"])
            for row in plan["layers"]
            if row["quantized_inputs"] or row["weight_quantized"]}


def nested(node):
    """Returns the graphs in a node's attributes."""
    for a in node.attribute:
        yield from [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs


def all_graphs(graph):
    """Returns the graph and all that are nested in it."""
    yield graph
    for node in graph.node:
        for inner in nested(node):
            yield from all_graphs(inner)


def all_nodes(graph):
    """Returns the nodes in the order of computation, those of nested graphs before their
    owner."""
    for node in graph.node:
        for inner in nested(node):
            yield from all_nodes(inner)
        yield node


def given_ranges(model):
    names = [v.name for graph in all_graphs(model.graph) for v in graph.input]
    names += [name for node in all_nodes(model.graph) for name in node.output if name]
    return {name: [-1, 3] for name in names}


def attribute(node, name):
    return next((helper.get_attribute_value(a) for a in node.attribute
                 if a.name == name), None)


class Source:
    """A float model on disk, and the results of `qdq` for it."""

    def __init__(self, model, folder):
        self.model, self.folder = model, folder
        self.path = folder / "model.onnx"
        self.out, self.report = folder / "out.onnx", folder / "report.json"
        onnx.save(model, self.path)

    def qdq(self, command, spec, *arguments):
        path = self.folder / "spec.json"
        path.write_text(json.dumps(spec))
        return subprocess.run([QDQ, command, self.path, "--spec", path, *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)

    def plan(self, spec):
        return self.qdq("plan", spec, "--json")

    def quantize(self, spec):
        """Quantizes with arbitrary ranges, because the places of pairs do not depend on
        them."""
        self.out.unlink(missing_ok=True)
        given = {"ranges": given_ranges(self.model)}
        return self.qdq("quantize", {**spec, "evaluate": False, "calibration": given},
                        "-o", self.out, "--report", self.report)


# Formats whose elements have a type of another name.
ELEMENTS = {"int3": "int4", "mxfp4": "float4e2m1", "mxfp6": "float6e2m3", "mxfp8": "float8e4m3fn",
            "nvfp4": "float4e2m1"}


class Placement:
    """The places of the pairs in a quantized model, whose integer weights are of one
    format."""

    def __init__(self, model, weights="int8"):
        self.graph = model.graph
        self.weights = onnx.TensorProto.DataType.Value(
            ELEMENTS.get(weights, weights).upper())
        self.nodes = list(all_nodes(model.graph))
        self.makers = {name: n for n in self.nodes for name in n.output}
        self.constants = {t.name: t for graph in all_graphs(model.graph)
                          for t in graph.initializer}
        self.fixed = set(self.constants) | {""}  # and tensors that follow from constants alone
        for node in self.nodes:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = attribute(node, "value")
            if node.op_type not in BOUNDARY and self.fixed.issuperset(node.input):
                self.fixed.update(node.output)
        self.pairs = [n for n in self.nodes if n.op_type == "DequantizeLinear"]
        # That of the scales of nvfp4 is a part of its pair.
        scales = {n.input[1] for n in self.pairs}
        self.pairs = [n for n in self.pairs if n.output[0] not in scales]

    def constant(self, name):
        return numpy_helper.to_array(self.constants[name])

    def source(self, name):
        """Returns the tensor behind the pair that makes `name`, and its axis; or None."""
        dequantize = self.makers.get(name)
        if dequantize is None or dequantize.op_type != "DequantizeLinear":
            return None
        if dequantize.input[0] in self.constants:
            return dequantize.input[0], self.axis_of_integers(dequantize)
        quantize = self.makers[dequantize.input[0]]
        assert quantize.op_type == "QuantizeLinear"
        assert list(quantize.input[1:]) == list(dequantize.input[1:])
        assert attribute(quantize, "axis") == attribute(dequantize, "axis")
        scale = self.constants[quantize.input[1]]
        return quantize.input[0], attribute(quantize, "axis") if scale.dims else None

    def axis_of_integers(self, dequantize):
        integers, *zero = (self.constants[name] for name in dequantize.input[::2])
        made = self.makers.get(dequantize.input[1])  # scales of nvfp4
        scale = self.constants[made.input[0] if made else dequantize.input[1]]
        assert all(t.data_type == self.weights for t in (integers, *zero))
        axis = attribute(dequantize, "axis") if scale.dims else None
        block = attribute(dequantize, "block_size") or 0
        wanted = [-(-size // block) if i == axis else size
                  for i, size in enumerate(integers.dims)] if block else None
        assert axis is None or list(scale.dims) == (wanted or [integers.dims[axis]])
        return axis

    def integers(self):
        """Returns the number of weights that are integers behind DequantizeLinear alone.
        """
        return sum(pair.input[0] in self.constants for pair in self.pairs)

    def rows(self):
        rows = {}
        for node in self.nodes:
            if node.op_type in BOUNDARY:
                continue
            inputs, weight, axis = [], False, None
            for i, name in enumerate(node.input):
                source = self.source(name)
                if source and source[0] in self.fixed:
                    weight, axis = True, source[1]
                elif source:
                    inputs.append(i)
                    assert source[1] is None, "activations have one scale"
            if inputs or weight:
                rows[node.name or "@" + node.output[0]] = (inputs, weight, axis)
        return rows


def check_untouched(source, result, gone=(), squeezed=()):
    """Expects that only the readers of pairs differ from the source's graph. `gone` are
    weights that became integers, and the nodes that computed them; `squeezed` are made by a
    reduction that keeps its axes, and a Squeeze."""
    constants = {t.name for t in source.graph.initializer}
    inputs = [v for v in source.graph.input
              if source.ir_version >= 4 or v.name not in constants]
    assert list(result.graph.input) == inputs
    assert result.graph.output == source.graph.output
    after = [n.output[0].removesuffix("_QuantizeLinear_Input") for n in result.graph.node
             if n.op_type not in BOUNDARY]
    before = [n.output[0] for n in source.graph.node if n.output[0] not in gone]
    for name in squeezed:
        i = before.index(name)
        before[i:i] = [name + "_with_axes"]
    assert after == before, "order"
    weights = {t.name: t for t in result.graph.initializer}
    for tensor in source.graph.initializer:
        if tensor.name in gone:
            assert tensor.name not in weights
        else:
            assert weights[tensor.name] == tensor, "weights are the source's"
