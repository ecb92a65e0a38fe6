# SPDX-License-Identifier: Apache-2.0
"""evaluation.deployed: the result as onnxruntime runs it here, judged by onnxruntime."""

import json
import subprocess

import numpy as np
import onnxruntime
import pytest

import judge
from service import DATA, QUANTIZE

HERE = "avx2" if judge.saturates() else "vnni"
OTHER = "vnni" if HERE == "avx2" else "avx2"
FIGURES = ("sqnr_db", "cosine", "max_abs_error", "top1_agreement", "nonfinite", "kl",
           "nats_per_token", "float_nats_per_token", "slices", "samples")
N = 24


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Calibration and evaluation use all of these, so that both tools judge the same."""
    path = tmp_path_factory.mktemp("data") / "images.npz"
    images = np.load(DATA / "calib_256.npz")["input"][:N]
    np.savez(path, input=images)
    return path, {"input": images}


def quantize(folder, images, name, **spec):
    """The command's result; and the report, or None if there is none."""
    (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", **spec}))
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [*QUANTIZE, DATA / f"{name}.onnx", "--spec",
         folder / "spec.json", "--calibration", images[0], "-o", folder / "q.onnx",
         "--report", report], capture_output=True, text=True)
    return done, json.loads(report.read_text()) if report.exists() else None


def codes(report):
    return {w["code"] for w in report["warnings"]}


@pytest.mark.parametrize("name", ["glyph_se", "glyph_vit", "glyph_resnet"])
@pytest.mark.parametrize("c7", [False, True])
def test_it_is_what_a_plain_session_gives(tmp_path, images, name, c7):
    done, report = quantize(tmp_path, images, name, recipe="none", rules={"C7": c7, "C15": True})
    assert done.returncode == 0, done.stderr
    deployed = report["evaluation"]["deployed"]
    real = judge.run((DATA / f"{name}.onnx").read_bytes(), images[1], 1)
    made = judge.run((tmp_path / "q.onnx").read_bytes(), images[1], 1)
    [output] = deployed["outputs"]
    assert output["sqnr_db"] == pytest.approx(judge.sqnr_db(real, made), abs=0.5)
    assert output["top1_agreement"] == pytest.approx(
        np.mean(real.argmax(-1) == made.argmax(-1)), abs=1e-9)
    assert set(output) == {"name", "points", *FIGURES}
    assert deployed["runtime"] == {"name": "onnxruntime",
                                   "version": onnxruntime.__version__}
    assert deployed["processor"] == report["host"]["processor"]
    assert f"{output['sqnr_db']:.2f} dB" in done.stdout
    assert "deployed_not_measured" not in codes(report)


def test_gates_go_by_it(tmp_path, images):
    """On a processor without VNNI the literal figure is 14 dB better."""
    _, report = quantize(tmp_path, images, "glyph_se", recipe="none",
                         rules={"C7": False})
    [literal] = report["evaluation"]["outputs"]
    [output] = report["evaluation"]["deployed"]["outputs"]
    if HERE == "avx2":
        assert literal["sqnr_db"] > output["sqnr_db"] + 6
    for step, met in ((-0.01, True), (0.01, False)):
        bound = output["sqnr_db"] + step
        done, again = quantize(tmp_path, images, "glyph_se", recipe="none",
                               rules={"C7": False}, accept={"min_sqnr_db": bound})
        assert (done.returncode == 0) == met, done.stderr
        if not met:
            assert "accuracy" in done.stderr
            assert f"{output['sqnr_db']:.9g}" in done.stderr
        else:
            assert again["evaluation"]["missed"] == []


def test_a_host_of_another_class_is_not_measured(tmp_path, images):
    done, report = quantize(tmp_path, images, "glyph_resnet", host=OTHER,
                            accept={"min_sqnr_db": 10})
    assert done.returncode == 0, done.stderr
    assert report["evaluation"]["deployed"] is None
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 10
    [detail] = [w["detail"] for w in report["warnings"]
                if w["code"] == "deployed_not_measured"]
    assert HERE in detail and OTHER in detail


def test_target_tensorrt_has_none(tmp_path, images):
    _, report = quantize(tmp_path, images, "glyph_resnet", target="tensorrt")
    assert report["evaluation"]["deployed"] is None
    assert "deployed_not_measured" not in codes(report)


def test_a_result_that_the_runtime_cannot_load_is_said(tmp_path, images):
    """ONNX Runtime has no bfloat16 on CPUs: the literal arithmetic stands in."""
    _, report = quantize(tmp_path, images, "glyph_resnet", float="bfloat16")
    assert report["evaluation"]["deployed"] is None
    [detail] = [w["detail"] for w in report["warnings"]
                if w["code"] == "deployed_not_measured"]
    assert "bfloat16" in detail
