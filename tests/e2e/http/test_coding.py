# SPDX-License-Identifier: Apache-2.0
"""Bodies in a coding, such as gzip: they would be taken for the file itself."""

import gzip
import hashlib
import json

import pytest

from service import DATA, FEW_SAMPLES, problem

pytestmark = pytest.mark.shares_daemon
MODEL = (DATA / "glyph_se.onnx").read_bytes()
RAW = "application/octet-stream"


def bodies():
    """The route, the type and the body of each kind of body."""
    blob = gzip.compress(MODEL, mtime=0)
    yield "POST", "/v1/models", RAW, MODEL
    yield "POST", "/v1/datasets", RAW, FEW_SAMPLES.read_bytes()
    yield "PUT", f"/v1/blobs/sha256:{hashlib.sha256(blob).hexdigest()}", RAW, MODEL
    yield "POST", "/v1/jobs", "application/json", json.dumps({"model": "sha256:0"}).encode()
    yield "POST", "/v1/plan", "application/json", json.dumps({"model": "sha256:0"}).encode()
    yield "POST", "/v1/quantize", "application/json", json.dumps({"model": "sha256:0"}).encode()
    yield "POST", "/v1/hooks/any", "application/json", b"{}"


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "gzip, identity", "x"])
def test_a_body_in_a_coding_is_refused(daemon, coding):
    before = daemon.stored_files()
    for method, path, kind, body in bodies():
        answer = daemon.request(method, path, data=gzip.compress(body, mtime=0), headers={
            "Content-Type": kind, "Content-Encoding": coding})
        document = problem(answer, 415, "unsupported_media_type")
        assert coding in document["detail"]
        assert answer.headers["Accept-Encoding"] == "identity"
    assert daemon.stored_files() == before


@pytest.mark.parametrize("coding", ["", "identity", "Identity, identity"])
def test_identity_is_no_coding(daemon, coding):
    answer = daemon.post("/v1/models", data=MODEL, headers={
        "Content-Type": RAW, "Content-Encoding": coding})
    assert answer.status_code in (200, 201), answer.text


def form(encoding):
    return (b"--xx\r\nContent-Disposition: form-data; name=\"model\"\r\n"
            b"Content-Transfer-Encoding: " + encoding + b"\r\n\r\n" + MODEL + b"\r\n--xx--\r\n")


@pytest.mark.parametrize("encoding", [b"base64", b"quoted-printable"])
def test_a_part_in_a_coding_is_refused(daemon, encoding):
    answer = daemon.post("/v1/models", data=form(encoding), headers={
        "Content-Type": "multipart/form-data; boundary=xx"})
    assert encoding.decode() in problem(answer, 415, "unsupported_media_type")["detail"]


@pytest.mark.parametrize("encoding", [b"binary", b"8bit"])
def test_a_part_as_it_is(daemon, encoding):
    answer = daemon.post("/v1/models", data=form(encoding), headers={
        "Content-Type": "multipart/form-data; boundary=xx"})
    assert answer.status_code in (200, 201), answer.text
