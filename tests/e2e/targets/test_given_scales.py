# SPDX-License-Identifier: Apache-2.0
"""Rule C28: a layer whose weight or bias the model has as integers already, with scales that ONNX Runtime's integer
kernel does not take, gets no pair in front of it."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import judge
from service import INSTALLED

KINDS = {  # the operator; the shapes of data and weight; the axis of the scales, or -1: blocks of 8
    "rows": ("MatMul", [4, 16], [16, 24], 0),
    "rows of a square": ("Gemm", [4, 16], [16, 16], 0),
    "input channels": ("Conv", [2, 8, 8, 8], [16, 8, 3, 3], 1),
    "three axes": ("MatMul", [2, 4, 16], [2, 16, 24], 2),
    "blocks": ("MatMul", [4, 16], [16, 24], -1),
    "left": ("MatMul", [4, 16], [8, 4], 1),
    "bias": ("Gemm", [4, 16], [16, 24], None),
}


def pair(name, value, axis, dtype, constants):
    """Stores a constant behind a DequantizeLinear, which is returned."""
    if axis == -1:
        wide = np.repeat(np.abs(value.reshape(2, 8, -1)).max(1) / 100, 8, 0)
        scale, more = np.ascontiguousarray(wide[::8]), {"axis": 0, "block_size": 8}
    elif axis is None:
        wide, scale, more = np.abs(value).max() / 100, np.float32(np.abs(value).max() / 100), {}
    else:
        wide = np.abs(value).max(axis=tuple(i for i in range(value.ndim) if i != axis), keepdims=True) / 100
        scale, more = wide.ravel(), {"axis": axis}
    zero = {np.uint8: 128}.get(dtype, 0)
    constants |= {name + "_q": (np.rint(value / wide) + zero).astype(dtype), name + "_s": scale.astype(np.float32)}
    inputs = [name + "_q", name + "_s"]
    if dtype is not np.int32:
        constants[name + "_z"] = np.full(scale.shape, zero, dtype)
        inputs.append(name + "_z")
    return helper.make_node("DequantizeLinear", inputs, [name], **more)


def make(path, kind):
    rng = np.random.default_rng(6)
    operator, shape, weight, axis = KINDS[kind]
    constants = {}
    along = max(axis or 0, 0)
    gains = np.geomspace(.2, 3, weight[along]).reshape([-1 if i == along else 1 for i in range(len(weight))])
    value = (rng.normal(size=weight) * gains).astype(np.float32)
    nodes = [pair("w", value, axis, np.uint8, constants)]
    inputs = ["w", "x"] if kind == "left" else ["x", "w"]
    if kind == "bias":
        nodes.append(pair("b", rng.normal(size=24).astype(np.float32), None, np.int32, constants))
        inputs.append("b")
    nodes += [helper.make_node(operator, inputs, ["h"], "layer"), helper.make_node("LeakyRelu", ["h"], ["y"], "last")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, [None] * len(shape))],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return rng.normal(size=[4 * shape[0], *shape[1:]]).astype(np.float32)


class Result:
    def __init__(self, folder, kind, **spec):
        x, self.path = make(folder / "net.onnx", kind), folder / "made.onnx"
        np.savez(folder / "data.npz", x=x)
        (folder / "spec.json").write_text(json.dumps(
            {"target": "onnxruntime", "evaluate": False, "existing_qdq": "keep", "recipe": "none", **spec}))
        subprocess.run([INSTALLED / "bin/qdq", "quantize", folder / "net.onnx", "--spec", folder / "spec.json",
                        "--calibration", folder / "data.npz", "-o", self.path, "--report", folder / "report.json"],
                       check=True)
        report = json.loads((folder / "report.json").read_text())
        self.layer, = (row for row in report["layers"] if row["name"] == "layer")
        self.warned = [w["node"] for w in report["warnings"] if w["code"] == "misread_by_target"]
        self.x = x[:len(x) // 4]

    def run(self, level):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        return onnxruntime.InferenceSession(self.path, options).run(None, {"x": self.x})[0]

    def deployed_db(self):
        return judge.sqnr_db(self.run("ORT_DISABLE_ALL"), self.run("ORT_ENABLE_ALL"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_layer_stays_in_float(tmp_path, kind):
    result = Result(tmp_path, kind, rules={"C28": True})
    assert result.layer["quantized_inputs"] == [] and result.layer["reason"].startswith("rule:C28")
    assert "C28" in result.layer["rules"] and not result.warned
    assert result.deployed_db() > 40


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_misreads_given_scales(tmp_path, kind):
    """Where this fails, ONNX Runtime has mended it and the rule may go. The warning names the layer."""
    result = Result(tmp_path, kind)
    assert result.layer["quantized_inputs"] and result.warned == ["layer"]
    if kind in ("rows of a square", "bias"):
        assert result.deployed_db() < 25
    else:
        with pytest.raises(Exception, match="QLinear"):
            result.deployed_db()


@pytest.mark.parametrize("kind", ["columns", "output channels", "one scale"])
def test_scales_that_the_kernel_takes(tmp_path, kind, monkeypatch):
    monkeypatch.setitem(KINDS, kind, {"columns": ("MatMul", [4, 16], [16, 24], 1),
                                      "output channels": ("Conv", [2, 8, 8, 8], [16, 8, 3, 3], 0),
                                      "one scale": ("Gemm", [4, 16], [16, 24], None)}[kind])
    result = Result(tmp_path, kind, rules={"C28": True})
    assert result.layer["quantized_inputs"] == [0] and not result.warned and result.deployed_db() > 30
