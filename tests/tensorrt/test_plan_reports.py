# SPDX-License-Identifier: Apache-2.0
"""Reports by NVIDIA's plan, through the installed runner."""

import json
import os
import subprocess
import sys

import pytest

from service import DATA, INSTALLED

PROGRAM = INSTALLED / "share" / "qdqd" / "runners" / "tensorrt_rtx.py"
QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")


@pytest.fixture
def quantize(tmp_path, packages):
    """Returns a function that quantizes with the runner; it returns the process and the report."""
    (tmp_path / "runners.conf").write_text(
        f'[runner rtx]\ncommand = "{sys.executable}" "{PROGRAM}"\ntargets = tensorrt\n'
        f"packages = {packages}\nallow = {packages}\n")

    def run(net, spec):
        (tmp_path / "s.json").write_text(json.dumps({"target": "tensorrt", **spec}))
        done = subprocess.run(
            [QDQ, "quantize", DATA / f"{net}.onnx", "--spec", tmp_path / "s.json", "--calibration",
             DATA / "calib_32.npz", "-o", tmp_path / "q.onnx", "--report", tmp_path / "r.json",
             "--threads", "1", "--runners", tmp_path / "runners.conf"],
            capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
        report = json.loads((tmp_path / "r.json").read_text()) if not done.returncode else None
        return done, report

    return run


def test_all_layers_are_integers(quantize):
    done, report = quantize("glyph_resnet", {})
    assert done.returncode == 0, done.stderr
    kernels = report["kernels"]
    assert kernels["layers"] == {"planned": 14, "integer": 14}
    assert kernels["ops"] == {"correlation": 13, "gemm": 1} and kernels["floats"] == []
    assert kernels["planned_by"]["name"] == "tensorrt_rtx"
    assert report["evaluation"]["deployed"] is None and report["profile"] is None


def test_an_attention_is_one_kernel(quantize):
    done, report = quantize("glyph_vit", {"cases": ["attention"], "float": "float16"})
    assert done.returncode == 0, done.stderr
    kernels = report["kernels"]
    assert kernels["layers"] == {"planned": 22, "integer": 22}
    attentions = [row for row in kernels["fused"] if row["computes"] == "integer"
                  and len([n for n in row["nodes"] if n.startswith("MatMul")]) == 2]
    assert len(attentions) == 3


def test_layers_in_float_are_named(quantize):
    done, report = quantize("glyph_resnet", {"activations": "none"})
    assert done.returncode == 0, done.stderr
    kernels = report["kernels"]
    assert kernels["layers"] == {"planned": 0, "integer": 0} and kernels["integer"] == 0
    wanted = [row["name"] for row in report["layers"] if row["weight_quantized"]]
    assert [row["name"] for row in kernels["floats"]] == wanted and len(wanted) == 14


def test_a_refusal_names_node_and_reason(quantize):
    done, _ = quantize("glyph_resnet", {"activations": {"dtype": "int16"}})
    assert done.returncode != 0
    assert "target_cannot_load: " in done.stderr and "input_DequantizeLinear: " in done.stderr
