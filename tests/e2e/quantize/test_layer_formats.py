# SPDX-License-Identifier: Apache-2.0
"""Formats of single layers: `weights` and `activations` of an entry, of names, globs,
classes and cases; what an entry omits, shared tensors, and entries that contradict each
other."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import DATA
from test_data import Quantized, npz
from test_qdq import qdq

RANDOM = np.random.default_rng(47)
TARGET = {"target": "onnxruntime", "recipe": "none"}
WEIGHTS = {"w": (4, 3, 3, 3), "u": (4, 4, 3, 3), "v": (4, 8)}


def net(opset=21):
    """Two Convs and two MatMuls that share a weight."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": {opset}]>
        net (float[n, 3, 8, 8] x) => (float[n, 8] y, float[n, 8] z) {{
            [one] c = Conv <pads = [1, 1, 1, 1]> (x, w)  r = Relu (c)
            [two] d = Conv <pads = [1, 1, 1, 1]> (r, u)  g = GlobalAveragePool (d)
            f = Flatten (g)  s = Sigmoid (f)
            [left] y = MatMul (f, v)  [right] z = MatMul (s, v) }}""")
    for name, shape in WEIGHTS.items():
        model.graph.initializer.append(numpy_helper.from_array(
            RANDOM.standard_normal(shape).astype(np.float32), name))
    onnx.checker.check_model(model, full_check=True)
    return model


NET = net()
X = npz(x=RANDOM.standard_normal((32, 3, 8, 8)).astype(np.float32))


def made(folder, layers, data=X, model=NET, **spec):
    return Quantized(folder, model, data, **TARGET | spec, layers=layers)


def weights(done):
    return {row["name"]: (row["dtype"], row["block"] or row["granularity"])
            for row in done.report["weights"]}


def tensors(done):
    return {row["name"]: row["dtype"] for row in done.report["tensors"]}


INT4 = {"weights": {"dtype": "int4", "granularity": {"block": 2}}, "activations": "none"}
# the entry: the weights that have another format than int4 in blocks of 2; None is float
ENTRIES = {
    "name": ({"name": "one", "weights": {"dtype": "int8"}}, {"w": ("int8", 2)}),
    "match": ({"match": "t?o", "weights": {"granularity": "channel"}},
              {"u": ("int4", "channel")}),
    "class": ({"class": "Conv2D", "weights": {"dtype": "uint8", "granularity": "tensor"}},
              {"w": ("uint8", "tensor"), "u": ("uint8", "tensor")}),
    "block": ({"name": "two", "weights": {"granularity": {"block": 4}}}, {"u": ("int4", 4)}),
    "float32": ({"name": "one", "weights": {"dtype": "float32"}}, {"w": None}),
    "shared": ({"name": "left", "weights": {"dtype": "int8"}}, {"v": ("int8", 2)}),
}


@pytest.mark.parametrize("entry, changed", ENTRIES.values(), ids=ENTRIES)
def test_weights(tmp_path, entry, changed):
    done = made(tmp_path, [entry], **INT4)
    assert done.ok, done.said
    wanted = dict.fromkeys(WEIGHTS, ("int4", 2)) | changed
    assert weights(done) == {name: row for name, row in wanted.items() if row}
    names = {"w": "one", "u": "two", "v": "left"}
    layers = {row["name"]: row for row in done.report["layers"]}
    for weight, row in wanted.items():
        layer = layers[names[weight]]
        assert layer["weight_dtype"] == (row and row[0])
        assert layer["weight_block"] == (row[1] if row and isinstance(row[1], int) else None)
    assert layers["right"]["weight_dtype"] == layers["left"]["weight_dtype"]


def test_storage_method_and_rounding(tmp_path):
    """Each weight is stored, narrowed and rounded as its own entry says."""
    done = made(tmp_path, [{"name": "one", "weights": {"storage": "qdq", "method": "mse"}},
                           {"name": "two", "weights": {"rounding": "gptq"}}],
                bias_correction=False, **INT4)
    assert done.ok, done.said
    graph = onnx.load_model_from_string(done.bytes).graph
    stored = {t.name: t.data_type for t in graph.initializer}
    assert stored["w_rounded"] == onnx.TensorProto.FLOAT
    assert stored["u_quantized"] == stored["v_quantized"] == onnx.TensorProto.INT4
    plain = made(tmp_path, [], **INT4)
    scales = {row["name"]: row["channel_scales"] for row in done.report["weights"]}
    before = {row["name"]: row["channel_scales"] for row in plain.report["weights"]}
    assert scales["w"] != before["w"] and scales["v"] == before["v"]


def test_frozen_spec_states_entries(tmp_path):
    """The frozen spec has an entry's own members alone and gives the same bytes."""
    entry = {"name": "two", "weights": {"dtype": "uint8", "rounding": "nearest"}}
    done = made(tmp_path, [entry], weights={"dtype": "int8", "rounding": "gptq"})
    assert done.ok, done.said
    (frozen,) = done.report["spec"]["layers"]
    assert frozen["weights"] == entry["weights"] and "activations" not in frozen
    (tmp_path / "again").mkdir()
    again = Quantized(tmp_path / "again", NET, X, **done.report["spec"])
    assert again.ok, again.said
    assert again.bytes == done.bytes


