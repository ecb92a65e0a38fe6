# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's integer kernels: each model that is made for the target onnxruntime runs
with them and computes what the float model computes. Also the rules of that target, on
and off."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
import nets
from service import QUANTIZE, ROOT

sys.path.insert(0, str(ROOT / "tests" / "models"))
from make import ROWS  # noqa: E402

GRAPH = '<ir_version: 9, opset_import: ["" : 19]> g '
RANDOM = np.random.default_rng(8)


def model(text, **constants):
    made = onnx.parser.parse_model(GRAPH + text)
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in constants.items())
    return made


def numbers(*shape):
    return RANDOM.normal(0, 0.3, shape).astype(np.float32)


def quantize(folder):
    return subprocess.run(
        [*QUANTIZE, folder / "m.onnx", "--spec",
         folder / "spec.json", "--calibration", folder / "d.npz", "-o",
         folder / "q.onnx", "--report", folder / "report.json"],
        capture_output=True, text=True)


class Made:
    """A quantized model; `db` has its SQNR for both ways to run it."""

    def __init__(self, folder, source, data, **spec):
        spec = {"target": "onnxruntime", "recipe": "none", **spec}
        (folder / "spec.json").write_text(json.dumps(spec))
        onnx.save(source, folder / "m.onnx")
        np.savez(folder / "d.npz", **data)
        done = quantize(folder)
        assert done.returncode == 0, done.stderr
        self.model = judge.load((folder / "q.onnx").read_bytes())
        self.report = json.loads((folder / "report.json").read_text())
        self.layers = {row["name"]: row for row in self.report["layers"]}
        self.warnings = {w["code"] for w in self.report["warnings"]}
        self.floats = {f["name"]: f["reason"] for f in self.report["kernels"]["floats"]}
        self.ops = self.report["kernels"]["ops"]
        real = self.outputs(source, data, False)
        self.db = [judge.sqnr_db(real, self.outputs(self.model, data, optimized))
                   for optimized in (False, True)]

    def outputs(self, one, data, optimized):
        run = judge.session(one.SerializeToString(), optimized)
        parts = []
        for i in range(4):
            sample = {k: np.asarray(v[i]) for k, v in data.items()}
            parts += [np.asarray(o, np.float64).ravel() for o in run.run(None, sample)]
        return np.concatenate(parts)


def samples(*shape):
    return {"x": RANDOM.normal(0, 1, (16, *shape)).astype(np.float32)}


@pytest.mark.parametrize("name", [
    "matmul", "gemm", "conv_groups", "conv_1d_3d", "if_weights", "if_never_taken",
    "if_never_taken_range_given", "loop_carried", "scan",
    "if_in_loop", "shared_weight", "input_is_output", "omitted_inputs", "float16"])
def test_odd_models(tmp_path, name):
    row = ROWS[name]
    source = row.model()
    made = Made(tmp_path, source, row.data(source), **row.spec)
    assert min(made.db) > 20
    assert "kernels_not_counted" not in made.warnings


def test_matmul_on_either_side(tmp_path):
    source = model("(float[8,6] x) => (float[3,8,5] y) "
                   "{ [left] h = MatMul (a, x)  [right] g = MatMul (h, b) "
                   "  [batched] y = MatMul (c, g) }",
                   a=numbers(4, 8), b=numbers(6, 5), c=numbers(3, 8, 4))
    made = Made(tmp_path, source, samples(8, 6))
    axes = {name: made.layers[name]["weight_axis"] for name in ("left", "right", "batched")}
    assert axes == {"left": None, "right": 1, "batched": None}
    assert made.ops == {"QLinearMatMul": 3}
    assert min(made.db) > 25


def test_average_pooling_with_dilations_stays_in_float(tmp_path):
    source = model("(float[1,3,12,12] x) => (float[1,3,6,6] y) { "
                   "[pool] h = AveragePool <kernel_shape = [3, 3], dilations = [2, 2]> (x)"
                   "[narrow] y = AveragePool <kernel_shape = [3, 3]> (h) }")
    made = Made(tmp_path, source, samples(1, 3, 12, 12))
    assert (made.layers["pool"]["reason"] ==
            "the integer kernel of AveragePool has no dilations")
    assert made.ops == {"QLinearAveragePool": 1}
    assert min(made.db) > 25


@pytest.mark.parametrize("between", ["Identity", "Dropout"])
def test_what_is_removed_keeps_the_numbers_of_softmax(tmp_path, between):
    """QLinearSoftmax is wrong with the smaller range that its reader would get when
    onnxruntime removes the operator between two pairs and joins them."""
    source = model("(float[6,6] x) => (float[6,6] y) { [s] s = Softmax (x) "
                   f"[between] d = {between} (s) [m] y = MatMul (d, w) }}",
                   w=numbers(6, 6))
    data = samples(6, 6)
    data["x"] *= np.float32(0.1)
    made = Made(tmp_path, source, data)
    rows = {t["name"]: (t["scale"], t["zero_point"]) for t in made.report["tensors"]}
    assert rows["d"] == rows["s"] == (pytest.approx(1 / 255), 0)
    assert made.layers["between"]["rules"] == ["C14"]
    assert made.ops == {"QLinearMatMul": 1, "QLinearSoftmax": 1}
    assert min(made.db) > 25


