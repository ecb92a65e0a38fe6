# SPDX-License-Identifier: Apache-2.0
"""The recipe of a spec: which rules it switches on, what decides where it does not, and what a
frozen spec says of it."""

import io

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from block_daemon import daemon, inputs  # noqa: F401, fixtures
from service import problem

RULES = ("C15", "C16", "C17")
# The times of another class of processor cannot be measured: the rules decide, and the literal
# arithmetic judges.
BY_RULES = {"host": "vnni" if judge.saturates() else "avx2"}


def effective(daemon, inputs, **spec):
    job = daemon.submit(**inputs, spec={"evaluate": False, **spec})
    daemon.succeeded(job)
    return daemon.report(job), job


@pytest.mark.parametrize("spec, recipe, on", [
    ({"target": "onnxruntime"}, "auto", True),
    ({"target": "onnxruntime", "recipe": "auto"}, "auto", True),
    ({"target": "onnxruntime", "recipe": "none"}, "none", False),
    ({"target": "onnxruntime", "activations": "none"}, "auto", False),
    ({"target": "onnxruntime", "activations": {"dtype": "int16"}}, "auto", False),
    ({"target": "onnxruntime", "search": {"min_sqnr_db": 3}, "evaluate": True}, "none", False),
    ({"target": "onnxruntime", "search": {"min_sqnr_db": 3}, "recipe": "none",
      "evaluate": True}, "none", False),
    ({"target": "tensorrt"}, "none", None),
    ({"target": "tensorrt", "recipe": "none"}, "none", None),
])
def test_the_rules_of_a_recipe(daemon, inputs, spec, recipe, on):
    report, job = effective(daemon, inputs, **spec)
    assert report["spec"]["recipe"] == recipe
    assert [report["spec"]["rules"].get(rule) for rule in RULES] == [on] * 3
    tables = None if on is None else recipe == "auto"
    assert report["spec"]["rules"].get("C18") == tables
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["recipe"] == "none"
    assert frozen["rules"] == report["spec"]["rules"]


def test_a_rule_that_is_named_is_not_changed(daemon, inputs):
    report, _ = effective(daemon, inputs, target="onnxruntime", rules={"C16": False})
    assert [report["spec"]["rules"][rule] for rule in RULES] == [True, False, True]
    report, _ = effective(daemon, inputs, target="onnxruntime", recipe="none",
                          rules={"C16": True})
    assert [report["spec"]["rules"][rule] for rule in RULES] == [False, True, False]


def test_the_frozen_and_the_effective_spec_repeat_the_bytes(daemon, inputs):
    # An entry keeps a layer in integers, so that there is something to repeat.
    report, job = effective(daemon, inputs, target="onnxruntime", **BY_RULES,
                            layers=[{"class": "Conv2D"}, {"class": "Add"}])
    assert any(row["reason"].startswith("rule:C15") for row in report["layers"])
    assert any(row["quantized_inputs"] for row in report["layers"])
    made = daemon.get(f"/v1/jobs/{job}/model").content
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    for more in ({"model": inputs["model"], "spec": frozen},
                 {**inputs, "spec": report["spec"], "fresh": True}):
        again = daemon.submit(**more)
        daemon.succeeded(again)
        assert daemon.get(f"/v1/jobs/{again}/model").content == made
        assert daemon.get(f"/v1/jobs/{again}/spec").json() == frozen


@pytest.mark.parametrize("spec, code", [
    ({"target": "onnxruntime", "recipe": "auto", "search": {"min_sqnr_db": 3}}, "invalid_spec"),
    ({"target": "onnxruntime", "recipe": "some"}, "invalid_spec"),
    ({"target": "onnxruntime", "recipe": None}, "invalid_spec"),
    ({"target": "onnxruntime", "recipe": {}}, "invalid_spec"),
    ({"target": "onnxruntime", "recipe": "best", "search": {"min_sqnr_db": 3}}, "invalid_spec"),
    ({"recipe": {"min_sqnr_db": 3}}, "unsupported"),
    ({"recipe": "auto"}, "unsupported"),
])
def test_mistakes(daemon, inputs, spec, code):
    answer = daemon.post("/v1/plan", json={"model": inputs["model"], "spec": spec})
    assert problem(answer, 422, code)["errors"][0]["pointer"] == "/recipe"


