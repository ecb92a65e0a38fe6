# SPDX-License-Identifier: Apache-2.0
"""The literal arithmetic of a sum with a vector, which ONNX Runtime fuses with an operator that it knows, in a
model with convolutions."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

CHANNELS, LENGTH = 16, 8
RNG = np.random.default_rng(3)


def make_model(vector):
    """Sums behind no convolution, with a vector of the file, of a Constant, or one that is computed."""
    values = {"vector": RNG.standard_normal(CHANNELS, np.float32),
              "weight": RNG.standard_normal((CHANNELS, CHANNELS, 3), np.float32) / 7}
    nodes = []
    if vector == "constant":
        nodes.append(helper.make_node("Constant", [], ["vector"], value=numpy_helper.from_array(values.pop("vector"))))
    elif vector == "computed":
        nodes += [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0, 1], keepdims=0),
                  helper.make_node("Tanh", ["mean"], ["bent"])]
    nodes += [helper.make_node("Add", ["x", "bent" if vector == "computed" else "vector"], ["sum"], "sum"),
              helper.make_node("Transpose", ["sum"], ["turned"], "turn", perm=[0, 2, 1]),
              helper.make_node("Conv", ["turned", "weight"], ["y"], "conv", pads=[1, 1])]
    used = {name for node in nodes for name in node.input}
    return helper.make_model(helper.make_graph(
        nodes, "sums", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", LENGTH, CHANNELS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CHANNELS, LENGTH])],
        [numpy_helper.from_array(v, k) for k, v in values.items() if k in used]),
        ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def run(path, data):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"x": x[None]})[0] for x in data]).astype(np.float64)


@pytest.mark.parametrize("target", ("onnxruntime", "qnn"))
@pytest.mark.parametrize("vector", ("initializer", "constant", "computed"))
def test_the_figure_is_that_of_the_file(tmp_path, target, vector):
    onnx.save(make_model(vector), tmp_path / "m.onnx")
    held = RNG.standard_normal((16, LENGTH, CHANNELS), np.float32)
    np.savez(tmp_path / "c.npz", x=RNG.standard_normal((32, LENGTH, CHANNELS), np.float32))
    np.savez(tmp_path / "e.npz", x=held)
    done = subprocess.run([*QUANTIZE, tmp_path / "m.onnx", "--target", target, "--recipe", "none", "--calibration",
                           tmp_path / "c.npz", "--evaluation", tmp_path / "e.npz", "-o", tmp_path / "q.onnx",
                           "--report", tmp_path / "r.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert "sum" in {layer["name"] for layer in report["layers"] if layer["quantized_outputs"]}
    exact, rounded = run(tmp_path / "m.onnx", held), run(tmp_path / "q.onnx", held)
    db = 10 * np.log10((exact ** 2).sum() / ((exact - rounded) ** 2).sum())
    assert db > 25
    assert report["evaluation"]["outputs"][0]["sqnr_db"] == pytest.approx(db, abs=0.1)
