# SPDX-License-Identifier: Apache-2.0
"""examples/pytorch with Debian's PyTorch, which runs on the CPU."""

import subprocess

import onnx
import pytest

import judge
import pipelines
from cutting_proxy import CuttingProxy
from pipelines import EXAMPLES, ROOT, execute

SCRIPT = EXAMPLES / "pytorch" / "export_int8.py"


@pytest.fixture(scope="module")
def python():
    """Debian's Python with PyTorch, which the first call on a machine installs."""
    done = subprocess.run(["bash", "-c", ". tools/lib.sh; need_packages python3-torch && "
                           "echo $python"], cwd=ROOT, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        pytest.skip("python3-torch cannot be installed: " + done.stderr.strip()[-200:])
    return done.stdout.strip()


def run(python, folder, url, *words):
    return execute(folder, [python, SCRIPT, "int8.onnx", *words], QDQD_URL=url,
                   PYTHONPATH=ROOT / "clients" / "python")


def test_lost_connections(python, daemon, tmp_path, record_property):
    version = execute(tmp_path, [python, "-c", "import torch; print(torch.__version__)"])
    record_property("version", "torch " + version.stdout.splitlines()[-1])
    plans = [("POST /v1/models", "up", 1500), ("GET /v1/jobs/*wait=*", "down", 0)]
    with CuttingProxy(daemon.url, plans) as proxy:
        done = run(python, tmp_path, proxy.url)
        assert done.returncode == 0, done.stdout
        assert proxy.plans == []
    assert "verdict" in done.stdout.splitlines()[-1]
    data = (tmp_path / "int8.onnx").read_bytes()
    judge.load(data)
    operators = [node.op_type for node in onnx.load_from_string(data).graph.node]
    assert operators.count("DequantizeLinear") >= 6


def test_a_missed_bound(python, daemon, tmp_path):
    done = run(python, tmp_path, daemon.url, "200")
    assert done.returncode == 1
    assert "accuracy: output 'scores' has sqnr_db" in done.stdout.splitlines()[-1]
    assert not (tmp_path / "int8.onnx").exists()
