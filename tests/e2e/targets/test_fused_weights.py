# SPDX-License-Identifier: Apache-2.0
"""Weights alone with the target onnxruntime: every form that exporters write of a layer becomes a
MatMulNBits (rule C21), computes the same, and a layer that does not is said."""

import collections
import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

import judge
from service import QUANTIZE

WIDTH = 96
FORMATS = {
    "int4": {"dtype": "int4"},
    "int4 blocks": {"dtype": "int4", "granularity": {"block": 32}},
    "uint4 blocks": {"dtype": "uint4", "granularity": {"block": 16}},
    "int8": {"dtype": "int8"},
    "uint8": {"dtype": "uint8"},
    "int8 blocks": {"dtype": "int8", "granularity": {"block": 32}},
    "int8 behind Q and DQ": {"dtype": "int8", "storage": "qdq"},
}
# name: two layers and a function behind each; {0}, {1}: the input and the output
LAYERS = {
    "MatMul": "m{n} = MatMul ({x}, w{n})",
    "MatMul, Add": "p{n} = MatMul ({x}, w{n})  m{n} = Add (p{n}, b{n})",
    "Add, MatMul": "p{n} = MatMul ({x}, w{n})  m{n} = Add (b{n}, p{n})",
    "Gemm": "m{n} = Gemm ({x}, w{n}, b{n})",
    "Linear": "m{n} = Gemm <transB = 1> ({x}, t{n}, b{n})",
    "Linear without bias": "m{n} = Gemm <transB = 1> ({x}, t{n})",
    "factors": "m{n} = Gemm <transB = 1, alpha = 0.5, beta = 2.0> ({x}, t{n}, b{n})",
    "alpha": "m{n} = Gemm <alpha = 0.5> ({x}, w{n})",
    "bias of two axes": "m{n} = Gemm ({x}, w{n}, row{n})",
}
FUNCTIONS = {
    "nothing": "{y} = Identity (m{n})",
    "Relu": "{y} = Relu (m{n})",
    "Clip": "{y} = Clip (m{n}, zero, six)",
    "Clip below": "{y} = Clip (m{n}, zero)",
    "Clip above": "{y} = Clip (m{n}, , six)",
    "Sigmoid": "{y} = Sigmoid (m{n})",
}


def constants():
    rng = np.random.default_rng(7)
    made = {"zero": np.float32(0), "six": np.float32(.6)}
    for n in "12":
        w = rng.normal(size=(WIDTH, WIDTH)).astype(np.float32) / np.float32(np.sqrt(WIDTH))
        b = rng.normal(size=WIDTH).astype(np.float32) / 4
        made |= {f"w{n}": w, f"t{n}": np.ascontiguousarray(w.T), f"b{n}": b, f"row{n}": b[None]}
    return made


CONSTANTS = constants()


def two(layer, function):
    return "  ".join((layer + "  " + function).format(n=n, x=x, y=y)
                     for n, x, y in (("1", "x", "h"), ("2", "h", "y")))


