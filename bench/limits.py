# SPDX-License-Identifier: Apache-2.0
"""limits.py [RUNS [SIZE]]: the work of qdq beside the limits and the peers that it is held
against, in one run and one table: each figure is the median of RUNS runs (5), by turns. The
ratio is that of the medians, work by limit, and the goal is the ratio that is aimed at.

SIZE is that of the decoder (bench/make_decoder.py), by default 682m, whose files need 3.5 GB
in the cache folder. With that size, int4 of two more decoders shows that memory does not grow:
108 MB, and 28 GB, which need 6 GB. Where the package onnx-ir is installed, onnxruntime's own
quantizer of blocks stands beside it, as a whole process. A second table has the small jobs of
jobs.py. The machine has to be quiet; the load before and after is printed."""

import hashlib
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import insert
import jobs
import make_decoder
import make_model
from calibrate import images
from common import CACHE, MIB, QDQ, Measured, machine, peer, table

THREADS = os.cpu_count()
SAMPLES, FEW = 64, 16
INT4 = {"target": "onnxruntime", "recipe": "none", "evaluate": False,
        "activations": "none",
        "weights": {"dtype": "int4", "granularity": {"block": 32}}}
MSE = {**INT4, "weights": {"dtype": "int4", "method": "mse",
                           "granularity": {"block": 128}}}


class Bench:
    """Works that are measured by turns; a work is a function that returns its seconds and
    its bytes of anonymous memory. `against` names the work that it is held against."""

    def __init__(self, folder, runs):
        self.folder, self.runs, self.works, self.held = folder, runs, {}, {}

    def add(self, name, work, against=None, goal=None):
        self.works[name] = work
        self.held[name] = against, goal

    def row(self, name, measured):
        seconds, anonymous = measured[name]
        against, goal = self.held[name]
        ratio = f"{seconds / measured[against][0]:.2f}" if against in measured else ""
        return (name, f"{seconds:.3f}", f"{anonymous / MIB:.1f}",
                against if ratio else "", ratio, f"{goal}" if ratio and goal else "")

    def measure(self):
        taken = {name: [] for name in self.works}
        for _ in range(self.runs):
            for name, work in self.works.items():
                taken[name].append(work())
        return {name: (statistics.median(s for s, _ in rows), max(a for _, a in rows))
                for name, rows in taken.items()}

    def qdq(self, model, spec, threads, name):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec))

        def work():
            run = Measured([QDQ, "quantize", model, "--spec", path, "--threads", threads,
                            "-o", self.folder / "out.onnx", "--report",
                            self.folder / "report.json"])
            return run.seconds, run.anonymous
        return work

    def copy(self, source):
        """Copies into a new file that takes the place of the one before, as qdq does."""
        def work():
            run = Measured(["sh", "-c", f"cp {source} {self.folder}/copy.new && "
                                        f"sync {self.folder}/copy.new && "
                                        f"mv {self.folder}/copy.new {self.folder}/copy"])
            return run.seconds, run.anonymous
        return work


def read(path):
    """Reads a file from the page cache."""
    start, buffer = time.monotonic(), bytearray(1 << 22)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.monotonic() - start, 0


def digest(path):
    """Takes the SHA-256 of a file in the page cache."""
    start = time.monotonic()
    with open(path, "rb") as file:
        hashlib.file_digest(file, "sha256")
    return time.monotonic() - start, 0


def decoder(bench, size):
    model = make_decoder.make(CACHE / "decoder", size)
    data = model.with_suffix(".data")
    bench.add("read the weights", lambda: read(data))
    bench.add("SHA-256 of the weights", lambda: digest(data))
    theirs = f"int4, blocks of 32, onnxruntime, decoder {size}"
    if importlib.util.find_spec("onnx_ir"):
        def other():
            run = peer("blocks", model, 32, bench.folder / "theirs.onnx")
            return run.seconds, run.anonymous
        bench.add(theirs, other)
    copy = "cp of the decoder, synced"
    bench.add(copy, bench.copy(data))
    for threads in sorted({1, THREADS}):
        bench.add(f"int4, blocks of 32, {threads} threads",
                  bench.qdq(model, INT4, threads, "int4"), theirs, 0.25)
        bench.add(f"int4, blocks of 128, mse, {threads} threads",
                  bench.qdq(model, MSE, threads, "mse"))
        bench.add(f"int8, tensorrt, {threads} threads",
                  bench.qdq(model, {"evaluate": False, "activations": "none"}, threads,
                            "int8"), copy)


def bounded(bench):
    """Decoders of other sizes; the weights of the larger one share two ranges of its file."""
    for size, ranges in ("100m", 0), ("7b", 2):
        model = make_decoder.make(CACHE / "decoder", size, ranges)
        bench.add(f"int4, blocks of 32, decoder {size}, {THREADS} threads",
                  bench.qdq(model, INT4, THREADS, f"int4-{size}"))


def calibration(bench):
    """The calibration of ResNet-50 on one thread, against plain inference of the samples. The
    stage contains making the session, so the time of a few samples is taken from that of
    more."""
    model, data = make_model.cached(), images(SAMPLES + FEW)

    def plain():
        run = peer("infer", model, data, SAMPLES, 1)
        return run.inner, run.anonymous

    def stage(method, samples):
        spec, report = bench.folder / "method.json", bench.folder / "calibrated.json"
        spec.write_text(json.dumps({"evaluate": False, "calibration": {
            "method": method, "max_samples": samples}}))
        run = Measured([QDQ, "quantize", model, "--spec", spec, "--calibration", data,
                        "-o", bench.folder / "out.onnx", "--report", report,
                        "--threads", 1])
        return json.loads(report.read_text())["timings"]["calibrate"], run.anonymous

    def more(method):
        few, _ = stage(method, FEW)
        all_of_them, anonymous = stage(method, SAMPLES + FEW)
        return all_of_them - few, anonymous

    inference = f"plain inference of {SAMPLES} images, 1 thread"
    bench.add(inference, plain)
    for method, goal in ("minmax", 1.05), ("entropy", 1.10):
        bench.add(f"calibrate, {method}, {SAMPLES} images, 1 thread",
                  lambda method=method: more(method), inference, goal)


def resnet(bench):
    """ResNet-50 with given ranges, against a copy that is synced."""
    model = make_model.cached()
    given = insert.ranges_of(model)
    path = bench.folder / "ranges.json"
    path.write_text(json.dumps(given))
    spec = {"evaluate": False, "calibration": {"ranges": given}}
    copy = "cp of 102 MB, synced"
    bench.add(copy, bench.copy(model))
    bench.add("given ranges, 102 MB", bench.qdq(model, spec, THREADS, "given"), copy, 2.0)

    def other():
        run = peer("insert", model, path, bench.folder / "theirs.onnx")
        return run.inner, run.anonymous
    bench.add("given ranges, 102 MB, onnxruntime", other, "given ranges, 102 MB", 15)


def main(runs, size):
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        bench = Bench(Path(folder), runs)
        calibration(bench)
        resnet(bench)
        decoder(bench, size)
        if size == "682m":
            bounded(bench)
        rows = bench.measure()
    machine()
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    table(f"medians of {runs} runs; decoder {size}",
          ("work", "seconds", "peak RssAnon, MiB", "held against", "ratio", "goal"),
          [bench.row(name, rows) for name in rows])
    jobs.main(20)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5,
         sys.argv[2] if len(sys.argv) > 2 else "682m")
