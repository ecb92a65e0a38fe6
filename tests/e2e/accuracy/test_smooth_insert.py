# SPDX-License-Identifier: Apache-2.0
"""smooth.insert: a Mul takes in the factors of an activation that an Add reads, too, or that
nothing else can divide; the model computes the same function."""

import json
from functools import lru_cache

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from test_equalize import without_pairs
from test_smooth import quantize

WIDE, ROWS = 32, 8
MUL = "smoothed by a Mul"

# A block of a transformer that normalizes behind each sum, between two dense layers.
BLOCK = """
    <ir_version: 8, opset_import: ["": 17]>
    block (float[n, 8, 32] x) => (float[n, 8, 32] y) {
        first = MatMul (x, w_in)
        h = LayerNormalization (first, g0, b0)
        query = MatMul (h, w_q)
        key = MatMul (h, w_k)
        value = MatMul (h, w_v)
        turned = Transpose <perm = [0, 2, 1]> (key)
        scores = MatMul (query, turned)
        shares = Softmax (scores)
        mixed = MatMul (shares, value)
        out = MatMul (mixed, w_o)
        sum = Add (out, h)
        middle = LayerNormalization (sum, g1, b1)
        up = MatMul (middle, w_up)
        root = Div (up, root_2)
        error = Erf (root)
        more = Add (error, one)
        gate = Mul (up, more)
        gelu = Mul (gate, half)
        down = MatMul (gelu, w_down)
        total = Add (down, middle)
        y = LayerNormalization (total, g2, b2)
    }
"""


def named(model):
    for node in model.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    return model


def with_constants(model, constants):
    for name, values in constants.items():
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(values, np.float32), name))
    return named(model).SerializeToString()


@lru_cache
def block():
    """Returns the block, whose normalizations have channels that differ by 2^8, and its values by
    2^4."""
    random = np.random.default_rng(11)

    def weight(rows, columns):
        return random.normal(size=(rows, columns)) / np.sqrt(rows)
    constants = {"root_2": np.sqrt(2), "one": 1, "half": 0.5, "w_in": weight(WIDE, WIDE),
                 "w_up": weight(WIDE, 4 * WIDE), "w_down": weight(4 * WIDE, WIDE)}
    constants |= {f"w_{kind}": weight(WIDE, WIDE) for kind in "qkvo"}
    for i in range(3):
        constants[f"g{i}"], constants[f"b{i}"] = np.ones(WIDE), np.zeros(WIDE)
    for i, readers in enumerate((["w_q", "w_k", "w_v"], ["w_up"])):
        factors = 2.0 ** random.permutation(np.linspace(-4, 4, WIDE).round())
        constants[f"g{i}"] = factors
        for name in readers:
            constants[name] = constants[name] / factors[:, None]
    factors = 2.0 ** (np.arange(WIDE) % 5 - 2)
    constants["w_v"], constants["w_o"] = (constants["w_v"] * factors,
                                          constants["w_o"] / factors[:, None])
    return with_constants(onnx.parser.parse_model(BLOCK), constants)


def samples(folder, n=64, seed=1):
    data = np.random.default_rng(seed).normal(size=(n, ROWS, WIDE)).astype(np.float32)
    folder.mkdir(exist_ok=True)
    np.savez(folder / "d.npz", x=data)
    return folder / "d.npz", data


def insert(alpha=0.5):
    return {"alpha": alpha, "insert": True}


def rows_of(report):
    return {row["tensor"]: row for row in report["smoothing"]}


def readers_of(model, tensor):
    return {n.name for n in model.graph.node if tensor in n.input}


def muls_of(model):
    """Returns the inserted Muls, by the activation that each multiplies."""
    return {n.input[0]: n for n in model.graph.node
            if n.op_type == "Mul" and n.input[1].endswith("factors")}


def sqnr_of(result, folder):
    _, data = samples(folder / "test", seed=2)
    real = judge.run(block(), {"x": data})
    return judge.sqnr_db(real, judge.run(result, {"x": data}, integers=False))


