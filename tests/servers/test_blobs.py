# SPDX-License-Identifier: Apache-2.0
"""Blobs in a bucket of a real S3 server: daemons and the server are killed and stopped."""

import hashlib
import random
import subprocess
import threading
import time

import pytest

from bucket_fixtures import bucket, daemons, drop_cache, key  # noqa: F401
from relay import Relay
from service import DATA, eventually, problem

MODEL = DATA / "glyph_resnet.onnx"


def test_killed_between_upload_and_row(bucket, daemons):
    """Whenever the daemon is killed, there is no row without a blob; the next start works on, and
    what has no row goes after the grace period."""
    daemon = daemons(QDQD_RETENTION_LEFTOVERS="1").start()
    body = MODEL.read_bytes()
    model = "sha256:" + hashlib.sha256(body).hexdigest()
    for i in range(5):
        sender = threading.Thread(target=send_until_dead, args=(daemon, body))
        sender.start()
        time.sleep(0.01 + i * 0.02)
        daemon.kill()
        sender.join()
        daemon.start()
        drop_cache(daemon)
        answer = daemon.get(f"/v1/models/{model}/info")
        assert answer.status_code in (200, 404), answer.text
        daemon.http.delete(f"{daemon.url}/v1/models/{model}")
    eventually(lambda: bucket.keys(daemon.prefix) == [], 30, 0.5)


def send_until_dead(daemon, body):
    try:
        daemon.http.post(f"{daemon.url}/v1/models", data=body, timeout=20)
    except OSError:
        pass


def test_a_blob_with_a_mark_is_stored_again(bucket, daemons):
    """An upload of bytes that are about to be removed takes the mark away."""
    daemon = daemons(QDQD_RETENTION_LEFTOVERS="6").start()
    model = daemon.upload("models", MODEL)
    mark = f"{daemon.prefix}/_/marks/{model.split(':')[1]}"
    daemon.http.delete(f"{daemon.url}/v1/models/{model}")
    eventually(lambda: mark in bucket.keys(daemon.prefix), 20, 0.1)
    assert daemon.upload("models", MODEL) == model
    assert mark not in bucket.keys(daemon.prefix)
    time.sleep(8)
    assert bucket.keys(daemon.prefix) == [key(daemon, model)]
    drop_cache(daemon)
    assert daemon.get(f"/v1/models/{model}/info").status_code == 200


def test_the_bucket_is_gone_for_20_seconds(bucket, daemons):
    """Requests that need it answer 503 with Retry-After, /readyz says so, jobs wait, and nothing
    is lost or needs a restart."""
    daemon = daemons(QDQD_TEST_WORKER_PAUSE_MS="200").start()
    jobs = [daemon.submit_glyphs()]
    jobs += [daemon.submit(**daemon_members(daemon, jobs[0]), fresh=True) for _ in range(3)]
    daemon.running(jobs[0])
    began = time.monotonic()
    bucket.stop()
    try:
        eventually(lambda: daemon.http.get(daemon.url + "/readyz").status_code == 503, 20, 0.1)
        answer = daemon.post("/v1/models", data=(DATA / "glyph_se.onnx").read_bytes())
        problem(answer, 503, "unavailable")
        assert int(answer.headers["Retry-After"]) >= 1
        drop_cache(daemon)
        problem(daemon.get(f"/v1/models/{daemon.job(jobs[0])['model']}/info"), 503, "unavailable")
        assert daemon.get("/healthz").status_code == 200
        time.sleep(max(0, 20 - (time.monotonic() - began)))
        assert {daemon.job(job)["state"] for job in jobs} <= {"queued", "running"}
    finally:
        bucket.start()
    eventually(lambda: daemon.http.get(daemon.url + "/readyz").status_code == 200, 20, 0.1)
    results = [(daemon.succeeded(job), daemon.result(job))[1] for job in jobs]
    assert all(result == results[0] for result in results)


def test_the_bucket_hangs(bucket, daemons):
    """A request that gets no answer is 503 after ten seconds."""
    daemon = daemons().start()
    daemon.upload("models", MODEL)
    bucket.pause(True)
    try:
        began = time.monotonic()
        problem(daemon.post("/v1/models", data=(DATA / "glyph_se.onnx").read_bytes()), 503,
                "unavailable")
        assert time.monotonic() - began < 25
        assert daemon.http.get(daemon.url + "/readyz").status_code == 503
    finally:
        bucket.pause(False)
    eventually(lambda: daemon.http.get(daemon.url + "/readyz").status_code == 200, 20, 0.1)
    assert daemon.upload("models", DATA / "glyph_se.onnx")


@pytest.fixture
def relay(bucket):
    one = Relay(bucket.port)
    yield one
    one.close()


