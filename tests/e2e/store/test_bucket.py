# SPDX-License-Identifier: Apache-2.0
"""Blobs in a bucket of a real S3 server, with the record in SQLite: one node. Longer tests are in
tests/servers/test_blobs.py."""

import hashlib
import os
import subprocess
import time

import pytest

from bucket_fixtures import bucket, daemons, drop_cache, key  # noqa: F401
from service import CALIBRATION, DATA, FEW_SAMPLES, INSTALLED, eventually, problem
from test_metrics import metrics

MODEL = DATA / "glyph_resnet.onnx"


def test_a_job_from_end_to_end(bucket, daemons):
    """All files of a job are in the bucket, under their digests; without the cache everything is
    there, and the next job observes nothing again."""
    daemon = daemons().start()
    job = daemon.submit_glyphs()
    document = daemon.succeeded(job)
    result = daemon.result(job)
    names = [k.split("/")[-1] for k in bucket.keys(daemon.prefix)]
    assert sorted(names) == daemon.stored_files()
    for name in names:
        assert hashlib.sha256(bucket.read(f"{daemon.prefix}/_/{name}")).hexdigest() == name
    daemon.stop()
    drop_cache(daemon)
    daemon.start()
    assert daemon.result(job) == result
    assert daemon.report(job)["summary"]
    second = daemon.submit(model=document["model"], calibration=document["calibration"],
                           spec={"calibration": {"method": "minmax"}})
    assert daemon.succeeded(second)["state"] == "succeeded"
    assert daemon.report(second)["calibration"]["reused"] > 0
    assert daemon.report(second)["calibration"]["inferences"] == 0


def test_two_databases_below_one_prefix(bucket, daemons):
    """Both store the same bytes once. A daemon whose database did not come first removes nothing,
    because it has no rows for the blobs of the other."""
    first = daemons(QDQD_RETENTION_LEFTOVERS="1").start()
    models = [first.upload("models", MODEL), first.upload("models", DATA / "glyph_se.onnx")]
    eventually(lambda: b"/record/" in bucket.curl(
        f"{bucket.endpoint}/blobs?list-type=2&prefix=").stdout)
    time.sleep(0.5)
    second = daemons(QDQD_RETENTION_LEFTOVERS="1").start()
    assert second.upload("models", MODEL) == models[0]
    eventually(lambda: "bucket_shared" in second.log.read_text())
    time.sleep(2)
    assert sorted(bucket.keys(first.prefix)) == sorted(key(first, model) for model in models)


def test_wrong_bytes_in_the_bucket(bucket, daemons, tmp_path):
    """They are found on the way in, said to be damaged, and replaced by the next upload."""
    daemon = daemons().start()
    model = daemon.upload("models", MODEL)
    data = bytearray(MODEL.read_bytes())
    data[len(data) // 2] ^= 1
    bucket.remove(key(daemon, model))
    bucket.write(key(daemon, model), bytes(data), tmp_path)
    drop_cache(daemon)
    for _ in range(2):
        problem(daemon.get(f"/v1/models/{model}/info"), 500, "damaged")
    assert "place=bucket" in daemon.log.read_text()
    assert daemon.stored_files() == []
    assert daemon.upload("models", MODEL) == model
    assert bucket.read(key(daemon, model)) == MODEL.read_bytes()
    assert daemon.get(f"/v1/models/{model}/info").status_code == 200


def test_wrong_bytes_in_the_cache(bucket, daemons):
    """They are replaced by those of the bucket, and nobody notices."""
    daemon = daemons().start()
    model = daemon.upload("models", MODEL)
    path = next(p for p in (daemon.state / "blobs").rglob("*") if p.is_file())
    path.write_bytes(b"x" * path.stat().st_size)
    assert daemon.get(f"/v1/models/{model}/info").status_code == 200
    assert path.read_bytes() == MODEL.read_bytes()
    assert "cache_damaged" in daemon.log.read_text()


def test_a_cache_smaller_than_the_working_set(bucket, daemons):
    """Files go and come again; none that is in use goes, and no job."""
    size = MODEL.stat().st_size + FEW_SAMPLES.stat().st_size
    daemon = daemons(QDQD_BLOBS_CACHE=str(size), QDQD_RETENTION_LEFTOVERS="8").start()
    jobs = []
    for i in range(4):
        samples = daemon.upload("datasets", CALIBRATION if i % 2 else FEW_SAMPLES)
        model = daemon.upload("models", MODEL)
        jobs.append(daemon.submit(model=model, calibration=samples, fresh=True))
    results = {job: (daemon.succeeded(job), daemon.result(job))[1] for job in jobs}
    assert results[jobs[0]] == results[jobs[2]]
    eventually(lambda: cache_size(daemon) <= size)
    assert "cache_evicted" in daemon.log.read_text()
    for job in jobs:
        assert daemon.result(job) == results[job]


def cache_size(daemon):
    return sum(p.stat().st_size for p in (daemon.state / "blobs").rglob("*") if p.is_file())


@pytest.mark.parametrize("change, text", [
    ({"QDQD_BLOBS_URL": "file:///x"}, "blobs.url: is not s3://BUCKET or s3://BUCKET/PREFIX"),
    ({"QDQD_BLOBS_ENDPOINT": "ftp://x"}, "blobs.endpoint: is not http://HOST:PORT"),
    ({"QDQD_BLOBS_CREDENTIALS": "/nowhere"}, "blobs.credentials: names a file that cannot"),
    ({"QDQD_BLOBS_CREDENTIALS": "/etc/hostname"}, "everybody can use; make its mode 0600"),
])
def test_wrong_settings(daemons, change, text):
    one = daemons()
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "--check-config"], text=True,
                          capture_output=True, env={**os.environ, **one.environment, **change})
    assert done.returncode == 2
    assert text in done.stderr


