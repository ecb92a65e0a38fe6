# SPDX-License-Identifier: Apache-2.0
"""gpu.py [ROUNDS] [--parts] [--emulated MODEL DATA]: measures calibration and what-ifs on a
GPU, compared with plain inference there.

The model has ResNet-50's shape; the images are random, one or eight in a run.
QDQD_ENGINE_RUNTIME and the Python's onnxruntime must be the same build, for CUDA;
tools/check-gpu ensures that. The time of a sample is the difference between many and few
samples, so that loading a model is in no figure. All take turns, and the shortest of all
rounds is printed.

--parts shows what a calibration's time is spent on, without a profiler. It measures two
more kinds of calibration: one that observes a single tensor, so that it takes longer than
plain inference only by the reading of samples and by what the host does between two runs;
and one with a single thread, which reads no sample while the model runs. --emulated uses the module of tests/cuda/emulator and another model, to
try this script without a GPU; its figures mean nothing."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from calibrate import images
from common import QDQ, Measured, machine, peer, table
from make_model import cached

METHODS = ("minmax", "mse", "entropy")
MOMENTS = {"bias_correction": True}  # which collects them, and rounds nothing else
BATCHES = (1, 8)
FEW, MANY = 64, 1088
WHAT_IFS_FEW, WHAT_IFS_MANY = 16, 64
BUDGET = 1.15


class Bench:
    def __init__(self, folder, options):
        self.folder, self.emulated = folder, options.emulated
        self.few, self.many = (2, 4) if self.emulated else (FEW, MANY)
        self.fewer, self.more = (2, 4) if self.emulated else (WHAT_IFS_FEW, WHAT_IFS_MANY)
        self.batches = BATCHES[:1] if self.emulated else BATCHES
        self.model = options.emulated[0] if self.emulated else cached()
        self.data = options.emulated[1] if self.emulated else images(MANY)
        self.provider = f"{'CPU' if self.emulated else 'CUDA'}ExecutionProvider"
        self.device = None
        self.parts = options.parts
        self.ranges = None  # of all tensors but one
        self.best = {}  # seconds, by batch, kind of work and number of samples

    def quantize(self, spec, *more):
        spec_file, report = self.folder / "spec.json", self.folder / "report.json"
        spec_file.write_text(json.dumps({**spec, "device": "cuda", "evaluate": False}))
        Measured([QDQ, "quantize", self.model, "--spec", spec_file, "--calibration",
                  self.data, "-o", self.folder / "out.onnx", "--report", report, *more])
        report = json.loads(report.read_text())
        self.device = report["device"]
        if not self.device.startswith("cuda:"):
            sys.exit(f"it ran on {self.device}")
        for warning in report["warnings"]:
            if warning["code"] in ("device_fallback", "batch_halved"):
                sys.exit(f"not as it was asked for: {warning['detail']}")
        return report

    def plain(self, samples, batch):
        return peer("infer_on", self.provider, self.model, self.data, samples,
                    batch).inner

    def calibration(self, method, samples, batch, **more):
        report = self.quantize({"calibration": {"method": method, "batch": batch,
                                                "max_samples": samples}, **more})
        return report["timings"]["calibrate"]

    def of_one_tensor(self, samples, batch):
        spec = {"method": "minmax", "batch": batch}
        if not self.ranges:
            tensors = self.quantize({"calibration": {**spec, "max_samples": 8}})["tensors"]
            self.ranges = {t["name"]: [t["min"], t["max"]] for t in tensors[1:]}
        return self.quantize({"calibration": {**spec, "max_samples": samples,
                                              "ranges": self.ranges}})["timings"]["calibrate"]

    def by_one_thread(self, samples, batch):
        spec = {"calibration": {"method": "minmax", "batch": batch, "max_samples": samples}}
        return self.quantize(spec, "--threads", "1")["timings"]["calibrate"]

    def what_if(self, samples, batch):
        report = self.quantize({
            "calibration": {"method": "minmax", "batch": batch, "max_samples": 8},
            "search": {"min_sqnr_db": -100, "samples": samples}})
        if report["what_ifs"] != 2 * -(-samples // batch):
            sys.exit(f"{report['what_ifs']} what-ifs, not all on and all off")
        return report["timings"]["search"] / 2

    def works(self, batch):
        """Returns the kinds of work that are timed: (name, function of the samples, few,
        many)."""
        yield "plain inference", lambda n: self.plain(n, batch), self.few, self.many
        for method in METHODS:
            yield (f"calibration, {method}",
                   lambda n, m=method: self.calibration(m, n, batch),
                   self.few, self.many)
        yield ("minmax and moments",
               lambda n: self.calibration("minmax", n, batch, **MOMENTS),
               self.few, self.many)
        if self.parts:
            yield ("minmax, one tensor", lambda n: self.of_one_tensor(n, batch),
                   self.few, self.many)
            yield ("minmax, one thread", lambda n: self.by_one_thread(n, batch),
                   self.few, self.many)
        yield "a what-if", lambda n: self.what_if(n, batch), self.fewer, self.more

    def milliseconds(self, batch):
        """Does each kind of work once more. Returns the milliseconds of one sample, from the
        shortest times of all rounds so far."""
        works, best = list(self.works(batch)), self.best
        for name, work, few, many in works:
            for n in (few, many):
                key = batch, name, n
                best[key] = min(best.get(key, float("inf")), work(n))
        return {name: 1000 * (best[batch, name, many] - best[batch, name, few]) / (many - few)
                for name, _, few, many in works}


def show_parts(took_by_batch):
    """Prints what the parts of a calibration take, in milliseconds of one run."""
    rows = []
    for batch, took in took_by_batch.items():
        def of_run(name, less, batch=batch, took=took):
            return f"{batch * (took[name] - took[less]):.3f}"
        one, minmax = "minmax, one tensor", "calibration, minmax"
        rows.append([batch, of_run(one, "plain inference"), of_run(minmax, one),
                     *(of_run(f"calibration, {m}", minmax) for m in METHODS[1:]),
                     of_run("minmax and moments", minmax),
                     of_run("minmax, one thread", minmax)])
    table("Milliseconds of one run that are added by",
          ["samples a run", "samples and the loop", "extremes of all tensors",
           *(f"histograms ({m})" for m in METHODS[1:]), "moments",
           "reading between runs"], rows)


def show(bench, took_by_batch, rounds):
    """Prints the figures so far: a run that is ended early has shown what it measured.
    Returns the largest ratio of a calibration to plain inference."""
    rows, worst = [], 0
    for batch, took in took_by_batch.items():
        plain = took["plain inference"]
        if plain <= 0 and not bench.emulated:
            sys.exit("the machine is too busy: more samples took less time")
        for name, ms in took.items():
            ratio = ms / plain
            rows.append([batch, name, f"{ms:.3f}", f"{ratio:.2f}"])
            if name.startswith("calibration"):
                worst = max(worst, ratio)
    table(f"{bench.device}: one sample, best of {rounds}",
          ["samples a run", "", "ms", "of plain inference"], rows)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--emulated", nargs=2, metavar=("MODEL", "DATA"))
    options = parser.parse_args()
    machine()
    took_by_batch = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options)
        for done in range(1, options.rounds + 1):
            for batch in bench.batches:
                took_by_batch[batch] = bench.milliseconds(batch)
            worst = show(bench, took_by_batch, done)
    if options.parts:
        show_parts(took_by_batch)
    table("Budget", ["", "measured, times", "budget"],
          [["calibration of plain inference", f"{worst:.2f}", f"at most {BUDGET}"]])
    if worst > BUDGET and not bench.emulated:
        sys.exit("calibration takes longer than its budget")


if __name__ == "__main__":
    main()
