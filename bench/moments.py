# SPDX-License-Identifier: Apache-2.0
"""moments.py [THREADS [ROUNDS [SAMPLES]]]: measures calibration that collects the second
moments of all layers' inputs (`weights.rounding`), beside plain inference of the same
samples by onnxruntime on as many threads, and calibration without moments.

The model is the ResNet-50 of make_model.py, with random images. All take turns; the
shortest time of each is printed. The last row is a second job, which has the kept
observations and runs nothing. The bound is 2.5 times plain inference."""

import json
import os
import sys
import tempfile
from pathlib import Path

from calibrate import Best, images
from common import MIB, QDQ, Measured, machine, peer, table
from make_model import cached

ROWS = (("without moments", {}), ("with moments", {"weights": {"rounding": "auto"}}))


def quantize(folder, spec, samples, threads, *more):
    file, report = folder / "spec.json", folder / "report.json"
    file.write_text(json.dumps({"evaluate": False, **spec}))
    run = Measured([QDQ, "quantize", cached(), "--spec", file, "--calibration",
                    images(samples), "-o", folder / "out.onnx", "--report", report,
                    "--threads", threads, *more])
    return json.loads(report.read_text())["timings"]["calibrate"], run


def main(threads=os.cpu_count(), rounds=3, samples=64):
    samples = int(samples)
    plain, again = Best(), Best()
    ours = [Best() for _ in ROWS]
    os.sched_setaffinity(0, range(int(threads)))
    for _ in range(int(rounds)):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            run = peer("infer", cached(), images(samples), samples, threads)
            plain.add(run.inner, run)
            for best, (_, spec) in zip(ours, ROWS):
                best.add(*quantize(folder, spec, samples, threads))
            kept = ["--observations", folder / "kept"]
            quantize(folder, ROWS[1][1], samples, threads, *kept)
            again.add(*quantize(folder, ROWS[1][1], samples, threads, *kept))
            size = (folder / "kept").stat().st_size
    machine()
    rows = [("plain inference", plain), *((name, b) for (name, _), b in zip(ROWS, ours)),
            (f"a second job ({size / MIB:.0f} MiB are kept)", again)]
    table(f"Calibration of ResNet-50 with {samples} samples, {threads} threads, best of "
          f"{rounds}", ["", "seconds", "of plain inference", "peak RssAnon, MiB"],
          [[name, f"{b.seconds:.2f}", f"{b.seconds / plain.seconds:.2f}",
            f"{b.anonymous / MIB:.0f}"] for name, b in rows])
    sys.exit(ours[1].seconds > 2.5 * plain.seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
