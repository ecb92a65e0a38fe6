# SPDX-License-Identifier: Apache-2.0
"""three_targets.py FOLDER [--target TARGET] [--kept FOLDER] [NAME…]: quantizes the models that
wheel_inputs.py wrote into FOLDER by default for tensorrt, onnxruntime and openvino, and judges each
result on samples that the job did not see.

ONNX Runtime runs the results of the first two, those of tensorrt without its optimizations, because
then each operator computes what the standard says; OpenVINO runs the third. Both run from Python, on
one thread. A row has the SQNR of the worst output, that of the worst column (along the last axis of
an output, where the column has a thousandth of the mean power), the share of samples whose largest
score is the same, the latency by processor time as the ratio of the shortest turns, the verdict, what
the report says less what its runtime does with the same samples, the seconds of the processor, how
much of the stages' time was the advice, and the codes of the warnings.
Run it by a Python that has onnx, onnxruntime and openvino; QDQD_ENGINE_OPENVINO is set to that
OpenVINO's library. With --kept the results and reports stay in that folder."""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import openvino

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import real  # noqa: E402
from common import QDQ, Measured, machine, table  # noqa: E402
from real_inputs import dataset  # noqa: E402

TARGETS = ("tensorrt", "onnxruntime", "openvino")
PLAIN = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
SECONDS = 2  # of turns


class Onnxruntime:
    def __init__(self, path, plain=False):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if plain:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, feed):
        return self.session.run(None, feed)


class Openvino:
    core = openvino.Core()

    def __init__(self, path):
        self.request = self.core.compile_model(self.core.read_model(path), "CPU", PLAIN).create_infer_request()

    def run(self, feed):
        return [np.array(value) for value in self.request.infer(feed).values()]


def runtime_of(target):
    return {"tensorrt": lambda path: Onnxruntime(path, plain=True), "onnxruntime": Onnxruntime,
            "openvino": Openvino}[target]


def outputs_of(*both, feeds):
    """Returns the outputs of each model, all samples of one in an array, with zeros behind what is shorter than that
    of another sample or model."""
    made = [list(zip(*(one.run(feed) for feed in feeds))) for one in both]
    sizes = [np.max([row.shape for rows in same for row in rows], 0).astype(int) for same in zip(*made)]
    return [[np.stack([np.pad(row, [(0, n - k) for k, n in zip(row.shape, size)]) for row in rows])
             for rows, size in zip(outputs, sizes)] for outputs in made]


def worst_column(real_outputs, made):
    """Returns the SQNR of the worst column of an output."""
    worst = np.inf
    for f, q in zip(real_outputs, made):
        if f.dtype.kind != "f" or f.ndim < 2 or not 2 <= f.shape[-1] <= 4096:
            continue
        f, q = (x.astype(np.float64).reshape(-1, f.shape[-1]) for x in (f, q))
        signal, noise = np.sum(f ** 2, 0), np.sum((f - q) ** 2, 0)
        heard = (signal > 1e-3 * signal.mean()) & (noise > 0)
        if heard.any():
            worst = min(worst, float(np.min(10 * np.log10(signal[heard] / noise[heard]))))
    return worst


def agreement(real_outputs, made):
    """Returns the smallest share, over the outputs, of places where the largest score is the same, or of
    equal integers."""
    least = 1.0
    for f, q in zip(real_outputs, made):
        if f.dtype.kind == "f" and f.ndim > 1 and f.shape[-1] > 1:
            least = min(least, float(np.mean(f.argmax(-1) == q.argmax(-1))))
        elif f.dtype.kind != "f":
            least = min(least, float(np.mean(f == q)))
    return least


def latency(float_one, one, feeds):
    """Returns the ratio of the shortest processor times, by turns."""
    times, start, turn = [[], []], time.monotonic(), 0
    while turn < 8 or (time.monotonic() - start < SECONDS and turn < 200):
        for side in (turn % 2, 1 - turn % 2):
            begin = time.process_time()
            (float_one, one)[side].run(feeds[turn % 2])
            times[side].append(time.process_time() - begin)
        turn += 1
    return min(times[1][2:]) / min(times[0][2:])


def said_less_run(report, target, model, result, calibration):
    """Returns the SQNR that the report has for the result as it runs, less that of the runtime here."""
    evaluation = report["evaluation"] or {}
    outputs = (evaluation.get("deployed") or evaluation).get("outputs") or []
    told = [o["sqnr_db"] for o in outputs if o.get("sqnr_db") is not None and o["cosine"] is not None]
    if not told:
        return None
    compared = calibration[-evaluation["samples"]:]
    make = runtime_of(target)
    ran = real.sqnr_db(*outputs_of(make(model), make(result), feeds=compared))
    return min(told) - ran if np.isfinite(ran) else None


def measure(name, target, folder, work):
    model = folder / f"{name}.onnx"
    calibration, test = (real.feeds_of(folder / f"{name}_{part}_feeds.npz") for part in ("calib", "test"))
    data = work / f"{name}_calib.npz"
    np.savez(data, **dataset(calibration))
    out, told = work / f"{name}_{target}.onnx", work / f"{name}_{target}.json"
    run = Measured([QDQ, "quantize", model, "--target", target, "--calibration", data, "-o", out,
                    "--report", told])
    report = json.loads(told.read_text())
    make = runtime_of(target)
    float_one, one = make(model), make(out)
    reals, made = outputs_of(float_one, one, feeds=test)
    stages = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    said = said_less_run(report, target, model, out, calibration)
    # The time of the operators one by one says nothing of TensorRT.
    ratio = "" if target == "tensorrt" else f"{latency(float_one, one, test):.2f}"
    return [name, target, f"{real.sqnr_db(reals, made):.1f}", f"{worst_column(reals, made):.1f}",
            f"{agreement(reals, made):.3f}", ratio, report["summary"]["verdict"] or "none",
            "" if said is None else f"{said:+.2f}", f"{run.cpu:.1f}",
            f"{stages.get('advise', 0) / max(sum(stages.values()), 1e-9):.2f}",
            " ".join(sorted({w["code"] for w in report["warnings"]}))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_intermixed_args()
    [library] = (Path(openvino.__file__).parent / "libs").glob("libopenvino_c.so.*")
    os.environ["QDQD_ENGINE_OPENVINO"] = str(library)
    names = given.names or sorted(path.stem for path in given.folder.glob("*.onnx"))
    rows = []
    for name in names:
        for target in [given.target] if given.target else TARGETS:
            with tempfile.TemporaryDirectory() as work:
                if given.kept:
                    given.kept.mkdir(parents=True, exist_ok=True)
                try:
                    rows.append(measure(name, target, given.folder, given.kept or Path(work)))
                except (SystemExit, Exception) as error:
                    rows.append([name, target, "fails", *[""] * 7, " ".join(str(error).split())[-200:]])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    machine()
    table("Models from wheels, by default", ["model", "target", "SQNR, dB", "worst column", "same answer", "latency",
                                             "verdict", "said", "CPU s", "advice", "warnings"], rows)


if __name__ == "__main__":
    main()
