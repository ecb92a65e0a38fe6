# SPDX-License-Identifier: Apache-2.0
"""The recipe of a spec: which rules it switches on, what decides where it does not, and what a
frozen spec says of it."""

import pytest

import nets
from service import Service, problem

RULES = ("C15", "C16", "C17")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One daemon for all tests of this file."""
    one = Service(tmp_path_factory.mktemp("qdqd"))
    yield one.start()
    one.stop()


@pytest.fixture(scope="module")
def inputs(daemon):
    return {"model": daemon.upload("models", nets.block_net()),
            "calibration": daemon.upload("datasets", nets.samples())}


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
    report, job = effective(daemon, inputs, target="onnxruntime",
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
    ({"recipe": "auto"}, "unsupported"),
])
def test_mistakes(daemon, inputs, spec, code):
    answer = daemon.post("/v1/plan", json={"model": inputs["model"], "spec": spec})
    assert problem(answer, 422, code)["errors"][0]["pointer"] == "/recipe"


def test_targets_state_their_recipe(daemon):
    rows = {row["name"]: row["recipe"] for row in daemon.get("/v1/targets").json()["targets"]}
    assert rows == {"tensorrt": "none", "onnxruntime": "auto"}
