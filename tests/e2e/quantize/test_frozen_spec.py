# SPDX-License-Identifier: Apache-2.0
"""GET /v1/jobs/{id}/spec: a job with this spec makes the same bytes."""

import hashlib
import io
import json
import subprocess

import numpy as np
import onnx
import pytest

import judge
import nets
from service import DATA, QUANTIZE, VERSION, eventually, problem
from test_gates import MISSED, submit

OLD = DATA / "frozen_0.1"


def frozen(daemon, job):
    """Returns the frozen spec's text."""
    answer = daemon.get(f"/v1/jobs/{job}/spec")
    assert answer.status_code == 200, answer.text
    return answer.content


def metadata(data):
    return {p.key: p.value for p in onnx.load_model_from_string(data).metadata_props}


def without_verdict(result):
    """Returns a job's result less the verdict, which a job without data does not have."""
    return {**result, "summary": {**result["summary"], "verdict": None, "judged_by": None}}


SPECS = {
    "default": {},
    "by tensor": {"weights": {"granularity": "tensor"}, "evaluate": False},
    "partial": {"mode": "partial", "layers": [{"class": "Add"}, {"match": "stem/*"}]},
    "integer weights": {"weights": {"storage": "dq", "method": "mse"}},
    "equalized": {"equalize": True},
    "entropy": {"calibration": {"method": "entropy", "batch": 2}},
    "case": {"cases": ["residual"], "layer_support": [
        {"class": "GlobalMaxPool", "kind": "non_weighted"}]},
    "rules": {"rules": {"T11": True, "T14": True, "T26": False}},
    "some given": {"calibration": {"ranges": {"x": [-0.1, 0.3]}, "max_samples": 3}},
    "none found": {"mode": "partial", "layers": [{"name": "stem/conv"}],
                   "calibration": {"ranges": {"x": [-1, 1], "stem/relu": [0, 1]}}},
}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("name", SPECS)
def test_same_bytes_without_data(daemon, name):
    job = submit(daemon, SPECS[name])
    document = daemon.succeeded(job)
    text = frozen(daemon, job)
    spec = json.loads(text)
    # It contains the spec that was sent, every default, and the report's ranges.
    assert {k: spec[k] for k in ("mode", "target", "device", "layers", "on_unmatched")}
    report = daemon.report(job)
    effective = report["spec"]
    for member in set(effective) - {"calibration"}:
        assert spec[member] == effective[member]
    ranges = spec["calibration"]["ranges"]
    assert ranges.items() >= {t["name"]: [t["min"], t["max"]]
                              for t in report["tensors"]}.items()
    given = SPECS[name].get("calibration", {}).get("ranges", {})
    assert ranges.items() >= given.items()
    # Again, without data.
    again = daemon.submit(model=document["model"], spec=spec)
    result = daemon.succeeded(again)["result"]
    assert without_verdict(result) == without_verdict(document["result"])
    assert frozen(daemon, again) == text
    if name != "by tensor":
        assert report["evaluation"] and daemon.report(again)["evaluation"] is None


def test_random_samples(daemon):
    model = daemon.upload("models", nets.block_net())
    job = daemon.submit(model=model, spec={"calibration": {
        "random_samples": 4, "dims": {"n": 1}}})
    document = daemon.succeeded(job)
    spec = json.loads(frozen(daemon, job))
    assert spec["calibration"]["random_samples"] == 4
    assert "source" not in spec["calibration"]
    again = daemon.submit(model=model, spec=spec)
    assert daemon.succeeded(again)["result"] == document["result"]
    assert all(t["method"] == "given" for t in daemon.report(again)["tensors"])


def test_metadata(daemon):
    job = submit(daemon, {})
    document = daemon.succeeded(job)
    data = daemon.result(job)
    text = frozen(daemon, job)
    told = metadata(data)
    assert told["qdqd.spec"] == "sha256:" + hashlib.sha256(text).hexdigest()
    assert told["qdqd.source_model"] == document["model"]
    assert told["qdqd.calibration"] == document["calibration"]
    assert json.loads(text)["calibration"]["source"] == document["calibration"]


def test_other_data_for_evaluation(daemon):
    """Ranges keep their source, whatever data a later job is evaluated with."""
    job = submit(daemon, {})
    document = daemon.succeeded(job)
    spec = json.loads(frozen(daemon, job))
    others = daemon.upload("datasets", other_samples())
    again = daemon.submit(model=document["model"], calibration=others, spec=spec)
    assert daemon.succeeded(again)["result"] == document["result"]
    assert daemon.report(again)["evaluation"]["samples"] == 4
    # When a range had to be calibrated, the metadata names the data.
    del spec["calibration"]["ranges"]["x"]
    third = daemon.submit(model=document["model"], calibration=others, spec=spec)
    daemon.succeeded(third)
    assert metadata(daemon.result(third))["qdqd.calibration"] == others


def other_samples():
    file = io.BytesIO()
    np.savez(file, x=np.random.default_rng(9).normal(0, 1, [4, *nets.SHAPE]).astype(np.float32))
    return file.getvalue()


