# SPDX-License-Identifier: Apache-2.0
"""Rules C29 and V25: an Einsum of a constant weight is a layer, and computes the same as a MatMul."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import helper, numpy_helper

import judge
from service import INSTALLED

# the shapes of data and weight, of which batch and positions are open in the file
PRODUCTS = {
    "bsd,de->bse": ([2, 6, 32], [32, 48]),
    "bsd,ed->bse": ([2, 6, 32], [48, 32]),
    "de,bsd->bse": ([2, 6, 32], [32, 48]),
    "bsd,dhk->bshk": ([2, 6, 32], [32, 4, 12]),  # Keras' projection to heads
    "bshk,hkd->bsd": ([2, 6, 4, 12], [4, 12, 32]),  # and back
    "bsd,hdk->bhsk": ([2, 6, 32], [4, 32, 12]),
    "bds,de->bes": ([2, 32, 6], [32, 48]),
    "BshK, dhK -> Bsd": ([2, 6, 4, 12], [32, 4, 12]),
    "...d,de->...e": ([2, 6, 32], [32, 48]),
}
OTHERS = {
    "bsd,d->bs": ([2, 6, 32], [32]),
    "bsd,de->bsde": ([2, 6, 32], [32, 48]),
    "bhsd,hde->bhse": ([2, 4, 6, 32], [4, 32, 48]),
    "bsd,de->be": ([2, 6, 32], [32, 48]),
}


def make(path, equation, data, weight):
    rng = np.random.default_rng(4)
    first = equation.startswith("de,")
    sums = set(equation.replace(" ", "").split("->")[0].replace(",", "")) - set(equation.split("->")[1])
    letters = equation.replace(" ", "").split("->")[0].split(",")[not first].replace("...", "")
    fan = np.prod([n for letter, n in zip(letters, weight) if letter in sums])
    nodes = [helper.make_node("Einsum", ["w", "x"] if first else ["x", "w"], ["y"], "layer", equation=equation)]
    shape = [name if n in (2, 6) else n for n, name in zip(data, ["b", "s", "t", "u"])]
    out = equation.split("->")[1].strip()
    axes = [f"y{i}" for i in range(len(data) if "." in out else len(out))]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, shape)], [helper.make_tensor_value_info("y", 1, axes)],
        [numpy_helper.from_array((rng.normal(size=weight) / fan ** .5).astype(np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return rng.normal(size=[16, *data[1:]]).astype(np.float32)


def quantize(folder, x, **spec):
    np.savez(folder / "data.npz", x=x)
    (folder / "spec.json").write_text(json.dumps({"evaluate": False, **spec}))
    subprocess.run([INSTALLED / "bin/qdq", "quantize", folder / "net.onnx", "--spec", folder / "spec.json",
                    "--calibration", folder / "data.npz", "-o", folder / "made.onnx", "--report",
                    folder / "report.json"], check=True)
    onnx.checker.check_model(folder / "made.onnx", full_check=True)
    return json.loads((folder / "report.json").read_text())


def run(path, x, optimized=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if optimized:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(path, options).run(None, {"x": x})[0]


@pytest.mark.parametrize("equation", PRODUCTS)
def test_it_is_a_layer_with_weights_alone(tmp_path, equation):
    x = make(tmp_path / "net.onnx", equation, *PRODUCTS[equation])
    report = quantize(tmp_path, x, target="onnxruntime", activations="none")
    real = run(tmp_path / "net.onnx", x)
    made = run(tmp_path / "made.onnx", x, tmp_path / "optimized.onnx")
    assert made.shape == real.shape and judge.sqnr_db(real, made) > 35
    assert [node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node].count("MatMulNBits") == 1
    layer, = (row for row in report["layers"] if row["name"] == "layer")
    assert layer["op"] == "MatMul" and layer["weight_dtype"] == "int8"
    assert (tmp_path / "made.onnx").stat().st_size < .9 * (tmp_path / "net.onnx").stat().st_size


@pytest.mark.parametrize("equation", PRODUCTS)
def test_it_is_a_layer_in_openvino(tmp_path, equation):
    x = make(tmp_path / "net.onnx", equation, *PRODUCTS[equation])
    quantize(tmp_path, x, target="openvino", rules={"V4": False})
    plain = {"INFERENCE_PRECISION_HINT": "f32"}
    real = run(tmp_path / "net.onnx", x)
    made = openvino.compile_model(tmp_path / "made.onnx", "CPU", plain)({"x": x})[0]
    assert made.shape == real.shape and judge.sqnr_db(real, made) > 30
    assert {node.op_type for node in onnx.load(tmp_path / "made.onnx").graph.node} > {"QuantizeLinear", "MatMul"}


@pytest.mark.parametrize("equation", OTHERS)
def test_other_sums_stay(tmp_path, equation):
    x = make(tmp_path / "net.onnx", equation, *OTHERS[equation])
    quantize(tmp_path, x, target="onnxruntime", activations="none")
    np.testing.assert_array_equal(run(tmp_path / "net.onnx", x), run(tmp_path / "made.onnx", x))


@pytest.mark.parametrize("equation, data, weight", [
    ("bsd,dh->bsh", [2, 5, 1], [32, 16]), ("bsd,dh->bsh", [2, 5, 32], [1, 16]),
    ("bshk,hkd->bsd", [2, 6, 4, 16], [1, 16, 32]), ("...d,de->...e", [2, 6, 1], [32, 48])])
def test_one_that_repeats_an_axis_stays(tmp_path, equation, data, weight):
    """An axis of size 1 is repeated, which a MatMul does not do."""
    x = make(tmp_path / "net.onnx", equation, data, weight)
    report = quantize(tmp_path, x, target="onnxruntime", activations="none")
    assert report["summary"]["quantized_layers"] == 0
    assert np.array_equal(run(tmp_path / "made.onnx", x), run(tmp_path / "net.onnx", x))


@pytest.mark.parametrize("spec", [{"rules": {"C29": False}}, {"recipe": "none"}])
def test_who_keeps_the_operator(tmp_path, spec):
    make(tmp_path / "net.onnx", "bsd,de->bse", *PRODUCTS["bsd,de->bse"])
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "net.onnx", "--json", "--set", "target=onnxruntime",
                           *(word for key, value in spec.items() for word in ("--set", f"{key}={json.dumps(value)}"))],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"MatMul"' not in done.stdout
