# SPDX-License-Identifier: Apache-2.0
"""The spec's `float`: results whose floating point is float16 or bfloat16, checked by
onnx's checker and strict inference, numpy, ml_dtypes and onnxruntime."""

import functools
import json
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

import judge
from service import CALIBRATION, DATA, QUANTIZE
from test_data import Quantized, npz

pytestmark = pytest.mark.long
TYPES = {"float16": (TensorProto.FLOAT16, np.float16),
         "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
GLYPHS = ["glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit"]
RANDOM = np.random.default_rng(41)
X = RANDOM.standard_normal((16, 3, 8, 8)).astype(np.float32)


def strict(data):
    """Returns the model after onnx's checker and strict inference have accepted its
    types."""
    model = judge.load(data)
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True,
                                             data_prop=True)


def types_of(model):
    """Returns the known element types of the main graph's tensors."""
    graph = model.graph
    known = {v.name: v.type.tensor_type.elem_type
             for v in [*graph.input, *graph.output, *graph.value_info]}
    known.update({t.name: t.data_type for t in graph.initializer})
    return known


def signature(model):
    return [(v.name, v.type.SerializeToString())
            for v in [*model.graph.input, *model.graph.output]]


def net(body, result="float[n, 4, 8, 8] y", opset=19, **constants):
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": {opset}]> g (float[n, 3, 8, 8] x) => '
        f"({result}) {{ {body} }}")
    for name, value in {
            "w": RANDOM.standard_normal((4, 3, 3, 3)) * 0.3, **constants}.items():
        value = np.asarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.checker.check_model(model, full_check=True)
    return model


CONV = "[conv] c = Conv <pads = [1, 1, 1, 1]> (x, w)"


def made(tmp_path, model, kind="float16", **spec):
    done = Quantized(tmp_path, model, npz(x=X), **{"float": kind, **spec})
    assert done.ok, done.said
    return done, strict(done.bytes)


def kept(done):
    return {row["name"]: row["reason"] for row in done.report["float"]["kept"]}


def nodes(model):
    return {node.name: node for node in model.graph.node}


def near(model, done, floor=25, feed=None):
    feed = feed or {"x": X}
    real = judge.session(model.SerializeToString()).run(None, feed)
    got = judge.session(done.bytes).run(None, feed)
    for r, g in zip(real, got):
        assert r.dtype == g.dtype and r.shape == g.shape
        assert np.isfinite(g).all()
        with np.errstate(divide="ignore"):
            assert judge.sqnr_db(r.astype(np.float64), g.astype(np.float64)) > floor


# --- real models -------------------------------------------------------------------------

@pytest.fixture(scope="module")
def plain_glyph(tmp_path_factory):
    """Returns a network's result in float32, computed once for each network and storage."""
    return functools.cache(lambda name, storage: Quantized(
        tmp_path_factory.mktemp("plain"), onnx.load(DATA / f"{name}.onnx"),
        CALIBRATION.read_bytes(), **glyph_spec(storage)))


def glyph_spec(storage):
    return {"weights": {"storage": storage}, "evaluate": {"samples": 16},
            "calibration": {"max_samples": 32}}


