# SPDX-License-Identifier: Apache-2.0
"""Daemons share a record in a real PostgreSQL."""

import os
import signal
import subprocess
import threading
import time

import pytest
import requests

import nets
from database import Server
from service import INSTALLED, ROOT, Service, eventually
from test_metrics import metrics

LEASE = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("postgresql"))
    yield one
    one.close()


@pytest.fixture
def database(server):
    """An empty record."""
    server.empty()
    return server


@pytest.fixture
def node(database, tmp_path):
    """Makes daemons that share the record and one folder of blobs."""
    made = []

    def make(arguments=(), environment=None, **settings):
        folder = tmp_path / f"node{len(made)}"
        blobs = tmp_path / "blobs"
        blobs.mkdir(mode=0o700, exist_ok=True)
        (folder / "state").mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "state" / "blobs").symlink_to(blobs)
        settings = {"store_url": database.url, "cluster_lease": LEASE, **settings}
        one = Service(folder, **{f"QDQD_{k.upper()}": str(v) for k, v in settings.items()},
                      **(environment or {}))
        one.arguments = list(arguments)
        made.append(one)
        return one.start()

    yield make
    for one in made:
        one.stop()


def test_jobs_are_kept(node, database):
    one = node()
    job = one.submit_glyphs()
    model = one.succeeded(job) and one.result(job)
    one.kill()
    one.start()
    assert one.result(job) == model
    assert database.sql('SELECT state FROM "qdqd".jobs') == "succeeded"


def test_a_newer_schema_is_refused(node, database):
    one = node()
    one.stop()
    database.sql('UPDATE "qdqd".version SET version = 1000')
    with pytest.raises(AssertionError, match="has version 1000"):
        one.start()
    database.sql('DROP SCHEMA "qdqd" CASCADE')
    one.process.wait()
    one.process = None


@pytest.mark.parametrize("program", ["test_store", "test_store_repeats", "test_outbox", "test_fences",
                                     "test_texts"])
def test_the_store_behaves_as_with_sqlite(database, program):
    """The unit tests of the store, each with a schema of its own."""
    built = ROOT / "build" / "tests" / "unit" / "daemon" / program
    if not built.exists():
        pytest.skip(f"{program} is not built")
    asked = {"QDQD_TEST_STORE": database.url, "QDQD_TEST_PSQL": str(database.programs / "psql")}
    done = subprocess.run([built], env={**os.environ, **asked}, capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def test_a_password_is_not_printed(tmp_path):
    url = "postgresql://qdqd:hidden@127.0.0.1:1/qdqd"
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "--check-config", "--print"],
                          env={**os.environ, "QDQD_STORE_URL": url}, capture_output=True,
                          text=True, timeout=60, check=True)
    assert "store.url = postgresql://qdqd:***@127.0.0.1:1/qdqd" in done.stdout
    assert "hidden" not in done.stdout + done.stderr


LONG = {"calibration": {"random_samples": 20_000_000}, "evaluate": False}


def test_any_daemon_answers(node):
    """The second daemon runs nothing; it waits for the job, and serves its result."""
    one, two = node(), node(workers_count=1)
    job = two.submit_glyphs()
    assert one.succeeded(job)["id"] == job
    assert one.result(job) == two.result(job)
    key = {"Idempotency-Key": "the same"}
    body = {"model": one.job(job)["model"], "spec": {"calibration": {"random_samples": 4}}}
    ids = {each.post("/v1/jobs", json=body, headers=key).json()["id"] for each in (one, two)}
    assert len(ids) == 1


def nodes(daemon):
    return daemon.get("/v1/nodes").json()["nodes"]


def test_nodes_are_listed(node):
    """Each daemon lists both; one that ends leaves, and one that is killed is removed later."""
    one, two = node(), node(workers_count=3)
    eventually(lambda: len(nodes(one)) == 2, LEASE)
    first, second = nodes(two)
    assert [x["id"] for x in nodes(one)] == [first["id"], second["id"]]
    assert metrics(one)["qdqd_nodes"].value() == 2
    assert second["lanes"] == 3 and first["running"] == second["running"] == 0
    assert first["started_at"] < second["started_at"] <= second["seen_at"]
    eventually(lambda: nodes(one)[0]["seen_at"] > first["seen_at"], LEASE)
    two.stop()
    assert [x["id"] for x in nodes(one)] == [first["id"]]
    two.start()
    eventually(lambda: len(nodes(one)) == 2, LEASE)
    two.kill()
    assert len(nodes(one)) == 2
    eventually(lambda: len(nodes(one)) == 1, 6 * LEASE)


