# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime GenAI, which tests let open folders of decoders and calibrate their caches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def genai():
    """Returns a function that runs a program of this folder, with GenAI, and returns what it
    prints."""
    made = subprocess.run([ROOT / "tools" / "genai"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    env = {**os.environ, "PYTHONPATH": made.stdout.strip()}

    def run(program, *arguments):
        done = subprocess.run([sys.executable, HERE / program, *map(str, arguments)],
                              capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def make_tokens(genai):
    """Returns a function from a folder and ids to the ids that its model adds, greedily."""
    def run(folder, ids, n):
        return [int(word) for word in genai("make_tokens.py", folder, n, *ids).split()]

    return run


@pytest.fixture
def calibrate_caches(genai, tmp_path):
    """Returns a function from a model, ids, a scheme and a method to GenAI's scales of caches."""
    def run(model, ids, scheme, method, percentile):
        out = tmp_path / "scales.json"
        genai("calibrate_caches.py", model, ids, scheme, method, percentile, out)
        return json.loads(out.read_text())

    return run
