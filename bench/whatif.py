# SPDX-License-Identifier: Apache-2.0
"""whatif.py [THREADS] [ROUNDS]: measures the cost of what-ifs and the quality of their
results.

Measured are: one run of the what-ifs' model, compared with plain inference, on a model of
ResNet-50's shape; sensitivity, compared with plain evaluations (float and quantized
inference of the same samples), in processor time; the curves of searches; and the gain of
`output_mse` on images that calibration did not use."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from accuracy import CALIBRATION, DATA, logits
from calibrate import images
from common import QDQ, Measured, machine, peer, table
from make_model import cached

SAMPLES = 128
FEW_SAMPLES, MANY_SAMPLES = 32, 224
RESNET_SAMPLES = (8, 40)
GLYPHS = ("glyph_mobilenet", "glyph_resnet", "glyph_se", "glyph_vit")
GOALS = (("glyph_se", 30), ("glyph_resnet_skewed", 28))
REFINED = (*GLYPHS, "glyph_resnet_skewed")


def quantize(folder, model, calibration, threads, spec):
    """Quantizes and returns the report; the model is FOLDER/out.onnx."""
    (folder / "spec.json").write_text(json.dumps(spec))
    Measured([QDQ, "quantize", model, "--spec", folder / "spec.json", "--calibration",
              calibration, "-o", folder / "out.onnx", "--report", folder / "report.json",
              "--threads", threads])
    return json.loads((folder / "report.json").read_text())


def one_run(folder, threads, rounds):
    """Returns the seconds of one run of the what-ifs' model, with all layers on and with
    all off. They are the difference between many runs and few, so that opening the model
    cancels out."""
    def seconds(n):
        report = quantize(folder, cached(), images(64), threads, {
            "calibration": {"max_samples": 8, "method": "minmax"}, "evaluate": False,
            "search": {"min_sqnr_db": 0, "samples": n}})
        assert report["what_ifs"] == 2 * n
        return report["timings"]["search"]
    few, many = (min(seconds(n) for _ in range(rounds)) for n in RESNET_SAMPLES)
    return (many - few) / (2 * (RESNET_SAMPLES[1] - RESNET_SAMPLES[0]))


def processor_time(folder, name, threads, rounds, spec):
    """Returns the processor seconds of a sample: the difference between many samples and
    few, so that work which happens once cancels out."""
    def seconds(n):
        (folder / "spec.json").write_text(json.dumps({
            "calibration": {"max_samples": FEW_SAMPLES}, "evaluate": {"samples": n},
            **{member: {"samples": n} for member in spec}}))
        return Measured([QDQ, "quantize", DATA / f"{name}.onnx", "--spec",
                         folder / "spec.json", "--calibration", CALIBRATION, "-o",
                         folder / "out.onnx", "--report", folder / "report.json",
                         "--threads", threads]).cpu
    few, many = (min(seconds(n) for _ in range(rounds))
                 for n in (FEW_SAMPLES, MANY_SAMPLES))
    return (many - few) / (MANY_SAMPLES - FEW_SAMPLES)


def sensitivity(folder, name, threads, rounds):
    evaluation = processor_time(folder, name, threads, rounds, [])
    ranking = processor_time(folder, name, threads, rounds, ["sensitivity"]) - evaluation
    report = json.loads((folder / "report.json").read_text())
    layers, timings = len(report["sensitivity"]), report["timings"]
    assert report["what_ifs"] == (2 * layers + 2) * MANY_SAMPLES
    return [name, layers, layers + 2, f"{1000 * ranking:.2f}", f"{1000 * evaluation:.3f}",
            f"{ranking / evaluation:.1f}",
            f"{timings['sensitivity'] / timings['evaluate']:.1f}"]


def curve(folder, name, goal, threads):
    report = quantize(folder, DATA / f"{name}.onnx", CALIBRATION, threads, {
        "calibration": {"max_samples": SAMPLES}, "evaluate": {"samples": SAMPLES},
        "search": {"min_sqnr_db": goal, "samples": SAMPLES}})
    search = report["search"]
    rows = [[s["float_layers"], s["layer"] or "", f"{s['sqnr_db']:.2f}",
             f"{100 * s['top1_agreement']:.1f}"] for s in search["curve"]]
    layers = sum(bool(r["quantized_inputs"] or r["weight_quantized"])
                 for r in report["layers"]) + len(search["float_layers"])
    table(f"{name}, {layers} layers, to {goal} dB: {report['what_ifs'] // SAMPLES} runs "
          f"of {SAMPLES} samples, {report['timings']['search']:.1f} s; the evaluation "
          f"says {report['evaluation']['outputs'][0]['sqnr_db']:.2f} dB",
          ["layers in float", "changed", "SQNR, dB", "agreement, %"], rows)


def refinement(folder, name, test, threads):
    """Returns the SQNR on the test images with both methods."""
    model = DATA / f"{name}.onnx"
    real, found = logits(model, test), []
    for method in ("mse", "output_mse"):
        report = quantize(folder, model, CALIBRATION, threads, {
            "calibration": {"method": method}, "evaluate": False})
        error = np.sum((real - logits(folder / "out.onnx", test)) ** 2)
        found.append(10 * np.log10(np.sum(real ** 2) / error))
    r = report["refinement"]
    return [name, len(report["tensors"]), r["adjusted"],
            f"{r['sqnr_db_before']:.2f}", f"{r['sqnr_db_after']:.2f}",
            *(f"{db:.2f}" for db in found), f"{found[1] - found[0]:+.2f}",
            f"{report['timings']['refine']:.1f}"]


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    test = np.load(DATA / "test_1000.npz")["images"].astype(np.float32) / np.float32(255)
    machine()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        inference = min(peer("infer", cached(), images(64), 40, threads).inner
                        for _ in range(rounds)) / 40
        run = one_run(folder, threads, rounds)
        table(f"One run, ResNet-50, {threads} threads, best of {rounds}",
              ["", "ms", "of plain inference"],
              [["plain inference", f"{1000 * inference:.1f}", "1.00"],
               ["what-if", f"{1000 * run:.1f}", f"{run / inference:.2f}"]])
        table(f"Sensitivity, processor time of a sample, best of {rounds}",
              ["model", "layers", "bound", "sensitivity, ms", "plain evaluation, ms",
               "of plain evaluations", "by the report's timings"],
              [sensitivity(folder, name, threads, rounds) for name in GLYPHS])
        for name, goal in GOALS:
            curve(folder, name, goal, threads)
        table("Gain of output_mse over mse, 256 calibration images, 1,000 test images",
              ["model", "ranges", "adjusted", "calibration: mse, dB", "output_mse, dB",
               "test: mse, dB", "output_mse, dB", "gain, dB", "seconds"],
              [refinement(folder, name, test, threads) for name in REFINED])


if __name__ == "__main__":
    main()
