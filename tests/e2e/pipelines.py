# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of clients and examples: Pythons with pinned packages, the client's
wheel, and what every example has to show."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import judge
import nets
from cutting_proxy import CuttingProxy
from service import ROOT

EXAMPLES = ROOT / "examples"
MISSED = "accuracy: output 'logits' has cosine"


def python_with(name):
    """Returns a Python with the packages of tests/pipelines/pins/NAME.txt, which the first call
    on a machine installs. Skips the test where they cannot be had."""
    done = subprocess.run([ROOT / "tests" / "pipelines" / "python", name], capture_output=True,
                          text=True, timeout=1800, stdin=subprocess.DEVNULL)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def build_wheel(folder):
    """Builds the wheel of clients/python and returns its path."""
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet",
                    "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir",
                    folder, ROOT / "clients" / "python"], check=True)
    (wheel,) = folder.glob("qdqd-*-py3-none-any.whl")
    return wheel


def environment(**values):
    """Returns an environment in which the tests' Python is the first one, and nothing says
    where a service is."""
    found = {name: value for name, value in os.environ.items()
             if not name.startswith(("QDQD_", "PYTHON", "VIRTUAL_ENV"))}
    return {**found, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1", **{name: str(value) for name, value in values.items()}}


def execute(folder, words, **values):
    """Runs a program in a folder; its output is that of both streams, in their order."""
    done = subprocess.run([str(word) for word in words], cwd=folder, text=True, timeout=300,
                          env=environment(**values), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    return done


def prepare(folder, name, spec):
    """Writes net.onnx, net.npz and spec.json. The model's bytes are those of the test `name`
    alone, so that it has to be uploaded."""
    model = onnx.load_from_string(nets.block_net())
    model.doc_string = name
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    (folder / "net.npz").write_bytes(nets.samples())
    (folder / "spec.json").write_text(json.dumps(spec))


def survives(run, daemon, folder):
    """The example makes the model although the connection is lost in the middle of the upload
    and of the wait for the job."""
    prepare(folder, str(folder), {"accept": {"min_cosine": 0.9}})
    plans = [("POST /v1/models", "up", 1500), ("GET /v1/jobs/*wait=*", "down", 0)]
    with CuttingProxy(daemon.url, plans) as proxy:
        done = run(folder, proxy.url)
        assert done.returncode == 0, done.stdout
        assert proxy.plans == []
        assert proxy.requests.count("POST /v1/models") == 2
    judge.load((folder / "int8.onnx").read_bytes())
    return done


def misses(run, daemon, folder):
    """The example fails when the model misses a bound, writes no model, and has the reason of
    the report in its last line."""
    prepare(folder, str(folder), {"accept": {"min_cosine": 1}})
    done = run(folder, daemon.url)
    assert done.returncode != 0, done.stdout
    assert not (folder / "int8.onnx").exists()
    return done
