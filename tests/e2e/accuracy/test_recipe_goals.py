# SPDX-License-Identifier: Apache-2.0
"""The members that the recipe `best` may choose besides layers in float, and its bounds of
size and latency."""

import io

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_recipe import daemon, done, harmed, left_by_recipe, worst  # noqa: F401, fixtures

NAMED = {"calibration": {"method": "mse", "max_samples": 0}, "equalize": False, "smooth": False,
         "bias_correction": False, "weights": {"rounding": "nearest"}, "rules": {"C7": True},
         "activations": {"dtype": "uint8"}}
OPEN = {"method", "C7", "bias_correction", "rounding", "equalize", "smooth", "activations"}


def codes(report):
    return [w["code"] for w in report["warnings"]]


def details(report, code):
    return " ".join(w["detail"] for w in report["warnings"] if w["code"] == code)


def steps(report):
    return {step["step"] for step in report["recipe"]}


def skewed_net(wide=64, seed=3):
    """Two dense layers behind a normalization whose factors differ by 2^8: smoothing takes the
    difference into the weights."""
    rng = np.random.default_rng(seed)
    factors = np.exp2(rng.permutation(np.linspace(-4, 4, wide))).astype(np.float32)
    first = (rng.normal(size=(wide, wide)) / np.sqrt(wide)).astype(np.float32)
    weights = {"factors": factors, "shift": np.zeros(wide, np.float32),
               "w0": first / factors[:, None],
               "w1": (rng.normal(size=(wide, wide)) / np.sqrt(wide)).astype(np.float32)}
    nodes = [helper.make_node("LayerNormalization", ["x", "factors", "shift"], ["n"], name="norm"),
             helper.make_node("MatMul", ["n", "w0"], ["m"], name="dense0"),
             helper.make_node("MatMul", ["m", "w1"], ["y"], name="dense1")]
    shape = ["n", wide]
    graph = helper.make_graph(
        nodes, "skewed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    samples = io.BytesIO()
    np.savez(samples, x=rng.normal(size=(48, wide)).astype(np.float32))
    return model.SerializeToString(), samples.getvalue()


LAYERS = [{"class": "MatMul"}]  # they are too small to be worth it by themselves


@pytest.fixture(scope="module")
def skewed(daemon):
    model, data = skewed_net()
    return {"model": daemon.upload("models", model),
            "calibration": daemon.upload("datasets", data)}


def test_what_costs_nothing_at_run_time_comes_first(daemon, skewed):
    _, plain, _ = done(daemon, skewed, recipe="none", layers=LAYERS)
    goal = {"min_sqnr_db": worst(plain) + 6}
    job, report, model = done(daemon, skewed, recipe=goal, layers=LAYERS)
    assert report["spec"]["recipe"] == goal and "smooth" not in report["spec"]
    kept = [step for step in report["recipe"] if step["kept"]]
    assert kept[0]["step"] == "start" and kept[-1]["sqnr_db"] >= goal["min_sqnr_db"]
    assert kept[-1]["spec"]["smooth"] == {"alpha": 0.5}
    assert not left_by_recipe(report) and "recipe_goal_missed" not in codes(report)
    assert all(step["samples"] > 0 and step["size_ratio"] > 0 and step["latency_ratio"] is None
               for step in report["recipe"])
    # a quarter of the samples was kept aside, and the frozen spec states the outcome
    assert report["calibration"]["samples"] == 36
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["recipe"] == "none" and frozen["smooth"] == {"alpha": 0.5}
    assert frozen["calibration"]["max_samples"] == 36
    assert done(daemon, skewed, **frozen)[2] == model
    assert done(daemon, skewed, recipe=goal, layers=LAYERS)[2] == model


def test_what_the_spec_names_is_not_changed(daemon, harmed):
    job, report, _ = done(daemon, harmed, recipe={"min_sqnr_db": 30}, **NAMED)
    assert not steps(report) & OPEN and "dense2" in left_by_recipe(report)
    assert report["calibration"]["samples"] == 48
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["calibration"]["method"] == "mse" and not frozen["equalize"]
    assert "smooth" not in frozen and "bias_correction" not in frozen
    assert frozen["rules"]["C7"] is True


@pytest.mark.parametrize("bound, left, met", [(0.5, ["dense2"], True), (0.3, [], True),
                                              (0.1, [], False)])
def test_a_bound_of_the_size(daemon, harmed, bound, left, met):
    recipe = {"max_size_ratio": bound}
    job, report, model = done(daemon, harmed, recipe=recipe, **NAMED)
    ratio = report["summary"]["size_after"] / report["summary"]["size_before"]
    assert left_by_recipe(report) == left and report["spec"]["recipe"] == recipe
    assert (ratio <= bound) == met
    assert ("recipe_goal_missed" in codes(report)) == (not met)
    if not met:
        assert report["summary"]["verdict"] == "poor"
        assert f"the best that was found has {ratio:.4g} of the size" in \
            details(report, "recipe_goal_missed")
    assert done(daemon, harmed, **daemon.get(f"/v1/jobs/{job}/spec").json())[2] == model


def test_bounds_and_a_goal_together(daemon, harmed):
    _, report, _ = done(daemon, harmed, recipe={"min_sqnr_db": 30, "max_size_ratio": 0.3}, **NAMED)
    assert report["summary"]["size_after"] <= 0.3 * report["summary"]["size_before"]
    assert "the goal of the recipe was not reached" in details(report, "recipe_goal_missed")
    assert report["summary"]["verdict"] == "poor" and "poor" in codes(report)


@pytest.mark.parametrize("bound", [1000, 0.001])
def test_a_bound_of_the_latency(daemon, harmed, bound):
    recipe = {"max_latency_ratio": bound}
    spec = {"target": "onnxruntime", "recipe": recipe, "profile": {"runs": 3}, **NAMED}
    jobs = [daemon.submit(**harmed, spec=spec) for _ in range(2)]
    for job in jobs:
        assert daemon.succeeded(job)["cached_from"] is None
    assert jobs[0] != jobs[1]
    report = daemon.report(jobs[0])
    assert all(step["latency_ratio"] > 0 for step in report["recipe"])
    assert ("recipe_goal_missed" in codes(report)) == (bound < 1)
    if bound < 1:
        assert report["summary"]["verdict"] == "poor"
    frozen = daemon.get(f"/v1/jobs/{jobs[0]}/spec").json()
    assert frozen["recipe"] == "none" and "profile" not in frozen
    again = daemon.submit(**harmed, spec=frozen, fresh=True)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(jobs[0])
