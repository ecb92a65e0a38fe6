# SPDX-License-Identifier: Apache-2.0
"""Number formats that TensorRT refuses are said, and results have a form that both
TensorRT and onnxruntime load. tests/tensorrt asks TensorRT itself."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import judge
from test_data import Quantized, npz

RANDOM = np.random.default_rng(45)
X = RANDOM.standard_normal((8, 1, 16, 12)).astype(np.float32)
REFUSED = "target_format", "block_does_not_divide", "target_cannot_load"


def net(text, opset=21, kind="float", **weights):
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": {opset}]>
        net ({kind}[1, 16, 12] x) => ({kind}[1, 16, n] y) {{ {text} }}""")
    for name, shape in weights.items():
        value = RANDOM.standard_normal(shape).astype("float16" if "16" in kind else "float32")
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def matrix(rows=12, columns=8):
    model = net("[mm] y = MatMul (x, w)", 23, w=(rows, columns))
    return model


def convolution():
    return net("[conv] y = Conv (x, w)", 23, w=(8, 16, 3))


@pytest.mark.parametrize("model,spec,code", [
    (matrix(), {}, None),
    (matrix(), {"weights": {"dtype": "int4"}}, None),
    (matrix(), {"weights": {"granularity": {"block": 12}}}, None),
    (matrix(), {"weights": {"granularity": {"block": 4}}, "activations": "none"}, None),
    (matrix(), {"weights": {"granularity": {"block": 4}}}, "target_format"),
    (matrix(), {"weights": {"granularity": {"block": 8}}}, "block_does_not_divide"),
    (matrix(12, 1), {"weights": {"dtype": "int4"}}, "target_format"),
    (matrix(12, 8), {"weights": {"dtype": "float4e2m1"}}, "target_format"),
    (matrix(), {"weights": {"dtype": "int8"}, "activations": {"dtype": "float8e4m3fn"}},
     "target_format"),
    (convolution(), {"weights": {"dtype": "int4"}, "activations": "none"}, None),
    (convolution(), {"weights": {"dtype": "int4"}}, "target_format"),
    (convolution(), {"weights": {"granularity": {"block": 8}}, "activations": "none"},
     "target_format"),
    (matrix(), {"activations": {"dtype": "uint8"}}, "target_format"),
])
def test_what_tensorrt_refuses_is_said(tmp_path, model, spec, code):
    done = Quantized(tmp_path, model, npz(x=X), target="tensorrt", evaluate=False, **spec)
    assert done.ok, done.said
    assert [w for w in done.warnings if w in REFUSED] == ([code] if code else [])


