# SPDX-License-Identifier: Apache-2.0
"""Files and jobs expire: the time is visible before, and nothing that a live job needs
goes."""

from datetime import datetime, timedelta

import pytest

from service import DATA, FEW_SAMPLES, eventually, problem

MODEL = DATA / "glyph_resnet.onnx"
DAY = timedelta(days=1)
SHORT = {"calibration": {"max_samples": 4}, "evaluate": False}


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def stored(one, kind, path):
    """Returns POST's description of a file that is uploaded."""
    answer = one.post(f"/v1/{kind}", data=path.read_bytes(),
                      headers={"Content-Type": "application/octet-stream"})
    assert answer.status_code in (200, 201)
    return answer.json()


def exists(one, path):
    status = one.request("HEAD", path).status_code
    assert status in (200, 404)
    return status == 200


def gone(one, path):
    return not exists(one, path)


def test_what_is_seen_of_it(daemon):
    """The documents of files and jobs show when they expire."""
    first = stored(daemon, "models", MODEL)
    assert when(first["expires_at"]) - when(first["created_at"]) == 30 * DAY
    again = stored(daemon, "models", MODEL)
    assert again["created_at"] == first["created_at"]
    assert when(again["expires_at"]) > when(first["expires_at"])
    data = stored(daemon, "datasets", FEW_SAMPLES)
    job = daemon.submit(model=first["id"], calibration=data["id"], spec=SHORT)
    ended = daemon.succeeded(job)
    assert when(ended["expires_at"]) - when(ended["ended_at"]) == 7 * DAY
    later = daemon.get(f"/v1/datasets/{data['id']}").json()
    # It is not written twice in a tenth of a second.
    missing = when(ended["ended_at"]) + 30 * DAY - when(later["expires_at"])
    assert timedelta(0) <= missing < timedelta(seconds=0.1)


def test_times_of_one_s_own(service):
    """The settings determine how long jobs and files are kept."""
    one = service(retention_jobs=3600, retention_files=0)
    job = one.submit_glyphs(spec=SHORT)
    ended = one.succeeded(job)
    assert when(ended["expires_at"]) - when(ended["ended_at"]) == timedelta(hours=1)
    assert stored(one, "models", MODEL)["expires_at"] is None


def test_live_jobs_do_not_expire(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    assert one.job(job)["expires_at"] is None
    one.post(f"/v1/jobs/{job}/cancel")


def test_a_job_goes_with_all_that_it_left(service):
    one = service(retention_jobs=4, retention_files=0)
    before = stored(one, "models", MODEL)["id"], stored(one, "datasets", FEW_SAMPLES)["id"]
    kept = one.stored_files()
    job = one.submit(model=before[0], calibration=before[1], spec=SHORT)
    result = one.succeeded(job)["result"]["model"]
    eventually(lambda: one.get(f"/v1/jobs/{job}").status_code == 404)
    assert gone(one, f"/v1/models/{result}")
    for part in ("model", "report", "spec"):
        problem(one.get(f"/v1/jobs/{job}/{part}"), 404, "not_found")
    assert one.get("/v1/jobs").json()["jobs"] == []
    # The model's observations stay with it.
    eventually(lambda: len(set(one.stored_files()) - set(kept)) <= 1)
    assert exists(one, f"/v1/models/{before[0]}")
    one.submit(model=before[0], calibration=before[1], spec=SHORT)


def test_files_go_unless_a_job_lives(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    one.stop()  # the job goes back to the queue
    one.start(QDQD_RETENTION_FILES="1")
    one.running(job)
    model = one.job(job)["model"]
    other = stored(one, "models", DATA / "glyph_se.onnx")["id"]
    eventually(lambda: gone(one, f"/v1/models/{other}"))
    assert exists(one, f"/v1/models/{model}")
    one.post(f"/v1/jobs/{job}/cancel")
    eventually(lambda: gone(one, f"/v1/models/{model}"))
    eventually(lambda: one.stored_files() == [])
    problem(one.post("/v1/jobs", json={"model": model}), 404, "not_found")
    assert one.job(job)["state"] == "cancelled"


def test_a_result_that_another_job_needs(held, service):
    one = service()
    made = one.submit_glyphs(spec=SHORT)
    result = one.succeeded(made)["result"]["model"]
    one.stop()
    one.environment["QDQD_WORKERS_DRAIN_TIMEOUT"] = "0"
    one.environment["QDQD_TEST_WORKER_PAUSE_MS"] = str(held["test_worker_pause_ms"])
    one.start()
    uses = one.submit(model=result, spec={"calibration": {"random_samples": 1}})
    one.stop()  # the job goes back to the queue
    begun = one.log.read_text().count("event=job_started")
    one.start(QDQD_RETENTION_JOBS="1")
    eventually(lambda: one.log.read_text().count("event=job_started") > begun)
    ended = stored(one, "models", DATA / "glyph_se.onnx")["id"]
    other = one.submit(model=ended)
    one.post(f"/v1/jobs/{other}/cancel")
    eventually(lambda: one.get(f"/v1/jobs/{other}").status_code == 404)
    assert one.job(made)["state"] == "succeeded" and one.result(made)
    problem(one.request("DELETE", f"/v1/jobs/{made}"), 409, "in_use")
    one.post(f"/v1/jobs/{uses}/cancel")
    eventually(lambda: one.get(f"/v1/jobs/{made}").status_code == 404)
    assert gone(one, f"/v1/models/{result}")


def test_swept_at_the_start(service):
    one = service()
    job = one.submit_glyphs(spec=SHORT)
    one.succeeded(job)
    one.stop()
    one.start(QDQD_RETENTION_JOBS="1", QDQD_RETENTION_FILES="1")
    eventually(lambda: one.stored_files() == [])
    assert one.get(f"/v1/jobs/{job}").status_code == 404


@pytest.mark.parametrize("kind", ["models", "datasets"])
def test_a_use_begins_the_time_anew(service, kind):
    one = service(retention_files=5)
    path = MODEL if kind == "models" else FEW_SAMPLES
    first = stored(one, kind, path)
    other = stored(one, "models", DATA / "glyph_se.onnx")["id"]

    def is_renewed_until_the_other_goes():
        document = stored(one, kind, path)
        assert document["created_at"] == first["created_at"], "it went meanwhile"
        return gone(one, f"/v1/models/{other}")

    eventually(is_renewed_until_the_other_goes, every=0.1)
