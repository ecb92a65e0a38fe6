# SPDX-License-Identifier: Apache-2.0
"""Faults of a real machine: no free descriptors, a disk that cannot be written, a clock
that is set back, a database that another process locks, workers that all die."""

import os
import re
import resource
import socket
import sqlite3
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from service import DATA, FEW_SAMPLES, INSTALLED, cpu_seconds, eventually, problem
from test_leftovers import check_blobs

pytestmark = pytest.mark.long
MODEL = DATA / "glyph_resnet.onnx"
SHORT = {"calibration": {"max_samples": 4}, "evaluate": False}
RAW = {"Content-Type": "application/octet-stream"}


# --- descriptors ------------------------------------------------------------------------


@contextmanager
def descriptors(soft):
    """Limits the descriptors of processes that are started in the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    pid = os.getpid()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def limit_of(pid, soft, hard):
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def is_idle(pid, seconds=2):
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return cpu_seconds(pid) - before < 0.2 * seconds


def crowd(one, n):
    """Opens connections that send nothing."""
    host, port = one.url.split("//")[1].split(":")
    clients = []
    for _ in range(n):
        client = socket.socket()
        client.settimeout(60)
        clients.append(client)
        client.connect((host, int(port)))
    return clients


def answers(one):
    try:
        return requests.get(one.url + "/healthz", timeout=1).status_code == 200
    except requests.RequestException:
        return False


def test_a_low_limit_is_raised(service):
    with descriptors(soft=64):
        one = service()
    limits = Path(f"/proc/{one.process.pid}/limits").read_text()
    assert int(re.search(r"Max open files +(\d+)", limits)[1]) > 1000
    assert "event=connections_lowered" not in one.log.read_text()
    one.succeeded(one.submit_glyphs(spec=SHORT))


def start_with(one, descriptors):
    """Starts the daemon with a hard limit, which it cannot raise."""
    wrapper = one.state.parent / "qdqd"
    wrapper.write_text(f"#!/usr/bin/python3\nimport os, resource, sys\n"
                       f"resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors},) * 2)\n"
                       f"os.execv('{INSTALLED}/sbin/qdqd', sys.argv)\n")
    wrapper.chmod(0o755)
    return one.start(program=wrapper)


def test_more_clients_than_descriptors(service):
    """Connections beyond the descriptors wait or are refused; accepted requests are
    answered, and no thread spins."""
    one = service()
    one.stop()
    start_with(one, 190)
    (most,) = map(int, re.findall(r"event=connections_lowered to=(\d+)",
                                  one.log.read_text()))
    assert 2 <= most < 20
    job = one.submit_glyphs(spec=SHORT)
    clients = crowd(one, 150)
    # The connection was open before, so its requests and the lanes have their descriptors.
    for _ in range(3):
        one.succeeded(one.submit_glyphs(spec=SHORT, fresh=True))
    assert is_idle(one.process.pid)
    for client in clients:
        client.close()
    eventually(lambda: answers(one))
    one.succeeded(job)
    assert "Too many open files" not in one.log.read_text()


def test_too_few_to_work_with(service, tmp_path):
    one = service()
    one.stop()
    with pytest.raises(AssertionError, match="RLIMIT_NOFILE"):
        start_with(one, 40)
    assert one.process.wait(60) == 1
    one.process = None


def test_descriptors_that_are_taken_away(service):
    """When the whole system has no free descriptor, requests get 503 at once, no job is
    lost, and work continues afterwards."""
    one = service()
    model = one.upload("models", MODEL)
    data = one.upload("datasets", FEW_SAMPLES)
    pid = one.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    limit_of(pid, 3, before[1])
    job = one.submit(model=model, calibration=data, spec=SHORT)
    problem(one.post("/v1/datasets", data=bytes(1000), headers=RAW), 503, "unavailable")
    form = {"model": ("m", bytes(1000), "application/octet-stream")}
    problem(one.post("/v1/quantize", files=form), 503, "unavailable")
    problem(one.get(f"/v1/models/{model}"), 503, "unavailable")
    assert is_idle(pid)
    assert one.job(job)["state"] in ("queued", "running")
    limit_of(pid, *before)
    one.succeeded(job)
    eventually(lambda: one.get("/readyz").status_code == 200)
    one.upload("models", DATA / "glyph_se.onnx")


# --- a disk that cannot be written --------------------------------------------------------


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


@pytest.fixture
def own_disk(tmp_path):
    """Mounts a file system in a file, which can be made read-only while it is in use."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    made = run("mkfs.ext4", "-q", "-F", image)
    made = made.returncode and made or run("mount", "-o", "loop", image, folder)
    if made.returncode:
        pytest.skip(f"no disk of one's own: {made.stderr.strip()}")
    yield folder
    run("umount", "--lazy", folder)


