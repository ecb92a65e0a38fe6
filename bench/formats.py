# SPDX-License-Identifier: Apache-2.0
"""formats.py: quantizes the weights of the glyph models of tests/data in each format,
without activations. Prints the file's size, and SQNR over all logits and top-1 on the
1,000 test images."""

import json
import tempfile
from pathlib import Path

import numpy as np

from accuracy import DATA, logits
from common import QDQ, Measured, machine, table

BLOCKS = {"block": 32}
SPECS = [("int8", "channel", "max"), ("uint8", "channel", "max"), ("int8", BLOCKS, "max"),
         ("int4", "channel", "max"), ("int4", "channel", "mse"), ("int4", BLOCKS, "max"),
         ("int4", BLOCKS, "mse"), ("uint4", BLOCKS, "max"), ("uint4", BLOCKS, "mse"),
         ("float8e4m3fn", "channel", "max"), ("float8e5m2", "channel", "max")]


def main():
    data = np.load(DATA / "test_1000.npz")
    images, labels = data["images"].astype(np.float32) / np.float32(255), data["labels"]
    models = sorted(DATA.glob("glyph_*.onnx"))
    real = [logits(model, images) for model in models]
    rows = [["float", "", "", *(cell for f, model in zip(real, models) for cell in (
        f"{model.stat().st_size / 1000:.0f}", "", f"{100 * np.mean(f.argmax(1) == labels):.1f}"
    ))]]
    with tempfile.TemporaryDirectory() as folder:
        ours, spec = Path(folder) / "ours.onnx", Path(folder) / "spec.json"
        for dtype, granularity, method in SPECS:
            spec.write_text(json.dumps({
                "activations": "none", "evaluate": False,
                "weights": {"dtype": dtype, "granularity": granularity, "storage": "dq",
                            "method": method}}))
            cells = []
            for model, f in zip(models, real):
                Measured([QDQ, "quantize", model, "--spec", spec, "-o", ours])
                q = logits(ours, images)
                noise = np.sum((f - q) ** 2)
                cells += [f"{ours.stat().st_size / 1000:.0f}",
                          f"{10 * np.log10(np.sum(f ** 2) / noise):.1f}",
                          f"{100 * np.mean(q.argmax(1) == labels):.1f}"]
            rows.append([dtype, "block 32" if granularity == BLOCKS else granularity,
                         method, *cells])
    machine()
    table("Weights alone", ["dtype", "granularity", "method", *(
        f"{model.stem.removeprefix('glyph_')}: {what}" for model in models
        for what in ("kB", "dB", "top-1"))], rows)


if __name__ == "__main__":
    main()
