# SPDX-License-Identifier: Apache-2.0
"""bias_correction: which layers it serves, which get a bias, and what is said of others."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import QUANTIZE

R = np.random.default_rng(9)
ROWS, SIZE = 5, 24
INT4 = {"weights": {"dtype": "int4"}, "activations": "none", "evaluate": False,
        "recipe": "none"}


def net(body, outputs=SIZE, **shapes):
    """A model with one input x of rows of SIZE elements."""
    text = ('<ir_version: 10, opset_import: ["": 21]>\n'
            f"net (float[n, {ROWS}, {SIZE}] x) => (float[n, {ROWS}, {outputs}] y) "
            f"{{ {body} }}")
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}{i}"
    for name, shape in shapes.items():
        values = np.asarray(R.normal(size=shape), np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Rows whose mean is not 0."""
    path = tmp_path_factory.mktemp("data") / "d.npz"
    np.savez(path, x=(R.normal(size=(64, ROWS, SIZE)) + 1).astype(np.float32))
    return path


def quantize(folder, model, data, **spec):
    """Returns the process, the result and the report; those are None after an error."""
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "m.onnx")
    (folder / "s.json").write_text(json.dumps(spec))
    given = ["--calibration", data] if data else []
    done = subprocess.run([*QUANTIZE, "m.onnx", "--spec", "s.json", "-o", "o.onnx",
                           "--report", "r.json", *given], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    if done.returncode:
        return done, None, None
    onnx.checker.check_model(folder / "o.onnx", full_check=True)
    return done, onnx.load(folder / "o.onnx"), json.loads((folder / "r.json").read_text())


def details(report, code):
    return [w["detail"] for w in report["warnings"] if w["code"] == code]


def mean_error(model, result, data):
    """The mean of what the result's output is off, by output channel, as a length."""
    x = np.load(data)["x"]
    real, ours = (judge.run(m.SerializeToString(), {"x": x}, integers=False)
                  for m in (model, result))
    return float(np.linalg.norm((ours - real).astype(np.float64).mean(axis=(0, 1))))


NO_BIASES = {
    "a scalar": ("p = MatMul (x, w) y = Add (p, c)", {"c": ()}),
    "a table of positions": ("p = MatMul (x, w) y = Add (c, p)", {"c": (ROWS, SIZE)}),
}


@pytest.mark.parametrize("kind", NO_BIASES)
def test_a_constant_that_is_no_bias_gets_an_add_before_it(tmp_path, data, kind):
    body, constant = NO_BIASES[kind]
    model = net(body, w=(SIZE, SIZE), **constant)
    _, plain, _ = quantize(tmp_path / "a", model, data, target="tensorrt", **INT4)
    _, ours, report = quantize(tmp_path / "b", model, data, target="tensorrt",
                               bias_correction=True, **INT4)
    assert [d.split()[0] for d in details(report, "biases_made")] == ["1"]
    assert not details(report, "bias_uncorrected")
    assert [n.op_type for n in ours.graph.node].count("Add") == 2
    assert mean_error(model, ours, data) < mean_error(model, plain, data) / 1000


UNCORRECTED = {
    "has no bias": ("y = MatMul (x, w)", {}),
    "one number for each output": ("p = MatMul (x, w) y = Add (p, c)", {"c": ()}),
}


@pytest.mark.parametrize("reason", UNCORRECTED)
def test_a_layer_that_keeps_the_mean_is_named(tmp_path, data, reason):
    """Target onnxruntime would compute an Add of its own."""
    body, constant = UNCORRECTED[reason]
    model = net(body, w=(SIZE, SIZE), **constant)
    _, _, report = quantize(tmp_path / "a", model, data, target="onnxruntime",
                            bias_correction=True, **INT4)
    assert not details(report, "biases_made")
    told, = details(report, "bias_uncorrected")
    assert told.startswith("1 layers") and reason in told
    _, _, report = quantize(tmp_path / "b", model, data, target="onnxruntime",
                            bias_correction="existing", **INT4)
    assert len(details(report, "bias_uncorrected")) == (reason != "has no bias")


@pytest.mark.parametrize("spec, codes", [
    ({"bias_correction": True}, ["bias_uncorrected"]),
    ({"bias_correction": False, "rounding": "gptq"}, ["rounded_to_nearest"]),
    ({"rounding": "gptq"}, ["rounded_to_nearest", "bias_uncorrected"]),
])
def test_a_format_without_integers_is_told_of_what_was_asked(tmp_path, data, spec, codes):
    spec = {**spec}
    weights = {"dtype": "float8e4m3fn"}
    if "rounding" in spec:
        weights["rounding"] = spec.pop("rounding")
    model = net("p = MatMul (x, w) y = Add (p, b)", w=(SIZE, SIZE), b=(SIZE,))
    done, _, report = quantize(tmp_path, model, data, **{**INT4, "weights": weights}, **spec)
    assert report, done.stderr
    found = {w["code"]: w["detail"] for w in report["warnings"]}
    both = {"rounded_to_nearest", "bias_uncorrected"}
    assert both & found.keys() == set(codes)
    assert all("8 bits" in found[code] for code in codes)


@pytest.mark.parametrize("spec, pointer", [
    ({"bias_correction": True}, "/bias_correction"),
    ({"weights": {"dtype": "int4", "rounding": "gptq"}}, "/weights/rounding"),
])
def test_without_data_the_member_that_asks_is_named(tmp_path, spec, pointer):
    model = net("p = MatMul (x, w) y = Add (p, b)", w=(SIZE, SIZE), b=(SIZE,))
    done, _, _ = quantize(tmp_path, model, None, **{**INT4, **spec})
    assert done.returncode == 1 and f"({pointer})" in done.stderr, done.stderr


def test_layers_that_a_search_leaves_in_float_get_no_bias(tmp_path, data):
    model = net("a = MatMul (x, w) b = Relu (a) y = MatMul (b, v)",
                w=(SIZE, SIZE), v=(SIZE, SIZE))
    spec = {**INT4, "target": "tensorrt", "bias_correction": True,
            "search": {"min_sqnr_db": 22, "samples": 16}}
    _, ours, report = quantize(tmp_path / "a", model, data, **spec)
    left = report["search"]["float_layers"]
    assert len(left) == 1
    assert [d.split()[0] for d in details(report, "biases_made")] == ["1"]
    assert [n.op_type for n in ours.graph.node].count("Add") == 1
    _, again, _ = quantize(tmp_path / "b", model, data, **report["spec"])
    assert again.SerializeToString() == ours.SerializeToString()


LEFT = {
    "partial": {"mode": "partial", "layers": [{"name": "MatMul0"}]},
    "skipped": {"layers": [{"name": ["Conv4", "MatMul6"], "quantize_input": False,
                            "quantize_weight": False}]},
}


@pytest.mark.parametrize("target, added", [("tensorrt", 1), ("openvino", 1),
                                           ("onnxruntime", 0)])
@pytest.mark.parametrize("kind", LEFT)
def test_layers_that_stay_float_get_no_bias(tmp_path, data, target, added, kind):
    """Layers 4 and 6 stay float. Only the quantized layer has a new bias, and the frozen
    spec gives the same bytes."""
    model = net("a = MatMul (x, w) b = Relu (a) s = Shape (b) c = Unsqueeze (b, one)"
                " d = Conv <pads = [1, 1, 1, 1]> (c, k) e = Squeeze (d, one)"
                " y = MatMul (e, v)", w=(SIZE, SIZE), v=(SIZE, SIZE), k=(1, 1, 3, 3))
    model.graph.node.remove(next(n for n in model.graph.node if n.op_type == "Shape"))
    for i, node in enumerate(model.graph.node):
        node.name = {"Conv": "Conv4", "MatMul": f"MatMul{i and 6}"}.get(node.op_type, f"n{i}")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
    spec = {**INT4, **LEFT[kind], "target": target, "bias_correction": True}
    _, ours, report = quantize(tmp_path / "a", model, data, **spec)
    counts = [d.split()[0] for d in details(report, "biases_made")]
    assert counts == ["1"] * added
    nodes = {n.name: n for n in ours.graph.node}
    assert len(nodes["Conv4"].input) == 2
    assert nodes["MatMul6"].output[0] == "y"
    assert [n.op_type for n in ours.graph.node].count("Add") == added
    assert all(not t.name.startswith(("k_bias", "v_bias")) for t in ours.graph.initializer)
    _, again, _ = quantize(tmp_path / "b", model, data, **report["spec"])
    assert again.SerializeToString() == ours.SerializeToString()
