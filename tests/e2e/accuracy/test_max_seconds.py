# SPDX-License-Identifier: Apache-2.0
"""max_seconds ends a stage with the best that was found so far; such a job depends on time."""

import json
import subprocess
import time

import pytest

import nets
from service import CALIBRATION, DATA, FEW_SAMPLES, QUANTIZE, problem

pytestmark = pytest.mark.long
SEARCH = {"search": {"min_sqnr_db": 60, "max_seconds": 1}}
RANKING = {"sensitivity": {"samples": 256, "max_seconds": 1}}
RANGES = {"calibration": {"method": "output_mse", "max_seconds": 1}}


def quantize(folder, model="se", data=CALIBRATION, **spec):
    (folder / "spec.json").write_text(json.dumps(spec))
    begin = time.monotonic()
    done = subprocess.run([*QUANTIZE, DATA / f"glyph_{model}.onnx", "--spec", "spec.json",
                           "--calibration", data, "-o", "out.onnx", "--report", "report.json"],
                          cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)
    took = time.monotonic() - begin
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    return report, (folder / "out.onnx").read_bytes(), took


def is_late(report, pointer, n=1):
    found = [w["detail"] for w in report["warnings"] if w["code"] == "max_seconds_reached"]
    return len(found) == n and any(text.startswith(pointer) for text in found)


def test_a_search_keeps_the_best_so_far(tmp_path):
    report, _, _ = quantize(tmp_path, evaluate=False, **SEARCH)
    assert is_late(report, "/search/max_seconds")
    assert report["timings"]["search"] < 25
    found = report["search"]
    assert not found["met"] and len(found["curve"]) == len(found["float_layers"]) + 1


def test_an_evaluation_runs_at_least_one_sample(tmp_path):
    report, _, _ = quantize(tmp_path, target="tensorrt",
                            evaluate={"samples": 256, "max_seconds": 1})
    done, late = report["evaluation"]["samples"], is_late(report, "/evaluate/max_seconds")
    assert late == (done < 256) and done > 0
    assert report["spec"]["evaluate"] == {"samples": 256, "max_seconds": 1}


def test_a_frozen_spec_knows_of_no_time(daemon):
    model, data = (daemon.upload(kind, path) for kind, path in (
        ("models", DATA / "glyph_se.onnx"), ("datasets", DATA / "calib_256.npz")))
    spec = {"evaluate": False, "search": {"min_sqnr_db": 80, "max_seconds": 1},
            "sensitivity": {"max_seconds": 1},
            "calibration": {"method": "output_mse", "max_seconds": 1}}
    job = daemon.submit(model=model, calibration=data, spec=spec)
    daemon.succeeded(job)
    assert is_late(daemon.report(job), "/search/max_seconds", 3)
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert "search" not in frozen and "max_seconds" not in json.dumps(frozen)
    again = daemon.submit(model=model, spec=frozen)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)


def test_a_ranking_has_null_for_what_was_not_measured(tmp_path):
    report, _, _ = quantize(tmp_path, evaluate=False, **RANKING)
    assert is_late(report, "/sensitivity/max_seconds")
    assert report["timings"]["sensitivity"] < 25
    rows = report["sensitivity"]
    known = [row["sqnr_db_alone"] for row in rows if row["sqnr_db_alone"] is not None]
    assert known == sorted(known) and rows[-1]["gain_db"] is None
    assert all(row["sqnr_db_alone"] is not None for row in rows[:len(known)])


def test_ranges_that_were_not_reached_stay(tmp_path):
    report, _, _ = quantize(tmp_path, evaluate=False, **RANGES)
    assert is_late(report, "/calibration/max_seconds")
    assert report["timings"]["refine"] < 25
    refined = report["refinement"]
    assert refined["sqnr_db_after"] >= refined["sqnr_db_before"]
    assert refined["adjusted"] < len(report["tensors"])


def test_a_bound_that_is_not_reached_changes_nothing(tmp_path):
    spec = {"search": {"min_sqnr_db": 26, "samples": 16}, "evaluate": False}
    _, plain, _ = quantize(tmp_path, data=FEW_SAMPLES, **spec)
    spec["search"]["max_seconds"] = 600
    report, bounded, _ = quantize(tmp_path, data=FEW_SAMPLES, **spec)
    assert bounded == plain and not is_late(report, "/")


def test_a_recipe_with_seconds_alone_is_auto(tmp_path):
    report, _, _ = quantize(tmp_path, "resnet", FEW_SAMPLES, target="onnxruntime",
                            recipe={"max_seconds": 600})
    other, _, _ = quantize(tmp_path, "resnet", FEW_SAMPLES, target="onnxruntime",
                           recipe="auto")
    assert report["spec"]["recipe"] == {"max_seconds": 600}
    assert report["recipe"] == other["recipe"]


def test_a_timed_job_neither_joins_nor_answers(daemon):
    model, data = daemon.upload("models", nets.block_net()), daemon.upload(
        "datasets", nets.samples())
    spec = {"evaluate": False, "search": {"min_sqnr_db": 5, "max_seconds": 60}}
    jobs = [daemon.submit(model=model, calibration=data, spec=spec) for _ in range(2)]
    for job in jobs:
        assert daemon.succeeded(job)["cached_from"] is None
    del spec["search"]["max_seconds"]
    jobs = [daemon.submit(model=model, calibration=data, spec=spec) for _ in range(2)]
    assert [daemon.succeeded(job)["cached_from"] for job in jobs] == [None, jobs[0]]


@pytest.mark.parametrize("member", ["search", "sensitivity", "calibration", "recipe"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "1"])
def test_what_is_no_time(daemon, member, value):
    model = daemon.upload("models", nets.block_net())
    inner = {"min_sqnr_db": 1} if member in ("search", "recipe") else {}
    spec = {member: {**inner, "max_seconds": value}, "target": "onnxruntime"}
    document = problem(daemon.post("/v1/plan", json={"model": model, "spec": spec}), 422,
                       "invalid_spec")
    assert document["errors"][0]["pointer"] == f"/{member}/max_seconds"
