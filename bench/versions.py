# SPDX-License-Identifier: Apache-2.0
"""versions.py OLD NEW [RUNS]: the same work by two installations, by turns, to see whether a
version is slower than an earlier one. OLD and NEW are folders that tools/build installed into
(_install). Each figure is the median of RUNS runs (5) of a whole command, with its start; "spread"
is the difference between the largest and the least of the ratios of single turns, so that a ratio
within it says nothing. Small jobs a second are measured three times by turns, for ten seconds each.

No spec here asks for a recipe: what recipes try has changed between versions, and so their work.
The machine has to be quiet; the load before and after is printed."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

import insert
import make_decoder
import make_model
import plan
from calibrate import images
from common import CACHE, MIB, ROOT, Measured, machine, table

DATA = ROOT / "tests" / "data"
GLYPHS = ("glyph_resnet", "glyph_vit", "glyph_mobilenet", "glyph_se")
JOBS_ROUNDS, JOBS_SECONDS = 3, 10


def blocks(target="onnxruntime", **weights):
    return {"target": target, "recipe": "none", "evaluate": False, "activations": "none",
            "weights": weights}


def networks(folder):
    """The work on ResNet-50 and on large graphs: (name, model, data, threads, spec)."""
    resnet, data = make_model.cached(), images(24)
    some = {"evaluate": False, "calibration": {"max_samples": 24}}
    graph = folder / "graph.onnx"
    onnx.save(plan.make(10_000), graph)
    names = ["input", *(node.output[0] for node in onnx.load(graph).graph.node)]
    given = {"evaluate": False,
             "calibration": {"ranges": {name: [-2.5, 3.0] for name in names}}}
    yield "given ranges, 102 MB", resnet, None, 2, {
        "evaluate": False, "calibration": {"ranges": insert.ranges_of(resnet)}}
    for method in "minmax", "entropy", "percentile", "mse":
        yield f"ResNet-50, 24 images, {method}, 1 thread", resnet, data, 1, {
            "evaluate": False, "calibration": {"max_samples": 24, "method": method}}
    yield "ResNet-50, 24 images, default, 2 threads", resnet, data, 2, some
    yield "ResNet-50, 24 images evaluated, 2 threads", resnet, data, 2, {
        **some, "evaluate": {"samples": 24}}
    yield "ResNet-50, 8 images, gptq, 2 threads", resnet, data, 2, {
        "evaluate": False, "calibration": {"max_samples": 8}, "weights": {"rounding": "gptq"}}
    yield "graph of 10,000 nodes, given ranges", graph, None, 2, given
    yield "graph of 10,000 nodes, all cases", graph, None, 2, {**given, "cases": plan.CASES}


def decoders():
    model = make_decoder.make(CACHE / "decoder", "100m")
    yield "decoder of 108 MB, int4, blocks of 32", model, None, 2, blocks(
        dtype="int4", granularity={"block": 32})
    yield "decoder of 108 MB, int4, blocks of 128, mse", model, None, 2, blocks(
        dtype="int4", method="mse", granularity={"block": 128})
    yield "decoder of 108 MB, int8, tensorrt", model, None, 2, {
        "evaluate": False, "activations": "none"}


def small_networks():
    data = DATA / "calib_256.npz"
    for name in GLYPHS:
        model = DATA / f"{name}.onnx"
        for target in "tensorrt", "onnxruntime":
            yield f"{name}, {target}, 256 images", model, data, 2, {
                "target": target, "recipe": "none"}
        yield f"{name}, gptq and bias correction", model, data, 2, {
            "weights": {"rounding": "gptq"}, "bias_correction": True}
    for name in "glyph_vit", "glyph_se":
        model = DATA / f"{name}.onnx"
        yield f"{name}, sensitivity of 64 images", model, data, 2, {
            "sensitivity": {"samples": 64}}
        yield f"{name}, search of 64 images", model, data, 2, {
            "search": {"min_sqnr_db": 30, "samples": 64}}


class Work:
    """One work, and what it took each installation: [(seconds, processor seconds, bytes)]."""

    def __init__(self, folder, number, name, model, data, threads, spec):
        self.name, self.taken = name, ([], [])
        path = folder / f"{number}.json"
        path.write_text(json.dumps(spec))
        self.arguments = ["quantize", model, "--spec", path, "--threads", threads, "-o",
                          folder / "out.onnx", "--report", folder / "report.json",
                          *(["--calibration", data] if data else [])]

    def turn(self, installed):
        for taken, folder in zip(self.taken, installed):
            run = Measured([folder / "bin" / "qdq", *self.arguments])
            taken.append((run.seconds, run.cpu, run.anonymous))

    def row(self):
        old, new = self.taken
        ratios = [theirs[0] / ours[0] for theirs, ours in zip(new, old)]
        middle = [[statistics.median(column) for column in zip(*taken)] for taken in self.taken]
        return [self.name, *(f"{taken[0]:.3f}" for taken in middle),
                f"{middle[1][0] / middle[0][0]:.2f}", f"{max(ratios) - min(ratios):.2f}",
                f"{middle[1][1] / middle[0][1]:.2f}",
                *(f"{max(run[2] for run in taken) / MIB:.0f}" for taken in self.taken)]


def jobs(installed):
    """Runs jobs.py by turns; returns its rows with both versions' figures."""
    def rows(folder):
        text = subprocess.run(
            [sys.executable, Path(__file__).parent / "jobs.py", str(JOBS_SECONDS)], check=True,
            env={**os.environ, "QDQD_INSTALLED": str(folder)}, stdout=subprocess.PIPE,
            text=True).stdout
        return [[cell.strip() for cell in line.split("|")[1:3]]
                for line in text.splitlines() if "budget" not in line and line.startswith("| ")]
    rounds = [[rows(folder) for folder in installed] for _ in range(JOBS_ROUNDS)]
    return [[name, *("; ".join(turn[version][row][1] for turn in rounds) for version in (0, 1))]
            for row, (name, _) in enumerate(rounds[0][0])]


def main(old, new, runs):
    installed, load = [Path(old).resolve(), Path(new).resolve()], os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        folder = Path(folder)
        works = [Work(folder, i, *work) for i, work in enumerate(
            [*networks(folder), *decoders(), *small_networks()])]
        for _ in range(runs):
            for work in works:
                work.turn(installed)
    small = jobs(installed)
    machine()
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    table(f"medians of {runs} runs", ["work", "old, s", "new, s", "ratio", "spread",
                                      "processor, ratio", "old, MiB", "new, MiB"],
          [work.row() for work in works])
    table(f"jobs.py {JOBS_SECONDS}, {JOBS_ROUNDS} rounds by turns", ["", "old", "new"], small)


if __name__ == "__main__":
    main(*sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 5)
