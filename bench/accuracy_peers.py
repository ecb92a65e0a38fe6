# SPDX-License-Identifier: Apache-2.0
"""accuracy_peers.py [--rounds N] [--aimet PYTHON [--iterations N] [--limit SECONDS]] [MODEL…]:
quantizing the networks of tests/data with accuracy methods, by qdq, by NNCF and by AIMET, in one run on one
machine: seconds, memory and SQNR.

Ours is `weights.rounding` `gptq`, with asymmetric uint8 activations for 8 bits and with int8
activations for 4 bits. NNCF is nncf.quantize() for 8 bits at the settings of NNCF: accurate bias
correction (fast_bias_correction=False), which is slower than its default, with its two presets
and, for the transformer, its model type. AIMET is AdaRound for 4 bits per channel with int8
activations, 10,000 iterations for each layer unless --iterations says another number; it takes
tens of minutes for a model, so it is measured only where --aimet names a Python that has it, and
with --limit it is ended after so many seconds, which then are only a lower bound.
All 256 images are for calibration. Each starts a process for each model and counts the time
within it, without imports. A plain session of onnxruntime judges all of NNCF and of ours for 8
bits on 1,000 other images; the 4-bit results are judged without integer kernels.
The PYTHON of this script has `nncf==3.4.0 onnx onnxruntime==1.31.1 numpy`, that of AIMET has
`aimet-onnx==2.42.0 onnxruntime==1.23.2`."""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import MIB, QDQ, ROOT, Measured, best, machine, table

DATA = ROOT / "tests" / "data"
MODELS = ("resnet", "vit", "mobilenet", "se")
OURS = {8: {"weights": {"rounding": "gptq"},
            "activations": {"dtype": "uint8", "symmetric": False}},
        4: {"weights": {"rounding": "gptq", "dtype": "int4"}}}
NNCF = {"nncf": {}, "nncf, mixed": {"preset": "mixed"},
        "nncf, transformer": {"model_type": "transformer"}}


def nncf_quantize(model, out, preset=None, model_type=None):
    """Runs in a process of its own, which must not take openvino.py of this folder for the
    package."""
    sys.path.remove(str(Path(__file__).parent))
    import nncf
    import onnx
    images = np.load(DATA / "calib_256.npz")["input"]
    start = time.monotonic()
    feeds = nncf.Dataset([{"input": images[i:i + 1]} for i in range(len(images))])
    onnx.save(nncf.quantize(
        onnx.load(model), feeds, subset_size=len(images), fast_bias_correction=False,
        preset=preset and nncf.QuantizationPreset(preset),
        model_type=model_type and nncf.ModelType(model_type)), out)
    print(json.dumps(time.monotonic() - start))


def end_unfinished(*_):
    print("null", flush=True)
    os._exit(0)


def aimet_quantize(model, out, iterations, limit):
    """Runs in a process of its own, by the Python that has AIMET. Prints null instead of its
    seconds when they reach the limit; 0: there is none."""
    sys.path.remove(str(Path(__file__).parent))
    import aimet_onnx
    import onnx
    images = np.load(DATA / "calib_256.npz")["input"]
    signal.signal(signal.SIGALRM, end_unfinished)
    signal.alarm(int(limit))
    start = time.monotonic()
    feeds = [{"input": images[i:i + 32]} for i in range(0, len(images), 32)]
    sim = aimet_onnx.QuantizationSimModel(onnx.load(model), param_type="int4",
                                          activation_type="int8",
                                          providers=["CPUExecutionProvider"])
    aimet_onnx.apply_adaround(sim, feeds, num_iterations=int(iterations))
    sim.compute_encodings(feeds)
    onnx.save(sim.to_onnx_qdq(), out)
    print(json.dumps(time.monotonic() - start))


def logits(model, images, integers):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    if not integers:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        str(model), options, providers=["CPUExecutionProvider"]).run(
            None, {"input": images})[0].astype(np.float64)


def sqnr_db(model, made, integers):
    images = np.load(DATA / "test_1000.npz")["images"].astype(np.float32) / 255
    want, got = logits(model, images, True), logits(made, images, integers)
    return 10 * np.log10((want ** 2).sum() / ((want - got) ** 2).sum())


def ours(model, out, bits):
    spec = out.with_suffix(".json")
    spec.write_text(json.dumps({"opset": "auto", "evaluate": False, **OURS[bits]}))
    run = Measured([QDQ, "quantize", model, "--spec", spec, "--calibration",
                    DATA / "calib_256.npz", "-o", out])
    run.inner, run.is_unfinished = run.seconds, False
    return run


def theirs(python, *arguments):
    run = Measured([python, "-W", "ignore", __file__, *arguments])
    run.inner = json.loads(run.output.strip().splitlines()[-1])
    run.is_unfinished = run.inner is None
    return run


def runs_of(name, folder, given):
    """Yields the bits, the title, a call that quantizes, and where it writes its result."""
    model = DATA / f"glyph_{name}.onnx"
    eight, four = folder / "ours_8.onnx", folder / "ours_4.onnx"
    yield 8, "ours, gptq", lambda: ours(model, eight, 8), eight
    for title, settings in NNCF.items():
        if "transformer" in title and name != "vit":
            continue
        out = folder / f"{title.replace(', ', '_')}.onnx"
        yield (8, title, lambda out=out, settings=settings: theirs(
            sys.executable, "--nncf", json.dumps(settings), model, out), out)
    yield 4, "ours, gptq", lambda: ours(model, four, 4), four
    if given.aimet:
        out = folder / "aimet.onnx"
        yield (4, "aimet, AdaRound", lambda: theirs(
            given.aimet, "--aimet-run", given.iterations, given.limit, model, out), out)


def rows_of(name, given):
    model = DATA / f"glyph_{name}.onnx"
    fast = {}
    with tempfile.TemporaryDirectory() as folder:
        all_runs = list(runs_of(name, Path(folder), given))
        done = [[] for _ in all_runs]
        for _ in range(given.rounds):
            for runs, (_, title, call, _) in zip(done, all_runs):
                try:
                    runs.append(call())
                except (SystemExit, Exception) as error:  # of a peer: ours must not fail
                    if title.startswith("ours"):
                        raise
                    print(f"{name}, {title}: {error}"[-500:], file=sys.stderr)
        for runs, (bits, title, _, out) in zip(done, all_runs):
            if not runs:
                yield [name, bits, title, "fails", "", "", ""]
                continue
            memory = f"{best(runs, 'anonymous') / MIB:.0f}"
            if any(run.is_unfinished for run in runs):
                seconds = float(given.limit)
                yield [name, bits, title, f"over {seconds:.0f}",
                       f"over {seconds / fast[bits]:.1f}", memory, ""]
                continue
            seconds = best(runs, "inner")
            fast.setdefault(bits, seconds)
            yield [name, bits, title, f"{seconds:.1f}", f"{seconds / fast[bits]:.1f}",
                   memory, f"{sqnr_db(model, out, bits == 8):.1f}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--aimet")
    parser.add_argument("--iterations", default="10000")
    parser.add_argument("--limit", default="0")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    given = parser.parse_args()
    rows = [row for name in given.models or MODELS for row in rows_of(name, given)]
    machine()
    table("Quantizing for accuracy, 256 images",
          ["model", "bits", "", "seconds", "ours = 1", "peak RssAnon, MiB", "SQNR, dB"],
          rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--nncf"]:
        nncf_quantize(*sys.argv[3:], **json.loads(sys.argv[2]))
    elif sys.argv[1:2] == ["--aimet-run"]:
        aimet_quantize(*sys.argv[4:], *sys.argv[2:4])
    else:
        main()
