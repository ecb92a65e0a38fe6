# SPDX-License-Identifier: Apache-2.0
"""Rules C17 of the target onnxruntime and V5 of openvino: a BatchNormalization or a bias is folded into the layer
in front of it. With rule C15 these small layers stay floating point, so what comes back is the
folded model alone: it computes what the source does, up to rounding."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import QUANTIZE

GRAPH = '<ir_version: 9, opset_import: ["" : 17]> g '
CONV = "(float[1,4,6,6] x) => (float[1,6,6,6] y) { %s }"
NORM = "BatchNormalization (h, scale, offset, mean, variance)"
SPEC = {"target": "onnxruntime", "rules": {"C15": True, "C17": True}}


def fill(model):
    """Each constant that is named below gets random values, always the same."""
    numbers = np.random.default_rng(3)
    shapes = {"w": (6, 4, 1, 1), "grouped": (6, 2, 1, 1), "line": (6, 4, 1), "t": (4, 3, 1, 1),
              "b": (6,), "scale": (6,), "offset": (6,), "mean": (6,), "variance": (6,),
              "along": (1, 6, 1, 1), "short": (6, 1, 1), "matrix": (4, 6), "turned": (6, 4),
              "one": (1,)}
    read = {i for node in model.graph.node for i in node.input}
    read |= {i for node in model.graph.node for a in node.attribute for n in a.g.node for i in n.input}
    given = {i.name for i in model.graph.input}
    for name, shape in shapes.items():
        values = numbers.normal(0, 1, shape)
        if name == "variance":
            values = np.abs(values) + 0.1
        if name in read - given:
            model.graph.initializer.append(
                numpy_helper.from_array(values.astype(np.float32), name))
    return model


def quantize(folder, model, spec):
    onnx.save(model, folder / "m.onnx")
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec",
                           folder / "spec.json", "-o", folder / "q.onnx", "--report",
                           folder / "report.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    return judge.load((folder / "q.onnx").read_bytes()), {w["code"] for w in report["warnings"]}


def check(folder, text, left, folded, **more):
    source = fill(onnx.parser.parse_model(GRAPH + text))
    made, warnings = quantize(folder, source, {**SPEC, **more})
    assert [n.op_type for n in made.graph.node] == left
    assert ("layers_folded" in warnings) == folded
    numbers = np.random.default_rng(4)
    feed = {}
    for value in source.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        feed[value.name] = (np.array(True) if not shape else
                            np.abs(numbers.normal(0, 1, shape)).astype(np.float32))
    wanted, got = (judge.session(m.SerializeToString(), False).run(None, feed)
                   for m in (source, made))
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("text, left", [
    (CONV % f"h = Conv (x, w) y = {NORM}", ["Conv"]),
    (CONV % f"h = Conv (x, w, b) y = {NORM.replace('ion', 'ion <epsilon = 0.1>')}", ["Conv"]),
    (CONV % f"h = Conv <group = 2> (x, grouped, b) y = {NORM}", ["Conv"]),
    (CONV % f"h = ConvTranspose <group = 2> (x, t) y = {NORM}", ["ConvTranspose"]),
    (CONV % "h = Conv (x, w) y = Add (h, along)", ["Conv"]),
    (CONV % "h = Conv (x, w, b) y = Add (short, h)", ["Conv"]),
    (CONV % f"h = Conv (x, w) k = {NORM} y = Add (k, along)", ["Conv"]),
    (CONV % f"h = Conv (x, w) k = {NORM} y = Relu (k)", ["Conv", "Relu"]),
    (f"(float[1,4,6] x) => (float[1,6,6] y) {{ h = Conv (x, line) y = {NORM} }}", ["Conv"]),
    (f"(float[3,4] x) => (float[3,6] y) {{ h = Gemm (x, matrix) y = {NORM} }}", ["Gemm"]),
    (f"(float[3,4] x) => (float[3,6] y) {{ h = Gemm <transB = 1> (x, turned, b) y = {NORM} }}",
     ["Gemm"]),
    ("(float[3,4] x) => (float[3,6] y) { h = Gemm (x, matrix) y = Add (h, b) }", ["Gemm"]),
    (f"(bool c, float[1,4,6,6] x) => (float[1,6,6,6] y) {{ y = If (c) <then_branch = g1 () => "
     f"(float[1,6,6,6] k) {{ h = Conv (x, w) k = {NORM} }}, else_branch = g2 () => "
     "(float[1,6,6,6] n) { n = Conv <group = 2> (x, grouped, b) }> }", ["If"]),
])
def test_it_is_folded_and_computes_the_same(tmp_path, text, left):
    check(tmp_path, text, left, True)


@pytest.mark.parametrize("text, left", [
    (CONV.replace("(float[1,6,6,6] y)", "(float[1,6,6,6] y, float[1,6,6,6] h)")
     % f"h = Conv (x, w) y = {NORM}", ["Conv", "BatchNormalization"]),
    (CONV % f"h = Conv (x, w) k = {NORM} y = Sub (k, h)",
     ["Conv", "BatchNormalization", "Sub"]),
    (CONV.replace("6,6] x", "6,6] x, float[6] mean") % f"h = Conv (x, w) y = {NORM}",
     ["Conv", "BatchNormalization"]),
    (CONV % "h = Conv (x, w) y = Add (h, one)", ["Conv", "Add"]),
    (CONV % "h = Conv (x, w) y = Add (h, b)", ["Conv", "Add"]),
    (CONV % "h = Relu (x) k = Conv (h, w) y = Add (k, k)", ["Relu", "Conv", "Add"]),
    (CONV % f"h = Conv (x, w) k = {NORM} n = Conv (x, w) y = Sub (k, n)",
     ["Conv", "BatchNormalization", "Conv", "Sub"]),
])
def test_it_stays_where_it_cannot_be_folded(tmp_path, text, left):
    check(tmp_path, text, left, False)


def test_factors_of_a_gemm_are_folded_where_rule_p1_is_on(tmp_path):
    text = f"(float[3,4] x) => (float[3,6] y) {{ h = Gemm <alpha = 0.5> (x, matrix) y = {NORM} }}"
    check(tmp_path, text, ["Gemm"], True)
    check(tmp_path, text, ["Gemm", "BatchNormalization"], False,
          rules={**SPEC["rules"], "P1": False})


@pytest.mark.parametrize("more", [
    {"layers": [{"name": "norm", "quantize_input": False}]},
    {"layers": [{"match": "nor?", "quantize_input": False}]},
    {"layers": [{"name": "@y", "quantize_input": False}]},
    {"layers": [{"class": "BatchNormalization", "quantize_input": False}]},
    {"calibration": {"ranges": {"h": [-1, 1]}}},
    {"rules": {"C15": True, "C17": False}},
])
def test_it_stays_where_the_spec_says_so(tmp_path, more):
    text = CONV % f"[conv] h = Conv (x, w) [norm] y = {NORM}"
    check(tmp_path, text, ["Conv", "BatchNormalization"], False, **more)


@pytest.mark.parametrize("on, left", [(True, ["Conv"]), (False, ["Conv", "BatchNormalization"])])
def test_rule_v5_does_it_for_openvino(tmp_path, on, left):
    check(tmp_path, CONV % f"h = Conv (x, w) y = {NORM}", left, on, target="openvino",
          rules={"V5": on}, layers=[{"class": "Conv2D", "quantize_input": False,
                                     "quantize_weight": False}])
