# SPDX-License-Identifier: Apache-2.0
"""One small model of each oddity that users' models have, and what becomes of it.

The table is ROWS. A row's function makes the model; its decorator says what is expected:

  says      what happens, for docs/models.md
  spec      the spec that it is quantized with, {} unless given
  layers    names of the nodes with a pair, all of them
  error     the code of the refusal instead
  warnings  codes of the report's warnings, all but those of the target's rules
  sqnr_db   what the floating outputs have to reach against the float model
  runs      False: ONNX Runtime cannot run it, so that there is nothing to compare
  checks    False: onnx.checker does not accept the source, nor then the result
  section   where docs/models.md has it

Models come as onnx.parser's text or by onnx.helper. Weights are the values that are
declared and that no node makes; all numbers follow from the row's name. Nobody draws
anything else, so each model is the same wherever it is made.

Run as a program, it writes all of them (make.py FOLDER), or the tables of the document
(make.py --document docs/models.md).
"""

import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

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
        """Samples of the model's inputs, on an axis of their own before the others."""
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
    """Makes initializers of the declared values that no node makes, in bodies, too."""
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
    """A model of its graph's text, and perhaps functions behind it."""
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


# --- control flow ------------------------------------------------------------

section("Control flow")

@row("Both branches of an `If` are quantized, whether a weight is in the branch or "
     "captured from outside. A pair stands in the innermost graph that contains all "
     "readers of the tensor.", "outer then_fc else_fc", warnings=["layers_not_compared"])
def if_weights():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,6] y) <float[8,8] w, float[8,6] captured> {
        [outer] h = MatMul (x, w)
        [choose] y = If (c) <
            then_branch = yes () => (float[2,6] a) { [then_fc] a = MatMul (h, captured) },
            else_branch = no () => (float[2,6] b) <float[8,6] own> {
                [else_fc] b = MatMul (h, own) }>
    }""")


@row("Where no sample takes a branch, its layers stay in float if their activations are "
     "made inside it, with the warning `not_observed`; `calibration.ranges` may give "
     "their ranges.", "first used",
     warnings=["layers_not_compared", "not_observed"])
def if_never_taken():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w, int64[1] zero> {
        n = ReduceSum <keepdims = 0> (x)
        big = Constant <value = float {1e30}> ()
        c = Less (n, big)
        [choose] y = If (c) <
            then_branch = yes () => (float[2,8] a) {
                [first] a0 = MatMul (x, w)  a1 = Relu (a0)  [used] a = MatMul (a1, w) },
            else_branch = no () => (float[2,8] b) {
                b0 = Neg (x)  [unused] b = MatMul (b0, w) }>
    }""")


@row("With a range by hand such a layer is quantized like all others.", "used unused",
     spec={"calibration": {"ranges": {"b0": [-4, 4]}}}, warnings=["layers_not_compared"])
def if_never_taken_range_given():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        n = ReduceSum <keepdims = 0> (x)
        big = Constant <value = float {1e30}> ()
        c = Less (n, big)
        [choose] y = If (c) <
            then_branch = yes () => (float[2,8] a) { [used] a = MatMul (x, w) },
            else_branch = no () => (float[2,8] b) {
                b0 = Neg (x)  [unused] b = MatMul (b0, w) }>
    }""")


@row("Branches may use the same names: those of the later one get a suffix.",
     "fc fc_1", warnings=["layers_not_compared"])
def if_same_names():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,6] y) {
        [choose] y = If (c) <
            then_branch = yes () => (float[2,6] out) <float[8,6] w> {
                t = Relu (x)  [fc] out = MatMul (t, w) },
            else_branch = no () => (float[2,6] out) <float[8,6] w> {
                t = Neg (x)  [fc] out = MatMul (t, w) }>
    }""")


@row("A name that hides an outer one is another tensor.", "inside behind",
     checks=False, runs=False,
     spec={"calibration": {"ranges": {"h": [-4, 4], "h_1": [-4, 4], "y0": [-9, 9]}},
           "evaluate": False})
def if_hides_names():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        h = Relu (x)
        [choose] y0 = If (c) <
            then_branch = yes () => (float[2,8] a) {
                h = Neg (x)  [inside] a = MatMul (h, w) },
            else_branch = no () => (float[2,8] b) { b = Identity (h) }>
        [behind] y = MatMul (y0, w)
    }""")


@row("A body whose output is an outer tensor itself is not a valid model, and ONNX "
     "Runtime does not run it.", error="run_failed", checks=False)
def if_passes_outer_tensor():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        h = Relu (x)
        [choose] y = If (c) <
            then_branch = yes () => (float[2,8] h) { },
            else_branch = no () => (float[2,8] b) { [fc] b = MatMul (h, w) }>
    }""")


