# SPDX-License-Identifier: Apache-2.0
"""Byte ranges, conditions and digests of models: HEAD, Range, If-Range, If-None-Match,
Repr-Digest."""

import base64
import hashlib

import pytest

from service import DATA, FEW_SAMPLES, problem

RESNET = DATA / "glyph_resnet.onnx"
BYTES = RESNET.read_bytes()
SIZE = len(BYTES)


def repr_digest(data):
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


@pytest.fixture
def model(daemon):
    return daemon, "/v1/models/" + daemon.upload("models", RESNET)


@pytest.mark.shares_daemon
def test_one_range(model):
    daemon, path = model
    for text, first, last in [
            ("bytes=0-0", 0, 0), ("bytes=100-299", 100, 299), ("bytes=-7", SIZE - 7, SIZE - 1),
            (f"bytes={SIZE - 9}-", SIZE - 9, SIZE - 1), ("bytes=5-999999999999", 5, SIZE - 1)]:
        answer = daemon.get(path, headers={"Range": text})
        assert answer.status_code == 206, text
        assert answer.content == BYTES[first:last + 1]
        assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{SIZE}"
        assert answer.headers["Content-Length"] == str(last + 1 - first)
        assert answer.headers["Repr-Digest"] == repr_digest(BYTES)


@pytest.mark.shares_daemon
def test_what_is_no_range_gets_the_whole(model):
    """A Range that cannot be read, or with several ranges, gets the whole file."""
    daemon, path = model
    for text in ("bytes=0-1,4-5", "bytes=5-4", "lines=0-1", "bytes=x"):
        answer = daemon.get(path, headers={"Range": text})
        assert answer.status_code == 200, text
        assert answer.content == BYTES
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert "Content-Range" not in answer.headers


@pytest.mark.shares_daemon
def test_range_beyond_the_end(model):
    daemon, path = model
    for text in (f"bytes={SIZE}-", "bytes=-0"):
        answer = daemon.get(path, headers={"Range": text})
        problem(answer, 416, "range_not_satisfiable")
        assert answer.headers["Content-Range"] == f"bytes */{SIZE}"


@pytest.mark.shares_daemon
def test_if_range(model):
    daemon, path = model
    tag = daemon.get(path).headers["ETag"]
    for condition, status in [(tag, 206), ('"other"', 200), ("W/" + tag, 200),
                              ("Sat, 21 Nov 2026 10:00:00 GMT", 200)]:
        answer = daemon.get(path, headers={"Range": "bytes=1-2", "If-Range": condition})
        assert answer.status_code == status, condition
        assert answer.content == (BYTES[1:3] if status == 206 else BYTES)
    beyond = {"Range": f"bytes={SIZE}-", "If-Range": '"other"'}
    assert daemon.get(path, headers=beyond).status_code == 200


@pytest.mark.shares_daemon
def test_if_none_match(model):
    daemon, path = model
    tag = daemon.get(path).headers["ETag"]
    assert tag == f'"{path.rsplit("/", 1)[1]}"'
    for text, status in [(tag, 304), ("W/" + tag, 304), ("*", 304), (f'"x", {tag}', 304),
                         ('"x"', 200), (tag.strip('"'), 200), (f'"y{tag[1:]}', 200)]:
        for method in ("GET", "HEAD"):
            # A matching If-None-Match wins over Range.
            answer = daemon.request(method, path, headers={
                "If-None-Match": text, **({"Range": "bytes=0-3"} if status == 304 else {})})
            assert answer.status_code == status, text
            assert answer.headers["ETag"] == tag
            assert answer.content == (BYTES if (status, method) == (200, "GET") else b"")


@pytest.mark.shares_daemon
def test_head(model):
    daemon, path = model
    answer = daemon.request("HEAD", path, headers={"Range": "bytes=0-3"})
    assert answer.status_code == 200  # HEAD ignores Range
    assert answer.headers["Content-Length"] == str(SIZE)
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Repr-Digest"] == repr_digest(BYTES)


@pytest.mark.shares_daemon
def test_results_of_a_job(daemon):
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    whole = daemon.result(job)
    path = f"/v1/jobs/{job}/model"
    begin, rest = (daemon.get(path, headers={"Range": r}) for r in ("bytes=0-999", "bytes=1000-"))
    assert begin.status_code == rest.status_code == 206
    assert begin.content + rest.content == whole
    for what in ("model", "report", "spec"):
        answer = daemon.get(f"/v1/jobs/{job}/{what}")
        assert answer.headers["Repr-Digest"] == repr_digest(answer.content)


@pytest.mark.shares_daemon
def test_one_shot_knows_no_conditions(daemon):
    answer = daemon.post("/v1/quantize", files={"model": BYTES, "calibration": FEW_SAMPLES.read_bytes()},
                         headers={"If-None-Match": "*", "Range": "bytes=0-1"})
    assert answer.status_code == 200
    assert answer.headers["Repr-Digest"] == repr_digest(answer.content)


@pytest.mark.parametrize("kind, path", [("models", RESNET), ("datasets", FEW_SAMPLES)])
def test_digest_of_an_upload(daemon, kind, path):
    data = path.read_bytes()

    def upload(digest):
        return daemon.post(f"/v1/{kind}", data=data, headers={
            "Content-Type": "application/octet-stream", "Repr-Digest": digest})

    document = problem(upload(repr_digest(data + b"x")), 400, "digest_mismatch")
    assert hashlib.sha256(data).hexdigest() in document["detail"]
    problem(upload("sha-256=:AAAA:"), 400, "bad_request")
    assert daemon.stored_files() == []
    assert upload(f"sha-512=:AAAA:, {repr_digest(data)}").status_code == 201
    assert upload("unixsum=:AAAA:").status_code == 200