# --- a block with its sums ----------------------------------------------------------------

def test_the_activations_of_a_block_get_a_mul_each(tmp_path):
    path, data = samples(tmp_path)
    _, result, report = quantize(tmp_path / "a", block(), path, smooth=insert())
    rows = rows_of(report)
    assert rows["h"] == {"tensor": "h", "layers": ["MatMul_query", "MatMul_key", "MatMul_value"],
                         "channels": rows["h"]["channels"], "inserted": True, "reason": MUL}
    assert rows["middle"]["reason"] == rows["gelu"]["reason"] == MUL
    assert rows["mixed"]["reason"] == "smoothed" and not rows["mixed"]["inserted"]
    assert all(rows[name]["channels"] > 0 for name in ("h", "middle", "gelu", "mixed"))
    inner = onnx.load_model_from_string(without_pairs(result))
    muls = muls_of(inner)
    assert muls.keys() == {name for name, row in rows.items() if row["inserted"]}
    assert readers_of(inner, muls["h"].output[0]) == set(rows["h"]["layers"])
    assert readers_of(inner, "h") == {muls["h"].name, "Add_sum"}
    assert readers_of(inner, "middle") == {muls["middle"].name, "Add_total"}
    real = judge.run(block(), {"x": data}, optimized=False)
    ours = judge.run(inner.SerializeToString(), {"x": data}, optimized=False)
    assert np.array_equal(real, ours)


def test_factors_follow_the_formula(tmp_path):
    path, data = samples(tmp_path)
    _, result, _ = quantize(tmp_path / "a", block(), path, smooth=insert(0.7))
    inner = onnx.load_model_from_string(without_pairs(result))
    before, after = ({i.name: numpy_helper.to_array(i) for i in m.graph.initializer}
                     for m in (onnx.load_model_from_string(block()), inner))
    factors = after[muls_of(inner)["h"].input[1]]
    tapped = onnx.load_model_from_string(block())
    del tapped.graph.output[:]
    tapped.graph.output.append(onnx.helper.make_tensor_value_info("h", 1, None))
    peak = np.abs(judge.run(tapped.SerializeToString(), {"x": data})).max(axis=(0, 1))
    weight = np.max([np.abs(before[f"w_{kind}"]).max(axis=1) for kind in "qkv"], axis=0)
    exponents = 0.7 * np.log2(peak) - 0.3 * np.log2(weight.astype(np.float64))
    assert np.array_equal(factors, 2 ** -np.round(exponents - exponents.mean()))
    for kind in "qk":  # the values take in those of what is behind attention, too
        assert np.array_equal(before[f"w_{kind}"], after[f"w_{kind}"] * factors[:, None])


def test_the_pair_stands_behind_the_mul(tmp_path):
    """Where no other layer reads the activation from a pair, it has none."""
    path, _ = samples(tmp_path)
    _, result, _ = quantize(tmp_path / "a", block(), path, smooth=insert())
    model = judge.load(result)
    muls, pairs = muls_of(model), judge.Pairs(model)
    for activation, mul in muls.items():
        (quantize_linear,) = pairs.of(mul.output[0])
        assert {n.op_type for n in model.graph.node if mul.output[0] in n.input} == \
            {quantize_linear.op_type}
        assert not pairs.of(activation) and mul.input[0] not in pairs.sources


def test_a_block_with_its_sums_quantizes_better(tmp_path):
    path, _ = samples(tmp_path)
    figures = {}
    for name, smooth in {"plain": False, "smooth": True, "insert": insert()}.items():
        _, result, _ = quantize(tmp_path / name, block(), path, smooth=smooth)
        figures[name] = sqnr_of(result, tmp_path)
    print({name: round(db, 2) for name, db in figures.items()})
    assert figures["smooth"] < figures["plain"] + 6 < figures["insert"] - 6


@pytest.mark.parametrize("target, spec", [
    ("onnxruntime", {"recipe": "none"}), ("openvino", {"recipe": "none"}),
    ("onnxruntime", {"activations": "dynamic", "recipe": "none"})])
