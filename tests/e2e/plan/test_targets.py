# SPDX-License-Identifier: Apache-2.0
"""The listed targets are those that a spec can name."""

import pytest

import nets
from service import problem

pytestmark = pytest.mark.shares_daemon


def plan(daemon, net, target):
    return daemon.post("/v1/plan", json={"model": net, "spec": {"target": target}})


def test_every_target_that_is_listed_makes_plans_by_its_rules(daemon):
    net = daemon.upload("models", nets.block_net())
    targets = daemon.get("/v1/targets").json()["targets"]
    assert [row["name"] for row in targets][:2] == ["tensorrt", "onnxruntime"]
    plans = {}
    for row in targets:
        answer = plan(daemon, net, row["name"])
        assert answer.status_code == 200, answer.text
        plans[row["name"]] = answer.json()["layers"]
        cited = {rule for layer in plans[row["name"]] for rule in layer["rules"]}
        assert cited and cited <= {rule["id"] for rule in row["rules"]}
    assert plans["tensorrt"] != plans["onnxruntime"]


def test_a_target_that_is_not_listed_is_refused(daemon):
    net = daemon.upload("models", nets.block_net())
    document = problem(plan(daemon, net, "tensorrt8"), 422, "invalid_spec")
    for row in daemon.get("/v1/targets").json()["targets"]:
        assert row["name"] in document["detail"]


def test_the_listing_has_the_defaults_of_the_spec(daemon):
    """The listing agrees with a job's frozen spec, in which every default is written out, also those
    that the effective spec leaves to a recipe."""
    net = daemon.upload("models", nets.block_net())
    data = daemon.upload("datasets", nets.samples())
    for row in daemon.get("/v1/targets").json()["targets"]:
        job = daemon.submit(model=net, calibration=data,
                            spec={"target": row["name"], "evaluate": False})
        daemon.succeeded(job)
        report = daemon.report(job)
        assert report["spec"]["target"] == row["name"]
        frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
        for member in ("weights", "activations"):
            told = {name: frozen[member][name] for name in row[member]}
            assert told == row[member]
        assert (report["kernels"] is not None) == row["integer_kernels"]
