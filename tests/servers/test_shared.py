# SPDX-License-Identifier: Apache-2.0
"""Daemons that share a record and the stored files: what one has observed the others use, and a
leader that stands still in the middle of a removal removes nothing that is needed."""

import os
import signal
import subprocess
import threading
import time

import pytest

import nets
from bucket_fixtures import bucket, drop_cache  # noqa: F401
from cluster import LEASE, Cluster
from relay import Relay
from service import eventually
from test_fences import MODEL, row
from test_postgresql import database, node, server  # noqa: F401

GRACE = 4  # seconds
HEX = "0123456789abcdef"


@pytest.fixture
def cluster(server, bucket, tmp_path):  # noqa: F811
    server.empty()
    one = Cluster(server, bucket, tmp_path, tmp_path.name)
    yield one
    one.stop()


@pytest.fixture
def relay(bucket):  # noqa: F811
    one = Relay(bucket.port)
    yield one
    one.close()


def test_what_another_daemon_has_observed(cluster):
    """The second daemon, whose folder is empty, calibrates the same model and data by another
    method without one inference."""
    one = cluster.add()
    one.succeeded(one.submit_glyphs())
    one.stop()
    two = cluster.add()
    job = two.succeeded(two.submit_glyphs(spec={"calibration": {"method": "percentile"}}))
    assert two.report(job["id"])["calibration"]["inferences"] == 0
    assert not job["cached_from"]


# --- a leader that stands still, with files in a bucket -------------------------------------------

class Freezer:
    """Stops a daemon when the bucket has answered a request of it."""

    def __init__(self, relay, method, part):
        self.method, self.part, self.process = method, part, None
        self.announced = False
        self.stopped = threading.Event()
        relay.after = self

    def __call__(self, method, path):
        self.announced |= method == "PUT" and "/removals/" in path
        if self.process and self.announced and not self.stopped.is_set() \
                and method == self.method and self.part in path:
            self.process.send_signal(signal.SIGSTOP)
            self.stopped.set()


def store(daemon, data):
    """Uploads a model until that is not refused with 503. Returns the number of refusals."""
    deadline = time.monotonic() + 240
    refused = 0
    while True:
        answer = daemon.post("/v1/models", data=data)
        if answer.status_code != 503:
            assert answer.status_code in (200, 201), answer.text
            return refused
        refused += 1
        assert time.monotonic() < deadline


@pytest.mark.parametrize("method, part", [("PUT", "/removals/"), ("GET", "marks%2F")],
                         ids=["announced", "looked at"])
def test_a_leader_that_stands_still_before_it_removes_an_object(cluster, relay, method, part):
    """The leader has announced a removal, or has also seen that the mark is still there, when it
    is stopped. Another daemon stores the same bytes meanwhile."""
    freezer = Freezer(relay, method, part)
    one = cluster.add(QDQD_BLOBS_ENDPOINT=relay.endpoint, QDQD_RETENTION_LEFTOVERS=str(GRACE))
    eventually(lambda: row(cluster.database, "count(*)", "leader") == "1")
    two = cluster.add(QDQD_RETENTION_LEFTOVERS=str(GRACE))
    model = one.upload("models", MODEL)
    freezer.process = one.process
    assert one.request("DELETE", f"/v1/models/{model}").status_code == 204
    assert freezer.stopped.wait(120)
    refused = store(two, MODEL)
    one.process.send_signal(signal.SIGCONT)
    print(f"{refused} uploads were refused meanwhile")
    eventually(one.is_ready, 60)
    # Two more sweeps pass, of which one takes the announcement away that was left.
    time.sleep(3 * GRACE)
    assert model.split(":")[1] in cluster.stored()
    assert cluster.named() <= cluster.stored()
    for daemon in (one, two):
        drop_cache(daemon)
        assert daemon.get(f"/v1/models/{model}/info").status_code == 200
    assert f"leftover_removed id={model}" not in one.log.read_text() + two.log.read_text()


