# SPDX-License-Identifier: Apache-2.0
"""Qualcomm's emulator of the HTP, by which tests judge results for target qnn. It is proprietary, so
these tests run only where QDQD_ACCEPT_QNN=1 is set."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def qnn_python():
    """Returns the path of a Python that has the emulator."""
    if os.environ.get("QDQD_ACCEPT_QNN") != "1":
        pytest.skip("QDQD_ACCEPT_QNN is not 1: Qualcomm's licence is not accepted")
    made = subprocess.run([ROOT / "tools" / "qnn"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="session")
def runners(qnn_python, tmp_path_factory):
    """Returns the path of a file for --runners, with the emulator for target qnn."""
    path = tmp_path_factory.mktemp("runners") / "runners.conf"
    path.write_text(f"[runner htp]\ncommand = {qnn_python} {ROOT}/runners/onnxruntime_ep.py\n"
                    f"allow = {ROOT}/runners\ntargets = qnn\nprovider = QNN\ntimeout = 300\n")
    return path
