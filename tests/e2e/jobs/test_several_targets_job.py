# SPDX-License-Identifier: Apache-2.0
"""A job with several targets: a result for each, one life, one comparison."""

import hashlib
import subprocess

import pytest

from service import DATA, FEW_SAMPLES, QUANTIZE, Service, eventually, problem

TARGETS = ["tensorrt", "onnxruntime", "openvino", "qnn"]
SPEC = {"targets": TARGETS, "recipe": "none"}


def by_target(job):
    return {row["target"]: row for row in job["targets"]}


def path(job, target, what="model"):
    return f"/v1/jobs/{job}/targets/{target}/{what}"


def submit(daemon, **members):
    return daemon.submit_glyphs(**{"spec": SPEC, "fresh": True, **members})


@pytest.mark.shares_daemon
def test_each_result_is_that_of_a_job_for_its_target(daemon, tmp_path):
    """The same bytes as a fresh job, and as the command; report, spec and lineage by target."""
    spec = {**SPEC, "output": {"external_data": "always"}}
    job = submit(daemon, spec=spec, labels={"name": "several"})
    document = daemon.succeeded(job)
    assert [row["target"] for row in document["targets"]] == TARGETS
    assert document["result"] is None and document["error"] is None
    assert document["spec"] == spec
    rest = {name: value for name, value in spec.items() if name != "targets"}
    for target, row in by_target(document).items():
        assert row["state"] == "succeeded" and row["verdict"] in ("good", "fair") and row["gates"] == []
        alone = submit(daemon, spec={**rest, "target": target})
        single = daemon.succeeded(alone)["result"]
        assert row["result"]["model"] == single["model"] and row["result"]["files"] == single["files"]
        answer = daemon.get(path(job, target))
        assert answer.status_code == 200 and answer.content == daemon.result(alone)
        report = daemon.get(path(job, target, "report")).json()
        assert report["spec"] == daemon.report(alone)["spec"] and "targets" not in report["spec"]
        frozen = daemon.get(path(job, target, "spec"))
        assert frozen.content == daemon.get(f"/v1/jobs/{alone}/spec").content
        page = daemon.get(path(job, target, "report"), headers={"Accept": "text/html"})
        assert page.headers["Content-Type"].startswith("text/html")
        assert daemon.get(path(job, target, "provenance")).status_code == 200
        assert daemon.get(path(job, target, "bom")).status_code == 200
        problem(daemon.get(path(job, target, "signature")), 404, "not_found")  # there is no key
        # A job of the record like any other, which knows what it belongs to.
        own = daemon.job(row["job"])
        assert own["parent"] == job and own["spec"]["target"] == target
        done = subprocess.run(
            [*QUANTIZE, DATA / "glyph_resnet.onnx", "--calibration",
             FEW_SAMPLES, "--target", target, "--recipe", "none", "--set",
             "output.external_data=always", "-o", tmp_path / "model.onnx"],
            capture_output=True, timeout=120, env={"QDQD_ENGINE_OPENVINO": "", "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        digests = {file["path"]: file["digest"] for file in row["result"]["files"]}
        for name, digest in digests.items():
            assert digest == "sha256:" + hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


@pytest.mark.shares_daemon
def test_routes_of_the_whole_job(daemon):
    """The routes of a job with one result say where the results are; the comparison has all."""
    job = submit(daemon)
    daemon.succeeded(job)
    for what in ("model", "report", "spec", "signature", "provenance", "bom"):
        said = problem(daemon.get(f"/v1/jobs/{job}/{what}"), 404, "not_found")["detail"]
        assert f"/v1/jobs/{job}/targets/" in said and "/compare" in said
    for what in ("model", "report", "spec", "signature", "provenance", "bom"):
        problem(daemon.get(path(job, "nowhere", what)), 404, "not_found")
        problem(daemon.get(path("j00", "qnn", what)), 404, "not_found")
    rows = daemon.get(f"/v1/jobs/{job}/compare").json()["results"]
    assert [row["target"] for row in rows] == TARGETS
    for row in rows:
        report = daemon.get(path(job, row["target"], "report")).json()
        judged = report["evaluation"]["deployed"] or report["evaluation"]
        assert row["sqnr_db"] == judged["outputs"][0]["sqnr_db"]
    page = daemon.get(f"/v1/jobs/{job}/compare", headers={"Accept": "text/html"})
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert page.text.count("<circle") == len(TARGETS)
    # Targets are compared with each other and with other jobs by their own ids.
    first, second = (row["job"] for row in daemon.job(job)["targets"][:2])
    assert daemon.get(f"/v1/jobs/{first}/compare?with={second}").status_code == 200
    problem(daemon.get(f"/v1/jobs/{first}/compare"), 400, "bad_request")
    # The list has the job alone, and its events end with it.
    listed = [one["id"] for one in daemon.get("/v1/jobs?limit=50").json()["jobs"]]
    assert job in listed and first not in listed
    events = daemon.get(f"/v1/jobs/{job}/events").text
    assert events.rstrip().rpartition("event: ")[2].startswith("end\n")


@pytest.mark.shares_daemon
def test_a_target_that_misses_its_gate(daemon):
    job = submit(daemon, spec={**SPEC, "accept": {"max_size_ratio": 0.5},
                               "targets": ["tensorrt", "onnxruntime"]})
    document = daemon.ended(job)
    assert document["state"] == "failed" and document["error"]["code"] == "accuracy"
    assert document["error"]["detail"].startswith("target tensorrt: ")
    rows = by_target(document)
    assert rows["tensorrt"]["state"] == "failed" and rows["tensorrt"]["result"] is None
    assert rows["tensorrt"]["error"]["code"] == "accuracy"
    assert [gate["met"] for gate in rows["tensorrt"]["gates"]] == [False]
    assert [gate["met"] for gate in rows["onnxruntime"]["gates"]] == [True]
    problem(daemon.get(path(job, "tensorrt")), 409, "accuracy")
    assert daemon.get(path(job, "tensorrt", "report")).status_code == 200
    assert daemon.get(path(job, "onnxruntime")).status_code == 200
    compared = daemon.get(f"/v1/jobs/{job}/compare").json()
    assert len(compared["results"]) == 2
    assert [row["code"] for row in compared["failed"]] == ["accuracy"]


@pytest.mark.shares_daemon
@pytest.mark.parametrize("members, status, code, pointer", [
    ({"spec": {"targets": []}}, 422, "invalid_spec", "/targets"),
    ({"spec": {"targets": ["qnn"], "target": "qnn"}}, 422, "invalid_spec", "/targets"),
    ({"spec": {"targets": ["qnn", "x"]}}, 422, "invalid_spec", "/targets/1"),
    ({"spec": {"targets": ["qnn", "qnn"]}}, 422, "invalid_spec", "/targets/1"),
    ({"spec": {"targets": ["qnn"], "no": 1}}, 422, "invalid_spec", "/no"),
    ({"publish": [{"remote": "prod", "ref": "models:/x"}]}, 422, "unsupported", "/publish"),
    ({"model": {"remote": "prod", "ref": "models:/x/1"}}, 422, "unsupported", "/model"),
])
def test_what_is_refused(daemon, members, status, code, pointer):
    model = daemon.upload("models", DATA / "glyph_resnet.onnx")
    answer = daemon.post("/v1/jobs", json={"model": model, "spec": SPEC, **members})
    assert problem(answer, status, code)["errors"][0]["pointer"] == pointer


@pytest.mark.shares_daemon
def test_routes_of_one_result_say_who_makes_several(daemon):
    model = (DATA / "glyph_resnet.onnx").read_bytes()
    said = problem(daemon.quantize(model, spec=SPEC), 422, "unsupported")["detail"]
    assert "POST /v1/jobs" in said
    answer = daemon.post("/v1/plan", json={"model": daemon.upload("models", model), "spec": SPEC})
    problem(answer, 422, "unsupported")


@pytest.mark.shares_daemon
def test_a_key_finds_the_job(daemon):
    headers = {"Idempotency-Key": "several"}
    body = {"model": daemon.upload("models", DATA / "glyph_resnet.onnx"),
            "calibration": daemon.upload("datasets", FEW_SAMPLES), "spec": SPEC}
    one, two = (daemon.post("/v1/jobs", json=body, headers=headers).json() for _ in range(2))
    assert one["id"] == two["id"]
    other = {**body, "spec": {**SPEC, "targets": TARGETS[:2]}}
    problem(daemon.post("/v1/jobs", json=other, headers=headers), 422, "idempotency_mismatch")
    daemon.succeeded(one["id"])
    # An equal job is answered at once, target by target.
    again = daemon.submit(**body)
    document = daemon.succeeded(again)
    assert again != one["id"]
    for row in document["targets"]:
        assert daemon.job(row["job"])["cached_from"]


def test_cancel_and_delete(daemon):
    """One cancel ends all targets; one delete removes every file; a target alone is not deleted."""
    model = daemon.upload("models", DATA / "glyph_resnet.onnx")
    data = daemon.upload("datasets", FEW_SAMPLES)
    inputs = set(daemon.stored_files())
    job = daemon.submit(model=model, calibration=data, spec=SPEC, fresh=True)
    daemon.running(job)
    assert daemon.post(f"/v1/jobs/{job}/cancel").status_code == 202
    document = daemon.ended(job)
    assert document["state"] == "cancelled"
    assert not {row["state"] for row in document["targets"]} - {"cancelled", "succeeded"}
    assert document["targets"][-1]["state"] == "cancelled"
    whole = daemon.submit(model=model, calibration=data, spec=SPEC, fresh=True)
    problem(daemon.request("DELETE", f"/v1/jobs/{whole}"), 409, "in_use")
    target = daemon.succeeded(whole)["targets"][0]
    said = problem(daemon.request("DELETE", f"/v1/jobs/{target['job']}"), 409, "in_use")["detail"]
    assert whole in said
    for one in (job, whole):
        assert daemon.request("DELETE", f"/v1/jobs/{one}").status_code == 204
        problem(daemon.get(f"/v1/jobs/{one}"), 404, "not_found")
        problem(daemon.get(path(one, "tensorrt")), 404, "not_found")
    problem(daemon.get(f"/v1/jobs/{target['job']}"), 404, "not_found")
    kept = set(daemon.stored_files()) - inputs
    if "QDQD_STORE_URL" not in daemon.environment:  # daemons that share a record remove files later
        # Later jobs use what calibration observed, and the figures of each target.
        assert len(kept) <= 1 + 2 * len(TARGETS), kept
    problem(daemon.get(f"/v1/models/{target['result']['model']}"), 404, "not_found")


def test_the_queue_counts_each_target(daemon):
    daemon.stop()
    daemon.start(QDQD_QUEUE_MAX="3")
    model = daemon.upload("models", DATA / "glyph_resnet.onnx")
    answer = daemon.post("/v1/jobs", json={"model": model, "spec": SPEC})
    problem(answer, 429, "queue_full")
    assert daemon.get("/v1/jobs").json()["jobs"] == []


def test_kill_and_restart(tmp_path):
    """After kill -9 at any time all targets have the results of a run without it."""
    quiet = Service(tmp_path / "quiet").start()
    spec = {**SPEC, "targets": ["tensorrt", "onnxruntime"]}
    job = quiet.submit_glyphs(spec=spec, fresh=True)
    wanted = {target: row["result"]["model"]
              for target, row in by_target(quiet.succeeded(job)).items()}
    quiet.stop()
    daemon = Service(tmp_path / "killed").start()
    job = daemon.submit_glyphs(spec=spec, fresh=True)
    daemon.running(job)
    daemon.kill()
    daemon.start()
    assert daemon.job(job)["state"] in ("queued", "running")
    eventually(lambda: daemon.job(job)["targets"][0]["state"] == "succeeded", every=0.002)
    daemon.kill()
    daemon.start()
    document = daemon.succeeded(job)
    assert {target: row["result"]["model"] for target, row in by_target(document).items()} == wanted
    for target in wanted:
        assert daemon.get(path(job, target)).status_code == 200
    daemon.stop()