@row("The body of a `Loop` is quantized: a loop-carried tensor is observed in all "
     "iterations.", "round behind", warnings=["layers_not_compared"])
def loop_carried():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        n = Constant <value = int64 {3}> ()
        [repeat] h = Loop (n, , x) <body = again (int64 i, bool more, float[2,8] s)
            => (bool on, float[2,8] t) {
                on = Identity (more)
                [round] m = MatMul (s, w)
                t = Tanh (m) }>
        [behind] y = MatMul (h, w)
    }""")


@row("Outputs that a `Loop` collects are observed as a whole behind it.",
     "each behind", warnings=["layers_not_compared"])
def loop_scan_output():
    return text("""
    odd (float[2,8] x) => (float[3,2,6] y) <float[8,8] v, float[8,6] u> {
        n = Constant <value = int64 {3}> ()
        [repeat] h, all = Loop (n, , x) <body = again (int64 i, bool more, float[2,8] s)
            => (bool on, float[2,8] t, float[2,8] r) {
                on = Identity (more)
                [each] r = MatMul (s, v)
                t = Tanh (r) }>
        [behind] y = MatMul (all, u)
    }""")


@row("The body of a `Scan` is quantized.", "step", warnings=["layers_not_compared"])
def scan():
    return text("""
    odd (float[5,8] x) => (float[8] last, float[5,8] y) <float[8,8] w, float[8] start> {
        [rnn] last, y = Scan (start, x) <num_scan_inputs = 1,
            body = step (float[8] s, float[8] e) => (float[8] t, float[8] o) {
                a = Add (s, e)
                [step] m = MatMul (a, w)
                t = Tanh (m)
                o = Identity (t) }>
    }""")


@row("Graphs may be nested to any depth that the file's limit of nested messages allows.",
     "outer inner other", warnings=["layers_not_compared"])
def if_in_loop():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w, float[8,8] v> {
        n = Constant <value = int64 {4}> ()
        one = Constant <value = int64 {1}> ()
        [repeat] y = Loop (n, , x) <body = again (int64 i, bool more, float[2,8] s)
            => (bool on, float[2,8] t) <float[8,8] u> {
                on = Identity (more)
                [outer] m = MatMul (s, u)
                odd_one = BitwiseAnd (i, one)
                is_odd = Cast <to = 9> (odd_one)
                [choose] p = If (is_odd) <
                    then_branch = yes () => (float[2,8] a) { [inner] a = MatMul (m, w) },
                    else_branch = no () => (float[2,8] b) { [other] b = MatMul (m, v) }>
                t = Tanh (p) }>
    }""", opset=18)


@row("Weights in bodies can be stored as integers.", "outer then_fc else_fc",
     spec={"weights": {"storage": "dq"}}, warnings=["layers_not_compared"])
def if_weights_integers():
    return if_weights()


@row("Constants of a body that go through Transpose, Reshape or Cast are weights.",
     "then_fc else_fc", warnings=["layers_not_compared"])
def if_made_weights():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,6] y) <float[6,8] w> {
        [choose] y = If (c) <
            then_branch = yes () => (float[2,6] a) {
                t = Transpose <perm = [1, 0]> (w)  [then_fc] a = MatMul (x, t) },
            else_branch = no () => (float[2,6] b) <float[48] flat> {
                shape = Constant <value_ints = [8, 6]> ()
                r = Reshape (flat, shape)  [else_fc] b = MatMul (x, r) }>
    }""")


@row("A layer of a body can be named in a spec, and what-ifs switch it.", "outer then_fc",
     spec={"layers": [{"name": "else_fc", "quantize_input": False,
                       "quantize_weight": False}], "sensitivity": {"samples": 4}},
     warnings=["layers_not_compared"])
def if_named_layers():
    return if_weights()


@row("Equalization does not reach into nested graphs.", "outer then_fc else_fc",
     spec={"equalize": True}, warnings=["layers_not_compared", "nothing_equalized"])
def if_equalized():
    return if_weights()


@row("Operators in a body are converted to the newer operator set, too.",
     "then_fc else_fc", warnings=["layers_not_compared", "opset_raised"])
def if_old_opset():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,6] y) <float[8,6] w> {
        [choose] y = If (c) <
            then_branch = yes () => (float[2,6] a) {
                u = Unsqueeze <axes = [0]> (x)  s = Squeeze <axes = [0]> (u)
                [then_fc] a = MatMul (s, w) },
            else_branch = no () => (float[2,6] b) {
                u = Neg (x)  [else_fc] b = MatMul (u, w) }>
    }""", opset=11, ir=6)


