# SPDX-License-Identifier: Apache-2.0
"""smooth and equalize behind attention: the layer that makes the values takes the factors in, also where
it makes queries and keys, too."""

from functools import lru_cache

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import DATA, FEW_SAMPLES
from test_equalize import without_pairs
from test_smooth import quantize, sqnr_of


@lru_cache
def skewed_values():
    """Returns glyph_vit with the channels of the values of all its attentions skewed by 2^-4 to
    2^4: columns of the weight and the bias of qkv are multiplied, rows of the projection's
    weight are divided."""
    model = onnx.load(DATA / "glyph_vit.onnx")
    constants = {i.name: i for i in model.graph.initializer}
    random = np.random.default_rng(11)

    def multiply(name, factors):
        values = numpy_helper.to_array(constants[name]) * factors
        constants[name].CopyFrom(numpy_helper.from_array(values.astype(np.float32), name))

    for name in [n for n in constants if n.endswith("attn.qkv.weight")]:
        block = name.removesuffix("qkv.weight")
        factors = 2.0 ** random.integers(-4, 5, 96)
        of_all = np.concatenate([np.ones(192), factors])
        multiply(name, of_all)
        multiply(f"{block}qkv.bias", of_all)
        multiply(f"{block}proj.weight", 1 / factors[:, None])
    return model.SerializeToString()


def behind_attention(report):
    """The rows of the activations that projections read."""
    layers = {row["layers"][0]: row for row in report["smoothing"] if row["layers"]}
    return [layers[name] for name in ("MatMul_3", "MatMul_9", "MatMul_15")
            if name in layers]


def test_skewed_values_are_as_good_as_straight_ones(tmp_path):
    _, plain, _ = quantize(tmp_path / "a", skewed_values())
    _, ours, report = quantize(tmp_path / "b", skewed_values(), smooth=True)
    rows = behind_attention(report)
    assert len(rows) == 3 and {row["reason"] for row in rows} == {"smoothed"}, rows
    assert sqnr_of(plain) < 20 and sqnr_of(ours) > 29


def test_nothing_but_the_values_changes(tmp_path):
    """The columns of queries and keys keep their numbers, and the function stays."""
    _, result, report = quantize(tmp_path, skewed_values(), FEW_SAMPLES, smooth=True)
    assert behind_attention(report)
    inner = without_pairs(result)
    before, after = ({i.name: numpy_helper.to_array(i)
                      for i in onnx.load_model_from_string(m).graph.initializer}
                     for m in (skewed_values(), inner))
    for block in range(3):
        name = f"blocks.{block}.attn.qkv.bias"
        same = before[name] == after[name]
        assert same[:192].all() and not same[192:].all()
    feed = {"input": judge.test_images()[0][:100]}
    real, ours = (judge.run(m, feed, optimized=False) for m in (skewed_values(), inner))
    assert np.array_equal(real, ours)


def test_equalize_makes_values_alike(tmp_path):
    """equalize has the same chains as smooth: those of the values, too."""
    _, ours, report = quantize(tmp_path / "a", skewed_values(), equalize=True)
    pairs = {row["first"]: row for row in report["equalization"]}
    for first, second in (("MatMul_0", "MatMul_3"), ("MatMul_6", "MatMul_9"),
                          ("MatMul_12", "MatMul_15")):
        assert pairs[first]["second"] == second
        assert pairs[first]["reason"] == "equalized" and pairs[first]["channels"] > 48
    assert sqnr_of(ours) > 29
    feed = {"input": judge.test_images()[0][:100]}
    before, after = (judge.run(m, feed, optimized=False)
                     for m in (skewed_values(), without_pairs(ours)))
    assert np.array_equal(before, after)


# --- forms of attention --------------------------------------------------------------------

R = np.random.default_rng(3)
SKEW = 4.0 ** (np.arange(8) * 3 % 5 - 2)
QKV = "a = MatMul (x, qkv) b = Add (bias, a)"
PARTS = {"q": 0, "k": 1, "v": 2}


def each(text):
    """The text for queries, keys and values; @ is the letter, # its index."""
    return " ".join(text.replace("@", part).replace("#", f"i{i}")
                    for part, i in PARTS.items())


FORMS = {
    "chosen from one tensor": f"{QKV} r = Reshape (b, five)"
                              " u = Transpose <perm = [2, 0, 3, 1, 4]> (r) "
                              + each("@ = Gather <axis = 0> (u, #)"),
    "split, then cut into heads": f"{QKV} q0, k0, v0 = Split <axis = -1> (b) "
                                  + each("@1 = Reshape (@0, four)"
                                         " @ = Transpose <perm = [0, 2, 1, 3]> (@1)"),
    "cut into heads, then split": f"{QKV} r = Reshape (b, open)"
                                  " q0, k0, v0 = Split <axis = 2> (r) "
                                  + each("@1 = Squeeze (@0, two)"
                                         " @ = Transpose <perm = [0, 2, 1, 3]> (@1)"),
    "slices": f"{QKV} " + each("@0 = Slice (b, s#, e#, two) @1 = Reshape (@0, four)"
                               " @ = Transpose <perm = [0, 2, 1, 3]> (@1)"),
    "rows of a matrix": "m = Reshape (x, rows) g = Gemm (m, qkv, bias)"
                        " r = Reshape (g, whole) u = Transpose <perm = [2, 0, 3, 1, 4]> (r) "
                        + each("@ = Gather <axis = 0> (u, #)"),
    "a layer of its own": "q0 = MatMul (x, wq) k0 = MatMul (x, wk) c0 = MatMul (x, wv)"
                          " v0 = Add (c0, bv) "
                          + each("@1 = Reshape (@0, four)"
                                 " @ = Transpose <perm = [0, 2, 1, 3]> (@1)"),
}
ATTENTION = ("kt = Transpose <perm = [0, 1, 3, 2]> (k) l = MatMul (q, kt)"
             " p = Softmax <axis = -1> (l) o = MatMul (p, v)"
             " t = Transpose <perm = [0, 2, 1, 3]> (o) s = Reshape (t, merged)"
             " y = MatMul (s, w)")


