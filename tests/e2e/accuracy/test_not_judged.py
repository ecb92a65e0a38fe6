# SPDX-License-Identifier: Apache-2.0
"""Outputs and layers without figures are named with their reason, and so is a sample that does
not run; the others judge."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import QUANTIZE

WIDTH = 256
rng = np.random.default_rng(17)


def quantize(folder, nodes, outputs, tables, data, **spec):
    """Returns the finished command and the report, or None if there is none."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype),
                                            ["n", *value.shape[1:]])
              for name, value in data.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs,
                          [numpy_helper.from_array(value, name)
                           for name, value in tables.items()]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "d.npz", **data)
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, folder / "m.onnx", "--spec", folder / "spec.json",
         "--calibration", folder / "d.npz", "-o", folder / "q.onnx", "--report",
         folder / "report.json"], capture_output=True, text=True)
    path = folder / "report.json"
    return done, json.loads(path.read_text()) if path.exists() else None


def selecting(folder, whole, **spec):
    """Quantizes a MatMul whose products above a bound are an output, and all of them where
    `whole` says so."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["products"], "fc"),
             helper.make_node("Greater", ["products", "bound"], ["above"], "above"),
             helper.make_node("Reshape", ["above", "flat"], ["chosen"], "flat"),
             helper.make_node("Compress", ["products", "chosen"], ["y"], "choose"),
             helper.make_node("MatMul", ["x", "v"], ["all"], "head")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k"])]
    if whole:
        outputs.append(helper.make_tensor_value_info("all", TensorProto.FLOAT, ["n", WIDTH]))
    else:
        nodes.pop()
    tables = {"w": rng.normal(size=(WIDTH, WIDTH)).astype(np.float32),
              "bound": np.float32(0.5), "flat": np.array([-1])}
    if whole:
        tables["v"] = rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    data = {"x": rng.normal(size=(16, WIDTH)).astype(np.float32)}
    done, report = quantize(folder, nodes, outputs, tables, data, **spec)
    assert done.returncode == 0, done.stderr
    return report, data


def warned(report, code):
    return [w for w in report["warnings"] if w["code"] == code]


@pytest.mark.parametrize("target", ["onnxruntime", "tensorrt"])
def test_an_output_whose_size_depends_on_values_is_named(tmp_path, target):
    report, _ = selecting(tmp_path, False, target=target, recipe="none")
    evaluation = report["evaluation"]
    assert evaluation["outputs"] == [] and report["summary"]["verdict"] is None
    [row] = [r for r in evaluation["not_judged"] if r["kind"] == "output"]
    assert row["name"] == "y" and "numbers of elements" in row["reason"]
    [warning] = warned(report, "outputs_not_judged")
    assert warning["node"] == "y"


def test_the_other_outputs_judge(tmp_path):
    report, data = selecting(tmp_path, True, target="onnxruntime", recipe={"min_sqnr_db": 30})
    [output] = report["evaluation"]["deployed"]["outputs"]
    assert output["name"] == "all" and report["summary"]["verdict"] is not None
    assert [r["name"] for r in report["evaluation"]["not_judged"]] == ["y"]
    [start] = report["recipe"]
    assert start["sqnr_db"] == pytest.approx(output["sqnr_db"], abs=2)
    session = [onnxruntime.InferenceSession(tmp_path / name) for name in ("m.onnx", "q.onnx")]
    real, made = [s.run(["all"], data)[0] for s in session]
    assert output["sqnr_db"] == pytest.approx(judge.sqnr_db(real, made), abs=0.5)


def test_a_recipe_finds_what_keeps_the_only_output(tmp_path):
    """Nothing can be compared with the product in integers; in float it is the same."""
    report, _ = selecting(tmp_path, False, target="onnxruntime")
    assert report["recipe"][0]["sqnr_db"] is None
    measured = ("integers", "rules", "cut", "search", "unquantized")
    kept, = (step for step in report["recipe"] if step["kept"] and step["step"] in measured)
    assert kept["step"] != "integers" and kept["sqnr_db"] is None
    assert not any(layer["quantized_inputs"] for layer in report["layers"])
    assert len(report["evaluation"]["deployed"]["outputs"]) == 1
    assert report["evaluation"]["not_judged"] == []


def test_integers_have_a_figure_of_their_own(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "fc"),
             helper.make_node("ArgMax", ["y"], ["best"], "best", axis=1)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", WIDTH]),
               helper.make_tensor_value_info("best", TensorProto.INT64, ["n", 1])]
    done, report = quantize(tmp_path, nodes, outputs,
                            {"w": rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)},
                            {"x": rng.normal(size=(16, WIDTH)).astype(np.float32)})
    assert done.returncode == 0, done.stderr
    assert not [r for r in report["evaluation"]["not_judged"] if r["kind"] == "output"]
    [best] = [o for o in report["evaluation"]["outputs"] if o["name"] == "best"]
    assert 0 <= best["top1_agreement"] <= 1 and best["cosine"] is None
    assert not warned(report, "outputs_not_judged")


def test_a_gate_for_float64(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "fc"),
             helper.make_node("Cast", ["a"], ["y"], "wide", to=TensorProto.DOUBLE)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", WIDTH])]
    done, report = quantize(tmp_path, nodes, outputs,
                            {"w": rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)},
                            {"x": rng.normal(size=(16, WIDTH)).astype(np.float32)},
                            accept={"min_sqnr_db": 20})
    assert done.returncode == 0, done.stderr
    [gate] = report["gates"]
    assert gate["met"] and gate["output"] == "y"


@pytest.mark.parametrize("spec, named", [
    ({}, "sample 11: "),
    ({"target": "onnxruntime", "smooth": True}, "sample 11: "),
    ({"calibration": {"batch": 4}}, "samples 8 to 11: "),
    ({"calibration": {"max_samples": 8}, "evaluate": {"samples": 8}}, "sample 11: "),
    ({"calibration": {"max_samples": 8}, "evaluate": {"samples": 8},
      "sensitivity": {"samples": 8}}, "sample 11: ")])
def test_a_sample_that_does_not_run_is_named(tmp_path, spec, named):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "fc"),
             helper.make_node("Gather", ["t", "i"], ["b"], "row"),
             helper.make_node("Add", ["a", "b"], ["y"], "add")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", WIDTH])]
    rows = np.zeros(16, np.int64)
    rows[11] = 9
    done, _ = quantize(tmp_path, nodes, outputs,
                       {"w": rng.normal(size=(WIDTH, WIDTH)).astype(np.float32),
                        "t": rng.normal(size=(4, WIDTH)).astype(np.float32)},
                       {"x": rng.normal(size=(16, WIDTH)).astype(np.float32), "i": rows},
                       **spec)
    assert done.returncode == 1 and "run_failed" in done.stderr
    assert named in done.stderr
