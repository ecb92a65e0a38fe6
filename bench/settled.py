# SPDX-License-Identifier: Apache-2.0
"""settled.py [FOLDER [ROUNDS]]: an evaluation that ends when its figures are settled, beside one of all
its samples, and default jobs beside plain inference.

The first table has the glyph models and each NAME.onnx of FOLDER with NAME.npz: how many
samples of how many were compared, how far the figures are from those of all samples, and processor
time of whole jobs, with one thread, by turns. The second has default jobs of the ResNet-50 of
make_model.py with 64 random images, in plain inferences of these 64 by onnxruntime, all in
processor time of one thread (stages by their share of the seconds), and the same jobs once
more with what the first has kept. Digests are computed without SHA extensions
(OPENSSL_ia32cap), and kept from the second round on. Budgets are printed beside."""

import json
import os
import sys
import tempfile
from pathlib import Path

from calibrate import images
from common import QDQ, ROOT, Measured, machine, peer, table
from make_model import cached

DATA = ROOT / "tests/data"
BUDGETS = {"tensorrt": 1.7, "onnxruntime": 2.2}


def quantize(folder, model, data, target, threads=1, **spec):
    (folder / "spec.json").write_text(json.dumps({"target": target, **spec}))
    run = Measured([QDQ, "quantize", model, "--spec", folder / "spec.json", "--calibration", data,
                    "-o", folder / "out.onnx", "--report", folder / "report.json", "--threads", threads])
    return run, json.loads((folder / "report.json").read_text())


def outputs(report):
    return (report["evaluation"]["deployed"] or report["evaluation"])["outputs"]


def far(a, b, *members):
    """Returns the largest difference of a figure between two reports."""
    def figure(output):
        for member in members:
            output = output[member]
        return output
    pairs = [(figure(x), figure(y)) for x, y in zip(outputs(a), outputs(b))]
    return max((abs(x - y) for x, y in pairs if x is not None and y is not None), default=0)


def far_layers(a, b):
    """Returns the largest difference of a layer's figure."""
    layers = [{row["name"]: row["sqnr_db"] for row in report["evaluation"]["layers"]} for report in (a, b)]
    pairs = [(value, layers[1].get(name)) for name, value in layers[0].items()]
    return max((abs(x - y) for x, y in pairs if x is not None and y is not None), default=0)


def models(folder):
    for name in ("glyph_resnet", "glyph_mobilenet", "glyph_se"):
        yield DATA / f"{name}.onnx", DATA / "calib_256.npz"
    for path in sorted(Path(folder).glob("*.onnx")) if folder else ():
        data = path.with_suffix(".npz")
        if data.exists():
            yield path, data


def settled(folder, model, data, target, rounds):
    stopped, whole = [], []
    for _ in range(rounds):
        run, report = quantize(folder, model, data, target)
        stopped.append(run.cpu)
        run, every = quantize(folder, model, data, target, evaluate=True)
        whole.append(run.cpu)
    evaluation = report["evaluation"]
    return [model.stem, target, f"{evaluation['samples']} of {evaluation['of']}", evaluation["rule"],
            f"{far(report, every, 'sqnr_db'):.2f}", f"{far(report, every, 'samples', 'p5_db'):.2f}",
            f"{far(report, every, 'top1_agreement'):.3f}",
            f"{far_layers(report, every):.2f} ({evaluation['layer_samples']})",
            f"{report['summary']['verdict']} / {every['summary']['verdict']}",
            f"{min(stopped):.2f}", f"{min(whole):.2f}", f"{min(stopped) / min(whole):.2f}"]


def in_inferences(folder, data, target, rounds):
    rows = []
    for what in ("first", *["kept"] * (rounds - 1)):
        one, all_of_them = (peer("infer", cached(), data, n, 1, "fused").cpu for n in (1, 64))
        plain = (all_of_them - one) * 64 / 63  # without the start of Python and the session
        run, report = quantize(folder, cached(), data, target)
        whole = sum(s["seconds"] for s in report["stages"])
        stages = ", ".join(f"{s['name']} {run.cpu / plain * s['seconds'] / whole:.2f}"
                           for s in report["stages"] if s["seconds"] > 0.02 * whole)
        evaluation = report["evaluation"]
        rows.append([target, what, f"{run.cpu / plain:.2f}",
                     BUDGETS[target] if what == "first" else 0.5,
                     f"{evaluation['samples']} of {evaluation['of']}", stages])
    return rows


def main(folder=None, rounds=3):
    rounds = int(rounds)
    os.environ["OPENSSL_ia32cap"] = ":~0x20000000"
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        table("evaluations that end when their figures are settled",
              ["model", "target", "samples", "rule", "dB", "p5 dB", "top-1", "layers, dB (samples)", "verdicts", "s",
               "all s", "ratio"],
              [settled(place, model, data, target, rounds) for model, data in models(folder)
               for target in ("tensorrt", "onnxruntime")])
        data = images(64)
        table("default jobs of ResNet-50 with 64 samples, in plain inferences of them",
              ["target", "what was kept", "inferences", "budget", "samples", "stages"],
              [row for target in BUDGETS for row in in_inferences(place, data, target, rounds)])


if __name__ == "__main__":
    machine()
    main(*sys.argv[1:])