@pytest.mark.parametrize("storage", ["qdq", "dq"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", GLYPHS)
def test_glyphs(name, kind, storage, tmp_path, plain_glyph):
    source = onnx.load(DATA / f"{name}.onnx")
    data = CALIBRATION.read_bytes()
    spec, plain = glyph_spec(storage), plain_glyph(name, storage)
    done = Quantized(tmp_path, source, data, **spec, float=kind)
    model = strict(done.bytes)
    onnx_type, numpy_type = TYPES[kind]
    assert signature(model) == signature(source)
    types = types_of(model)
    ends = {v.name for v in [*source.graph.input, *source.graph.output]}
    assert [t for t in types if types[t] == TensorProto.FLOAT] == [
        t for t in types if t in ends]
    assert done.report["float"] == {"type": kind, "kept": [],
                                    "nodes": done.report["float"]["nodes"]}
    assert done.report["float"]["nodes"] > 20
    assert sum(n.op_type == "Cast" for n in model.graph.node) == len(ends)
    assert len(done.bytes) < (0.6 if storage == "qdq" else 1) * len(plain.bytes)
    constants = {t.name: numpy_helper.to_array(t) for t in source.graph.initializer}
    same = [t for t in model.graph.initializer if t.data_type == onnx_type
            and t.name in constants]
    assert len(same) > 10
    for t in same:
        wanted = constants[t.name].astype(numpy_type)
        assert t.raw_data == wanted.tobytes(), t.name
    # Report, integers and model have the same scales.
    for t in done.report["tensors"]:
        (scale,) = [i for i in model.graph.initializer if i.name == t["name"] + "_scale"]
        assert scale.data_type == onnx_type
        assert float(numpy_helper.to_array(scale).astype(np.float64)) == t["scale"]
    again = Quantized(tmp_path, source, data, **spec, float=kind)
    assert again.bytes == done.bytes
    if kind == "bfloat16":
        assert "evaluated_before_bfloat16" in done.warnings
        return
    images = judge.test_images()[0][:100]
    feed = {source.graph.input[0].name: images}
    real = judge.run(source.SerializeToString(), feed)
    noise = judge.sqnr_db(real, judge.run(done.bytes, feed))
    assert noise > judge.sqnr_db(real, judge.run(plain.bytes, feed)) - 1
    rows = done.report["evaluation"]
    assert len(rows["layers"]) == len(plain.report["evaluation"]["layers"])
    assert rows["outputs"][0]["sqnr_db"] == pytest.approx(noise, abs=6)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("kind", TYPES)
def test_frozen_spec_makes_the_same_bytes(daemon, kind):
    spec = {"float": kind, "calibration": {"max_samples": 16}}
    job = daemon.submit_glyphs(spec=spec)
    model = daemon.succeeded(job)["result"]["model"]
    assert daemon.report(job)["spec"]["float"] == kind
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["float"] == kind
    again = daemon.submit_glyphs(spec=frozen, fresh=True)
    assert daemon.succeeded(again)["result"]["model"] == model


# --- tensors that stay -------------------------------------------------------------------

def test_constants_beyond_range_stay(tmp_path):
    source = net(CONV + " [big] a = Mul (c, huge) [back] b = Mul (a, tiny)"
                 " [mask] m = Add (b, edge) [inf] i = Min (m, top) [end] y = Relu (i)",
                 huge=np.float32(70000), tiny=np.float32(1e-12),
                 edge=np.float32([65504, -65504, 0, 1]).reshape(1, 4, 1, 1),
                 top=np.float32(np.inf))
    done, model = made(tmp_path, source, calibration={"ranges": {"x": [-4, 4]}})
    assert kept(done) == {"big": "a constant is beyond the type's range",
                          "back": "a constant would become zero"}
    types = types_of(model)
    assert types["huge"] == types["tiny"] == TensorProto.FLOAT
    assert types["edge"] == types["top"] == types["w"] == TensorProto.FLOAT16
    by_name = nodes(model)
    assert types[by_name["big"].input[0]] == types["a"] == types["b"] == TensorProto.FLOAT
    assert types[by_name["mask"].input[0]] == types["m"] == TensorProto.FLOAT16
    detail = done.warnings["float_kept"]["detail"]
    assert "1 node (back) stays float32: a constant would become zero" == detail
    # bfloat16 can represent both.
    done, _ = made(tmp_path, source, "bfloat16", calibration={"ranges": {"x": [-4, 4]}})
    assert kept(done) == {}


@pytest.mark.parametrize("bias, wide", [(1.6, True), (0.1, False)])
def test_a_layer_whose_bias_float16_cannot_hold_as_integers_stays(tmp_path, bias, wide):
    """ONNX Runtime makes integers of the bias with the product of the scales, 2e-6 here, and
    computes them in the scales' type."""
    source = net("[conv] c = Conv <pads = [1, 1, 1, 1]> (x, small, b) [next] y = Conv (c, k)",
                 small=np.full((4, 3, 3, 3), 0.0254), b=np.full(4, bias),
                 k=RANDOM.standard_normal((4, 4, 1, 1)))
    images = np.clip(X, -1.27, 1.27)
    done, model = made(tmp_path, source, calibration={"ranges": {"x": [-1.27, 1.27]}})
    assert list(kept(done)) == (["conv"] if wide else [])
    if wide:
        assert "integers of its bias" in kept(done)["conv"]
    real, got = (onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": images})[0]
                 for m in (source, model))
    assert judge.sqnr_db(real, got) > 30


def test_ranges_beyond_it_stay(tmp_path):
    body = CONV + " [up] a = Mul (c, k) [same] r = Relu (a) [down] y = Div (r, k)"
    source = net(body, k=np.float32(60000))
    done, _ = made(tmp_path, source, layers=[{"class": "Relu"}],
                   layer_support=[{"class": "Relu", "kind": "non_weighted"}])
    assert done.tensors["a"]["max"] > 65504
    reason = "a range is beyond the type's"
    assert kept(done)["up"] == kept(done)["same"] == reason
    # This range is given for a tensor without a pair.
    done, model = made(tmp_path, source, calibration={"ranges": {"a": [0, 1e5],
                                                                 "x": [-5, 5]}})
    assert kept(done) == {"up": reason, "same": reason}
    assert types_of(model)["r"] == TensorProto.FLOAT
    near(source, done)


def test_operators_that_stay(tmp_path):
    source = net(CONV + " [pow] p = Pow (c, two) [sum] s = CumSum (p, axis)"
                 " [size] z = Resize (s, , scales) [shape] h = Shape (z)"
                 " [ones] o = ConstantOfShape (h) [add] y = Add (z, o)",
                 "float[n, 4, 8, 8] y", two=np.float32(2), axis=np.int64(1),
                 scales=np.float32([1, 1, 1, 1]))
    done, model = made(tmp_path, source)
    reasons = kept(done)
    assert set(reasons) == {"pow", "sum", "ones"}
    types = types_of(model)
    assert types["scales"] == TensorProto.FLOAT  # as the schema has it
    assert types["z"] == TensorProto.FLOAT16
    near(source, done)


def test_opset_of_operators(tmp_path):
    """Conv supports bfloat16 from opset 22 on."""
    source = net(CONV + " [add] y = Add (c, c)")
    done, model = made(tmp_path, source, "bfloat16", opset="keep")
    assert kept(done) == {"conv": "the operator takes the type from a later opset on"}
    assert types_of(model)["w"] == TensorProto.FLOAT
    done, model = made(tmp_path, source, "bfloat16")
    assert kept(done) == {}
    assert model.opset_import[0].version == 22
    assert types_of(model)["w"] == TensorProto.BFLOAT16


@pytest.mark.parametrize("kind", TYPES)
def test_older_opsets_are_raised_or_refused(kind, tmp_path):
    source = net(CONV + " y = Relu (c)", opset=17)
    refused = Quantized(tmp_path, source, npz(x=X), float=kind, opset="keep")
    assert not refused.ok
    assert f"the model's opset is 17; pairs of {kind} need opset 19" in refused.said
    assert "(/float)" in refused.said
    done, model = made(tmp_path, source, kind)
    assert model.opset_import[0].version == {"float16": 19, "bfloat16": 22}[kind]


def test_pairs_of_its_own_stay(tmp_path):
    source = net("[q] q = QuantizeLinear (x, s, z) [dq] d = DequantizeLinear (q, s, z)"
                 " [own] c = Conv <pads = [1, 1, 1, 1]> (d, w)"
                 " [two] e = Conv (c, v) [end] y = Relu (e)",
                 s=np.float32(0.03), z=np.int8(0), v=RANDOM.standard_normal((4, 4, 1, 1)))
    done, model = made(tmp_path, source, existing_qdq="keep")
    assert set(kept(done)) == {"q", "dq", "own"}
    types = types_of(model)
    assert types["s"] == types["d"] == TensorProto.FLOAT
    assert types["e"] == TensorProto.FLOAT16
    near(source, done)


# --- borders -----------------------------------------------------------------------------

def test_outputs_in_the_middle_and_shared_casts(tmp_path):
    """`c` is an output that another node reads; `p` stays float32; two nodes of each type
    read `r`."""
    source = net(CONV + " [relu] r = Relu (c) [p1] p = Pow (r, two) [p2] q = Pow (r, two)"
                 " [a1] a = Add (r, p) [a2] b = Add (r, q) [m] y = Mul (a, b)",
                 "float[n, 4, 8, 8] y, float[n, 4, 8, 8] c, float[n, 4, 8, 8] q",
                 two=np.float32(2))
    done, model = made(tmp_path, source)
    assert signature(model) == signature(source)
    casts = [n for n in model.graph.node if n.op_type == "Cast"]
    # x; c and y back; r for the two Pow; p and q.
    assert len(casts) == 6
    assert len({(n.input[0], n.attribute[0].i) for n in casts}) == 6
    near(source, done)


def test_constants_of_both_kinds(tmp_path):
    """A Pow, too, reads `k`; `o` is an output; `v` is an input that callers may override.
    """
    source = net(CONV + " f = Constant <value_float = 0.5> ()"
                 " t = Constant <value = float[1] {0.25}> ()"
                 " [a] d = Mul (c, k) [b] e = Pow (d, k) [g] h = Add (e, o)"
                 " [i] j = Add (h, v) [l] m = Add (j, f) [n] y = Add (m, t)",
                 "float[n, 4, 8, 8] y, float[1] o", k=np.float32([2]), o=np.float32([3]),
                 v=np.float32([4]))
    source.graph.input.append(
        onnx.helper.make_tensor_value_info("v", TensorProto.FLOAT, [1]))
    done, model = made(tmp_path, source)
    types = types_of(model)
    assert types["k"] == types["o"] == types["v"] == types["f"] == TensorProto.FLOAT
    assert types["t"] == TensorProto.FLOAT16
    assert signature(model) == signature(source)
    near(source, done)


def test_nested_graphs_see_float32(tmp_path):
    source = net(CONV + """ [m] r = ReduceMax <keepdims = 0> (c)
        g = Greater (r, zero)
        [if] i = If (g) <then_branch = t () => (float[n, 4, 8, 8] tt) { tt = Relu (c) },
                         else_branch = e () => (float[n, 4, 8, 8] ee) { ee = Mul (c, k) }>
        [end] y = Add (i, k)""", zero=np.float32(0), k=np.float32(0.5))
    done, model = made(tmp_path, source)
    assert kept(done) == {"if": "nested graphs stay float32"}
    types = types_of(model)
    assert types["c"] == types["i"] == types["k"] == TensorProto.FLOAT
    assert types[nodes(model)["conv"].output[0]] == TensorProto.FLOAT16
    near(source, done)


def test_what_is_said_of_tensors_is_corrected(tmp_path):
    """The declared types of tensors agree with their new types."""
    source = onnx.shape_inference.infer_shapes(net(CONV + " [r] e = Relu (c) y = Pow (e, k)",
                                                   k=np.float32(2)))
    assert {v.name for v in source.graph.value_info} == {"c", "e"}
    done, _ = made(tmp_path, source)
    said = {v.name: v.type.tensor_type for v in judge.load(done.bytes).graph.value_info}
    assert {name: t.elem_type for name, t in said.items()} == {
        "c": TensorProto.FLOAT16, "e": TensorProto.FLOAT16}
    assert [d.dim_value for d in said["c"].shape.dim][1:] == [4, 8, 8]


def test_float64_and_bfloat16_stay(tmp_path):
    source = net(CONV + " d = Cast <to = 11> (c) e = Neg (d) f = Cast <to = 1> (e)"
                 " b = Cast <to = 16> (f) h = Neg (b) i = Cast <to = 1> (h) y = Relu (i)")
    # ONNX Runtime has no Neg of bfloat16, so the model is not run.
    done, model = made(tmp_path, source, evaluate=False,
                       calibration={"ranges": {"x": [-4, 4]}})
    types = types_of(model)
    assert types["d"] == types["e"] == TensorProto.DOUBLE
    assert types["b"] == types["h"] == TensorProto.BFLOAT16
    assert types["i"] == TensorProto.FLOAT
    assert types[nodes(model)["conv"].output[0]] == TensorProto.FLOAT16


def test_sparse_constants_stay(tmp_path):
    source = net(CONV + " [s] h = Add (c, sparse) y = Relu (h)",
                 sparse=np.zeros((8, 8)))
    source.graph.initializer.pop()
    values = numpy_helper.from_array(np.float32([1, 2]), "sparse")
    source.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(
        values, numpy_helper.from_array(np.int64([0, 9]), "i"), [8, 8]))
    done = Quantized(tmp_path, source, npz(x=X), float="float16")
    model = onnx.load_model_from_string(done.bytes)
    onnx.checker.check_model(model)  # onnx infers nothing of the source either
    (sparse,) = model.graph.sparse_initializer
    assert sparse.values.data_type == TensorProto.FLOAT
    assert kept(done) == {"s": "a constant is kept in a form that is not read"}
    assert nodes(model)["s"].input[1] == "sparse"
    near(source, done)


# --- forms -------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", TYPES)
def test_external_data(kind, tmp_path):
    """The same constants, in a data file of the source and of the result."""
    source = net(CONV + " [g] h = Conv (c, v) y = Relu (h)", "float[n, 4, 1, 1] y",
                 v=RANDOM.standard_normal((4, 4, 8, 8)))
    inside = Quantized(tmp_path, source, npz(x=X), float=kind)
    onnx.save(source, tmp_path / "e.onnx", save_as_external_data=True, location="e.data",
              size_threshold=16)
    (tmp_path / "s.json").write_text(json.dumps(
        {"float": kind, "output": {"external_data": "always"}}))
    (tmp_path / "x.npz").write_bytes(npz(x=X))
    done = subprocess.run(
        [*QUANTIZE, tmp_path / "e.onnx", "--spec",
         tmp_path / "s.json", "--calibration", tmp_path / "x.npz", "-o", tmp_path / "o.onnx"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    outside = {t.name: t.raw_data for t in onnx.load(tmp_path / "o.onnx").graph.initializer}
    wanted = {t.name: t.raw_data
              for t in onnx.load_model_from_string(inside.bytes).graph.initializer}
    assert outside == wanted
    assert len(outside["v"]) == 2 * 4 * 4 * 64


@pytest.mark.parametrize("weights", [
    {"dtype": "int4", "granularity": {"block": 2}}, {"dtype": "uint8", "storage": "dq"},
    {"dtype": "float8e4m3fn"}], ids=lambda weights: weights["dtype"])
def test_formats_of_weights(weights, tmp_path):
    source = net(CONV + " [p] g = GlobalAveragePool (c) [f] h = Flatten (g)"
                 " [d] y = MatMul (h, v)", "float[n, 5] y", v=RANDOM.standard_normal((4, 5)))
    done, model = made(tmp_path, source, weights=weights)
    assert TensorProto.FLOAT not in {
        t.data_type for t in model.graph.initializer}
    near(source, done, 10)


@pytest.mark.parametrize("activations", ["none", {"dtype": "uint8"}, {"dtype": "int16"}],
                         ids=str)
def test_formats_of_activations(activations, tmp_path):
    source = net(CONV + " [r] y = Relu (c)")
    done, model = made(tmp_path, source, activations=activations)
    assert kept(done) == {}
    near(source, done)


def test_equalized_and_refined(tmp_path):
    source = net(CONV + " [r] e = Relu (c) [two] y = Conv (e, v)",
                 v=RANDOM.standard_normal((4, 4, 1, 1)))
    done, _ = made(tmp_path, source, equalize=True, calibration={"method": "output_mse"})
    assert kept(done) == {}
    near(source, done)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", GLYPHS)
def test_target_onnxruntime(name, kind, tmp_path):
    """Pairs on outputs, shared scales and int32 biases, as the target onnxruntime makes
    them."""
    source = onnx.load(DATA / f"{name}.onnx")
    data = CALIBRATION.read_bytes()
    spec = {"target": "onnxruntime", "recipe": "none", "evaluate": False, "calibration": {"max_samples": 32}}
    plain = Quantized(tmp_path, source, data, **spec)
    done = Quantized(tmp_path, source, data, **spec, float=kind)
    assert done.ok, done.said
    model = strict(done.bytes)
    assert signature(model) == signature(source)
    assert done.report["float"]["kept"] == []
    if kind == "bfloat16":
        return
    feed = {source.graph.input[0].name: judge.test_images()[0][:100]}
    real = judge.run(source.SerializeToString(), feed)
    assert (judge.sqnr_db(real, judge.run(done.bytes, feed)) >
            judge.sqnr_db(real, judge.run(plain.bytes, feed)) - 1.5)


HALVES = """
    <ir_version: 8, opset_import: ["": 19]>
    halves (float[n, 16, 8, 8] x) => (float[n, 16, m, m] y) {{
        a = Conv <pads = [1, 1, 1, 1]> (x, w)  r = Relu (a)
        b = Conv <pads = [1, 1, 1, 1]> (r, v)  {body}
        y = Conv <pads = [1, 1, 1, 1]> (c, u) }}"""


def halves(body, channels, **constants):
    model = onnx.parser.parse_model(HALVES.format(body=body))
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}{i}"
    weights = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in (
        ("w", (16, 16, 3, 3)), ("v", (16, 16, 3, 3)), ("u", (16, channels, 3, 3)))}
    for name, values in {**weights, **constants}.items():
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model, npz(x=RANDOM.standard_normal((4, 16, 8, 8)).astype(np.float32))


@pytest.mark.parametrize("recipe", ["none", "auto"])
def test_onnxruntime_loads_a_concat(tmp_path, recipe):
    """ONNX Runtime refuses the QLinearConcat that it makes of pairs with 16-bit scales."""
    source, data = halves("c = Concat <axis = 1> (r, b)", 32)
    done = Quantized(tmp_path, source, data, target="onnxruntime", recipe=recipe,
                     float="float16")
    assert done.ok, done.said
    strict(done.bytes)
    judge.session(done.bytes)
    assert done.report["evaluation"]["deployed"]["outputs"][0]["sqnr_db"] > 20
    if recipe == "none":
        (row,) = (r for r in done.report["layers"] if r["op"] == "Concat")
        assert row["reason"] == "the integer kernel of Concat has no 16-bit scales"


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements <axis = 0>"])
def test_a_scatter_that_joins_stays(tmp_path, op, reduction):
    """ONNX Runtime fails when it runs one in float16."""
    op = op.replace(">", ",") if ">" in op else op + " <"
    at = np.zeros((1, 4, 8, 8) if "Elements" in op else (1, 1), np.int64)
    source = net(f'{CONV} [scatter] y = {op} reduction = "{reduction}"> (c, at, u)',
                 at=at, u=np.ones((1, 4, 8, 8)))
    done, _ = made(tmp_path, source)
    assert kept(done) == {"scatter": "ONNX Runtime's kernel does not take the type"}
    near(source, done)


@pytest.mark.parametrize("kind", TYPES)
def test_region_of_a_resize_stays(tmp_path, kind):
    source, data = halves(
        'c = Resize <mode = "linear", coordinate_transformation_mode = '
        '"tf_crop_and_resize"> (b, roi, scales)', 16,
        roi=np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32),
        scales=np.array([1, 1, 2, 2], np.float32))
    done = Quantized(tmp_path, source, data, float=kind)
    assert done.ok, done.said
    model = strict(done.bytes)
    kept = {i.name: i.data_type for i in model.graph.initializer}
    assert kept["roi"] == kept["scales"] == onnx.TensorProto.FLOAT
    assert done.report["float"]["kept"] == []
