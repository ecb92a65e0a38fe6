# SPDX-License-Identifier: Apache-2.0
"""The spec's `rules` through the service; tests/golden/rules_* have the effect of each
rule."""

import json

import numpy as np
import onnx
import pytest

import nets
from service import problem

pytestmark = pytest.mark.shares_daemon
CONVS = ("stem/conv", "block/conv1", "block/conv2")


@pytest.fixture
def net(daemon):
    return daemon.upload("models", nets.block_net())


def reasons(document):
    return {row["name"]: row["reason"] for row in document["layers"]}


def plan(daemon, net, **spec):
    answer = daemon.post("/v1/plan", json={"model": net, "spec": spec})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_plan_cites_rules(daemon, net):
    document = plan(daemon, net)
    rules = {row["name"]: row["rules"] for row in document["layers"]}
    assert rules["stem/conv"] == ["T2", "T3", "T5", "T8"]
    assert rules["stem/relu"] == ["T10"]
    small = [w for w in document["warnings"] if w["rule"] == "T22"]
    assert [(w["code"], w["node"]) for w in small] == [("small_channels", "stem/conv")]
    assert all(name in small[0]["detail"] for name in CONVS)


def test_a_switched_rule_is_another_job(daemon, net):
    """The report shows the rule as it was set. A result without the rule is not reused
    for a job with it."""
    data = daemon.upload("datasets", nets.samples())
    members = {"model": net, "calibration": data}
    plain = daemon.submit(**members, spec={"evaluate": False})
    first = daemon.succeeded(plain)
    job = daemon.submit(**members, spec={"evaluate": False, "rules": {"T22": True}})
    document = daemon.succeeded(job)
    assert document["cached_from"] is None
    assert document["result"]["model"] != first["result"]["model"]
    report = daemon.report(job)
    assert {name: reasons(report)[name] for name in CONVS} == {
        name: "rule:T22" for name in CONVS}
    assert not [w for w in report["warnings"] if w["rule"] == "T22"]
    assert [w["code"] for w in daemon.report(plain)["warnings"] if w["rule"] == "T22"]
    frozen = json.loads(daemon.get(f"/v1/jobs/{job}/spec").content)
    for spec in (report["spec"], frozen):
        assert spec["rules"]["T22"] is True and spec["rules"]["T23"] is False


def test_every_rule_at_once(daemon, net):
    job = daemon.submit(model=net, calibration=daemon.upload("datasets", nets.samples()),
                        spec={"evaluate": False})
    daemon.succeeded(job)
    switched = daemon.report(job)["spec"]["rules"]
    assert len(switched) >= 10
    document = plan(daemon, net, rules={rule: not on for rule, on in switched.items()})
    assert reasons(document)["stem/conv"] == "rule:T22"
    assert reasons(document)["head/fc"] == "rule:T23"


@pytest.mark.parametrize("rules, pointer, code", [
    ({"T999": True}, "/rules/T999", "invalid_spec"),
    ({"t22": True}, "/rules/t22", "invalid_spec"),
    ({"T22": "on"}, "/rules/T22", "invalid_spec"),
    ({"T8": False}, "/rules/T8", "unsupported"),
])
def test_refused(daemon, net, rules, pointer, code):
    answer = daemon.post("/v1/plan", json={"model": net, "spec": {"rules": rules}})
    document = problem(answer, 422, code)
    assert document["errors"][0]["pointer"].endswith(pointer)


@pytest.mark.parametrize("weight, warned", [
    ("f = Cast <to = 1> (q) w = Mul (f, s)", True),
    ("f = Cast <to = 1> (q) g = Cast <to = 1> (z) d = Sub (f, g) "
     "e = Mul (d, s) w = Transpose (e)", True),
    ("f = Cast <to = 1> (h) w = Mul (f, s)", False),
    ("w = Mul (v, s)", False)])
@pytest.mark.parametrize("target", ["tensorrt", "onnxruntime"])
def test_a_model_quantized_by_hand(daemon, weight, warned, target):
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        net (float[n, 16] x) => (float[n, 16] y) {{ {weight} y = MatMul (x, w) }}""")
    integers = np.ones((16, 16))
    constants = {"q": np.int8(integers), "z": np.int8(integers), "v": np.float32(integers),
                 "h": np.float16(integers), "s": np.float32(0.01)}
    read = {name for node in model.graph.node for name in node.input}
    for name in read & constants.keys():
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.asarray(constants[name]), name))
    net = daemon.upload("models", model.SerializeToString())
    codes = [w["code"] for w in plan(daemon, net, target=target)["warnings"]]
    assert ("integer_weights" in codes) == warned
