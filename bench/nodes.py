#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nodes.py [SECONDS [ROUNDS]]: what several daemons over one PostgreSQL do in a second.

    build/venv/bin/python bench/nodes.py 10 3

Counts small, durable jobs (those of jobs.py) of 12 clients through one daemon over SQLite, and
through one and three daemons over PostgreSQL, with stored files in a folder and in a bucket.
Then jobs of calibration alone, with one worker for each daemon. All kinds are measured by turns,
and the medians of the rounds are printed with their ratios. The servers, those of tests/servers,
run on the same machine, and so do the clients."""

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "servers")]

from bucket import Bucket  # noqa: E402
from common import machine, table  # noqa: E402
from database import Server  # noqa: E402
from jobs import Daemon, call, send_jobs, small_model  # noqa: E402
from service import DATA  # noqa: E402

CLIENTS = 12
CALIBRATION = {"evaluate": False, "calibration": {"random_samples": 4000}}


class Place:
    """Daemons that share a record, or one with its own."""

    def __init__(self, folder, n, server=None, bucket=None, **settings):
        environment = dict(settings)
        if server:
            name = f"bench{time.monotonic_ns()}"
            server.sql(f"CREATE DATABASE {name}")
            environment["QDQD_STORE_URL"] = server.url_of(name)
            if bucket:
                environment.update(bucket.settings(name))
        self.daemons = []
        blobs = folder / "blobs"
        blobs.mkdir(mode=0o700)
        for i in range(n):
            state = folder / f"node{i}"
            state.mkdir(mode=0o700)
            if server and not bucket:
                (state / "blobs").symlink_to(blobs)
            self.daemons.append(Daemon(state, **environment))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.stop()


def small_jobs(place, seconds):
    """Returns the number of jobs that ended in a second."""
    model = call(place.daemons[0].connect(), "POST", "/v1/models", small_model())["id"]
    begin = time.monotonic()
    times = [[] for _ in range(CLIENTS)]
    threads = [threading.Thread(target=send_jobs, args=(
        place.daemons[i % len(place.daemons)], model, begin + seconds, times[i]))
        for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(map(len, times)) / (time.monotonic() - begin)


def calibrations(place, n=12):
    """Returns the number of jobs that ended in a second, of `n` that were sent at once."""
    first = place.daemons[0].connect()
    model = call(first, "POST", "/v1/models", (DATA / "glyph_resnet.onnx").read_bytes())["id"]
    body = json.dumps({"model": model, "spec": CALIBRATION, "fresh": True})
    begin = time.monotonic()
    jobs = [call(place.daemons[i % len(place.daemons)].connect(), "POST", "/v1/jobs", body)["id"]
            for i in range(n)]
    for job in jobs:
        while call(first, "GET", f"/v1/jobs/{job}?wait=60")["state"] in ("queued", "running"):
            pass
    return n / (time.monotonic() - begin)


def main(seconds=10, rounds=3):
    seconds, rounds = float(seconds), int(rounds)
    one_worker = {"QDQD_WORKERS_COUNT": "1", "QDQD_WORKERS_THREADS": "1"}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        (folder / "postgresql").mkdir()
        (folder / "s3").mkdir()
        server = Server(folder / "postgresql")
        bucket = Bucket(folder / "s3").start()

        def small(n, *where):
            return lambda path: small_jobs_at(Place(path, n, *where))

        def small_jobs_at(place):
            with place:
                return small_jobs(place, seconds)

        def calibrate(n, *where, **settings):
            def run(path):
                with Place(path, n, *where, **{**one_worker, **settings}) as place:
                    return calibrations(place)
            return run

        kinds = {
            "small jobs, SQLite, 1 daemon": small(1),
            "small jobs, PostgreSQL and a folder, 1 daemon": small(1, server),
            "small jobs, PostgreSQL and a folder, 3 daemons": small(3, server),
            "small jobs, PostgreSQL and a bucket, 1 daemon": small(1, server, bucket),
            "small jobs, PostgreSQL and a bucket, 3 daemons": small(3, server, bucket),
            "calibration, 1 daemon of 1 worker": calibrate(1, server, bucket),
            "calibration, 1 daemon of 2 workers": calibrate(1, server, bucket,
                                                            QDQD_WORKERS_COUNT="2"),
            "calibration, 3 daemons of 1 worker": calibrate(3, server, bucket),
        }
        seen = {kind: [] for kind in kinds}
        try:
            for i in range(rounds):
                for j, (kind, run) in enumerate(kinds.items()):
                    path = folder / f"{i}-{j}"
                    path.mkdir()
                    seen[kind].append(run(path))
        finally:
            bucket.stop()
            server.close()
    median = {kind: statistics.median(rates) for kind, rates in seen.items()}

    def row(kind):
        first = next(one for one in median if one.split(",")[0] == kind.split(",")[0])
        return [kind, f"{median[kind]:.1f}", f"{median[kind] / median[first]:.2f}",
                f"{min(seen[kind]):.1f} to {max(seen[kind]):.1f}"]

    machine()
    table(f"Jobs of {CLIENTS} clients, medians of {rounds} rounds of {seconds:.0f} s, "
          f"load {os.getloadavg()[0]:.1f}",
          ["", "jobs a second", "ratio to the first", "least to most"],
          [row(kind) for kind in kinds])


if __name__ == "__main__":
    main(*sys.argv[1:])
