# SPDX-License-Identifier: Apache-2.0
"""Repeated requests: Idempotency-Key, answers from earlier results, and joining a job
that has not ended."""

import io
import json
import os
import shutil
import sqlite3
import threading

import numpy as np
import pytest

from service import DATA, FEW_SAMPLES, INSTALLED, Service, eventually, kill_process, problem
from test_migrations import FAILED, WAITS, state_of_schema

RESNET = DATA / "glyph_resnet.onnx"
SPEC = {"calibration": {"max_samples": 16}}


def post(service, key=None, query="", **members):
    headers = {} if key is None else {"Idempotency-Key": key}
    return service.post("/v1/jobs" + query, json=members, headers=headers)


@pytest.fixture
def ids(daemon):
    return {"model": daemon.upload("models", RESNET),
            "calibration": daemon.upload("datasets", FEW_SAMPLES)}


def test_another_runtime_answers_anew(service, tmp_path):
    """After an upgrade of ONNX Runtime, results of the old one are not reused."""
    (library,) = (INSTALLED / "lib").rglob("libonnxruntime.so*")
    copy = tmp_path / "libonnxruntime.so"
    shutil.copy(library, copy)
    one = service()
    one.stop()
    one.start(QDQD_ENGINE_RUNTIME=str(copy))
    asked = {"model": one.upload("models", RESNET), "spec": SPEC,
             "calibration": one.upload("datasets", FEW_SAMPLES)}
    first = one.submit(**asked)
    one.succeeded(first)
    assert one.job(one.submit(**asked))["cached_from"] == first
    one.stop()
    one.start(QDQD_ENGINE_RUNTIME=str(copy))
    assert one.job(one.submit(**asked))["cached_from"] == first
    one.stop()
    os.utime(copy, (1, 1))
    one.start(QDQD_ENGINE_RUNTIME=str(copy))
    assert one.succeeded(one.submit(**asked))["cached_from"] is None


# --- Idempotency-Key ---------------------------------------------------------------------


def test_same_key_is_the_same_job(daemon, ids):
    first = post(daemon, "a key", **ids, spec=SPEC, labels={"a": "1", "b": "2"})
    job = first.json()["id"]
    # The same in another order, with a default written out, as a form, and with files.
    again = post(daemon, "a key", labels={"b": "2", "a": "1"},
                 spec={**SPEC, "mode": "full"}, **ids)
    form = daemon.post("/v1/jobs", headers={"Idempotency-Key": "a key"}, files={
        "spec": (None, json.dumps(SPEC)), "labels": (None, '{ "b": "2", "a": "1" }'),
        "model": ("m", RESNET.read_bytes()), "calibration": (None, ids["calibration"])})
    for answer in (first, again, form):
        assert answer.status_code == 202, answer.text
        assert answer.json()["id"] == job
        assert answer.headers["Location"] == f"/v1/jobs/{job}"
    daemon.succeeded(job)
    waited = post(daemon, "a key", "?wait=60", **ids, spec=SPEC,
                  labels={"a": "1", "b": "2"})
    assert waited.status_code == 200 and waited.json()["id"] == job
    assert len(daemon.get("/v1/jobs").json()["jobs"]) == 1


def test_same_key_for_something_else(daemon, ids):
    assert post(daemon, "k", **ids, spec=SPEC).status_code == 202
    for other in ({"spec": {}}, {"spec": SPEC, "labels": {"a": "b"}},
                  {"spec": SPEC, "priority": 1}, {"spec": SPEC, "fresh": True},
                  {"spec": SPEC, "calibration": None}):
        document = problem(post(daemon, "k", **{**ids, **other}), 422,
                           "idempotency_mismatch")
        assert document["retryable"] is False
    form = daemon.post("/v1/jobs", headers={"Idempotency-Key": "k"}, files={
        "spec": (None, json.dumps(SPEC)), "calibration": (None, ids["calibration"]),
        "model": ("m", (DATA / "glyph_se.onnx").read_bytes())})
    problem(form, 422, "idempotency_mismatch")
    assert post(daemon, "K", **ids, spec={}).status_code == 202


def test_keys_that_cannot_be(daemon, ids):
    for key in ("", "x" * 256, "a\tb", b"\xc3\xa4"):
        answer = post(daemon, key, **ids)
        problem(answer, 400, "bad_request")
    for key in ("x" * 255, '"quoted, as some do"', "~ !"):
        assert post(daemon, key, **ids).status_code == 202


