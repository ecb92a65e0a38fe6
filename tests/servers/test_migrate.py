# SPDX-License-Identifier: Apache-2.0
"""A whole state of SQLite and files goes to PostgreSQL and a bucket, also where the command is
killed at random moments, QDQD_KILLS (5) times."""

import os
import platform
import random
import subprocess
import time

import pytest

import access
from bucket_fixtures import bucket  # noqa: F401
from database import Server
from far import SECRET
from service import DATA, FEW_SAMPLES, INSTALLED, Service
from test_check_store import finish_two, lose_power

KILLS = int(os.environ.get("QDQD_KILLS", 5))
SEED = int(os.environ.get("QDQD_SEED", time.time()))
LABELS = {"team": "a\tb\\n", "name": "Zeile\nzwei \"und\" \\. ü"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("postgresql"))
    yield one
    one.close()


@pytest.fixture
def database(server):
    server.empty()
    return server


def run(state, *words, **environment):
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "--state-dir", state, *words], text=True,
                          env=environment, capture_output=True, timeout=120, check=False)


def seen(client, ignored=()):
    """Returns what a client sees of a tenant, but for some jobs."""
    jobs = [job for job in client.get("/v1/jobs?limit=100").json()["jobs"]
            if job["id"] not in ignored]
    files = {kind: client.get(f"/v1/{kind}").json() for kind in ("models", "datasets")}
    results = {job["id"]: client.result(job["id"]) for job in jobs if job["state"] == "succeeded"}
    reports = {id: client.report(id) for id in results}
    texts = {job["id"]: client.job(job["id"]) for job in jobs}
    return texts, files, results, reports


