# SPDX-License-Identifier: Apache-2.0
"""The work that one daemon alone does, and the facts that every daemon knows of the others'
jobs."""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

import nets
from service import INSTALLED, ROOT, eventually
from test_fences import MODEL, QUICK, row
from test_postgresql import LONG, database, node, server  # noqa: F401


def leader(database):  # noqa: F811
    return row(database, "node", "leader")


def test_another_daemon_leads(node, database):  # noqa: F811
    """The sweep of a daemon that was frozen goes on elsewhere; awake, it leads no more."""
    one = node(retention_jobs=4, retention_leftovers=4)
    eventually(lambda: leader(database), 60)
    first = leader(database)
    two = node(retention_jobs=4, retention_leftovers=4)
    one.process.send_signal(signal.SIGSTOP)
    eventually(lambda: leader(database) != first, 60)
    fence = row(database, "fence", "leader")
    assert int(fence) > 1
    two.succeeded(two.submit(model=two.upload("models", MODEL), spec=QUICK))
    eventually(lambda: row(database, "count(*)", "jobs") == "0", 60)
    eventually(lambda: "job_swept" in two.log.read_text(), 60)
    one.process.send_signal(signal.SIGCONT)
    eventually(lambda: one.get("/readyz").status_code == 200, 60)
    one.succeeded(one.submit(model=one.upload("models", MODEL), spec=QUICK, fresh=True))
    eventually(lambda: row(database, "count(*)", "jobs") == "0", 60)
    assert "swept" not in one.log.read_text() and row(database, "fence", "leader") == fence
    two.stop()  # which lets another lead at once
    eventually(lambda: leader(database) == first, 60)


def test_blobs_without_rows_go(node, database):  # noqa: F811
    """With the record in PostgreSQL and files in the folder, deleted bytes go after the grace
    period, but for those that were stored again."""
    one = node(retention_leftovers=3)
    kept, gone = one.upload("models", MODEL), one.upload("datasets", nets.samples())
    for path in (f"/v1/models/{kept}", f"/v1/datasets/{gone}"):
        assert one.request("DELETE", path).status_code == 204
    assert len(one.stored_files()) == 2
    eventually(lambda: row(database, "count(*)", "marks") == "2", 60)
    assert one.upload("models", MODEL) == kept
    eventually(lambda: f"leftover_removed id={gone}" in one.log.read_text(), 60)
    assert one.stored_files() == [kept.removeprefix("sha256:")]
    assert row(database, "count(*)", "marks") == "0"
    assert f"leftover_removed id={kept}" not in one.log.read_text()
    assert one.get(f"/v1/models/{kept}").status_code == 200


def token(database, *words, **environment):  # noqa: F811
    """Runs `qdqd token` on the record. Returns the header with a token that it added, or what it
    printed."""
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "token", *words],
                          env={**os.environ, "QDQD_STORE_URL": database.url, **environment},
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip()
    return {"Authorization": f"Bearer {said}"} if words[0] == "add" else said


GLYPHS = (ROOT / "tests/data/glyph_resnet.onnx").read_bytes()


def test_tenants_of_other_daemons(node, database):  # noqa: F811
    """The jobs of a tenant run on daemons that were never asked for it: one that was there
    before the tenant was, and one that started later. Each has a folder of its own for it."""
    before, one = node(workers_count=1), node(workers_count=1)
    key = token(database, "add", "acme", "--tenant", "acme")

    def submit(daemon):
        model = daemon.post("/v1/models", data=GLYPHS, headers=key).json()["id"]
        return daemon.post("/v1/jobs", json={"model": model, "spec": LONG, "fresh": True},
                           headers=key).json()["id"]

    def started(daemon, job):
        return f"job_started job={job}" in daemon.log.read_text()

    job = submit(one)
    eventually(lambda: started(one, job) or started(before, job), 60)
    first, left = (one, before) if started(one, job) else (before, one)
    first.kill()
    eventually(lambda: started(left, job), 60)
    eventually(lambda: left.busy_workers() == [], 60)  # it has not got the model
    runs, waits = submit(left), submit(left)
    eventually(lambda: started(left, runs), 60)
    after = node(workers_count=1)
    eventually(lambda: started(after, waits), 60)
    left.kill()


def test_progress_and_events_elsewhere(node):  # noqa: F811
    """A daemon that does not run the job shows its progress, and goes on with the events."""
    one = node(workers_count=1)
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"),
                     spec=LONG)
    one.running(job)
    two = node(workers_count=1)
    told = eventually(lambda: two.job(job).get("progress"), 60)
    assert told["stage"] == one.job(job)["progress"]["stage"]
    assert told["total"] == one.job(job)["progress"]["total"] > 0
    done = told["done"]
    eventually(lambda: two.job(job)["progress"]["done"] > done, 60)
    with two.http.get(f"{two.url}/v1/jobs/{job}/events", headers={"Last-Event-ID": "1"},
                      stream=True, timeout=120) as stream:
        lines = stream.iter_lines(decode_unicode=True)
        first = [next(lines) for _ in range(2)]
        assert first == ["id: 2", "event: state"]
        assert any(line == "event: progress" for line in lines)
        assert two.request("POST", f"/v1/jobs/{job}/cancel").status_code in (200, 202, 204)
        assert any(line == "event: end" for line in lines)


