# SPDX-License-Identifier: Apache-2.0
"""The fastest placement by measured costs, and the frontier: targets onnxruntime and openvino.

Times differ from run to run: these tests say nothing of how fast a result is, only of what follows
from the times that the report has."""

import json
import os
import subprocess
from pathlib import Path

import openvino
import pytest

from service import CALIBRATION, DATA, QUANTIZE

[OPENVINO] = (Path(openvino.__file__).parent / "libs").glob("libopenvino_c.so.*")
MEASURED = {"integers", "rules", "cut", "search", "unquantized"}


def quantize(folder, model="resnet", data=CALIBRATION, **spec):
    """Returns the report and the model."""
    (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", **spec}))
    command = [*QUANTIZE, DATA / f"glyph_{model}.onnx", "--spec", "spec.json",
               "-o", "out.onnx", "--report", "report.json"]
    done = subprocess.run([*command, *(["--calibration", data] if data else [])], cwd=folder,
                          env={**os.environ, "QDQD_ENGINE_OPENVINO": str(OPENVINO),
                               "MALLOC_PERTURB_": "85"},  # so that memory that was freed is not right by chance
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "report.json").read_text()), (folder / "out.onnx").read_bytes()


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("model", ["resnet", "mobilenet", "se", "vit"])
def test_the_result_is_the_fastest_that_is_good(tmp_path, model, target):
    report, _ = quantize(tmp_path, model, target=target, frontier={"points": 1})
    assert report["costs"] in ("measured", "kept")
    steps = [step for step in report["recipe"] if step["step"] in MEASURED]
    kept, = (step for step in steps if step["kept"])
    assert [step["step"] for step in steps[:3]] == ["integers", "rules", "unquantized"]
    good = [step for step in steps if step["latency_ratio"] is not None and
            (step["sqnr_db"] is None or step["sqnr_db"] >= 25)]
    fastest = min(step["latency_ratio"] for step in good)
    if kept["step"] == "unquantized":
        assert fastest >= 0.98 and report["summary"]["verdict"] is None
    else:
        assert kept in good and kept["latency_ratio"] <= 1.031 * fastest
    left = {name for entry in kept["spec"].get("layers", []) for name in entry["name"]}
    quantized = {layer["name"] for layer in report["layers"]
                 if layer["quantized_inputs"] or layer["weight_quantized"]}
    assert not left & quantized


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_bound_that_all_in_integers_meets_is_met(tmp_path, target):
    """The bound is so much above what all layers in integers take that no noise hides that they
    meet it; the result by the rules alone may be beyond it or not."""
    ends, _ = quantize(tmp_path, target=target, frontier={"points": 1})
    integers = ends["recipe"][0]["latency_ratio"]
    report, _ = quantize(tmp_path, target=target, recipe={"min_sqnr_db": 25, "max_latency_ratio": 2 * integers})
    kept, = (step for step in report["recipe"] if step["kept"])
    assert kept["step"] in MEASURED and kept["latency_ratio"] <= 2 * integers
    assert not [w for w in report["warnings"] if w["code"] == "recipe_not_judged"]


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_each_point_of_the_frontier_can_be_made(tmp_path, target):
    report, _ = quantize(tmp_path, "vit", target=target, frontier={"points": 4}, evaluate={"samples": 4})
    points = report["frontier"]
    assert 1 <= len(points) <= 4
    times = [point["latency_ratio"] for point in points]
    decibels = [point["sqnr_db"] or 1000 for point in points]
    assert times == sorted(times) and decibels == sorted(decibels)
    for point in points:
        again, _ = quantize(tmp_path, "vit", **{**point["spec"], "evaluate": {"samples": 4}})
        deployed, = again["evaluation"]["deployed"]["outputs"]
        assert again["recipe"] is None
        if point["sqnr_db"] is None:  # the float model, in which OpenVINO may find other kernels
            assert deployed["sqnr_db"] is None or deployed["sqnr_db"] > 100
        else:  # that of the 5th percentile of other samples, which are few, as these are
            assert deployed["samples"]["worst_db"] - 4 <= point["sqnr_db"] <= deployed["sqnr_db"] + 4


def test_a_frozen_spec_repeats_the_bytes(tmp_path, daemon):
    model, data = (daemon.upload(kind, path) for kind, path in (
        ("models", DATA / "glyph_vit.onnx"), ("datasets", CALIBRATION)))
    job = daemon.submit(model=model, calibration=data, spec={"target": "onnxruntime", "frontier": True})
    daemon.succeeded(job)
    assert {step["step"] for step in daemon.report(job)["recipe"]} >= {"integers", "rules"}
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["recipe"] == "none" and "frontier" not in frozen
    again = daemon.submit(model=model, spec=frozen)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)


def test_a_measured_job_answers_no_other_one(daemon):
    model, data = (daemon.upload(kind, path) for kind, path in (
        ("models", DATA / "glyph_resnet.onnx"), ("datasets", CALIBRATION)))
    for spec, same in (({"target": "onnxruntime", "recipe": "none"}, True),
                       ({"target": "onnxruntime"}, False),
                       ({"target": "onnxruntime", "frontier": True}, False)):
        reports = []
        for _ in range(2):
            job = daemon.submit(model=model, calibration=data, spec=spec)
            daemon.succeeded(job)
            reports.append(daemon.report(job)["timings"])
        assert (reports[0] == reports[1]) == same


def test_rules_that_the_spec_switches_stay_switched(tmp_path):
    """The placement of the rules is that of the rules that the spec leaves on."""
    rules = {"V8": True, "V9": False, "V10": False, "V11": False}
    report, _ = quantize(tmp_path, "mobilenet", target="openvino", rules=rules, frontier={"points": 1})
    ends = {step["step"]: step for step in report["recipe"]}
    assert ends["rules"]["latency_ratio"] != ends["integers"]["latency_ratio"]
    assert ends["rules"]["sqnr_db"] > ends["integers"]["sqnr_db"]


def test_without_data_nothing_is_measured(tmp_path):
    report, first = quantize(tmp_path, data=None, calibration={"random_samples": 4}, frontier=True)
    assert report["recipe"] is None and report["frontier"] is None
    assert "frontier_not_measured" in {warning["code"] for warning in report["warnings"]}
    assert quantize(tmp_path, data=None, calibration={"random_samples": 4})[1] == first


@pytest.mark.parametrize("spec, text", [
    ({"target": "tensorrt", "recipe": "none", "frontier": True}, "/frontier"),
    ({"target": "tensorrt", "recipe": "auto"}, "unless a frontier or recipe.max_latency_ratio is asked for"),
    ({"target": "openvino", "recipe": "none", "frontier": True}, "/frontier"),
    ({"recipe": "none", "frontier": True}, "/frontier"),
    ({"activations": {"dtype": "int16"}, "frontier": True}, "/frontier"),
    ({"frontier": {"points": 33}}, "at most 32"),
    ({"frontier": {"points": 0}}, "/frontier/points"),
    ({"frontier": {"point": 3}}, "/frontier/point"),
])
def test_a_frontier_that_cannot_be_measured_is_refused(tmp_path, spec, text):
    (tmp_path / "spec.json").write_text(json.dumps({"target": "onnxruntime", **spec}))
    done = subprocess.run([*QUANTIZE, DATA / "glyph_resnet.onnx", "--spec", "spec.json",
                           "--calibration", CALIBRATION, "-o", "out.onnx"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode and text in done.stderr and not (tmp_path / "out.onnx").exists()
