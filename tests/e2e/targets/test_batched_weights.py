# SPDX-License-Identifier: Apache-2.0
"""A MatMul with a constant of three axes or more, or with blocks: no result fails in ONNX Runtime
when it runs, unless a warning says that it does."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

RANDOM = np.random.default_rng(41)


def net(opset, weight, x):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"], "product"),
             helper.make_node("Relu", ["product"], ["y"], "relu")]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=10)


def quantize(folder, model, x, **spec):
    onnx.save(model, folder / "float.onnx")
    np.savez(folder / "x.npz", x=x)
    (folder / "spec.json").write_text(json.dumps({"recipe": "none", **spec}))
    subprocess.run([*QUANTIZE, folder / "float.onnx", "--calibration", folder / "x.npz",
                    "--spec", folder / "spec.json", "-o", folder / "int8.onnx", "--report",
                    folder / "report.json"], check=True, capture_output=True)
    return json.loads((folder / "report.json").read_text())


def make(folder, opset, shape, **spec):
    """Returns the report, the input and the float model's output."""
    weight = RANDOM.normal(0, .3, shape).astype(np.float32)
    x = RANDOM.normal(size=(*shape[:-2], 6, shape[-2])).astype(np.float32)
    return quantize(folder, net(opset, weight, x), x, **spec), x, np.maximum(x @ weight, 0)


def run(folder, x, level="ORT_ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(folder / "int8.onnx", options)
    return session.run(None, {"x": x})[0]


def sqnr(signal, other):
    return 10 * np.log10(np.square(signal).sum() / np.square(signal - other).sum())


def axes(report):
    return [weight["axis"] for weight in report["weights"]]


@pytest.mark.parametrize("spec", [{"target": "onnxruntime"},
                                  {"target": "tensorrt", "weights": {"granularity": "tensor"}}])
@pytest.mark.parametrize("shape", [(4, 16, 8), (1, 16, 8), (2, 3, 16, 8)])
@pytest.mark.parametrize("opset", [13, 21])
def test_one_scale_runs(tmp_path, opset, shape, spec):
    report, x, y = make(tmp_path, opset, shape, **spec)
    assert axes(report) == [None]
    assert sqnr(y, run(tmp_path, x)) > 30


@pytest.mark.parametrize("spec, axis", [
    ({"activations": "none"}, 2),
    ({"activations": {"dtype": "float8e4m3fn"}, "weights": {"dtype": "float8e4m3fn"}}, 2)])
def test_a_scale_for_each_column_where_nothing_multiplies_integers(tmp_path, spec, axis):
    report, x, y = make(tmp_path, 21, (4, 16, 8), target="tensorrt", **spec)
    assert axes(report) == [axis]
    assert sqnr(y, run(tmp_path, x, "ORT_ENABLE_BASIC")) > 20


def test_a_matrix_has_a_scale_for_each_column(tmp_path):
    report, x, y = make(tmp_path, 13, (16, 8), target="tensorrt")
    assert axes(report) == [1]
    assert sqnr(y, run(tmp_path, x)) > 30


@pytest.mark.parametrize("target", ["tensorrt", "openvino"])
def test_scales_that_onnxruntime_does_not_run(tmp_path, target):
    rules = {"rules": {"V19": False}} if target == "openvino" else {}
    report, x, y = make(tmp_path, 13, (4, 16, 8), target=target, **rules)
    assert axes(report) == [2]
    with pytest.raises(Exception, match="zero point"):
        run(tmp_path, x)
    assert sqnr(y, run(tmp_path, x, "ORT_ENABLE_BASIC")) > 30
    if target == "tensorrt":  # It is not for ONNX Runtime; docs/reference/number-formats.md says so.
        return
    (warning,) = [one for one in report["warnings"] if one["code"] == "target_format"]
    assert warning["node"] == "product" and "ONNX Runtime" in warning["detail"]


@pytest.mark.parametrize("target", ["tensorrt", "openvino"])
@pytest.mark.parametrize("activations, runs", [("int8", False), ("int16", True)])
def test_blocks_that_do_not_run_are_said(tmp_path, activations, runs, target):
    """The target onnxruntime leaves such a layer's input in floating point."""
    report, x, y = make(tmp_path, 21, (16, 8), target=target,
                        weights={"granularity": {"block": 8}},
                        activations={"dtype": activations})
    why = "TensorRT cannot multiply" if target == "tensorrt" else "in its first run"
    assert any(why in one["detail"] for one in report["warnings"]) != runs
    if runs:
        assert sqnr(y, run(tmp_path, x)) > 30
    else:
        with pytest.raises(Exception, match="running MatMul"):
            run(tmp_path, x)
    assert sqnr(y, run(tmp_path, x, "ORT_ENABLE_BASIC")) > 30


@pytest.mark.parametrize("shape, spec", [((4, 16, 8), {"weights": {"granularity": "tensor"}}),
                                         ((4, 16, 8), {"activations": "none"}),
                                         ((16, 8), {})])
def test_a_result_for_openvino_that_both_run(tmp_path, shape, spec):
    report, x, y = make(tmp_path, 13, shape, target="openvino", **spec)
    assert axes(report)
    assert "target_format" not in [one["code"] for one in report["warnings"]]
    assert sqnr(y, run(tmp_path, x)) > 30
