# SPDX-License-Identifier: Apache-2.0
"""Stored files whose database is lost are kept, and a folder has one daemon."""

import hashlib
import os
import shutil
import subprocess

import pytest

from service import DATA, INSTALLED, eventually
from test_blobs import put

MODEL = (DATA / "glyph_se.onnx").read_bytes()


def run(one, *options):
    """The program on the state folder of a stopped daemon."""
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "--listen", "127.0.0.1:0",
                           "--state-dir", one.state, *options],
                          capture_output=True, text=True, timeout=60)


def remove(one, fresh):
    for path in one.state.glob("qdqd.sqlite3*"):
        path.unlink()


def empty(one, fresh):
    remove(one, fresh)
    (one.state / "qdqd.sqlite3").touch()


def another(one, fresh):
    """That of a folder in which nothing was stored."""
    remove(one, fresh)
    shutil.copy(fresh.state / "qdqd.sqlite3", one.state)


def another_without_a_note(one, fresh):
    another(one, fresh)
    (one.state / "record").unlink()


@pytest.mark.parametrize("lose", [remove, empty, another, another_without_a_note])
def test_a_lost_database(service, lose):
    """The daemon says what to do; --adopt keeps the files."""
    one, fresh = service(), service()
    fresh.stop()
    model = one.upload("models", MODEL)
    put(one, b"another file")
    before = one.stored_files()
    one.stop()
    lose(one, fresh)
    refused = run(one)
    assert refused.returncode == 1
    for word in (str(one.state), "qdqd.sqlite3", "--restore DIR", "--adopt"):
        assert word in refused.stderr, refused.stderr
    assert one.stored_files() == before
    adopted = run(one, "--adopt")
    assert adopted.returncode == 0 and "2 files" in adopted.stdout, adopted
    one.start()
    assert one.get(f"/v1/blobs/{model}").content == MODEL
    document = {"files": [{"path": "m.onnx", "digest": model}]}
    assert one.post("/v1/models", json=document).json()["id"] == model
    assert one.stored_files() == before


def test_adoption_names_no_damaged_file(service):
    one = service()
    put(one, MODEL)
    put(one, b"another file")
    one.stop()
    remove(one, None)
    name = hashlib.sha256(b"another file").hexdigest()
    (one.state / "blobs" / name[:2] / name).write_bytes(b"damaged")
    assert "1 files" in run(one, "--adopt").stdout
    one.start()
    assert one.get(f"/v1/blobs/sha256:{name}").status_code == 404


def test_leftovers_have_a_grace_period(service):
    """A file without a row is named in the log at the start, and goes later."""
    one = service()
    one.stop()
    data = b"of no row"
    name = hashlib.sha256(data).hexdigest()
    path = one.state / "blobs" / name[:2] / name
    path.write_bytes(data)
    os.utime(path, (1, 1))
    one.start(QDQD_RETENTION_LEFTOVERS="2")
    assert path.exists()
    assert f"event=leftover_found id=sha256:{name}" in one.log.read_text()
    eventually(lambda: not path.exists())
    assert f"event=leftover_removed id=sha256:{name}" in one.log.read_text()
    path.write_bytes(data)
    one.stop()
    one.start(QDQD_RETENTION_LEFTOVERS="1")
    put(one, data)  # and so it is none any more
    eventually(lambda: one.log.read_text().count("event=leftovers_found") == 2)
    kept = one.log.stat().st_size
    eventually(lambda: one.stored_files() == [name])
    assert "leftover_removed" not in one.log.read_text()[kept:]


def test_one_daemon(service):
    """A second daemon is refused also when files are removed under the first."""
    one = service()
    for name in ("lock", "record"):
        (one.state / name).unlink(missing_ok=True)
    second = run(one)
    assert second.returncode == 1
    assert "another daemon uses this state folder" in second.stderr
