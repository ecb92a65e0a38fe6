# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's builder takes what recipe.formats chooses for target tensorrt."""

import json
import os
import subprocess

import numpy as np
import pytest

from service import DATA, INSTALLED

QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
# The formats, the activations, the granularity of the spec, and the budget.
ROWS = [
    (["int4", "int8"], None, {"block": 32}, 0.25),
    (["int4", "int8"], "int8", "channel", 0.35),
    (["int4", "int8"], "int8", {"block": 32}, 0.35),
    (["int4", "float8e4m3fn", "float32"], None, {"block": 32}, 0.3),
    (["float4e2m1", "int8", "uint4"], None, {"block": 16}, 0.25),
    (["float8e4m3fn", "float8e5m2"], "float8e4m3fn", "channel", 0.4),
]


@pytest.mark.parametrize("net", ["glyph_resnet", "glyph_vit"])
def test_what_formats_choose_is_built(plans_of, tmp_path, net):
    images = np.load(DATA / "test_1000.npz")["images"][:32].astype(np.float32) / np.float32(255)
    np.savez(tmp_path / "data.npz", input=images)
    paths = []
    for i, (formats, activations, granularity, budget) in enumerate(ROWS):
        (tmp_path / "spec.json").write_text(json.dumps({
            "target": "tensorrt", "opset": "auto", "evaluate": False,
            "activations": {"dtype": activations} if activations else "none",
            "weights": {"granularity": granularity},
            "recipe": {"formats": formats, "max_size_ratio": budget}}))
        paths.append(tmp_path / f"{i}.onnx")
        done = subprocess.run(
            [QDQ, "quantize", DATA / f"{net}.onnx", "--spec", tmp_path / "spec.json", "--calibration",
             tmp_path / "data.npz", "-o", paths[-1]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for row, plan in zip(ROWS, plans_of(paths)):
        assert not plan.errors and plan.kernels, (row, plan.errors)
