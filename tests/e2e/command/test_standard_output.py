# SPDX-License-Identifier: Apache-2.0
"""Results are files: `-`, which is standard output in other programs, is refused."""

import subprocess

import onnx
import pytest

import fake_openvino
from service import INSTALLED


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