def test_no_target_quantizes_what_the_mul_reads(tmp_path, target, spec):
    path, _ = samples(tmp_path)
    _, plain, _ = quantize(tmp_path / "a", block(), path, target=target, **spec)
    _, result, report = quantize(tmp_path / "b", block(), path, target=target, smooth=insert(),
                                 **spec)
    model = onnx.load_model_from_string(result)
    produced = {o: n.op_type for n in model.graph.node for o in n.output}
    muls = muls_of(model)
    assert len(muls) == sum(row["inserted"] for row in report["smoothing"]) >= 3
    assert all(produced.get(n.input[0]) != "DequantizeLinear" for n in muls.values())
    for layer in report["layers"]:
        if layer["name"] in {n.name for n in muls.values()}:
            assert layer["quantized_inputs"] == [], layer
    assert sqnr_of(result, tmp_path) > sqnr_of(plain, tmp_path) + 3


def test_float16_keeps_the_factors(tmp_path):
    path, data = samples(tmp_path)
    spec = {"float": "float16", "smooth": insert(0.9)}
    done, result, report = quantize(tmp_path / "a", block(), path, **spec)
    assert report, done.stderr
    model = onnx.load_model_from_string(result)
    constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for mul in muls_of(model).values():
        factors = constants[mul.input[1]]
        assert factors.dtype == np.float16
        assert np.isfinite(factors).all() and np.abs(factors).min() >= 2.0 ** -14
    assert sqnr_of(result, tmp_path) > 20


# --- other activations --------------------------------------------------------------------

R = np.random.default_rng(7)
SKEW = 4.0 ** (np.arange(6) * 3 % 5 - 2)
IMAGE = "float[n, 6, 5, 5] x"
ACTIVATIONS = {
    "an input of the graph": ("float[n, 6] x", "y = MatMul (x, w)", "x"),
    "an output of the graph": ("float[n, 6] x", "m = Sigmoid (x) s = Mul (m, g)"
                               " y = MatMul (s, w)", "s"),
    "a sigmoid": ("float[n, 6] x", "s = Sigmoid (x) y = Gemm (s, w)", "s"),
    "an image": (IMAGE, "m = Mul (x, c) r = Relu (m) e = Sigmoid (r) s = Mul (e, c)"
                 " p = Conv (s, k) y = Add (p, s)", "s"),
}


def other(kind):
    head, body, _ = ACTIVATIONS[kind]
    shape = "n, 6, 5, 5" if head is IMAGE else "n, 4"
    more = ", float[n, 6] s" if kind == "an output of the graph" else ""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]>\n'
        f"net ({head}) => (float[{shape}] y{more}) {{ {body} }}")
    constants = {"g": SKEW, "w": R.normal(size=(6, 4)), "c": SKEW[:, None, None],
                 "k": R.normal(size=(6, 6, 1, 1))}
    return with_constants(model, constants)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_the_function_stays_for_other_activations(tmp_path, kind):
    head, _, tensor = ACTIVATIONS[kind]
    size = (64, 6, 5, 5) if head is IMAGE else (64, 6)
    data = (R.normal(size=size) * SKEW.reshape(-1, *(1,) * (len(size) - 2))).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=data)
    model = other(kind)
    done, result, report = quantize(tmp_path / "a", model, tmp_path / "d.npz", smooth=insert())
    assert report, done.stderr
    row = rows_of(report)[tensor]
    assert row["reason"] == MUL and row["channels"] > 0, row
    inner = without_pairs(result)
    assert muls_of(onnx.load_model_from_string(inner)).keys() == {tensor}
    for a, b in zip(*(judge.session(m, optimized=False).run(None, {"x": data})
                      for m in (model, inner))):
        assert np.array_equal(a, b)