def test_a_job_is_cancelled_elsewhere(node, database):
    one = node()
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"), spec=LONG)
    one.running(job)
    two = node()
    assert two.request("POST", f"/v1/jobs/{job}/cancel").status_code in (200, 202, 204)
    assert two.job(job)["state"] == "cancelled"
    eventually(lambda: one.busy_workers() == [], 2 * LEASE)
    assert f"cancelled_elsewhere job={job}" in one.log.read_text()
    assert metrics(one)["qdqd_leases_lost_total"].value(what="job") == 0
    assert "lease_lost" not in one.log.read_text()


def test_the_job_of_a_killed_daemon_is_run_by_another(node, database):
    one = node()
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"),
                     spec=LONG)
    one.running(job)
    two = node()
    time.sleep(1)
    assert database.sql('SELECT fence FROM "qdqd".jobs') == "1"  # a start requeues no one else's
    one.kill()
    eventually(lambda: database.sql('SELECT state, fence FROM "qdqd".jobs') == "running|2",
               4 * LEASE)
    two.running(job)


def test_a_daemon_that_stood_still_is_too_late(node, database):
    """The first daemon is stopped for twice its lease; its worker ends the job meanwhile, and
    what it then writes is refused by the fence."""
    one = node()
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"),
                     spec=LONG)
    one.running(job)
    one.process.send_signal(signal.SIGSTOP)
    two = node()
    eventually(lambda: database.sql('SELECT state, fence FROM "qdqd".jobs') == "running|2",
               4 * LEASE)
    one.process.send_signal(signal.SIGCONT)
    eventually(lambda: "lease_lost" in one.log.read_text(), 2 * LEASE)
    assert metrics(one)["qdqd_leases_lost_total"].value(what="job") == 1
    eventually(lambda: one.busy_workers() == [])
    assert database.sql('SELECT state, fence, attempts FROM "qdqd".jobs') == "running|2|0"
    two.running(job)


def test_a_late_end_is_refused(node, database):
    """Another claim follows between two heartbeats, as after a daemon has stood still. The
    first claim's worker succeeds, and its end changes nothing."""
    one = node(cluster_lease=300)
    spec = {"calibration": {"random_samples": 10_000}, "evaluate": False}
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"), spec=spec)
    one.running(job)
    claimed = database.sql('UPDATE "qdqd".jobs SET fence = 2 RETURNING state')
    assert claimed == "running"
    eventually(lambda: one.busy_workers() == [], 60)
    time.sleep(1)
    row = database.sql('SELECT state, fence, result_model IS NULL, ended_at FROM "qdqd".jobs')
    assert row == "running|2|t|0"
    assert "end_refused" in one.log.read_text()


def rows_of_scans(server):
    """The rows of jobs that statements have read without an index."""
    server.sql("SELECT pg_stat_clear_snapshot()")
    return int(server.sql("SELECT sum(seq_tup_read) FROM pg_stat_user_tables"
                          " WHERE relname = 'jobs'"))


def test_no_statement_reads_all_jobs(node, database):
    """The plans of statements, which are made while the table is empty, use its indexes."""
    one = node(workers_count="1")
    for _ in range(20):
        one.succeeded(one.submit_glyphs(fresh=True, spec={"evaluate": False}))
    time.sleep(LEASE)  # the server's processes tell their counts once a second
    before = rows_of_scans(database)
    for _ in range(10):
        one.succeeded(one.submit_glyphs(fresh=True, spec={"evaluate": False}))
    time.sleep(LEASE)
    assert rows_of_scans(database) == before


def test_postgresql_is_restarted(node, database):
    one = node()
    job = one.submit_glyphs()
    one.succeeded(job)
    database.stop()
    answer = one.http.get(one.url + "/readyz", timeout=30)
    assert answer.status_code == 503
    answer = one.http.get(f"{one.url}/v1/jobs/{job}", timeout=30)
    assert answer.status_code == 503 and "Retry-After" in answer.headers
    assert one.http.get(one.url + "/healthz", timeout=30).status_code == 200
    database.start()
    eventually(lambda: one.http.get(one.url + "/readyz", timeout=30).status_code == 200)
    assert one.job(job)["state"] == "succeeded"
    one.succeeded(one.submit_glyphs(spec={"calibration": {"method": "minmax"}}))


def test_a_node_is_ready_when_it_answers(node, database):
    """The record and the access tokens have a connection each. A node is ready when both work."""
    one = node()
    job = one.submit_glyphs()
    one.succeeded(job)
    for _ in range(4):
        database.stop()
        ended = threading.Event()

        def ask():
            while not ended.wait(0.01):
                requests.get(f"{one.url}/v1/jobs/{job}", timeout=30)

        asks = threading.Thread(target=ask)  # the connection of tokens fails at some other time
        asks.start()
        try:
            database.start()
            eventually(lambda: one.http.get(one.url + "/readyz", timeout=30).status_code == 200)
            answer = one.http.get(f"{one.url}/v1/jobs/{job}", timeout=30)
        finally:
            ended.set()
            asks.join()
        assert answer.status_code == 200, answer.text


