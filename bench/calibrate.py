# SPDX-License-Identifier: Apache-2.0
"""calibrate.py [THREADS [ROUNDS]]: min/max calibration of 16 and 64 samples.

Against plain inference of the same samples by onnxruntime with the same threads, and
against its quantize_static with MinMax. The ResNet-50 of make_model.py; random images.
All take turns; the shortest time of each is printed, since what else the machine does
can only add to it.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import CACHE, MIB, QDQ, Measured, machine, peer, table
from make_model import cached

SAMPLES = (16, 64)


def images():
    path = CACHE / f"images-{max(SAMPLES)}.npz"
    if not path.exists():
        random = np.random.default_rng(1)
        part = path.with_suffix(".tmp.npz")
        np.savez(part, input=random.standard_normal((max(SAMPLES), 3, 224, 224),
                                                    np.float32))
        part.rename(path)
    return path


class Best:
    """The shortest times and the largest memories of the same work, done repeatedly."""

    def __init__(self):
        self.seconds, self.anonymous, self.rss = float("inf"), 0, 0

    def add(self, seconds, run):
        self.seconds = min(self.seconds, seconds)
        self.anonymous = max(self.anonymous, run.anonymous)
        self.rss = max(self.rss, run.rss)


class Work:
    """One number of samples, by plain inference, by us, by quantize_static."""

    def __init__(self, model, data, samples, threads):
        self.model, self.data = model, data
        self.samples, self.threads = samples, threads
        self.plain, self.stage, self.ours, self.static = (Best() for _ in range(4))

    def round(self, folder):
        spec, report = folder / "spec.json", folder / "report.json"
        spec.write_text(json.dumps({"evaluate": False,
                                    "calibration": {"method": "minmax",
                                                    "max_samples": self.samples}}))
        run = peer("infer", self.model, self.data, self.samples, self.threads)
        self.plain.add(run.inner, run)
        run = Measured([QDQ, "quantize", self.model, "--spec", spec, "--calibration",
                        self.data, "-o", folder / "ours.onnx", "--report", report,
                        "--threads", self.threads])
        self.ours.add(run.seconds, run)
        self.stage.add(json.loads(report.read_text())["timings"]["calibrate"], run)
        run = peer("static", self.model, self.data, self.samples,
                   folder / "theirs.onnx")
        self.static.add(run.inner, run)

    def rows(self):
        return [[self.samples, what, f"{best.seconds:.2f}",
                 f"{best.seconds / self.plain.seconds:.2f}",
                 f"{best.anonymous / MIB:.0f}", f"{best.rss / MIB:.0f}"]
                for what, best in (("plain inference", self.plain),
                                   ("qdq: calibration stage", self.stage),
                                   ("qdq: whole process", self.ours),
                                   ("onnxruntime: quantize_static", self.static))]


def main(threads=os.cpu_count(), rounds=3):
    works = [Work(cached(), images(), n, threads) for n in SAMPLES]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(int(rounds)):
            for work in works:
                work.round(Path(folder))
    machine()
    table(f"Min/max calibration, ResNet-50, {threads} threads, best of {rounds}",
          ["samples", "", "seconds", "of plain inference", "peak RssAnon, MiB",
           "peak RSS, MiB"], [row for work in works for row in work.rows()])
    few, many = works[0], works[-1]
    table(f"Budget (stated for histogram calibration of {many.samples} samples)",
          ["", "measured, min/max", "budget"],
          [["calibration stage of plain inference",
            f"{many.stage.seconds / many.plain.seconds:.2f} times", "at most 1.25"],
           ["faster than quantize_static",
            f"{many.static.seconds / many.ours.seconds:.1f} times", "at least 4"],
           [f"peak RssAnon, {many.samples} samples over {few.samples}",
            f"{many.ours.anonymous / few.ours.anonymous:.3f} times",
            "independent of samples"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