def start_on(service, folder, **settings):
    one = service(**settings)
    one.stop()
    one.state = folder / "state"
    return one.start()


def is_writable(folder):
    try:
        (folder / "try").write_bytes(b"")
    except OSError:
        return False
    return True


def test_a_disk_that_becomes_read_only(own_disk, held, service):
    """The kernel makes a disk with errors read-only. No accepted job is lost."""
    one = start_on(service, own_disk, **held)
    job = one.submit_glyphs(spec=SHORT)
    one.running(job)
    waiting = one.submit_glyphs("glyph_se", spec=SHORT)
    model = one.job(job)["model"]
    assert run("mount", "-o", "remount,abort", own_disk).returncode == 0
    eventually(lambda: not is_writable(own_disk))
    answer = one.post("/v1/datasets", data=bytes(1000), headers=RAW)
    problem(answer, 503, "unavailable")
    answer = one.post("/v1/jobs", json={"model": model, "spec": SHORT, "fresh": True})
    assert answer.status_code in (500, 503) and answer.json()["retryable"]
    assert one.job(job)["state"] == "running"
    assert len(one.get(f"/v1/models/{model}").content) == MODEL.stat().st_size
    assert one.get("/healthz").status_code == 200
    one.kill()
    # The killed daemon's worker has files there until it has ended, too.
    eventually(lambda: run("umount", own_disk).returncode == 0)
    run("fsck.ext4", "-y", own_disk.parent / "image")
    assert run("mount", "-o", "loop", own_disk.parent / "image", own_disk).returncode == 0
    one.environment = {}
    one.start()
    for each in (job, waiting):
        one.succeeded(each)
    check_blobs(one)


def test_a_state_folder_that_cannot_be_written(own_disk, service):
    """The daemon reports that at its start, and not to the first client."""
    one = start_on(service, own_disk)
    one.stop()
    assert run("mount", "-o", "remount,ro", own_disk).returncode == 0
    with pytest.raises(AssertionError, match="Read-only file system"):
        one.start()
    assert one.process.wait(60) == 1
    one.process = None


# --- a disk that is full ------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 48 MB that can be filled to its last byte."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = run("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder)
    if made.returncode:
        pytest.skip(f"no disk of one's own: {made.stderr.strip()}")
    yield folder
    run("umount", "--lazy", folder)


