# SPDX-License-Identifier: Apache-2.0
"""accuracy.py: quantizes the glyph models of tests/data by qdq with each of its range
methods, and by onnxruntime with MinMax and Percentile.

Calibration takes 256 images. onnxruntime runs all results on the 1,000 test images and
measures top-1, SQNR over all logits, mean cosine, and top-1 agreement with the float
model. onnxruntime's quantizer uses its own default choice of operators (int8, symmetric,
per channel)."""

import json
import tempfile
from pathlib import Path

import numpy as np
import onnx

from common import QDQ, ROOT, Measured, machine, peer, table
from peers import session

DATA = ROOT / "tests" / "data"
CALIBRATION = DATA / "calib_256.npz"
METHODS = ("minmax", "moving_average", "percentile", "entropy", "mse")
PEER_METHODS = ("MinMax", "Percentile")


def logits(model, images):
    one = session(model, 2)
    return np.concatenate([one.run(None, {"input": images[i:i + 100]})[0]
                           for i in range(0, len(images), 100)]).astype(np.float64)


def judged(real, model, images, labels):
    ours = logits(model, images)
    error = np.sum((real - ours) ** 2)
    cosine = np.sum(real * ours, 1) / (np.linalg.norm(real, axis=1) *
                                       np.linalg.norm(ours, axis=1))
    pairs = sum(n.op_type == "QuantizeLinear" for n in onnx.load(model).graph.node)
    return [f"{100 * np.mean(ours.argmax(1) == labels):.1f}",
            f"{10 * np.log10(np.sum(real ** 2) / error):.2f}" if error else "exact",
            f"{cosine.mean():.5f}",
            f"{100 * np.mean(ours.argmax(1) == real.argmax(1)):.1f}", pairs]


def main():
    data = np.load(DATA / "test_1000.npz")
    images, labels = data["images"].astype(np.float32) / np.float32(255), data["labels"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.onnx", Path(folder) / "theirs.onnx"
        spec = Path(folder) / "spec.json"
        for model in sorted(DATA.glob("glyph_*.onnx")):
            real = logits(model, images)
            rows.append([model.stem, "float",
                         f"{100 * np.mean(real.argmax(1) == labels):.1f}", *[""] * 4])
            for method in METHODS:
                spec.write_text(json.dumps({"calibration": {"method": method},
                                            "evaluate": False}))
                Measured([QDQ, "quantize", model, "--spec", spec, "--calibration",
                          CALIBRATION, "-o", ours])
                rows.append(["", f"qdq {method}", *judged(real, ours, images, labels)])
            for method in PEER_METHODS:
                peer("static", model, CALIBRATION, 256, theirs, "all", method)
                rows.append(["", f"onnxruntime {method}",
                             *judged(real, theirs, images, labels)])
    machine()
    table("Accuracy of int8, 256 calibration images",
          ["model", "by", "top-1, %", "SQNR, dB", "cosine", "agreement, %",
           "QuantizeLinear"], rows)


if __name__ == "__main__":
    main()