def net(body, more=""):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>\n'
        f"net (float[n, 6, 8] x) => (float[n, 6, 5] y{more}) {{ {body} {ATTENTION} }}")
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}{i}"
    read = {name for node in model.graph.node for name in node.input}
    parts = R.normal(size=(3, 8, 8))
    parts[2] *= SKEW
    floats = {"qkv": np.concatenate(parts, axis=1), "bias": R.normal(size=24),
              "wq": parts[0], "wk": parts[1], "wv": parts[2], "bv": R.normal(size=8),
              "w": R.normal(size=(8, 5)), "c": R.normal(size=(4,))}
    integers = {"five": [0, 6, 3, 2, 4], "open": [0, -1, 3, 2, 4], "four": [0, 0, 2, 4],
                "whole": [-1, 6, 3, 2, 4], "rows": [-1, 8], "merged": [0, 6, 8],
                "two": [2], "i0": 0, "i1": 1, "i2": 2,
                **{f"si{i}": [8 * i] for i in range(3)},
                **{f"ei{i}": [8 * i + 8] for i in range(3)}}
    for kind, values in ((np.float32, floats), (np.int64, integers)):
        for name in read & set(values):
            model.graph.initializer.append(
                numpy_helper.from_array(np.asarray(values[name], kind), name))
    return model.SerializeToString()


def run(folder, model):
    data = R.normal(size=(16, 6, 8)).astype(np.float32)
    folder.mkdir(exist_ok=True)
    np.savez(folder / "data.npz", x=data)
    done, result, report = quantize(folder, model, folder / "data.npz", smooth=True)
    assert report, done.stderr
    return data, result, next(r for r in report["smoothing"] if r["tensor"] == "s")


@pytest.mark.parametrize("form", FORMS)
def test_forms(tmp_path, form):
    model = net(FORMS[form])
    data, result, row = run(tmp_path, model)
    assert row["reason"] == "smoothed" and row["channels"] > 0, row
    inner = without_pairs(result)
    made = {i.name: numpy_helper.to_array(i)
            for i in onnx.load_model_from_string(inner).graph.initializer}
    given = {i.name: numpy_helper.to_array(i)
             for i in onnx.load_model_from_string(model).graph.initializer}
    name = "wv" if "wv" in given else "qkv"
    factors = (given[name] / made[name])[0]
    assert (factors[:-8] == 1).all() and (factors[-8:] != 1).any()
    assert np.array_equal(made["w"] / given["w"],
                          np.broadcast_to(factors[-8:, None], (8, 5)))
    real = judge.run(model, {"x": data}, optimized=False)
    assert np.array_equal(real, judge.run(inner, {"x": data}, optimized=False))


CHOSEN = FORMS["chosen from one tensor"]
LEFT_ALONE = {
    "the values are an output, too": (CHOSEN, ", float[n, 2, 6, 4] v",
                                      "an output of the model"),
    "the values are read twice": (f"{CHOSEN} z = Sigmoid (v)", ", float[n, 2, 6, 4] z",
                                  "read elsewhere, too"),
    "all are read elsewhere": (f"{CHOSEN} z = Sigmoid (b)", ", float[n, 6, 24] z",
                               "read elsewhere, too"),
    "the values are keys, too": (CHOSEN.replace("k = Gather <axis = 0> (u, i1)",
                                                "k = Gather <axis = 0> (u, i2)"), "",
                                 "read elsewhere, too"),
    "a sum behind the heads": (CHOSEN.replace("v = Gather", "v9 = Gather")
                               + " v = Add (v9, c)", "", "after its elements were moved"),
    "tokens as channels": (CHOSEN.replace("v = Gather", "v9 = Gather")
                           + " vt = Transpose <perm = [0, 1, 3, 2]> (v9)"
                           " vw = Reshape (vt, whole2) v = Identity (vw)", "",
                           "not those of one layer"),
    "a function of the values": (CHOSEN.replace("v = Gather", "v9 = Gather")
                                 + " v = Sigmoid (v9)", "", "Sigmoid makes it"),
}


@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_values_that_others_need_are_left_alone(tmp_path, kind):
    body, more, reason = LEFT_ALONE[kind]
    model = onnx.load_model_from_string(net(body, more))
    if "whole2" in body:
        model.graph.initializer.append(numpy_helper.from_array(
            np.array([0, 2, 6, 4], np.int64), "whole2"))
    _, _, row = run(tmp_path, model.SerializeToString())
    assert reason in row["reason"] and row["channels"] == 0, row
