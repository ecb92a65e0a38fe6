# SPDX-License-Identifier: Apache-2.0
"""Weights as integers (`weights.storage`) and the choice of their ranges
(`weights.method`), compared with numpy and onnxruntime."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import CALIBRATION, DATA, QUANTIZE
from test_made_weights import C, MODELS, N, SIZE, build

GLYPHS = ("glyph_resnet", "glyph_mobilenet", "glyph_vit", "glyph_se")


def quantize(folder, model, weights, calibration=None, ranges=None, name="out",
             opset="auto"):
    """Returns the bytes of the result and the report."""
    path, out, report, spec = (folder / f"{name}.{end}" for end in
                               ("float.onnx", "onnx", "report.json", "spec.json"))
    path.write_bytes(model)
    given = {"max_samples": 16} if ranges is None else {"ranges": ranges}
    spec.write_text(json.dumps({"weights": weights, "evaluate": False, "opset": opset,
                                "on_unmatched": "warn", "calibration": given}))
    command = [*QUANTIZE, path, "--spec", spec, "-o", out,
               "--report", report]
    if calibration:
        command += ["--calibration", calibration]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return out.read_bytes(), json.loads(report.read_text())


class Weight:
    """One weight of a result: its integers or floats, and its scales."""

    def __init__(self, graph, tensor):
        constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.scale = constants[f"{tensor}_scale"]
        self.integers = constants.get(f"{tensor}_quantized")
        (node,) = [n for n in graph.node if n.name == f"{tensor}_DequantizeLinear"]
        self.axis = judge.attribute(node, "axis", None) if self.scale.ndim else None

    def broadcast(self, scale, rank):
        if self.axis is None:
            return scale
        return scale.reshape([-1 if i == self.axis else 1 for i in range(rank)])


def integers_of(values, scale):
    """Computes QuantizeLinear as ONNX defines it, in float32."""
    return np.clip(np.rint(values / scale), -128, 127).astype(np.int8)


def squared_error(values, scale):
    """Returns the error in float64 of the float32 numbers that DequantizeLinear returns.
    """
    back = integers_of(values, scale).astype(np.float32) * scale
    return np.sum((values.astype(np.float64) - back) ** 2)


def same_outputs(one, other, feed):
    """Expects the same bits when no operator is folded or fused."""
    a = judge.session(one, optimized=False).run(None, feed)
    b = judge.session(other, optimized=False).run(None, feed)
    assert all(np.isfinite(y).all() for y in a)
    return all(np.array_equal(y, z) for y, z in zip(a, b, strict=True))


# --- the networks of tests/data ------------------------------------------------

@pytest.mark.parametrize("granularity", ["channel", "tensor"])
@pytest.mark.parametrize("method", ["max", "mse"])
@pytest.mark.parametrize("name", GLYPHS)
def test_integers_are_what_the_pair_would_make(name, method, granularity, tmp_path):
    source = (DATA / f"{name}.onnx").read_bytes()
    weights = {"method": method, "granularity": granularity}
    pairs, _ = quantize(tmp_path, source, weights, CALIBRATION)
    data, report = quantize(tmp_path, source, {**weights, "storage": "dq"}, CALIBRATION)
    assert report["spec"]["weights"] == {**weights, "storage": "dq", "dtype": "int8"}
    assert not [w for w in report["warnings"] if w["code"] == "weight_stays_float"]
    model, floats = judge.load(data), {}
    for tensor in onnx.load_model_from_string(source).graph.initializer:
        floats[tensor.name] = numpy_helper.to_array(tensor)
    left = {t.name for t in model.graph.initializer}
    counted = 0
    for row in report["weights"]:
        weight, values = Weight(model.graph, row["name"]), floats[row["name"]]
        scale = weight.broadcast(weight.scale, values.ndim)
        assert weight.axis == row["axis"]
        assert weight.integers.dtype == np.int8
        assert np.array_equal(weight.integers, integers_of(values, scale)), row
        assert row["name"] not in left
        counted += values.size
    assert counted > 100_000
    summary = report["summary"]
    assert summary["size_after"] == len(data) < len(source) / 2
    assert summary["size_before"] == len(source)
    assert len(data) < len(source) - 3 * counted + 100_000
    images, _ = judge.test_images()
    feed = {model.graph.input[0].name: images[:32]}
    assert same_outputs(pairs, data, feed)
    # Once more with all of onnxruntime's fusions, as users run it.
    real = judge.run(source, feed, batch=32)
    assert judge.sqnr_db(real, judge.run(data, feed, batch=32)) > 10


def test_daemon_gives_the_same_bytes(daemon, tmp_path):
    weights = {"storage": "dq", "method": "mse"}
    source = DATA / "glyph_se.onnx"
    answer = daemon.post("/v1/quantize", files={
        "model": ("m", source.read_bytes()),
        "calibration": ("c", CALIBRATION.read_bytes()),
        "spec": (None, json.dumps({"weights": weights, "evaluate": False,
                                   "calibration": {"max_samples": 16}}))})
    assert answer.status_code == 200, answer.text
    local, _ = quantize(tmp_path, source.read_bytes(), weights, CALIBRATION)
    assert (onnx.load_model_from_string(answer.content).graph
            == onnx.load_model_from_string(local).graph)


def test_evaluation_reads_integers(daemon):
    """Both storages of one model have the same accuracy."""
    found = []
    for storage in ("qdq", "dq"):
        job = daemon.submit_glyphs(spec={"weights": {"storage": storage},
                                         "evaluate": {"samples": 32}})
        daemon.succeeded(job)
        (output,) = daemon.report(job)["evaluation"]["outputs"]
        found.append(output["sqnr_db"])
    assert found[0] == pytest.approx(found[1], abs=0.5)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("member, value, code", [
    ("storage", "int8", "invalid_spec"), ("method", "entropy", "invalid_spec"),
    ("dtype", "int16", "invalid_spec")])
def test_mistakes_are_named(daemon, member, value, code):
    answer = daemon.post("/v1/plan", files={
        "model": ("m", (DATA / "glyph_se.onnx").read_bytes()),
        "spec": (None, json.dumps({"weights": {member: value}}))})
    assert answer.json()["code"] == code
    assert answer.json()["errors"][0]["pointer"] == f"/weights/{member}"


# --- weights that nodes make, old opsets, weights that others read --------------

@pytest.mark.parametrize("name", sorted(MODELS))
def test_made_weights(name, tmp_path):
    nodes, initializers, axis = MODELS[name]
    model = build(nodes, initializers, ", ".join("abcd"[:4 if "Conv" in nodes else 2]))
    ranges = {"x": [-4, 4], "f": [-4, 4]}
    source = model.SerializeToString()
    pairs, _ = quantize(tmp_path, source, {}, ranges=ranges)
    data, report = quantize(tmp_path, source, {"storage": "dq"}, ranges=ranges)
    result = judge.load(data)
    kept_float = [w["node"] for w in report["warnings"]
                  if w["code"] == "weight_stays_float"]
    assert kept_float == (["v"] if "filled" in name else [])
    model.graph.output.append(onnx.ValueInfoProto(name="v"))
    x = np.random.default_rng(4).standard_normal((N, C, SIZE, SIZE)).astype(np.float32)
    (v,) = judge.session(model.SerializeToString()).run(["v"], {"x": x})
    weight = Weight(result.graph, "v")
    assert weight.axis == axis
    if not kept_float:
        scale = weight.broadcast(weight.scale, v.ndim)
        assert np.array_equal(weight.integers, integers_of(v, scale))
        assert "v" not in [o for n in result.graph.node for o in n.output]
        assert len(data) < len(pairs)
    assert same_outputs(pairs, data, {"x": x})


FEW = {
    "opset_10": ('<ir_version: 5, opset_import: ["" : 10]> g (float[n,3,6,6] x) => '
                 "(float[n,5,6,6] y) { y = Conv (x, w) }", None),
    "opset_11": ('<ir_version: 6, opset_import: ["" : 11]> g (float[n,3,6,6] x) => '
                 "(float[n,5,6,6] y) { y = Conv (x, w) }", None),
    "opset_12": ('<ir_version: 7, opset_import: ["" : 12]> g (float[n,3,6,6] x) => '
                 "(float[n,5,6,6] y) { y = Conv (x, w) }", None),
    "opset_21": ('<ir_version: 10, opset_import: ["" : 21]> g (float[n,3,6,6] x) => '
                 "(float[n,5,6,6] y) { y = Conv (x, w) }", 0),
    "old_input": ('<ir_version: 3, opset_import: ["" : 13]> g (float[n,3,6,6] x, '
                  "float[5,3,1,1] w) => (float[n,5,6,6] y) { y = Conv (x, w) }", 0),
    "output_too": ('<ir_version: 8, opset_import: ["" : 13]> g (float[n,3,6,6] x) => '
                   "(float[n,5,6,6] y, float[5,3,1,1] w) { y = Conv (x, w) }", 0),
    "read_too": ('<ir_version: 8, opset_import: ["" : 13]> g (float[n,3,6,6] x) => '
                 "(float[n,5,6,6] y, float[5,3,1,1] r) "
                 "{ y = Conv (x, w)  r = Relu (w) }", 0),
    "branch_too": ('<ir_version: 8, opset_import: ["" : 13]> g (float[n,3,6,6] x) => '
                   "(float[n,5,6,6] y) { a = Conv (x, w) "
                   "c = Constant <value = bool {1}> () "
                   "b = If (c) < then_branch = t () => (float[5,3,1,1] p) "
                   "{ p = Relu (w) }, else_branch = e () => (float[5,3,1,1] q) "
                   "{ q = Neg (w) } >  s = ReduceSum <keepdims = 0> (b) "
                   "y = Add (a, s) }", 0),
}


@pytest.mark.parametrize("method", ["max", "mse"])
@pytest.mark.parametrize("name", sorted(FEW))
def test_old_models_and_other_readers(name, method, tmp_path):
    text, axis = FEW[name]
    random = np.random.default_rng(6)
    w = random.standard_normal((5, 3, 1, 1)).astype(np.float32) ** 3
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    ranges = {"x": [-3, 3]}
    source = model.SerializeToString()
    pairs, _ = quantize(tmp_path, source, {"method": method}, ranges=ranges,
                        opset="keep")
    data, _ = quantize(tmp_path, source, {"method": method, "storage": "dq"},
                       ranges=ranges, opset="keep")
    result = judge.load(data)
    weight = Weight(result.graph, "w")
    assert weight.axis == axis
    assert np.array_equal(weight.integers,
                          integers_of(w, weight.broadcast(weight.scale, 4)))
    kept = [t for t in result.graph.initializer if t.name == "w"]
    assert len(kept) == name.endswith("_too")
    assert all(np.array_equal(numpy_helper.to_array(t), w) for t in kept)
    x = random.standard_normal((2, 3, 6, 6)).astype(np.float32)
    assert same_outputs(pairs, data, {"x": x})


# --- ranges of the least error --------------------------------------------------

def one_layer(w):
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "dense")]
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size])
             for name, size in zip("xy", w.shape)]
    graph = onnx.helper.make_graph(nodes, "one", infos[:1], infos[1:],
                                   [numpy_helper.from_array(w, "w")])
    return onnx.helper.make_model(graph, ir_version=8, opset_imports=[
        onnx.helper.make_opsetid("", 17)]).SerializeToString()


def scales(folder, w, method, granularity="channel"):
    data, _ = quantize(folder, one_layer(w),
                       {"method": method, "granularity": granularity, "storage": "dq"},
                       ranges={"x": [-1, 1]})
    weight = Weight(judge.load(data).graph, "w")
    assert np.array_equal(weight.integers, integers_of(w, weight.scale))
    return weight.scale


def channels(w, scale):
    return zip(w.T, scale, strict=True) if scale.ndim else [(w, scale)]


def distributions():
    random = np.random.default_rng(12)
    shape = 600, 7
    outliers = random.standard_normal(shape)
    outliers[3] *= 30
    return {
        "normal": random.standard_normal(shape), "tails": random.standard_t(2, shape),
        "even": random.uniform(-1, 1, shape), "outliers": outliers,
        "few_values": random.integers(-3, 4, shape), "one_side": random.random(shape),
        "tiny": random.standard_normal(shape) * 1e-38,
        "huge": random.uniform(-3.4e38, 3.4e38, shape),
        "one_row": random.standard_normal((1, 9)),
        "zero_channels": random.standard_normal(shape) * [0, 1, 0, 2, 3, 0, 1],
        "zero": np.zeros(shape),
    }


@pytest.mark.parametrize("granularity", ["channel", "tensor"])
@pytest.mark.parametrize("name", sorted(distributions()))
def test_mse_is_never_worse_than_max(name, granularity, tmp_path):
    w = distributions()[name].astype(np.float32)
    most = scales(tmp_path, w, "max", granularity)
    least = scales(tmp_path, w, "mse", granularity)
    assert np.array_equal(least, scales(tmp_path, w, "mse", granularity))
    assert (least >= np.finfo(np.float32).tiny).all() and (least <= most).all()
    for (values, a), b in zip(channels(w, most), np.atleast_1d(least), strict=True):
        error = squared_error(values, b)
        assert error <= squared_error(values, a)
        # No scale of the same grid is better: the search is exact.
        tried = [np.float32(np.float64(a) * k / 64) for k in range(1, 64)]
        tried = [max(t, np.finfo(np.float32).tiny) for t in tried]
        best = min(squared_error(values, t) for t in tried)
        assert error <= best * (1 + 1e-9)


def test_mse_gives_up_outliers(tmp_path):
    """One of 600 values is 30 times as large as the others, which makes the others
    inaccurate when one scale serves all. The clipped scale must reduce the error, and not
    only be smaller."""
    w = distributions()["normal"].astype(np.float32)
    w[5, 2] = 30
    most, least = (scales(tmp_path, w, method, "tensor") for method in ("max", "mse"))
    assert least < most
    assert squared_error(w, least) < squared_error(w, most)
    tails = distributions()["tails"].astype(np.float32)
    most, least = (scales(tmp_path, tails, method) for method in ("max", "mse"))
    assert (least < most).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_named(value, tmp_path):
    w = np.ones((4, 3), np.float32)
    w[2, 1] = value
    for method in ("max", "mse"):
        with pytest.raises(AssertionError, match="weight 'w' holds a NaN or an infinity"):
            scales(tmp_path, w, method)