def test_a_key_lives_as_long_as_its_job(service):
    one = service()
    ids = {"model": one.upload("models", RESNET), "spec": SPEC,
           "calibration": one.upload("datasets", FEW_SAMPLES)}
    job = post(one, "k", **ids).json()["id"]
    one.succeeded(job)
    one.stop()
    one.start()
    assert post(one, "k", **ids).json()["id"] == job
    one.request("DELETE", f"/v1/models/{ids['model']}")
    assert post(one, "k", **ids).json()["id"] == job  # it needs no files any more
    assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    one.upload("models", RESNET)
    assert post(one, "k", **ids).json()["id"] != job


def test_many_at_once_are_one_job(daemon, ids):
    answers = []

    def ask():
        answers.append(daemon.post("/v1/jobs", json={**ids, "spec": SPEC},
                                   headers={"Idempotency-Key": "k"}).json()["id"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 1 and len(answers) == 8


def test_asked_again_when_the_queue_is_full(held, service):
    one = service(queue_max=1, **held)
    first = one.submit_glyphs()
    one.running(first)
    members = {"model": one.upload("models", DATA / "glyph_se.onnx"),
               "calibration": one.upload("datasets", FEW_SAMPLES)}
    job = post(one, "k", **members).json()["id"]
    problem(post(one, **members, spec=SPEC), 429, "queue_full")
    assert post(one, "k", **members).json()["id"] == job
    for held_job in (job, first):
        one.post(f"/v1/jobs/{held_job}/cancel")


# --- answers from earlier results --------------------------------------------------------


def test_answered_at_once(daemon, ids):
    first = daemon.submit(**ids, spec=SPEC)
    before = daemon.succeeded(first)
    answer = post(daemon, **ids, spec={**SPEC, "mode": "full"}, labels={"x": "y"},
                  priority=3)
    assert answer.status_code == 202
    document = answer.json()
    assert document["id"] != first
    assert document["state"] == "succeeded"
    assert document["cached_from"] == first
    assert document["result"] == before["result"]
    assert document["labels"] == {"x": "y"}
    assert document["started_at"] is None and document["ended_at"]
    assert before["cached_from"] is None
    for what in ("model", "report", "spec"):
        one, other = (daemon.get(f"/v1/jobs/{j}/{what}") for j in (first, document["id"]))
        assert one.content == other.content, what
    events = daemon.get(f"/v1/jobs/{document['id']}/events").text
    assert events.startswith("id: 2\nevent: end\n")
    # Each job keeps its result when the other is deleted.
    daemon.request("DELETE", f"/v1/jobs/{first}")
    assert daemon.get(f"/v1/jobs/{document['id']}/model").content == daemon.quantize(
        RESNET, FEW_SAMPLES, SPEC).content
    assert post(daemon, **ids, spec=SPEC).json()["cached_from"] == document["id"]


def test_what_is_run_again(daemon, ids):
    """A job that differs from all earlier ones runs, and so does one with `fresh`."""
    first = daemon.submit(**ids, spec=SPEC)
    daemon.succeeded(first)
    fewer = io.BytesIO()
    np.savez(fewer, **{k: v[:20] for k, v in np.load(FEW_SAMPLES).items()})
    for other in ({"fresh": True}, {"spec": {**SPEC, "evaluate": False}},
                  {"model": daemon.upload("models", DATA / "glyph_se.onnx")},
                  {"calibration": daemon.upload("datasets", fewer.getvalue())}):
        job = daemon.submit(**{**ids, "spec": SPEC, **other})
        assert daemon.succeeded(job)["cached_from"] is None, other


def test_failures_are_no_answers(daemon, ids):
    bad = {"calibration": {"ranges": {"no such": [0, 1]}}}
    for _ in range(2):
        document = daemon.ended(daemon.submit(**ids, spec=bad))
        assert document["state"] == "failed" and document["cached_from"] is None


def test_other_scripts_make_other_results(service, tmp_path):
    folder = tmp_path / "cases.d"
    folder.mkdir()
    one = service(engine_cases=folder)
    ids = {"model": one.upload("models", RESNET), "spec": SPEC,
           "calibration": one.upload("datasets", FEW_SAMPLES)}
    first = one.submit(**ids)
    one.succeeded(first)
    assert post(one, **ids).json()["cached_from"] == first
    one.stop()
    (folder / "mine.lua").write_text(
        'return {info = "none", case = function(model, spec) return {} end}')
    one.start()
    document = one.succeeded(one.submit(**ids))
    assert document["cached_from"] is None


# --- joining -----------------------------------------------------------------------------


def test_joined(slow, service):
    one = service(**slow)
    asked = {"model": one.upload("models", RESNET), "spec": SPEC,
             "calibration": one.upload("datasets", FEW_SAMPLES)}
    mobilenet = one.upload("models", DATA / "glyph_mobilenet.onnx")
    first = one.submit(**asked)
    one.running(first)
    second = one.submit(**asked, labels={"x": "y"})
    document = one.job(second)
    assert document["state"] == "queued"
    assert document["queue"] == {"position": None, "waiting_for": first}
    other = one.submit(**{**asked, "model": mobilenet})
    assert one.job(other)["queue"] == {"position": 1, "waiting_for": None}
    one.post(f"/v1/jobs/{other}/cancel")
    twins = [one.succeeded(job) for job in (second, first)]
    assert twins[0]["cached_from"] == first
    assert twins[0]["result"] == twins[1]["result"]
    assert twins[0]["ended_at"] == twins[1]["ended_at"]
    assert one.result(second) == one.result(first)
    assert "job_joined" in one.log.read_text()


def test_a_joined_job_fails_with_the_other(slow, service):
    one = service(**slow)
    asked = {"model": one.upload("models", RESNET), "spec": {"accept": {"min_sqnr_db": 1000}},
             "calibration": one.upload("datasets", FEW_SAMPLES)}
    first = one.submit(**asked)
    one.running(first)
    second = one.submit(**asked)
    document = one.ended(second)
    assert document["state"] == "failed" and document["cached_from"] == first
    assert document["error"] == one.ended(first)["error"]
    problem(one.get(f"/v1/jobs/{second}/model"), 409, "accuracy")
    assert one.report(second) == one.report(first)


def test_a_joined_job_runs_when_the_other_is_cancelled(held, service):
    one = service(**held)
    first = one.submit_glyphs()
    one.running(first)
    second, third = one.submit_glyphs(), one.submit_glyphs()
    one.post(f"/v1/jobs/{first}/cancel")
    eventually(lambda: one.job(second)["state"] == "running")
    assert one.job(third)["queue"]["waiting_for"] == second
    # Cancelling the job that joined does not affect the other.
    one.post(f"/v1/jobs/{third}/cancel")
    assert one.ended(third)["state"] == "cancelled"
    assert one.job(second)["state"] == "running"
    one.post(f"/v1/jobs/{second}/cancel")


def test_a_joined_job_runs_when_the_others_worker_dies(held, service):
    one = service(workers_attempts=1, **held)
    first = one.submit_glyphs()
    (worker,) = one.running(first)
    second = one.submit_glyphs()
    kill_process(worker)
    assert one.ended(first)["error"]["code"] == "worker_died"
    eventually(lambda: one.job(second)["state"] == "running")
    one.post(f"/v1/jobs/{second}/cancel")


def test_joined_survive_a_killed_daemon(held, service):
    one = service(**held)
    first = one.submit_glyphs()
    one.running(first)
    second = one.submit_glyphs()
    one.kill()
    one.environment = {}
    one.start()
    assert one.succeeded(second)["cached_from"] == first
    assert one.succeeded(first)["cached_from"] is None


# --- an older state folder ---------------------------------------------------------------


def test_older_state_folder(tmp_path):
    """Jobs of an older state folder have no identity and are not reused; the numbers of
    their changes are kept."""
    one = Service(tmp_path / "old")
    one.state.mkdir(parents=True)
    state_of_schema(one, 3)
    with sqlite3.connect(one.state / "qdqd.sqlite3") as db:
        db.execute("UPDATE jobs SET started_at = 1, attempts = 1 WHERE id = ?", (FAILED,))
    db.close()
    one.start()
    assert one.get(f"/v1/jobs/{FAILED}/events").text.startswith("id: 5\nevent: end\n")
    document = one.succeeded(WAITS)
    assert one.get(f"/v1/jobs/{WAITS}/events").text.startswith("id: 3\nevent: end\n")
    again = one.submit(model=document["model"], spec=document["spec"])
    assert one.succeeded(again)["cached_from"] is None
    answer = post(one, model=document["model"], spec=document["spec"])
    assert answer.json()["cached_from"] == again
    one.stop()
