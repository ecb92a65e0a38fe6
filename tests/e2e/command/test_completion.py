# SPDX-License-Identifier: Apache-2.0
"""The completion of qdq, as bash runs it."""

import os
import subprocess

import pytest

from contract import document
from service import DATA, INSTALLED
from test_help import COMMANDS, options_of
from test_service import WEIGHTS

FILE = INSTALLED / "share" / "bash-completion" / "completions" / "qdq"
SCRIPT = """
source "$1"
shift
COMP_WORDS=(qdq "$@")
COMP_CWORD=$#
_qdq
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(*words, cwd=None):
    """Returns what bash offers for the last word."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")}
    env["PATH"] = f"{INSTALLED / 'bin'}:{env['PATH']}"
    done = subprocess.run(["bash", "--norc", "-c", SCRIPT, "bash", FILE, *words], cwd=cwd, env=env,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return sorted(done.stdout.split())


def test_commands():
    assert complete("") == sorted(name for _, name in COMMANDS)
    assert complete("p") == ["plan", "pull", "push"]
    assert complete("--u") == ["--url"]
    # A URL is several words for bash.
    url = ["--url", "http", ":", "//127.0.0.1", ":", "8383"]
    assert complete(*url, "qu") == ["quantize"]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_options(command):
    wanted = sorted(f"--{name}" for name in options_of(*command))
    assert complete(command[1], "--") == wanted
    assert complete(command[1], "word", "--") == wanted


def test_values(tmp_path):
    (tmp_path / "net.onnx").touch()
    (tmp_path / "folder").mkdir()
    assert complete("jobs", "--state", "f") == ["failed"]
    assert complete("plan", "ne", cwd=tmp_path) == ["net.onnx"]
    assert complete("quantize", "net.onnx", "--spec", "", cwd=tmp_path) == ["folder", "net.onnx"]
    assert complete("quantize", "net.onnx", "-o", "n", cwd=tmp_path) == ["net.onnx"]
    assert complete("plan", "--cases", "", cwd=tmp_path) == ["folder"]
    assert complete("quantize", "net.onnx", "--threads", "", cwd=tmp_path) == []


def test_targets():
    """All that the contract lists, so that a new one needs no line here nor in the help."""
    targets = document()["components"]["schemas"]["Spec"]["properties"]["target"]["enum"]
    assert complete("quantize", "--target", "") == sorted(targets)
    assert complete("plan", "--target", "op") == ["openvino"]


@pytest.mark.shares_daemon
def test_jobs(daemon):
    job = daemon.submit(model=daemon.upload("models", DATA / "glyph_resnet.onnx"),
                        spec=WEIGHTS)
    scheme, host, port = daemon.url.split(":")
    url = ["--url", scheme, ":", host, ":", port]
    assert complete(*url, "cancel", job[:20]) == [job]
    assert complete(*url, "report", job[:20]) == [job]
    assert complete("--url", scheme, ":", host, ":", "1", "cancel", job[:20]) == []
