# SPDX-License-Identifier: Apache-2.0
"""Changes that a daemon makes after the end of its lease are refused, and no clock but the
database's counts."""

import datetime
import os
import signal
import subprocess
import threading

import pytest

import nets
from far import SECRET, Far
from service import ROOT, eventually
from test_postgresql import LONG, database, node, server  # noqa: F401

MODEL = nets.block_net()
QUICK = {"calibration": {"random_samples": 2}}


@pytest.fixture
def far(tmp_path):
    """A registry and receiver, and the file of settings that names it."""
    one = Far(MODEL)
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    one.config = tmp_path / "qdqd.conf"
    one.config.write_text(
        f"[remote prod]\nkind = mlflow\nurl = {one.url}\nallow_private = true\ntimeout = 60\n"
        f"[remote told]\nkind = webhook\nurl = {one.url}/told\nallow_private = true\n"
        f"timeout = 60\nsecret = {tmp_path}/secret\nlabel = tell=yes\n")
    yield one
    one.close()


class Gate:
    """Holds the first request of a path until it is opened; the others pass."""

    def __init__(self, part, code=None):
        self.part, self.code = part, code
        self.came, self.opened = threading.Event(), threading.Event()

    def __call__(self, handler, path):
        if self.part not in path or self.came.is_set():
            return False
        self.came.set()
        self.opened.wait(120)
        if self.code:
            handler.answer(b"", self.code)
        return bool(self.code)


def logged(daemon, event):
    return eventually(lambda: event in daemon.log.read_text(), 60)


def row(database, columns, table):  # noqa: F811
    return database.sql(f'SELECT {columns} FROM "qdqd".{table}')


@pytest.mark.parametrize("code", [None, 500])
def test_the_delivery_of_a_frozen_daemon(node, database, far, code):  # noqa: F811
    """Another daemon makes the delivery; how the first attempt ended is not recorded."""
    one = node(arguments=["--config", far.config])
    far.fault = gate = Gate("/told", code)
    job = one.submit(model=one.upload("models", MODEL), spec=QUICK, labels={"tell": "yes"})
    assert gate.came.wait(60)
    one.process.send_signal(signal.SIGSTOP)
    two = node(arguments=["--config", far.config])
    eventually(lambda: row(database, "state, fence, attempts", "deliveries") == "delivered|2|2",
               60)
    gate.opened.set()
    one.process.send_signal(signal.SIGCONT)
    logged(one, "lease_lost delivery=")
    eventually(lambda: one.get("/readyz").status_code == 200, 60)
    one.stop()
    assert row(database, "state, fence, attempts, error IS NULL", "deliveries") == \
        "delivered|2|2|t"
    assert "event=delivered" not in one.log.read_text()
    assert two.job(job)["deliveries"][0]["state"] == "delivered"


def test_a_delivery_that_another_claim_followed(node, database, far):  # noqa: F811
    """As after a daemon has stood still, between two heartbeats: the attempt succeeds, and its
    end is refused."""
    one = node(arguments=["--config", far.config], cluster_lease=300)
    far.fault = gate = Gate("/told")
    one.submit(model=one.upload("models", MODEL), spec=QUICK, labels={"tell": "yes"})
    assert gate.came.wait(60)
    database.sql('UPDATE "qdqd".deliveries SET fence = 2')
    gate.opened.set()
    logged(one, "delivery_refused")
    assert row(database, "state, fence, claimed", "deliveries") == "pending|2|1"


def test_a_fetch_that_another_claim_followed(node, database, far):  # noqa: F811
    """The fetched files are not stored, and neither the fetch nor the job ends."""
    one = node(arguments=["--config", far.config], cluster_lease=300)
    far.fault = gate = Gate("model.onnx")
    one.submit(model={"remote": "prod", "ref": "models:/glyph@champion"}, spec=QUICK)
    assert gate.came.wait(60)
    database.sql('UPDATE "qdqd".jobs SET fence = 2')
    gate.opened.set()
    logged(one, "fetch_refused")
    assert row(database, "state, fetching, fence, fetch_attempts, model", "jobs") == \
        "queued|2|2|0|"
    assert row(database, "count(*)", "files") == "0" and one.stored_files() == []


