# SPDX-License-Identifier: Apache-2.0
"""real.py [--folder FOLDER] [--both] [--integers] [--dynamic] [--more] [NAME…]: quantizes models
of other people for ONNX Runtime by qdq's default, and by quantize_static and quantize_dynamic of
onnxruntime.

A plain session of onnxruntime judges every result on samples that no tool has seen: the
SQNR of the worst output, the share of right answers in the model's own task, and the
latency of one sample on one thread, the shortest of 100 turns, as a ratio to the float
model's. The column "said" is the SQNR that qdq reports for the samples of the calibration,
less that of a plain session on the same samples. "integer" is the share of the weights of
products (Conv, MatMul, Gemm) that are multiplied in integers, in that branch of an If that
has the most of them. Size is that of the file, as a share of the float model's. Seconds and
memory (RssAnon) are those of the whole process; the seconds of onnxruntime are without its
imports. quantize_static makes QDQ with uint8 activations and int8 weights per channel (per
tensor where it cannot), behind quant_pre_process.

--both does all of it twice: as this processor is, and as an older one without VNNI and AVX-512,
which a processor of Intel can show to processes (tests/e2e/processors.py). --integers adds a row:
qdq with every Conv, Gemm and MatMul in integers, which shows whether the runtime gains by more of
them than the default has. --dynamic adds one with `"activations": "dynamic"`. --more takes further
models of the same packages, which have no task here and are compared with qdq's results alone.

Models and inputs come from real_inputs.py, or from a folder with NAME.onnx,
NAME_calib_feeds.npz and NAME_test_feeds.npz, whose keys are `000000|input`, and
NAME_labels.npz."""

import argparse
import collections
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import MIB, QDQ, ROOT, Measured, machine, table
from real_inputs import INPUTS, MODELS, MORE, PACKAGES, dataset, f1

PEERS = {"quantize_static, MinMax": "MinMax", "quantize_static, Percentile": "Percentile",
         "quantize_dynamic": "dynamic"}
TURNS = 100
PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
INTEGER_PRODUCTS = ("QLinearConv", "ConvInteger", "QLinearMatMul", "MatMulInteger", "QGemm",
                    "MatMulIntegerToFloat", "DynamicQuantizeMatMul")
INTEGERS = {"mode": "partial", "recipe": "none", "rules": {"C16": True, "C17": True},
            "layers": [{"class": one} for one in ("Conv2D", "Conv", "Dense", "MatMul")]}
FUSED_PRODUCTS = ("FusedConv", "FusedMatMul", "FusedGemm")


def session(model, optimized=None):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if optimized:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(str(model), options,
                                        providers=["CPUExecutionProvider"])


# --- inputs ----------------------------------------------------------------------------

def feeds_of(path):
    rows = collections.defaultdict(dict)
    with np.load(path) as arrays:
        for key in arrays.files:
            sample, name = key.split("|", 1)
            rows[sample][name] = arrays[key]
    return [rows[sample] for sample in sorted(rows)]


def task_of(name, path):
    """Returns the task of a model whose labels are in a file."""
    with np.load(path) as arrays:
        labels = arrays[arrays.files[0]]
    if name == "basic_pitch":
        return lambda outputs: f1(outputs, labels)
    if name == "silero_vad":
        return lambda outputs: np.mean((outputs[0].reshape(-1) > 0.5) == labels)
    return lambda outputs: np.mean(
        outputs[0].reshape(len(labels), -1).argmax(1) == labels)


def load(name, folder):
    """Returns the model's path, its samples for calibration and test, and its task."""
    if not folder:
        model = PACKAGES / {**MODELS, **MORE}[name]
        return model, *INPUTS[name](session(model))
    return (folder / f"{name}.onnx", feeds_of(folder / f"{name}_calib_feeds.npz"),
            feeds_of(folder / f"{name}_test_feeds.npz"),
            task_of(name, folder / f"{name}_labels.npz"))


# --- the judge -------------------------------------------------------------------------

def outputs_of(one, feeds):
    """Returns each output of all samples, stacked."""
    return [np.stack(rows) for rows in zip(*(one.run(None, feed) for feed in feeds))]


def sqnr_db(real, made):
    """Returns the SQNR of the worst floating output; -inf: one holds a NaN or an infinity."""
    worst = np.inf
    for f, q in zip(real, made):
        if f.dtype.kind != "f":
            continue
        f, q = f.astype(np.float64), q.astype(np.float64)
        noise = np.sum((f - q) ** 2)
        if not np.isfinite(noise):  # a NaN of the result
            return -np.inf
        if noise:
            worst = min(worst, 10 * np.log10(np.sum(f ** 2) / noise))
    return float(worst)


