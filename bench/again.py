# SPDX-License-Identifier: Apache-2.0
"""again.py [THREADS [ROUNDS]]: measures jobs of a daemon on one model and its data, one
after the other. The first job observes; the later ones, with other methods and
placements, reuse its observations.

The model is the ResNet-50 of make_model.py, with 64 random images and no evaluation. Each
round has a state folder of its own; the shortest time of each job is printed. The last
column is the time of a job with "fresh": true, which reuses nothing."""

import os
import sys
import tempfile
import time
from pathlib import Path

from calibrate import images
from common import ROOT, machine, table
from make_model import cached

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from service import Service  # noqa: E402

SAMPLES = 64
CONVS = {"mode": "partial", "layers": [{"class": "Conv2D"}]}
ADDS = {"layers": [{"class": "Add"}]}
JOBS = (("mse, every layer by default", "mse", {}),
        ("entropy, the same", "entropy", {}),
        ("minmax, convolutions alone", "minmax", CONVS),
        ("mse, residual Adds too", "mse", ADDS),
        ("percentile, the same", "percentile", ADDS))


class Job:
    def __init__(self, what, method, placement):
        self.what = what
        self.spec = {**placement, "evaluate": False, "calibration": {"method": method}}
        self.seconds = self.stage = self.fresh = float("inf")

    def run(self, daemon, fresh, **ids):
        start = time.monotonic()
        name = daemon.submit(spec=self.spec, fresh=fresh, **ids)
        daemon.succeeded(name)
        seconds = time.monotonic() - start
        report = daemon.report(name)
        if fresh:
            self.fresh = min(self.fresh, seconds)
            return
        self.seconds = min(self.seconds, seconds)
        self.stage = min(self.stage, report["timings"]["calibrate"])
        self.calibration = report["calibration"]


def one_round(jobs, folder, threads):
    daemon = Service(folder, QDQD_WORKERS_THREADS=str(threads)).start()
    try:
        ids = {"model": daemon.upload("models", cached()),
               "calibration": daemon.upload("datasets", images(SAMPLES))}
        daemon.post("/v1/plan", json={"model": ids["model"]})
        for fresh in (False, True):
            for job in jobs:
                job.run(daemon, fresh, **ids)
        return max(p.stat().st_size for p in (daemon.state / "blobs").rglob("*")
                   if p.is_file() and p.read_bytes()[:6] == b"QDQOBS")
    finally:
        daemon.process.terminate()
        daemon.process.wait()


def main(threads=os.cpu_count(), rounds=3):
    jobs = [Job(*row) for row in JOBS]
    for _ in range(int(rounds)):
        with tempfile.TemporaryDirectory() as folder:
            size = one_round(jobs, Path(folder), threads)
    machine()
    table(f"Jobs on one model and {SAMPLES} samples, ResNet-50, {threads} threads, best of "
          f"{rounds}",
          ["job", "seconds", "calibration stage, ms", "inferences", "tensors reused",
           "fresh, seconds"],
          [[job.what, f"{job.seconds:.2f}", f"{job.stage * 1000:.0f}",
            job.calibration["inferences"], job.calibration["reused"],
            f"{job.fresh:.2f}"] for job in jobs])
    print(f"\nWhat is kept of all of them: {size / 1e6:.2f} MB.")


if __name__ == "__main__":
    main(*sys.argv[1:])
