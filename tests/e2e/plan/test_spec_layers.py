# SPDX-License-Identifier: Apache-2.0
"""Modes, entries and layer support of a spec: plans, models and errors."""

import json

import pytest

import judge
from nets import block_net, samples
from service import DATA, FEW_SAMPLES, Service, problem
from test_qdq import last_line, qdq

CONVS = ["stem/conv", "block/conv1", "block/conv2"]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """One daemon for all tests; `one.net` is the network's id."""
    made = Service(tmp_path_factory.mktemp("layers")).start()
    made.net = made.upload("models", block_net())
    yield made
    made.stop()


def plan(one, **spec):
    answer = one.post("/v1/plan", json={"model": one.net, "spec": spec})
    assert answer.status_code == 200, answer.text
    return answer.json()


def rows(document):
    """Returns the layers with pairs: name to (inputs, whether the weight is quantized,
    reason)."""
    return {x["name"]: (x["quantized_inputs"], x["weight_quantized"], x["reason"])
            for x in document["layers"]
            if x["quantized_inputs"] or x["weight_quantized"]}


def reasons(document):
    return {x["name"]: x["reason"] for x in document["layers"]}


DEFAULT = {name: ([0], True, "default") for name in (*CONVS, "head/fc")} | {
    "pool/mean": ([0], False, "default")}


# --- entries -------------------------------------------------------------------------------


def test_default(one):
    document = plan(one)
    assert rows(document) == DEFAULT
    for name in ("block/add", "pool/max", "pool/both", "stem/relu", "head/flat"):
        assert reasons(document)[name] == "off by default"
    assert "head/max" not in reasons(document)  # not supported: the operator is its class


