# SPDX-License-Identifier: Apache-2.0
"""Libraries that qdq loads only when it needs them, and files of more than one window."""

import hashlib
import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import DATA, FEW_SAMPLES, INSTALLED
from test_qdq import last_line

QDQ = INSTALLED / "bin" / "qdq"
LIBRARIES = ["libcurl.so.4", "libzip.so.4", "libzip.so.5", "libarchive.so.13"]


def qdq(*arguments, **environment):
    return subprocess.run([QDQ, *map(str, arguments)], timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, **environment})


def test_a_local_command_loads_few_libraries():
    done = qdq("--version", LD_TRACE_LOADED_OBJECTS="1")
    assert "libqdq.so" in done.stdout
    for name in "libcurl", "libzip", "libarchive", "libssl", "libxml2", "libsnappy", "libzstd":
        assert name not in done.stdout


@pytest.mark.parametrize("name, arguments", [
    ("libzip", ["quantize", DATA / "glyph_resnet.onnx", "--calibration", FEW_SAMPLES]),
    ("libarchive", ["quantize", DATA / "glyph_resnet.onnx", "--calibration", "a.tar"]),
    ("libcurl", ["plan", DATA / "glyph_resnet.onnx", "--url", "http://127.0.0.1:9"])])
def test_a_library_that_cannot_be_loaded(tmp_path, name, arguments):
    """Files of these names that are no libraries come before the true ones."""
    for library in LIBRARIES:
        (tmp_path / library).touch()
    if name == "libarchive":
        (tmp_path / "x.npy").write_bytes(b"")
        subprocess.run(["tar", "-C", tmp_path, "-cf", tmp_path / "a.tar", "x.npy"],
                       check=True)
        arguments = [*arguments[:-1], tmp_path / "a.tar"]
    if "quantize" in arguments:
        arguments = [*arguments, "-o", tmp_path / "out.onnx"]
    done = qdq(*arguments, LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 1
    assert f"{name} cannot be" in last_line(done)
    assert not (tmp_path / "out.onnx").exists()


def test_a_model_of_several_windows(tmp_path):
    """Weights of 20 MiB are digested in windows, copied in pieces and synced on the way; the
    file that is replaced is larger."""
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((1280, 2048), np.float32) for _ in range(2)]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w0"], ["y"], "first", transB=1),
         helper.make_node("Gemm", ["y", "w1"], ["z"], "second")], "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2048])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2048])],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    model, out = tmp_path / "wide.onnx", tmp_path / "out.onnx"
    onnx.save(helper.make_model(graph, ir_version=8,
                                opset_imports=[helper.make_opsetid("", 13)]), model)
    spec = {"evaluate": False, "target": "tensorrt",
            "calibration": {"ranges": {"x": [-1, 1], "y": [-9, 9]}}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    out.write_bytes(bytes(30 << 20))
    done = qdq("quantize", model, "--spec", tmp_path / "spec.json", "-o", out,
               "--report", tmp_path / "report.json")
    assert done.returncode == 0, done.stderr
    written = onnx.load(out)
    onnx.checker.check_model(written)
    ids = [p.value for p in written.metadata_props if p.value.startswith("sha256:")]
    assert f"sha256:{hashlib.sha256(model.read_bytes()).hexdigest()}" in ids
    found = {t.name: numpy_helper.to_array(t) for t in written.graph.initializer}
    for i, weight in enumerate(weights):
        assert (found[f"w{i}"] == weight).all()
    assert json.loads((tmp_path / "report.json").read_text())["model"]["id"] in ids