def test_targets_state_their_recipe(daemon):
    rows = {row["name"]: row["recipe"] for row in daemon.get("/v1/targets").json()["targets"]}
    assert rows == {"tensorrt": "none", "onnxruntime": "auto", "openvino": "auto",
                    "qnn": "auto"}


def harmed_net(layers=6, wide=256, harmed=2, seed=5):
    """Dense layers, before one of which three channels are scaled to 2000 times the others:
    its input has no integers that serve both."""
    rng = np.random.default_rng(seed)
    nodes, weights, x = [], [], "x"
    for i in range(layers):
        w = (rng.normal(size=(wide, wide)) * 1.4 / np.sqrt(wide)).astype(np.float32)
        if i == harmed:
            scale = np.ones(wide, np.float32)
            scale[:3] = 2000
            w[:3] /= 2000
            weights.append(numpy_helper.from_array(scale, "scale"))
            nodes.append(helper.make_node("Mul", [x, "scale"], ["scaled"]))
            x = "scaled"
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{i}"], [f"y{i}"], name=f"dense{i}"))
        x = f"y{i}"
    shape = ["n", wide]
    graph = helper.make_graph(
        nodes, "harmed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    samples = io.BytesIO()
    np.savez(samples, x=rng.normal(size=(48, wide)).astype(np.float32))
    return model.SerializeToString(), samples.getvalue()


@pytest.fixture(scope="module")
def harmed(daemon):
    model, samples = harmed_net()
    return {"model": daemon.upload("models", model),
            "calibration": daemon.upload("datasets", samples)}


def done(daemon, inputs, **spec):
    job = daemon.submit(**inputs, spec={"target": "onnxruntime", **spec}, fresh=True)
    daemon.succeeded(job)
    return job, daemon.report(job), daemon.get(f"/v1/jobs/{job}/model").content


def test_the_worst_layers_get_16_bits(daemon, harmed):
    """For target qnn, whose layers take activations of 8 and of 16 bits side by side."""
    job, report, bytes_ = done(daemon, harmed, target="qnn")
    steps = report["recipe"]
    assert [step["step"] for step in steps[:3]] == ["start", "activations", "widths"]
    assert steps[0]["sqnr_db"] < 5 and steps[1]["sqnr_db"] > 20
    kept = [step for step in steps if step["kept"]][-1]
    assert kept["step"] == "widths" and kept["sqnr_db"] > steps[1]["sqnr_db"] - 0.5
    (entry,) = kept["spec"]["layers"]
    assert entry["activations"]["dtype"] == "uint16" and entry["name"] == ["@scaled"]
    widths = {layer["name"]: layer["input_dtype"] for layer in report["layers"]}
    assert widths["@scaled"] == "uint16" and widths["dense0"] == widths["dense5"] == "uint8"
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    again = daemon.submit(**harmed, spec=frozen, fresh=True)
    daemon.succeeded(again)
    assert daemon.get(f"/v1/jobs/{again}/model").content == bytes_


def worst(report):
    evaluation = report["evaluation"]
    return min(row["sqnr_db"] for row in (evaluation["deployed"] or evaluation)["outputs"])


def left_by_recipe(report):
    return [row["name"] for row in report["layers"] if row["reason"] == "recipe"]


def test_a_layer_that_integers_would_wreck_stays_in_float(daemon, harmed):
    _, plain, _ = done(daemon, harmed, recipe="none", **BY_RULES)
    assert worst(plain) < 10 and plain["recipe"] is None
    job, report, model = done(daemon, harmed, **BY_RULES)
    assert left_by_recipe(report) == ["dense2"]
    assert worst(report) >= 25
    start, *steps = report["recipe"]
    assert start["step"] == "start" and start["spec"] == {} and start["kept"]
    best = [step for step in steps if step["kept"]][-1]
    assert best["spec"]["layers"] == [{"name": ["dense2"], "quantize_input": False,
                                       "quantize_weight": False}]
    # the same job gives the same bytes, and so does its frozen spec, which has no recipe
    assert done(daemon, harmed, **BY_RULES)[2] == model
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["recipe"] == "none"
    _, again, same = done(daemon, harmed, **frozen)
    assert same == model and again["recipe"] is None
    # the spec of the best step says the same
    _, pasted, _ = done(daemon, harmed, recipe="none", calibration={"max_samples": 36},
                        rules={rule: True for rule in RULES}, **BY_RULES,
                        **best["spec"])
    assert worst(pasted) == pytest.approx(worst(report), abs=0.01)


@pytest.mark.parametrize("recipe", ["best", {"min_sqnr_db": 30}, {"min_top1_agreement": 0.9}])
def test_a_recipe_with_a_goal(daemon, harmed, recipe):
    job, report, model = done(daemon, harmed, recipe=recipe)
    assert report["spec"]["recipe"] == recipe
    best = [step for step in report["recipe"] if step["kept"]][-1]
    # smoothing brings 26 dB, and is cheaper than a layer in float
    if recipe != {"min_top1_agreement": 0.9}:
        assert best["spec"]["smooth"] == {"alpha": 0.5}
        assert bool(left_by_recipe(report)) == ("layers" in best["spec"])
    if recipe != {"min_top1_agreement": 0.9}:
        assert best["sqnr_db"] >= (25 if recipe == "best" else 30)
    assert "recipe_goal_missed" not in {w["code"] for w in report["warnings"]}
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["recipe"] == "none"
    assert done(daemon, harmed, **frozen)[2] == model


def test_the_noisiest_layer_is_tried_first(daemon, harmed):
    """By the histograms of the calibration, which cost no inference. Everything else is as loud
    as its noise, so the layers are tried alone: the first step has all others in float."""
    _, report, _ = done(daemon, harmed, **BY_RULES)
    first = report["recipe"][1]
    assert first["step"] == "alone"
    assert first["spec"]["layers"][0]["name"] == ["dense0", "dense1", "dense3", "dense4", "dense5"]


def test_a_part_of_the_samples_is_kept_aside(daemon, harmed):
    """A quarter of the 48 samples, unless the spec says how many to calibrate with."""
    job, report, model = done(daemon, harmed)
    assert report["calibration"]["samples"] == 36
    assert "max_samples" not in report["spec"]["calibration"]
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["calibration"]["max_samples"] == 36
    assert done(daemon, harmed, **frozen)[2] == model
    for named in (48, 20):
        job, report, _ = done(daemon, harmed, calibration={"max_samples": named})
        assert report["calibration"]["samples"] == named
        assert report["spec"]["calibration"]["max_samples"] == named
        spec = daemon.get(f"/v1/jobs/{job}/spec").json()
        assert spec["calibration"]["max_samples"] == named
    _, report, _ = done(daemon, harmed, recipe="none")
    assert report["calibration"]["samples"] == 48


def test_a_goal_out_of_reach_is_said(daemon, harmed):
    """One sample is judged for each candidate, so few choices are tried."""
    _, report, _ = done(daemon, harmed, recipe={"min_sqnr_db": 500})
    kept = [step["sqnr_db"] for step in report["recipe"] if step["kept"]]
    assert report["spec"]["recipe"] == {"min_sqnr_db": 500}
    missed = "recipe_goal_missed" in {w["code"] for w in report["warnings"]}
    assert missed == (kept[-1] is not None and kept[-1] < 500)


def test_a_recipe_does_not_change_what_the_spec_names(daemon, harmed):
    for entry in ({"name": "dense2"}, {"match": "dense?"}, {"class": "MatMul"}):
        _, report, _ = done(daemon, harmed, layers=[entry])
        assert "dense2" not in left_by_recipe(report)
        assert worst(report) < 10


def test_a_recipe_is_bounded_by_inferences(daemon, harmed):
    _, report, _ = done(daemon, harmed, calibration={"max_samples": 8},
                        evaluate={"samples": 8}, **BY_RULES)
    # at most twice 8 + 8 samples, by 4 for each candidate and for the float model
    assert len(report["recipe"]) <= 7
    _, report, _ = done(daemon, harmed, calibration={"max_samples": 8}, evaluate={"samples": 8})
    # as many, and 4 more for what the search found, whose time is measured then
    assert sum(step["samples"] for step in report["recipe"]) <= 36