def test_a_pad_by_an_explicit_zero_shares_numbers(tmp_path):
    text = ("(float[1,3,8,8] x) => (float[1,4,8,8] y) "
            "<int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}, float z = {%s}> "
            "{ [first] g = Conv (x, v) [pad] h = Pad (g, p, z) [conv] y = Conv (h, w) }")
    weights = {"v": numbers(3, 3, 1, 1), "w": numbers(4, 3, 3, 3)}
    for value, same in (("0.0", True), ("4.5", False)):
        made = Made(tmp_path, model(text % value, **weights), samples(1, 3, 8, 8))
        scales = {t["name"]: t["scale"] for t in made.report["tensors"]}
        assert set(scales) == {"x", "g", "h", "y"}
        assert (scales["g"] == scales["h"]) == same
        assert min(made.db) > 25


def test_alpha_of_gemm(tmp_path):
    """onnxruntime would compute the bias of such a kernel with another scale, so it stays
    float here."""
    source = model("(float[4,8] x) => (float[4,6] y) "
                   "{ [fc] y = Gemm <alpha = 0.25> (x, w, b) }", w=numbers(8, 6),
                   b=numbers(6))
    made = Made(tmp_path, source, samples(4, 8), rules={"P1": False})
    assert made.floats == {"fc": "alpha or beta is not 1"}
    assert min(made.db) > 25


def test_constants_of_int16_activations(tmp_path):
    source = model("(float[4,8] x) => (float[4,8] y) { [add] y = Add (x, c) }",
                   c=numbers(8))
    made = Made(tmp_path, source, samples(4, 8), activations={"dtype": "int16"})
    assert made.floats == {"add": "there are integer kernels of int8 and uint8 alone"}
    assert min(made.db) > 60


def test_a_bias_that_callers_may_send_stays(tmp_path):
    source = model("(float[4,8] x, float[6] b) => (float[4,6] y) "
                   "{ [fc] y = Gemm (x, w, b) }", w=numbers(8, 6), b=numbers(6))
    made = Made(tmp_path, source, samples(4, 8))
    assert "bias_stays_float" in made.warnings
    [fc] = [n for n in made.model.graph.node if n.name == "fc"]
    assert fc.input[2] == "b"


# --- rules -------------------------------------------------------------------


def plan(folder, **rules):
    (folder / "spec.json").write_text(json.dumps(
        {"target": "onnxruntime", "recipe": "none", "host": "vnni", "rules": rules, "evaluate": False}))
    (folder / "m.onnx").write_bytes(nets.block_net())
    (folder / "d.npz").write_bytes(nets.samples())
    done = quantize(folder)
    if done.returncode:
        return done.stderr
    report = json.loads((folder / "report.json").read_text())
    return (judge.load((folder / "q.onnx").read_bytes()),
            {row["name"]: row for row in report["layers"]}, report)


def test_layers_cite_rules(tmp_path):
    _, rows, report = plan(tmp_path)
    assert rows["stem/conv"]["rules"] == ["C1", "C4", "C9"]
    assert rows["stem/relu"]["rules"] == ["C6"]
    assert rows["pool/max"]["rules"] == ["C14"]
    assert rows["block/conv2"]["rules"] == ["C1", "C2", "C4", "C9"]
    assert report["spec"]["rules"] == {"C4": True, "C6": True, "C7": False, "C15": False,
                                       "C16": False, "C17": False, "C18": False, "C19": True,
                                       "C20": True, "C21": False, "C22": False, "C23": True,
                                       "C24": False, "C25": False, "C26": False, "C27": True, "C28": False, "C29": False,
                                       "C30": False, "C32": False, "C33": True, "C35": False, "P7": True,
                                       "P1": True, "P2": False, "P3": True, "P4": True,
                                       "P5": False, "P6": False, "P8": False}


def test_biases_may_stay_float(tmp_path):
    made, rows, _ = plan(tmp_path, C4=False)
    assert rows["stem/conv"]["rules"] == ["C1", "C9"]
    assert onnx.TensorProto.INT32 not in {i.data_type for i in made.graph.initializer}


def test_a_relu_may_be_left_outside(tmp_path):
    _, rows, _ = plan(tmp_path, C6=False)
    assert rows["stem/conv"]["quantized_outputs"] == [0]
    assert rows["stem/relu"]["rules"] == []


def test_neighbours_are_together_at_most_128(tmp_path):
    made, rows, report = plan(tmp_path, C7=True)
    values = {i.name: numpy_helper.to_array(i) for i in made.graph.initializer}
    assert "C7" in rows["stem/conv"]["rules"]
    floats = {i.name: numpy_helper.to_array(i)
              for i in onnx.load_from_string(nets.block_net()).graph.initializer}
    for weight in report["weights"]:
        integers = values[weight["name"] + "_quantized"].astype(np.int64)
        assert weight["axis"] == 0 and (judge.largest_sums(integers) <= 128).all()
        numbers = floats[weight["name"]].astype(np.float64)
        least = np.maximum(np.abs(numbers).reshape(len(numbers), -1).max(1),
                           judge.largest_sums(numbers)) / 127
        scales = values[weight["name"] + "_scale"]
        if numbers.shape[1] % 2 == 0:
            np.testing.assert_allclose(scales, least, rtol=1e-6)
        else:  # Kernels differ in the neighbours that they add.
            assert (scales >= least * 0.999999).all() and (scales < least * 2).all()
    assert "unsupported" in plan(tmp_path, C1=False)
    assert "invalid_spec" in plan(tmp_path, T22=True)