def logged_since(database, begin, words):
    """Counts the statements that PostgreSQL has logged since an offset, which have these words."""
    log = (database.folder / "server.log").read_bytes()[begin:].decode()
    return sum(words in line for line in log.splitlines())


def test_a_look_is_one_statement(node, database):  # noqa: F811
    """However many clients wait, a daemon asks for all their jobs at once, and for one of them only
    when its state has changed. All learn of the end on the daemon that does not run the job."""
    one = node(workers_count=1)
    job = one.submit(model=one.upload("models", ROOT / "tests/data/glyph_resnet.onnx"), spec=LONG)
    one.running(job)
    two = node(workers_count=1)
    with ThreadPoolExecutor(20) as pool:
        ended = [pool.submit(lambda: requests.get(f"{two.url}/v1/jobs/{job}?wait=60", timeout=90))
                 for _ in range(20)]
        time.sleep(2)
        database.sql("ALTER SYSTEM SET log_statement = 'all'")
        database.sql("SELECT pg_reload_conf()")
        begin = (database.folder / "server.log").stat().st_size
        eventually(lambda: logged_since(database, begin, "string_to_array") >= 40, 60)
        reads = logged_since(database, begin, 'FROM "qdqd".jobs WHERE id = $1')
        database.sql("ALTER SYSTEM RESET log_statement")
        database.sql("SELECT pg_reload_conf()")
        assert one.request("POST", f"/v1/jobs/{job}/cancel").status_code in (200, 202, 204)
        assert {answer.result().json()["state"] for answer in ended} == {"cancelled"}
    assert reads == 0  # the job runs on; a heartbeat with its progress is no end


def listeners(database):  # noqa: F811
    return database.sql("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN qdqd'")


def test_hints(node, database):  # noqa: F811
    """Daemons listen where they may, again after their connection was cut, and do without."""
    one, two = node(store_direct_url=database.url), node(store_direct_url=database.url)

    def heard(daemon):
        [line] = [line for line in daemon.get("/metrics").text.splitlines()
                  if line.startswith("qdqd_hints_total ")]
        return float(line.split()[1])

    eventually(lambda: listeners(database) == "2", 60)
    before = heard(two)
    job = one.submit(model=one.upload("models", MODEL), spec=QUICK)
    eventually(lambda: heard(two) > before, 60)
    one.succeeded(job)
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                 " WHERE query = 'LISTEN qdqd'")
    two.succeeded(one.submit(model=one.upload("models", MODEL), spec=QUICK, fresh=True))
    eventually(lambda: listeners(database) == "2", 60)
    three = node()
    assert heard(three) == 0
    job = one.submit(model=one.upload("models", MODEL), spec=QUICK, fresh=True)
    assert three.succeeded(job)["id"] == job


def test_the_class_of_processors(node, database):  # noqa: F811
    """A job that is profiled waits for a daemon of its class while one is listed; others pass."""
    one = node(workers_count=1)
    model, samples = one.upload("models", MODEL), one.upload("datasets", nets.samples())
    timed = {"profile": {"runs": 2}}
    own = one.succeeded(one.submit(model=model, calibration=samples, spec=timed))["id"]
    here = row(database, "processor", f"jobs WHERE id = '{own}'")
    assert here in ("avx2", "vnni", "arm") and here == row(database, "processor", "nodes")
    there = "vnni" if here != "vnni" else "avx2"
    far = one.submit(model=model, calibration=samples, spec={**timed, "host": there})
    one.succeeded(far)  # no daemon of that class is listed
    assert row(database, "processor IS NULL", f"jobs WHERE id = '{far}'") == "t"
    database.sql('INSERT INTO "qdqd".nodes(id, version, started_at, seen_at, running, lanes,'
                 f" processor) SELECT 'far', '0', 1, newest + 3600000, 0, 1, '{there}'"
                 ' FROM "qdqd".clock')
    waits = one.submit(model=model, calibration=samples, spec={**timed, "host": there},
                       fresh=True)
    one.succeeded(one.submit(model=model, spec={**QUICK, "evaluate": False}))
    one.succeeded(one.submit(model=model, calibration=samples, spec=timed, fresh=True))
    assert one.job(waits)["state"] == "queued"
    database.sql(f"UPDATE \"qdqd\".jobs SET processor = '{here}' WHERE id = '{waits}'")
    one.succeeded(waits)


def status(daemon, key):
    return daemon.http.get(daemon.url + "/v1/jobs", headers=key, timeout=60).status_code


