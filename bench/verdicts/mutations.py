#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutations of good calibration data against the true accuracy of the result: of the results that
lose more than five points of top-1 on the test images, how many are called good by the calibration
data alone, and how many by labels (`task` with accept.max_task_drop)?

    bench/verdicts/mutations.py [--runs 200] [--target tensorrt] [--first 0]
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
QDQ = ROOT / "_install" / "bin" / "qdq"
MODELS = ["glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit"]
LOST = 0.05  # points of top-1 / 100


def scale(x, random):
    factor = float(np.exp(random.uniform(np.log(1 / 300), np.log(300))))
    return f"scale by {factor:.3g}", x * factor


def shift(x, random):
    by = random.uniform(-4, 4)
    return f"shift by {by:.3g}", x + by


def order(x, random):
    """The networks have one channel: parts of the image take the place of channels."""
    n = int(random.choice([2, 4, 8, 32]))
    parts = np.stack(np.split(x, n, axis=2))
    return f"order of {n} parts", np.concatenate(list(random.permutation(parts)), axis=2)


def dtype(x, random):
    return [("cast to uint8", x.astype(np.uint8)), ("rounded", np.round(x)),
            ("uint8 of 255", np.round(x * 255)), ("float16", x.astype(np.float16)),
            ("int8 of 127", np.round(x * 255).astype(np.uint8).astype(np.int8))][random.integers(5)]


def layout(x, random):
    rows = x.reshape(len(x), -1)
    return [("transposed", x.transpose(0, 1, 3, 2)), ("mirrored", x[..., ::-1]),
            ("bytes moved", np.roll(rows, random.integers(1, 1024), axis=1).reshape(x.shape)),
            ("batch in rows", x.reshape(32, len(x), 32).transpose(1, 0, 2).reshape(x.shape)),
            ("pixels mixed", random.permutation(rows, axis=1).reshape(x.shape))][random.integers(5)]


def duplicates(x, random):
    n = int(random.choice([1, 2, 3, 4, 8]))
    return f"{n} of them", np.repeat(x[random.permutation(len(x))[:n]], len(x) // n, 0)


def noise(x, random):
    by = float(np.exp(random.uniform(np.log(0.01), np.log(30))))
    return f"noise of {by:.3g}", x + random.normal(0, by, x.shape)


KINDS = [scale, shift, order, dtype, layout, duplicates, noise]


def mutation(i):
    """Returns the model's name, what is done to the data, and the data, of mutation i."""
    random = np.random.default_rng(i)
    x = np.load(DATA / "calib_256.npz")["input"]
    name, values = KINDS[i % len(KINDS)](x, random)
    return MODELS[i // len(KINDS) % len(MODELS)], name, values.astype(np.float32)


def top1(model):
    data = np.load(DATA / "test_1000.npz")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    images = data["images"].astype(np.float32) / np.float32(255)
    return float(np.mean(session.run(None, {"input": images})[0].argmax(1) == data["labels"]))


def quantize(folder, model, values, spec, *more):
    """Returns the report, or None where the result missed a gate."""
    np.savez(folder / "c.npz", input=values)
    (folder / "s.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [QDQ, "quantize", "--threads=1", DATA / f"{model}.onnx", "--spec", folder / "s.json",
         "--calibration", folder / "c.npz", "-o", folder / "o.onnx", "--report", folder / "r.json",
         *more], capture_output=True, text=True)
    if done.returncode and "accuracy" not in done.stderr:
        raise RuntimeError(done.stderr)
    return None if done.returncode else json.loads((folder / "r.json").read_text())


def labelled(folder):
    data = np.load(DATA / "test_1000.npz")
    images = data["images"].astype(np.float32) / np.float32(255)
    np.savez(folder / "e.npz", input=images, labels=data["labels"])
    return folder / "e.npz"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--target", default="tensorrt")
    asked = parser.parse_args()
    lost = good = accepted = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evaluation = labelled(folder)
        for i in range(asked.first, asked.first + asked.runs):
            model, what, values = mutation(i)
            report = quantize(folder, model, values, {"target": asked.target})
            verdict = report["summary"]["verdict"]
            drop = top1(DATA / f"{model}.onnx") - top1(folder / "o.onnx")
            judged = None
            if drop > LOST:
                lost += 1
                good += verdict == "good"
                judged = quantize(folder, model, values, {
                    "target": asked.target, "task": {"kind": "classification"},
                    "accept": {"max_task_drop": LOST}}, "--evaluation", evaluation)
                accepted += judged is not None
            print(f"{i:4} {model:16} {what:20} drop {drop:6.3f} {verdict}"
                  f"{' accepted by labels' if judged else ''}", flush=True)
    print(f"{asked.runs} mutations, {lost} lose more than five points: {good} of these are called "
          f"good, {accepted} pass by labels")


if __name__ == "__main__":
    main()
