# SPDX-License-Identifier: Apache-2.0
"""confidence.py [NAME…]: does the bound `samples.confidence` hold for samples that were not seen?

Each network is quantized once for two targets and run over its test samples. 200 times a random half
of these is what an evaluation sees, and the other half is what comes later. The bound is
computed as the engine does it (engine/stages/evaluate/sample_figures.h). "p5" is the share of
splits in which 19 of 20 later samples reach the bound, "pooled" that in which their pooled SQNR does;
"below" is by how much the median of the bounds is less than the 5th percentile of all samples, and
"least" by how much one number is that would hold in 95 % of these splits: what is between says
how much a bound could gain, whoever makes it."""

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from math import comb
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import real  # noqa: E402
from common import ROOT, machine, table  # noqa: E402

GLYPHS = ("glyph_resnet", "glyph_resnet_skewed", "glyph_mobilenet", "glyph_se", "glyph_vit")
SPLITS = 200


def load(name, folder):
    """Returns the model, the file to calibrate with, and the test samples."""
    data = ROOT / "tests/data"
    if name in GLYPHS:
        images = np.load(data / "test_1000.npz")["images"].astype(np.float32) / 255
        return (data / f"{name}.onnx", data / "calib_256.npz",
                [{"input": one.reshape(1, 1, 32, 32)} for one in images])
    model, calibration, test, _ = real.load(name, None)
    np.savez(folder / "c.npz", **{key: np.stack([one[key] for one in calibration])
                                  for key in calibration[0]})
    return model, folder / "c.npz", test


def figures(samples):
    """The SQNR of each sample; silence counts as a hundredth of the mean signal."""
    signal, noise = samples.T
    return 10 * np.log10(np.maximum(signal, signal.mean() / 100) / np.maximum(noise, 1e-30))


def level(n, r):
    k = n // 20
    return sum(comb(j + r - 1, r - 1) * comb(2 * n - j - r, n - r) for j in range(k + 1)) / comb(2 * n, n)


@functools.cache
def rank(n):
    r = 1
    while level(n, r + 1) >= .95:
        r += 1
    return r


def sums_of(f, q):
    return [((a.astype(np.float64)**2).sum(), ((a.astype(np.float64) - b)**2).sum())
            for a, b in zip(f, q) if a.dtype == np.float32]


def split(samples, random):
    """Returns the bound by some of the samples, and the figures of the others."""
    order = random.permutation(len(samples))
    seen = len(samples) // 2
    later = samples[order[seen:]]
    bound = np.sort(figures(samples[order[:seen]]))[rank(seen) - 1]
    p5 = np.sort(figures(later))[int(.05 * len(later))]
    return bound, p5, 10 * np.log10(later[:, 0].sum() / later[:, 1].sum())


def judge(name, target, folder):
    model, data, test = load(name, folder)
    (folder / "s.json").write_text(json.dumps({"target": target}))
    subprocess.run([ROOT / "_install/bin/qdq", "quantize", model, "--spec", folder / "s.json",
                    "--calibration", data, "-o", folder / "q.onnx"], check=True, capture_output=True)
    floats, made = real.session(model), real.session(folder / "q.onnx")
    sums = np.array([sums_of(floats.run(None, one), made.run(None, one)) for one in test])
    random = np.random.default_rng(1)
    for output in range(sums.shape[1]):
        samples = sums[:, output]
        if not samples[:, 1].all():
            continue  # nothing is quantized
        rows = np.array([split(samples, random) for _ in range(SPLITS)])
        bounds, truth = rows[:, 0], np.sort(figures(samples))[int(.05 * len(samples))]
        yield [name, target, output, len(test), f"{np.mean(rows[:, 1] >= bounds):.3f}",
               f"{np.mean(rows[:, 2] >= bounds):.3f}", f"{np.median(bounds):.1f}", f"{truth:.1f}",
               f"{truth - np.median(bounds):.1f}",
               f"{truth - np.quantile(rows[:, 1], .05, method='lower'):.1f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*GLYPHS, *real.MODELS])
    print(machine())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in parser.parse_args().names:
            for target in "tensorrt", "onnxruntime":
                rows += judge(name, target, Path(folder))
    table("the bound on later samples", ["network", "target", "output", "samples", "p5", "pooled",
                                         "median bound", "p5 of all", "below", "least"], rows)


if __name__ == "__main__":
    main()