@row("Nodes in the graphs of other operators than `If`, `Loop` and `Scan` are left "
     "alone, with the warning `nested_graph`.", "fc", warnings=["nested_graph"])
def sequence_map():
    model = text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)
        s = SequenceConstruct (h, x)
        [map] t = SequenceMap (s) <body = each (float[2,8] e) => (float[2,8] f) {
            [inside] f = MatMul (e, w) }>
        zero = Constant <value = int64 {0}> ()
        y = SequenceAt (t, zero)
    }""")
    return model


# --- local functions ---------------------------------------------------------

section("Local functions")

FUNCTION_IMPORT = ', "local": 1'


@row("A local function is inlined when it has a layer that is quantized by default or "
     "whose class the spec names; each call has scales of its own. Names inside begin "
     "with the call's name.",
     "one/fc two/fc")
def function_twice():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w, float[8,8] v> {
        [one] h = local.dense (x, w)
        [two] y = local.dense (h, v)
    }
    <domain: "local", opset_import: ["": 17]>
    dense (a, b) => (c) { [fc] m = MatMul (a, b)  c = Relu (m) }
    """, imports=FUNCTION_IMPORT)


@row("Attributes are those that the call gives, or the function's defaults.",
     "given/conv default/conv")
def function_attributes():
    return text("""
    odd (float[1,3,8,8] x) => (float[1,3,4,4] y, float[1,3,8,8] z) <float[3,3,1,1] w> {
        [given] y = local.block <strides = [2, 2]> (x, w)
        [default] z = local.block (x, w)
    }
    <domain: "local", opset_import: ["": 17]>
    block <strides: ints = [1, 1], alpha: float = 0.5> (a, b) => (c) {
        [conv] m = Conv <strides: ints = @strides> (a, b)
        c = LeakyRelu <alpha: float = @alpha> (m) }
    """, imports=FUNCTION_IMPORT)


@row("Functions may call functions, also from inside a branch.",
     "block/first/fc block/second/fc", warnings=["layers_not_compared"])
def function_nested():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [choose] y = If (c) <
            then_branch = yes () => (float[2,8] a) { [block] a = local.block (x, w) },
            else_branch = no () => (float[2,8] b) { b = Identity (x) }>
    }
    <domain: "local", opset_import: ["": 17, "local": 1]>
    block (a, b) => (c) { [first] m = local.dense (a, b)
                          [second] c = local.dense (m, b) }
    <domain: "local", opset_import: ["": 17]>
    dense (a, b) => (c) { [fc] m = MatMul (a, b)  c = Relu (m) }
    """, imports=FUNCTION_IMPORT)


@row("A function may own graphs.", "call/then_fc call/else_fc",
     warnings=["layers_not_compared"])
def function_with_branches():
    return text("""
    odd (bool c, float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [call] y = local.choose (c, x, w)
    }
    <domain: "local", opset_import: ["": 17]>
    choose (c, a, b) => (d) {
        [if] d = If (c) <
            then_branch = yes () => (float[2,8] t) { [then_fc] t = MatMul (a, b) },
            else_branch = no () => (float[2,8] e) { n = Neg (a)
                                                    [else_fc] e = MatMul (n, b) }> }
    """, imports=FUNCTION_IMPORT)


@row("Functions without layers stay calls.", "fc")
def function_without_layers():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)
        [act] y = local.swish (h)
    }
    <domain: "local", opset_import: ["": 17]>
    swish (a) => (c) { s = Sigmoid (a)  c = Mul (a, s) }
    """, imports=FUNCTION_IMPORT)


@row("A function without layers is inlined when the spec names an operator in it.",
     "fc act/sigmoid",
     spec={"layers": [{"class": "Sigmoid"}]})
def function_asked_for():
    model = function_without_layers()
    model.functions[0].node[0].name = "sigmoid"
    return model


@row("A function whose operator sets have other versions than the model's stays a call, "
     "with the warning `function_not_inlined`.", "fc",
     warnings=["function_not_inlined"])
