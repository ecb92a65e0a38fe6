# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL that does not answer, although it is there."""

import contextlib
import datetime
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
import requests

from service import eventually
from test_leader import GLYPHS, status, token
from test_postgresql import database, node, server  # noqa: F401

LEASE = 12
A_WHILE = {"calibration": {"random_samples": 60_000}, "evaluate": False}


def family(pid):
    """A process and all that it has started."""
    try:
        children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir()
                    for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        children = []
    return [pid, *(one for child in children for one in family(child))]


@pytest.fixture
def hang(database):  # noqa: F811
    """Stops the processes of PostgreSQL, or lets them go on."""
    def send(number):
        for pid in family(database.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    yield send
    send(signal.SIGCONT)


def lease_of(database, tenant):  # noqa: F811
    return int(database.sql(f'SELECT lease_until FROM "qdqd-{tenant}".jobs'))


def lost_at(daemon, job):
    """The time in ms at which a daemon gave a job up, as its log says; None: it did not."""
    found = re.search(rf"^(\S+) .*event=lease_lost job={job} ", daemon.log.read_text(), re.M)
    return found and datetime.datetime.fromisoformat(found[1]).timestamp() * 1000


def test_workers_end_before_their_lease(node, database, hang):  # noqa: F811
    """PostgreSQL hangs while jobs of two tenants run, and while requests wait for it."""
    one = node(workers_count=2, cluster_lease=LEASE)
    keys = {name: token(database, "add", name, "--tenant", name) for name in ("a", "b")}

    def submit(name):
        return one.http.post(f"{one.url}/v1/jobs", headers=keys[name], timeout=120,
                             json={"model": model, "spec": A_WHILE, "fresh": True})

    [model] = {one.http.post(f"{one.url}/v1/models", data=GLYPHS, headers=key, timeout=60)
               .json()["id"] for key in keys.values()}
    jobs = {name: submit(name).json()["id"] for name in keys}
    eventually(lambda: len(one.busy_workers()) == 2, 60)
    before = lease_of(database, "a")
    eventually(lambda: lease_of(database, "a") > before, 60)
    eventually(lambda: lease_of(database, "b") > before, 60)
    until = {name: lease_of(database, name) for name in keys}
    hang(signal.SIGSTOP)
    asking = [threading.Thread(target=submit, args=(name,)) for name in keys for _ in range(2)]
    for thread in asking:
        thread.start()
    assert one.http.get(f"{one.url}/healthz", timeout=30).status_code == 200
    eventually(lambda: one.busy_workers() == [], 60)
    assert one.http.get(f"{one.url}/healthz", timeout=30).status_code == 200
    for name, job in jobs.items():
        assert lost_at(one, job) < until[name]
    hang(signal.SIGCONT)
    for thread in asking:
        thread.join()
    for name, job in jobs.items():
        eventually(lambda name=name, job=job: database.sql(
            f"SELECT state FROM \"qdqd-{name}\".jobs WHERE id = '{job}'") == "succeeded", 300)
        assert one.log.read_text().count(f"event=job_succeeded job={job}") == 1


def test_a_new_tenant_does_not_stop_the_others(node, database):  # noqa: F811
    """Another daemon migrates for long. The first request of a tenant gets 503, and those of
    other tenants are served meanwhile."""
    one = node()
    old, new = (token(database, "add", name, "--tenant", name) for name in ("old", "new"))
    assert status(one, old) == 200
    said = []
    with subprocess.Popen([database.programs / "psql", "-XAtq", "-d", database.url], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as migrating:
        migrating.stdin.write("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('qdqd', 0));"
                              " SELECT 'locked';\n")
        migrating.stdin.flush()
        while "locked" not in migrating.stdout.readline():
            pass
        asking = threading.Thread(target=lambda: said.append(requests.get(
            f"{one.url}/v1/jobs", headers=new, timeout=120).status_code))
        asking.start()
        eventually(lambda: database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1",
                   60)
        assert status(one, old) == 200
        asking.join()
        assert said == [503]
        migrating.stdin.close()
    eventually(lambda: status(one, new) == 200, 60)
