# SPDX-License-Identifier: Apache-2.0
"""Models, datasets and jobs over HTTP, from upload to deletion."""

import hashlib
import json
import re
import time

import pytest

from service import DATA, ENDED, FEW_SAMPLES, ROOT, eventually, kill_process, problem

pytestmark = pytest.mark.long
RESNET = DATA / "glyph_resnet.onnx"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def digest(path):
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


# --- models and datasets -----------------------------------------------------------------


@pytest.mark.parametrize("how", ["raw", "curl's default type", "form"])
def test_store_a_model(daemon, how):
    data = RESNET.read_bytes()
    for status in (201, 200):
        if how == "form":
            answer = daemon.post("/v1/models", files={"model": ("m.onnx", data)})
        else:
            kind = {"raw": "application/octet-stream",
                    "curl's default type": "application/x-www-form-urlencoded"}[how]
            answer = daemon.post("/v1/models", data=data,
                                 headers={"Content-Type": kind})
        assert answer.status_code == status, answer.text
        model = answer.json()
        assert model["id"] == digest(RESNET)
        assert model["size"] == len(data)
        assert TIME.fullmatch(model["created_at"])
        assert answer.headers["Location"].endswith("/v1/models/" + model["id"])
    back = daemon.get("/v1/models/" + model["id"])
    assert back.status_code == 200 and back.content == data
    head = daemon.request("HEAD", "/v1/models/" + model["id"])
    assert head.status_code == 200 and head.content == b""
    assert int(head.headers["Content-Length"]) == len(data)


def test_describe_a_model(daemon):
    model = daemon.upload("models", RESNET)
    info = daemon.get(f"/v1/models/{model}/info").json()
    assert info["opset"] == 13
    (given,) = info["inputs"]
    assert (given["name"], given["dtype"]) == ("input", "float32")
    assert given["shape"][1:] == [1, 32, 32]
    assert [o["name"] for o in info["outputs"]] == ["logits"]
    assert "Conv" in json.dumps(info)


def test_store_a_dataset(daemon):
    for status in (201, 200):
        answer = daemon.post("/v1/datasets", data=FEW_SAMPLES.read_bytes(),
                             headers={"Content-Type": "application/octet-stream"})
        assert answer.status_code == status, answer.text
        dataset = answer.json()
        assert dataset["id"] == digest(FEW_SAMPLES)
        assert dataset["samples"] == 32
        assert dataset["inputs"] == [
            {"name": "input", "dtype": "float32", "shape": [32, 1, 32, 32]}]
    assert daemon.get("/v1/datasets/" + dataset["id"]).status_code == 200


def test_forget(daemon):
    """A deleted model or dataset is gone, and so are its bytes."""
    model = daemon.upload("models", RESNET)
    dataset = daemon.upload("datasets", FEW_SAMPLES)
    before = daemon.stored_files()
    assert before != []
    for path in (f"/v1/models/{model}", f"/v1/datasets/{dataset}"):
        assert daemon.request("DELETE", path).status_code == 204
        problem(daemon.get(path), 404, "not_found")
        problem(daemon.request("DELETE", path), 404, "not_found")
    assert daemon.stored_files() == []


# --- jobs --------------------------------------------------------------------------------


def check_succeeded(daemon, job):
    document = daemon.succeeded(job)
    assert document["id"] == job
    for moment in ("created_at", "started_at", "ended_at"):
        assert TIME.fullmatch(document[moment])
    assert document["created_at"] <= document["started_at"] <= document["ended_at"]
    assert document.get("error") is None
    result = document["result"]
    data = daemon.result(job)
    assert result["size"] == len(data)
    assert result["model"] == "sha256:" + hashlib.sha256(data).hexdigest()
    assert result["summary"] == daemon.report(job)["summary"]
    return document