def function_other_opset():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)
        [call] y = local.dense (h, w)
    }
    <domain: "local", opset_import: ["": 18]>
    dense (a, b) => (c) { [inside] c = MatMul (a, b) }
    """, imports=FUNCTION_IMPORT, opset=17)


@row("Functions are inlined before the model is converted to a newer operator set.",
     "call/fc",
     warnings=["opset_raised"])
def function_old_opset():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> { [call] y = local.f (x, w) }
    <domain: "local", opset_import: ["": 11]>
    f (a, b) => (c) { u = Unsqueeze <axes = [0]> (a)  s = Squeeze <axes = [0]> (u)
                      [fc] c = MatMul (s, b) }
    """, imports=FUNCTION_IMPORT, opset=11, ir=8)


@row("A function that stays a call is converted, too.", "fc",
     warnings=["opset_raised"])
def function_stays_old_opset():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)  [call] y = local.f (h) }
    <domain: "local", opset_import: ["": 11]>
    f (a) => (c) { u = Unsqueeze <axes = [0]> (a)  c = Squeeze <axes = [0]> (u) }
    """, imports=FUNCTION_IMPORT, opset=11, ir=8)


@row("A function that calls itself is refused.", error="invalid_model", runs=False,
     checks=False)
def function_recursive():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> { [call] y = local.f (x, w) }
    <domain: "local", opset_import: ["": 17, "local": 1]>
    f (a, b) => (c) { m = MatMul (a, b)  c = local.f (m, b) }
    """, imports=FUNCTION_IMPORT)


@row("Functions of one name are distinguished by `overload`.", "one/fc two/fc2")
def function_overloads():
    model = text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [one] h = local.dense (x, w)
        [two] y = local.dense (h, w)
    }
    <domain: "local", opset_import: ["": 17]>
    dense (a, b) => (c) { [fc] m = MatMul (a, b)  c = Relu (m) }
    <domain: "local", opset_import: ["": 17]>
    dense (a, b) => (c) { [fc2] m = MatMul (a, b)  c = Tanh (m) }
    """, imports=FUNCTION_IMPORT, ir=10)
    model.graph.node[0].overload = model.functions[0].overload = "relu"
    model.graph.node[1].overload = model.functions[1].overload = "tanh"
    return model


@row("Inputs that a call omits are omitted inside.", "call/conv behind")
def function_omitted_input():
    return text("""
    odd (float[1,4,8,8] x) => (float[1,4,8,8] y) <float[4,4,1,1] w> {
        [call] h = local.f (x, w)
        [behind] y = Conv (h, w)
    }
    <domain: "local", opset_import: ["": 17]>
    f (a, b, bias) => (c) { [conv] m = Conv (a, b, bias)  c = Relu (m) }
    """, imports=FUNCTION_IMPORT)


# --- weights -----------------------------------------------------------------

section("Weights")


@row("A weight of several layers has one pair.", "a b")
def shared_weight():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [a] h = MatMul (x, w)  r = Relu (h)  [b] y = MatMul (r, w) }""")


