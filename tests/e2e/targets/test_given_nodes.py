# SPDX-License-Identifier: Apache-2.0
"""Nodes of the model that was given, of which a runtime computes other numbers than the standard says:
the plan warns of them, or the result has a form that runs right."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import helper, numpy_helper

import judge
from service import INSTALLED, QUANTIZE

rng = np.random.default_rng(47)
node, value = helper.make_node, helper.make_tensor_value_info
PLAIN = {"INFERENCE_PRECISION_HINT": "f32"}
CODE = "misread_by_target"
SCALES = {"s": np.float32(6 / 255), "ws": np.float32(0.015), "t": np.float32(0.15), "z": np.uint8(128)}


def save(path, nodes, given, made, constants, opset):
    graph = helper.make_graph(nodes, "g", [value("x", *given)], [value("y", *made)],
                              [numpy_helper.from_array(np.asarray(v), k)
                               for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def warned(folder, model, target, **spec):
    """Plans for a target. Returns the details of the warnings."""
    (folder / "spec.json").write_text(json.dumps({"target": target, **spec}))
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", model, "--spec", folder / "spec.json", "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(w["node"], w["detail"]) for w in json.loads(done.stdout)["warnings"] if w["code"] == CODE]


def literal(path, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options).run(None, {"x": x})[0]


def by_openvino(path, x):
    return openvino.compile_model(path, "CPU", PLAIN)({"x": x})[0]


# --- a Gemm with a bias of its own scale ----------------------------------------------


def gemm(path, factor, per_channel=False, behind_bias="bd", **attributes):
    """The scale of the bias is the factor times the product of the others."""
    scale = np.geomspace(0.01, 0.02, 8, dtype=np.float32) if per_channel else SCALES["ws"]
    bias_scale = np.float32(factor) * SCALES["s"] * scale
    axis = {"axis": 0} if per_channel else {}
    constants = SCALES | {
        "w": rng.integers(-63, 64, (8, 16)).astype(np.int8), "ws": scale,
        "wz": np.zeros_like(scale, dtype=np.int8), "bs": bias_scale,
        "b": np.rint(5 * rng.normal(size=8) / bias_scale).astype(np.int32)}
    save(path, [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], **axis),
                node("DequantizeLinear", ["b", "bs"], ["bd"], **axis),
                node("Identity", ["bd"], ["same"]), node("Identity", ["same"], ["again"]),
                node("Gemm", ["d", "wd", behind_bias], ["o"], name="layer", transB=1, **attributes),
                node("QuantizeLinear", ["o", "t", "z"], ["oq"]),
                node("DequantizeLinear", ["oq", "t", "z"], ["y"])],
         (1, [4, 16]), (1, [4, 8]), constants, 13)
    return rng.normal(size=(4, 16)).astype(np.float32)


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_bias_that_onnxruntime_misreads_is_named(tmp_path, per_channel):
    path = tmp_path / "net.onnx"
    gemm(path, 2, per_channel)
    [(name, detail)] = warned(tmp_path, path, "onnxruntime", existing_qdq="keep")
    assert name == "layer" and "strip" in detail
    for target in ("openvino", "tensorrt"):
        assert not warned(tmp_path, path, target, existing_qdq="keep")
    assert not warned(tmp_path, path, "onnxruntime", existing_qdq="strip")


def test_an_identity_does_not_hide_the_bias(tmp_path):
    path = tmp_path / "net.onnx"
    x = gemm(path, 2, behind_bias="again")
    [(name, _)] = warned(tmp_path, path, "onnxruntime", existing_qdq="keep")
    assert name == "layer"
    made = onnxruntime.InferenceSession(path).run(None, {"x": x})[0]
    assert judge.sqnr_db(literal(path, x), made) < 15


@pytest.mark.parametrize("factor, attributes", [(1, {}), (1.0001, {}), (2, {"alpha": .5})])
def test_a_bias_that_onnxruntime_reads_right_is_not_named(tmp_path, factor, attributes):
    x = gemm(tmp_path / "net.onnx", factor, **attributes)
    assert not warned(tmp_path, tmp_path / "net.onnx", "onnxruntime", existing_qdq="keep")
    made = onnxruntime.InferenceSession(tmp_path / "net.onnx").run(None, {"x": x})[0]
    assert judge.sqnr_db(literal(tmp_path / "net.onnx", x), made) > 35


def test_onnxruntime_misreads_a_bias(tmp_path):
    """Where this fails, ONNX Runtime has mended it and the warning may go."""
    x = gemm(tmp_path / "net.onnx", 2)
    made = onnxruntime.InferenceSession(tmp_path / "net.onnx").run(None, {"x": x})[0]
    assert judge.sqnr_db(literal(tmp_path / "net.onnx", x), made) < 15


# --- integer operators with several scales --------------------------------------------


def convolution(path, scales):
    constants = {"xs": np.float32(0.02), "xz": np.uint8(128), "ys": np.float32(0.5),
                 "w": rng.integers(-63, 64, (8, 8, 1, 1)).astype(np.int8), "ws": scales,
                 "wz": np.zeros_like(scales, dtype=np.int8)}
    save(path, [node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "xz"], ["y"], name="layer")],
         (2, [1, 8, 6, 6]), (2, [1, 8, 6, 6]), constants, 13)
    return rng.integers(0, 256, (1, 8, 6, 6)).astype(np.uint8)


def test_scales_that_openvino_misreads_are_named(tmp_path):
    path = tmp_path / "net.onnx"
    convolution(path, np.geomspace(0.001, 0.1, 8, dtype=np.float32))
    [(name, _)] = warned(tmp_path, path, "openvino", existing_qdq="keep")
    assert name == "layer" and not warned(tmp_path, path, "onnxruntime", existing_qdq="keep")
    convolution(path, np.float32(0.1))
    assert not warned(tmp_path, path, "openvino", existing_qdq="keep")


def test_openvino_misreads_scales(tmp_path):
    """Where this fails, OpenVINO has mended it and the warning may go."""
    x = convolution(tmp_path / "net.onnx", np.geomspace(0.001, 0.1, 8, dtype=np.float32))
    real, made = (made.astype(np.float32) - 128 for made in (
        literal(tmp_path / "net.onnx", x), by_openvino(tmp_path / "net.onnx", x)))
    assert judge.sqnr_db(real, made) < 15


# --- scales along the axis that is summed over ------------------------------------------


def product(path, operator, columns, axis, turned=False):
    """A weight with scales along an axis of [16, columns], behind a pair. It may be stored transposed."""
    n = (16, columns)[axis]
    weight = rng.integers(-127, 128, (16, columns)).astype(np.int8)
    constants = SCALES | {"w": np.ascontiguousarray(weight.T) if turned else weight,
                          "ws": np.geomspace(0.002, 0.04, n, dtype=np.float32),
                          "wz": np.zeros(n, np.int8)}
    stored = [node("DequantizeLinear", ["w", "ws", "wz"], ["wt" if turned else "wd"], axis=axis ^ turned),
              *([node("Transpose", ["wt"], ["wd"])] if turned else [])]
    save(path, [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                *stored, node(operator, ["d", "wd"], ["o"], name="layer"),
                node("QuantizeLinear", ["o", "t", "z"], ["p"]),
                node("DequantizeLinear", ["p", "t", "z"], ["y"])],
         (1, [4, 16]), (1, [4, columns]), constants, 17)
    return rng.normal(size=(4, 16)).astype(np.float32)


def gather(path, axis):
    constants = {"w": rng.integers(-127, 128, (8, 8)).astype(np.int8),
                 "ws": np.geomspace(0.002, 0.04, 8, dtype=np.float32), "wz": np.zeros(8, np.int8),
                 "i": np.int64([1, 5, 7])}
    save(path, [node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis),
                node("Gather", ["wd", "i"], ["o"], name="layer"), node("Mul", ["o", "x"], ["y"])],
         (1, [3, 8]), (1, [3, 8]), constants, 17)
    return np.ones((3, 8), np.float32)


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
@pytest.mark.parametrize("columns", [16, 12])
@pytest.mark.parametrize("turned", [False, True])
def test_scales_of_inputs_are_named(tmp_path, operator, columns, turned):
    path = tmp_path / "net.onnx"
    product(path, operator, columns, 0, turned)
    [(name, _)] = warned(tmp_path, path, "openvino", existing_qdq="keep")
    assert name == "layer"
    known = warned(tmp_path, path, "onnxruntime", existing_qdq="keep")
    assert [n for n, _ in known] == (["layer"] if operator == "MatMul" or columns == 16 else [])
    product(path, operator, columns, 1, turned)
    for target in "openvino", "onnxruntime":
        assert not warned(tmp_path, path, target, existing_qdq="keep")


def test_scales_of_columns_of_a_table_are_named(tmp_path):
    path = tmp_path / "net.onnx"
    gather(path, 1)
    [(name, _)] = warned(tmp_path, path, "openvino", existing_qdq="keep")
    assert name == "layer" and not warned(tmp_path, path, "onnxruntime", existing_qdq="keep")
    gather(path, 0)
    assert not warned(tmp_path, path, "openvino", existing_qdq="keep")


@pytest.mark.parametrize("operator, turned", [("MatMul", False), ("Gemm", False), ("Gemm", True)])
def test_onnxruntime_misreads_scales_of_rows(tmp_path, operator, turned):
    """Where this fails, ONNX Runtime has mended it and the warning may go."""
    path = tmp_path / "net.onnx"
    x = product(path, operator, 16, 0, turned)
    made = onnxruntime.InferenceSession(path).run(None, {"x": x})[0]
    assert judge.sqnr_db(literal(path, x), made) < 15


@pytest.mark.parametrize("make", [lambda path: product(path, "MatMul", 12, 0),
                                  lambda path: product(path, "Gemm", 16, 0),
                                  lambda path: product(path, "MatMul", 12, 0, True),
                                  lambda path: gather(path, 1)], ids=["MatMul", "Gemm", "Transpose", "Gather"])
def test_openvino_misreads_scales_of_inputs(tmp_path, make):
    """Where this fails, OpenVINO has mended it and the warning may go."""
    path = tmp_path / "net.onnx"
    x = make(path)
    assert judge.sqnr_db(literal(path, x), by_openvino(path, x)) < 15


# --- Softmax below opset 13 -----------------------------------------------------------


def softmax(path, opset, axis):
    attributes = {} if axis is None else {"axis": axis}
    save(path, [node("MatMul", ["x", "w"], ["a"], name="product"),
                node("Softmax", ["a"], ["y"], name="layer", **attributes)],
         (1, [2, 5, 6]), (1, [2, 5, 6]),
         {"w": rng.normal(size=(6, 6)).astype(np.float32)}, opset)
    return rng.normal(size=(2, 5, 6)).astype(np.float32)


JOINS = [(11, None), (11, 1), (12, 0), (12, -2)]


@pytest.mark.parametrize("opset, axis", JOINS)
@pytest.mark.parametrize("more", [{}, {"activations": "none"}], ids=["pairs", "weights"])
def test_a_softmax_of_several_axes_runs_right(tmp_path, opset, axis, more):
    path, made = tmp_path / "net.onnx", tmp_path / "made.onnx"
    x = softmax(path, opset, axis)
    np.savez(tmp_path / "data.npz", x=np.repeat(x[None], 8, 0))
    spec = {"target": "openvino", "recipe": "none", "weights": {"granularity": "tensor"}, **more}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    subprocess.run([*QUANTIZE, path, "--spec", tmp_path / "spec.json",
                    "--calibration", tmp_path / "data.npz", "-o", made], check=True)
    assert judge.sqnr_db(literal(path, x), by_openvino(made, x)) > 30
    assert not warned(tmp_path, path, **spec)
    [(name, _)] = warned(tmp_path, path, **spec, opset="keep")
    assert name == "layer"


@pytest.mark.parametrize("opset, axis", [(12, 2), (12, -1), (10, 1)])
def test_a_softmax_that_openvino_computes_right_keeps_its_opset(tmp_path, opset, axis):
    x = softmax(tmp_path / "net.onnx", opset, axis)
    assert judge.sqnr_db(literal(tmp_path / "net.onnx", x), by_openvino(tmp_path / "net.onnx", x)) > 60
    assert not warned(tmp_path, tmp_path / "net.onnx", "openvino", opset="keep")
    (tmp_path / "spec.json").write_text(json.dumps(
        {"target": "openvino", "weights": {"granularity": "tensor"}}))
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "net.onnx", "--spec",
                           tmp_path / "spec.json"], capture_output=True, text=True, check=True)
    assert "opset_raised" not in done.stderr


@pytest.mark.parametrize("first, axis, warns", [
    ([node("Gemm", ["x", "w"], ["a"])], 1, False),
    ([node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["r"]), node("Add", ["r", "b"], ["a"])], 1, False),
    ([node("MatMul", ["x", "w"], ["m"]), node("Reshape", ["m", "three"], ["a"])], 2, False),
    ([node("MatMul", ["x", "w"], ["m"]), node("Reshape", ["m", "three"], ["a"])], 1, True),
    ([node("MatMul", ["x", "w"], ["m"]), node("Reshape", ["m", "shape"], ["a"])], 1, True)])
def test_ranks_that_the_file_does_not_state(tmp_path, first, axis, warns):
    """They follow from what stands in front; "shape" is computed, so that nothing follows."""
    nodes = [*first, node("Softmax", ["a"], ["s"], name="layer", axis=axis), node("ReduceSum", ["s"], ["y"])]
    if "shape" in [name for one in nodes for name in one.input]:
        nodes.insert(0, node("Shape", ["x"], ["shape"]))
    save(tmp_path / "net.onnx", nodes, (1, [4, 6]), (1, [1, 1, 1] if "three" in str(first) else [1, 1]),
         {"w": rng.normal(size=(6, 6)).astype(np.float32), "b": np.ones(6, np.float32),
          "three": np.array([2, 2, 6])}, 11)
    spec = {"weights": {"granularity": "tensor"}, "opset": "keep"}
    assert [name for name, _ in warned(tmp_path, tmp_path / "net.onnx", "openvino", **spec)] == ["layer"] * warns


@pytest.mark.parametrize("opset, axis", JOINS)
def test_openvino_normalizes_one_axis(tmp_path, opset, axis):
    """Where this fails, OpenVINO has mended it and V20 may go."""
    x = softmax(tmp_path / "net.onnx", opset, axis)
    assert judge.sqnr_db(literal(tmp_path / "net.onnx", x), by_openvino(tmp_path / "net.onnx", x)) < 15


# --- small products in a row ----------------------------------------------------------


def products(folder, rows, op, between, reshaped=False, bias=False, **spec):
    """Returns the SQNR of the result, literally and in OpenVINO. A Reshape may make the rows."""
    path, made, nodes, tensor = folder / "net.onnx", folder / "made.onnx", [], "x"
    shape = (rows, 64)
    if reshaped:
        nodes.append(node("Reshape", ["x", "rows"], ["parts"]))
        tensor, shape = "parts", (16, rows * 4)
    for i, output in enumerate(("a", "b", "y")):
        biases = [f"b{i}"] if bias else []
        nodes.append(node(op, [tensor, f"w{i}", *biases], [output], name=f"layer{i}"))
        tensor = output
        if between and output != "y":
            tensor = f"{output}_{between}"
            nodes.append(node(between, [output, *([f"f{i}"] if between == "Mul" else [])], [tensor]))
    sizes = (64, 128, 32, 16)
    tables = {f"w{i}": (rng.normal(size=sizes[i:i + 2]) / np.sqrt(sizes[i])).astype(np.float32)
              for i in range(3)}
    for i in range(3):
        tables[f"b{i}"] = rng.normal(size=sizes[i + 1]).astype(np.float32)
        tables[f"f{i}"] = rng.uniform(.3, 2, sizes[i + 1]).astype(np.float32)
    if reshaped:
        tables["rows"] = np.array([rows, -1])
    save(path, nodes, (1, list(shape)), (1, [rows, 16]), tables, 17)
    x = rng.normal(size=(32, *shape)).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    (folder / "spec.json").write_text(json.dumps(
        {"target": "openvino", "recipe": "none", "evaluate": False, **spec}))
    subprocess.run([*QUANTIZE, path, "--spec", folder / "spec.json",
                    "--calibration", folder / "data.npz", "-o", made], check=True)
    real = literal(path, x[0])
    return judge.sqnr_db(real, literal(made, x[0])), judge.sqnr_db(real, by_openvino(made, x[0]))


@pytest.mark.parametrize("between", [None, "Relu"])
@pytest.mark.parametrize("op", ["Gemm", "MatMul"])
@pytest.mark.parametrize("rows", [1, 2, 5, 8, 9])
def test_small_products_in_a_row_run_right(tmp_path, rows, op, between):
    says, made = products(tmp_path, rows, op, between)
    assert min(says, made) > 20 and (says > 60) == (rows < 9)


@pytest.mark.parametrize("rows", [1, 2, 8])
@pytest.mark.parametrize("between, stays", [("Relu", False), ("Mul", True)])
def test_biases_between_keep_them_in_integers(tmp_path, rows, between, stays):
    """A factor behind the bias takes that back."""
    says, made = products(tmp_path, rows, "Gemm", between, bias=True)
    assert min(says, made) > 20 and (says > 60) == stays


@pytest.mark.parametrize("rows", [4, 8, 9])
def test_rows_that_a_reshape_makes_run_right(tmp_path, rows):
    says, made = products(tmp_path, rows, "MatMul", "Relu", reshaped=True)
    assert min(says, made) > 20 and (says > 60) == (rows < 9)


@pytest.mark.parametrize("rows, between, reshaped", [
    (4, None, False), (8, "Relu", False), (4, None, True)])
def test_openvino_joins_small_products(tmp_path, rows, between, reshaped):
    """Where this fails, OpenVINO has mended it and V21 may go."""
    says, made = products(tmp_path, rows, "MatMul", between, reshaped, rules={"V21": False})
    assert made < says - 4


# --- pairs with several scales --------------------------------------------------------


@pytest.mark.parametrize("target, warns", [("onnxruntime", True), ("tensorrt", True), ("openvino", False)])
@pytest.mark.parametrize("channels", [1, 8])
def test_activations_with_a_scale_for_each_channel_are_named(tmp_path, target, warns, channels):
    scales = np.linspace(.01, .02, channels, dtype=np.float32) if channels > 1 else np.float32(.01)
    zeros = np.zeros_like(scales, dtype=np.int8)
    axis = {"axis": 1} if channels > 1 else {}
    save(tmp_path / "net.onnx",
         [node("QuantizeLinear", ["x", "s", "z"], ["q"], name="pair", **axis),
          node("DequantizeLinear", ["q", "s", "z"], ["d"], **axis),
          node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1),
          node("MatMul", ["d", "wd"], ["y"])], (1, [4, 8]), (1, [4, 6]),
         {"s": scales, "z": zeros, "w": rng.integers(-9, 9, (8, 6)).astype(np.int8),
          "ws": np.full(6, .01, np.float32), "wz": np.zeros(6, np.int8)}, 13)
    said = warned(tmp_path, tmp_path / "net.onnx", target, existing_qdq="keep")
    assert [name for name, _ in said] == ["pair"] * (warns and channels > 1)


# --- a GELU on a processor that has none ----------------------------------------------


@pytest.mark.parametrize("host, rules, warns", [
    ("v68", {"Q7": True}, True), ("v68", {}, False), ("v73", {"Q7": True}, False)])
def test_a_gelu_that_v68_lacks_is_named(tmp_path, host, rules, warns):
    save(tmp_path / "net.onnx",
         [node("MatMul", ["x", "w"], ["a"]), node("Div", ["a", "root"], ["b"]),
          node("Erf", ["b"], ["c"], name="gelu"), node("Add", ["c", "one"], ["d"]),
          node("Mul", ["a", "d"], ["e"]), node("Mul", ["e", "half"], ["f"]), node("MatMul", ["f", "w"], ["y"])],
         (1, [1, 4, 8]), (1, [1, 4, 8]),
         {"w": rng.normal(size=(8, 8)).astype(np.float32), "root": np.float32(2 ** .5),
          "one": np.float32(1), "half": np.float32(.5)}, 17)
    (tmp_path / "spec.json").write_text(json.dumps({"target": "qnn", "host": host, "rules": {"Q18": False, **rules}}))
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "net.onnx", "--spec", tmp_path / "spec.json",
                           "--json"], capture_output=True, text=True, check=True)
    assert ("gelu" in [w["node"] for w in json.loads(done.stdout)["warnings"]
                       if w["code"] == "target_format"]) == warns


# --- what a job with data is told -----------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "mxfp4"])
@pytest.mark.parametrize("has_data", [False, True])
def test_data_are_asked_for_where_there_are_none(tmp_path, dtype, has_data):
    """With weights alone, too. A block of mxfp4 does not divide the first axis."""
    save(tmp_path / "net.onnx", [node("MatMul", ["x", "v"], ["a"]), node("MatMul", ["a", "w"], ["y"])],
         (1, [4, 70]), (1, [4, 70]),
         {"v": rng.normal(size=(70, 64)).astype(np.float32),
          "w": rng.normal(size=(64, 70)).astype(np.float32)}, 13)
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(16, 4, 70)).astype(np.float32))
    (tmp_path / "spec.json").write_text(json.dumps(
        {"target": "openvino", "activations": "none", "weights": {"dtype": dtype}}))
    data = ["--calibration", tmp_path / "data.npz"] if has_data else []
    done = subprocess.run([*QUANTIZE, tmp_path / "net.onnx", "--spec",
                           tmp_path / "spec.json", *data, "-o", tmp_path / "made.onnx"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("recipe_needs_data" in done.stderr) != has_data


# --- weights ----------------------------------------------------------------------------


def made_for_openvino(folder, inputs, **spec):
    """Quantizes the model of the folder. Returns the report and what OpenVINO computes of both models."""
    np.savez(folder / "data.npz", **inputs)
    (folder / "spec.json").write_text(json.dumps({"target": "openvino", **spec}))
    subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "spec.json", "--calibration", folder / "data.npz",
                    "-o", folder / "q.onnx", "--report", folder / "r.json"], check=True, timeout=120)
    both = [[np.stack([openvino.compile_model(folder / name, "CPU", PLAIN)(
        {key: rows[i:i + 1] for key, rows in inputs.items()})[output] for i in range(8)])
        for output in range(len(onnx.load(folder / name).graph.output))] for name in ("m.onnx", "q.onnx")]
    return json.loads((folder / "r.json").read_text()), list(zip(*both))


@pytest.mark.parametrize("recipe", ["none", "auto"])
def test_a_given_weight_of_uint8_of_a_conv_transpose(tmp_path, recipe):
    """Rule V18 cannot store it otherwise, so that the layer stays in float, whatever the recipe."""
    save(tmp_path / "m.onnx", [node("Relu", ["x"], ["a"]), node("DequantizeLinear", ["q", "ws", "z"], ["w"]),
                               node("ConvTranspose", ["a", "w"], ["b"], "layer", pads=[1] * 4), node("Relu", ["b"], ["y"])],
         (1, ["n", 16, 6, 6]), (1, ["n", "c", "h", "v"]),
         {**{k: SCALES[k] for k in ("ws", "z")}, "q": rng.integers(0, 256, (16, 16, 3, 3)).astype(np.uint8)}, 13)
    report, [(real, made)] = made_for_openvino(
        tmp_path, {"x": rng.normal(size=(24, 16, 6, 6)).astype(np.float32)}, existing_qdq="keep", recipe=recipe)
    assert judge.sqnr_db(real, made) > 100
    assert not any(row["quantized_inputs"] for row in report["layers"])


def test_one_weight_along_both_axes_of_which_blocks_divide_one(tmp_path):
    """Each Gemm has its own scales: blocks along 48, and one for each column where blocks of 16 do not divide 40."""
    graph = helper.make_graph(
        [node("Gemm", ["u", "w"], ["y"], "rows"), node("Gemm", ["x", "w"], ["z"], "columns", transB=1)], "g",
        [value("u", 1, ["n", 40]), value("x", 1, ["n", 48])], [value("y", 1, ["n", 48]), value("z", 1, ["n", 40])],
        [numpy_helper.from_array(rng.normal(size=(40, 48)).astype(np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    inputs = {name: rng.normal(size=(16, n)).astype(np.float32) for name, n in (("u", 40), ("x", 48))}
    _, outputs = made_for_openvino(tmp_path, inputs, activations="none",
                                   weights={"dtype": "int4", "granularity": {"block": 16}})
    assert min(judge.sqnr_db(real, made) for real, made in outputs) > 15


# --- a Loop that hands out what it was given --------------------------------------------


def loop(path, is_direct):
    """Three steps of y = tanh(y W), which carry W."""
    handed = "w" if is_direct else "w_after"
    nodes = [node("Identity", ["go"], ["go_on"]), node("MatMul", ["y", "w"], ["p"]),
             node("Tanh", ["p"], ["y_after"])]
    if not is_direct:
        nodes.append(node("Identity", ["w"], [handed]))
    body = helper.make_graph(
        nodes, "step", [value("i", 7, []), value("go", 9, []), value("y", 1, [1, 4]), value("w", 1, [4, 4])],
        [value("go_on", 9, []), value("y_after", 1, [1, 4]), value(handed, 1, [4, 4])])
    graph = helper.make_graph(
        [node("Loop", ["n", "begin", "x", "weight"], ["state", "last"], body=body, name="steps"),
         node("Identity", ["state"], ["result"])],
        "g", [value("x", 1, [1, 4])], [value("result", 1, [1, 4])],
        [numpy_helper.from_array(np.int64(3), "n"), numpy_helper.from_array(np.array(True), "begin"),
         numpy_helper.from_array(rng.normal(size=(4, 4)).astype(np.float32), "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return model.SerializeToString()


@pytest.mark.parametrize("is_direct", [False, True])
def test_a_loop_whose_file_openvino_refuses_is_named(tmp_path, is_direct):
    loop(tmp_path / "net.onnx", is_direct)
    names = [name for name, _ in warned(tmp_path, tmp_path / "net.onnx", "openvino")]
    assert names == (["steps"] if is_direct else [])
    assert warned(tmp_path, tmp_path / "net.onnx", "onnxruntime") == []


def test_openvino_refuses_the_file_of_such_a_loop(tmp_path):
    model, core = loop(tmp_path / "net.onnx", True), openvino.Core()
    core.read_model(model)
    with pytest.raises(RuntimeError, match="Conversion is failed for: Loop"):
        core.read_model(tmp_path / "net.onnx")
