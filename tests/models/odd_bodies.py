# SPDX-License-Identifier: Apache-2.0
"""Rows of the table in rows.py: models with nested graphs and local functions."""

from rows import row, section, text

# --- control flow ------------------------------------------------------------

section("Control flow")

@row("Both branches of an `If` are quantized, whether a weight is in the branch or "
     "captured from outside. A pair stands in the innermost graph that contains all "
     "readers of the tensor; for the target `tensorrt` each branch of an `If` has one.",
     "outer then_fc else_fc", warnings=["layers_not_compared"])
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