@row("A weight that is used along two axes has a pair for each.", "a b")
def shared_weight_axes():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [a] h = MatMul (x, w)  r = Relu (h)  [b] y = Gemm <transB = 1> (r, w) }""")


def made_weight(nodes, declared, opset=17):
    return text(f"""
    odd (float[2,8] x) => (float[2,6] y) <{declared}> {{
        {nodes}
        [fc] y = MatMul (x, w) }}""", opset=opset)


MADE = "A weight that arrives through {} is one: its elements are read in the file."


@row(MADE.format("Constant"), "fc")
def weight_constant():
    model = made_weight("w = Identity (v)", "float[8,6] v")
    constant = helper.make_node("Constant", [], ["v"],
                                value=model.graph.initializer[0])
    model.graph.node.insert(0, constant)
    del model.graph.initializer[:]
    return model


@row(MADE.format("Transpose"), "fc")
def weight_transpose():
    return made_weight("w = Transpose <perm = [1, 0]> (v)", "float[6,8] v")


@row(MADE.format("Reshape"), "fc")
def weight_reshape():
    return made_weight("s = Constant <value_ints = [8, 6]> ()  w = Reshape (v, s)",
                       "float[48] v")


@row(MADE.format("Squeeze and Unsqueeze"), "fc")
def weight_squeeze():
    return made_weight("a = Constant <value_ints = [1]> ()  u = Squeeze (v, a)"
                       "  b = Unsqueeze (u, a)  w = Squeeze (b, a)", "float[8,1,6] v")


@row("A float16 weight behind a Cast to float32 is a weight.", "fc")
def weight_cast():
    return made_weight("w = Cast <to = 1> (v)", "float16[8,6] v", opset=19)


@row("A float16 weight behind a Cast can be stored as integers.",
     "fc", spec={"weights": {"storage": "dq"}})
def weight_cast_integers():
    return weight_cast()


@row("A Cast that changes values is not read through: the layer stays in float.",
     warnings=["nothing_to_quantize"])
def weight_cast_lossy():
    return made_weight("w = Cast <to = 1> (v)", "double[8,6] v")


@row("A weight that is a sum of constants is not read: the layer stays in float.",
     warnings=["nothing_to_quantize"])
def weight_computed():
    return made_weight("w = Add (u, v)", "float[8,6] u, float[8,6] v")


@row("A sparse initializer is a constant that is not read: the layer stays in float.",
     warnings=["nothing_to_quantize"], checks=False)
def weight_sparse():
    model = of_nodes([helper.make_node("MatMul", ["x", "w"], ["y"], "fc")],
                     {"x": [2, 8]}, {"y": [2, 6]})
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(array("w", [3]), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1, 9, 40]), "w_indices"))
    sparse.dims.extend([8, 6])
    return model


@row("A weight that is an output of the model remains one, in float.", "fc")
def weight_is_output():
    return of_nodes([helper.make_node("MatMul", ["x", "w"], ["y"], "fc")],
                    {"x": [2, 8]}, {"y": [2, 6], "w": [8, 6]}, [weight("w", [8, 6])])


@row("Up to IR version 3 initializers are also listed as inputs; the result has IR "
     "version 4 and does not list them.", "fc")
def weight_is_old_input():
    return of_nodes([helper.make_node("MatMul", ["x", "w"], ["y"], "fc")],
                    {"x": [2, 8], "w": [8, 6]}, {"y": [2, 6]}, [weight("w", [8, 6])],
                    ir=3, opset=13)


@row("From IR version 4 on, an initializer that is an input lets a caller send another "
     "weight: the scales are those of the file's.", "fc")
def weight_is_input():
    return of_nodes([helper.make_node("MatMul", ["x", "w"], ["y"], "fc")],
                    {"x": [2, 8], "w": [8, 6]}, {"y": [2, 6]}, [weight("w", [8, 6])])


@row("Initializers that nothing uses stay.", "fc")
def weight_unused():
    model = weight_is_input()
    del model.graph.input[1:]
    model.graph.initializer.append(weight("unused", [4]))
    return model


@row("Empty weights are left alone.", warnings=["nothing_to_quantize"])
def weight_empty():
    return of_nodes([helper.make_node("MatMul", ["x", "w"], ["h"], "fc"),
                     helper.make_node("ReduceSum", ["h"], ["s"]),
                     helper.make_node("Add", ["x", "s"], ["y"])],
                    {"x": [2, 8]}, {"y": [2, 8]}, [weight("w", [8, 0])])


@row("Names may be long and have any characters.", "層/卷积-" + "n" * 300)
def names_utf8():
    model = weight_is_output()
    long = "n" * 300
    model.graph.node[0].name = "層/卷积-" + long
    for node in model.graph.node:
        node.input[1] = "重み " + long
    model.graph.initializer[0].name = model.graph.output[1].name = "重み " + long
    return model


# --- graphs ------------------------------------------------------------------

section("Graphs")


@row("Where several nodes have one name, all but the first get a suffix; a node without "
     "a name is called `@OUTPUT`.", "fc fc_1 @y")
def names_of_nodes():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] a = MatMul (x, w)  [fc] b = MatMul (a, w)  y = MatMul (b, w) }""")


@row("Nodes in the wrong order are sorted.", "first second", checks=False)
def out_of_order():
    model = text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [first] a = MatMul (x, w)  b = Relu (a)  [second] y = MatMul (b, w) }""")
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@row("Nodes that form a cycle are refused.", error="invalid_model", runs=False,
     checks=False)
def circle():
    return of_nodes([helper.make_node("Add", ["x", "b"], ["a"], "one"),
                     helper.make_node("Relu", ["a"], ["b"], "two"),
                     helper.make_node("Neg", ["a"], ["y"])], {"x": [2]}, {"y": [2]})


@row("Operators of unknown domains stay unchanged. A model that ONNX Runtime cannot run "
     "cannot be calibrated with data: `run_failed`.", error="run_failed", runs=False)
def unknown_operator():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)  [what] y = other.Mystery (h) }""",
                imports=', "other": 1')


