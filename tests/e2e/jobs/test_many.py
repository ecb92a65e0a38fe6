# SPDX-License-Identifier: Apache-2.0
"""A page of a list costs the same however many jobs there are."""

import sqlite3

import nets
from service import Service, cpu_seconds

MODEL = nets.block_net()
JOBS = 10_000


def add_jobs(state, job):
    """Adds rows that are copies of a job's, made a millisecond after each other."""
    database = sqlite3.connect(state / "qdqd.sqlite3")
    own = {"id": "'j' || lower(hex(randomblob(16)))", "seq": "NULL", "idempotency_key": "NULL",
           "created_at": "created_at + number", "labels": "json_object('number', CAST(number AS TEXT))"}
    columns = [row[1] for row in database.execute("PRAGMA table_info(jobs)")]
    database.execute(
        f"WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers"
        f" WHERE number < {JOBS}) INSERT INTO jobs({', '.join(columns)})"
        f" SELECT {', '.join(own.get(name, name) for name in columns)} FROM numbers, jobs WHERE id = ?",
        (job,))
    database.commit()
    database.close()


def test_lists_of_many_jobs(tmp_path):
    one = Service(tmp_path).start()
    job = one.submit(model=one.upload("models", MODEL),
                     spec={"calibration": {"random_samples": 2}, "evaluate": False})
    one.succeeded(job)
    one.stop()
    add_jobs(one.state, job)
    one.start()
    try:
        for query in ("", "&tenant=*", "&state=succeeded", "&tenant=*&state=succeeded"):
            before = cpu_seconds(one.process.pid)
            first = one.http.get(f"{one.url}/v1/jobs?limit=500{query}").json()
            second = one.http.get(
                f"{one.url}/v1/jobs?limit=500{query}&cursor={first['next_cursor']}").json()
            numbers = [int(each["labels"]["number"]) for page in (first, second) for each in page["jobs"]]
            assert numbers == list(range(JOBS, JOBS - 1000, -1))
            # Eight jobs at a time are read. A list that sorts all jobs for them needs 4 seconds.
            assert cpu_seconds(one.process.pid) - before < 1.5, query
        assert [each["labels"] for each in one.get("/v1/jobs?label=number:77").json()["jobs"]] == [
            {"number": "77"}]
    finally:
        one.stop()