def test_json_job(daemon):
    job = daemon.submit_glyphs(spec={"mode": "full"}, labels={"team": "vision"})
    document = check_succeeded(daemon, job)
    assert document["model"] == digest(RESNET)
    assert document["calibration"] == digest(FEW_SAMPLES)
    assert document["spec"] == {"mode": "full"}
    assert document["labels"] == {"team": "vision"}


def test_form_job_with_files(daemon):
    answer = daemon.post("/v1/jobs", files={
        "model": ("m.onnx", RESNET.read_bytes()),
        "calibration": ("c.npz", FEW_SAMPLES.read_bytes()),
        "spec": (None, '{"evaluate": false}'),
        "labels": (None, '{"a": "b"}')})
    assert answer.status_code == 202, answer.text
    document = check_succeeded(daemon, answer.json()["id"])
    assert document["labels"] == {"a": "b"}
    assert daemon.report(document["id"])["evaluation"] is None


def test_form_job_with_stored_ids(daemon):
    model = daemon.upload("models", RESNET)
    dataset = daemon.upload("datasets", FEW_SAMPLES)
    answer = daemon.post("/v1/jobs", files={"model": (None, model),
                                            "calibration": (None, dataset)})
    assert answer.status_code == 202, answer.text
    check_succeeded(daemon, answer.json()["id"])