@pytest.fixture
def state(tmp_path):
    """A daemon with three tenants, jobs that have ended, and deliveries to a receiver that is not
    there. It was killed while one job ran and one waited. Returns it with the tenants' clients
    and what they saw before that."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "told.secret").write_text(SECRET + "\n")
    (folder / "told.secret").chmod(0o600)
    (folder / "qdqd.conf").write_text(
        "[remote told]\nkind = webhook\nurl = http://127.0.0.1:9/told\nallow_private = true\n"
        f"secret = {folder}/told.secret\n")
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    one.start()
    clients = [access.client(one, access.add(one.state, "operator", "--scope", "admin"))]
    clients += [access.tenant(one, "first"), access.tenant(one, "second", "--queue", "7")]
    for client in clients:
        client.succeeded(client.submit_glyphs(labels=LABELS))
        client.succeeded(client.submit_glyphs(spec={"calibration": {"method": "minmax"}}))
    clients[1].ended(clients[1].submit(model=clients[1].upload(
        "models", DATA / "glyph_se.onnx"), spec={"accept": {"min_sqnr_db": 900}}))
    key = {"Idempotency-Key": "once"}
    body = {"model": clients[0].upload("models", DATA / "glyph_resnet.onnx"),
            "calibration": clients[0].upload("datasets", FEW_SAMPLES), "fresh": True}
    one.keyed = (key, body, clients[0].post("/v1/jobs", json=body, headers=key).json()["id"])
    clients[0].succeeded(one.keyed[2])
    before = [seen(client) for client in clients]
    one.stop()
    one.start(QDQD_TEST_WORKER_PAUSE_MS="600000")
    for client in clients:
        client.url, client.process = one.url, one.process
    one.waiting = [clients[1].submit_glyphs(fresh=True) for _ in range(2)]
    clients[1].running(one.waiting[0])
    one.kill()
    return one, clients, before


def take_over(one, database, bucket, prefix):
    return [INSTALLED / "sbin" / "qdqd", "--state-dir", one.state, "--migrate-to", database.url,
            "--blobs", f"s3://blobs/{prefix}"], bucket.settings(prefix)


def listed(state, **environment):
    """Returns the access tokens, sorted, with their limits."""
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "token", "list", "--state-dir", state],
                          env=environment, capture_output=True, text=True, timeout=60, check=True)
    return sorted(done.stdout.splitlines())


def check(one, database, bucket, prefix):
    return run(one.state, "--check-store", QDQD_STORE_URL=database.url, **bucket.settings(prefix))


def test_a_whole_state_is_taken_over(state, database, bucket, tmp_path):
    one, clients, before = state
    dice, prefix = random.Random(SEED), f"{tmp_path.name}/moved"
    words, environment = take_over(one, database, bucket, prefix)
    began = time.monotonic()
    subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=120)
    took = time.monotonic() - began
    database.empty()
    for _ in range(KILLS):
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(dice.uniform(0, took))
        except subprocess.TimeoutExpired:
            process.kill()
        if process.wait() == 0:
            database.empty()  # it was faster than the kill
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" rows, 3 tenants"), done.stdout
    found = check(one, database, bucket, prefix)
    assert found.returncode == 0 and " 0 missing, 0 without a row" in found.stdout, found
    again = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert again.returncode == 1 and "already; nothing was copied" in again.stderr
    # Another machine, with the settings of the first.
    new = Service(tmp_path / "new", QDQD_STORE_URL=database.url, **bucket.settings(prefix))
    new.arguments = one.arguments
    new.start()
    try:
        assert listed(new.state, QDQD_STORE_URL=database.url) == listed(one.state)
        assert new.http.get(f"{new.url}/v1/jobs").status_code == 401
        for client, was in zip(clients, before):
            client.url = new.url
            now = seen(client, one.waiting)
            for documents in (was[0], now[0]):
                for job in documents.values():
                    for delivery in job["deliveries"]:
                        delivery.pop("attempts"), delivery.pop("error")
            assert now == was
        for job in one.waiting:
            clients[1].succeeded(job)
        key, body, job = one.keyed
        assert clients[0].post("/v1/jobs", json=body, headers=key).json()["id"] == job
        # Observations and results from before are known.
        other = clients[0].succeeded(clients[0].submit_glyphs(spec={
            "calibration": {"method": "percentile"}}))
        assert clients[0].report(other["id"])["calibration"]["inferences"] == 0
        assert clients[0].succeeded(clients[0].submit_glyphs())["cached_from"]
        newest = clients[0].get("/v1/jobs?limit=1").json()["jobs"][0]["id"]
        assert newest not in before[0][0]
    finally:
        new.stop()


def test_a_database_with_rows_is_refused(state, database, bucket, tmp_path):
    one, _, _ = state
    other = Service(tmp_path / "other", QDQD_STORE_URL=database.url)
    other.start()
    model = other.upload("models", DATA / "glyph_se.onnx")
    other.stop()
    words, environment = take_over(one, database, bucket, f"{tmp_path.name}/full")
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "the schema qdqd has rows of files already" in done.stderr
    assert database.sql('SELECT id FROM "qdqd".files') == model
    assert database.sql('SELECT count(*) FROM "qdqd".jobs') == "0"


@pytest.fixture
def stopped(tmp_path):
    """A state folder that a daemon has made, with access tokens that a test adds to it."""
    one = Service(tmp_path / "old").start()
    one.stop()
    return one.state


def test_tokens_are_in_the_transaction(stopped, database):
    """A token that the database refuses leaves neither the others nor rows."""
    for name in ("one", "two", "three"):
        access.add(stopped, name)
    tokens = stopped / "tokens"
    lines = tokens.read_text()
    tokens.write_text(lines + lines.splitlines()[-1] + "\n")  # the same name twice
    done = run(stopped, "--migrate-to", database.url)
    assert done.returncode == 1 and "duplicate key" in done.stderr, done
    assert database.sql('SELECT count(*) FROM "qdqd".tokens') == "0"
    assert database.sql('SELECT changes FROM "qdqd".token_changes') == "0"
    tokens.write_text(lines)
    done = run(stopped, "--migrate-to", database.url)
    assert done.stdout == "the record: 3 access tokens, 0 rows, 1 tenants\n", done
    assert len(listed(stopped, QDQD_STORE_URL=database.url)) == 3


def test_tokens_of_the_database_stay(stopped, database):
    """A database that has had tokens is refused, as one that has rows is."""
    access.add(stopped, "mine")
    subprocess.run([INSTALLED / "sbin" / "qdqd", "token", "add", "other"], check=True,
                   env={"QDQD_STORE_URL": database.url}, capture_output=True, timeout=60)
    done = run(stopped, "--migrate-to", database.url)
    assert done.returncode == 1 and "has or had access tokens already" in done.stderr, done
    assert database.sql('SELECT name FROM "qdqd".tokens') == "other"


def test_a_file_without_tokens_keeps_the_door_closed(stopped, database, tmp_path):
    """Once there was a token requests need one, also after the last one was revoked."""
    access.add(stopped, "gone")
    assert access.command(stopped, "revoke", "gone").returncode == 0
    assert run(stopped, "--migrate-to", database.url).returncode == 0
    new = Service(tmp_path / "new", QDQD_STORE_URL=database.url)
    new.begin()
    try:
        assert new.http.get(f"{new.url}/v1/jobs").status_code == 401
    finally:
        new.stop()


def test_a_daemon_uses_the_folder(database, tmp_path):
    one = Service(tmp_path).start()
    try:
        done = run(one.state, "--migrate-to", database.url)
        assert done.returncode == 1 and "another daemon uses this state folder" in done.stderr
    finally:
        one.stop()


def test_no_database(tmp_path):
    one = Service(tmp_path).start()
    one.stop()
    done = run(one.state, "--migrate-to", "postgresql://127.0.0.1:1/none")
    assert done.returncode == 1 and done.stderr.startswith("qdqd: PostgreSQL: ")
    done = run(tmp_path / "nothing", "--migrate-to", "postgresql://127.0.0.1:1/none")
    assert done.returncode == 1


def test_faults_of_a_record_in_postgresql(database, bucket, tmp_path):
    """A row whose object is gone, and an object without a row, also of a tenant."""
    prefix = f"{tmp_path.name}/faults"
    one = Service(tmp_path / "node", QDQD_STORE_URL=database.url, **bucket.settings(prefix)).start()
    access.ELSEWHERE[one.state] = {"QDQD_STORE_URL": database.url}
    try:
        operator = access.client(one, access.add(one.state, "operator", "--scope", "admin"))
        tenant = access.tenant(one, "first")
        kept = operator.upload("models", DATA / "glyph_resnet.onnx")
        lost = tenant.upload("models", DATA / "glyph_se.onnx")
        found = check(one, database, bucket, prefix)
        assert (found.returncode, found.stdout) == (
            0, "2 stored files, 0 missing, 0 without a row\n"), found
        bucket.remove(f"{prefix}/first/{lost.split(':')[1]}")
        bucket.write(f"{prefix}/_/{'0' * 64}", b"orphan", tmp_path)
        found = check(one, database, bucket, prefix)
        assert found.returncode == 1 and sorted(found.stdout.splitlines()) == sorted([
            f"orphan - sha256:{'0' * 64}", f"missing first {lost}",
            "2 stored files, 1 missing, 1 without a row"]), found
        assert kept not in found.stdout
    finally:
        one.stop()


def test_waiting_jobs_keep_their_class(database, tmp_path):
    """A job with a profile waits for a processor of this class, as if it had come later."""
    (tmp_path / "old").mkdir()
    one = Service(tmp_path / "old", QDQD_WORKERS_COUNT="1").start()
    runs = one.submit(model=one.upload("models", DATA / "glyph_resnet.onnx"),
                      spec={"calibration": {"random_samples": 20_000_000}, "evaluate": False})
    one.running(runs)
    timed = one.submit_glyphs(spec={"profile": {"runs": 2}})
    other = "vnni" if platform.machine() == "aarch64" else "arm"
    far = one.submit_glyphs(spec={"profile": {"runs": 2}, "host": other})
    one.kill()
    assert run(one.state, "--migrate-to", database.url).returncode == 0
    rows = dict(database.rows('SELECT id, processor FROM "qdqd".jobs'))
    assert rows[runs] == rows[far] == "" and rows[timed] in ("avx2", "vnni", "arm")


def test_files_that_a_loss_of_power_took(database, bucket, tmp_path):
    """The record of SQLite has them, that of PostgreSQL does not: they are written first."""
    one = Service(tmp_path / "old").start()
    job = finish_two(one)
    report = one.report(job)
    path, _ = lose_power(one, job)
    path.unlink()
    prefix = f"{tmp_path.name}/lost"
    words, environment = take_over(one, database, bucket, prefix)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    new = Service(tmp_path / "new", QDQD_STORE_URL=database.url, **bucket.settings(prefix)).start()
    try:
        assert new.report(job) == report
    finally:
        new.stop()
