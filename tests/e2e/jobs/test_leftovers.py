# SPDX-License-Identifier: Apache-2.0
"""No temporary file is left behind, and other users cannot read stored files."""

import contextlib
import hashlib
import os
import random
import socket
import stat
import time

import pytest

from service import DATA, FEW_SAMPLES, eventually, kill_process, open_files

MODEL = DATA / "glyph_resnet.onnx"
SHORT = {"calibration": {"max_samples": 4}, "evaluate": False}


def modes(folder):
    """Returns path and mode of the folder and of everything below it. A file that the
    daemon removes between the listing and the look has no mode."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        with contextlib.suppress(FileNotFoundError):
            found[str(path)] = stat.S_IMODE(path.lstat().st_mode)
    return found


def check_modes(one):
    for path, mode in modes(one.state).items():
        assert mode == (0o700 if os.path.isdir(path) else 0o600), (path, oct(mode))


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_only_the_owner_may_read(open_umask, slow, service):
    one = service(**slow)
    job = one.submit_glyphs(spec=SHORT)
    one.running(job)
    check_modes(one)
    one.succeeded(job)
    check_modes(one)
    one.stop()
    check_modes(one)


def test_a_folder_that_was_made_before(open_umask, service):
    one = service()
    one.stop()
    one.state.chmod(0o755)
    one.start()
    assert stat.S_IMODE(one.state.stat().st_mode) == 0o700
    one.stop()
    # An empty folder is adopted; one with other files keeps its mode.
    one.state = one.state.parent / "empty"
    one.state.mkdir(mode=0o777)
    one.start()
    assert stat.S_IMODE(one.state.stat().st_mode) == 0o700
    one.stop()
    one.state = one.state.parent / "foreign"
    one.state.mkdir(mode=0o755)
    (one.state / "mine").touch()
    one.start()
    assert stat.S_IMODE(one.state.stat().st_mode) == 0o755
    assert "event=state_folder_open" in one.log.read_text()


def half_upload(one, head, body, path="/v1/models"):
    """Sends a request whose body ends too early, and closes the connection."""
    host, port = one.url.split("//")[1].split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall((f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}"
                        "\r\n\r\n").encode() + body)
        eventually(one.temporary_files)
        # Linger 0: the connection is reset, not ended.
        if random.random() < 0.5:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


FORM = ("Content-Type: multipart/form-data; boundary=boundary",
        b'--boundary\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
        + 100_000 * b"m")


@pytest.mark.parametrize("head, body, path", [
    ("Content-Length: 200000", bytes(100_000), "/v1/models"),
    ("Transfer-Encoding: chunked", b"186a0\r\n" + bytes(100_000), "/v1/datasets"),
    (FORM[0] + "\r\nContent-Length: 200000", FORM[1], "/v1/quantize"),
], ids=["length", "chunked", "form"])
def test_client_gone_in_the_middle_of_an_upload(service, head, body, path):
    one = service()
    for _ in range(5):
        half_upload(one, head, body, path)
        eventually(lambda: one.temporary_files() == [])
    assert one.stored_files() == []
    # The bytes of the upload do not count towards the budget any more.
    one.stop()
    one.start(QDQD_STORAGE_MAX_BYTES="150000")
    for _ in range(3):
        half_upload(one, head.replace("200000", "140000"), body, path)
        eventually(lambda: one.temporary_files() == [])
    one.stop()


def test_client_silent_in_the_middle_of_an_upload(service):
    one = service(http_timeout=4)
    host, port = one.url.split("//")[1].split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Length: 200000\r\n\r\n" + bytes(100_000))
        eventually(one.temporary_files)
        eventually(lambda: one.temporary_files() == [])


def test_worker_killed_in_the_middle_of_a_job(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    stored = one.stored_files()
    killed = set()
    for _ in range(2):
        worker = one.worker_of_the_job(but=killed)
        kill_process(worker)
        killed.add(worker)
    assert one.ended(job)["error"]["code"] == "worker_died"
    eventually(lambda: one.temporary_files() == [])
    assert one.stored_files() == stored


def test_job_cancelled_in_the_middle(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    stored = one.stored_files()
    one.running(job)
    one.post(f"/v1/jobs/{job}/cancel")
    eventually(lambda: one.temporary_files() == [])
    assert one.stored_files() == stored


def test_a_download_that_is_broken_off_holds_nothing(service):
    one = service()
    model = one.upload("models", MODEL)
    host, port = one.url.split("//")[1].split(":")
    for _ in range(5):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"GET /v1/models/{model} HTTP/1.1\r\nHost: localhost\r\n\r\n"
                           .encode())
            client.recv(1000)
    pid = one.process.pid

    def open_blobs():
        return [link for link in open_files(pid)
                if "/blobs/" in link and not link.endswith("blobs")]

    eventually(lambda: open_blobs() == [])


def test_daemon_killed_at_any_moment(service):
    """Whenever the daemon is killed, blobs are complete and rows refer to all of them."""
    one = service()
    rng = random.Random(7)
    for _ in range(6):
        model = one.upload("models", MODEL)
        data = one.upload("datasets", FEW_SAMPLES)
        one.submit(model=model, calibration=data, fresh=True, spec=SHORT)
        time.sleep(rng.random() * 0.4)
        one.kill()
        (one.state / "tmp" / "9.tmp").write_bytes(b"left")
        orphan = one.state / "blobs" / "00" / ("00" + 62 * "a")
        orphan.write_bytes(b"of no row")
        one.start(QDQD_RETENTION_LEFTOVERS="0")
        eventually(lambda: not orphan.exists())
        check_blobs(one)

    def states():
        return [job["state"] for job in one.get("/v1/jobs").json()["jobs"]]

    # One request for all, because jobs go from running to queued when a dead daemon's lease ends.
    eventually(lambda: not {"queued", "running"} & set(states()), 60)
    assert states() == 6 * ["succeeded"]
    check_blobs(one)
    eventually(lambda: one.temporary_files() == [])


def check_blobs(one):
    for path in (one.state / "blobs").rglob("*"):
        if path.is_file() and path.name != ".place":  # the mark of a record in PostgreSQL
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
