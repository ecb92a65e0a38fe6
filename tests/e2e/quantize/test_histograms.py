# SPDX-License-Identifier: Apache-2.0
"""The histograms of a report are those of NumPy, with the chosen range and what it costs."""

import base64
import hashlib
import io
import json
import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

import nets
from service import QUANTIZE, problem


def observed(names):
    """Returns all values of each tensor of nets.block_net() over nets.samples()."""
    model = onnx.load_from_string(nets.block_net())
    made = {output for node in model.graph.node for output in node.output}
    outputs = [name for name in names if name in made]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in outputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    data = np.load(io.BytesIO(nets.samples()))[nets.INPUT]
    runs = [session.run(None, {nets.INPUT: sample[None]}) for sample in data]
    values = {name: np.concatenate([run[i].ravel() for run in runs])
              for i, name in enumerate(outputs)}
    return {nets.INPUT: data.ravel(), **values}


def check(report):
    """Compares each histogram with the tensor's values."""
    tensors = {row["name"]: row for row in report["tensors"]}
    rows = report["histograms"]
    assert sorted(row["tensor"] for row in rows) == sorted(tensors)
    values = observed(tensors)
    for row in rows:
        data, tensor = values[row["tensor"]].astype(np.float64), tensors[row["tensor"]]
        low, high = row["range"]
        assert [low, high] == [tensor["min"], tensor["max"]]
        assert row["magnitudes"] == (data.min() < 0 < data.max())
        shown = abs(data) if row["magnitudes"] else data
        assert row["low"] <= shown.min() and shown.max() <= row["high"]
        assert 64 < len(row["counts"]) <= 256
        wanted, _ = np.histogram(shown, len(row["counts"]), (row["low"], row["high"]))
        # ONNX Runtime's fused kernels round differently, so a value may cross an edge.
        assert abs(wanted - row["counts"]).sum() <= 2 + len(data) // 1000
        little = 1e-6 * max(-low, high)
        outside = ((data < low - little) | (data > high + little)).mean()
        assert row["clipped"] == pytest.approx(outside, abs=2e-3)
        steps = np.clip(np.round(data / tensor["scale"]), -128, 127) * tensor["scale"]
        sqnr = 10 * np.log10((data ** 2).sum() / ((data - steps) ** 2).sum())
        assert row["sqnr_db"] == pytest.approx(sqnr, abs=1)


def columns_of(page):
    """Returns where each tensor's chosen range begins and ends in its drawing, from 0 to 1."""
    rows = re.findall(r"<tr><td><code>([^<]*)</code>(?:(?!</tr>).)*?"
                      r'<svg class="values".*?<rect x="([\d.]+)" width="([\d.]+)"', page, re.S)
    return {name: (float(x) / 128, (float(x) + float(width)) / 128) for name, x, width in rows}


@pytest.mark.parametrize("method", ["mse", "minmax", "entropy"])
def test_the_command_writes_them_with_a_page(tmp_path, method):
    (tmp_path / "in.onnx").write_bytes(nets.block_net())
    (tmp_path / "in.npz").write_bytes(nets.samples())
    (tmp_path / "spec.json").write_text(json.dumps({"calibration": {"method": method}}))
    run = [*QUANTIZE, tmp_path / "in.onnx", "--calibration", tmp_path / "in.npz", "-o",
           tmp_path / "out.onnx", "--spec", tmp_path / "spec.json", "--report", tmp_path / "report.json"]
    subprocess.run([*run, "--html", tmp_path / "page.html"], check=True, timeout=100)
    report = json.loads((tmp_path / "report.json").read_text())
    check(report)
    drawn = columns_of((tmp_path / "page.html").read_text())
    assert len(drawn) == len(report["histograms"])
    for row in report["histograms"]:
        low, high = row["range"]
        if row["magnitudes"]:
            low, high = 0, max(-low, high)
        width = row["high"] - row["low"]
        assert drawn[row["tensor"]] == pytest.approx(
            ((low - row["low"]) / width, (high - row["low"]) / width), abs=2e-3)
    subprocess.run(run, check=True, timeout=100)
    assert "histograms" not in json.loads((tmp_path / "report.json").read_text())


@pytest.mark.shares_daemon
def test_a_job_keeps_them_beside_its_report(daemon):
    job = daemon.submit(model=daemon.upload("models", nets.block_net()),
                        calibration=daemon.upload("datasets", nets.samples()), fresh=True)
    daemon.succeeded(job)
    path = f"/v1/jobs/{job}/report"
    plain, whole = daemon.get(path), daemon.get(path + "?histograms=1")
    for answer in (plain, whole):
        digest = base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
        assert answer.headers["Repr-Digest"] == f"sha-256=:{digest}:"
    report = whole.json()
    check(report)
    del report["histograms"]
    assert plain.json() == report
    head = daemon.request("HEAD", path)
    assert int(head.headers["Content-Length"]) == len(plain.content)
    page = daemon.get(path, headers={"Accept": "text/html"}).text
    assert len(columns_of(page)) == len(report["tensors"])
    problem(daemon.get(path + "?histograms=2"), 400, "bad_request")
    problem(daemon.get(path + "?histograms=yes"), 400, "bad_request")


@pytest.mark.shares_daemon
def test_given_ranges_have_none(daemon):
    """The same for observations that are used again, which have them."""
    ids = {"model": daemon.upload("models", nets.block_net()),
           "calibration": daemon.upload("datasets", nets.samples())}
    job = daemon.submit(**ids, spec={"calibration": {"method": "moving_average"}})
    daemon.succeeded(job)
    again = daemon.get(f"/v1/jobs/{job}/report?histograms=1").json()
    assert len(again["histograms"]) == len(again["tensors"])
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    job = daemon.submit(model=ids["model"], spec=frozen)
    daemon.succeeded(job)
    assert daemon.get(f"/v1/jobs/{job}/report?histograms=1").json()["histograms"] is None
    page = daemon.get(f"/v1/jobs/{job}/report", headers={"Accept": "text/html"}).text
    assert "The report has no histograms" in page
