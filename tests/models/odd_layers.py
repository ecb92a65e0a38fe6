# SPDX-License-Identifier: Apache-2.0
"""Rows of the table in rows.py: layers, operator sets and element types."""

from onnx import TensorProto, helper, numpy_helper

from rows import row, section, text

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


@row("A model of operator set 28 keeps it, and ONNX Runtime runs it as one of 26.",
     "conv fc", warnings=["run_as_older_opset"], runs=False)
def opset_28():
    return plain(28, ir=14)


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
