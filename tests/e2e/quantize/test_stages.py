# SPDX-License-Identifier: Apache-2.0
"""The account of each stage in a report: threads, bytes, and the peak of this job alone."""

import io
import json
import subprocess

import numpy as np
import onnx
from onnx import numpy_helper

from service import DATA, FEW_SAMPLES, INSTALLED

MODEL = DATA / "glyph_resnet.onnx"


def used(report):
    return {stage["name"]: stage for stage in report["stages"]}


def test_threads_and_bytes(tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(
        {"target": "onnxruntime", "recipe": "none", "weights": {"rounding": "gptq"},
         "profile": {"runs": 1, "threads": 1}}))
    done = subprocess.run(
        [INSTALLED / "bin" / "qdq", "quantize", MODEL, "--threads", "3", "--spec",
         tmp_path / "spec.json", "--calibration", FEW_SAMPLES, "-o", tmp_path / "q.onnx",
         "--report", tmp_path / "report.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    stages = used(json.loads((tmp_path / "report.json").read_text()))
    model = MODEL.stat().st_size
    samples = sum(array.nbytes for array in np.load(FEW_SAMPLES).values() if array.ndim == 4)
    result = (tmp_path / "q.onnx").stat().st_size
    threads = {name: stage["threads"] for name, stage in stages.items()}
    assert threads["load"] == threads["plan"] == threads["profile"] == 1
    for name in ("calibrate", "quantize", "write", "evaluate"):
        assert threads[name] == 3, name
    assert stages["load"]["bytes"] == model
    # The model is loaded and all samples run; in the evaluation beside the result.
    assert model + samples <= stages["calibrate"]["bytes"] < 2 * model + 2 * samples
    assert stages["evaluate"]["bytes"] >= model + result + samples
    assert stages["profile"]["bytes"] >= model + result
    assert stages["plan"]["bytes"] == 0


def test_a_job_does_not_report_the_memory_of_an_earlier_one(service):
    """Both jobs run in one worker process."""
    large = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 17]> net (float[n,4000] x) => (float[n,5000] y) '
        "{ y = MatMul (x, w) }")
    large.graph.initializer.append(
        numpy_helper.from_array(np.ones((4000, 5000), np.float32), "w"))
    buffer = io.BytesIO()
    onnx.save(large, buffer)
    daemon = service(workers_count=1)
    peaks = []
    for data in (buffer.getvalue(), MODEL.read_bytes()):
        job = daemon.ended(daemon.submit(model=daemon.upload("models", data), spec={
            "activations": "none", "evaluate": False}))
        assert job["state"] == "succeeded", job
        report = daemon.get(f"/v1/jobs/{job['id']}/report").json()
        peaks.append([stage["peak_bytes"] for stage in report["stages"]])
        assert peaks[-1] == sorted(peaks[-1])
    assert peaks[0][-1] > 80_000_000  # the mapped file
    assert peaks[1][-1] < peaks[0][-1] - 40_000_000