def test_evaluation_as_asked(daemon):
    job = submit(daemon, {"evaluate": {"samples": 2}})
    document = daemon.succeeded(job)
    spec = json.loads(frozen(daemon, job))
    assert spec["evaluate"] == {"samples": 2}
    error = daemon.ended(daemon.submit(model=document["model"], spec=spec))["error"]
    assert error["code"] == "no_calibration"
    again = daemon.submit(model=document["model"], calibration=document["calibration"],
                          spec=spec)
    assert daemon.succeeded(again)["result"] == document["result"]


def test_of_a_refused_model(daemon):
    """A job whose model was rejected has a frozen spec."""
    job = submit(daemon, {"accept": MISSED})
    error = daemon.ended(job)["error"]
    spec = json.loads(frozen(daemon, job))
    assert spec["accept"] == MISSED
    again = daemon.ended(submit(daemon, spec))
    assert again["error"]["model"] == error["model"]


def test_only_of_jobs_that_ran(held, service):
    """A job that has not run has no frozen spec."""
    one = service(**held)
    job = submit(one, {})
    answer = one.get(f"/v1/jobs/{job}/spec")
    problem(answer, 409, "not_finished")
    assert "Retry-After" in answer.headers
    one.post(f"/v1/jobs/{job}/cancel")
    problem(one.get(f"/v1/jobs/{job}/spec"), 409, "cancelled")
    problem(one.get("/v1/jobs/none/spec"), 404, "not_found")


def test_wait_and_failure(daemon):
    job = submit(daemon, {})
    assert daemon.get(f"/v1/jobs/{job}/spec?wait=60").status_code == 200
    bad = daemon.submit(model=daemon.upload("models", nets.block_net()), spec={})
    daemon.ended(bad)
    problem(daemon.get(f"/v1/jobs/{bad}/spec"), 409, "failed")


def test_restart_and_deletion(service):
    one = service(retention_leftovers=1)
    job = submit(one, {})
    one.succeeded(job)
    text = frozen(one, job)
    one.kill()
    one.start()
    assert frozen(one, job) == text
    name = hashlib.sha256(text).hexdigest()
    assert any(name in stored for stored in one.stored_files())
    assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    eventually(lambda: not any(name in stored for stored in one.stored_files()))


def test_qdq_runs_it(daemon, tmp_path):
    job = submit(daemon, {})
    daemon.succeeded(job)
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "frozen.json").write_bytes(frozen(daemon, job))
    done = subprocess.run(
        [*QUANTIZE, "net.onnx", "--spec", "frozen.json"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    data = (tmp_path / "net.int8.onnx").read_bytes()
    judge.load(data)
    assert data == daemon.result(job)


# --- frozen specs of an old release ----------------------------------------------------

def version_entry(version):
    """Returns the bytes of the metadata `qdqd.version` in a model's file."""
    key, text = b"qdqd.version", version.encode()
    pair = b"\n%c%b\x12%c%b" % (len(key), key, len(text), text)
    return b"r%c%b" % (len(pair), pair)


@pytest.mark.parametrize("name", sorted(json.loads((OLD / "digests.json").read_text())))
def test_a_frozen_spec_of_version_0_1_gives_the_same_bytes(daemon, name):
    """All but those of the version in the metadata."""
    text = (OLD / f"{name}.json").read_bytes()
    model = daemon.upload("models", (OLD / "block_net.onnx").read_bytes())
    job = daemon.submit(model=model, spec=json.loads(text))
    daemon.succeeded(job)
    made = daemon.get(f"/v1/jobs/{job}/model").content
    digests = json.loads((OLD / "digests.json").read_text())
    assert made.count(version_entry(VERSION)) == 1
    made = made.replace(version_entry(VERSION), version_entry("0.1.0"))
    assert hashlib.sha256(made).hexdigest() == digests[name]
    assert daemon.get(f"/v1/jobs/{job}/spec").content == text
    assert daemon.report(job)["host"]["name"] is None


@pytest.mark.shares_daemon
@pytest.mark.parametrize("target, later", [("onnxruntime", ["C19", "C20"]),
                                           ("openvino", ["V14", "V15", "V19"])])
def test_rules_that_are_younger_than_a_frozen_spec_are_off(daemon, target, later):
    """A version without these rules has not stated them, and its bytes stay as they were."""
    spec = {"target": target, "recipe": "none", "evaluate": False}
    first = submit(daemon, spec)
    daemon.succeeded(first)
    text = json.loads(frozen(daemon, first))
    off = {**text, "rules": {**text["rules"], **dict.fromkeys(later, False)}}
    old = {**text, "rules": {id: on for id, on in text["rules"].items() if id not in later}}
    assert all(text["rules"][id] for id in later)
    made = []
    for one in (old, off):
        job = submit(daemon, one)
        daemon.succeeded(job)
        answer = json.loads(frozen(daemon, job))
        assert answer["rules"] == one["rules"]
        model = onnx.load_model_from_string(daemon.result(job))
        del model.metadata_props[:]
        made.append(model.SerializeToString())
    assert made[0] == made[1]