@row("With ranges by hand such a model needs no run.", "fc", runs=False,
     spec={"calibration": {"ranges": {"x": [-3, 3]}}, "evaluate": False})
def unknown_operator_ranges_given():
    return unknown_operator()


@row("A graph input may also be an output.", "fc")
def input_is_output():
    return of_nodes([helper.make_node("MatMul", ["x", "w"], ["y"], "fc")],
                    {"x": [2, 8]}, {"y": [2, 6], "x": [2, 8]}, [weight("w", [8, 6])])


@row("Inputs may be omitted, in the middle and at the end.", "conv")
def omitted_inputs():
    return text("""
    odd (float[1,4,8,8] x) => (float[1,4,8,8] y, float[1,4,4,4] z) <float[4,4,1,1] w> {
        [conv] h = Conv (x, w, )
        y = Clip (h, , )
        half = Constant <value_floats = [1.0, 1.0, 0.5, 0.5]> ()
        z = Resize <mode = "nearest"> (y, , half) }""")


@row("Values that are sequences or optional stay unchanged.", "fc behind")
def sequences():
    return text("""
    odd (float[2,8] x) => (float[2,8] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)
        s = SequenceConstruct (h, x)
        one = Constant <value = int64 {0}> ()
        e = SequenceAt (s, one)
        o = Optional (e)
        g = OptionalGetElement (o)
        [behind] y = MatMul (g, w) }""")


@row("Maps stay unchanged; where an output cannot be compared, layers are not compared.",
     "fc",
     warnings=["layers_not_compared"])
def maps():
    return text("""
    odd (float[2,3] x) => (seq(map(int64, float)) probabilities) <float[3,3] w> {
        [fc] h = MatMul (x, w)
        p = Softmax (h)
        probabilities = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2]> (p) }""",
                imports=', "ai.onnx.ml": 3')


@row("A tensor to be quantized that never has elements was not observed.",
     error="not_observed")
def always_empty():
    return text("""
    odd (float[2,8] x) => (float[2,8] y, float[0,8] z) <float[8,8] w> {
        [fc] y = MatMul (x, w)
        zero = Constant <value_ints = [0]> ()
        e = Slice (y, zero, zero, zero)
        [empty] z = MatMul (e, w) }""")


@row("Strings stay unchanged.", "fc")
def strings():
    return text("""
    odd (float[2,3] x) => (float[2,3] y, string[2,3] z) <float[3,3] w> {
        [fc] y = MatMul (x, w)
        z = Cast <to = 8> (y) }""")


@row("A model without a node that could be quantized is returned unchanged, with the "
     "warning `nothing_to_quantize`.", warnings=["nothing_to_quantize"])
def nothing_to_do():
    return text("odd (float[2,8] x) => (float[2,8] y) { y = Relu (x) }")


@row("Symbolic sizes are those of the data.", "conv fc")
def symbolic_shapes():
    return text("""
    odd (float[n,3,height,width] x) => (float[n,5] y) <float[4,3,3,3] w, float[4,5] v> {
        [conv] h = Conv (x, w)
        g = GlobalMaxPool (h)  f = Flatten (g)
        [fc] y = MatMul (f, v) }""")


@row("The file need not state any shapes.", "conv fc", checks=False)
def no_shapes():
    model = symbolic_shapes()
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


@row("Metadata stays, and so does training information.", "fc", checks=False)
def metadata_and_training():
    model = weight_unused()
    helper.set_model_props(model, {"author": "somebody"})
    training = model.training_info.add()
    training.algorithm.CopyFrom(helper.make_graph(
        [helper.make_node("Identity", ["w"], ["w_new"])], "step", [],
        [helper.make_tensor_value_info("w_new", TensorProto.FLOAT, [8, 6])]))
    return model


# --- layers ------------------------------------------------------------------

section("Layers")


@row("Conv of one and of three dimensions is quantized.", "one three")
def conv_1d_3d():
    return text("""
    odd (float[1,3,9] a, float[1,2,5,5,5] b) => (float[1,4,7] x, float[1,4,3,3,3] y)
    <float[4,3,3] w, float[4,2,3,3,3] v> {
        [one] x = Conv (a, w)  [three] y = Conv (b, v) }""")