def test_an_odd_number_of_elements_is_said(tmp_path):
    model = net("[mm] y = MatMul (x, w)", 21, w=(12, 8))
    assert "target_format" not in Quantized(tmp_path, model, None, activations="none",
                                            weights={"dtype": "int4"}).warnings
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 21]>
        net (float[1, 7] x) => (float[1, 9] y) { [mm] y = MatMul (x, w) }""")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((7, 9), "float32"), "w"))
    done = Quantized(tmp_path, model, None, activations="none", weights={"dtype": "int4"})
    assert "even number" in done.warnings["target_format"]["detail"]


INSIDE = """<ir_version: 10, opset_import: ["": 21]>
    net (float[1, 16, 12] x, bool c) => (float[1, 8, n] y) {{
        [if] y = If (c) <
            then_branch = then () => (float[1, 8, n] t) {{ {} }},
            else_branch = other () => (float[1, 8, n] e) {{ [other] e = Conv (x, v) }}> }}"""


def branches(inside):
    model = onnx.parser.parse_model(INSIDE.format(inside))
    for name in "wv":
        value = RANDOM.standard_normal((8, 16, 3)).astype("float32")
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model, npz(x=X, c=np.array([True, False] * 4))


def all_pairs(graph, path=()):
    """Yields, for each QuantizeLinear, the names of the graphs that hold it, and what it reads."""
    for node in graph.node:
        if node.op_type == "QuantizeLinear":
            yield path, node.input[0]
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from all_pairs(a.g, (*path, a.name))


@pytest.mark.parametrize("inside,inner,outer", [
    ("[conv] t = Conv (x, w)", 2, []),
    ("[relu] r = Relu (x) [conv] t = Conv (r, w)", 1, []),
])
def test_pairs_stand_in_branches_of_an_if(tmp_path, inside, inner, outer):
    """TensorRT computes a layer in an If with integers where the pair stands inside, too, and the
    numbers are those of one pair outside."""
    model, data = branches(inside)
    bytes_of = {}
    for on in (True, False):
        done = Quantized(tmp_path, model, data, target="tensorrt", evaluate=False, rules={"T31": on})
        assert done.ok, done.said
        bytes_of[on] = done.bytes
        written = list(all_pairs(judge.load(done.bytes).graph))
        assert len(written) == done.report["summary"]["qdq_pairs"]
        if on:
            assert [read for path, read in written if not path] == outer
            assert sum(read == "x" for path, read in written if path) == inner
            assert "target_format" not in done.warnings
    x = X[0]
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        ours = [onnxruntime.InferenceSession(bytes_of[on]).run(None, feeds)[0] for on in (True, False)]
        assert np.array_equal(*ours)


@pytest.mark.parametrize("inside,reads", [
    ("[conv] t = Conv (x, w)", "x"),
    ("[conv] u = Conv (x, w) t = Add (u, z)", "x_DequantizeLinear_Output"),
], ids=["apart", "needed"])
def test_a_pair_in_a_branch_beside_one_outside(tmp_path, inside, reads):
    """It stands behind the one outside where the If needs what the layer behind that computes."""
    model, data = branches(inside)
    model.graph.node.insert(0, onnx.helper.make_node("Conv", ["x", "w"], ["z"], name="outside"))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, [1, 8, None]))
    done = Quantized(tmp_path, model, data, target="tensorrt", evaluate=False)
    assert done.ok, done.said
    pairs = [(path, read) for path, read in all_pairs(judge.load(done.bytes).graph) if read != "v"]
    assert ((), "x") in pairs and (("then_branch",), reads) in pairs
    again = Quantized(tmp_path, judge.load(done.bytes), data, target="tensorrt", evaluate=False,
                      existing_qdq="strip")
    assert again.ok, again.said
    assert again.report["summary"]["qdq_pairs"] == done.report["summary"]["qdq_pairs"]


@pytest.mark.parametrize("inside,layers", [
    ("[conv] t = Conv (x, w)", "2 layers (conv, ...)"),
    ("[relu] r = Relu (x) [conv] t = Conv (r, w)", "1 layer (other)"),
])
def test_pairs_outside_of_an_if_are_said(tmp_path, inside, layers):
    """A layer that reads what its own graph makes has its pair there, and stays an integer."""
    model, data = branches(inside)
    done = Quantized(tmp_path, model, data, target="tensorrt", evaluate=False, rules={"T31": False})
    detail = done.warnings["target_format"]["detail"]
    assert layers in detail and "inside an If" in detail


def test_broken_blocks_stay_float(tmp_path):
    done = Quantized(tmp_path, matrix(), npz(x=X), target="tensorrt",
                     weights={"granularity": {"block": 8}}, evaluate=False)
    (layer,) = done.report["layers"]
    assert layer["reason"].startswith("rule:T29") and not layer["weight_quantized"]
    assert done.report["weights"] == []


PACKED = """
    qkv = MatMul (x, w)  a = Reshape (qkv, s)  b = Transpose <perm = [2, 0, 3, 1, 4]> (a)
    q = Gather (b, i0)  k = Gather (b, i1)  v = Gather (b, i2)
    kt = Transpose <perm = [0, 1, 3, 2]> (k)  [scores] c = MatMul (q, kt)
    p = Softmax (c)  [values] y = MatMul (p, v)"""


def packed():
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": 17]>
        net (float[1, 16, 12] x) => (float[1, 2, 16, 6] y) {{ {PACKED} }}""")
    value = RANDOM.standard_normal((12, 36)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(value, "w"))
    for name, value in (("s", [1, 16, 3, 2, 6]), ("i0", 0), ("i1", 1), ("i2", 2)):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    return model


@pytest.mark.parametrize("spec,code", [
    ({}, None), ({"activations": "none"}, None),
    ({"activations": "none", "weights": {"storage": "qdq"}}, "target_format"),
    ({"weights": {"storage": "dq"}}, "packed_projection"),
])
def test_one_product_for_queries_keys_and_values(tmp_path, spec, code):
    done = Quantized(tmp_path, packed(), npz(x=X), target="tensorrt", evaluate=False, **spec)
    assert done.ok, done.said
    assert [w for w in done.warnings if w in (*REFUSED, "packed_projection")] == (
        [code] if code else [])


def test_weights_alone_are_stored_as_integers(tmp_path):
    done = Quantized(tmp_path, matrix(), None, target="tensorrt", activations="none")
    stored = {t.name: t.data_type for t in judge.load(done.bytes).graph.initializer}
    assert stored["w_quantized"] == onnx.TensorProto.INT8 and "w" not in stored


@pytest.mark.parametrize("opset", [20, 21, 23])
@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize("spec", [{}, {"float": "float16"}])
def test_a_matmul_with_a_bias_loads(tmp_path, opset, kind, spec):
    """onnxruntime 1.31.1 cannot load such a pair with a zero point from opset 21 on."""
    model = net("""[fc1] a = MatMul (x, w)  b = Add (a, u)  c = Relu (b)
                   [fc2] d = MatMul (c, v)  y = Add (d, t)""", opset, kind,
                w=(12, 24), u=(24,), v=(24, 8), t=(8,))
    x = X.astype("float16" if "16" in kind else "float32")
    done = Quantized(tmp_path, model, npz(x=x), target="tensorrt", **spec)
    assert done.ok, done.said
    assert done.report["evaluation"]["outputs"][0]["sqnr_db"] > 25
    real, ours = (onnxruntime.InferenceSession(m).run(None, {"x": x[0]})[0].astype("float64")
                  for m in (model.SerializeToString(), done.bytes))
    assert judge.sqnr_db(real, ours) > 25
    typed = [n for n in judge.load(done.bytes).graph.node if n.op_type == "QuantizeLinear" and
             judge.attribute(n, "output_dtype", 0) == onnx.TensorProto.INT8]
    assert len(typed) == (2 if opset > 20 else 0)
    again = Quantized(tmp_path, judge.load(done.bytes), npz(x=x), target="tensorrt",
                      existing_qdq="strip", **spec)
    assert again.ok, again.said
