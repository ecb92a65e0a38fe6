# SPDX-License-Identifier: Apache-2.0
"""A poor result comes with advice: what mends it without a layer in float, or else the layers at
fault, why, and a spec that leaves them in float."""

import io
import json

import numpy as np
import onnx
import pytest

from service import DATA
from test_recipe import daemon, harmed_net  # noqa: F401, a fixture


@pytest.fixture(scope="module")
def harmed(daemon):
    """The net of the tests of recipes, with a Sigmoid at its end: its outputs are no classes,
    so the SQNR alone decides."""
    model, samples = harmed_net()
    model = onnx.load_model_from_string(model)
    model.graph.node[-1].output[0] = "raw"
    model.graph.node.append(onnx.helper.make_node("Sigmoid", ["raw"], ["y5"]))
    return {"model": daemon.upload("models", model.SerializeToString()),
            "calibration": daemon.upload("datasets", samples)}


def done(daemon, inputs, ok=True, **spec):
    job = daemon.submit(**inputs, spec=spec, fresh=True)
    if ok:
        daemon.succeeded(job)
    else:
        assert daemon.ended(job)["state"] == "failed"
    return daemon.report(job)


def worst(report):
    evaluation = report["evaluation"]
    outputs = (evaluation["deployed"] or evaluation)["outputs"]
    return min(row["sqnr_db"] for row in outputs)


def advice(report):
    """Returns the text of the advice, and the spec in it."""
    rows = [w for w in report["warnings"] if w["code"] == "poor"]
    if not rows:
        return None, None
    [row] = rows
    at = row["detail"].find('{"')
    return row["detail"], json.loads(row["detail"][at:]) if at > 0 else None


SPECS = pytest.mark.parametrize("spec", [{"target": "onnxruntime", "recipe": "none"},
                                         {"target": "tensorrt"}], ids=["onnxruntime", "tensorrt"])
# More than anything but layers in float reaches.
MUCH = {"accept": {"min_sqnr_db": 32}}


@SPECS
def test_what_costs_nothing_comes_first(daemon, harmed, spec):
    report = done(daemon, harmed, **spec)
    assert report["summary"]["verdict"] == "poor"
    text, tried = advice(report)
    assert "without a layer in float it has" in text and tried == {"smooth": True}
    mended = done(daemon, harmed, **spec, **tried)
    assert worst(mended) >= 15 and mended["summary"]["verdict"] != "poor"


@SPECS
def test_a_poor_result_says_what_mends_it(daemon, harmed, spec):
    report = done(daemon, harmed, ok=False, **spec, **MUCH)
    assert report["summary"]["verdict"] == "poor" and worst(report) < 15
    text, tried = advice(report)
    assert "'dense2' (range: it reads 'scaled' from" in text
    [entry] = tried["layers"]
    # The sums of all layers saturate on a processor without VNNI.
    most = 7 if report["host"]["name"] == "avx2" else 6
    assert "dense2" in entry["name"] and len(entry["name"]) <= most
    assert not entry["quantize_input"] and not entry["quantize_weight"]
    assert report["timings"]["advise"] > 0
    mended = done(daemon, harmed, **spec, **MUCH, **tried)
    assert worst(mended) >= 32 and mended["summary"]["verdict"] != "poor"
    assert advice(mended) == (None, None)


def test_a_missed_bound_gets_it_too(daemon, harmed):
    spec = {"target": "tensorrt", "accept": {"min_sqnr_db": 20}}
    text, tried = advice(done(daemon, harmed, ok=False, **spec))
    assert text.startswith("min_sqnr_db is missed, the output 'y5' has")
    assert worst(done(daemon, harmed, **spec, **tried)) >= 20


def test_bounds_that_layers_in_float_cannot_reach(daemon, harmed):
    report = done(daemon, harmed, ok=False, target="onnxruntime",
                  accept={"max_size_ratio": 0.01})
    text, tried = advice(report)
    assert text.startswith("max_size_ratio is missed") and tried is None


def test_a_good_result_gets_none(daemon):
    images = np.load(DATA / "calib_32.npz")
    assert images.files == ["input"]
    job = daemon.submit_glyphs(calibration=DATA / "calib_32.npz")
    daemon.succeeded(job)
    report = daemon.report(job)
    assert report["summary"]["verdict"] != "poor" and advice(report) == (None, None)


def slow_net(layers=10, wide=48, side=72):
    """Convolutions in front of each of which three channels are scaled to 2000 times the others: many
    layers are at fault, and each trial takes long."""
    rng = np.random.default_rng(6)
    nodes, weights, x = [], [], "x"
    scale = np.ones((1, wide, 1, 1), np.float32)
    scale[0, :3] = 2000
    weights.append(onnx.numpy_helper.from_array(scale, "scale"))
    for i in range(layers):
        w = rng.normal(size=(wide, wide, 3, 3)) / np.sqrt(4.5 * wide)
        w[:, :3] /= 2000
        weights.append(onnx.numpy_helper.from_array(w.astype(np.float32), f"w{i}"))
        nodes += [onnx.helper.make_node("Mul", [x, "scale"], [f"s{i}"]),
                  onnx.helper.make_node("Conv", [f"s{i}", f"w{i}"], [f"c{i}"], pads=[1] * 4),
                  onnx.helper.make_node("Sigmoid" if i + 1 == layers else "Relu", [f"c{i}"], [f"y{i}"])]
        x = f"y{i}"
    shape = [1, wide, side, side]
    graph = onnx.helper.make_graph(
        nodes, "slow", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, shape)], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), rng.normal(size=(48, *shape[1:])).astype(np.float32)


def test_it_takes_no_longer_than_the_rest(daemon):
    """By the inferences alone it took three times as long here."""
    model, samples = slow_net()
    to = io.BytesIO()
    np.savez(to, x=samples)
    inputs = {"model": daemon.upload("models", model),
              "calibration": daemon.upload("datasets", to.getvalue())}
    report = done(daemon, inputs, target="tensorrt")
    seconds = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    text, _ = advice(report)
    assert text and "float" in text
    rest = sum(seconds.values()) - seconds["advise"]
    assert seconds["advise"] <= 1.5 * rest  # other tests run beside it
