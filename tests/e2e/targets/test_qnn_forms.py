# SPDX-License-Identifier: Apache-2.0
"""Rules Q19 to Q24 of the target qnn, by the files: scales that old HTPs multiply by exactly, reductions and tables
in the forms that they load, and what Concats and Wheres join."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import QUANTIZE

# An encoder of sentences: tables of embeddings, places by a Shape, a mask of booleans, a mean and a length.
ENCODER = """<ir_version: 8, opset_import: ["": 17]>
encoder (int64[1,8] ids, bool[1,1,8] kept, float[1,8,1] counted) => (float[1,32] y) {
    [words] w = Gather (words_table, ids)
    shape = Shape (ids) length = Gather (shape, one)
    [places] p = Slice (places_table, zero, length, zero)
    [both] x = Add (w, p)
    [query] q = MatMul (x, wq) [key] k = MatMul (x, wk) kt = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, kt)
    [masked] sm = Where (kept, s, lowest) a = Softmax <axis = -1> (sm)
    [value] v = MatMul (x, wv) m = MatMul (a, v)
    c = Mul (m, counted)
    [total] t = ReduceSum <keepdims = 0> (c, one)
    [norm] n = ReduceL2 <axes = [1], keepdims = %d> (t) %s
    y = Div (t, nk) }"""
MOVED = """<ir_version: 8, opset_import: ["": 17]>
moved (float[1,8,16] a, float[1,8,16] b) => (float[1,48,4,4] y) {
    ar = Reshape (a, sizes) br = Relu (b) cr = Mul (b, two) [inner] i = Concat <axis = 1> (br, cr)
    ir = Reshape (i, wide) [outer] y = Concat <axis = 1> (ar, ir, token) }"""
OLD = ("v68", "v69")


def write(folder, text, tables, data):
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(numpy_helper.from_array(np.array(a), name) for name, a in tables.items())
    onnx.checker.check_model(made)
    onnx.save(made, folder / "m.onnx")
    np.savez(folder / "d.npz", **data)


def quantized(folder, **spec):
    (folder / "s.json").write_text(json.dumps({"target": "qnn", "recipe": "none", "evaluate": {"samples": 8}, **spec}))
    subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "s.json", "--calibration", folder / "d.npz", "-o",
                    folder / "q.onnx", "--report", folder / "r.json"], check=True)
    return Result(folder / "q.onnx"), json.loads((folder / "r.json").read_text())


class Result:
    def __init__(self, path):
        self.graph = onnx.load(path).graph
        self.arrays = {i.name: numpy_helper.to_array(i) for i in self.graph.initializer}
        self.makers = {o: n for n in self.graph.node for o in n.output}
        self.named = {n.name: n for n in self.graph.node}

    def ops(self):
        return [n.op_type for n in self.graph.node]

    def scale(self, name):
        """Returns the scale and the zero point of the pair from which a node reads."""
        pair = self.makers[name]
        assert pair.op_type == "DequantizeLinear", name
        return self.arrays[pair.input[1]], self.arrays.get(''.join(pair.input[2:3]), 0)

    def made(self, node):
        """Returns the scale and the zero point of the pair behind a node."""
        [pair] = [n for n in self.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == node.output[0]]
        return self.arrays[pair.input[1]], self.arrays[pair.input[2]]


def encoder(folder, keeps=1):
    rng = np.random.default_rng(1)
    f = {name: np.float32(rng.normal(size=size) / np.sqrt(size[-1])) for name, size in
         {"words_table": (50, 32), "places_table": (20, 32), **{f"w{k}": (32, 32) for k in "qkv"}}.items()}
    text = ENCODER % (keeps, "nk = Identity (n)" if keeps else "nk = Unsqueeze (n, one)")
    kept = np.arange(8) < rng.integers(3, 9, (48, 1, 1, 1))
    write(folder, text, {**f, "zero": np.array([0]), "one": np.array([1]), "lowest": np.float32(-1e9)},
          {"ids": rng.integers(0, 50, (48, 1, 8)), "kept": kept,
           "counted": np.float32(kept.reshape(48, 1, 8, 1))})


@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("host", ["v68", "v73"])
def test_an_encoder_has_pairs_everywhere(tmp_path, host, keeps):
    encoder(tmp_path, keeps)
    made, report = quantized(tmp_path, host=host, activations={"dtype": "uint16"})
    assert not {"htp_float", "htp_fallback", "htp_float_weight"} & {w["code"] for w in report["warnings"]}
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 28
    words = made.named["words"]
    assert made.scale(words.input[0]) == made.made(words)
    assert all(made.scale(name) for name in made.named["both"].input)
    assert all(made.scale(name) for name in made.named["masked"].input[1:])
    [total] = [n for n in made.graph.node if n.op_type == "ReduceSum" and n.name == "total"]
    kept = {a.name: a.i for a in total.attribute}.get("keepdims", 1)
    assert kept == (host in OLD)
    assert ("ReduceL2" in made.ops()) == (host not in OLD)


def test_a_table_of_8_bits_is_stored_as_integers(tmp_path):
    encoder(tmp_path)
    made, _ = quantized(tmp_path)
    table = made.makers[made.named["words"].input[0]]
    assert made.arrays[table.input[0]].dtype == np.uint8 and made.arrays[table.input[0]].shape == (50, 32)
    made, report = quantized(tmp_path, rules={"Q21": False, "Q22": False})
    assert made.named["words"].input[0] in made.arrays
    assert "htp_float" in {w["code"] for w in report["warnings"]}


def digits(number):
    """Returns how many binary digits a number has."""
    part = np.frexp(np.float64(number))[0]
    return next(n for n in range(1, 54) if abs(part * 2**n - round(part * 2**n)) < 2.0**n * 1e-6)


@pytest.mark.parametrize("host, dtype, few", [("v68", "uint16", True), ("v69", "uint16", True), ("v73", "uint16", False),
                                              ("v68", "uint8", False)])
def test_old_htps_multiply_by_few_digits(tmp_path, host, dtype, few):
    encoder(tmp_path)
    made, report = quantized(tmp_path, host=host, activations={"dtype": dtype}, bias_correction=False)
    layers = {row["name"]: row["rules"] for row in report["layers"]}
    found = []
    for node in made.graph.node:
        weight = made.makers.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or made.arrays.get(weight.input[0]) is None:
            continue
        assert ("Q19" in layers[node.name]) == few
        factors = np.float64(made.scale(node.input[0])[0]) * made.scale(node.input[1])[0] / made.made(node)[0]
        found += [digits(f) for f in factors.ravel()]
    assert len(found) == 3 * 32
    assert (max(found) <= 10) == few


@pytest.mark.parametrize("on", [True, False])
def test_what_a_concat_joins_has_its_scale(tmp_path, on):
    rng = np.random.default_rng(2)
    write(tmp_path, MOVED, {"sizes": np.array([1, 8, 4, 4]), "wide": np.array([1, 16, 4, 4]), "two": np.float32(2),
                            "token": np.float32(rng.normal(size=(1, 24, 4, 4)))},
          {"a": np.float32(rng.normal(size=(32, 1, 8, 16))), "b": np.float32(5 * rng.normal(size=(32, 1, 8, 16)))})
    made, report = quantized(tmp_path, rules={"Q24": on})
    outer = made.named["outer"]
    wanted = made.made(outer)
    same = [made.scale(name) == wanted for name in outer.input]
    assert same[:2] == [on, on] and len(same) == 3  # the token has pairs of its own
    assert (made.made(made.named["inner"]) == wanted) == on
    assert ("Q24" in next(row["rules"] for row in report["layers"] if row["name"] == "outer")) == on


def test_a_prelu_of_16_bits_has_8_where_there_are_no_floats(tmp_path):
    rng = np.random.default_rng(3)
    write(tmp_path, """<ir_version: 8, opset_import: ["": 17]> g (float[1,4,16] x) => (float[1,4,16] y) {
        a = Relu (x) [prelu] b = PRelu (a, slope) y = Add (b, x) }""", {"slope": np.float32([0.1] * 16)},
          {"x": np.float32(rng.normal(size=(32, 1, 4, 16)))})
    for host in ("v68", "v73"):
        made, report = quantized(tmp_path, host=host, activations={"dtype": "uint16"})
        warned = "htp_float" in {w["code"] for w in report["warnings"]}
        assert warned == (host == "v73")
        if not warned:
            pair = made.makers[made.named["prelu"].input[0]]
            assert made.arrays[pair.input[2]].dtype == np.uint8
