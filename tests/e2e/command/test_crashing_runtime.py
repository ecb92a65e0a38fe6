# SPDX-License-Identifier: Apache-2.0
"""A model at which OpenVINO crashes, or which it reads for ever, does not end the command."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

import fake_openvino
from service import INSTALLED


def quantize(folder, what, **environment):
    onnx.save(fake_openvino.model(what), folder / "m.onnx")
    np.savez(folder / "x.npz", x=fake_openvino.SAMPLES)
    (folder / "spec.json").write_text(json.dumps(fake_openvino.SPEC))
    return subprocess.run(
        [INSTALLED / "bin/qdq", "quantize", folder / "m.onnx", "--spec", folder / "spec.json",
         "--calibration", folder / "x.npz", "-o", folder / "q.onnx",
         "--report", folder / "report.json"],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "QDQD_ENGINE_OPENVINO": str(fake_openvino.library()), **environment})


def warnings(folder):
    report = json.loads((folder / "report.json").read_text())
    return report, {warning["code"]: warning["detail"] for warning in report["warnings"]}


def test_it_is_judged_in_another_process(tmp_path):
    done = quantize(tmp_path, "nothing")
    assert done.returncode == 0, done.stderr
    report, found = warnings(tmp_path)
    assert report["evaluation"]["deployed"]["runtime"]["version"] == "2000.0 (a fake)"
    assert "deployed_not_measured" not in found


def test_a_crash(tmp_path):
    """The model is one that OpenVINO cannot load, and the error says why."""
    done = quantize(tmp_path, "crash here")
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("qdq: target_cannot_load: OpenVINO cannot load the model that was "
                           "given: it crashed twice: its process was killed by signal 11")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "spec.json", "x.npz"]


def test_a_hang(tmp_path):
    """It costs the figures as deployed alone: nobody knows whether it would have ended."""
    began = time.monotonic()
    done = quantize(tmp_path, "hang here", QDQD_WORKERS_SHORT_TIMEOUT="2")
    assert done.returncode == 0, done.stderr
    assert 2 <= time.monotonic() - began < 30
    report, found = warnings(tmp_path)
    assert report["evaluation"]["deployed"] is None
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 20
    assert found["deployed_not_measured"].endswith(
        "OpenVINO took longer than 2 s for one answer (QDQD_WORKERS_SHORT_TIMEOUT)")


def test_a_process_that_is_stopped(tmp_path):
    """Its own timer ends it only when it goes on. The command does not wait for that."""
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        stuck = pool.submit(quantize, tmp_path, "hang here", QDQD_WORKERS_SHORT_TIMEOUT="2")
        stopped = set()
        while not stuck.done():
            for judge in children_of(tmp_path) - stopped:
                os.kill(judge, signal.SIGSTOP)
                stopped.add(judge)
            time.sleep(0.02)
        done = stuck.result()
    assert stopped and done.returncode in (0, 1), done.stderr
    assert time.monotonic() - began < 50
    assert not [pid for pid in stopped if Path(f"/proc/{pid}").exists()]


def children_of(folder):
    """The processes that judge for the command which works in that folder."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            parent = int((path.parent / "stat").read_text().rpartition(")")[2].split()[1])
            if b"--judge" in words and os.fsencode(folder / "m.onnx") in Path(
                    f"/proc/{parent}/cmdline").read_bytes().split(b"\0"):
                found.add(int(path.parent.name))
        except (OSError, ValueError):
            continue
    return found


def test_no_process_outlives_the_command(tmp_path):
    onnx.save(fake_openvino.model("hang here"), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=fake_openvino.SAMPLES)
    (tmp_path / "spec.json").write_text(json.dumps(fake_openvino.SPEC))
    with subprocess.Popen(
            [INSTALLED / "bin/qdq", "quantize", tmp_path / "m.onnx", "--spec",
             tmp_path / "spec.json", "--calibration", tmp_path / "x.npz",
             "-o", tmp_path / "q.onnx"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={**os.environ, "QDQD_ENGINE_OPENVINO": str(fake_openvino.library())}) as command:
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        deadline = time.monotonic() + 20
        while not (found := children.read_text().split()) and time.monotonic() < deadline:
            time.sleep(0.05)
        command.kill()
    [judge] = found
    while Path(f"/proc/{judge}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{judge}").exists()


@pytest.mark.parametrize("value", ["0", "3601", "soon"])
def test_a_wrong_patience(tmp_path, value):
    done = quantize(tmp_path, "nothing", QDQD_WORKERS_SHORT_TIMEOUT=value)
    assert done.returncode == 1
    assert "QDQD_WORKERS_SHORT_TIMEOUT is to be a number from 1 to 3600" in done.stderr


def test_a_library_that_cannot_be_loaded(tmp_path):
    done = quantize(tmp_path, "nothing", QDQD_ENGINE_OPENVINO="/nonexistent/libopenvino_c.so")
    assert done.returncode == 0, done.stderr
    report, found = warnings(tmp_path)
    assert report["evaluation"]["deployed"] is None
    assert "/nonexistent/libopenvino_c.so" in found["deployed_not_measured"]