@pytest.mark.parametrize("how", ["query", "Prefer"])
def test_submit_and_wait(daemon, how):
    body = {"model": daemon.upload("models", RESNET),
            "calibration": daemon.upload("datasets", FEW_SAMPLES)}
    query, headers = ("?wait=60", {}) if how == "query" else ("", {"Prefer": "wait=60"})
    answer = daemon.post("/v1/jobs" + query, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "succeeded"


def test_model_and_report_can_wait(daemon):
    job = daemon.submit_glyphs()
    answer = daemon.get(f"/v1/jobs/{job}/model?wait=60")
    assert answer.status_code == 200, answer.text
    assert daemon.get(f"/v1/jobs/{job}/report?wait=60").status_code == 200


def test_nothing_before_the_end(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    for what in ("model", "report"):
        answer = one.get(f"/v1/jobs/{job}/{what}")
        problem(answer, 409, "not_finished")
        assert int(answer.headers["Retry-After"]) >= 1
    assert one.job(job)["state"] in ("queued", "running")
    assert one.post(f"/v1/jobs/{job}/cancel").status_code == 202


def test_one_shot_that_takes_too_long(held, service):
    one = service(**held)
    answer = one.quantize(RESNET, FEW_SAMPLES, query="?wait=1")
    problem(answer, 504, "still_running")
    job = answer.headers["Location"].rsplit("/", 1)[1]
    assert one.job(job)["state"] == "running"
    assert one.post(f"/v1/jobs/{job}/cancel").status_code == 202


def test_queue_cancel_and_delete(held, service):
    one = service(**held)
    running = one.submit_glyphs()
    one.running(running)
    waiting = one.submit_glyphs("glyph_mobilenet")
    document = one.job(waiting)
    assert document["state"] == "queued"
    assert document["queue"]["position"] == 1
    for job, model in ((running, RESNET), (waiting, DATA / "glyph_mobilenet.onnx")):
        problem(one.request("DELETE", f"/v1/jobs/{job}"), 409, "in_use")
        problem(one.request("DELETE", f"/v1/models/{digest(model)}"), 409, "in_use")
    problem(one.request("DELETE", f"/v1/datasets/{digest(FEW_SAMPLES)}"), 409, "in_use")
    for job in (waiting, running):
        assert one.post(f"/v1/jobs/{job}/cancel").status_code == 202
        document = one.ended(job)
        assert document["state"] == "cancelled"
        problem(one.get(f"/v1/jobs/{job}/model"), 409, "cancelled")
        assert one.post(f"/v1/jobs/{job}/cancel").status_code == 202
        assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
        problem(one.get(f"/v1/jobs/{job}"), 404, "not_found")
    assert one.request("DELETE", f"/v1/models/{digest(RESNET)}").status_code == 204


def test_cancel_ends_the_work_at_once(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    (worker,) = one.running(job)
    begin = time.monotonic()
    one.post(f"/v1/jobs/{job}/cancel")
    assert one.ended(job)["state"] == "cancelled"
    assert time.monotonic() - begin < 30  # of the ten minutes that it would take
    eventually(lambda: worker not in one.workers())


def test_delete_an_ended_job(daemon):
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    problem(daemon.post(f"/v1/jobs/{job}/cancel"), 409, "ended")
    for kind, path in (("models", RESNET), ("datasets", FEW_SAMPLES)):
        answer = daemon.request("DELETE", f"/v1/{kind}/{digest(path)}")
        assert answer.status_code in (204, 409), answer.text
    assert daemon.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    problem(daemon.get(f"/v1/jobs/{job}"), 404, "not_found")
    problem(daemon.get(f"/v1/jobs/{job}/model"), 404, "not_found")
    problem(daemon.get(f"/v1/jobs/{job}/report"), 404, "not_found")


def test_list(daemon):
    jobs = [daemon.submit_glyphs(labels={"n": str(i), "all": "yes"},
                                 spec={"evaluate": False}) for i in range(5)]
    for job in jobs:
        daemon.succeeded(job)

    def listed(query):
        page = daemon.get("/v1/jobs" + query).json()
        return [j["id"] for j in page["jobs"]], page["next_cursor"]

    newest = jobs[::-1]
    assert listed("") == (newest, None)
    assert listed("?state=succeeded") == (newest, None)
    assert listed("?state=failed") == ([], None)
    assert listed("?label=n:3") == ([jobs[3]], None)
    assert listed("?label=all:yes&limit=5")[0] == newest
    assert listed("?label=n:no")[0] == []
    found, cursor = [], ""
    for _ in range(3):
        page, cursor = listed(f"?limit=2&cursor={cursor}" if cursor else "?limit=2")
        found += page
    assert found == newest and cursor is None
    problem(daemon.get("/v1/jobs?state=nonsense"), 400, "bad_request")


def test_a_label_has_colons_in_its_key_or_its_value(daemon):
    odd = [daemon.submit_glyphs(labels=labels, spec={"mode": "full"}, fresh=True)
           for labels in ({"a:b": "c"}, {"a": "b:c"}, {"a": "b", "b": "c"}, {"%3A": "é=:"},
                          {"": ""})]

    def listed(label):
        return [job["id"] for job in daemon.get("/v1/jobs", params={"label": label}).json()["jobs"]]

    assert listed("a:b:c") == [odd[1], odd[0]]
    assert listed("a:b") == [odd[2]]
    assert listed("%3A:é=:") == [odd[3]]
    assert listed(":") == [odd[4]]
    assert listed("a:") == listed("b:c:") == []
    problem(daemon.get("/v1/jobs?label=a"), 400, "bad_request")
    for job in odd:
        daemon.post(f"/v1/jobs/{job}/cancel")


def test_progress_is_told(slow, service):
    one = service(**slow)
    job = one.submit_glyphs()
    seen = []

    def over():
        document = one.job(job)
        stage = (document["progress"] or {}).get("stage")
        if document["state"] == "running" and stage and stage not in seen:
            seen.append(stage)
        return document["state"] in ENDED

    eventually(over)
    stages = re.findall(r'QDQ_STAGE\(\w+, "(\w+)"\)',
                        (ROOT / "engine/include/qdq/stages.h").read_text())
    assert seen == [stage for stage in stages if stage in seen]
    assert len(seen) >= 4


def test_failed_job_keeps_its_error(daemon):
    job = daemon.submit_glyphs(spec={"calibration": {"ranges": {"no such": [0, 1]}}})
    document = daemon.ended(job)
    assert document["state"] == "failed"
    assert document["error"]["code"] == "unmatched"
    assert document["error"]["status"] == 422
    problem(daemon.get(f"/v1/jobs/{job}/model"), 409, "failed")


def test_two_workers_work_side_by_side(held, service):
    one = service(workers_count=2, **held)
    jobs = [one.submit_glyphs(name) for name in ("glyph_resnet", "glyph_se")]
    for job in jobs:
        one.running(job)
    eventually(lambda: len(one.busy_workers()) == 2)
    for job in jobs:
        one.post(f"/v1/jobs/{job}/cancel")


# --- plan, listings, health --------------------------------------------------------------


def test_plan_is_what_the_job_does(daemon):
    model = daemon.upload("models", RESNET)
    answer = daemon.post("/v1/plan", json={"model": model})
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    report = daemon.report(job)
    assert plan["layers"] == report["layers"]
    for name in ("layers", "quantized_layers", "qdq_pairs", "size_before"):
        assert plan["summary"][name] == report["summary"][name]
    assert isinstance(plan["warnings"], list)


def test_plan_takes_a_form(daemon):
    answer = daemon.post("/v1/plan", files={"model": ("m", RESNET.read_bytes())})
    assert answer.status_code == 200, answer.text
    assert answer.json()["summary"]["quantized_layers"] > 0


def test_listings(daemon):
    layers = daemon.get("/v1/layers").json()
    text = json.dumps(layers)
    for name in ("Conv", "Gemm", "MatMul", "MaxPool", "Add", "Concat"):
        assert f'"{name}"' in text
    errors = json.dumps(daemon.get("/v1/errors").json())
    for code in ("invalid_model", "worker_died", "not_found"):
        assert code in errors


def test_health_and_version(daemon):
    for path in ("/healthz", "/readyz"):
        answer = daemon.get(path)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("application/json")
    version = daemon.get("/version").json()
    assert version["version"] == version["engine"]


def known_version(one):
    """Returns the answer of /version once the workers have found the backends."""
    return eventually(lambda: (found := one.get("/version").json())["devices"] and found)


def test_version_of_backends_and_devices(daemon):
    version = known_version(daemon)
    runtime, openvino, cuda = version["backends"]
    assert runtime["name"] == "onnxruntime" and runtime["version"].count(".") == 2
    assert "onnxruntime" in runtime["path"] and runtime["problem"] is None
    assert openvino == {"name": "openvino", "version": None, "path": None,
                        "problem": "OpenVINO is not configured (engine.openvino)"}
    assert cuda["name"] == "cuda" and "gpu.devices" in cuda["problem"]
    assert version["devices"] == [{"device": "cpu", "name": None, "problem": None}]


def test_version_without_backends(service):
    one = service(engine_runtime="/nowhere.so.1", gpu_devices="3,1", gpu_module="/nowhere.so",
                  engine_openvino="/nowhere/libopenvino_c.so")
    version = known_version(one)
    runtime, openvino, cuda = version["backends"]
    assert runtime["version"] is None and runtime["path"] == "/nowhere.so.1"
    assert "/nowhere.so.1" in runtime["problem"] and "event=runtime_missing" in one.log.read_text()
    assert openvino["version"] is None and openvino["path"] == "/nowhere/libopenvino_c.so"
    assert "ended with status" in openvino["problem"]
    assert cuda["path"] == "/nowhere.so" and "/nowhere.so" in cuda["problem"]
    assert [d["device"] for d in version["devices"]] == ["cpu", "cuda:3", "cuda:1"]
    assert all(d["problem"] and d["name"] is None for d in version["devices"])
    assert one.log.read_text().count("event=gpu_missing") == 2
    one = service(engine_runtime="")
    version = known_version(one)
    assert version["backends"][0]["path"] is None
    assert "not configured" in version["backends"][0]["problem"]
    assert "event=runtime_missing" not in one.log.read_text()
    assert one.get("/healthz").status_code == 200


def test_version_does_not_wait_for_workers(service):
    """/version answers with what the workers found at the start, and asks no worker
    again."""
    one = service()
    first = known_version(one)
    killed = set(one.workers())
    assert killed
    for worker in killed:
        kill_process(worker)
    eventually(lambda: not killed & set(one.workers()))
    assert one.get("/version").json() == first
    assert one.workers() == []


def test_contract_is_served(daemon):
    answer = daemon.get("/openapi.yaml")
    assert answer.status_code == 200
    assert answer.text.startswith("openapi: 3")


@pytest.mark.parametrize("path", ["/healthz", "/version", "/v1/layers", "/v1/jobs"])
def test_head(daemon, path):
    known_version(daemon)
    get, head = daemon.get(path), daemon.request("HEAD", path)
    assert head.status_code == get.status_code == 200
    assert head.content == b""
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.shares_daemon
@pytest.mark.parametrize("method, path, allowed", [
    ("DELETE", "/v1/jobs", {"GET", "HEAD", "POST"}),
    ("PUT", "/v1/quantize", {"POST"}),
    ("POST", "/healthz", {"GET", "HEAD"}),
    ("POST", "/v1/jobs/x", {"GET", "HEAD", "DELETE"}),
])
def test_wrong_method(daemon, method, path, allowed):
    answer = daemon.request(method, path)
    problem(answer, 405, "method_not_allowed")
    assert {m.strip() for m in answer.headers["Allow"].split(",")} >= allowed - {"HEAD"}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("path", [
    "/x", "/v1", "/v1/job", "/v1/jobs/", "/v1/jobs/nobody", "/v1/jobs/nobody/model",
    "/v1/jobs/nobody/report", "/v1/models/sha256:00", "/v1/datasets/x", "/healthz/x",
    "/v1/models/..%2f..%2fetc%2fpasswd", "/v1/jobs/%00",
])
def test_nothing_there(daemon, path):
    answer = daemon.get(path)
    assert answer.status_code in (400, 404)
    problem(answer, answer.status_code, answer.json()["code"])


@pytest.mark.shares_daemon
@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_foreign_host(daemon, header):
    value = {"Host": "evil.example", "Origin": "https://evil.example"}[header]
    problem(daemon.get("/v1/jobs", headers={header: value}), 403, "host_not_allowed")
    local = {"Host": "localhost:1", "Origin": "http://127.0.0.1:1"}[header]
    assert daemon.get("/v1/jobs", headers={header: local}).status_code == 200


@pytest.mark.parametrize("query, word", [
    ("label=%ff:x", "UTF-8"), ("label=a:%c3%28", "UTF-8"), ("tenant=%ff", "UTF-8"),
    ("limit=1&limit=2", "twice"), ("label=a:b&label=c:d", "twice"), ("limit", "limit"),
    ("state", "state"), ("label", "label"), ("cursor", "cursor")])
def test_a_query_says_one_thing(daemon, query, word):
    assert word in problem(daemon.get("/v1/jobs?" + query), 400, "bad_request")["detail"]


@pytest.mark.parametrize("path", [
    "/v1/jobs/%ff", "/v1/models/%c3%28", "/v1/jobs/%ed%a0%80/report", "/v1/jobs/x/compare?with=%ff",
    "/v1/jobs/x/deliveries/%ff/retry"])
def test_a_path_is_utf8(daemon, path):
    """PostgreSQL refuses other text, and that is no fault of the server."""
    method = "POST" if path.endswith("retry") else "GET"
    assert "UTF-8" in problem(daemon.request(method, path), 400, "bad_request")["detail"]
    problem(daemon.get("/v1/jobs/%c3%bc"), 404, "not_found")


def test_an_id_in_a_form_is_utf8(daemon):
    answer = daemon.post("/v1/jobs", files={"model": ("m", b"sha256:\xff")})
    problem(answer, 400, "invalid_model")
