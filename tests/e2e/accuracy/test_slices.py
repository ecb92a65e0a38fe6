# SPDX-License-Identifier: Apache-2.0
"""A head that is lost among larger ones is no good result, whatever the figure of the whole output
says, and a gate does not let it pass. bench/verdicts/planted.py runs all networks, targets and recipes."""

import json
import os
import subprocess

import numpy as np
import onnx
import pytest

import judge
import planted_heads
from kept_times import kept_file, make_all_alike
from service import DATA, QUANTIZE

GATES = {"min_sqnr_db": 25, "min_cosine": 0.99}


def quantize(folder, planted, spec, n=64):
    """Returns the report, whether the result was accepted, and the model as bytes."""
    planted_heads.save(planted, folder / "m.onnx")
    np.savez(folder / "c.npz", x=planted.samples(n))
    return run(folder, folder / "m.onnx", folder / "c.npz", spec)


def run(folder, model, data, spec):
    (folder / "s.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, model, "--spec", folder / "s.json", "--calibration",
         data, "-o", folder / "q.onnx", "--report", folder / "r.json"],
        capture_output=True, text=True, env={**os.environ, "QDQD_ENGINE_OPENVINO": ""})
    assert done.returncode == 0 or "accuracy" in done.stderr, done.stderr
    return json.loads((folder / "r.json").read_text()), done.returncode == 0


def heads_of(planted, folder, target):
    """The SQNR of each head as deployed, on samples that the job did not have."""
    x = planted.samples(32, seed=9)
    optimized = target == "onnxruntime"
    floats = judge.run((folder / "m.onnx").read_bytes(), {"x": x}, 1)
    made = judge.run((folder / "q.onnx").read_bytes(), {"x": x}, 1, optimized=optimized)
    return planted.sqnr([floats], [made])


def outputs_of(report):
    evaluation = report["evaluation"]
    return (evaluation["deployed"] or evaluation)["outputs"]


def codes(report):
    return [row["code"] for row in report["warnings"]]


@pytest.mark.parametrize("form", planted_heads.FORMS)
def test_a_lost_head_does_not_pass(tmp_path, form):
    planted = planted_heads.plant(form, 1000)
    spec = {"target": "onnxruntime", "recipe": "none"}
    report, _ = quantize(tmp_path, planted, spec)
    [output] = outputs_of(report)
    assert min(heads_of(planted, tmp_path, "onnxruntime")) < 10 <= 25 < output["sqnr_db"]
    told = [row["sqnr_db"] for row in output["slices"] if "left_out" not in row]
    assert min(told) < 10
    assert report["summary"]["verdict"] == "poor"
    assert "slice_lost" in codes(report)
    _, accepted = run(tmp_path, tmp_path / "m.onnx", tmp_path / "c.npz",
                      {**spec, "accept": GATES})
    assert not accepted


def test_parts_of_a_sequence_are_slices(tmp_path):
    """A list of tensors joined by ConcatFromSequence, which has no pairs and so loses nothing."""
    planted = planted_heads.plant("sequence", 1000)
    report, _ = quantize(tmp_path, planted, {"target": "onnxruntime", "recipe": "none"})
    [output] = outputs_of(report)
    told = [row["sqnr_db"] for row in output["slices"]]
    assert told == pytest.approx(heads_of(planted, tmp_path, "onnxruntime"), abs=2)
    assert output["sqnr_db"] - told[0] > 1, "about its mean a slice has less"


@pytest.mark.parametrize("spec", [{"recipe": "auto"}, {"recipe": "best"}, {
    "recipe": "none", "search": {"min_sqnr_db": 25, "samples": 8}}], ids=["auto", "best", "search"])
