# SPDX-License-Identifier: Apache-2.0
"""Rows of the table in rows.py: models with odd weights, names and orders of nodes."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from rows import array, of_nodes, row, section, text, weight

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


@row("A weight that is computed from constants becomes one.", "fc",
     warnings=["weights_computed"])
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


@row("Outputs whose number varies cannot be omitted: ONNX Runtime ends where it runs such a node.",
     error="invalid_model", runs=False)
def omitted_output():
    return text("""
    odd (float[2,8] x) => (float[2,5] y) <float[8,8] w> {
        [fc] h = MatMul (x, w)
        n = Constant <value_ints = [5, 3]> ()
        [parts] y, "" = Split <axis = 1> (h, n) }""")


@row("A tensor that never has elements has no range: the layer that reads it stays in float, "
     "with the warning `not_observed`.", "fc", warnings=["not_observed"])
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
