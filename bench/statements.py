#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the statements that daemons send to PostgreSQL: of a job, of an upload, while nothing
happens, and while clients wait. Counts do not depend on the machine's load, but for the polls of a job that takes longer.

    build/venv/bin/python bench/statements.py [JOBS]

The server is that of tests/servers/postgresql and logs every statement (log_statement = all).
"""

import collections
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "servers")]

from database import Server  # noqa: E402
from service import DATA, FEW_SAMPLES, Service  # noqa: E402

LEASE = 15  # seconds, the default
IDLE = 2 * LEASE
WAITERS = 20
LINE = re.compile(r"LOG:  (?:statement|execute \S+): (\w+)(.*)")
TABLE = re.compile(r'"qdqd[^"]*"\.(\w+)')
WRITES = ("INSERT", "UPDATE", "DELETE")


def statements(server, begin):
    """Returns the statements since an offset in the log, as (verb, rest), and the next offset."""
    text = (server.folder / "server.log").read_bytes()
    found = [LINE.search(line) for line in text[begin:].decode().splitlines()]
    return [(one[1].upper(), one[2]) for one in found if one], len(text)


def count(found):
    """Returns the number of statements, of those that may change rows, and of their commits. One
    that finds nothing to change, as a claim without jobs, writes nothing to the log."""
    commits, writes, inside = 0, 0, None
    for verb, rest in found:
        if verb == "BEGIN":
            inside = 0
        elif verb in ("COMMIT", "ROLLBACK"):
            commits += verb == "COMMIT" and bool(inside)
            inside = None
        elif verb in WRITES or (verb == "SELECT" and " FOR " in rest):
            writes += 1
            if inside is None:
                commits += verb in WRITES
            else:
                inside += 1
    return {"statements": len(found), "writes": writes, "commits": commits}


def kinds(found):
    """Counts statements by their verb and the first table."""
    names = [(verb, TABLE.search(rest)) for verb, rest in found]
    return collections.Counter(f"{verb} {table[1] if table else ''}".strip()
                               for verb, table in names)


def show(name, found, n, wal):
    counted = count(found)
    print(f"{name}: " + ", ".join(f"{value / n:.1f} {word}" for word, value in counted.items())
          + f", {wal / n / 1024:.1f} KiB of write-ahead log")
    for kind, number in kinds(found).most_common(20):
        print(f"    {number / n:7.2f}  {kind}")


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.sql("ALTER SYSTEM SET log_statement = 'all'")
        server.sql("SELECT pg_reload_conf()")
        one = Service(Path(folder) / "node", QDQD_STORE_URL=server.url, QDQD_WORKERS_COUNT="1",
                      QDQD_CLUSTER_LEASE=str(LEASE))
        try:
            measure(server, one.start(), jobs)
        finally:
            one.stop()
            server.close()


class Wal:
    """The bytes of the write-ahead log since the last call."""

    def __init__(self, server):
        self.server, self.at = server, 0
        self()

    def __call__(self):
        was, self.at = self.at, int(self.server.sql(
            "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))
        return self.at - was


def measure(server, one, jobs):
    asked = {"calibration": one.upload("datasets", FEW_SAMPLES), "fresh": True,
             "model": one.upload("models", DATA / "glyph_resnet.onnx"), "spec": {"evaluate": False}}
    one.succeeded(one.submit(**asked))
    time.sleep(3)
    server.sql("CHECKPOINT")
    wal = Wal(server)
    _, at = statements(server, 0)
    time.sleep(IDLE)
    idle, at = statements(server, at)
    show(f"a node with one tenant, in {IDLE} s without work", idle, 1, wal())
    data = (DATA / "glyph_se.onnx").read_bytes()
    for i in range(jobs):
        # Bytes behind the end of a model's message are a new model with a new digest.
        one.upload("models", data + b"\xa2\x06\x02" + bytes(divmod(i, 256)))
    found, at = statements(server, at)
    show("an upload of a new model, idle statements included", found, jobs,
         wal())
    begin = time.monotonic()
    for _ in range(jobs):
        one.succeeded(one.submit(**asked))
    took = time.monotonic() - begin
    found, at = statements(server, at)
    show(f"a job that a client submits and waits for, {took / jobs:.2f} s, idle statements included",
         found, jobs, wal())
    wait_for_one(server, one, {**asked, "spec": {**asked["spec"], "calibration": {
        "random_samples": 20_000_000}}, "calibration": None}, wal)


def wait_for_one(server, one, asked, wal):
    """Counts what clients cost that wait for a job which runs on."""
    job = one.submit(**asked)
    one.running(job)
    with ThreadPoolExecutor(WAITERS) as pool:
        for _ in range(WAITERS):
            pool.submit(requests.get, f"{one.url}/v1/jobs/{job}?wait=60", timeout=90)
        time.sleep(2)
        wal()
        _, at = statements(server, 0)
        time.sleep(LEASE)
        found, _ = statements(server, at)
        show(f"a second in which {WAITERS} clients wait for a job that runs on", found, LEASE, wal())
        one.post(f"/v1/jobs/{job}/cancel")


main()