def test_an_upload_waits_for_a_removal_without_a_mark(cluster, relay):
    """The removal hangs. A first upload does not wait for its end, but has taken the mark away;
    the second one waits, also for a bucket that removes the object at last."""
    held, release = threading.Event(), threading.Event()

    def hold(method, path):
        if method == "DELETE" and "/_/" in path and path.count("/") == 4 and not held.is_set():
            held.set()
            release.wait(120)

    relay.before = hold
    one = cluster.add(QDQD_BLOBS_ENDPOINT=relay.endpoint, QDQD_RETENTION_LEFTOVERS=str(GRACE))
    eventually(lambda: row(cluster.database, "count(*)", "leader") == "1")
    two = cluster.add(QDQD_RETENTION_LEFTOVERS=str(GRACE))
    model = one.upload("models", MODEL)
    assert one.request("DELETE", f"/v1/models/{model}").status_code == 204
    assert held.wait(120)
    assert two.post("/v1/models", data=MODEL).status_code == 503
    second = threading.Thread(target=store, args=(two, MODEL))
    second.start()
    time.sleep(2)
    release.set()
    second.join()
    assert model.split(":")[1] in cluster.stored()
    drop_cache(two)
    assert two.get(f"/v1/models/{model}/info").status_code == 200


def test_a_removal_that_comes_late_is_refused(cluster, relay):
    """The request stands still behind the leader's last check, until its announcement delays nobody
    any more and another daemon has stored the same bytes. The bucket refuses it."""
    held, release, answered = threading.Event(), threading.Event(), threading.Event()

    def is_of_the_object(method, path):
        return method == "DELETE" and path.split("?")[0].endswith("/_/" + model.split(":")[1])

    def hold(method, path):
        if is_of_the_object(method, path) and not held.is_set():
            held.set()
            release.wait(240)

    def note(method, path):
        if is_of_the_object(method, path):
            answered.set()

    one = cluster.add(QDQD_BLOBS_ENDPOINT=relay.endpoint, QDQD_RETENTION_LEFTOVERS=str(GRACE))
    eventually(lambda: row(cluster.database, "count(*)", "leader") == "1")
    two = cluster.add(QDQD_RETENTION_LEFTOVERS=str(GRACE))
    model = one.upload("models", MODEL)
    relay.before, relay.after = hold, note
    assert one.request("DELETE", f"/v1/models/{model}").status_code == 204
    assert held.wait(120)
    assert store(two, MODEL) > 0  # refused for a minute
    release.set()
    assert answered.wait(60)
    assert model.split(":")[1] in cluster.stored()
    for daemon in (one, two):
        drop_cache(daemon)
        assert daemon.get(f"/v1/models/{model}/info").status_code == 200
    eventually(lambda: not any("removals" in key for key in cluster.stored()), 120, 0.5)


# --- and with files in a folder ---------------------------------------------------------------------

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Stops the process once, before or after a blob is set aside ("xx/.HEX"). */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    static int (*real)(int, const char *, int, const char *);
    static int did;
    const char *when = getenv("QDQD_TEST_STOP");
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "renameat");
    int now = when && !did && strlen(to) == 68 && to[2] == '/' && to[3] == '.';
    did |= now;
    if (now && !strcmp(when, "before"))
        kill(getpid(), SIGSTOP);
    int rc = real(from_dir, from, to_dir, to);
    if (now && !strcmp(when, "after"))
        kill(getpid(), SIGSTOP);
    return rc;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shim")
    (folder / "stop.c").write_text(SHIM)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", folder / "stop.so",
                    folder / "stop.c", "-ldl"], check=True)
    return folder / "stop.so"


def is_stopped(process):
    with open(f"/proc/{process.pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_leader_that_stands_still_before_it_removes_a_file(node, database, shim, when):  # noqa: F811
    """The leader has taken the mark away, within its transaction, when it is stopped; it has
    taken the file's name away, too, or is about to. Another daemon stores the same bytes."""
    one = node(environment={"LD_PRELOAD": str(shim), "QDQD_TEST_STOP": when},
               retention_leftovers=GRACE)
    eventually(lambda: row(database, "count(*)", "leader") == "1")
    two = node(retention_leftovers=GRACE)
    model = one.upload("models", MODEL)
    assert one.request("DELETE", f"/v1/models/{model}").status_code == 204
    eventually(lambda: is_stopped(one.process), 120)
    store(two, MODEL)
    one.process.send_signal(signal.SIGCONT)
    eventually(lambda: one.get("/readyz").status_code == 200, 60)
    time.sleep(3 * GRACE)
    assert two.stored_files() == [model.split(":")[1]]
    for daemon in (one, two):
        assert daemon.get(f"/v1/models/{model}/info").status_code == 200
    assert f"leftover_removed id={model}" not in one.log.read_text() + two.log.read_text()
