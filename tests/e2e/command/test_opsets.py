# SPDX-License-Identifier: Apache-2.0
"""Versions of operators that ONNX does not have are refused before a runtime sees them: OpenVINO
counts up to the version."""

import subprocess

import onnx
import pytest

import fake_openvino
from service import INSTALLED


def info(folder, *opsets):
    model = fake_openvino.model("")
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*opset) for opset in opsets)
    onnx.save(model, folder / "m.onnx")
    return subprocess.run([INSTALLED / "bin/qdq", "info", folder / "m.onnx"],
                          capture_output=True, text=True)


@pytest.mark.parametrize("domain", ["", "ai.onnx", "ai.onnx.ml", "com.microsoft"])
@pytest.mark.parametrize("version", [1001, 1 << 31, 1 << 40, (1 << 63) - 1])
def test_a_version_that_is_none(tmp_path, domain, version):
    done = info(tmp_path, ("", 17), (domain, version))
    assert done.returncode == 1
    assert done.stderr == (f"qdq: invalid_model: opset_import has version {version} of the "
                           f"operators '{domain}', and versions go from 1 to 1000\n")


@pytest.mark.parametrize("version", [0, -5])
def test_a_version_before_the_first(tmp_path, version):
    done = info(tmp_path, ("", version))
    assert done.returncode == 1
    assert f"has version {version} of the operators ''" in done.stderr


@pytest.mark.parametrize("domain,version", [("", 1), ("", 1000), ("ai.onnx.ml", -1),
                                            ("com.example", 20261126)])
def test_other_versions(tmp_path, domain, version):
    """A domain of somebody's own may count as it likes, and an import that no node uses says
    nothing."""
    done = info(tmp_path, ("", 17), (domain, version)) if domain else info(tmp_path, ("", version))
    assert done.returncode == 0, done.stderr
