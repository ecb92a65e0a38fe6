# SPDX-License-Identifier: Apache-2.0
"""accept: a model that misses a gate is not handed out."""

import hashlib
import io
import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
import nets
from service import QUANTIZE, eventually, problem

pytestmark = pytest.mark.shares_daemon
REACHED = {"min_sqnr_db": 5, "min_cosine": 0.5, "max_abs_error": 1e6,
           "min_top1_agreement": 0}
MISSED = {"min_sqnr_db": 200}


def two_outputs():
    """Returns a Gemm and its data. Outputs are the Gemm's own, a single number, which has
    no top-1, and an index."""
    random = np.random.default_rng(3)
    weight = random.normal(0, 1, [8, 4]).astype(np.float32)
    nodes = [helper.make_node("Gemm", ["x", "w"], ["wide"], "gemm"),
             helper.make_node("ReduceSum", ["wide", "axes"], ["one"], "sum", keepdims=1),
             helper.make_node("ArgMax", ["wide"], ["best"], "best", axis=1)]
    outputs = [helper.make_tensor_value_info("wide", TensorProto.FLOAT, ["n", 4]),
               helper.make_tensor_value_info("one", TensorProto.FLOAT, ["n", 1]),
               helper.make_tensor_value_info("best", TensorProto.INT64, ["n", 1])]
    model = helper.make_model(helper.make_graph(
        nodes, "two", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        outputs, [numpy_helper.from_array(weight, "w"),
                  numpy_helper.from_array(np.array([1], np.int64), "axes")]),
        opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    file = io.BytesIO()
    np.savez(file, x=random.normal(0, 1, [16, 8]).astype(np.float32))
    return model.SerializeToString(), file.getvalue()


def submit(daemon, spec, model=None, data=None):
    return daemon.submit(model=daemon.upload("models", model or nets.block_net()),
                         calibration=daemon.upload("datasets", data or nets.samples()),
                         spec=spec)


def refused(daemon, job):
    """Checks a job whose model was rejected, and returns its error."""
    document = daemon.ended(job)
    assert document["state"] == "failed"
    assert document["result"] is None
    error = document["error"]
    assert (error["code"], error["status"]) == ("accuracy", 409)
    told = problem(daemon.get(f"/v1/jobs/{job}/model"), 409, "accuracy")
    assert told == error
    # The rejected model can be downloaded by its id, and the report describes it.
    data = daemon.get("/v1/models/" + error["model"]).content
    assert "sha256:" + hashlib.sha256(data).hexdigest() == error["model"]
    judge.load(data)
    report = daemon.report(job)
    assert report["summary"]["size_after"] == len(data)
    assert report["evaluation"]["missed"]
    return error


def test_reached(daemon):
    job = submit(daemon, {"accept": REACHED})
    assert daemon.succeeded(job)["result"]["model"]
    judge.load(daemon.result(job))
    report = daemon.report(job)
    assert report["evaluation"]["missed"] == []
    assert report["spec"]["accept"] == REACHED


def test_missed(daemon):
    job = submit(daemon, {"accept": MISSED})
    error = refused(daemon, job)
    (measured,) = daemon.report(job)["evaluation"]["outputs"]
    assert "'logits'" in error["detail"] and "at least 200" in error["detail"]
    assert f"sqnr_db {measured['sqnr_db']:.9g}" in error["detail"]
    assert [place["pointer"] for place in error["errors"]] == ["/accept/min_sqnr_db"]
    assert daemon.report(job)["evaluation"]["missed"] == [
        {"output": "logits", "gate": "min_sqnr_db", "bound": 200,
         "value": measured["sqnr_db"]}]


@pytest.mark.parametrize("gate", ["min_sqnr_db", "min_cosine", "max_abs_error",
                                  "min_top1_agreement"])
def test_a_bound_is_reached_by_itself(daemon, gate):
    """A bound equal to the measured figure is reached; the next larger number is missed.
    """
    figure = gate.removeprefix("min_")
    job = submit(daemon, {})
    daemon.succeeded(job)
    (measured,) = daemon.report(job)["evaluation"]["outputs"]
    bound = measured[figure]
    assert daemon.ended(submit(daemon, {"accept": {gate: bound}}))["state"] == "succeeded"
    beyond = np.nextafter(bound, -np.inf if figure == gate else np.inf)
    if gate != "min_top1_agreement" or beyond <= 1:
        refused(daemon, submit(daemon, {"accept": {gate: beyond}}))


def test_several_missed(daemon):
    error = refused(daemon, submit(daemon, {"accept": {
        "min_sqnr_db": 200, "min_cosine": 1, "max_abs_error": 0}}))
    assert "2 more missed" in error["detail"]


def test_by_output(daemon):
    model, data = two_outputs()
    gate = {"min_sqnr_db": 5, "outputs": {"one": {"min_sqnr_db": 150}}}
    error = refused(daemon, submit(daemon, {"accept": gate}, model, data))
    assert [p["pointer"] for p in error["errors"]] == ["/accept/outputs/one/min_sqnr_db"]
    # An output's own gate replaces the gate for all, whichever is stricter.
    gate = {"min_sqnr_db": 150, "outputs": {"one": {}, "wide": {"min_sqnr_db": 5}}}
    daemon.succeeded(submit(daemon, {"accept": gate}, model, data))


def test_no_such_figure(daemon):
    """A single number has no top-1, so a bound on it is missed, and the error says so."""
    model, data = two_outputs()
    job = submit(daemon, {"accept": {"min_top1_agreement": 0}}, model, data)
    error = refused(daemon, job)
    assert "'one' has no top1_agreement" in error["detail"]
    assert "fewer than two values" in error["detail"]
    (missed,) = daemon.report(job)["evaluation"]["missed"]
    assert missed["value"] is None
    gate = {"min_top1_agreement": 0, "outputs": {"one": {}}}
    daemon.succeeded(submit(daemon, {"accept": gate}, model, data))


@pytest.mark.parametrize("name,code", [("logit", "unmatched"), ("best", "invalid_spec")])
def test_wrong_output(daemon, name, code):
    model, data = two_outputs()
    spec = {"accept": {"outputs": {name: {"min_cosine": 0.5}}}}
    error = daemon.ended(submit(daemon, spec, model, data))["error"]
    assert error["code"] == code and "model" not in error
    assert error["errors"][0]["pointer"] == "/accept/outputs/" + name
    plan = daemon.post("/v1/plan", json={"model": daemon.upload("models", model),
                                         "spec": spec})
    problem(plan, 422, code)


def test_unknown_output_warned_of(daemon):
    job = submit(daemon, {"on_unmatched": "warn",
                          "accept": {"outputs": {"logit": {"min_cosine": 1}}}})
    daemon.succeeded(job)
    assert [w["node"] for w in daemon.report(job)["warnings"]
            if w["code"] == "unmatched"] == ["logit"]


def test_every_bound_is_in_the_report(daemon):
    """Those that are met and those that are missed, as asked and as measured; the bound of
    the whole model misses alone, and the outputs' list stays empty."""
    accept = {"min_sqnr_db": 5, "max_size_ratio": 0.01}
    job = submit(daemon, {"accept": accept})
    error = daemon.ended(job)["error"]
    assert error["code"] == "accuracy"
    assert [p["pointer"] for p in error["errors"]] == ["/accept/max_size_ratio"]
    report = daemon.report(job)
    summary = report["summary"]
    ratio = summary["size_after"] / summary["size_before"]
    assert f"the model has size_ratio {ratio:.9g}, and at most 0.01" in error["detail"]
    (measured,) = report["evaluation"]["outputs"]
    assert report["gates"] == [
        {"output": "logits", "name": "min_sqnr_db", "wanted": 5,
         "measured": measured["sqnr_db"], "met": True},
        {"output": None, "name": "max_size_ratio", "wanted": 0.01,
         "measured": ratio, "met": False}]
    assert report["evaluation"]["missed"] == []
    assert summary["verdict"] == "poor"
    # It is reached by itself, and needs neither data nor an evaluation.
    daemon.succeeded(submit(daemon, {"accept": {"max_size_ratio": ratio}}))
    job = daemon.submit(model=daemon.upload("models", nets.block_net()), spec={
        "activations": "none", "evaluate": False, "accept": {"max_size_ratio": 10}})
    daemon.succeeded(job)
    (gate,) = daemon.report(job)["gates"]
    assert gate["met"] and gate["output"] is None


def verdict_of(evaluation):
    """The verdict, computed from the figures of a report without slices."""
    few = evaluation["samples"] < 16
    for verdict, sqnr, top1, p5 in ("good", 25, 0.99, 15), ("fair", 15, 0.95, 5):
        if all((o["sqnr_db"] is None or o["sqnr_db"] >= sqnr) and
               (o["samples"]["p5_db"] is None or o["samples"]["p5_db"] >= p5) and
               (o["top1_agreement"] is None or o["top1_agreement"] >= top1)
               for o in evaluation["outputs"]):
            return "fair" if few else verdict
    return "poor"


@pytest.mark.parametrize("spec", [
    {}, {"weights": {"dtype": "int4"}, "opset": "auto"}, {"evaluate": False}],
    ids=["int8", "int4", "none"])
def test_verdict(daemon, spec):
    answer = daemon.quantize(nets.block_net(), nets.samples(), spec)
    assert answer.status_code == 200, answer.text
    job = answer.headers["Location"].split("/")[-1]
    report = daemon.report(job)
    evaluation = report["evaluation"]
    wanted = evaluation and verdict_of(evaluation)
    assert report["summary"]["verdict"] == wanted
    assert daemon.job(job)["result"]["summary"]["verdict"] == wanted
    judged_by = "literal" if wanted else None
    assert daemon.job(job)["result"]["summary"]["judged_by"] == judged_by
    assert answer.headers.get("Qdqd-Verdict") == wanted
    markdown = daemon.get(f"/v1/jobs/{job}/report", headers={"Accept": "text/markdown"})
    assert f"| {wanted or '-'} |" in markdown.text.split("## ")[1]
    plan = daemon.post("/v1/plan", json={
        "model": daemon.upload("models", nets.block_net()), "spec": spec}).json()
    assert plan["summary"]["verdict"] is None


def test_without_an_evaluation(daemon):
    model = daemon.upload("models", nets.block_net())
    job = daemon.submit(model=model, spec={"accept": REACHED})
    error = daemon.ended(job)["error"]
    assert error["code"] == "no_calibration"
    assert error["errors"][0]["pointer"] == "/accept"
    problem(daemon.get(f"/v1/jobs/{job}/report"), 409, "failed")
    answer = daemon.post("/v1/jobs", json={
        "model": model, "spec": {"accept": REACHED, "evaluate": False}})
    document = problem(answer, 422, "invalid_spec")
    assert document["errors"][0]["pointer"] == "/accept"


def test_one_shot(daemon):
    answer = daemon.quantize(nets.block_net(), nets.samples(), {"accept": MISSED})
    document = problem(answer, 409, "accuracy")
    assert answer.headers["Qdqd-Verdict"] == "poor"
    job = answer.headers["Location"].split("/")[-1]
    assert refused(daemon, job) == document
    answer = daemon.quantize(nets.block_net(), nets.samples(), {"accept": REACHED})
    assert answer.status_code == 200
    judge.load(answer.content)


def test_restart_and_deletion(service):
    one = service(retention_leftovers=1)
    job = submit(one, {"accept": MISSED})
    before = one.ended(job)
    report = one.report(job)
    refused(one, job)
    one.kill()
    one.start()
    assert one.job(job) == before
    assert one.report(job) == report
    error = refused(one, job)
    for kind in ("model", "calibration"):
        path = {"model": "models", "calibration": "datasets"}[kind]
        assert one.request("DELETE", f"/v1/{path}/{before[kind]}").status_code == 204
    assert len(one.stored_files()) >= 2
    assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    problem(one.get("/v1/models/" + error["model"]), 404, "not_found")
    eventually(lambda: one.stored_files() == [])


# --- qdq -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gate,status", [(REACHED, 0), (MISSED, 1)])
def test_qdq(tmp_path, gate, status):
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    (tmp_path / "spec.json").write_text(json.dumps({"accept": gate}))
    done = subprocess.run(
        [*QUANTIZE, "net.onnx", "--calibration", "data.npz",
         "--spec", "spec.json", "--report", "report.json"], cwd=tmp_path,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    left = {p.name for p in tmp_path.iterdir()} - {"net.onnx", "data.npz", "spec.json"}
    report = json.loads((tmp_path / "report.json").read_text())
    if status == 0:
        assert left == {"report.json", "net.int8.onnx"}
        assert report["evaluation"]["missed"] == []
        assert f"\n  verdict: {report['summary']['verdict']}, by the literal" in done.stdout
        for gate in report["gates"]:
            assert gate["met"] and f"{gate['measured']:.6g}" in done.stdout
        return
    assert left == {"report.json"}
    assert [m["gate"] for m in report["evaluation"]["missed"]] == ["min_sqnr_db"]
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("qdq: accuracy: output 'logits' has sqnr_db ")
    assert "at least 200 is asked for" in last and "/accept/min_sqnr_db" in last
    assert done.stdout == ""