def test_a_nested_graph_goes_on_reading_the_activation(tmp_path):
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        net (float[n, 6] x, bool c) => (float[n, 6] y) {
            m = Sigmoid (x)
            s = Mul (m, g)
            p = MatMul (s, w)
            q = If (c) <
                then_branch = then () => (float[n, 6] t) { t = MatMul (s, v) },
                else_branch = else () => (float[n, 6] e) { e = Identity (s) }
            >
            y = Add (p, q)
        }""")
    model = with_constants(model, {"g": SKEW, "w": R.normal(size=(6, 6)),
                                   "v": R.normal(size=(6, 6))})
    data = R.normal(size=(8, 6)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=data, c=np.ones(8, bool))
    done, result, report = quantize(tmp_path / "a", model, tmp_path / "d.npz", smooth=insert(),
                                    activations="none", calibration={"batch": 1},
                                    layers=[{"class": "MatMul", "quantize_weight": False}])
    assert report, done.stderr
    (row,) = report["smoothing"]
    assert row["layers"] == ["MatMul_p"] and row["reason"] == MUL, row
    for one in data:
        real, ours = (judge.session(m, optimized=False).run(
            None, {"x": one[None], "c": np.array(True)})[0] for m in (model, result))
        assert np.array_equal(real, ours)


def test_where_all_factors_are_1_there_is_no_mul(tmp_path):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>\n'
        "net (float[n, 6] x) => (float[n, 4] y) { s = Sigmoid (x) y = MatMul (s, w) }")
    data = np.tile(np.linspace(-1, 1, 64, dtype=np.float32)[:, None], 6)
    np.savez(tmp_path / "d.npz", x=data)
    _, result, report = quantize(tmp_path / "a", with_constants(model, {"w": np.ones((6, 4))}),
                                 tmp_path / "d.npz", smooth=insert())
    (row,) = report["smoothing"]
    assert row["reason"] == "smooth already" and row["inserted"] is False
    assert not muls_of(onnx.load_model_from_string(result))
    assert "nothing_smoothed" in [w["code"] for w in report["warnings"]]


def test_without_insert_nothing_changes(tmp_path):
    path, _ = samples(tmp_path)
    _, plain, report = quantize(tmp_path / "a", block(), path, smooth=True)
    _, same, again = quantize(tmp_path / "b", block(), path, smooth={"insert": False})
    assert plain == same and report["spec"] == again["spec"]
    assert report["spec"]["smooth"] == {"alpha": 0.5}
    assert rows_of(report)["h"]["reason"] == "Add reads it, too"
    assert not any(row["inserted"] for row in report["smoothing"])


# --- around it ----------------------------------------------------------------------------

def test_a_wrong_value_is_named(tmp_path):
    path, _ = samples(tmp_path)
    done, _, _ = quantize(tmp_path / "a", block(), path, smooth={"insert": "yes"})
    assert done.returncode == 1 and "/smooth/insert" in done.stderr, done.stderr


def test_without_data_it_is_refused(tmp_path):
    done, _, _ = quantize(tmp_path, block(), None, smooth=insert(), activations="none")
    assert done.returncode == 1
    assert "/smooth" in done.stderr and "calibration data" in done.stderr


@pytest.mark.shares_daemon
def test_a_frozen_spec_gives_the_same_bytes(daemon, tmp_path):
    model = daemon.upload("models", block())
    data = daemon.upload("datasets", samples(tmp_path)[0])
    job = daemon.submit(model=model, calibration=data,
                        spec={"evaluate": False, "smooth": insert(0.7)})
    daemon.succeeded(job)
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["smooth"] == {"alpha": 0.7, "insert": True}
    again = daemon.submit(model=model, calibration=data, spec=frozen, fresh=True)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)
    lacking = daemon.submit(model=model, spec=frozen)
    ended = daemon.ended(lacking)
    assert ended["state"] == "failed" and ended["error"]["code"] == "no_calibration"


def test_the_recipe_best_tries_no_mul(tmp_path):
    path, _ = samples(tmp_path)
    _, result, report = quantize(tmp_path / "a", block(), path, target="onnxruntime",
                                 recipe="best", evaluate=True,
                                 layers=[{"class": "MatMul"}])
    assert "insert" not in json.dumps([step["spec"] for step in report["recipe"]])
    assert not muls_of(onnx.load_model_from_string(result))
