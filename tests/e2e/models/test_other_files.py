# SPDX-License-Identifier: Apache-2.0
"""Files of other kinds that are sent as a model: the error says what they are."""

import gzip
import io
import subprocess
import tarfile
import zipfile

import numpy as np
import pytest

import nets
from service import INSTALLED, problem


def zipped():
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w") as archive:
        archive.writestr("model.onnx", b"x")
    return to.getvalue()


def tarred():
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.onnx"))
    return to.getvalue()


def array():
    to = io.BytesIO()
    np.save(to, np.zeros(3))
    return to.getvalue()


KINDS = {
    "a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
    "a page of HTML": b"\n <!DOCTYPE html><html></html>",
    "a zip archive": zipped(),
    "a tar archive": tarred(),
    "gzip": gzip.compress(b"x" * 100),
    "a TFLite model": b"\x1c\0\0\0TFL3" + b"\0" * 60,
    "a GGUF file": b"GGUF\3\0\0\0" + b"\0" * 60,
    "an HDF5 file": b"\x89HDF\r\n\x1a\n" + b"\0" * 60,
    "an array of NumPy": array(),
    "it is JSON": b'{"target": "openvino"}',
}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_says_what_it_is(daemon, tmp_path, kind):
    (tmp_path / "m.onnx").write_bytes(KINDS[kind])
    done = subprocess.run([INSTALLED / "bin" / "qdq", "plan", "m.onnx"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "invalid_model: not an ONNX model: " in done.stderr
    assert kind in done.stderr
    answer = daemon.post("/v1/plan", files={"model": KINDS[kind]})
    assert kind in problem(answer, 400, "invalid_model")["detail"]


def test_a_cut_model_is_none_of_them(tmp_path):
    model = nets.block_net()
    (tmp_path / "m.onnx").write_bytes(model[:len(model) // 2])
    done = subprocess.run([INSTALLED / "bin" / "qdq", "plan", "m.onnx"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "(offset " in done.stderr