def latency(float_one, one, feed):
    """Returns the ratio of the shortest times, by turns. Other work can only add to a time."""
    times = [[], []]
    for turn in range(TURNS + 3):
        for side in (turn % 2, 1 - turn % 2):
            start = time.perf_counter()
            (float_one, one)[side].run(None, feed)
            if turn >= 3:
                times[side].append(time.perf_counter() - start)
    return min(times[1]) / min(times[0])


class Judge:
    def __init__(self, model, feeds, task):
        self.model, self.feeds, self.task = model, feeds, task
        self.float = session(model)
        self.real = outputs_of(self.float, feeds)
        self.score = float(task(self.real)) if task else None

    def figures(self, path):
        """Returns SQNR, task, latency and size of a result."""
        one = session(path)
        made = outputs_of(one, self.feeds)
        return {"sqnr_db": sqnr_db(self.real, made), "task": float(self.task(made)) if self.task else None,
                "latency": latency(self.float, one, self.feeds[0]),
                "size": Path(path).stat().st_size / Path(self.model).stat().st_size}


# --- the share of integers -------------------------------------------------------------

def products(graph):
    """Returns the nodes that multiply, those of nested graphs included. An If counts by the
    branch with the most integers: the samples of a model reach one of the two."""
    found = []
    for node in graph.node:
        if node.op_type in PRODUCTS + INTEGER_PRODUCTS + FUSED_PRODUCTS:
            found.append(node)
        nested = [products(one.g) for one in node.attribute if one.HasField("g")]
        if node.op_type == "If":
            nested = [max(nested, key=lambda nodes: sum(
                one.op_type in INTEGER_PRODUCTS for one in nodes))]
        for nodes in nested:
            found += nodes
    return found


