# SPDX-License-Identifier: Apache-2.0
"""decoder_rounding.py [SAMPLES [THREADS [SIZE…]]]: compensated rounding of whole decoders
(make_decoder.py) to int4 in blocks of 32, by SAMPLES of 512 tokens (8).

Printed are the layers that were not rounded so, the processor seconds until second moments are
kept and behind that, the peak of private memory, and the later seconds for a multiply-add of the
rounding: rows of K elements take K * K for each output, or the sum of squares of the blocks that
a moment of a long row is cut into. SIZE is 682m and 1b unless it is given; files of 1b need 7 GB
in the cache folder."""

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import make_decoder
from common import CACHE, MIB, QDQ, Measured, machine, table

WHOLE, BLOCK = 4608, 2304  # of moments: engine/numbers/arithmetic/moment.h
SPEC = {"target": "onnxruntime", "recipe": "none", "evaluate": False, "activations": "none",
        "weights": {"dtype": "int4", "granularity": {"block": 32}, "rounding": "gptq"}}


def products(k):
    n = 1 if k <= WHOLE else -(-k // BLOCK)
    return k * k / n


def multiply_adds(size):
    hidden, wide, layers, tokens = make_decoder.SIZES[size]
    layer = products(hidden) * (4 * hidden + 2 * wide) + products(wide) * hidden
    return layers * layer + products(hidden) * tokens


def write_data(path, hidden, samples):
    """Writes correlated numbers, as hidden states of a language model are."""
    random = np.random.default_rng(1)
    mix = random.standard_normal((64, hidden), np.float32)
    x = random.standard_normal((samples, 512, 64), np.float32) @ mix / 8
    np.savez(path, embedded=x + random.standard_normal(x.shape, np.float32) / 2)


def processor_of_children():
    """Returns the processor seconds of the processes that run for this one."""
    seconds = 0
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def wait_for_moments(folder, result):
    """Notes the processor seconds when moments begin to be written."""
    while not any(path.stat().st_size for path in folder.glob("kept*")):
        time.sleep(0.05)
    result["seconds"] = processor_of_children()


def quantize(folder, model, threads):
    report, moments = folder / "report.json", {}
    watcher = threading.Thread(target=wait_for_moments, args=(folder, moments), daemon=True)
    watcher.start()
    run = Measured([QDQ, "quantize", model, "--spec", folder / "spec.json", "--calibration",
                    folder / "data.npz", "--observations", folder / "kept", "-o",
                    folder / "out.onnx", "--report", report, "--threads", threads])
    watcher.join()
    return run, moments["seconds"], json.loads(report.read_text())


def measure(size, samples, threads):
    model = make_decoder.make(CACHE / "decoder", size)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        folder = Path(folder)
        (folder / "spec.json").write_text(json.dumps(SPEC))
        write_data(folder / "data.npz", make_decoder.SIZES[size][0], samples)
        run, before, report = quantize(folder, model, threads)
    nearest = [warning for warning in report["warnings"]
               if warning["code"] == "rounded_to_nearest"]
    return [size, len(nearest), f"{before:.0f}", f"{run.cpu - before:.0f}",
            f"{run.anonymous / MIB:.0f}",
            f"{1e9 * (run.cpu - before) / multiply_adds(size):.3f}"]


def main(samples=8, threads=1, *sizes):
    rows = [measure(size, int(samples), threads) for size in sizes or ("682m", "1b")]
    machine()
    table(f"rounding of decoders, {samples} samples, {threads} threads",
          ["decoder", "rounded to nearest", "processor s, moments",
           "processor s, rounding", "peak RssAnon, MiB", "ns for a multiply-add"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
