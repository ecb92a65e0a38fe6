# SPDX-License-Identifier: Apache-2.0
"""The figures that a job has of candidates, results and data serve a later job of the same model and
data (engine/stages/attempt/kept_times.h): the report says the same, and nothing runs again.

Whether figures were kept or computed shows where the file is changed: a job that reads it tells what is
written there."""

import json
import os
import subprocess

import numpy as np
import pytest

from kept_times import kept_file, rows, write
from service import CALIBRATION, DATA, QUANTIZE

MODEL = DATA / "glyph_resnet.onnx"
TARGETS = ["onnxruntime", "tensorrt"]


def quantize(folder, target="onnxruntime", data=CALIBRATION, **spec):
    """Returns the report and the model."""
    (folder / "spec.json").write_text(json.dumps({"target": target, **spec}))
    done = subprocess.run([*QUANTIZE, MODEL, "--spec", "spec.json", "--calibration", data, "-o", "out.onnx",
                           "--report", "report.json"], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")})
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "report.json").read_text()), (folder / "out.onnx").read_bytes()


def said(report):
    """Returns what a report says of the result, without what it says of the work."""
    return {name: value for name, value in report.items()
            if name not in ("stages", "timings", "calibration", "costs")}


def multiply_noise(path, factor):
    """Multiplies the noise of the first output in the longest row of numbers, which is that of an
    evaluation: it follows a head of four numbers, three flags and the signal."""
    head, body = rows(path)
    _, begin = max((int(line.split()[2]), i) for i, line in enumerate(body) if line.startswith("numbers "))
    at = begin + 1 + 4 + 3 + 1
    body[at] = repr(float(body[at]) * factor)
    write(path, [*head, *body])


@pytest.mark.parametrize("target", TARGETS)
def test_a_repeated_job_says_the_same_and_runs_nothing_to_calibrate(tmp_path, target):
    first, result = quantize(tmp_path, target)
    again, same = quantize(tmp_path, target)
    assert same == result and said(again) == said(first)
    assert first["calibration"]["inferences"] > 0 and again["calibration"]["inferences"] == 0
    assert again["calibration"]["samples"] == first["calibration"]["samples"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_figures_are_those_that_were_kept(tmp_path, target):
    first, _ = quantize(tmp_path, target)
    multiply_noise(kept_file(tmp_path / "cache"), 100)
    again, _ = quantize(tmp_path, target)
    before, after = (report["evaluation"]["outputs"][0]["sqnr_db"] for report in (first, again))
    assert after == pytest.approx(before - 20, abs=0.01)


@pytest.mark.parametrize("damage", ["count", "cut", "word"])
def test_figures_of_another_form_are_computed_again(tmp_path, damage):
    """The sum of the file is right, so that only the form of the row tells."""
    first, result = quantize(tmp_path, "tensorrt")
    path = kept_file(tmp_path / "cache")
    head, body = rows(path)
    n, i = max((int(line.split()[2]), i) for i, line in enumerate(body) if line.startswith("numbers "))
    if damage == "count":
        body[i + 1] = "0.5"
    elif damage == "cut":
        body[i] = " ".join([*body[i].split()[:2], str(n - 1)])
        del body[i + n]
    else:
        body[i + 1] = "none"
    write(path, [*head, *body])
    again, same = quantize(tmp_path, "tensorrt")
    assert same == result and said(again) == said(first)


def test_other_data_are_judged_by_themselves(tmp_path):
    first, _ = quantize(tmp_path)
    data = dict(np.load(CALIBRATION))
    np.savez(tmp_path / "other.npz", **{name: array[::-1] for name, array in data.items()})
    other, _ = quantize(tmp_path, data=tmp_path / "other.npz")
    assert other["calibration"]["inferences"] > 0
    assert other["evaluation"]["outputs"] != first["evaluation"]["outputs"]


def test_other_samples_are_judged_by_themselves(tmp_path):
    first, _ = quantize(tmp_path, evaluate={"samples": 8})
    more, _ = quantize(tmp_path, evaluate={"samples": 16})
    assert (first["evaluation"]["samples"], more["evaluation"]["samples"]) == (8, 16)


def test_damaged_observations_are_made_again(tmp_path):
    first, result = quantize(tmp_path, "tensorrt")
    path, = (tmp_path / "cache/qdq/observations").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    again, same = quantize(tmp_path, "tensorrt")
    assert same == result and again["calibration"]["inferences"] == first["calibration"]["inferences"]


def test_moments_are_not_kept_in_the_cache(tmp_path):
    quantize(tmp_path, "tensorrt", weights={"rounding": "gptq"})
    assert not (tmp_path / "cache/qdq/observations").exists()


@pytest.mark.parametrize("target", TARGETS)
def test_a_service_keeps_figures_and_a_fresh_job_does_not_read_them(daemon, target):
    model, data = (daemon.upload(kind, path) for kind, path in (("models", MODEL), ("datasets", CALIBRATION)))
    reports, results = [], []
    # a member that changes no result makes the second job another one than the first
    for spec, fresh in (({}, False), ({"accept": {"min_sqnr_db": 1}}, False), ({}, True)):
        job = daemon.submit(model=model, calibration=data, spec={"target": target, **spec}, fresh=fresh)
        daemon.succeeded(job)
        reports.append(daemon.report(job))
        results.append(daemon.result(job))
    assert [report["calibration"]["inferences"] > 0 for report in reports] == [True, False, True]
    # the other target's placement goes by times, which a fresh job measures again
    if target == "tensorrt":
        assert results[0] == results[2]
        assert reports[0]["evaluation"]["outputs"] == reports[2]["evaluation"]["outputs"]
