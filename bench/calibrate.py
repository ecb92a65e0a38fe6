# SPDX-License-Identifier: Apache-2.0
"""calibrate.py [THREADS [ROUNDS]]: measures calibration of 16 and 64 samples with minmax,
mse and entropy, and its memory for 256 samples.

It is compared with plain inference of the same samples by onnxruntime on the same number
of threads, and with quantize_static and Entropy. The latter keeps all activations, so it
is not measured with 256 samples. All processes get as many processors as there are
threads, because quantize_static uses all that it finds. The model is the ResNet-50 of
make_model.py, with random images. All take turns; the shortest time of each is printed,
because other work on the machine can only add to a time."""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import CACHE, MIB, QDQ, Measured, machine, peer, table
from make_model import cached

SAMPLES = (16, 64)
MANY = 256
METHODS = ("minmax", "mse", "entropy")


def images(n):
    path = CACHE / f"images-{n}.npz"
    if not path.exists():
        random = np.random.default_rng(1)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".tmp.npz")
        np.savez(part, input=random.standard_normal((n, 3, 224, 224), np.float32))
        part.rename(path)
    return path


class Best:
    """The shortest times and the largest memories of repeated runs of the same work."""

    def __init__(self):
        self.seconds = self.cpu = float("inf")
        self.anonymous = self.rss = 0

    def add(self, seconds, run):
        self.seconds = min(self.seconds, seconds)
        self.cpu = min(self.cpu, run.cpu)
        self.anonymous = max(self.anonymous, run.anonymous)
        self.rss = max(self.rss, run.rss)


class Work:
    """The same number of samples in plain inference, in qdq and in quantize_static."""

    def __init__(self, model, data, samples, threads):
        self.model, self.data = model, data
        self.samples, self.threads = samples, threads
        self.plain, self.static = Best(), Best()
        self.stages = {method: Best() for method in METHODS}
        self.whole = {method: Best() for method in METHODS}

    def ours(self, folder, method):
        spec, report = folder / "spec.json", folder / "report.json"
        spec.write_text(json.dumps({"evaluate": False,
                                    "calibration": {"method": method,
                                                    "max_samples": self.samples}}))
        run = Measured([QDQ, "quantize", self.model, "--spec", spec, "--calibration",
                        self.data, "-o", folder / "ours.onnx", "--report", report,
                        "--threads", self.threads])
        self.whole[method].add(run.seconds, run)
        self.stages[method].add(json.loads(report.read_text())["timings"]["calibrate"],
                                run)

    def round(self, folder):
        run = peer("infer", self.model, self.data, self.samples, self.threads)
        self.plain.add(run.inner, run)
        for method in METHODS:
            self.ours(folder, method)
        run = peer("static", self.model, self.data, self.samples,
                   folder / "theirs.onnx", "same", "Entropy")
        self.static.add(run.inner, run)

    def rows(self):
        ours = [(f"qdq {method}: {what}", bests[method]) for method in METHODS
                for what, bests in (("calibration stage", self.stages),
                                    ("whole process", self.whole))]
        return [[self.samples, what, f"{best.seconds:.2f}",
                 f"{best.seconds / self.plain.seconds:.2f}",
                 f"{best.anonymous / MIB:.0f}", f"{best.rss / MIB:.0f}"]
                for what, best in (("plain inference", self.plain), *ours,
                                   ("onnxruntime: quantize_static", self.static))]


def each(few, work):
    """Returns the processor time of one more sample, which other work hardly changes."""
    def milliseconds(bests):
        less, more = bests
        return 1000 * (more.cpu - less.cpu) / (work.samples - few.samples)

    plain = milliseconds((few.plain, work.plain))
    rows = [("plain inference", plain)]
    rows += [(f"qdq {method}", milliseconds((few.whole[method], work.whole[method])))
             for method in METHODS]
    rows.append(("onnxruntime: quantize_static, Entropy",
                 milliseconds((few.static, work.static))))
    table("CPU time of one more sample", ["", "ms", "of plain inference"],
          [[what, f"{ms:.1f}", f"{ms / plain:.2f}"] for what, ms in rows])


def budget(few, work, most):
    def ratios(bests, over):
        return ", ".join(f"{over(bests[method]):.2f} ({method})" for method in METHODS)

    table(f"Budget ({work.samples} samples)", ["", "measured, times", "budget"],
          [["calibration stage of plain inference",
            ratios(work.stages, lambda best: best.seconds / work.plain.seconds),
            "at most 1.25"],
           ["whole process faster than quantize_static with Entropy",
            ratios(work.whole, lambda best: work.static.seconds / best.seconds),
            "at least 4"],
           [f"peak RssAnon, {most.samples} samples over {few.samples}",
            f"{most.whole['entropy'].anonymous / few.whole['entropy'].anonymous:.3f} "
            "(entropy)", "at most 1.05"]])


def main(threads=os.cpu_count(), rounds=3):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    few, work = (Work(cached(), images(max(SAMPLES)), n, threads) for n in SAMPLES)
    most = Work(cached(), images(MANY), MANY, threads)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(int(rounds)):
            few.round(Path(folder))
            work.round(Path(folder))
        most.ours(Path(folder), "entropy")
    machine()
    table(f"Calibration, ResNet-50, {threads} threads, best of {rounds}",
          ["samples", "", "seconds", "of plain inference", "peak RssAnon, MiB",
           "peak RSS, MiB"], [*few.rows(), *work.rows()])
    each(few, work)
    budget(few, work, most)


if __name__ == "__main__":
    main(*sys.argv[1:])
