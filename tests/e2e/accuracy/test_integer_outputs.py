# SPDX-License-Identifier: Apache-2.0
"""Outputs of integers and Booleans are judged by the share of elements that are equal."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

CLASSES, SAMPLES = 19, 32


def weight(numbers, *shape):
    return (numbers.laplace(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def net(end, large=1.0):
    """Convolutions whose 19 channels are logits, and `end`, which makes an integer output of them. One
    channel is `large` times its neighbours, and the next layer takes it back."""
    numbers = np.random.default_rng(5)
    factors = np.ones((1, 32, 1, 1), np.float32)
    factors[0, 5] = large
    inner = weight(numbers, 32, 32, 3, 3)
    inner[:, 5] /= large
    constants = {"w0": weight(numbers, 32, 3, 3, 3), "factors": factors, "w1": inner,
                 "w2": weight(numbers, CLASSES, 32, 1, 1), "zero": np.float32(0.1)}
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], "first", pads=[1] * 4),
             helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Mul", ["b", "factors"], ["c"]),
             helper.make_node("Conv", ["c", "w1"], ["d"], "hurt", pads=[1] * 4),
             helper.make_node("Relu", ["d"], ["e"]),
             helper.make_node("Conv", ["e", "w2"], ["logits"], "head"), *end]
    dtype = TensorProto.BOOL if end[-1].op_type == "Greater" else TensorProto.INT64
    graph = helper.make_graph(nodes, "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("y", dtype, None)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


ARGMAX = [helper.make_node("ArgMax", ["logits"], ["y"], axis=1, keepdims=0)]
GREATER = [helper.make_node("Greater", ["logits", "zero"], ["y"])]
NON_ZERO = [helper.make_node("Greater", ["logits", "zero"], ["g"]),
            helper.make_node("NonZero", ["g"], ["n"]),
            helper.make_node("Transpose", ["n"], ["y"], perm=[1, 0])]


def quantize(folder, model, **spec):
    onnx.save(model, folder / "m.onnx")
    numbers = np.random.default_rng(6)
    data = numbers.normal(size=(SAMPLES, 1, 3, 16, 16)).astype(np.float32)
    np.savez(folder / "data.npz", x=data)
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec",
                           folder / "spec.json", "--calibration", folder / "data.npz", "-o",
                           folder / "q.onnx", "--report", folder / "report.json"],
                          capture_output=True, text=True)
    document = json.loads((folder / "report.json").read_text()) if done.returncode == 0 else None
    return done, document, data


def run(path, data, basic):
    options = onnxruntime.SessionOptions()
    if basic:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    return [session.run(None, {"x": x})[0] for x in data]


def share_of_rows(f, q):
    """Rows of f and q that are found in the other, in any order."""
    common = most = 0
    for a, b in zip(f, q, strict=True):
        rows, others = {tuple(r) for r in a}, {tuple(r) for r in b}
        common += len(rows & others)
        most += max(len(rows), len(others))
    return common / most


@pytest.mark.parametrize("end", [ARGMAX, GREATER, NON_ZERO], ids=["argmax", "greater", "nonzero"])
def test_the_share_is_that_of_numpy(tmp_path, end):
    done, report, data = quantize(tmp_path, net(end), target="tensorrt")
    assert done.returncode == 0, done.stderr
    [output] = report["evaluation"]["outputs"]
    assert report["evaluation"]["not_judged"] == [] or end is NON_ZERO
    f, q = run(tmp_path / "m.onnx", data, True), run(tmp_path / "q.onnx", data, True)
    if end is NON_ZERO:
        wanted = share_of_rows(f, q)
    else:
        wanted = np.mean([(a == b).mean() for a, b in zip(f, q, strict=True)])
    assert output["top1_agreement"] == pytest.approx(wanted, abs=2e-3)
    assert output["sqnr_db"] == pytest.approx(-10 * np.log10(1 - output["top1_agreement"]))
    assert output["cosine"] is None and output["max_abs_error"] is None
    assert output["slices"] == []


def test_a_ruined_map_of_classes_is_poor(tmp_path):
    done, report, _ = quantize(tmp_path, net(ARGMAX, 3000), target="tensorrt")
    assert done.returncode == 0, done.stderr
    assert report["evaluation"]["outputs"][0]["top1_agreement"] < 0.5
    assert report["summary"]["verdict"] == "poor"
    [poor] = [w for w in report["warnings"] if w["code"] == "poor"]
    assert "of its elements" in poor["detail"]


def test_the_recipe_goes_by_it(tmp_path):
    done, report, data = quantize(tmp_path, net(ARGMAX, 3000), target="onnxruntime")
    assert done.returncode == 0, done.stderr
    f, q = run(tmp_path / "m.onnx", data, False), run(tmp_path / "q.onnx", data, False)
    assert np.mean([(a == b).mean() for a, b in zip(f, q, strict=True)]) > 0.95


def test_a_gate_holds_for_it(tmp_path):
    accept = {"min_top1_agreement": 0.9}
    done, report, _ = quantize(tmp_path, net(ARGMAX), target="tensorrt", accept=accept)
    assert done.returncode == 0, done.stderr
    [gate] = report["gates"]
    assert gate["output"] == "y" and gate["met"]
    done, _, _ = quantize(tmp_path, net(ARGMAX, 3000), target="tensorrt", accept=accept)
    assert done.returncode != 0 and "min_top1_agreement" in done.stderr


def test_sensitivity_ranks_by_it(tmp_path):
    done, report, _ = quantize(tmp_path, net(ARGMAX, 3000), target="tensorrt", sensitivity={})
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["gain_db"] for row in report["sensitivity"]}
    assert max(rows, key=rows.get) == "hurt"