def fill(folder):
    """Leaves not a byte free."""
    with open(folder / "filler", "ab", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass


def test_a_full_disk_can_be_cleared(small_disk, service):
    """DELETE makes room, of jobs and of files, on a disk that something else filled."""
    one = start_on(service, small_disk, storage_min_free=1)
    model = one.upload("models", MODEL)
    data = one.upload("datasets", FEW_SAMPLES)
    jobs = [one.submit(model=model, calibration=data, spec=SHORT, fresh=True)
            for _ in range(3)]
    for job in jobs:
        one.succeeded(job)
    fill(small_disk)
    answer = one.post("/v1/datasets", data=bytes(1 << 20), headers=RAW)
    problem(answer, 507, "disk_full")
    for job in jobs:
        fill(small_disk)
        assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
        assert one.get(f"/v1/jobs/{job}").status_code == 404
    for path in (f"/v1/models/{model}", f"/v1/datasets/{data}"):
        fill(small_disk)
        assert one.request("DELETE", path).status_code == 204
    (small_disk / "filler").unlink()
    one.succeeded(one.submit_glyphs(spec=SHORT))


# --- a clock that was set back ------------------------------------------------------------

FUTURE = 40 * 86_400_000
TIMES = {"files": ["created_at", "kept_from"], "clock": ["newest"],
         "jobs": ["created_at", "started_at", "ended_at", "kept_from"],
         "observations": ["used_at"]}


def move_times(one, by):
    """Moves all recorded times, as if everything had happened that much later."""
    with sqlite3.connect(one.state / "qdqd.sqlite3") as database:
        triggers = database.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            database.execute(f"DROP TRIGGER {name}")
        for table, columns in TIMES.items():
            for column in columns:
                database.execute(f"UPDATE {table} SET {column} = {column} + {by}"
                                 f" WHERE {column} > 0")
        for _, sql in triggers:
            database.execute(sql)
    database.close()


def ids(one, query=""):
    return [job["id"] for job in one.get("/v1/jobs" + query).json()["jobs"]]


def test_clock_set_back(service):
    """Order, waiting, lists and retention do not depend on the wall clock."""
    one = service()
    early = one.submit_glyphs(spec=SHORT)
    one.succeeded(early)
    one.stop()
    move_times(one, FUTURE)
    one.start()  # the clock is forty days back
    assert one.job(early)["created_at"] > "2026"
    late = one.submit_glyphs(spec=SHORT, fresh=True, labels={"after": "it"})
    begin = time.monotonic()
    assert one.succeeded(late)["created_at"] < one.job(early)["created_at"]
    assert time.monotonic() - begin < 60
    assert ids(one) == [late, early]
    page = one.get("/v1/jobs?limit=1").json()
    assert [job["id"] for job in page["jobs"]] == [late]
    assert ids(one, f"?limit=1&cursor={page['next_cursor']}") == [early]
    # A job that succeeded in the future answers it; events keep their order.
    again = one.submit_glyphs(spec=SHORT)
    assert one.succeeded(again)["cached_from"] in (early, late)
    events = one.get(f"/v1/jobs/{again}/events").text
    assert events.count("event: end") == 1
    # When the clock is right again, nothing counts as old or expires early.
    one.stop()
    one.start()
    assert ids(one) == [again, late, early]
    assert one.job(late)["expires_at"] > one.job(early)["ended_at"]


def test_clock_set_back_with_jobs_on_their_way(held, service):
    one = service(**held)
    running = one.submit_glyphs(spec=SHORT)
    waiting = one.submit_glyphs("glyph_se", spec=SHORT)
    one.running(running)
    one.kill()
    move_times(one, FUTURE)
    one.environment = {"QDQD_RETENTION_JOBS": "3600", "QDQD_RETENTION_FILES": "3600"}
    one.start()
    urgent = one.submit_glyphs("glyph_mobilenet", spec=SHORT, priority=5)
    for job in (running, waiting, urgent):
        document = one.succeeded(job)
        assert document["started_at"] <= document["ended_at"]
        assert one.result(job)
    # The files of jobs that end now are kept from now on, although the clock is far back.
    assert one.get(f"/v1/models/{one.job(running)['model']}").status_code == 200


def test_clock_set_forward_far(service):
    """Expired files go, needed ones stay, and the daemon continues."""
    one = service()
    job = one.submit_glyphs(spec=SHORT)
    one.succeeded(job)
    one.stop()
    move_times(one, -FUTURE)
    one.start()
    eventually(lambda: one.get(f"/v1/jobs/{job}").status_code == 404)
    eventually(lambda: one.stored_files() == [])
    one.succeeded(one.submit_glyphs(spec=SHORT))


# --- a database that another holds --------------------------------------------------------


def test_the_database_is_held_for_long(service):
    """A request that waits too long for the database gets 503; one after the lock is
    released succeeds."""
    one = service()
    model = one.upload("models", MODEL)
    other = sqlite3.connect(one.state / "qdqd.sqlite3", isolation_level=None,
                            check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    body = {"model": model, "spec": {"calibration": {"random_samples": 1}}}
    answer = one.post("/v1/jobs", json=body)
    problem(answer, 503, "unavailable")
    assert answer.headers["Retry-After"] and time.monotonic() - begin > 4
    made = []
    thread = threading.Thread(target=lambda: made.append(one.submit(**body)))
    thread.start()
    time.sleep(0.5)  # of 5 s that it waits
    assert made == []
    other.execute("COMMIT")
    thread.join()
    other.close()
    (job,) = made
    one.succeeded(job)
    assert ids(one) == [job]  # the refused job was not stored


def test_a_job_ends_while_the_database_is_held(slow, service):
    one = service(**slow)
    job = one.submit_glyphs(spec=SHORT)
    one.running(job)
    other = sqlite3.connect(one.state / "qdqd.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    eventually(lambda: "event=store_failed" in one.log.read_text(), 60)
    other.execute("COMMIT")
    other.close()
    one.succeeded(job)


# --- all workers die ----------------------------------------------------------------------


@pytest.fixture
def broken_runtime(tmp_path):
    """Returns a library that ends any process that loads it."""
    library = tmp_path / "libbroken.so"
    source = "__attribute__((constructor)) static void die(void) { __builtin_trap(); }"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
                   input=source, text=True, check=True)
    return library


def test_every_worker_dies(broken_runtime, service):
    """The daemon reports it, does not keep the machine busy, and recovers with the first
    good worker."""
    one = service(workers_attempts=1)
    inputs = {"model": one.upload("models", MODEL),
              "calibration": one.upload("datasets", FEW_SAMPLES)}
    one.stop()
    one.start(QDQD_ENGINE_RUNTIME=str(broken_runtime))
    jobs = [one.submit(**inputs, spec={"calibration": {"max_samples": n}})
            for n in range(1, 9)]
    eventually(lambda: one.get("/readyz").status_code == 503)
    problem(one.get("/readyz"), 503, "unavailable")
    assert one.get("/healthz").status_code == 200
    assert "event=workers_fail in_a_row=4" in one.log.read_text()
    # Each process starts after a longer wait than the one before.
    started = one.log.read_text().count("event=job_started")
    assert started < len(jobs)
    for job in jobs[:4]:
        assert one.ended(job)["error"]["code"] == "worker_died"
    # A waiting job can be cancelled, another submitted, and the daemon stops without delay.
    assert one.post(f"/v1/jobs/{jobs[-1]}/cancel").status_code == 202
    begin = time.monotonic()
    one.stop()
    assert time.monotonic() - begin < 25  # not the 30 s that a job has
    one.start()
    one.succeeded(one.submit_glyphs(spec=SHORT))
    assert one.get("/readyz").status_code == 200
    states = [one.ended(job)["state"] for job in jobs]
    assert set(states) == {"failed", "succeeded", "cancelled"}


def test_one_bad_job_does_not_slow_the_others(held, service):
    """A job whose worker dies twice does not delay other jobs."""
    one = service(**held)
    job = one.submit_glyphs(spec=SHORT)
    killed = set()
    for _ in range(2):
        worker = one.worker_of_the_job(but=killed)
        os.kill(worker, 9)
        killed.add(worker)
    assert one.ended(job)["error"]["code"] == "worker_died"
    assert one.get("/readyz").status_code == 200
    assert "event=workers_fail" not in one.log.read_text()


def test_a_worker_that_leaks_is_ended_by_its_limit(service):
    """RLIMIT_DATA stands for the machine's memory: the job fails, and the daemon
    continues."""
    one = service(workers_memory="16M", workers_threads=2)
    document = one.ended(one.submit_glyphs(spec=SHORT))
    assert document["state"] == "failed"
    assert document["error"]["code"] in ("worker_died", "no_memory", "run_failed")
    assert one.get("/healthz").status_code == 200
    assert one.temporary_files() == []
    one.stop()
    one.environment = {}
    one.start()
    one.succeeded(one.submit_glyphs(spec=SHORT))
