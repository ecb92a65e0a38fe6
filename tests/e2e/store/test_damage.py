# SPDX-License-Identifier: Apache-2.0
"""Stored bytes that changed on the disk are never served: they are found, set aside, and
replaced by the next upload of the right ones."""

import hashlib
import os

import pytest

from service import DATA, eventually, problem
from test_blobs import lies_at, put

MODEL = (DATA / "glyph_se.onnx").read_bytes()
SHORT = {"calibration": {"random_samples": 1}, "evaluate": False}


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def shorten(path):
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def flip_unseen(path):
    """As a disk does it: the file's times and its inode stay."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def metric(one, name):
    (line,) = [line for line in one.get("/metrics").text.splitlines()
               if line.startswith(name + " ")]
    return int(line.split()[1])


def check_set_aside(one, path):
    assert not path.exists()
    assert (one.state / "damaged" / path.name).exists()
    assert metric(one, "qdqd_blobs_damaged_total") == 1
    assert f"event=blob_damaged id=sha256:{path.name}" in one.log.read_text()


@pytest.mark.parametrize("harm", [shorten, flip, flip_unseen])
@pytest.mark.parametrize("kind", ["blobs", "models"])
def test_download(service, harm, kind):
    one = service(storage_scrub_rate=0)
    put(one, MODEL) if kind == "blobs" else one.upload(kind, MODEL)
    path = lies_at(one, MODEL)
    one.stop()
    harm(path)
    one.start()
    url = f"/v1/{kind}/{digest(MODEL)}"
    for _ in range(2):
        problem(one.get(url), 500, "damaged")
    check_set_aside(one, path)
    answer = put(one, MODEL) if kind == "blobs" else \
        one.post("/v1/models", data=MODEL, headers={"Content-Type": "application/octet-stream"})
    assert answer.status_code == 200
    assert one.get(url).content == MODEL
    assert not (one.state / "damaged" / path.name).exists()


@pytest.mark.parametrize("condition", [
    {"Range": "bytes=0-1,4-5"}, {"Range": "lines=1-2"}, {"If-None-Match": '"another"'},
    {"Range": "bytes=0-1", "If-Range": '"another"'}])
def test_a_condition_that_gets_the_whole_file(service, condition):
    """A whole file is checked before it is sent, whatever asks for it."""
    one = service(storage_scrub_rate=0)
    one.upload("models", MODEL)
    path = lies_at(one, MODEL)
    one.stop()
    flip_unseen(path)
    one.start()
    problem(one.get(f"/v1/models/{digest(MODEL)}", headers=condition), 500, "damaged")
    check_set_aside(one, path)


def test_a_change_while_the_daemon_runs(service):
    one = service(storage_scrub_rate=0)
    model = one.upload("models", MODEL)
    assert one.get(f"/v1/models/{model}").content == MODEL
    flip(lies_at(one, MODEL))
    problem(one.get(f"/v1/models/{model}"), 500, "damaged")


def test_a_short_file_in_parts(service):
    """Its size alone is looked at, and that at once."""
    one = service(storage_scrub_rate=0)
    put(one, MODEL)
    path = lies_at(one, MODEL)
    shorten(path)
    answer = one.get(f"/v1/blobs/{digest(MODEL)}", headers={"Range": "bytes=0-9"})
    problem(answer, 500, "damaged")
    check_set_aside(one, path)


def test_an_upload_replaces_what_nobody_has_read(service):
    one = service(storage_scrub_rate=0)
    put(one, MODEL)
    path = lies_at(one, MODEL)
    one.stop()
    flip(path)
    one.start()
    assert put(one, MODEL).status_code == 200
    assert one.get(f"/v1/blobs/{digest(MODEL)}").content == MODEL


def test_jobs(service):
    """A job on a damaged model fails as such; a damaged result answers no other job."""
    one = service(storage_scrub_rate=0)
    model = one.upload("models", MODEL)
    first = one.submit(model=model, spec=SHORT)
    result = one.succeeded(first)["result"]["model"]
    content = one.result(first)
    one.stop()
    flip(lies_at(one, MODEL))
    flip(one.state / "blobs" / result[7:9] / result[7:])
    one.start()
    problem(one.get(f"/v1/jobs/{first}/model"), 500, "damaged")
    second = one.submit(model=model, spec=SHORT)
    document = one.ended(second)
    assert document["state"] == "failed" and document["error"]["code"] == "damaged"
    one.upload("models", MODEL)
    third = one.submit(model=model, spec=SHORT)
    assert one.succeeded(third)["cached_from"] is None
    assert one.result(third) == content == one.result(first)


def test_report(service):
    """As JSON and as Markdown."""
    one = service(storage_scrub_rate=0)
    job = one.submit(model=one.upload("models", MODEL), spec=SHORT)
    one.succeeded(job)
    found = [p for p in (one.state / "blobs").rglob("*")
             if p.is_file() and p.read_bytes()[:1] == b"{" and b'"summary"' in p.read_bytes()]
    assert found
    for path in found:
        flip(path)
    for form in ("text/markdown", "application/json"):
        problem(one.get(f"/v1/jobs/{job}/report", headers={"Accept": form}), 500, "damaged")


def test_scrub(service):
    """Damage that nobody reads is found in the background."""
    one = service()
    data = os.urandom(300_000)
    put(one, data)
    put(one, MODEL)
    path = lies_at(one, MODEL)
    one.stop()
    flip(path)
    one.start(QDQD_STORAGE_SCRUB_RATE="100M")
    eventually(lambda: metric(one, "qdqd_blobs_damaged_total") == 1)
    check_set_aside(one, path)
    eventually(lambda: metric(one, "qdqd_scrubbed_bytes_total") == len(data) + len(MODEL))
    assert one.get(f"/v1/blobs/{digest(data)}").content == data
