# SPDX-License-Identifier: Apache-2.0
"""kernels.py [ROUNDS]: compares the target onnxruntime with quantize_static of
onnxruntime.

Both quantize the glyph models of tests/data to uint8 activations and int8 weights per
channel with the same 256 calibration images. Printed are: the integer kernels and the
conversions that are left in the optimized model; top-1 and SQNR over all logits on the
1,000 test images, all with the CPU provider; and the time of one image on one thread. For
the times, all models are sessions of one process that take turns in bursts. Other work
can only add to a time, so the shortest burst of each counts."""

import collections
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod,
                                      QuantFormat, QuantType, quantize_static)

from common import QDQ, ROOT, Measured, machine, table

DATA = ROOT / "tests" / "data"
CALIBRATION = DATA / "calib_256.npz"
INTEGER = ("QLinear", "QGemm", "MatMulInteger", "ConvInteger")
BURST = 5  # images


class Reader(CalibrationDataReader):
    def __init__(self, images):
        self.rows = iter([{"input": images[i:i + 1]} for i in range(len(images))])

    def get_next(self):
        return next(self.rows, None)


def session(model, folder=None):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if folder:
        options.optimized_model_filepath = str(folder / "optimized.onnx")
    return onnxruntime.InferenceSession(str(model), options,
                                        providers=["CPUExecutionProvider"])


def kernels(model, folder):
    session(model, folder)
    ops = collections.Counter(
        n.op_type for n in onnx.load(folder / "optimized.onnx").graph.node)
    return (sum(n for op, n in ops.items() if op.startswith(INTEGER)),
            ops["QuantizeLinear"] + ops["DequantizeLinear"])


def logits(one, images):
    return np.concatenate([one.run(None, {"input": images[i:i + 100]})[0]
                           for i in range(0, len(images), 100)]).astype(np.float64)


def shortest(sessions, image, rounds):
    """Returns the milliseconds of one image for each session."""
    best = [float("inf")] * len(sessions)
    for turn in range(rounds + 1):  # the first round warms up and does not count
        for i, one in enumerate(sessions):
            start = time.perf_counter()
            for _ in range(BURST):
                one.run(None, {"input": image})
            if turn:
                best[i] = min(best[i], time.perf_counter() - start)
    return [b / BURST * 1000 for b in best]


def theirs(model, out, method):
    quantize_static(model, out, Reader(np.load(CALIBRATION)["input"]),
                    quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=method)


def ours(model, out, method):
    spec = out.with_suffix(".json")
    spec.write_text(json.dumps({"target": "onnxruntime", "recipe": "none", "evaluate": False,
                                "calibration": {"method": method}}))
    Measured([QDQ, "quantize", model, "--spec", spec, "--calibration", CALIBRATION, "-o",
              out])


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    logging.disable(logging.WARNING)
    data = np.load(DATA / "test_1000.npz")
    images, labels = data["images"].astype(np.float32) / np.float32(255), data["labels"]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in sorted(DATA.glob("glyph_*.onnx")):
            made = {"float": model}
            for by, make, method in (
                    ("quantize_static, MinMax", theirs, CalibrationMethod.MinMax),
                    ("qdq minmax", ours, "minmax"), ("qdq mse", ours, "mse")):
                made[by] = folder / f"{len(made)}.onnx"
                make(model, made[by], method)
            sessions = [session(path) for path in made.values()]
            times = shortest(sessions, images[:1], rounds)
            real = logits(sessions[0], images)
            for by, one, ms in zip(made, sessions, times):
                got = logits(one, images)
                error = np.sum((real - got) ** 2)
                integer, conversions = kernels(made[by], folder)
                rows.append([
                    model.stem if by == "float" else "", by, integer, conversions,
                    f"{100 * np.mean(got.argmax(1) == labels):.1f}",
                    f"{10 * np.log10(np.sum(real ** 2) / error):.2f}" if error else "",
                    f"{ms:.3f}", f"{ms / times[1]:.3f}"])
    machine()
    table(f"Target onnxruntime, one thread, one image, shortest of {rounds} bursts",
          ["model", "by", "integer kernels", "conversions", "top-1, %", "SQNR, dB", "ms",
           "of quantize_static"], rows)


if __name__ == "__main__":
    main()
