# SPDX-License-Identifier: Apache-2.0
"""qdqd --check-store on files: beside a daemon, and after files came and went by themselves."""

import hashlib
import shutil
import sqlite3
import subprocess

import pytest

import nets
from service import DATA, INSTALLED


def check(one, *words):
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "--state-dir", one.state, *words],
                          capture_output=True, text=True, timeout=60, env=one.environment)


def test_rows_and_files(service):
    one = service()
    job = one.submit_glyphs()
    one.succeeded(job)
    done = check(one, "--check-store")
    n = len(one.stored_files())
    assert (done.returncode, done.stdout) == (0, f"{n} stored files, 0 missing, 0 without a row\n")
    report = f"{one.job(job)['id']}"
    lost = one.upload("models", DATA / "glyph_se.onnx")
    hexes = lost.split(":")[1]
    (one.state / "blobs" / hexes[:2] / hexes).unlink()
    foreign = hashlib.sha256(report.encode()).hexdigest()
    (one.state / "blobs" / foreign[:2] / foreign).write_text(report)
    done = check(one, "--check-store")
    assert done.returncode == 1
    assert done.stdout == (f"missing - {lost}\norphan - sha256:{foreign}\n"
                           f"{n + 1} stored files, 1 missing, 1 without a row\n")
    assert not (one.state / "check-store.sqlite3").exists()


def lose_power(one, job):
    """Kills the daemon, and takes from the disk what it has not synced: the report of a job whose
    model was stored before. Returns the report's path, and what it was."""
    one.kill()
    with sqlite3.connect(one.state / "qdqd.sqlite3") as database:
        unsynced = {row[0] for row in database.execute("SELECT id FROM unsynced")}
        (report,) = database.execute("SELECT report FROM jobs WHERE id = ?", [job]).fetchone()
    database.close()
    assert report in unsynced
    path = one.state / "blobs" / report[7:9] / report[7:]
    return path, path.read_bytes()


def finish_two(one):
    """The second job has the result of the first, and a small report of its own."""
    model = one.upload("models", nets.block_net())
    spec = {"evaluate": False, "calibration": {"random_samples": 2}}
    for _ in range(2):
        one.succeeded(job := one.submit(model=model, spec=spec, fresh=True))
    return job


def test_small_files_that_the_record_has(service):
    """They are not lost: the next start writes them."""
    one = service()
    job = finish_two(one)
    report = one.report(job)
    path, _ = lose_power(one, job)
    path.unlink()
    done = check(one, "--check-store")
    assert (done.returncode, done.stdout.split(", ")[1:]) == (
        0, ["0 missing", "0 without a row\n"]), done
    one.start()
    assert one.report(job) == report


@pytest.mark.parametrize("state", ["missing", "empty"])
def test_a_backup_after_a_loss_of_power(service, tmp_path, state):
    """A backup of a folder that no daemon has opened since has them, too."""
    one = service()
    job = finish_two(one)
    report = one.report(job)
    path, data = lose_power(one, job)
    path.unlink()
    if state == "empty":
        path.touch(0o600)
    done = check(one, "--backup", tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "copy" / path.relative_to(one.state)).read_bytes() == data
    other = service()
    other.stop()
    shutil.rmtree(other.state)
    done = check(other, "--restore", tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    other.start()
    assert other.report(job) == report
    one.start()


def test_no_state_folder(service, tmp_path):
    one = service()
    done = check(one, "--check-store", "--state-dir", tmp_path / "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("qdqd: ")
