# SPDX-License-Identifier: Apache-2.0
"""An empty spec got lost on its way: it is an error, and not the default spec without its
gates."""

import subprocess

import pytest

import nets
from service import INSTALLED

QDQ = INSTALLED / "bin" / "qdq"
EMPTY = ["", " ", "\n", "\r\n\t "]


@pytest.mark.shares_daemon
@pytest.mark.parametrize("spec", EMPTY)
def test_the_command(daemon, tmp_path, spec):
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    (tmp_path / "spec.json").write_text(spec)
    for place in ("-", "spec.json"):
        for words in (["quantize", "net.onnx", "--calibration", "data.npz", "-o", "o.onnx"],
                      ["plan", "net.onnx"]):
            for service in ([], ["--url", daemon.url]):
                done = subprocess.run([QDQ, *words, "--spec", place, *service], cwd=tmp_path,
                                      input=spec, text=True, capture_output=True, timeout=60)
                assert done.returncode == 1, (words, service)
                assert done.stderr.splitlines()[-1].startswith("qdq: invalid_json: ")
                assert not (tmp_path / "o.onnx").exists()


@pytest.mark.shares_daemon
@pytest.mark.parametrize("spec", EMPTY)
@pytest.mark.parametrize("path", ["/v1/quantize", "/v1/jobs", "/v1/plan"])
def test_a_form(daemon, path, spec):
    """The part is there, and has no bytes, or only white space."""
    parts = [("model", ("m.onnx", nets.block_net())), ("spec", (None, spec))]
    if path != "/v1/plan":
        parts.append(("calibration", ("d.npz", nets.samples())))
    for order in (parts, parts[::-1]):
        answer = daemon.post(path, files=order)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json"), answer.text
    answer = daemon.post(path, files=[part for part in parts if part[0] != "spec"])
    assert answer.status_code in (200, 202), answer.text


@pytest.mark.shares_daemon
def test_a_form_with_a_file_of_no_bytes(daemon):
    parts = [("model", ("m.onnx", nets.block_net())), ("spec", ("spec.json", b""))]
    answer = daemon.post("/v1/plan", files=parts)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json"), answer.text