def run(one, *words, **environment):
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "--state-dir", one.state, *words],
                          capture_output=True, text=True, timeout=60,
                          env={**one.environment, **environment})


def test_files_move_to_a_bucket(bucket, daemons, tmp_path):
    """A folder's files go to the bucket, damaged ones do not; the daemon goes on with them."""
    daemon = daemons()
    daemon.start(QDQD_BLOBS_URL="")
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    result, report = daemon.result(job), daemon.report(job)
    files = daemon.stored_files()
    url = daemon.environment["QDQD_BLOBS_URL"]
    busy = run(daemon, "--blobs", url, QDQD_BLOBS_URL="")
    assert busy.returncode == 1 and "another daemon uses this state folder" in busy.stderr
    daemon.stop()
    for _ in range(2):
        done = run(daemon, "--blobs", url, QDQD_BLOBS_URL="")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{url}: {len(files)} files, ")
    drop_cache(daemon)
    daemon.start()
    assert (daemon.result(job), daemon.report(job)) == (result, report)


def test_check_store(bucket, daemons, tmp_path):
    daemon = daemons().start()
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    n = len(daemon.stored_files())
    drop_cache(daemon)
    done = run(daemon, "--check-store")
    assert (done.returncode, done.stdout) == (0, f"{n} stored files, 0 missing, 0 without a row\n")
    lost = daemon.job(job)["model"]
    bucket.remove(key(daemon, lost))
    foreign = hashlib.sha256(b"foreign").hexdigest()
    bucket.write(f"{daemon.prefix}/_/{foreign}", b"foreign", tmp_path)
    done = run(daemon, "--check-store")
    assert (done.returncode, done.stdout) == (
        1, f"missing - {lost}\norphan - sha256:{foreign}\n"
        f"{n} stored files, 1 missing, 1 without a row\n")
    assert run(daemon, "--check-store", QDQD_BLOBS_ENDPOINT="http://127.0.0.1:9").returncode == 2


def test_a_backup_is_of_the_record(bucket, daemons, tmp_path):
    daemon = daemons().start()
    daemon.succeeded(job := daemon.submit_glyphs())
    result = daemon.result(job)
    drop_cache(daemon)
    done = run(daemon, "--backup", tmp_path / "backup")
    assert done.returncode == 0 and "whose versioning is their backup" in done.stdout, done
    daemon.stop()
    daemon.state = tmp_path / "restored"
    assert run(daemon, "--restore", tmp_path / "backup").returncode == 0
    daemon.start()
    assert daemon.result(job) == result


def test_metrics(bucket, daemons):
    """The metrics count the requests to the bucket and the hits of its cache."""
    daemon = daemons().start()
    one = daemon.submit_glyphs()
    daemon.succeeded(one)
    seen = metrics(daemon)
    names = bucket.keys(daemon.prefix)
    size = sum(len(bucket.read(name)) for name in names)
    assert seen["qdqd_bucket_requests_total"].value(op="put") >= len(names)
    assert seen["qdqd_bucket_failures_total"].value(op="put") == 0
    assert seen["qdqd_bucket_seconds_total"].value(op="put") > 0
    assert seen["qdqd_bucket_sent_bytes_total"].value() == size
    assert seen["qdqd_bucket_received_bytes_total"].value() == 0
    assert seen["qdqd_cache_bytes"].value() == size
    assert seen["qdqd_cache_budget_bytes"].value() == 20 << 30
    opens = seen["qdqd_cache_opens_total"]
    assert opens.value(result="hit") > 0 and opens.value(result="miss") == 0
    drop_cache(daemon)
    result = daemon.result(one)
    seen = metrics(daemon)
    assert seen["qdqd_cache_opens_total"].value(result="miss") == 1
    assert seen["qdqd_bucket_received_bytes_total"].value() == len(result)