def job_row(database):
    return database.sql('SELECT state, fence, attempts FROM "qdqd".jobs')


def test_postgresql_is_gone_for_less_than_the_lease(node, database):
    """The job goes on: its worker, its claim and its progress stay."""
    one = node(cluster_lease=60)
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"), spec=LONG)
    workers = one.running(job)
    eventually(lambda: database.sql('SELECT done > 0 FROM "qdqd".jobs') == "t")
    database.stop()
    eventually(lambda: one.http.get(one.url + "/readyz", timeout=30).status_code == 503)
    database.start()
    done, until = database.rows('SELECT done, lease_until FROM "qdqd".jobs')[0]
    eventually(lambda: one.http.get(one.url + "/readyz", timeout=30).status_code == 200)
    eventually(lambda: database.sql(f'SELECT done > {done} AND lease_until > {until}'
                                    ' FROM "qdqd".jobs') == "t")
    assert one.busy_workers() == workers and job_row(database) == "running|1|0"
    assert "lease_lost" not in one.log.read_text()


def test_postgresql_is_gone_for_two_renewals(node, database):
    """Leases are renewed as soon as it is back, although that is not yet time for the next one."""
    lease = 90  # of which the job goes on for four fifths without a renewal; due after each third
    one = node(cluster_lease=lease)
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"), spec=LONG)
    workers = one.running(job)

    def until():
        return int(database.sql('SELECT lease_until FROM "qdqd".jobs'))

    first = until()
    eventually(lambda: until() > first, lease)
    last = until()
    database.stop()
    time.sleep(2 * lease / 3 + 1)  # two renewals come to nothing
    database.start()
    eventually(lambda: until() > last, 60)
    assert one.busy_workers() == workers and job_row(database) == "running|1|0"
    assert "lease_lost" not in one.log.read_text()


def test_postgresql_is_gone_for_more_than_the_lease(node, database):
    """The worker is ended while PostgreSQL is gone; the job runs again when it is back, and that
    does not count as an attempt."""
    one = node()
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"), spec=LONG)
    one.running(job)
    database.stop()
    eventually(lambda: one.busy_workers() == [], 10 * LEASE)
    assert "lease_lost" in one.log.read_text()
    database.start()
    eventually(lambda: job_row(database) == "running|2|0", 60)
    one.running(job)


@pytest.mark.parametrize("command", [["--backup", "copy"], ["--restore", "copy"], ["--adopt"],
                                     ["--blobs", "s3://blobs"]])
def test_commands_for_sqlite_refuse(command, tmp_path):
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", *command], cwd=tmp_path, text=True,
                          env={**os.environ, "QDQD_STORE_URL": "postgresql://127.0.0.1:1/qdqd"},
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and "the record is in PostgreSQL" in done.stderr
    assert "pg_dump is the backup of the record, and the bucket's versioning" in done.stderr


def test_a_daemon_with_files_of_its_own_is_refused(node, database, tmp_path):
    """It would fail jobs of which it has no files."""
    one = node()
    job = one.submit_glyphs()
    other = Service(tmp_path / "other", QDQD_STORE_URL=database.url)
    with pytest.raises(AssertionError, match="the files of this record are in another folder"):
        other.start()
    other.process.wait()
    other.process = None
    assert one.succeeded(job)
    one.stop()
    assert one.start().get("/readyz").status_code == 200
    assert node().get("/readyz").status_code == 200  # it shares the folder


def test_a_job_without_its_files_is_queued_again(node, tmp_path):
    """It fails at last as something that may be sent again."""
    one = node(test_worker_pause_ms=2000, workers_count=1)
    held = one.submit_glyphs()
    one.running(held)
    job = one.submit(model=one.upload("models", nets.block_net()),
                     spec={"calibration": {"random_samples": 2}})
    digest = one.job(job)["model"].split(":")[1]
    (tmp_path / "blobs" / digest[:2] / digest).unlink()
    ended = one.ended(job)
    assert ended["state"] == "failed" and ended["error"]["code"] == "unavailable", ended
    assert ended["error"]["retryable"] and ended["attempts"] == 2
    assert f"event=job_requeued job={job}" in one.log.read_text()


def test_an_outage_is_logged_once(node, database):
    """However many requests and lanes meet it."""
    one = node(workers_count=4)
    one.succeeded(one.submit_glyphs())
    database.stop(signal.SIGINT)
    try:
        for _ in range(20):
            one.post("/v1/jobs", json={"model": "sha256:" + 64 * "0"})
            one.get("/v1/jobs")
            time.sleep(0.2)
    finally:
        database.start()
    eventually(lambda: one.get("/readyz").status_code == 200)
    one.succeeded(one.submit_glyphs(fresh=True))
    log = one.log.read_text()
    assert log.count("event=store_failed") <= 2, log
    assert 1 <= log.count("event=store_answers") <= 2