def test_a_late_end_stores_nothing(node, database):  # noqa: F811
    """Neither result nor observations are stored by a claim that another one has followed."""
    one = node(cluster_lease=300)
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"),
                     spec={**LONG, "calibration": {"random_samples": 3000}})
    one.running(job)
    before = one.stored_files()
    assert database.sql('UPDATE "qdqd".jobs SET fence = 2 RETURNING state') == "running"
    logged(one, "end_refused")
    assert one.stored_files() == before
    assert row(database, "state, fence, result_model IS NULL, ended_at", "jobs") == "running|2|t|0"
    assert row(database, "count(*)", "observations") == "0"


# --- clocks ---------------------------------------------------------------

SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, clock, ret);
    const char *off = getenv("QDQD_TEST_SKEW");
    if (!rc && clock == CLOCK_REALTIME && off)
        ret->tv_sec += atoi(off);
    return (int)rc;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """A library that moves a process's wall clock by QDQD_TEST_SKEW seconds."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "skew.c").write_text(SHIM)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", folder / "skew.so",
                    folder / "skew.c"], check=True)
    return folder / "skew.so"


def now(database):  # noqa: F811
    return int(database.sql('SELECT newest FROM "qdqd".clock'))


@pytest.fixture
def ahead_and_behind(node, shim, far):  # noqa: F811
    """Two daemons, of which one's clock is a minute ahead, and the other's a minute behind."""
    def make(**settings):
        return [node(environment={"LD_PRELOAD": str(shim), "QDQD_TEST_SKEW": str(skew)},
                     arguments=["--config", far.config], **settings)
                for skew in (60, -60)]
    return make


def test_times_are_the_databases(ahead_and_behind, database):  # noqa: F811
    """The times of models, jobs and their ends, whichever daemon is asked and runs them."""
    daemons = ahead_and_behind()
    begun = now(database)
    for daemon, skew in zip(daemons, (60, -60)):
        said = datetime.datetime.fromisoformat(daemon.log.read_text().split()[0])
        assert abs(said.timestamp() * 1000 - begun - skew * 1000) < 30_000  # it is skewed
        model = daemon.upload("models", MODEL)
        job = daemon.submit(model=model, spec=QUICK, fresh=True)
        daemon.succeeded(job)
    ended = now(database)
    times = database.sql('SELECT created_at, started_at, ended_at, kept_from FROM "qdqd".jobs'
                         ' UNION ALL SELECT created_at, kept_from, kept_from, kept_from'
                         ' FROM "qdqd".files UNION ALL SELECT used_at, used_at, used_at, used_at'
                         ' FROM "qdqd".observations').replace("|", "\n").split()
    assert len(times) >= 12
    assert all(begun <= int(one) <= ended for one in times), (begun, times, ended)


def test_waits_are_the_databases(ahead_and_behind, database, far):  # noqa: F811
    """A delivery that failed is tried again after a second or two, and not after a minute."""
    left = [2]

    def fail_twice(handler, path):
        left[0] -= path == "/told"
        if path == "/told" and left[0] >= 0:
            handler.answer(b"", 500)
            return True
        return False

    far.fault = fail_twice
    one, _ = ahead_and_behind()
    begun = now(database)
    one.submit(model=one.upload("models", MODEL), spec=QUICK, labels={"tell": "yes"})
    eventually(lambda: row(database, "state", "deliveries") == "delivered", 50)
    assert row(database, "attempts", "deliveries") == "3"
    assert 1000 <= now(database) - begun < 50_000


def test_retention_is_the_databases(ahead_and_behind, database):  # noqa: F811
    """A clock that is ahead removes nothing early, and one that is behind nothing late."""
    one, two = ahead_and_behind(retention_jobs=30, retention_files=30)
    one.upload("models", MODEL)
    begun = now(database)
    eventually(lambda: row(database, "count(*)", "files") == "0", 60)
    passed = now(database) - begun
    assert 29_000 <= passed < 58_000
