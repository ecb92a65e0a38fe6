# SPDX-License-Identifier: Apache-2.0
"""A worker that is stuck or dies costs the tenant whose work it does, and nobody else."""

import datetime
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import access
import nets
from service import eventually, problem

pytestmark = pytest.mark.long
MODEL, DATA = nets.block_net(), nets.samples()
RAW = {"Content-Type": "application/octet-stream"}
LONG = {"calibration": {"random_samples": 20_000_000}, "evaluate": False}


def short_worker(one):
    """The worker that does the short work, when no job has run yet."""
    one.upload("models", MODEL)
    (worker,) = one.workers()
    return worker


def test_a_stopped_worker_delays_no_other_tenant(service):
    one = service(workers_short_timeout=15)
    a, b = access.tenant(one, "a"), access.tenant(one, "b")
    os.kill(short_worker(a), signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        stuck = pool.submit(a.post, "/v1/models", data=MODEL, headers=RAW)
        eventually(one.temporary_files)
        time.sleep(0.3)  # the lane gets it soon after it is stored
        b.upload("models", MODEL)
        assert not stuck.done()
        found = problem(stuck.result(), 422, "limit_exceeded")
    assert "workers.short_timeout" in found["detail"]
    a.upload("models", MODEL)


def test_a_stopped_worker_of_a_job_is_found(service):
    """Although a job may take hours when it calibrates."""
    one = service(workers_short_timeout=8)
    job = one.submit(model=one.upload("models", MODEL), spec=LONG)
    eventually(lambda: (one.job(job)["progress"] or {}).get("stage") == "calibrate")
    (worker,) = one.running(job)
    os.kill(worker, signal.SIGSTOP)
    error = one.ended(job)["error"]
    assert error["code"] == "limit_exceeded" and "workers.short_timeout" in error["detail"]
    eventually(lambda: worker not in one.workers())


def test_stopped_workers_do_not_delay_the_end(service):
    """One is idle, one has a request, and one has a job."""
    one = service(workers_drain_timeout=1)
    a = access.tenant(one, "a")
    short_worker(a)
    job = a.submit(model=a.upload("models", MODEL), spec=LONG)
    a.running(job)
    for worker in one.workers():
        os.kill(worker, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        stuck = pool.submit(a.post, "/v1/models", data=MODEL, headers=RAW)
        eventually(one.temporary_files)
        time.sleep(0.3)
        one.stop()  # which waits for a minute, far from workers.short_timeout, 120 s
        problem(stuck.result(), 503, "unavailable")


def logged_at(one, event):
    """The time in the log of the last line with an event, and the line."""
    line = [text for text in one.log.read_text().splitlines() if event in text][-1]
    return datetime.datetime.fromisoformat(line.split("Z ")[0]), line


def test_the_pause_after_deaths_is_the_tenants_own(held, service):
    """The lane takes the other tenant's job before the pause of 4 s is over."""
    one = service(**held, workers_attempts=1)
    a, b = access.tenant(one, "a"), access.tenant(one, "b")
    model = {"model": a.upload("models", MODEL), "calibration": a.upload("datasets", DATA)}
    theirs = {"model": b.upload("models", MODEL), "calibration": b.upload("datasets", DATA)}
    killed = set()
    for samples in range(1, 9):
        job = a.submit(**model, spec={"calibration": {"max_samples": samples}})
        worker = one.worker_of_the_job(but=killed)
        if samples == 8:
            ours = b.submit(**theirs)
            waits = a.submit(**model)
        os.kill(worker, signal.SIGKILL)
        killed.add(worker)
        assert a.ended(job)["error"]["code"] == "worker_died"
    b.running(ours)
    assert a.job(waits)["state"] == "queued"
    paused, line = logged_at(one, 'event=tenant_paused tenant="a" in_a_row=8')
    assert line.endswith("ms=4000")
    started, _ = logged_at(one, f"event=job_started job={ours}")
    assert (started - paused).total_seconds() < 4
    assert one.get("/readyz").status_code == 200
    assert "event=workers_fail" not in one.log.read_text()


SLOW = """return { case = function(model)
    for i = 1, 1000000000 do local x = i * i end
end }"""


@pytest.mark.alone
def test_two_slow_requests_of_a_tenant_leave_a_lane(service):
    one = service(workers_short_count=2)
    a, b = access.tenant(one, "a"), access.tenant(one, "b")
    model = a.upload("models", MODEL)
    spec = {"cases": [{"name": f"slow{i}", "lua": SLOW} for i in range(4)]}
    with ThreadPoolExecutor() as pool:
        slow = [pool.submit(a.post, "/v1/plan", json={"model": model, "spec": spec})
                for _ in range(3)]
        eventually(lambda: len(one.busy_workers()) == 1)
        b.upload("models", MODEL)
        assert not all(plan.done() for plan in slow)
        for plan in slow:
            problem(plan.result(), 422, "case_failed")
