# SPDX-License-Identifier: Apache-2.0
"""progress.eta_s, and its display by qdq on a terminal."""

import io
import os
import re
import time

import numpy as np
import pytest

import nets
from service import ENDED, QUANTIZE
from terminal import run_on_terminal


SAMPLES = 240_000  # the first speed is told after half a second of samples


@pytest.fixture(scope="module")
def many():
    """Returns enough samples for some seconds of work."""
    values = np.random.default_rng(9).normal(0, 1, [SAMPLES, *nets.SHAPE])
    file = io.BytesIO()
    np.savez(file, **{nets.INPUT: values.astype(np.float32)})
    return file.getvalue()


def watch(daemon, job):
    """Returns the job's progress at each look: (seconds since the first, progress)."""
    began, seen = time.monotonic(), []
    while True:
        document = daemon.job(job)
        if document["state"] in ENDED:
            assert document["state"] == "succeeded", document
            assert document["progress"] is None
            return seen
        if document["progress"]:
            seen.append((time.monotonic() - began, document["progress"]))
        time.sleep(0.02)


@pytest.mark.alone
def test_eta_of_a_job(daemon, many):
    model = daemon.upload("models", nets.block_net())
    data = daemon.upload("datasets", many)
    spec = {"evaluate": {"samples": 5000}, "calibration": {"max_samples": 200_000}}
    first = watch(daemon, daemon.submit(model=model, calibration=data, spec=spec))
    # There is no estimate before the first speed; later ones become smaller.
    assert all(p["eta_s"] is None for _, p in first if p["total"] == 0
               and p["stage"] in ("load", "plan", "calibrate"))
    counted = [p for _, p in first if p["stage"] == "calibrate" and p["total"]]
    assert counted[0]["eta_s"] is None
    told = [p["eta_s"] for p in counted if p["eta_s"] is not None]
    assert told and min(told) <= told[0] < 600
    # The next job with that model has an estimate from its first count on.
    spec["calibration"]["max_samples"] = 40_000
    second = watch(daemon, daemon.submit(model=model, calibration=data, spec=spec))
    counted = [p for _, p in second if p["stage"] == "calibrate" and p["total"]]
    assert counted[0]["eta_s"] is not None
    # A job with another model has none.
    other = daemon.upload("models", nets.block_net().replace(b"logits", b"LOGITS"))
    third = watch(daemon, daemon.submit(model=other, calibration=data, spec=spec))
    counted = [p for _, p in third if p["stage"] == "calibrate" and p["total"]]
    assert counted[0]["eta_s"] is None


def test_qdq_shows_it(tmp_path, many):
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(many)
    text = run_on_terminal([*QUANTIZE, "net.onnx", "--calibration", "data.npz"], tmp_path,
                           os.environ)
    lines = text.split("\r")
    counted = [line for line in lines if "calibrate" in line and f"/{SAMPLES}" in line]
    assert counted and "left" not in counted[0]
    assert any(re.search(rf"\d+/{SAMPLES}  (\d+ min )?\d+ s left", line) for line in counted)
