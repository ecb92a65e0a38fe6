# SPDX-License-Identifier: Apache-2.0
"""The sessions in README.md and docs/start/placement.md work when pasted, and print the output that
they show."""

import json
import random
import re
import socket
import subprocess

import judge
from service import ROOT


def blocks():
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(),
                      re.MULTILINE | re.DOTALL)


def free_port():
    """Returns a port below those that the kernel gives to clients, so that no client
    takes it before the session's daemon does."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def paste(block, tmp_path):
    port = free_port()
    script = block.replace("127.0.0.1:8383", f"127.0.0.1:{port}")
    script = script.replace("/tmp/", f"{tmp_path}/")
    return subprocess.run(["bash", "-euc", "set -m\n" + script], cwd=ROOT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)


def test_curl_session(tmp_path):
    (block,) = [b for b in blocks() if "sbin/qdqd" in b]
    done = paste(block, tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    judge.load((tmp_path / "int8.onnx").read_bytes())
    decoder, documents, text = json.JSONDecoder(), [], done.stdout.strip()
    while text:
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:].lstrip()
    model, dataset, plan, job, report, problem = documents
    assert model["id"].startswith("sha256:") and dataset["samples"] == 256
    assert plan["layers"] == report["layers"]
    assert job["state"] == "succeeded"
    assert problem["code"] == "invalid_spec"
    assert problem["errors"][0]["pointer"] == "/mod"


def test_qdq_session(tmp_path):
    (block,) = [b for b in blocks() if "bin/qdq quantize" in b]
    done = paste(block, tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    judge.load((tmp_path / "int8.onnx").read_bytes())
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == 1


def test_plan(tmp_path):
    """The command of the page prints the output below it."""
    text = (ROOT / "docs" / "start" / "placement.md").read_text()
    shown = re.findall(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(shown) == text.count("```sh") == 1
    ((block, output),) = shown
    done = paste(block, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == output


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120