def test_what_chooses_layers_keeps_every_head(tmp_path, monkeypatch, spec):
    """For the recipe auto all that was measured is made as fast, so that it goes by the heads."""
    planted = planted_heads.plant("concat", 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spec = {"target": "onnxruntime", **spec, "accept": GATES}
    report, accepted = quantize(tmp_path, planted, spec)
    if spec["recipe"] == "auto":
        make_all_alike(kept_file(tmp_path / "cache"), 0.5)
        report, accepted = quantize(tmp_path, planted, spec)
    assert accepted and "slice_lost" not in codes(report)
    assert report["summary"]["quantized_layers"] > 0
    assert min(heads_of(planted, tmp_path, "onnxruntime")) >= 20


def test_slices_have_their_own_gate(tmp_path):
    planted = planted_heads.plant("concat", 1000)
    spec = {"target": "onnxruntime", "recipe": "none"}
    report, accepted = quantize(tmp_path, planted, {
        **spec, "accept": {"min_sqnr_db": 25, "min_slice_sqnr_db": -10}})
    assert accepted and [gate["met"] for gate in report["gates"]] == [True, True]
    report, accepted = quantize(tmp_path, planted, {
        **spec, "accept": {"min_sqnr_db": 25, "min_slice_sqnr_db": 12}})
    assert not accepted
    assert [gate["name"] for gate in report["gates"] if not gate["met"]] == ["min_slice_sqnr_db"]


@pytest.mark.parametrize("name", ["glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit"])
def test_classifiers_have_no_slices(tmp_path, name):
    """A score that hardly varies is no alarm: the classes of one output are one whole."""
    report, _ = run(tmp_path, DATA / f"{name}.onnx", DATA / "calib_256.npz", {})
    [output] = outputs_of(report)
    assert output["slices"] == [] and report["summary"]["verdict"] == "good"
    assert "evaluated_on_calibration" in codes(report)
    figures = output["samples"]
    assert figures["worst_db"] <= figures["p5_db"] <= figures["median_db"]
    assert figures["worst_db"] <= figures["confidence"]["db"] <= figures["p5_db"]
    assert 0.95 <= figures["confidence"]["level"] < 1


@pytest.mark.parametrize("n,target,verdict,warned", [
    (8, "tensorrt", "fair", ["few_samples", "evaluated_on_calibration"]),
    (32, "tensorrt", "fair", ["evaluated_on_calibration"]),
    (64, "tensorrt", "good", ["evaluated_on_calibration"]),
    (64, "onnxruntime", "good", []),
])
def test_few_samples_are_not_good(tmp_path, n, target, verdict, warned):
    images = np.load(DATA / "calib_256.npz")["input"][:n]
    np.savez(tmp_path / "c.npz", input=images)
    report, _ = run(tmp_path, DATA / "glyph_resnet.onnx", tmp_path / "c.npz",
                    {"target": target, "cases": ["residual"]})
    assert report["summary"]["verdict"] == verdict
    assert [code for code in codes(report)
            if code in ("few_samples", "evaluated_on_calibration")] == warned


def test_figures_of_samples_are_those_of_numpy(tmp_path):
    images = np.load(DATA / "calib_256.npz")["input"]
    report, _ = run(tmp_path, DATA / "glyph_vit.onnx", DATA / "calib_256.npz",
                    {"target": "onnxruntime", "recipe": "none"})
    compared = images[128:]
    f = judge.run((DATA / "glyph_vit.onnx").read_bytes(), {"input": compared}, 1)
    q = judge.run((tmp_path / "q.onnx").read_bytes(), {"input": compared}, 1)
    db = np.sort(10 * np.log10((f**2).sum(1) / ((f - q) ** 2).sum(1)))
    [output] = outputs_of(report)
    wanted = {"worst_db": db[0], "p5_db": db[6], "median_db": (db[63] + db[64]) / 2}
    for name, value in wanted.items():
        assert output["samples"][name] == pytest.approx(value, abs=0.3)
    assert output["samples"]["confidence"]["db"] == pytest.approx(db[1], abs=0.3)


def test_nothing_quantized_has_no_verdict(tmp_path):
    spec = {"mode": "partial",
            "layers": [{"class": "Conv2D", "quantize_input": False, "quantize_weight": False}]}
    report, _ = run(tmp_path, DATA / "glyph_resnet.onnx", DATA / "calib_256.npz", spec)
    assert report["summary"]["quantized_layers"] == 0
    assert report["summary"]["verdict"] is None
    report, accepted = run(tmp_path, DATA / "glyph_resnet.onnx", DATA / "calib_256.npz",
                           {**spec, "accept": {"min_quantized_layers": 1}})
    assert not accepted
    assert report["gates"] == [{"output": None, "name": "min_quantized_layers", "wanted": 1,
                                "measured": 0, "met": False}]


def test_advice_begins_with_what_costs_nothing(tmp_path):
    report, _ = run(tmp_path, DATA / "glyph_resnet_skewed.onnx", DATA / "calib_256.npz", {})
    [poor] = [row["detail"] for row in report["warnings"] if row["code"] == "poor"]
    assert poor.endswith('dB with {"equalize": true}') and "without a layer in float" in poor
    mended, _ = run(tmp_path, DATA / "glyph_resnet_skewed.onnx", DATA / "calib_256.npz",
                    {"equalize": True})
    [output] = outputs_of(mended)
    assert output["sqnr_db"] == pytest.approx(33.2, abs=0.5)


@pytest.mark.parametrize("target", ["tensorrt", "openvino"])
def test_no_other_runtime_is_timed(tmp_path, target):
    planted_heads.save(planted_heads.plant("concat", 10), tmp_path / "m.onnx")
    np.savez(tmp_path / "c.npz", x=planted_heads.plant("concat", 10).samples(16))
    spec = {"target": target, "profile": {"runs": 2}}
    report, _ = run(tmp_path, tmp_path / "m.onnx", tmp_path / "c.npz", spec)
    assert report["profile"] is None
    assert "profile_skipped" in codes(report) and "slower_than_float" not in codes(report)
    (tmp_path / "s.json").write_text(json.dumps({**spec, "accept": {"max_latency_ratio": 9}}))
    done = subprocess.run(
        [*QUANTIZE, tmp_path / "m.onnx", "--spec", tmp_path / "s.json",
         "--calibration", tmp_path / "c.npz", "-o", tmp_path / "q.onnx"],
        capture_output=True, text=True, env={**os.environ, "QDQD_ENGINE_OPENVINO": ""})
    assert done.returncode != 0 and done.stderr.splitlines()[-1].startswith("qdq: unsupported: ")
    assert "/accept/max_latency_ratio" in done.stderr


def test_the_values_tell_where_the_graph_does_not(tmp_path):
    """One layer makes boxes and scores: only their magnitudes tell them apart."""
    b = planted_heads.Builder(3)
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(12, 64, 1, 1)).astype(np.float32) / 8
    weight[:4] *= 1000
    y = planted_heads.trunk(b)
    b.node("Relu", [b.node("Conv", [y, b.constant(weight)])])
    model = b.model("y", ["n", 12, 16, 16])
    planted = planted_heads.Planted(model, [lambda v: v[:, :4], lambda v: v[:, 4:]])
    report, _ = quantize(tmp_path, planted, {"target": "onnxruntime", "recipe": "none"})
    [output] = outputs_of(report)
    assert [(s["axis"], s["begin"], s["end"]) for s in output["slices"]] == [(1, 0, 4), (1, 4, 12)]
    assert onnx.load(tmp_path / "q.onnx") and "slice_lost" in codes(report)
    assert report["summary"]["verdict"] == "poor"
