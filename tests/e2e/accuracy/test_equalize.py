# SPDX-License-Identifier: Apache-2.0
"""equalize: the model computes the same function, and its weights quantize better."""

import io
import json
import subprocess
from functools import lru_cache

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import CALIBRATION, DATA, QUANTIZE, repeats

pytestmark = pytest.mark.long
GRANULARITIES = ["channel", "tensor"]
# The range is minmax, so that the calibration method does not affect the comparison.
MINMAX = {"method": "minmax"}


def quantize(folder, model, data, **spec):
    """Runs the command; returns the quantized model's bytes and the report."""
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    (folder / "data.npz").write_bytes(data)
    (folder / "spec.json").write_text(json.dumps({"calibration": MINMAX, **spec}))
    done = subprocess.run([*QUANTIZE, "model.onnx", "--spec",
                           "spec.json", "--calibration", "data.npz", "-o", "out.onnx",
                           "--report", "report.json"], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return ((folder / "out.onnx").read_bytes(),
            json.loads((folder / "report.json").read_text()))


@pytest.fixture(scope="module")
def glyph(tmp_path_factory):
    """Returns a quantized glyph network, computed once for each spec: bytes and report.
    """
    made = {}

    def make(name, granularity="channel", storage="qdq", **spec):
        key = name, granularity, storage, json.dumps(spec, sort_keys=True)
        if key not in made:
            made[key] = quantize(tmp_path_factory.mktemp("glyph"),
                                 (DATA / f"{name}.onnx").read_bytes(),
                                 CALIBRATION.read_bytes(),
                                 weights={"granularity": granularity, "storage": storage},
                                 **{"evaluate": False, **spec})
        return made[key]

    return make


def without_pairs(data):
    """Returns the float model inside a quantized one: each pair is replaced by its input.
    """
    model = judge.load(data)
    pairs = judge.Pairs(model)
    kept = [n for n in model.graph.node if n.op_type not in judge.BOUNDARY]
    for node in kept:
        for i, name in enumerate(node.input):
            node.input[i] = pairs.sources.get(name, name)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model.SerializeToString()


@lru_cache
def logits(model):
    images, _ = judge.test_images()
    return judge.run(model, {"input": images[:250]})


def sqnr_of(name, data):
    real = logits((DATA / f"{name}.onnx").read_bytes())
    return judge.sqnr_db(real, logits(data))


def equalized(report):
    return [(row["first"], row["second"]) for row in report["equalization"]
            if row["reason"] == "equalized"]


def warned(report):
    return [w["code"] for w in report["warnings"]]


# --- accuracy -----------------------------------------------------------------------------

@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_a_skewed_network_is_as_good_as_the_straight_one(glyph, granularity):
    straight, _ = glyph("glyph_resnet", granularity)
    skewed, _ = glyph("glyph_resnet_skewed", granularity)
    mended, report = glyph("glyph_resnet_skewed", granularity, equalize=True, evaluate=True)
    best, worst, ours = (sqnr_of("glyph_resnet", data)
                         for data in (straight, skewed, mended))
    print(f"{granularity}: straight {best:.2f}, skewed {worst:.2f}, "
          f"equalized {ours:.2f} dB")
    assert worst < 10
    assert ours > best - 1
    assert len(equalized(report)) == 5
    assert "nothing_equalized" not in warned(report)
    # The service's own figure, float source against result, agrees.
    (output,) = report["evaluation"]["outputs"]
    assert abs(output["sqnr_db"] - ours) < 1.5


def test_integer_weights_are_those_of_the_equalized_model(glyph):
    straight, _ = glyph("glyph_resnet")
    ours, _ = glyph("glyph_resnet_skewed", equalize=True, storage="dq")
    assert sqnr_of("glyph_resnet", ours) > sqnr_of("glyph_resnet", straight) - 1


@pytest.mark.parametrize("name, granularity", [
    ("glyph_resnet", "tensor"), ("glyph_se", "channel"), ("glyph_vit", "tensor"),
    repeats("glyph_resnet", "channel"), repeats("glyph_se", "tensor"), repeats("glyph_vit", "channel"),
    repeats("glyph_mobilenet", "channel"), repeats("glyph_mobilenet", "tensor")])
def test_no_network_suffers(glyph, name, granularity):
    plain, _ = glyph(name, granularity)
    ours, report = glyph(name, granularity, equalize=True)
    before, after = sqnr_of(name, plain), sqnr_of(name, ours)
    print(f"{name} {granularity}: {before:.2f} to {after:.2f} dB, "
          f"{len(equalized(report))} pairs")
    assert after > before - 0.3


# --- the function stays -------------------------------------------------------------------

@pytest.mark.parametrize("name, granularity", [
    ("glyph_resnet_skewed", "channel"), ("glyph_vit", "tensor"), repeats("glyph_resnet_skewed", "tensor"),
    repeats("glyph_vit", "channel"), repeats("glyph_resnet", "channel"), repeats("glyph_resnet", "tensor")])
def test_the_function_stays(glyph, name, granularity):
    data, report = glyph(name, granularity, equalize=True)
    assert equalized(report)
    source = onnx.load(DATA / f"{name}.onnx")
    inner = onnx.load_model_from_string(without_pairs(data))
    changed = [i.name for i in source.graph.initializer
               if i.raw_data != next(k.raw_data for k in inner.graph.initializer
                                     if k.name == i.name)]
    assert changed
    assert [n.name for n in inner.graph.node] == [n.name for n in source.graph.node]
    images, _ = judge.test_images()
    feed = {"input": images[:200]}
    for optimized in (True, False):
        before = judge.run(source.SerializeToString(), feed, optimized=optimized)
        after = judge.run(inner.SerializeToString(), feed, optimized=optimized)
        assert np.array_equal(before, after) or judge.sqnr_db(before, after) > 100


def test_factors_are_powers_of_two(glyph):
    data, report = glyph("glyph_resnet_skewed", equalize=True)
    source = onnx.load(DATA / "glyph_resnet_skewed.onnx")
    constants = judge.Pairs(judge.load(data))
    layers = {node.name: node for node in source.graph.node}
    before = {i.name: numpy_helper.to_array(i) for i in source.graph.initializer}
    for first, second in equalized(report):
        factors = []
        for name, axes in ((layers[first].input[1], (1, 2, 3)),
                           (layers[first].input[2], ()),
                           (layers[second].input[1], (0, 2, 3))):
            old = before[name].astype(np.float64)
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = constants.constant(name) / old
            exponents = np.log2(np.where(old == 0, np.nan, ratio))
            assert np.nanmax(np.abs(exponents - np.round(exponents))) == 0
            factors.append(np.nanmean(exponents, axis=axes) if axes else exponents)
        assert np.array_equal(factors[0], -factors[2])
        known = ~np.isnan(factors[1])
        assert np.array_equal(factors[0][known], factors[1][known])
        moved = next(row["channels"] for row in report["equalization"]
                     if row["first"] == first)
        assert moved == np.count_nonzero(factors[0])


def test_result_tells_its_source(daemon):
    """The source in the metadata is the model that was sent (digest, size, name), and a
    repeated job gives the same bytes."""
    answers = [daemon.quantize(DATA / "glyph_resnet_skewed.onnx", CALIBRATION,
                               {"equalize": True, "evaluate": False},
                               fresh=True) for _ in range(2)]
    assert [a.status_code for a in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    report = daemon.report(answers[0].headers["Location"].rsplit("/", 1)[1])
    model = judge.load(answers[0].content)
    properties = {p.key: p.value for p in model.metadata_props}
    assert properties["qdqd.source_model"] == report["model"]["id"]
    source = DATA / "glyph_resnet_skewed.onnx"
    assert report["model"]["size"] == source.stat().st_size
    assert report["summary"]["size_before"] == source.stat().st_size
    assert report["spec"]["equalize"] is True
    assert report["timings"]["equalize"] > 0


def test_frozen_spec_makes_the_same_bytes(daemon):
    job = daemon.submit_glyphs("glyph_resnet_skewed", CALIBRATION,
                               spec={"equalize": True, "evaluate": False})
    daemon.succeeded(job)
    spec = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert spec["equalize"] is True
    again = daemon.submit(model=daemon.job(job)["model"], spec=spec)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)


# --- layers left alone --------------------------------------------------------------------

def test_what_is_left_alone_says_why(glyph):
    """The report gives the reason for layers that are not equalized."""
    _, report = glyph("glyph_mobilenet", equalize=True)
    rows = report["equalization"]
    layers = {row["name"] for row in report["layers"]}
    assert {row["first"] for row in rows} <= layers
    assert any(row["reason"] == "followed by Clip" for row in rows)
    assert all(row["channels"] == 0 for row in rows if row["reason"] != "equalized")


def test_nothing_to_equalize_is_a_warning(glyph):
    data, report = glyph("glyph_se", equalize=True)
    plain, without = glyph("glyph_se")
    assert "nothing_equalized" in warned(report)
    assert equalized(report) == []
    assert "nothing_equalized" not in warned(without)
    assert without["equalization"] is None
    assert onnx.load_model_from_string(data).graph == onnx.load_model_from_string(
        plain).graph


def test_ranges_by_hand_and_layers(glyph):
    """Equalization does not change the plan, nor the names in spec and report."""
    spec = {"evaluate": False, "layers": [{"name": "Conv_1", "quantize_input": False,
                                           "quantize_weight": False}]}
    data, report = glyph("glyph_resnet_skewed", equalize=True, **spec)
    assert ("Conv_1", "Conv_2") in equalized(report)
    _, plain = glyph("glyph_resnet_skewed", **spec)
    assert report["layers"] == plain["layers"]
    ranges = {t["name"]: [t["min"], t["max"]] for t in report["tensors"]}
    again, _ = glyph("glyph_resnet_skewed", equalize=True, **spec,
                     calibration={"ranges": ranges})
    assert onnx.load_model_from_string(again).graph == onnx.load_model_from_string(
        data).graph


# --- every kind of layer, by onnxruntime --------------------------------------------------

def network(layers, shape):
    """Returns a chain of (op, weight shape or None, attributes) whose channels differ in
    size."""
    random = np.random.default_rng(5)
    nodes, weights, at = [], [], "x"
    for i, (op, dims, attributes) in enumerate(layers):
        inputs = [at]
        if dims is not None:
            skew = 4.0 ** (np.arange(dims[0]) * 3 % 5 - 2)
            values = random.normal(0, 1, dims) * skew.reshape(-1, *[1] * (len(dims) - 1))
            weights.append(numpy_helper.from_array(values.astype(np.float32), f"w{i}"))
            inputs.append(f"w{i}")
        nodes.append(helper.make_node(op, inputs, [f"t{i}"], f"{op}{i}", **attributes))
        at = f"t{i}"
    nodes[-1].output[0] = "y"
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])]
    rank = len(next(dims for _, dims, _ in reversed(layers) if dims))
    outs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)]
    model = helper.make_model(helper.make_graph(nodes, "kinds", infos, outs, weights),
                              opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data = random.normal(0, 1, [8, *shape]).astype(np.float32)
    file = io.BytesIO()
    np.savez(file, x=data)
    return model.SerializeToString(), file.getvalue(), data


SAME = {"pads": [1, 1, 1, 1]}
KINDS = {
    "conv leaky conv": [("Conv", [6, 3, 3, 3], SAME), ("LeakyRelu", None, {"alpha": 0.1}),
                        ("Conv", [4, 6, 3, 3], SAME)],
    "conv prelu conv": [("Conv", [6, 3, 3, 3], SAME), ("PRelu", [6, 1, 1], {}),
                        ("Conv", [4, 6, 3, 3], SAME)],
    "depthwise": [("Conv", [6, 3, 1, 1], {}), ("Relu", None, {}),
                  ("Conv", [6, 1, 3, 3], {"group": 6, **SAME}), ("Relu", None, {}),
                  ("Conv", [4, 6, 1, 1], {})],
    "grouped": [("Conv", [6, 3, 3, 3], SAME), ("Conv", [8, 3, 3, 3], {"group": 2}),
                ("Relu", None, {}), ("Conv", [4, 2, 1, 1], {"group": 4})],
    "transposed": [("Conv", [6, 3, 3, 3], SAME), ("Relu", None, {}),
                   ("ConvTranspose", [6, 2, 3, 3], {"group": 2, "strides": [2, 2]}),
                   ("Relu", None, {}), ("Conv", [4, 4, 3, 3], {})],
    "pools": [("Conv", [6, 3, 3, 3], SAME), ("Relu", None, {}),
              ("MaxPool", None, {"kernel_shape": [2, 2]}),
              ("AveragePool", None, {"kernel_shape": [3, 3], **SAME}),
              ("Conv", [4, 6, 1, 1], {})],
    "flatten": [("Conv", [6, 3, 3, 3], SAME), ("Relu", None, {}), ("Flatten", None, {}),
                ("Gemm", [10, 384], {"transB": 1}), ("Relu", None, {}),
                ("MatMul", [10, 5], {})],
    "mean of an image": [("Conv", [6, 3, 3, 3], SAME), ("Relu", None, {}),
                         ("ReduceMean", None, {"axes": [2, 3]}), ("Flatten", None, {}),
                         ("Gemm", [10, 6], {"transB": 1})],
    "mean as a matrix": [("Conv", [6, 3, 3, 3], SAME),
                         ("ReduceMean", None, {"axes": [-1, -2], "keepdims": 0}),
                         ("Gemm", [5, 6], {"transB": 1})],
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_layers(tmp_path, kind):
    model, data, samples = network(KINDS[kind], [3, 8, 8])
    result, report = quantize(tmp_path / "a", model, data, equalize=True)
    layers = sum(op in ("Conv", "ConvTranspose", "Gemm", "MatMul")
                 for op, _, _ in KINDS[kind])
    assert len(equalized(report)) == layers - 1, report["equalization"]
    real = judge.run(model, {"x": samples}, optimized=False)
    inner = judge.run(without_pairs(result), {"x": samples}, optimized=False)
    assert np.array_equal(real, inner)
