# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime GenAI, which tests let open folders of decoders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("make_tokens.py")


@pytest.fixture(scope="session")
def make_tokens():
    """Returns a function from a folder and ids to the ids that its model adds, greedily."""
    made = subprocess.run([ROOT / "tools" / "genai"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    env = {**os.environ, "PYTHONPATH": made.stdout.strip()}

    def run(folder, ids, n):
        done = subprocess.run([sys.executable, PROGRAM, folder, str(n), *map(str, ids)],
                              capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    return run
