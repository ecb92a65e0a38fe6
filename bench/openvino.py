# SPDX-License-Identifier: Apache-2.0
"""openvino.py: quantizes the glyph models of tests/data for OpenVINO, by qdq and by NNCF.

Calibration takes 256 images. OpenVINO runs all results on the 1,000 test images on one
thread, with float32 where a layer is not integer, and measures top-1, SQNR over all
logits, and latency in batches of 50 by turns with the float model. Seconds and memory are
those of the whole process. NNCF is not among the packages of the tests: run this by a
Python that has `openvino==2026.4.1 nncf==3.4.0 onnx numpy`."""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.append(sys.path.pop(0))  # The package openvino comes before this file.
import openvino  # noqa: E402

from common import MIB, QDQ, ROOT, Measured, machine, table  # noqa: E402

DATA = ROOT / "tests" / "data"
CALIBRATION = DATA / "calib_256.npz"
PLAIN = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
BATCH = 50
OURS = {
    "qdq, default": {},
    "qdq, gptq and bias correction": {"weights": {"rounding": "gptq"},
                                      "bias_correction": True},
}
# The settings of nncf.quantize(), by name.
PEERS = {
    "NNCF, default": {},
    "NNCF, TRANSFORMER": {"model_type": "TRANSFORMER"},
    "NNCF, MIXED": {"preset": "MIXED"},
    "NNCF, MIXED, TRANSFORMER": {"preset": "MIXED", "model_type": "TRANSFORMER"},
    "NNCF, MIXED, full bias": {"preset": "MIXED", "fast_bias_correction": False},
}


def peer(model, out, settings):
    """Quantizes by NNCF what OpenVINO reads of the model, and saves it."""
    import nncf
    options = json.loads(settings)
    if "model_type" in options:
        options["model_type"] = nncf.ModelType(options["model_type"].lower())
    if "preset" in options:
        options["preset"] = nncf.QuantizationPreset(options["preset"].lower())
    images = np.load(CALIBRATION)["input"]
    data = nncf.Dataset([images[i:i + 1] for i in range(len(images))])
    quantized = nncf.quantize(openvino.Core().read_model(model), data,
                              subset_size=len(images), **options)
    openvino.save_model(quantized, out, compress_to_fp16=False)


class Judge:
    def __init__(self, name):
        test = np.load(DATA / "test_1000.npz")
        images = test["images"].reshape(-1, 1, 32, 32).astype(np.float32) / 255
        self.batches = [images[i:i + BATCH] for i in range(0, len(images), BATCH)]
        self.labels = test["labels"]
        self.core = openvino.Core()
        self.float = self.open(DATA / f"{name}.onnx")
        self.real = self.logits(self.float)

    def open(self, path):
        model = self.core.read_model(path)
        return self.core.compile_model(model, "CPU", PLAIN).create_infer_request()

    def logits(self, request):
        return np.concatenate([np.array(next(iter(request.infer([batch]).values())))
                               for batch in self.batches]).astype(np.float64)

    def latency(self, request, turns=15):
        """The ratio of the medians, by turns with the float model."""
        seconds = {self.float: [], request: []}
        for _ in range(turns):
            for one, found in seconds.items():
                start = time.monotonic()
                one.infer([self.batches[0]])
                found.append(time.monotonic() - start)
        return np.median(seconds[request]) / np.median(seconds[self.float])

    def row(self, path):
        request = self.open(path)
        made = self.logits(request)
        noise = np.sum((self.real - made) ** 2)
        return [f"{100 * np.mean(made.argmax(1) == self.labels):.1f}",
                f"{10 * np.log10(np.sum(self.real ** 2) / noise):.1f}",
                f"{self.latency(request):.2f}"]


def measure(name, folder):
    judge, rows = Judge(name), []
    model = DATA / f"{name}.onnx"
    for label, spec in OURS.items():
        (folder / "spec.json").write_text(json.dumps(
            {"target": "openvino", "evaluate": False, **spec}))
        out = folder / "q.onnx"
        run = Measured([QDQ, "quantize", model, "--calibration", CALIBRATION, "--spec",
                        folder / "spec.json", "-o", out])
        rows.append([name, label, *judge.row(out), f"{run.seconds:.1f}",
                     f"{run.anonymous / MIB:.0f}"])
    for label, settings in PEERS.items():
        out = folder / "peer.xml"
        run = Measured([sys.executable, __file__, "--peer", model, out,
                        json.dumps(settings)])
        rows.append([name, label, *judge.row(out), f"{run.seconds:.1f}",
                     f"{run.anonymous / MIB:.0f}"])
    return rows


def main():
    machine()
    names = sys.argv[1:] or ["glyph_resnet", "glyph_vit", "glyph_mobilenet", "glyph_se"]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in names for row in measure(name, Path(folder))]
    table(f"OpenVINO {openvino.__version__}, 256 calibration images, 1,000 test images",
          ["model", "made by", "top-1 %", "SQNR dB", "latency", "seconds", "MiB"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:])
    else:
        main()