def test_activations(tmp_path):
    """The tensors that a layer reads and makes have its format; the others keep the spec's."""
    done = made(tmp_path, [{"name": "two", "activations": {"dtype": "int16"}}])
    assert done.ok, done.said
    found = tensors(done)
    assert found["r"] == found["d"] == "int16"
    assert found["x"] == "uint8"
    zero = {row["name"]: row["zero_point"] for row in done.report["tensors"]}
    assert zero["r"] == 0  # int16 is symmetric where the entry does not say
    graph = onnx.load_model_from_string(done.bytes).graph
    kinds = {t.name: t.data_type for t in graph.initializer}
    assert onnx.TensorProto.INT16 in kinds.values()
    assert done.report["evaluation"]["outputs"][0]["sqnr_db"] > 30


def test_reader_precedes_maker(tmp_path):
    """A tensor that one layer makes and another reads has the reader's format."""
    done = made(tmp_path, [{"name": "one", "activations": {"dtype": "uint16"}},
                           {"name": "two", "activations": {"dtype": "int8"}}])
    assert done.ok, done.said
    assert tensors(done)["r"] == "int8" and tensors(done)["x"] == "uint16"


LUA = """return {case = function() return {{name = "one", weights = {dtype = "uint4", granularity = {block = 3}}},
                 {name = "two", weights = {dtype = "float32"},
                  activations = {dtype = "uint16", symmetric = false}}} end}"""


def test_case(tmp_path):
    # By C19 the layer with a float weight would read its input raw.
    done = made(tmp_path, [], cases=[{"name": "mine", "lua": LUA}], rules={"C19": False})
    assert done.ok, done.said
    assert weights(done)["w"] == ("uint4", 3) and "u" not in weights(done)
    assert tensors(done)["r"] == "uint16"


def both(member, one, two, names=("left", "right")):
    return [{"name": name, member: value} for name, value in zip(names, (one, two))]


# what is asked for: the error's code, its place, and words of its text
REFUSED = {
    "shared weight": (
        both("weights", {"dtype": "int8"}, {"dtype": "uint8"}),
        "invalid_spec", "/layers/1/weights", ["layers[0]", "layers[1]", "'v'", "'left'", "'right'"]),
    "shared tensor": (
        [{"name": "one", "activations": {"dtype": "int8"}},
         {"name": "three", "activations": {"dtype": "uint8"}}],
        "invalid_spec", "/layers/1/activations", ["layers[0]", "layers[1]", "'x'"]),
    "flag": ([{"name": "one", "weights": {"dtype": "int8"}, "quantize_weight": False}],
             "invalid_spec", "/layers/0/weights", ["quantize_weight"]),
    "float with more": ([{"name": "one", "weights": {"dtype": "float32", "storage": "dq"}}],
                        "invalid_spec", "/layers/0/weights", ["float32"]),
    "unknown": ([{"name": "one", "weights": {"type": "int8"}}],
                "invalid_spec", "/layers/0/weights/type", ["dtype"]),
    "no format": ([{"name": "one", "weights": {"dtype": "int9"}}],
                  "invalid_spec", "/layers/0/weights/dtype", ["int9", "float32"]),
    "zero point of floats": (
        [{"name": "one", "activations": {"dtype": "float8e4m3fn", "symmetric": False}}],
        "invalid_spec", "/layers/0/activations/symmetric", ["floating"]),
    "opset": ([{"name": "one", "weights": {"dtype": "int4"}}],
              "unsupported", "/layers/0/weights/dtype", ["int4 needs opset 21"]),
}


@pytest.mark.parametrize("layers, code, where, words", REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, layers, code, where, words):
    model = net(13 if "opset" in words[0] else 21)
    two = onnx.ModelProto()
    two.CopyFrom(model)
    if any(row["name"] == "three" for row in layers):
        two.graph.node.append(onnx.helper.make_node("Conv", ["x", "w"], ["q"], name="three"))
        two.graph.output.append(onnx.helper.make_tensor_value_info(
            "q", onnx.TensorProto.FLOAT, ["n", 4, 6, 6]))
    path = tmp_path / "model.onnx"
    onnx.save(two, path)
    (tmp_path / "spec.json").write_text(json.dumps({"layers": layers, "opset": "keep"} | TARGET))
    done = qdq("plan", str(path), "--spec", str(tmp_path / "spec.json"))
    assert done.returncode != 0
    assert code in done.stderr and where in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_activations_beside_none(tmp_path):
    done = made(tmp_path, [{"name": "one", "activations": {"dtype": "int8"}}], **INT4)
    assert not done.ok
    assert "/layers/0/activations" in done.said and '"none"' in done.said


def test_plan_shows_formats(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(NET, path)
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(TARGET | INT4 | {
        "layers": [{"class": "Conv2D", "weights": {"dtype": "int8", "granularity": "channel"}}]}))
    said = qdq("plan", str(path), "--spec", str(spec)).stdout
    assert "int8 per channel, axis 0" in said and "int4 in blocks of 2, axis 0" in said


@pytest.mark.parametrize("first, least", [({"dtype": "float32"}, 24), (
    {"dtype": "int8", "granularity": "channel"}, 24), ({}, 18)], ids=["float", "int8", "int4"])
def test_first_layers_of_a_transformer(tmp_path, first, least):
    """The three small convolutions before a transformer cost it most of its accuracy at four
    bits; with 8 bits or none for them alone it keeps that."""
    done = Quantized(tmp_path, onnx.load(DATA / "glyph_vit.onnx"),
                     (DATA / "calib_256.npz").read_bytes(), **TARGET, activations="none",
                     weights={"dtype": "int4", "granularity": {"block": 32},
                              "rounding": "gptq"},
                     layers=[{"class": "Conv2D", "weights": first}])
    assert done.ok, done.said
    found = done.report["evaluation"]["outputs"][0]["sqnr_db"]
    assert found > least
    assert (found < 24) == (not first)
