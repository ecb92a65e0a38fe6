# SPDX-License-Identifier: Apache-2.0
"""Activations that the runtime quantizes in each run, for the target onnxruntime."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import QUANTIZE
from test_onnxruntime_kernels import numbers

GRAPH = """<ir_version: 9, opset_import: ["" : 17]> g
    (float[n,6,64] x) => (float[n,6,64] y, float[m,32] z) {
    [left] a1 = MatMul (x, w1)
    [right] a2 = MatMul (x, w2)
    [sum] a = Add (a1, a2)
    [biased] b = Add (a, bias)
    [scores] s = MatMul (b, turned)
    [flat] f = Reshape (b, rows)
    [gemm] z = Gemm <transB = 1> (f, w3, c)
    [last] y = MatMul (s, w4) }"""


def net():
    made = onnx.parser.parse_model(GRAPH)
    constants = {"w1": numbers(64, 64), "w2": numbers(64, 64), "w3": numbers(32, 64),
                 "w4": numbers(64, 64), "turned": numbers(64, 64), "bias": numbers(64),
                 "c": numbers(32)}
    made.graph.initializer.extend(
        numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items())
    made.graph.initializer.append(
        numpy_helper.from_array(np.array([-1, 64]), "rows"))
    return made


def quantize(folder, source, data=None, **spec):
    spec = {"target": "onnxruntime", "activations": "dynamic", "recipe": "none", **spec}
    (folder / "spec.json").write_text(json.dumps(spec))
    onnx.save(source, folder / "m.onnx")
    more = []
    if data is not None:
        np.savez(folder / "d.npz", x=data)
        more = ["--calibration", folder / "d.npz"]
    return subprocess.run(
        [*QUANTIZE, folder / "m.onnx", "--spec", folder / "spec.json", "-o",
         folder / "q.onnx", "--report", folder / "report.json", *more],
        stdin=subprocess.DEVNULL, capture_output=True, text=True)


def made(folder, source, data=None, **spec):
    done = quantize(folder, source, data, **spec)
    assert done.returncode == 0, done.stderr
    return (judge.load((folder / "q.onnx").read_bytes()),
            json.loads((folder / "report.json").read_text()))


def samples(n=8):
    return np.random.default_rng(5).normal(0, 1, (n, 1, 6, 64)).astype(np.float32)


def db(source, result, optimized):
    data = samples()
    outputs = [[np.concatenate([o.ravel() for o in one.run(None, {"x": x})])
                for x in data]
               for one in (judge.session(source.SerializeToString()),
                           judge.session(result.SerializeToString(), optimized))]
    return judge.sqnr_db(*map(np.concatenate, outputs))


@pytest.mark.parametrize("spec", [
    {}, {"weights": {"dtype": "uint8"}}, {"rules": {"C7": True}},
    {"weights": {"granularity": "tensor"}}])
def test_what_is_made(tmp_path, spec):
    """Without data: each product in integers, one quantization for two readers, and the
    names and types of inputs and outputs."""
    source = net()
    result, report = made(tmp_path, source, **spec)
    onnx.checker.check_model(result, full_check=True)
    ops = [n.op_type for n in result.graph.node]
    assert ops.count("MatMulInteger") == 5
    assert ops.count("DynamicQuantizeLinear") == 4
    assert "MatMul" not in ops and "Gemm" not in ops and "DequantizeLinear" not in ops
    assert not [t for t in result.graph.initializer if len(t.dims) == 2 and t.data_type == 1]
    rows = {row["name"]: row for row in report["layers"]}
    assert rows["gemm"]["weight_quantized"] and rows["gemm"]["quantized_inputs"] == []
    assert not rows["sum"]["weight_quantized"]
    assert report["tensors"] == []
    assert report["spec"]["activations"] == "dynamic"
    assert db(source, result, False) > 25 and db(source, result, True) > 25


def test_evaluated_and_frozen(tmp_path):
    source = net()
    result, report = made(tmp_path, source, samples(), recipe="auto",
                          rules={"C15": False})
    deployed = report["evaluation"]["deployed"]["outputs"]
    assert min(o["sqnr_db"] for o in deployed) > 25
    assert report["summary"]["verdict"] in ("good", "fair")
    assert report["kernels"]["integer"] == 5
    assert (set(report["kernels"]["ops"]) <=
            {"MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulInteger"})
    again = tmp_path / "again"
    again.mkdir()
    other, _ = made(again, source, **{k: v for k, v in report["spec"].items()
                                      if k not in ("evaluate", "recipe")})
    assert other.graph == result.graph


def test_small_layers_stay_by_default(tmp_path):
    result, report = made(tmp_path, net(), samples(), recipe="auto")
    assert {row["reason"] for row in report["layers"] if row["name"] != "sum"
            and row["class"] == "Dense"} == {
        "rule:C15, conversions cost more time than integers gain"}
    assert "MatMulInteger" not in {n.op_type for n in result.graph.node}


def test_other_layers_say_why(tmp_path):
    text = """<ir_version: 9, opset_import: ["" : 17]> g
        (float[1,4,8,8] x) => (float[1,4,8,8] y) {
        [conv] a = Conv <pads = [1, 1, 1, 1]> (x, k)
        [scaled] y = MatMul (w, a) }"""
    source = onnx.parser.parse_model(text)
    source.graph.initializer.extend([numpy_helper.from_array(numbers(4, 4, 3, 3), "k"),
                                     numpy_helper.from_array(numbers(8, 8), "w")])
    result, report = made(tmp_path, source)
    assert {row["reason"] for row in report["layers"]} == {
        "the runtime has dynamic kernels for a matrix on the right alone"}
    assert "nothing_to_quantize" in {w["code"] for w in report["warnings"]}


@pytest.mark.parametrize("spec, place", [
    ({"target": "tensorrt"}, "/activations"),
    ({"target": "openvino"}, "/activations"),
    ({"weights": {"dtype": "int4"}}, "/weights/dtype"),
    ({"weights": {"granularity": {"block": 16}}}, "/weights/granularity"),
    ({"weights": {"storage": "qdq"}}, "/weights/storage"),
    ({"float": "float16"}, "/float"),
    ({"sensitivity": {"samples": 4}}, "/sensitivity"),
    ({"search": {"min_sqnr_db": 20}}, "/search")])
def test_what_does_not_go_with_it(tmp_path, spec, place):
    done = quantize(tmp_path, net(), samples(), **spec)
    assert done.returncode == 1
    assert done.stderr.startswith("qdq: unsupported: ") and place in done.stderr
