# SPDX-License-Identifier: Apache-2.0
"""Results are files: `-`, which is standard output in other programs, is refused. Text that is
printed there has to arrive. Standard files that the caller closed are no files of the program's own."""

import os
import signal
import socket
import subprocess

import onnx
import pytest

import fake_openvino
from service import INSTALLED, eventually

QDQD = INSTALLED / "sbin" / "qdqd"


@pytest.mark.parametrize("option", ["-o", "--report", "--html", "--observations"])
def test_standard_output_is_refused(tmp_path, option):
    onnx.save(fake_openvino.model(""), tmp_path / "m.onnx")
    (tmp_path / "spec.json").write_text('{"calibration": {"ranges": {"x": [-1, 1]}}}')
    done = subprocess.run([INSTALLED / "bin/qdq", "quantize", "m.onnx", "--spec", "spec.json",
                           option, "-"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == ("qdq: io: nothing is written to standard output: name a file "
                           "(./- where its name is to be -)\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "spec.json"]


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["plan", "--help"]], ids=" ".join)
def test_pages_of_qdq_have_to_arrive(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([INSTALLED / "bin" / "qdq", *command], stdout=full, text=True,
                              stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        1, "qdq: io: standard output: No space left on device\n")


@pytest.mark.parametrize("command, status", [
    ("--help", 1), ("--version", 1), ("token --help", 1), ("token add one {state}", 1),
    ("token list {state}", 1), ("--check-config --print", 1), ("--check-store {state}", 2),
    ("--backup copy {state}", 1), ("--restore first --state-dir new", 1), ("--adopt {state}", 1)])
def test_what_qdqd_prints_has_to_arrive(service, tmp_path, command, status):
    one = service()
    one.stop()
    words = command.format(state=f"--state-dir {one.state}").split()
    run = {"text": True, "cwd": tmp_path, "stderr": subprocess.PIPE}
    for preparation in ("token add zero", "--backup first"):
        subprocess.run([QDQD, *preparation.split(), "--state-dir", one.state], check=True,
                       stdout=subprocess.DEVNULL, **run)
    with open("/dev/full", "w") as full:
        done = subprocess.run([QDQD, *words], stdout=full, **run)
    assert done.returncode == status
    *_, said = done.stderr.splitlines()
    assert said in ("qdqd: standard output: No space left on device",
                    "qdqd: standard output: it could not be written in full")


def test_the_log_of_closed_standard_files_goes_nowhere(tmp_path):
    state, address = tmp_path / "state", tmp_path / "socket"
    daemon = subprocess.Popen(
        ["sh", "-c", f"exec {QDQD} --state-dir {state} --listen unix:{address} <&- >&- 2>&-"],
        env={**os.environ, "QDQD_ENGINE_OPENVINO": ""})
    try:
        eventually(address.exists)
        with socket.socket(socket.AF_UNIX) as connection:
            eventually(lambda: connection.connect_ex(str(address)) == 0)
            connection.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        opened = [os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in range(3)]
        assert opened == ["/dev/null"] * 3
    finally:
        daemon.send_signal(signal.SIGTERM)
        status = daemon.wait(60)
    assert status == 0
    for path in state.rglob("*"):
        assert path.is_dir() or b"event=" not in path.read_bytes(), path
