# SPDX-License-Identifier: Apache-2.0
"""Bytes by their digest: stored once, completely or not at all, and kept as long as
needed."""

import hashlib
import os
import socket
import threading
import time
from datetime import datetime

import pytest

from service import DATA, eventually, problem
from test_refused_early import EXPECT, Connection

MODEL = DATA / "glyph_se.onnx"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def put(one, data, of=None, **options):
    return one.request("PUT", f"/v1/blobs/{of or digest(data)}", data=data, **options)


def head(one, data):
    return one.request("HEAD", f"/v1/blobs/{digest(data)}").status_code


def lies_at(one, data):
    name = digest(data)[7:]
    return one.state / "blobs" / name[:2] / name


def test_put_head_get_and_delete(daemon):
    data = os.urandom(100_000)
    assert head(daemon, data) == 404
    answer = put(daemon, data)
    assert answer.status_code == 201
    first = answer.json()
    assert first["id"] == digest(data) and first["size"] == len(data)
    assert first["expires_at"] > first["created_at"]
    assert answer.headers["Location"] == f"/v1/blobs/{digest(data)}"
    there = daemon.request("HEAD", answer.headers["Location"])
    assert there.status_code == 200
    assert there.headers["Content-Length"] == str(len(data))
    assert there.headers["ETag"] == f'"{digest(data)}"'
    path = f"/v1/blobs/{digest(data)}"
    assert daemon.get(path).content == data
    part = daemon.get(path, headers={"Range": "bytes=10-19"})
    assert part.status_code == 206 and part.content == data[10:20]
    assert daemon.request("DELETE", path).status_code == 204
    assert head(daemon, data) == 404
    problem(daemon.get(path), 404, "not_found")
    problem(daemon.request("DELETE", path), 404, "not_found")
    assert not lies_at(daemon, data).exists()


def test_again_it_is_not_written(daemon):
    data = os.urandom(50_000)
    first = put(daemon, data).json()
    before = lies_at(daemon, data).stat()
    time.sleep(0.02)
    again = put(daemon, data)
    after = lies_at(daemon, data).stat()
    assert again.status_code == 200
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert again.json()["created_at"] == first["created_at"]
    assert again.json()["expires_at"] > first["expires_at"]
    assert daemon.temporary_files() == []


def test_content_type_does_not_matter(daemon):
    for kind in ("application/json", "multipart/form-data; boundary=x",
                 "application/x-www-form-urlencoded"):
        data = os.urandom(64)
        answer = put(daemon, data, headers={"Content-Type": kind})
        assert answer.status_code == 201, kind


def test_other_bytes_are_refused_and_leave_nothing(daemon):
    data = os.urandom(10_000)
    before = daemon.stored_files()
    document = problem(put(daemon, data + b"x", of=digest(data)), 400, "digest_mismatch")
    assert digest(data) in document["detail"]
    assert digest(data + b"x") in document["detail"]
    assert head(daemon, data) == 404 and head(daemon, data + b"x") == 404
    assert daemon.stored_files() == before and daemon.temporary_files() == []
    put(daemon, data)
    problem(put(daemon, b"x" + data, of=digest(data)), 400, "digest_mismatch")
    assert daemon.get(f"/v1/blobs/{digest(data)}").content == data


def test_header_and_path_agree(daemon):
    data = b"some bytes"
    right = "sha-256=:" + __import__("base64").b64encode(
        hashlib.sha256(data).digest()).decode() + ":"
    wrong = "sha-256=:" + __import__("base64").b64encode(bytes(32)).decode() + ":"
    problem(put(daemon, data, headers={"Repr-Digest": wrong}), 400, "digest_mismatch")
    assert put(daemon, data, headers={"Repr-Digest": right}).status_code == 201


@pytest.mark.shares_daemon
@pytest.mark.parametrize("name", [
    "sha256:abc", "sha256:" + "G" * 64, "sha256:" + "A" * 64, "md5:" + "0" * 32,
    "0" * 64, "sha256:" + "0" * 65, "x"])
def test_no_digest(daemon, name):
    problem(daemon.request("PUT", f"/v1/blobs/{name}", data=b"abc"), 400, "bad_request")
    problem(daemon.get(f"/v1/blobs/{name}"), 404, "not_found")
    problem(daemon.request("DELETE", f"/v1/blobs/{name}"), 404, "not_found")


def test_empty_and_without_a_body(daemon):
    nothing = "sha256:" + hashlib.sha256(b"").hexdigest()
    problem(daemon.request("PUT", f"/v1/blobs/{nothing}", data=b""), 400, "empty_body")
    problem(daemon.post(f"/v1/blobs/{nothing}", data=b"x"), 405, "method_not_allowed")