@row("Grouped and depthwise Conv have a scale for each output channel.", "grouped depthwise")
def conv_groups():
    return text("""
    odd (float[1,4,8,8] x) => (float[1,4,8,8] y) <float[4,2,1,1] w, float[4,1,1,1] v> {
        [grouped] h = Conv <group = 2> (x, w)
        [depthwise] y = Conv <group = 4> (h, v) }""")


@row("ConvTranspose is quantized when it is asked for: along axis 1, with one scale "
     "where there are groups.",
     "plain grouped", spec={"layers": [{"class": "ConvTranspose"}]})
def conv_transpose():
    return text("""
    odd (float[1,4,6,6] x) => (float[1,4,12,12] y, float[1,4,12,12] z)
    <float[4,4,2,2] w, float[4,2,2,2] v> {
        [plain] y = ConvTranspose <strides = [2, 2]> (x, w)
        [grouped] z = ConvTranspose <strides = [2, 2], group = 2> (x, v) }""")


@row("Gemm is quantized with any of its attributes.", "trans_a trans_b scaled")
def gemm():
    return text("""
    odd (float[8,2] x) => (float[2,6] y) <float[8,8] w, float[6,8] v, float[6] b,
                                          float[6,6] u> {
        [trans_a] h = Gemm <transA = 1> (x, w)
        [trans_b] g = Gemm <transB = 1> (h, v, b)
        [scaled] y = Gemm <alpha = 0.5, beta = 2.0> (g, u, b) }""")


@row("MatMul is quantized with either side constant and of any rank.",
     "left right batched vector broad")
def matmul():
    return text("""
    odd (float[3,8,8] x) => (float[3,8,8] y, float[3,8] v, float[3,8,8] u)
    <float[8,8] a, float[8,8] b, float[3,8,8] c, float[8] d, float[1,8,8] e> {
        [left] h = MatMul (a, x)
        [right] g = MatMul (h, b)
        [batched] y = MatMul (g, c)
        [vector] v = MatMul (y, d)
        [broad] u = MatMul (e, x) }""")


@row("A MatMul of two computed tensors, as in attention, is left alone unless it is "
     "asked for.",
     "q k scores", spec={"layers": [{"name": "scores"}]})
def attention():
    return text("""
    odd (float[2,4,8] x) => (float[2,4,8] y) <float[8,8] wq, float[8,8] wk> {
        [q] q = MatMul (x, wq)
        [k] k0 = MatMul (x, wk)
        k = Transpose <perm = [0, 2, 1]> (k0)
        [scores] s = MatMul (q, k)
        p = Softmax <axis = -1> (s)
        [mix] y = MatMul (p, x) }""")


def recurrent(op, gates):
    states = ", state" if op == "LSTM" else ""
    return text(f"""
    odd (float[5,2,8] x) => (float[5,1,2,4] y)
    <float[1,{4 * gates},8] w, float[1,{4 * gates},4] r, float[1,{8 * gates}] b> {{
        [rnn] y, last{states} = {op} <hidden_size = 4> (x, w, r, b) }}""")


SUPPORT = {"kind": "weighted", "weight_input": 1, "channel_axis": 1}


@row("LSTM, GRU and RNN are left alone.", warnings=["nothing_to_quantize"])
def lstm():
    return recurrent("LSTM", 4)


@row("With layer support in the spec the input and W of LSTM are quantized, by row; R "
     "stays in float.", "rnn",
     spec={"layer_support": [{"class": "LSTM", **SUPPORT}]})
def lstm_asked():
    return recurrent("LSTM", 4)


@row("With layer support in the spec GRU is quantized in the same way.",
     "rnn", spec={"layer_support": [{"class": "GRU", **SUPPORT}]})
def gru_asked():
    return recurrent("GRU", 3)


@row("With layer support in the spec RNN is quantized in the same way.",
     "rnn", spec={"layer_support": [{"class": "RNN", **SUPPORT}]})
def rnn_asked():
    return recurrent("RNN", 1)


@row("Einsum is left alone.", warnings=["nothing_to_quantize"])
def einsum():
    return text("""
    odd (float[2,8] x) => (float[2,6] y) <float[8,6] w> {
        y = Einsum <equation = "ij,jk->ik"> (x, w) }""")


@row("Layer support in the spec can name Einsum.", "product",
     spec={"layer_support": [{"class": "Einsum", "kind": "weighted", "weight_input": 1,
                              "channel_axis": 1}]})