# the spec's layers: what changes against the default, None for no pair
CHANGES = {
    "class": ([{"class": "Add"}], {"block/add": ([0, 1], False, "layers[0]")}),
    "class, ONNX's name": ([{"class": "Concat"}],
                           {"pool/both": ([0, 1], False, "layers[0]")}),
    "class, several": ([{"class": "Relu"}], {
        name: ([0], False, "layers[0]")
        for name in ("stem/relu", "block/relu1", "block/relu2")}),
    "a class entry's flags hold": (
        [{"class": "Conv2D", "quantize_input": False}],
        {name: ([], True, "layers[0]") for name in CONVS}),
    "a class entry's index holds": (
        [{"class": "Add", "quantization_index": [1]}],
        {"block/add": ([1], False, "layers[0]")}),
    "name": ([{"name": "pool/max"}], {"pool/max": ([0], False, "layers[0]")}),
    "names": ([{"name": ["pool/max", "block/add"]}], {
        "pool/max": ([0], False, "layers[0]"),
        "block/add": ([0, 1], False, "layers[0]")}),
    "name of an output": ([{"name": "@pool/max"}],
                          {"pool/max": ([0], False, "layers[0]")}),
    "index": ([{"name": "block/add", "quantization_index": [1]}],
              {"block/add": ([1], False, "layers[0]")}),
    "weight alone": ([{"name": "head/fc", "quantize_input": False}],
                     {"head/fc": ([], True, "layers[0]")}),
    "input alone": ([{"name": "head/fc", "quantize_weight": False}],
                    {"head/fc": ([0], False, "layers[0]")}),
    "neither": ([{"name": "head/fc", "quantize_input": False,
                  "quantize_weight": False}], {"head/fc": None}),
    "glob": ([{"match": "block/*", "quantize_input": False, "quantize_weight": False}],
             {"block/conv1": None, "block/conv2": None}),
    "a glob passes activations by": (
        [{"match": "*"}],
        {name: ([0], True, "layers[0]") for name in (*CONVS, "head/fc")} | {
            "block/add": ([0, 1], False, "layers[0]"),
            "pool/max": ([0], False, "layers[0]"),
            "pool/mean": ([0], False, "layers[0]"),
            "pool/both": ([0, 1], False, "layers[0]")}),
    "one byte": ([{"match": "block/conv?", "quantize_input": False}],
                 {"block/conv1": ([], True, "layers[0]"),
                  "block/conv2": ([], True, "layers[0]")}),
    "name over match over class": (
        [{"name": "block/conv1", "quantize_weight": False},
         {"match": "block/conv?", "quantize_input": False},
         {"class": "Conv", "quantize_input": False, "quantize_weight": False}],
        {"stem/conv": None, "block/conv1": ([0], False, "layers[0]"),
         "block/conv2": ([], True, "layers[1]")}),
    "the later of equals": (
        [{"name": "block/add"}, {"name": "block/add", "quantization_index": [0]}],
        {"block/add": ([0], False, "layers[1]")}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_entries(one, name):
    layers, changes = CHANGES[name]
    wanted = {k: v for k, v in (DEFAULT | changes).items() if v}
    assert rows(plan(one, layers=layers)) == wanted


def test_why_a_layer_is_left_alone(one):
    document = plan(one, layers=[{"class": "Conv", "quantize_input": False,
                                  "quantize_weight": False}])
    assert reasons(document)["stem/conv"] == "layers[0]"


def test_partial(one):
    document = plan(one, mode="partial", layers=[{"name": "block/conv1"},
                                                 {"class": "Dense"}])
    assert rows(document) == {"block/conv1": ([0], True, "layers[0]"),
                              "head/fc": ([0], True, "layers[1]")}
    assert reasons(document)["stem/conv"] == "not selected"


def test_layer_support(one):
    support = [{"class": "GlobalMaxPool", "kind": "non_weighted"}]
    document = plan(one, layer_support=support)
    assert rows(document) == DEFAULT | {"head/max": ([0], False, "default")}
    # A row replaces the library's.
    support = [{"class": "AveragePool", "kind": "non_weighted", "quantize_input": False}]
    document = plan(one, layer_support=support)
    assert "pool/mean" not in rows(document)
    support = [{"class": "Gemm", "kind": "weighted", "weight_input": 1,
                "channel_axis": 1}]
    (layer,) = [x for x in plan(one, layer_support=support)["layers"]
                if x["name"] == "head/fc"]
    assert layer["weight_axis"] == 1 and layer["class"] == "Gemm"


@pytest.mark.parametrize("rows, said", [
    ([{"class": "Gemm", "kind": "weighted", "channel_axis": 1}], []),
    ([{"class": "Gemm", "kind": "weighted"}], [0]),  # another class with the same pairs
    ([{"class": "Conv2D", "kind": "weighted"}], [0]),
    ([{"class": "Relu", "kind": "non_weighted", "quantize_input": False}], [0]),
    ([{"class": "AveragePool", "kind": "non_weighted", "quantize_input": False},
      {"class": "Conv2D", "kind": "weighted"}], [1]),
])
def test_layer_support_without_effect_is_said(one, rows, said):
    found = [w["detail"] for w in plan(one, layer_support=rows)["warnings"]
             if w["code"] == "support_without_effect"]
    assert [int(text.split("[")[1].split("]")[0]) for text in found] == said


# --- the model follows the plan ------------------------------------------------------------

SPECS = {
    "partial": {"mode": "partial", "layers": [{"name": ["block/conv2", "pool/both"]}]},
    "everything": {"layers": [{"match": "*"}, {"class": "Relu"}],
                   "layer_support": [{"class": "GlobalMaxPool",
                                      "kind": "non_weighted"}]},
    "weights alone": {"layers": [{"class": "Conv", "quantize_input": False},
                                 {"class": "Dense", "quantize_input": False},
                                 {"class": "AveragePool", "quantize_input": False}]},
    "one branch": {"layers": [{"name": "block/add", "quantization_index": [1]}]},
}


@pytest.mark.parametrize("name", SPECS)
def test_plan_model_and_command_agree(one, name, tmp_path):
    document = plan(one, **SPECS[name])
    answer = one.quantize(block_net(), samples(), spec=SPECS[name])
    assert answer.status_code == 200, answer.text
    report = one.report(answer.headers["Location"].rsplit("/", 1)[1])
    assert report["layers"] == document["layers"]
    pairs = judge.Pairs(judge.load(answer.content)).table()
    got = {node: (inputs, weights != []) for node, (inputs, weights) in pairs.items()
           if inputs or weights}
    assert got == {k: v[:2] for k, v in rows(document).items()}
    judge.session(answer.content)

    model, spec = tmp_path / "net.onnx", tmp_path / "spec.json"
    model.write_bytes(block_net())
    spec.write_text(json.dumps(SPECS[name]))
    done = qdq("plan", model, "--spec", spec, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == document


def test_a_real_model_in_partial_mode(one):
    spec = {"mode": "partial", "layers": [{"class": "Conv"}]}
    answer = one.quantize(DATA / "glyph_se.onnx", FEW_SAMPLES, spec=spec)
    assert answer.status_code == 200, answer.text
    graph = judge.load(answer.content).graph
    table = judge.Pairs(judge.load(answer.content)).table()
    ops = {n.name: n.op_type for n in graph.node}
    assert {ops[name] for name, row in table.items() if row != ([], [])} == {"Conv"}


# --- mistakes ------------------------------------------------------------------------------

# spec, code, pointer, words of the detail
MISTAKES = {
    "unknown class": ({"layers": [{"class": "Conv2d_"}]},
                      "invalid_spec", "/layers/0/class", ["Conv2d_", "Conv2D"]),
    "unknown class behind others": (
        {"layers": [{"class": "Add"}, {"class": "Adds"}]},
        "invalid_spec", "/layers/1/class", ["Adds", '"Add"']),
    "class far from any": ({"layers": [{"class": "Quux"}]},
                           "invalid_spec", "/layers/0/class", ["Quux"]),
    "name": ({"layers": [{"name": "block/conv9"}]},
             "unmatched", "/layers/0/name", ["block/conv9"]),
    "name of a list": ({"layers": [{"name": ["block/conv1", "block/conv9"]}]},
                       "unmatched", "/layers/0/name/1", ["block/conv9"]),
    "glob": ({"layers": [{"match": "blocks/*"}]},
             "unmatched", "/layers/0/match", ["blocks/*"]),
    "index": ({"layers": [{"name": "block/add", "quantization_index": [0, 2]}]},
              "unmatched", "/layers/0/quantization_index/1", ["2", "block/add"]),
    "index of the weight": (
        {"layers": [{"name": "head/fc", "quantization_index": [1]}]},
        "unmatched", "/layers/0/quantization_index/0", ["1", "head/fc"]),
    "no support": ({"layers": [{"name": "head/max"}]},
                   "unsupported", "/layers/0/name", ["GlobalMaxPool", "layer_support"]),
    "unknown member": ({"layers": [{"class": "Add", "quantise_input": False}]},
                       "invalid_spec", "/layers/0/quantise_input", ["quantize_input"]),
    "unknown member above": ({"layer": []}, "invalid_spec", "/layer", ["layers"]),
    "two selectors": ({"layers": [{"class": "Add", "name": "x"}]},
                      "invalid_spec", "/layers/0", ["name", "class"]),
    "no selector": ({"layers": [{}]}, "invalid_spec", "/layers/0", ["name", "class"]),
    "no object": ({"layers": ["Add"]}, "invalid_spec", "/layers/0", []),
    "type of a flag": ({"layers": [{"class": "Add", "quantize_input": 1}]},
                       "invalid_spec", "/layers/0/quantize_input", []),
    "empty index": ({"layers": [{"class": "Add", "quantization_index": []}]},
                    "invalid_spec", "/layers/0/quantization_index", []),
    "negative index": ({"layers": [{"class": "Add", "quantization_index": [-1]}]},
                       "invalid_spec", "/layers/0/quantization_index/0", []),
    "list of classes": ({"layers": [{"class": ["Add"]}]},
                        "invalid_spec", "/layers/0/class", []),
    "mode": ({"mode": "some"}, "invalid_spec", "/mode", ["partial"]),
    "partial with nothing": ({"mode": "partial"}, "invalid_spec", "/mode", ["partial"]),
    "kind": ({"layer_support": [{"class": "Gelu", "kind": "heavy"}]},
             "invalid_spec", "/layer_support/0/kind", ["weighted"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_a_place(one, name, tmp_path):
    spec, code, pointer, words = MISTAKES[name]
    answer = one.post("/v1/plan", json={"model": one.net, "spec": spec})
    document = problem(answer, 422, code)
    (error,) = document["errors"]
    assert error["pointer"] == pointer
    for word in words:
        assert word in document["detail"]
    # The same mistake has the same code in every route.
    again = problem(one.quantize(block_net(), samples(), spec=spec), 422, code)
    assert again["errors"] == document["errors"]
    assert again["detail"] == document["detail"]
    model, file = tmp_path / "net.onnx", tmp_path / "spec.json"
    model.write_bytes(block_net())
    file.write_text(json.dumps(spec))
    done = qdq("plan", model, "--spec", file)
    assert done.returncode == 1
    assert last_line(done).startswith(f"qdq: {code}: {document['detail']}")


@pytest.mark.parametrize("name", ["name", "name of a list", "glob", "index",
                                  "no support"])
def test_mistakes_that_may_be_warnings(one, name):
    spec, _, _, words = MISTAKES[name]
    document = plan(one, on_unmatched="warn", **spec)
    text = json.dumps(document["warnings"])
    for word in words:
        assert word in text
    codes = [w["code"] for w in document["warnings"]]
    assert "no_support" in codes or "unmatched" in codes


def test_a_class_that_the_model_lacks_is_a_warning(one):
    document = plan(one, layers=[{"class": "LayerNormalization"}])
    assert rows(document) == DEFAULT
    (warning,) = [w for w in document["warnings"] if w["code"] == "unmatched"]
    assert "LayerNormalization" in warning["detail"]