def test_tokens_are_rows(node, database):  # noqa: F811
    """Each daemon knows a token that was added, its limits, and that it was revoked."""
    daemons = [node(), node()]
    assert [status(one, None) for one in daemons] == [200, 200]
    key = token(database, "add", "ci", "--tenant", "acme", "--queue", "1")
    assert [status(one, key) for one in daemons] == [200, 200]
    for one in daemons:
        eventually(lambda: status(one, None) == 401, 60)
    [listed] = token(database, "list").splitlines()
    assert listed.startswith("ci read,submit acme 20") and listed.endswith(" queue=1")
    assert row(database, "name, tenant, limits", "tokens") == "ci|acme|queue=1"
    token(database, "limit", "ci", "--queue", "2", "--job-timeout", "60")
    assert token(database, "list").endswith(" queue=2,job_timeout=60")
    admin = token(database, "add", "root", "--scope", "admin")
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "token", "add", "ci"], text=True,
                          env={**os.environ, "QDQD_STORE_URL": database.url},
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and "there is a token of this name" in done.stderr
    token(database, "revoke", "ci")
    for one in daemons:
        eventually(lambda: status(one, key) == 401, 60)
        assert status(one, admin) == 200
    token(database, "revoke", "root")
    for one in daemons:  # without any token, none is let in
        eventually(lambda: status(one, admin) == 401, 60)
        assert status(one, None) == 401


def test_limits_of_tokens_are_rows(node, database):  # noqa: F811
    """A limit that one command sets holds on each daemon."""
    daemons = [node(workers_count=1), node(workers_count=1)]
    key = token(database, "add", "ci", "--tenant", "acme")
    [model] = {one.post("/v1/models", headers=key, data=GLYPHS).json()["id"] for one in daemons}

    def submit(one):
        return one.post("/v1/jobs", headers=key, json={"model": model, "spec": LONG,
                                                       "fresh": True}).status_code

    assert [submit(one) for one in daemons] == [202, 202]
    eventually(lambda: database.sql("SELECT count(*) FROM \"qdqd-acme\".jobs"
                                    " WHERE state = 'running'") == "2", 60)
    token(database, "limit", "ci", "--queue", "1")
    eventually(lambda: status(daemons[0], key) == status(daemons[1], key) == 200, 60)
    time.sleep(0.5)  # what the rows said a moment ago does not hold any more
    assert sorted([submit(daemons[0]), submit(daemons[1])]) == [202, 429]


def test_a_file_of_tokens_is_taken_over(node, database, tmp_path):  # noqa: F811
    """A daemon whose record moves to PostgreSQL is not open to everybody. A file that the setting
    names stays in force."""
    folder = tmp_path / "node0" / "state"
    folder.mkdir(mode=0o700, parents=True)
    key = token(database, "add", "old", QDQD_STORE_URL="", QDQD_STATE_DIR=str(folder))
    assert "old" in (folder / "tokens").read_text()
    one = node()
    assert status(one, None) == 401 and status(one, key) == 200
    assert row(database, "name", "tokens") == "old"
    named = tmp_path / "named"
    key = token(database, "add", "other", QDQD_AUTH_TOKENS=str(named))
    two = node(auth_tokens=named)
    assert status(two, key) == 200 and status(one, key) == 401
    assert row(database, "count(*)", "tokens") == "1"


REFUSE = """
CREATE FUNCTION "qdqd".refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.name = 'second' THEN RAISE EXCEPTION 'not now'; END IF; RETURN NEW; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON "qdqd".tokens
  FOR EACH ROW EXECUTE FUNCTION "qdqd".refuse();
"""


def test_tokens_are_taken_over_together(node, database):  # noqa: F811
    """When the second of three tokens cannot be added, the next start adds all of them."""
    one = node()
    one.stop()
    database.sql(REFUSE)
    keys = [token(database, "add", name, QDQD_STORE_URL="", QDQD_STATE_DIR=str(one.state))
            for name in ("first", "second", "third")]
    with pytest.raises(AssertionError, match="not now"):
        one.start()
    one.process.wait()
    database.sql('DROP TRIGGER refuse ON "qdqd".tokens')
    one.start()
    assert [status(one, key) for key in [*keys, None]] == [200, 200, 200, 401]


def test_counts_of_connections_are_added_up(node, database):  # noqa: F811
    """Each connection of PostgreSQL counts the bytes of jobs in a row of its own."""
    one = node(retention_leftovers=3)
    database.sql('INSERT INTO "qdqd".record_parts SELECT n, 10 FROM generate_series(9000001,'
                 ' 9000100) AS n')
    one.succeeded(one.submit(model=one.upload("models", MODEL), spec=QUICK))
    eventually(lambda: int(row(database, "count(*)", "record_parts")) < 64, 60)
    counted = int(row(database, "bytes", "record"))
    assert counted > 2000 and row(database, "bytes >= 1000", "record_parts"
                                  " WHERE connection = 0") == "t"
    job = one.get("/v1/jobs").json()["jobs"][0]["id"]
    assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    assert row(database, "bytes", "record") == "1000"