def einsum_asked():
    model = einsum()
    model.graph.node[0].name = "product"
    return model


@row("A model of QLinear operators is quantized already.", error="existing_qdq")
def qlinear():
    return text("""
    odd (int8[2,8] x) => (int8[2,6] y) <int8[8,6] w> {
        s = Constant <value = float {0.1}> ()
        z = Constant <value = int8 {0}> ()
        [fc] y = QLinearMatMul (x, s, z, w, s, z, s, z) }""")


# --- operator sets and types -------------------------------------------------

section("Operator sets and types")


def plain(opset, ir=9):
    return text("""
    odd (float[1,3,8,8] x) => (float[1,5] y) <float[4,3,3,3] w, float[5,4] v, float[5] b> {
        [conv] h = Conv (x, w)
        r = Relu (h)
        g = GlobalMaxPool (r)  f = Flatten (g)
        [fc] y = Gemm <transB = 1> (f, v, b) }""", opset=opset, ir=ir)


@row("Operator sets before 13 are converted to 13.", "conv fc", warnings=["opset_raised"])
def opset_12():
    return plain(12)


@row("Operator set 10, the first with Q/DQ, is converted to 13.",
     "conv fc", warnings=["opset_raised"])
def opset_10():
    return plain(10, ir=5)


@row("Operator set 9, which has no Q/DQ, is converted to 13.",
     "conv fc", warnings=["opset_raised"])
def opset_9():
    return plain(9, ir=4)


@row("A model of operator set 13 keeps it.", "conv fc")
def opset_13():
    return plain(13)


@row("A model of operator set 17 keeps it.", "conv fc")
def opset_17():
    return plain(17)


@row("A model of operator set 21 keeps it.", "conv fc")
def opset_21():
    return plain(21, ir=10)


@row("A model of operator set 25 keeps it.", "conv fc")
def opset_25():
    return plain(25, ir=12)


def typed(dtype, opset):
    model = plain(opset)
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = dtype
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(
            numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(dtype)),
            tensor.name))
    return model


@row("float16 is quantized from operator set 19 on.", "conv fc")
def float16():
    return typed(TensorProto.FLOAT16, 19)


@row("A float16 model of an older operator set is converted to 19.",
     "conv fc", warnings=["opset_raised"])
def float16_old():
    return typed(TensorProto.FLOAT16, 17)


@row("Layers of bfloat16 are left alone.", warnings=["nothing_to_quantize"], runs=False,
     spec={"evaluate": False})
def bfloat16():
    return text("""
    odd (float[2,8] x) => (float[2,6] y) <bfloat16[8,6] w> {
        h = Cast <to = 16> (x)
        [fc] m = MatMul (h, w)
        y = Cast <to = 1> (m) }""", opset=21, ir=10)


@row("Layers of float64 are left alone.", warnings=["nothing_to_quantize"], runs=False,
     spec={"evaluate": False})
def float64():
    return text("""
    odd (double[2,8] x) => (double[2,6] y) <double[8,6] w> {
        [fc] y = MatMul (x, w) }""")


# --- all of them -------------------------------------------------------------


def ends(one):
    """How a row ends, in a word or two."""
    if one.error:
        return f"refused: `{one.error}`"
    warnings = ", ".join(f"`{w}`" for w in one.warnings)
    if not one.layers:
        return f"left alone: {warnings}"
    return f"quantized, {warnings}" if warnings else "quantized"


def tables():
    """The tables of docs/models.md, one row for each model."""
    lines = []
    for title in SECTIONS:
        lines += [f"### {title}", "", "| model | what happens | ends |",
                  "| --- | --- | --- |"]
        lines += [f"| `{one.name}` | {one.says} | {ends(one)} |"
                  for one in ROWS.values() if one.section == title] + [""]
    return "\n".join(lines)


MARK = "<!-- The tables of tests/models/make.py -->\n\n"


def document(path):
    head = path.read_text().partition(MARK)[0]
    path.write_text(head + MARK + tables())


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for one in ROWS.values():
        model = one.model()
        onnx.save(model, folder / f"{one.name}.onnx")
        np.savez(folder / f"{one.name}.npz", **one.data(model))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--document":
        document(Path(sys.argv[2]))
    elif len(sys.argv) == 2:
        write(Path(sys.argv[1]))
    else:
        sys.exit(__doc__)
