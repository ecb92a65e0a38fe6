# SPDX-License-Identifier: Apache-2.0
"""The service survives the death of its processes: kill -9 of daemon and worker, and
SIGTERM."""

import socket
from pathlib import Path

import requests

import judge
from service import DATA, FEW_SAMPLES, eventually, kill_process, problem


def test_killed_daemon_finishes_the_job_after_restart(held, service):
    one = service(**held)
    first = one.submit_glyphs("glyph_resnet")
    second = one.submit_glyphs("glyph_mobilenet", labels={"still": "here"})
    one.running(first)
    one.kill()
    one.environment = {}
    one.start()
    for job in (first, second):
        one.succeeded(job)
        judge.load(one.result(job))
    assert one.job(first)["attempts"] == 2
    assert one.job(second)["attempts"] == 1
    assert one.job(second)["labels"] == {"still": "here"}
    assert one.temporary_files() == []


def test_answered_jobs_survive_whenever_the_daemon_is_killed(service):
    one = service()
    jobs = []
    for i in range(6):
        jobs.append(one.submit_glyphs(spec={"evaluate": False, "calibration": {
            "max_samples": 8 + i}}))
        one.kill()
        one.start()
    for job in jobs:
        one.succeeded(job)


def test_killed_daemon_leaves_no_half_uploads(service):
    one = service()

    def endless():
        for i in range(1000):
            yield bytes(1 << 16)
            if i == 20:
                eventually(one.temporary_files)
                one.process.kill()

    try:
        one.post("/v1/models", data=endless())
    except requests.RequestException:
        pass
    one.process.wait()
    one.process = None
    one.start()
    assert one.temporary_files() == []


def test_results_survive_a_restart(service):
    one = service()
    job = one.submit_glyphs()
    document = one.succeeded(job)
    result, report = one.result(job), one.report(job)
    one.stop()
    one.start()
    assert one.job(job) == document
    assert one.result(job) == result
    assert one.report(job) == report


def test_worker_killed_once_costs_nothing(slow, service):
    one = service(**slow)
    job = one.submit_glyphs()
    (worker,) = one.running(job)
    kill_process(worker)
    one.succeeded(job)
    judge.load(one.result(job))
    assert worker not in one.workers()


def test_worker_killed_on_each_try_fails_its_job(held, service):
    one = service(**held)
    job = one.submit_glyphs()
    killed = set()
    for _ in range(2):
        worker = one.worker_of_the_job(but=killed)
        kill_process(worker)
        killed.add(worker)
    document = one.ended(job)
    assert document["state"] == "failed"
    assert document["error"]["code"] == "worker_died"
    assert document["error"]["retryable"] is True
    problem(one.get(f"/v1/jobs/{job}/model"), 409, "failed")
    assert one.get("/healthz").status_code == 200
    assert one.temporary_files() == []


def test_next_job_after_a_dead_worker_succeeds(service):
    one = service()
    one.succeeded(one.submit_glyphs())
    idle = one.workers()
    assert idle != []
    for worker in idle:
        kill_process(worker)
    one.succeeded(one.submit_glyphs("glyph_mobilenet"))
    assert not set(idle) & set(one.workers())


def test_sigterm_lets_the_running_job_end(slow, service):
    one = service(**slow)
    first = one.submit_glyphs()
    second = one.submit_glyphs("glyph_mobilenet")
    one.running(first)
    body = {"model": one.job(first)["model"]}
    one.process.terminate()
    draining = eventually(lambda: one.get("/readyz").status_code == 503)
    assert draining
    problem(one.post("/v1/jobs", json=body), 503, "draining")
    problem(one.quantize(DATA / "glyph_se.onnx", FEW_SAMPLES), 503, "draining")
    assert one.get("/healthz").status_code == 200
    assert one.process.wait(60) == 0
    one.process = None
    assert one.temporary_files() == []
    one.environment = {}
    one.start()
    assert one.job(first)["state"] == "succeeded"
    one.succeeded(second)


def test_idle_daemon_stops_at_once(daemon):
    daemon.process.terminate()
    assert daemon.process.wait(60) == 0
    daemon.process = None


def test_a_stop_names_no_death(service):
    """Processes that the daemon ends itself, idle or not, were killed by nobody."""
    one = service()
    one.succeeded(one.submit_glyphs())
    assert one.workers()
    one.stop()
    ends = [line for line in one.log.read_text().splitlines() if "event=worker_ended" in line]
    assert ends
    for line in ends:
        assert line.endswith(('how="ended with status 0"', 'how="was ended by the daemon"')), line


def is_accepted(connection):
    """Returns whether the daemon has accepted this connection. The kernel lists the daemon's
    end with the inode 0 until then."""
    ends = [f":{end[1]:04X}" for end in (connection.getpeername(), connection.getsockname())]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]):
            return fields[9] != "0"
    return False


def test_who_connected_before_the_stop_is_answered(daemon):
    """A connection that was accepted before SIGTERM still gets its answer."""
    address = daemon.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=60) as connection:
        eventually(lambda: is_accepted(connection))
        daemon.process.terminate()
        eventually(lambda: "event=stopping" in daemon.log.read_text())
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
    assert daemon.process.wait(60) == 0
    daemon.process = None


def test_workers_end_with_a_killed_daemon(held, service):
    one = service(**held)
    one.running(one.submit_glyphs())
    one.kill()  # waits until the workers are gone
    one.environment = {}
    one.start()
