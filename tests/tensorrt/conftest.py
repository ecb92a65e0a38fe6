# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's parser and builder, which tests ask about results. They are proprietary, so these tests
run only where QDQD_ACCEPT_TENSORRT_RTX=1 is set."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("build_plan.py")


class Plan:
    def __init__(self, answer):
        self.errors, self.kernels = answer["errors"], answer["kernels"]
        self.kilobytes = sum(k["bytes"] for k in self.kernels) / 1000

    def integer_kernels(self, node):
        """Returns the kernels that compute a node and read int8. Names of graphs follow the name of a
        node in a nested graph."""
        return [k for k in self.kernels if "Int8" in k["inputs"] and
                any(n == node or n.startswith(node + " | ") for n in k["nodes"])]


@pytest.fixture(scope="session")
def packages():
    """Returns the folder with NVIDIA's packages."""
    if os.environ.get("QDQD_ACCEPT_TENSORRT_RTX") != "1":
        pytest.skip("QDQD_ACCEPT_TENSORRT_RTX is not 1: NVIDIA's licence is not accepted")
    made = subprocess.run([ROOT / "tools" / "tensorrt"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="session")
def plans_of(packages):
    """Returns a function from files of models to NVIDIA's plans of them."""
    env = {**os.environ, "PYTHONPATH": packages}
    ended = {"errors": ["the process ended"], "kernels": []}

    def build(paths):
        done = subprocess.run([sys.executable, PROGRAM, *paths], capture_output=True, text=True,
                              env=env)
        answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert len(answers) == len(paths), done.stderr
        return [Plan(json.loads(line) or ended) for line in answers]

    return build


@pytest.fixture(scope="session")
def plan_of(plans_of):
    """Returns a function from a model's file to NVIDIA's plan of it."""
    return lambda path: plans_of([path])[0]