def make(nodes, dims="N"):
    graph = parser.parse_graph(f"net (float[{dims}, {WIDTH}] x) => (float y) {{ {nodes} }}")
    used = {name for node in graph.node for name in node.input}
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name)
                             for name, value in CONSTANTS.items() if name in used)
    for node in graph.node:
        node.name = node.output[0]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Result:
    def __init__(self, folder, model, spec, x):
        given, self.path, report = (folder / name for name in ("m.onnx", "q.onnx", "r.json"))
        onnx.save(model, given)
        spec = {"target": "onnxruntime", "recipe": "none", "evaluate": False,
                "activations": "none", **spec}
        (folder / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run([*QUANTIZE, given, "--spec",
                               folder / "spec.json", "-o", self.path, "--report", report],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        onnx.checker.check_model(self.path)
        self.report = json.loads(report.read_text())
        self.kernels = self.report["kernels"]
        self.warned = [w["node"] for w in self.report["warnings"]
                       if w["code"] == "weight_dequantized"]
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.literal = onnxruntime.InferenceSession(self.path, options).run(None, {"x": x})[0]
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(folder / "optimized.onnx")
        self.run = onnxruntime.InferenceSession(self.path, options).run(None, {"x": x})[0]
        self.ops = collections.Counter(
            node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


def inputs(*shape):
    return np.random.default_rng(8).normal(size=shape).astype(np.float32)


def check_fused(result, n=2):
    if n:  # the nodes of branches are not among them
        assert result.ops["MatMulNBits"] == n and not result.ops["DequantizeLinear"]
    assert result.kernels["ops"] == {"MatMulNBits": n or 1}
    assert result.kernels["conversions"] == 0 and result.kernels["floats"] == []
    assert result.warned == []
    assert judge.sqnr_db(result.literal, result.run) > 35  # MatMulNBits rounds what it reads


FORMS = [("Linear", "Relu", format) for format in FORMATS]
FORMS += [(layer, "Relu", "int4 blocks") for layer in LAYERS if layer != "Linear"]
FORMS += [("MatMul, Add", function, "int8") for function in FUNCTIONS]
FORMS += [("Linear", function, "int4") for function in FUNCTIONS if function != "Relu"]


@pytest.mark.parametrize("layer, function, weights", FORMS)
def test_every_form_becomes_one_kernel(tmp_path, layer, function, weights):
    model, x = make(two(LAYERS[layer], FUNCTIONS[function])), inputs(4, WIDTH)
    spec = {"weights": FORMATS[weights]}
    result = Result(tmp_path, model, spec, x)
    check_fused(result)
    plain = Result(tmp_path, model, {**spec, "rules": {"C21": False}}, x)
    # up to the order of a sum of floats
    np.testing.assert_allclose(result.literal, plain.literal, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer, function", [("Linear", "nothing"), ("MatMul", "Relu"),
                                             ("MatMul, Add", "Clip"), ("alpha", "nothing")])
def test_without_the_rule_the_weight_is_dequantized_and_that_is_said(tmp_path, layer, function):
    model = make(two(LAYERS[layer], FUNCTIONS[function]))
    plain = Result(tmp_path, model, {"weights": FORMATS["int4"], "rules": {"C21": False, "P1": False}},
                   inputs(4, WIDTH))
    assert plain.ops["DequantizeLinear"] == plain.kernels["conversions"] > 0
    listed = {row["name"]: row["reason"] for row in plain.kernels["floats"]}
    assert len(listed) == plain.ops["DequantizeLinear"]
    assert all("dequantized in each run" in reason for reason in listed.values())
    assert plain.warned == [next(iter(listed))]


@pytest.mark.parametrize("recipe", ["none", "auto"])
def test_both_recipes(tmp_path, recipe):
    model = make(two(LAYERS["Linear"], FUNCTIONS["Relu"]))
    check_fused(Result(tmp_path, model, {"weights": FORMATS["int8"], "recipe": recipe},
                       inputs(4, WIDTH)))


def test_tokens_of_three_axes(tmp_path):
    model = make(two(LAYERS["MatMul, Add"], FUNCTIONS["Relu"]), "N, 5")
    check_fused(Result(tmp_path, model, {"weights": FORMATS["int4"]}, inputs(2, 5, WIDTH)))


@pytest.mark.parametrize("nodes", ["a = MatMul (x, t1)  y = Gemm <transB = 1> (a, t1)",
                                   "a = Gemm <transB = 1> (x, t1)  y = Gemm <transB = 1> (a, t1)"])
def test_a_weight_that_others_read_stays_and_is_said(tmp_path, nodes):
    result = Result(tmp_path, make(nodes), {"weights": FORMATS["int4"]}, inputs(4, WIDTH))
    assert result.ops["MatMulNBits"] < 2
    listed = {row["name"]: row["reason"] for row in result.kernels["floats"]}
    assert "several nodes read the weight" in listed["y"] and result.warned == [[*listed][0]]


@pytest.mark.parametrize("weights, reason", [
    ({"dtype": "int4", "granularity": {"block": 8}}, "the blocks are not of 16, 32, 64, 128 or 256"),
    ({"dtype": "float8e4m3fn"}, "the weight's format is one of floats")])
def test_formats_without_a_kernel_are_said(tmp_path, weights, reason):
    model = make(two(LAYERS["Linear"], FUNCTIONS["Relu"]))
    result = Result(tmp_path, model, {"weights": weights}, inputs(4, WIDTH))
    assert result.ops["MatMulNBits"] == 0 and result.warned == ["m1"]
    assert [row["name"] for row in result.kernels["floats"]] == ["m1", "m2"]
    assert all(row["reason"].startswith(reason) for row in result.kernels["floats"])


def test_a_layer_in_a_branch(tmp_path):
    model = make("c = ReduceMax <keepdims = 0> (x)  d = Greater (c, zero)  y = If (d) "
                 "<then_branch = one () => (float t) { m = Gemm <transB = 1> (x, t1, b1)  t = Relu (m) }, "
                 "else_branch = other () => (float e) { e = Identity (x) }>")
    for name in ("t1", "b1"):
        model.graph.initializer.append(numpy_helper.from_array(CONSTANTS[name], name))
    check_fused(Result(tmp_path, model, {"weights": FORMATS["int4"]}, inputs(4, WIDTH)), None)


def test_an_operator_that_an_entry_selects_keeps_its_type(tmp_path):
    model = make(two(LAYERS["MatMul"], FUNCTIONS["Relu"]))
    result = Result(tmp_path, model, {
        "weights": FORMATS["int4"], "layers": [{"class": "Relu", "quantize_input": False}]},
        inputs(4, WIDTH))
    assert result.ops["Relu"] == 2


def test_activations_that_are_quantized_leave_the_forms(tmp_path):
    model = make(two(LAYERS["Linear"], FUNCTIONS["Relu"]))
    result = Result(tmp_path, model, {
        "activations": {"dtype": "uint8"}, "calibration": {"random_samples": 4}}, inputs(4, WIDTH))
    nodes = onnx.load(result.path).graph.node
    assert "Max" not in [node.op_type for node in nodes]
    assert [row["on"] for row in result.report["rules"] if row["id"] == "C21"] == [False]


# the layers of an encoder whose weights all of its blocks share, as ALBERT's; {x}: the input, {n}: the layer
SHARED = {
    "MatMul": "m{n} = MatMul ({x}, w1)",
    "MatMul, Add": "p{n} = MatMul ({x}, w1)  m{n} = Add (p{n}, b1)",
    "Gemm": "m{n} = Gemm ({x}, w1, b1)",
    "Linear": "m{n} = Gemm <transB = 1> ({x}, t1, b1)",
    "Transpose": "t{n} = Transpose <perm = [1, 0]> (w1)  m{n} = MatMul ({x}, t{n})",
}


def chain(layers):
    text, x = "", "x"
    for n, layer in enumerate(layers, 5):
        y = "y" if n == 4 + len(layers) else f"h{n}"
        text += f"{SHARED[layer].format(n=n, x=x)}  {y} = Tanh (m{n})  "
        x = y
    return text


@pytest.mark.parametrize("layers, weights", [
    *((["Linear"] * 3, weights) for weights in FORMATS if weights != "int8 behind Q and DQ"),
    *(([layer] * 2, "int8") for layer in SHARED if layer != "Linear"),
    (["MatMul", "Gemm", "MatMul, Add"], "int8"), (["Transpose", "MatMul", "Transpose"], "int8")])
def test_a_weight_of_several_layers_is_stored_once(tmp_path, layers, weights):
    """One DequantizeLinear that all of them read was dequantized in each run, and what several Transposes made
    was stored for each."""
    model, x = make(chain(layers)), inputs(4, WIDTH)
    spec = {"weights": FORMATS[weights], "recipe": "auto"}
    plain = Result(tmp_path, model, {**spec, "rules": {"P5": False}}, x)
    several, size = layers.count("Transpose") > 1, plain.path.stat().st_size
    assert several or (plain.warned and plain.ops["MatMulNBits"] < len(layers))
    result = Result(tmp_path, model, spec, x)
    check_fused(result, len(layers))
    assert "P5" in next(row["rules"] for row in result.report["layers"] if row["name"] in ("m5", "p5"))
    stored = [t for t in onnx.load(result.path).graph.initializer if t.data_type in (2, 3) and len(t.dims) == 2]
    assert len(stored) == (2 if "Transpose" in layers and "MatMul" in layers else 1)
    real = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert judge.sqnr_db(real, result.run) > 30
    if "int4" not in weights:
        assert result.path.stat().st_size < (.9 * size if several else size + 4096)