def test_refused_by_the_head(service):
    """An error in the head is answered at once, without "100 Continue"."""
    one = service(http_max_body="1M", storage_max_bytes="2M")
    name = "sha256:" + "0" * 64
    for status, code, path, length in [
            (413, "too_large", name, 1 << 30), (400, "bad_request", "sha256:12", 5),
            (413, "too_large", name, (1 << 20) + 1)]:
        with Connection(one) as connection:
            connection.head("PUT", f"/v1/blobs/{path}", EXPECT, f"Content-Length: {length}")
            connection.problem(status, code)
    for _ in range(2):
        data = os.urandom(900_000)
        assert put(one, data).status_code == 201
    with Connection(one) as connection:  # room can be made, so the upload is accepted
        data = os.urandom(1 << 20)
        connection.head("PUT", f"/v1/blobs/{digest(data)}", EXPECT,
                        f"Content-Length: {len(data)}")
        assert connection.answer()[0] == 100
        connection.send(data)
        assert connection.answer()[0] == 201
    assert one.temporary_files() == []


def test_disk_budget(held, service):
    """Files that are needed are not removed to make room: the upload gets 507."""
    one = service(storage_max_bytes="1000000", **held)
    model = MODEL.read_bytes()
    assert len(model) < 1_000_000
    job = one.submit(model=one.upload("models", model),
                     spec={"calibration": {"random_samples": 1}})
    data = os.urandom(999_000)
    document = problem(put(one, data), 507, "disk_full")
    assert document["retryable"] is True
    assert head(one, data) == 404
    one.post(f"/v1/jobs/{job}/cancel")


def test_two_at_once(daemon):
    """Two uploads of the same bytes both succeed, one of them as new, and the bytes are
    stored once."""
    data = os.urandom(3 << 20)
    half = len(data) // 2
    codes = []

    def send():
        with Connection(daemon) as one:
            one.head("PUT", f"/v1/blobs/{digest(data)}", f"Content-Length: {len(data)}")
            one.send(data[:half])
            barrier.wait()
            one.send(data[half:])
            codes.append(one.answer()[0])

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200, 200, 200, 201]
    assert daemon.get(f"/v1/blobs/{digest(data)}").content == data
    assert daemon.temporary_files() == []


def test_interrupted(daemon):
    data = os.urandom(200_000)
    before = daemon.stored_files()
    for how in (socket.SHUT_RDWR, None):
        with Connection(daemon) as one:
            one.head("PUT", f"/v1/blobs/{digest(data)}", f"Content-Length: {len(data)}")
            one.send(data[:-1])
            if how is not None:
                one.socket.shutdown(how)
    eventually(lambda: daemon.temporary_files() == [])
    assert daemon.stored_files() == before
    assert head(daemon, data) == 404


def test_killed_in_the_middle(service):
    one = service()
    whole, half = os.urandom(100_000), os.urandom(5 << 20)
    assert put(one, whole).status_code == 201
    with Connection(one) as connection:
        connection.head("PUT", f"/v1/blobs/{digest(half)}", f"Content-Length: {len(half)}")
        connection.send(half[:4 << 20])
        eventually(one.temporary_files)
        one.kill()
    one.start()
    assert one.temporary_files() == []
    assert one.stored_files() == [digest(whole)[7:]]
    assert head(one, whole) == 200 and head(one, half) == 404
    assert one.get(f"/v1/blobs/{digest(whole)}").content == whole
    assert put(one, half).status_code == 201


def test_a_blob_and_a_model_of_the_same_bytes(service):
    """Deleting one keeps the bytes for the other."""
    one = service()
    data = MODEL.read_bytes()
    assert put(one, data).status_code == 201
    inode = lies_at(one, data).stat().st_ino
    assert one.upload("models", data) == digest(data)
    assert lies_at(one, data).stat().st_ino == inode
    assert one.request("DELETE", f"/v1/blobs/{digest(data)}").status_code == 204
    assert head(one, data) == 404
    assert one.get(f"/v1/models/{digest(data)}").content == data
    assert put(one, data).status_code == 201
    assert one.request("DELETE", f"/v1/models/{digest(data)}").status_code == 204
    assert one.get(f"/v1/models/{digest(data)}").status_code == 404
    assert one.get(f"/v1/blobs/{digest(data)}").content == data
    assert one.request("DELETE", f"/v1/blobs/{digest(data)}").status_code == 204
    assert one.stored_files() == []


def test_a_blob_is_no_model(daemon):
    data = MODEL.read_bytes() + b"\x00"  # not even one
    put(daemon, data)
    problem(daemon.get(f"/v1/models/{digest(data)}"), 404, "not_found")
    problem(daemon.post("/v1/jobs", json={"model": digest(data)}), 404, "not_found")


def test_retention(service):
    one = service(retention_files=5)
    kept, gone = os.urandom(1000), os.urandom(1000)
    first = put(one, kept).json()
    created, expires = (datetime.fromisoformat(first[k].replace("Z", "+00:00"))
                        for k in ("created_at", "expires_at"))
    assert (expires - created).total_seconds() == 5
    put(one, gone)

    def is_renewed_until_the_other_goes():
        assert put(one, kept).status_code == 200
        return head(one, gone) == 404

    eventually(is_renewed_until_the_other_goes, every=0.1)
    assert one.stored_files() == [digest(kept)[7:]]
    assert "kind=blob" in one.log.read_text()
    eventually(lambda: one.stored_files() == [])


def test_restart(service):
    one = service()
    data = os.urandom(1000)
    first = put(one, data).json()
    one.stop()
    one.start()
    again = put(one, data)
    assert again.status_code == 200
    assert again.json()["created_at"] == first["created_at"]