def weights_of(graph):
    found = {t.name: t for t in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found.update(weights_of(attribute.g))
            elif node.op_type == "Constant" and attribute.HasField("t"):
                found[node.output[0]] = attribute.t
    return found


def integer_share(path, folder):
    """Returns the share of the elements of weights that products in integers read in the
    optimized model. Each counts once, however often it is multiplied."""
    import onnx
    optimized = folder / "optimized.onnx"
    session(path, optimized)
    graph = onnx.load(optimized).graph
    weights, elements = weights_of(graph), [0, 0]
    for node in products(graph):
        sizes = [int(np.prod(weights[i].dims)) for i in node.input if i in weights]
        elements[node.op_type in INTEGER_PRODUCTS] += max(sizes, default=0)
    return elements[1] / (sum(elements) or 1)


# --- the work --------------------------------------------------------------------------

def ours(model, calibration, folder, spec):
    """Quantizes by qdq; returns the result, the process and the report."""
    np.savez(folder / "calib.npz", **dataset(calibration))
    (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", **spec}))
    run = Measured([QDQ, "quantize", model, "--spec", folder / "spec.json", "--calibration",
                    folder / "calib.npz", "-o", folder / "ours.onnx", "--report",
                    folder / "report.json"])
    return folder / "ours.onnx", run, json.loads((folder / "report.json").read_text())


def said(report, model, result, calibration):
    """Returns the SQNR that the report has, less that of a plain session."""
    deployed = report["evaluation"]["deployed"]
    if not deployed:
        return None
    # those that the recipe kept aside, or all
    compared = calibration[-report["evaluation"]["samples"]:]
    told = min((o["sqnr_db"] for o in deployed["outputs"] if o["sqnr_db"] is not None),
               default=np.inf)
    ran = sqnr_db(outputs_of(session(model), compared),
                  outputs_of(session(result), compared))
    return told - ran if np.isfinite(told) else 0.0


def peer(model, method, data, out):
    """Quantizes by onnxruntime; runs in a process of its own."""
    import onnx
    import onnx.version_converter
    from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod,
                                          QuantFormat, QuantType, quantize_dynamic,
                                          quantize_static)
    from onnxruntime.quantization.shape_inference import quant_pre_process
    logging.disable(logging.WARNING)

    class Reader(CalibrationDataReader):
        def __init__(self):
            with np.load(data) as arrays:
                self.arrays = {name: arrays[name] for name in arrays.files}
            self.at = -1

        def get_next(self):
            self.at += 1
            if self.at == len(next(iter(self.arrays.values()))):
                return None
            return {name: np.asarray(rows[self.at]) for name, rows in self.arrays.items()}

    start = time.monotonic()
    model = str(Path(model).resolve())
    prepared = str(Path(out).with_suffix(".pre.onnx"))
    graph = onnx.load(model)
    if graph.opset_import[0].version < 13:  # Scales per channel begin there.
        model = str(Path(out).with_suffix(".raised.onnx"))
        onnx.save(onnx.version_converter.convert_version(graph, 13), model)
    os.chdir(Path(out).parent)  # quant_pre_process leaves files where it runs.
    try:
        quant_pre_process(model, prepared)
    except Exception:  # Some models are more than the inference of symbolic shapes can do.
        quant_pre_process(model, prepared, skip_symbolic_shape=True)
    if method == "dynamic":
        quantize_dynamic(prepared, out, per_channel=True, weight_type=QuantType.QInt8)
    else:
        options = {"quant_format": QuantFormat.QDQ, "activation_type": QuantType.QUInt8,
                   "weight_type": QuantType.QInt8,
                   "calibrate_method": CalibrationMethod[method]}
        try:
            quantize_static(prepared, out, Reader(), per_channel=True, **options)
        except ValueError:  # It has scales per channel for some models only.
            quantize_static(prepared, out, Reader(), **options)
    print(json.dumps({"seconds": time.monotonic() - start}))


def shown_task(score):
    return "" if score is None else f"{score:.3f}"


def shown(by, row, share, seconds, memory, told=None):
    return ["", by, f"{row['sqnr_db']:.1f}", "" if told is None else f"{told:+.2f}",
            shown_task(row["task"]), f"{row['latency']:.2f}", f"{row['size']:.2f}",
            f"{share:.2f}", f"{seconds:.1f}", f"{memory / MIB:.0f}"]


def peer_row(by, method, judge, model, work):
    out = work / "peer.onnx"
    out.unlink(missing_ok=True)
    try:
        run = Measured([sys.executable, "-W", "ignore", __file__, "--peer", model, method,
                        work / "calib.npz", out])
        seconds = json.loads(run.output.strip().splitlines()[-1])["seconds"]
        return shown(by, judge.figures(out), integer_share(out, work), seconds,
                     run.anonymous)
    except (SystemExit, Exception) as error:
        why = str(error).strip().splitlines()[-1]
        print(f"{by} fails: {why}", file=sys.stderr)
        return ["", by, "fails", *[""] * 7]


def measure(name, given, work):
    """Returns the rows of a model, and the class of processors that it was made for."""
    model, calibration, test, task = load(name, given.folder)
    judge = Judge(model, test, task)
    rows = [[name, "float", "", "", shown_task(judge.score), "1", "1", "", "", ""]]
    specs = {"qdq": {}, **({"qdq, all products": INTEGERS} if given.integers else {}),
             **({"qdq, dynamic": {"activations": "dynamic"}} if given.dynamic else {})}
    for by, spec in specs.items():
        result, run, report = ours(model, calibration, work, spec)
        rows.append(shown(f"{by} ({report['summary']['verdict']})", judge.figures(result),
                          integer_share(result, work), run.seconds, run.anonymous,
                          said(report, model, result, calibration)))
    peers = {} if given.more else PEERS
    return rows + [peer_row(by, method, judge, model, work)
                   for by, method in peers.items()], report["host"]["name"]


def measure_all(given):
    rows = []
    for name in given.names or (MORE if given.more else MODELS):
        with tempfile.TemporaryDirectory() as work:
            made, host = measure(name, given, Path(work))
            rows += made
    machine()
    table(f"Models of other people, target onnxruntime, by default, host {host}",
          ["model", "by", "SQNR, dB", "said, dB", "task", "latency", "size", "integer",
           "seconds", "MiB"], rows)


def repeat_on_older_processor():
    """Runs this program again without --both, on a processor without VNNI."""
    arguments = [one for one in sys.argv[1:] if one != "--both"]
    sys.stdout.flush()
    return subprocess.run([sys.executable, ROOT / "tests" / "e2e" / "processors.py", "avx2",
                           sys.executable, __file__, *arguments]).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    for option in ("--both", "--integers", "--dynamic", "--more"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    measure_all(given)
    if given.both:
        sys.exit(repeat_on_older_processor())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:])
    else:
        main()