def test_a_conflict_is_tried_again(bucket, daemons, relay):
    """The bucket's status 409 is that of two uploads of a key at once."""
    daemon = daemons(QDQD_BLOBS_ENDPOINT=relay.endpoint).start()
    path, told = f"/blobs/{daemon.prefix}/_/", []

    def conflict(method, url):
        if method == "PUT" and url.startswith(path) and "record" not in url and len(told) < 2:
            told.append(url)
            return 409, b"<Error><Code>ConditionalRequestConflict</Code></Error>"
        return None

    relay.before = conflict
    model = daemon.upload("models", MODEL)
    assert told == 2 * [path + model.split(":")[1]]
    assert bucket.keys(daemon.prefix) == [key(daemon, model)]
    drop_cache(daemon)
    assert daemon.get(f"/v1/models/{model}/info").status_code == 200


def test_conflicts_without_an_end(bucket, daemons, relay):
    """The client gets 503 and may try again; nothing names what was not stored."""
    daemon = daemons(QDQD_BLOBS_ENDPOINT=relay.endpoint).start()
    relay.before = lambda method, url: (409, b"") if method == "PUT" else None
    answer = daemon.post("/v1/models", data=MODEL.read_bytes())
    problem(answer, 503, "unavailable")
    assert answer.headers["Retry-After"]
    digest = hashlib.sha256(MODEL.read_bytes()).hexdigest()
    problem(daemon.get(f"/v1/models/sha256:{digest}"), 404, "not_found")
    relay.before = lambda method, url: None
    assert daemon.upload("models", MODEL)


def test_the_disk_of_the_cache_is_full(bucket, daemons, tmp_path):
    """Cached files go, the oldest first; rows, objects and jobs stay, and files are fetched again."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk of one's own: {done.stderr.strip()}")
    daemon = daemons()
    daemon.state = folder / "state"
    try:
        daemon.start()
        job = daemon.submit_glyphs()
        daemon.succeeded(job)
        result, rows = daemon.result(job), len(bucket.keys(daemon.prefix))
        blobs = []
        for seed in range(6):  # 48 MB, on a disk that has less
            data = random.Random(seed).randbytes(8 << 20)
            blobs.append(hashlib.sha256(data).hexdigest())
            answer = daemon.http.put(f"{daemon.url}/v1/blobs/sha256:{blobs[-1]}", data=data)
            assert answer.status_code == 201, answer.text
        assert "cache_evicted" in daemon.log.read_text()
        assert set(daemon.stored_files()) < {one.split("/")[-1]
                                             for one in bucket.keys(daemon.prefix)}
        assert len(bucket.keys(daemon.prefix)) == rows + len(blobs)
        assert daemon.job(job)["state"] == "succeeded" and daemon.result(job) == result
        for blob in blobs:
            answer = daemon.http.head(f"{daemon.url}/v1/blobs/sha256:{blob}")
            assert answer.status_code == 200
        daemon.succeeded(daemon.submit_glyphs("glyph_se"))
    finally:
        daemon.stop()
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_other_credentials(bucket, daemons):
    """Credentials that the bucket refuses are as if it were gone; right ones are read at once."""
    daemon = daemons().start()
    right = bucket.credentials.read_text()
    bucket.credentials.write_text(right.replace("test-secret", "wrong"))
    try:
        daemon.stop()
        starter = threading.Thread(target=daemon.start)
        starter.start()
        eventually(lambda: "bucket_gone" in daemon.log.read_text())
    finally:
        bucket.credentials.write_text(right)
    starter.join(60)
    assert daemon.upload("models", MODEL)


def daemon_members(daemon, job):
    document = daemon.job(job)
    return {"model": document["model"], "calibration": document["calibration"]}


def test_a_daemon_starts_while_the_bucket_is_gone(bucket, daemons):
    daemon = daemons().start()
    model = daemon.upload("models", MODEL)
    daemon.stop()
    drop_cache(daemon)
    bucket.stop()
    try:
        starter = threading.Thread(target=daemon.start)
        starter.start()
        time.sleep(2)
    finally:
        bucket.start()
    starter.join(60)
    assert daemon.get(f"/v1/models/{model}/info").status_code == 200


def test_a_large_blob_goes_in_parts(bucket, daemons):
    daemon = daemons().start()
    data = random.Random(2).randbytes(70 << 20)
    digest = hashlib.sha256(data).hexdigest()
    answer = daemon.http.put(f"{daemon.url}/v1/blobs/sha256:{digest}", data=data)
    assert answer.status_code in (200, 201), answer.text
    assert bucket.keys(daemon.prefix) == [f"{daemon.prefix}/_/{digest}"]
    drop_cache(daemon)
    got = daemon.http.get(f"{daemon.url}/v1/blobs/sha256:{digest}/file")
    assert got.status_code == 404 or got.content == data
