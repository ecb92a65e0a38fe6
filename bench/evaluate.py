# SPDX-License-Identifier: Apache-2.0
"""evaluate.py [THREADS [ROUNDS]]: measures the comparison of float and quantized model on
16 and 64 samples, for outputs and layers.

It is compared with plain inference of the same two models and samples by onnxruntime on
the same number of threads. There the pairs are computed in floating point, as the engine
does. The ResNet-50 of make_model.py gets its ranges from the spec, so only the evaluation
runs it; the images are random. All take turns; the shortest time of each is printed,
because other work on the machine can only add to a time."""

import json
import os
import sys
import tempfile
from pathlib import Path

from calibrate import Best, images
from common import MIB, QDQ, Measured, machine, peer, table
from make_model import cached

SAMPLES = (16, 64)


def quantize(folder, data, samples, threads, ranges):
    """Runs the command and returns the run and its report's timings; the model is folder
    / "int8.onnx"."""
    spec, report = folder / "spec.json", folder / "report.json"
    spec.write_text(json.dumps({
        "evaluate": {"samples": samples} if ranges else False,
        "calibration": {"max_samples": 2, "ranges": ranges}}))
    run = Measured([QDQ, "quantize", cached(), "--spec", spec, "--calibration", data,
                    "-o", folder / "int8.onnx", "--report", report, "--threads",
                    threads])
    return run, json.loads(report.read_text())


class Work:
    """The same number of samples in plain inference of both models, and in qdq."""

    def __init__(self, data, samples, threads, ranges):
        self.data, self.samples, self.threads = data, samples, threads
        self.ranges = ranges
        self.float, self.int8, self.stage = Best(), Best(), Best()

    def round(self, folder):
        for best, model, pairs in ((self.float, cached(), "fused"),
                                   (self.int8, folder / "int8.onnx", "computed")):
            run = peer("infer", model, self.data, self.samples, self.threads, pairs)
            best.add(run.inner, run)
        run, report = quantize(folder, self.data, self.samples, self.threads, self.ranges)
        assert report["evaluation"]["samples"] == self.samples
        assert len(report["evaluation"]["layers"]) == 55
        self.stage.add(report["timings"]["evaluate"], run)

    def both(self):
        return self.float.seconds + self.int8.seconds

    def rows(self):
        return [[self.samples, what, f"{best.seconds:.2f}",
                 f"{best.seconds / self.both():.2f}", f"{best.anonymous / MIB:.0f}"]
                for what, best in (("plain inference, float", self.float),
                                   ("plain inference, quantized", self.int8),
                                   ("qdq: evaluation stage", self.stage))]


def each(few, work):
    """Returns the time of one more sample; the time to open the sessions cancels out."""
    def milliseconds(of, member):
        return 1000 * (getattr(of(work), member) - getattr(of(few), member)) / (
            work.samples - few.samples)

    rows = []
    for member, what in (("seconds", "time"), ("cpu", "of processors")):
        plain = (milliseconds(lambda w: w.float, member) +
                 milliseconds(lambda w: w.int8, member))
        ours = milliseconds(lambda w: w.stage, member)
        rows.append([what, f"{plain:.1f}", f"{ours:.1f}", f"{ours / plain:.3f}"])
    table("One more sample", ["", "both by plain inference, ms", "qdq, ms", "ratio"], rows)


def main(threads=os.cpu_count(), rounds=3):
    data = images(max(SAMPLES))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, report = quantize(folder, data, 0, threads, {})
        ranges = {t["name"]: [t["min"], t["max"]] for t in report["tensors"]}
        few, work = (Work(data, n, threads, ranges) for n in SAMPLES)
        for _ in range(int(rounds)):
            few.round(folder)
            work.round(folder)
    machine()
    table(f"Evaluation, ResNet-50, {threads} threads, best of {rounds}",
          ["samples", "", "seconds", "of both plain ones", "peak RssAnon, MiB"],
          [*few.rows(), *work.rows()])
    each(few, work)


if __name__ == "__main__":
    main(*sys.argv[1:])
