# SPDX-License-Identifier: Apache-2.0
"""Three daemons over a real PostgreSQL and a real S3 server, while parts fail at random moments,
and while the daemons are restarted one after the other.

    QDQD_NODE_ROUNDS=50 QDQD_NODE_JOBS=300 build/venv/bin/python -m pytest -s \\
        tests/servers/test_cluster.py

A round is repeated with the QDQD_SEED that it printed."""

import hashlib
import os
import random
import signal
import threading
import time

import pytest
from requests import ConnectionError, Timeout
from requests.exceptions import ChunkedEncodingError

from bucket_fixtures import bucket  # noqa: F401
from cluster import ASKED, LEASE, Client, Cluster
from database import Server
from service import eventually

ROUNDS = int(os.environ.get("QDQD_NODE_ROUNDS", 1))
JOBS = int(os.environ.get("QDQD_NODE_JOBS", 60))
SEED = int(os.environ.get("QDQD_SEED", time.time()))
GONE = 20 if JOBS >= 300 else 6  # seconds for which the bucket is gone

# The exceptions of a connection that was refused or reset.
BROKEN = (ConnectionError, ChunkedEncodingError)

# Every end of a job, and every change behind it, as the database sees them.
AUDIT = """
CREATE TABLE audit(job TEXT, before TEXT, after TEXT, fence BIGINT);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.state IN ('succeeded', 'failed', 'cancelled')
    OR OLD.state IN ('succeeded', 'failed', 'cancelled') THEN
    INSERT INTO public.audit VALUES(NEW.id, OLD.state, NEW.state, NEW.fence);
  END IF; RETURN NULL; END $$;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("postgresql"))
    one.sql(AUDIT)
    yield one
    one.close()


@pytest.fixture
def cluster(server, bucket, tmp_path):
    """Makes clusters of three, each with a record and a prefix of its own."""
    made = []

    def make(**settings):
        if made:
            made[-1].stop()
        server.empty()
        server.sql("DELETE FROM audit")
        one = Cluster(server, bucket, tmp_path / f"cluster{len(made)}",
                      f"{tmp_path.name}/{len(made)}", **settings)
        made.append(one)
        for _ in range(3):
            one.add()
        server.sql('CREATE TRIGGER audit AFTER UPDATE OF state ON "qdqd".jobs'
                   " FOR EACH ROW EXECUTE FUNCTION public.audit()")
        return one

    yield make
    for one in made:
        one.stop()


# --- what fails ---------------------------------------------------------------------------

def kill(cluster, dice):
    node = dice.choice(cluster.nodes)
    node.kill()
    time.sleep(dice.uniform(0, LEASE))
    node.start()


def freeze(cluster, dice):
    """Stops a daemon, but not its workers, for twice the lease."""
    process = dice.choice(cluster.nodes).process
    process.send_signal(signal.SIGSTOP)
    time.sleep(2 * LEASE)
    process.send_signal(signal.SIGCONT)


def restart_database(cluster, dice):
    cluster.database.stop(dice.choice([signal.SIGINT, signal.SIGQUIT]))
    time.sleep(dice.uniform(0, 2))
    cluster.database.start()


def lose_bucket(cluster, dice):
    if dice.random() < 0.7:
        cluster.bucket.stop()
        time.sleep(GONE)
        cluster.bucket.start()
    else:
        cluster.bucket.pause(True)
        time.sleep(GONE)
        cluster.bucket.pause(False)


class Faults(threading.Thread):
    """Does these in some order, at random moments."""

    def __init__(self, cluster, seed, what):
        super().__init__()
        self.cluster, self.dice, self.what = cluster, random.Random(seed), list(what)
        self.dice.shuffle(self.what)
        self.failure = None

    def run(self):
        try:
            for one in self.what:
                time.sleep(self.dice.uniform(0, 3))
                one(self.cluster, self.dice)
        except Exception as error:  # noqa: BLE001 - the test raises it again
            self.failure = error


def play(cluster, seed, n_jobs, faults, forgiven):
    """Runs clients while parts fail. Returns the clients."""
    faults = [Faults(cluster, f"{seed} {i}", what) for i, what in enumerate(faults)]
    clients = []

    def enough(_):
        n = sum(len(client.accepted) for client in clients)
        return (n >= n_jobs and not any(one.is_alive() for one in faults)
                ) or any(client.failure for client in clients)

    clients += [Client(cluster, i, seed, enough, forgiven) for i in range(3)]
    for thread in [*clients, *faults]:
        thread.start()
    for thread in [*clients, *faults]:
        thread.join()
    for thread in [*clients, *faults]:
        if thread.failure:
            raise thread.failure
    return clients


# --- what has to hold ---------------------------------------------------------------------

def check_ends(cluster, clients):
    """Every job that was accepted has ended, once, and there are no others."""
    accepted = {job for client in clients for job in client.accepted}
    assert sum(len(client.accepted) for client in clients) == len(accepted)
    deleting = {job for client in clients for job in client.deleting}
    deleted = {job for client in clients for job in client.deleted}
    rows = {job: (state, error) for job, state, error in cluster.database.rows(
        'SELECT id, state, error_code FROM "qdqd".jobs')}
    assert accepted - deleting <= set(rows) <= accepted - deleted
    assert {row for row in rows.values() if row[0] != "succeeded"} == set()
    ends = cluster.database.rows("SELECT job, after FROM audit")
    assert sorted(job for job, _ in ends) == sorted(accepted)
    assert {after for _, after in ends} == {"succeeded"}
    return accepted


def check_results(cluster, clients):
    """A daemon that has nothing in its cache serves the files of all jobs, and those of jobs
    that asked the same are the same. Returns the number of different results."""
    asked = {job: one for client in clients for job, one in client.accepted.items()}
    results = {one: set() for one in map(str, ASKED)}
    fresh = cluster.add()
    for job, model, report, frozen in cluster.database.rows(
            'SELECT id, result_model, report, frozen FROM "qdqd".jobs'):
        results[str(asked[job])].add(model)
        for path, digest in (("model", model), ("report", report)):
            answer = fresh.http.get(f"{fresh.url}/v1/jobs/{job}/{path}", timeout=60)
            assert answer.status_code == 200, answer.text
            if path == "model":
                assert "sha256:" + hashlib.sha256(answer.content).hexdigest() == digest
        assert frozen
    assert all(len(ids) <= 1 for ids in results.values()), results
    fresh.stop()
    return sum(map(len, results.values()))


def check_blobs(cluster):
    """No blob is lost, and a sweep leaves none that no row names."""
    assert cluster.named() <= cluster.stored()
    for node in cluster.nodes[:3]:
        node.stop()
        assert node.temporary_files() == []
    sweeper = cluster.add(QDQD_RETENTION_LEFTOVERS="1")
    # An announcement of a removal that a fault broke off counts for a minute.
    eventually(lambda: cluster.stored() == cluster.named(), 150, 0.5)
    sweeper.stop()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_parts_fail_at_random_moments(cluster, number):
    seed = SEED + number
    began = time.monotonic()
    one = cluster(QDQD_RETENTION_LEFTOVERS="60")
    clients = play(one, seed, JOBS, [[kill, kill, freeze, kill, freeze],
                                     [restart_database, lose_bucket, restart_database]],
                   (*BROKEN, Timeout))
    jobs = check_ends(one, clients)
    kinds = check_results(one, clients)
    check_blobs(one)
    print(f"seed {seed}: {len(jobs)} jobs, {sum(len(c.deleted) for c in clients)} deleted, "
          f"{kinds} results, {sum(c.sent for c in clients)} requests, "
          f"{sum(c.again for c in clients)} sent again, {time.monotonic() - began:.0f} s")


def test_a_rolling_restart_fails_no_request(cluster):
    """Clients send a request again after 503, and on another node after a refused or reset
    connection; no request ends otherwise, and none is left without an answer."""
    one = cluster()

    def restart(cluster, dice):
        for node in cluster.nodes[:3]:
            node.stop()
            node.start()
            eventually(node.is_ready, 60)
            time.sleep(dice.uniform(0, 0.5))

    clients = play(one, SEED, 30, [[restart, restart]], BROKEN)
    jobs = check_ends(one, clients)
    assert one.database.sql('SELECT max(attempts) FROM "qdqd".jobs') == "0"
    print(f"{len(jobs)} jobs, {sum(c.sent for c in clients)} requests, "
          f"{sum(c.again for c in clients)} sent again")
