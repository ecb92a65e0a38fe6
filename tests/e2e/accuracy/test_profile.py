# SPDX-License-Identifier: Apache-2.0
"""profile: the latency of both models, and the bound for its ratio."""

import json
import statistics
import subprocess
import time

import numpy as np
import pytest

import judge
import nets
from service import DATA, INSTALLED


def quantize(tmp_path, spec, data=True):
    """Runs qdq; returns the process and the report."""
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    given = ["--calibration", "data.npz"] if data else []
    done = subprocess.run(
        [INSTALLED / "bin" / "qdq", "quantize", "net.onnx", "--spec", "spec.json",
         "--report", "report.json", *given], cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60)
    return done, json.loads((tmp_path / "report.json").read_text())


def test_off_by_default(tmp_path):
    done, report = quantize(tmp_path, {})
    assert done.returncode == 0 and report["profile"] is None
    assert "profile" not in report["spec"]


@pytest.mark.parametrize("spec,data", [
    ({"profile": {"runs": 7}}, True),
    ({"profile": {"runs": 7, "threads": 2, "batch": 3}, "recipe": "none"}, True),
    ({"profile": {"runs": 7}, "activations": "none"}, False)],
    ids=["recipe", "threads", "without data"])
def test_figures(tmp_path, spec, data):
    done, report = quantize(tmp_path, {"target": "onnxruntime", **spec}, data)
    assert done.returncode == 0, done.stderr
    profile = report["profile"]
    wanted = {"runs": 50, "threads": 1, "batch": 1, **spec["profile"]}
    assert {name: profile[name] for name in wanted} == wanted
    assert report["spec"]["profile"] == wanted
    for side in "float", "quantized":
        assert 0 < profile[side]["p50_ms"] <= profile[side]["p90_ms"]
        assert profile[side]["peak_bytes"] > 0
        times = [n["ms"] for n in profile["nodes"] if n["model"] == side]
        assert 0 < len(times) <= 20 and times == sorted(times, reverse=True)
    ratio = profile["quantized"]["p50_ms"] / profile["float"]["p50_ms"]
    assert profile["ratio"] == pytest.approx(ratio)
    assert profile["ratio_low"] <= profile["ratio"] <= profile["ratio_high"]
    ops = {row["op"] for row in profile["operators"]}
    assert {node["op"] for node in profile["nodes"]} <= ops
    assert set(report["kernels"]["ops"]) <= ops
    assert profile["runtime"]["name"] == "onnxruntime"
    if data:
        assert f"in onnxruntime {profile['runtime']['version']} on " in done.stdout
    assert report["timings"]["profile"] > 0
    slower = [w for w in report["warnings"] if w["code"] == "slower_than_float"]
    assert len(slower) == (profile["ratio_low"] > 1)


def test_kernels_are_those_of_the_session_that_judges(tmp_path):
    """They are the same from an evaluation, a profile, both, and a session for them alone."""
    spec = {"target": "onnxruntime", "recipe": "none"}
    judging = {"evaluate": True}, {"evaluate": False, "profile": {"runs": 5}}, {
        "evaluate": True, "profile": {"runs": 5}}
    reports = [quantize(tmp_path, {**spec, **how})[1] for how in judging]
    assert reports[0]["kernels"]["integer"] > 0
    assert all(report["kernels"] == reports[0]["kernels"] for report in reports)
    unjudged = quantize(tmp_path, {**spec, "evaluate": False})[1]
    assert unjudged["kernels"] == reports[0]["kernels"]


@pytest.mark.parametrize("bound,met", [(1000, True), (0, False)])
def test_bound(tmp_path, bound, met):
    done, report = quantize(tmp_path, {"target": "onnxruntime", "recipe": "none",
                                       "accept": {"max_latency_ratio": bound}})
    assert done.returncode == (0 if met else 1)
    assert report["profile"]["runs"] == 50
    assert report["gates"] == [
        {"output": None, "name": "max_latency_ratio", "wanted": bound,
         "measured": report["profile"]["ratio"], "met": met}]
    assert met or report["summary"]["verdict"] == "poor"


def test_through_the_daemon(daemon):
    """A caged worker, which opens no path, measures everything, too."""
    job = daemon.submit(model=daemon.upload("models", nets.block_net()),
                        calibration=daemon.upload("datasets", nets.samples()),
                        spec={"target": "onnxruntime", "profile": {"runs": 5}})
    daemon.succeeded(job)
    report = daemon.report(job)
    profile = report["profile"]
    assert profile["ratio_low"] <= profile["ratio"] <= profile["ratio_high"]
    assert "profile_without_nodes" not in {w["code"] for w in report["warnings"]}
    assert {node["model"] for node in profile["nodes"]} == {"float", "quantized"}
    for side in "float", "quantized":
        assert profile[side]["peak_bytes"] > 0
        assert sum(row[f"{side}_ms"] for row in profile["operators"]) > 0
    markdown = daemon.get(f"/v1/jobs/{job}/report", headers={"Accept": "text/markdown"})
    assert "## Latency" in markdown.text
    assert f"- runtime: onnxruntime {profile['runtime']['version']}" in markdown.text
    assert f"- processor: {profile['processor']}" in markdown.text


def ratio_of_onnxruntime(net, result, feed, runs):
    """Times both models by turns as any user of onnxruntime would."""
    sessions = [judge.session(str(path)) for path in (net, result)]
    times = [[], []]
    for turn in range(runs + 3):
        for side in (turn % 2, 1 - turn % 2):
            start = time.perf_counter()
            sessions[side].run(None, feed)
            if turn >= 3:
                times[side].append(time.perf_counter() - start)
    return statistics.median(times[1]) / statistics.median(times[0])


@pytest.mark.alone
def test_ratio_is_that_of_onnxruntime(tmp_path):
    """The bound is 5 %. Other work of the machine may spoil one measurement of the two, so
    the closest of a few counts."""
    net, data = DATA / "glyph_resnet.onnx", DATA / "calib_256.npz"
    (tmp_path / "spec.json").write_text(json.dumps(
        {"target": "onnxruntime", "recipe": "none", "profile": {"runs": 100},
         "evaluate": False, "calibration": {"max_samples": 8, "method": "minmax"}}))
    feed = {"input": np.load(data)["input"][:1]}
    gaps = []
    while len(gaps) < 24 and min(gaps, default=1) > 0.05:
        subprocess.run(
            [INSTALLED / "bin" / "qdq", "quantize", net, "--spec", "spec.json", "-o",
             "out.onnx", "--report", "report.json", "--calibration", data], cwd=tmp_path,
            stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
        said = json.loads((tmp_path / "report.json").read_text())["profile"]["ratio"]
        ran = ratio_of_onnxruntime(net, tmp_path / "out.onnx", feed, 100)
        gaps.append(abs(said / ran - 1))
    assert min(gaps) <= 0.05, gaps
