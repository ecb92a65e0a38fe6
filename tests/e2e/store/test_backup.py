# SPDX-License-Identifier: Apache-2.0
"""qdqd --backup and --restore: a copy is complete and checked, also while the daemon
works."""

import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import threading

import pytest

import judge
from service import DATA, FEW_SAMPLES, INSTALLED, eventually, problem

MODEL = DATA / "glyph_resnet.onnx"
SHORT = {"calibration": {"max_samples": 4}, "evaluate": False}


def qdqd(*arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")}
    return subprocess.run([INSTALLED / "sbin" / "qdqd", *arguments], env=env,
                          capture_output=True, text=True, timeout=120)


def backup(one, to):
    return qdqd("--state-dir", one.state, "--backup", to)


def restore(from_, to):
    return qdqd("--state-dir", to, "--restore", from_)


def blobs(folder):
    return {p.name: p for p in (folder / "blobs").rglob("*") if p.is_file()}


def check_copy(folder):
    """Checks a copy by SQLite's integrity check and by SHA-256."""
    for name, path in blobs(folder).items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == name
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    database = sqlite3.connect(folder / "qdqd.sqlite3")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    named = {row[0].split(":")[1] for column, table in (
        ("id", "files"), ("result_model", "jobs"), ("report", "jobs"), ("frozen", "jobs"),
        ("blob", "observations")) for row in database.execute(
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")}
    database.close()
    return named


def test_there_and_back(service, tmp_path):
    one = service()
    job = one.submit_glyphs(spec=SHORT, labels={"of": "before"})
    before, result, report = one.succeeded(job), one.result(job), one.report(job)
    kept = one.stored_files()
    done = backup(one, tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    assert f"{len(kept)} files, " in done.stdout
    assert check_copy(tmp_path / "copy") == set(kept) == set(blobs(tmp_path / "copy"))
    # On the same file system both share the bytes.
    mine, copied = blobs(one.state), blobs(tmp_path / "copy")
    assert all(mine[name].samefile(copied[name]) for name in kept)
    # Later changes do not affect the copy.
    one.request("DELETE", f"/v1/jobs/{job}")
    one.request("DELETE", f"/v1/models/{before['model']}")
    one.submit_glyphs("glyph_se", spec=SHORT)
    one.stop()
    done = restore(tmp_path / "copy", tmp_path / "fresh")
    assert done.returncode == 0, done.stderr
    check_copy(tmp_path / "fresh")
    one.state = tmp_path / "fresh"
    one.start()
    assert one.job(job) == before and one.result(job) == result
    assert one.report(job) == report
    assert len(one.get("/v1/jobs").json()["jobs"]) == 1
    one.succeeded(one.submit(model=before["model"], calibration=before["calibration"],
                             spec={**SHORT, "weights": {"granularity": "tensor"}}))
    assert set(blobs(tmp_path / "copy")) == set(kept)
    check_copy(tmp_path / "copy")


def test_a_live_job_is_in_it_and_runs_after(held, service, tmp_path):
    one = service(**held)
    job = one.submit_glyphs(spec=SHORT)
    one.running(job)
    assert backup(one, tmp_path / "copy").returncode == 0
    assert one.job(job)["state"] == "running"
    one.kill()
    assert restore(tmp_path / "copy", tmp_path / "fresh").returncode == 0
    one.state, one.environment = tmp_path / "fresh", {}
    one.start()
    one.succeeded(job)
    judge.load(one.result(job))


def test_while_things_come_and_go(service, tmp_path):
    """Each copy is complete, whatever was deleted while it was made."""
    one = service()
    stop = threading.Event()
    faults = []

    def work():
        n = 0
        try:
            while not stop.is_set():
                n += 1
                job = one.submit_glyphs(fresh=True, spec={"calibration": {
                    "max_samples": 1 + n % 7}, "evaluate": False})
                one.succeeded(job)
                if n % 2:
                    one.request("DELETE", f"/v1/jobs/{job}")
        except AssertionError as fault:
            faults.append(fault)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for n in range(8):
            done = backup(one, tmp_path / str(n))
            assert done.returncode == 0, done.stderr
            assert check_copy(tmp_path / str(n)) <= set(blobs(tmp_path / str(n)))
    finally:
        stop.set()
        thread.join()
    assert faults == []
    assert "store_failed" not in one.log.read_text()


def test_of_a_daemon_that_is_not_running(service, tmp_path):
    """A backup does not need a running daemon."""
    one = service()
    model = one.upload("models", MODEL)
    one.kill()  # leaves a log that was not written back to the database
    assert backup(one, tmp_path / "copy").returncode == 0
    assert model.split(":")[1] in check_copy(tmp_path / "copy")
    one.start()


def test_not_over_anything(service, tmp_path):
    """Backup and restore refuse a folder that is not empty."""
    one = service()
    one.upload("models", MODEL)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    done = backup(one, tmp_path / "full")
    assert done.returncode == 1 and "not empty" in done.stderr
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
    assert backup(one, tmp_path / "copy").returncode == 0
    done = backup(one, tmp_path / "copy")
    assert done.returncode == 1 and "not empty" in done.stderr
    done = restore(tmp_path / "copy", one.state)
    assert done.returncode == 1 and "not empty" in done.stderr
    assert qdqd("--state-dir", tmp_path / "none", "--backup", tmp_path / "x").returncode == 1
    assert restore(tmp_path / "full", tmp_path / "y").returncode == 1
    assert not (tmp_path / "y" / "qdqd.sqlite3").exists()


def spoil_blob(copy):
    path = blobs(copy)[hashlib.sha256(MODEL.read_bytes()).hexdigest()]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # it is a hard link to the blob
    path.write_bytes(data)


def lose_blob(copy):
    blobs(copy)[hashlib.sha256(MODEL.read_bytes()).hexdigest()].unlink()


def spoil_database(copy):
    path = copy / "qdqd.sqlite3"
    data = bytearray(path.read_bytes())
    data[4096:8192] = os.urandom(4096)
    path.write_bytes(data)


def lose_database(copy):
    (copy / "qdqd.sqlite3").unlink()


@pytest.mark.parametrize("spoil, said", [
    (spoil_blob, "damaged"), (lose_blob, "No such file"), (spoil_database, ""),
    (lose_database, "No such file")])
def test_a_damaged_copy_is_not_restored(service, tmp_path, spoil, said):
    one = service()
    one.upload("models", MODEL)
    assert backup(one, tmp_path / "copy").returncode == 0
    spoil(tmp_path / "copy")
    done = restore(tmp_path / "copy", tmp_path / "fresh")
    assert done.returncode == 1 and said in done.stderr, done
    assert not (tmp_path / "fresh" / "qdqd.sqlite3").exists()


def test_a_damaged_blob_is_not_backed_up(service, tmp_path):
    one = service()
    one.upload("models", MODEL)
    one.upload("datasets", FEW_SAMPLES)
    spoil_blob(one.state)
    done = backup(one, tmp_path / "copy")
    assert done.returncode == 1 and "damaged" in done.stderr
    assert not (tmp_path / "copy" / "qdqd.sqlite3").exists()


def test_to_another_disk(service, tmp_path):
    """On another disk the copy has no links and shares no bytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk],
                          capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no disk of one's own: {made.stderr.strip()}")
    try:
        one = service()
        one.upload("models", MODEL)
        assert backup(one, disk / "copy").returncode == 0
        check_copy(disk / "copy")
        assert set(blobs(disk / "copy")) == set(one.stored_files())
        one.upload("datasets", FEW_SAMPLES)
        shutil.rmtree(disk / "copy")
        filler = disk / "filler"
        with open(filler, "wb") as file:
            file.write(bytes(os.statvfs(disk).f_bavail * 4096 - (1 << 20)))
        done = backup(one, disk / "copy")
        assert done.returncode == 1 and "No space left" in done.stderr
        assert not (disk / "copy" / "qdqd.sqlite3").exists()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_running_daemon_is_not_restored_over(service, tmp_path):
    one = service()
    one.upload("models", MODEL)
    assert backup(one, tmp_path / "copy").returncode == 0
    assert restore(tmp_path / "copy", one.state).returncode == 1
    assert eventually(lambda: one.get("/healthz").status_code == 200)
    problem(one.get("/v1/jobs/none"), 404, "not_found")


def test_somebody_else_holds_the_database(service):
    """While another process locks the database for a moment, requests wait for it and are
    not refused."""
    one = service()
    model = one.upload("models", MODEL)
    other = sqlite3.connect(one.state / "qdqd.sqlite3", isolation_level=None,
                            check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(1.5, lambda: other.execute("COMMIT"))
    timer.start()
    job = one.submit(model=model, spec={"calibration": {"random_samples": 1}})
    assert not timer.is_alive()
    one.succeeded(job)
    other.close()
