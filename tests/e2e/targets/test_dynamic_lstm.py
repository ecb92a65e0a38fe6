# SPDX-License-Identifier: Apache-2.0
"""LSTM with activations that the runtime quantizes in each run: DynamicQuantizeLSTM."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import judge
from test_dynamic import quantize

INPUTS, UNITS, STEPS, BATCH = 48, 64, 12, 2


def constants(directions=1, inputs=INPUTS, units=UNITS, seed=3):
    """Weights as training leaves them: the gates of some units are much larger."""
    random = np.random.default_rng(seed)

    def weight(*shape):
        large = np.exp(random.normal(0, 0.7, (shape[0], shape[1], 1)))
        return (random.normal(0, 0.12, shape) * large[..., :len(shape) - 1].reshape(
            shape[0], shape[1], *[1] * (len(shape) - 2))).astype(np.float32)

    return {"w": weight(directions, 4 * units, inputs),
            "r": weight(directions, 4 * units, units),
            "b": weight(directions, 8 * units)}


def value(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def net(nodes, tensors, inputs=None, outputs=None, opset=17):
    inputs = inputs or [value("x", "steps", BATCH, INPUTS)]
    outputs = outputs or [value("y", *[None] * 4)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [
        numpy_helper.from_array(v, k) for k, v in tensors.items()])
    return helper.make_model(graph, ir_version=9,
                             opset_imports=[helper.make_opsetid("", opset)])


def lstm(inputs="x w r b", outputs="y", name="lstm", op="LSTM", units=UNITS, **attributes):
    return helper.make_node(op, ["" if i == "-" else i for i in inputs.split()],
                            ["" if o == "-" else o for o in outputs.split()], name=name,
                            hidden_size=units, **attributes)


def samples(n=8, scale=1.0):
    return np.random.default_rng(5).normal(0, scale, (n, STEPS, BATCH, INPUTS)).astype(
        np.float32)


def made(folder, source, data=None, **spec):
    done = quantize(folder, source, data, **spec)
    assert done.returncode == 0, done.stderr
    return (judge.load((folder / "q.onnx").read_bytes()),
            json.loads((folder / "report.json").read_text()))


def outputs(model, optimized=True, feeds=None):
    run = judge.session(model.SerializeToString(), optimized)
    return np.concatenate([o.ravel() for feed in feeds or [{"x": x} for x in samples()]
                           for o in run.run(None, feed)]).astype(np.float64)


def db(source, result, optimized=True, feeds=None):
    return judge.sqnr_db(outputs(source, feeds=feeds), outputs(result, optimized, feeds))


def ops(graph):
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for a in node.attribute:
            found += ops(a.g) if a.HasField("g") else []
    return found


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


@pytest.mark.parametrize("spec", [
    {}, {"rules": {"C7": False}}, {"weights": {"granularity": "tensor"}},
    {"weights": {"dtype": "uint8"}}, {"weights": {"method": "mse"}, "rules": {"C7": False}}],
    ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_its_numbers(tmp_path, spec, directions):
    """Integers and scales as numpy computes them, each gate of each direction with a scale of
    its own; the runtime accepts both ways to run them."""
    direction = {1: "reverse", 2: "bidirectional"}[directions]
    tensors = constants(directions)
    source = net([lstm(direction=direction)], tensors)
    result, report = made(tmp_path, source, **spec)
    (node,) = result.graph.node
    assert (node.op_type, node.domain) == ("DynamicQuantizeLSTM", "com.microsoft")
    stored = {t.name: numpy_helper.to_array(t) for t in result.graph.initializer}
    assert set(stored) == {"b", *node.input[1:3], *node.input[8:]}
    rows = {row["name"]: row for row in report["weights"]}
    assert set(rows) == {"w", "r"} and {row["layer"] for row in rows.values()} == {"lstm"}
    (layer,) = report["layers"]
    assert layer["weight_quantized"] and layer["quantized_inputs"] == []
    per_gate = not spec.get("weights", {}).keys() & {"granularity", "dtype"}
    narrow = spec.get("weights", {}).get("method") == "mse"
    assert layer["weight_axis"] == (1 if per_gate else None)
    exact = dict(tensors)
    for at, name in ((1, "w"), (2, "r")):
        integers, scales, zeros = (stored[node.input[i]] for i in (at, 6 + 2 * at, 7 + 2 * at))
        weight = tensors[name]
        assert integers.shape == (directions, weight.shape[2], weight.shape[1])
        assert scales.shape == zeros.shape == (
            (directions, 4 * UNITS) if per_gate else (directions,))
        assert rows[name]["scales"] == scales.size
        if integers.dtype == np.int8:
            assert not zeros.any()
            largest = 64 if "C7" in layer["rules"] else 128 if narrow else 127
            assert np.abs(integers.astype(int)).max() == largest
        by_gate = (lambda a: a[..., None]) if per_gate else (lambda a: a[:, None, None])
        exact[name] = ((integers.transpose(0, 2, 1).astype(np.float32) - by_gate(zeros))
                       * by_gate(scales))
        error = np.abs(exact[name] - weight)
        if narrow:
            steps = np.abs(weight).max(2, keepdims=True) / 127
            plain = np.round(weight / steps) * steps
            assert ((error ** 2).sum(2) <= ((plain - weight) ** 2).sum(2) * 1.0001).all()
        else:
            assert (error <= 0.5001 * by_gate(scales)).all()
    if "C7" in layer["rules"] or "uint8" in str(spec) or not judge.saturates():
        numbers = net([lstm(direction=direction)], exact)
        assert db(numbers, result) > 30 and db(numbers, result, False) > 30


FULL = {"full": dict(inputs="x w r b lengths h c p", outputs="y h_n c_n", clip=0.6,
                     direction="bidirectional", input_forget=0,
                     activations=["HardSigmoid", "Tanh", "Softsign"] * 2,
                     activation_alpha=[0.25, 0.25], activation_beta=[0.5, 0.5]),
        "state": dict(inputs="x w r b - h c", outputs="y - c_n"),
        "peephole": dict(inputs="x w r - - - - p", outputs="y", input_forget=1),
        "last": dict(inputs="x w r", outputs="- h_n", layout=0)}


@pytest.mark.parametrize("case", FULL)
def test_all_inputs_and_attributes_are_kept(tmp_path, case):
    row = FULL[case]
    d = 2 if row.get("direction") == "bidirectional" else 1
    random = np.random.default_rng(2)
    tensors = constants(d)
    tensors["p"] = random.normal(0, 0.2, (d, 3 * UNITS)).astype(np.float32)
    used = row["inputs"].split()
    feeds = [{"x": x, "lengths": np.array([STEPS, 7], np.int32),
              **{k: random.normal(0, 0.5, (d, BATCH, UNITS)).astype(np.float32) for k in "hc"}}
             for x in samples(4)]
    graph_inputs = {"x": value("x", "steps", BATCH, INPUTS),
                    "lengths": helper.make_tensor_value_info(
                        "lengths", TensorProto.INT32, [BATCH]),
                    "h": value("h", d, BATCH, UNITS), "c": value("c", d, BATCH, UNITS)}
    feeds = [{k: v for k, v in feed.items() if k in used} for feed in feeds]
    source = net([lstm(**row)], {k: v for k, v in tensors.items() if k in used},
                 [graph_inputs[k] for k in used if k in graph_inputs],
                 [value(o, *[None] * (4 if o == "y" else 3))
                  for o in row["outputs"].split() if o != "-"])
    result, report = made(tmp_path, source)
    (node,), (before,) = result.graph.node, source.graph.node
    assert node.op_type == "DynamicQuantizeLSTM" and len(node.input) == 12
    assert list(node.output) == list(before.output)
    padded = [*before.input, *[""] * (8 - len(before.input))]
    assert [node.input[0], *node.input[3:8]] == [padded[0], *padded[3:]]
    kept = attributes(before)
    kept.pop("layout", None)
    assert attributes(node) == kept
    assert db(source, result, feeds=feeds) > 25 and db(source, result, False, feeds) > 25


def test_evaluated_frozen_and_external(tmp_path):
    """The report says what runs, the layer is compared by itself, the frozen spec makes the same
    file, and so does a model whose weights lie in a file beside it."""
    source = net([lstm()], constants())
    result, report = made(tmp_path, source, samples(), recipe="auto", rules={"C15": False})
    assert report["kernels"] == {**report["kernels"], "integer": 1,
                                 "ops": {"DynamicQuantizeLSTM": 1}}
    (said,) = report["evaluation"]["deployed"]["outputs"]
    (layer,) = [row for row in report["evaluation"]["layers"] if row["name"] == "lstm"]
    assert layer["sqnr_db"] > 25 and report["summary"]["verdict"] in ("good", "fair")
    assert said["sqnr_db"] == pytest.approx(db(source, result), abs=0.5)
    weights = sum(v.nbytes for k, v in constants().items() if k != "b")
    assert (tmp_path / "q.onnx").stat().st_size < weights / 4 + 12000
    again, split = tmp_path / "again", tmp_path / "split"
    again.mkdir()
    split.mkdir()
    spec = {k: v for k, v in report["spec"].items() if k not in ("evaluate", "recipe")}
    assert made(again, source, **spec)[0].graph == result.graph
    onnx.save(source, split / "m.onnx", save_as_external_data=True, location="m.data",
              size_threshold=1024)
    loaded = onnx.load(split / "m.onnx", load_external_data=False)
    assert any(t.external_data for t in loaded.graph.initializer)
    assert made(split, loaded, **spec)[0].graph == result.graph


def test_a_recipe_leaves_what_does_harm(tmp_path):
    """One input is so large that the steps of all others are lost beside it, and its weight
    is next to nothing."""
    tensors = constants()
    tensors["w"][..., 0] *= 1e-4
    data = samples(16)
    data[..., 0] *= 1000
    source = net([lstm()], tensors)
    feeds = [{"x": x} for x in data[:4]]
    asked = {"rules": {"C15": False}}
    harmed, _ = made(tmp_path, source, data, recipe="none", **asked)
    assert db(source, harmed, feeds=feeds) < 15
    result, report = made(tmp_path, source, data, recipe="auto", **asked)
    assert [n.op_type for n in result.graph.node] == ["LSTM"]
    assert report["layers"][0]["reason"].startswith("recipe")


def test_nested_and_shared(tmp_path):
    """Two LSTM of a branch share a weight, which is stored once; one outside reads the same
    tensor as another one's, and one there stays in float by its entry."""
    tensors = constants(inputs=UNITS)
    tensors["v"] = constants(seed=4)["w"]

    def branch(name, nodes):
        return helper.make_graph(nodes, name, [], [value("out_" + name, *[None] * 4)])

    nodes = [
        lstm("x v r b", "first", "outside"),
        helper.make_node("Squeeze", ["first"], ["a"]),
        helper.make_node("ReduceMean", ["x"], ["m"], keepdims=0),
        helper.make_node("Constant", [], ["zero"], value_float=0.0),
        helper.make_node("Greater", ["m", "zero"], ["is_positive"]),
        helper.make_node("If", ["is_positive"], ["y"], then_branch=branch("then", [
            lstm("a w r b", "t1", "one"), helper.make_node("Squeeze", ["t1"], ["t2"]),
            lstm("t2 w r b", "out_then", "two")]), else_branch=branch("else", [
                lstm("a w r b", "out_else", "three")]))]
    source = net(nodes, tensors)
    result, report = made(tmp_path, source, layers=[
        {"name": "three", "quantize_input": False, "quantize_weight": False}])
    assert ops(result.graph).count("DynamicQuantizeLSTM") == 3
    assert ops(result.graph).count("LSTM") == 1
    reasons = {row["name"]: row["reason"] for row in report["layers"] if row["class"] == "LSTM"}
    assert reasons["three"] == "layers[0]"
    assert sorted(row["name"] for row in report["weights"]) == ["r", "v", "w"]
    texts = result.SerializeToString()
    assert len(texts) < sum(4 * tensors[k].size for k in "wrb") + sum(
        tensors[k].size for k in "wrv") + 60000
    assert db(source, result) > 25 and db(source, result, False) > 25


PARTS = """<ir_version: 9, opset_import: ["" : %s]> g (float[steps,2,48] x, bool yes)
    => (float[steps,d,2,64] y) { y = If (yes) <
        then_branch = t () => (float[steps,d,2,64] a) {
            %s
            a = LSTM <hidden_size = 64> (x, w, r, b) },
        else_branch = e () => (float[steps,d,2,64] c) {
            c = LSTM <hidden_size = 64> (x, w0, r0, b) }> }"""
JOINED = """
            in_K = Slice (torch_K, zero, one, zero)
            out_K = Slice (torch_K, minus, end, zero, step)
            others_K = Slice (torch_K, one, three)
            all_K = Concat <axis = AXIS> (in_K, out_K, others_K)
            K = UNSQUEEZE"""


@pytest.mark.parametrize("opset, unsqueeze, axis, found", [
    (17, "Unsqueeze (all_K, zero)", 0, True), (12, "Unsqueeze <axes = [0]> (all_K)", 0, True),
    (17, "Unsqueeze (all_K, step)", 0, False), (17, "Unsqueeze (all_K, zero)", 1, False)])
def test_weights_in_parts(tmp_path, opset, unsqueeze, axis, found):
    """Exporters of PyTorch put its gates (input, forget, cell, output) into the order of ONNX
    by Slice and Concat, and do not compute that in a nested graph. Along other axes it would be
    no weight of an LSTM."""
    tensors = constants()
    text = JOINED.replace("UNSQUEEZE", unsqueeze).replace("AXIS", str(axis))
    source = onnx.parser.parse_model(PARTS % (opset, text.replace("K", "w") + text.replace("K", "r")))
    i, o, f, c = (slice(n * UNITS, (n + 1) * UNITS) for n in range(4))
    torch = {k: np.concatenate([tensors[k][0, part] for part in (i, f, c, o)]) for k in "wr"}
    numbers = {"zero": [0], "one": [UNITS], "three": [3 * UNITS], "minus": [-UNITS],
               "end": [2 ** 62], "step": [1]}
    source.graph.initializer.extend(
        [numpy_helper.from_array(v, f"torch_{k}") for k, v in torch.items()]
        + [numpy_helper.from_array(tensors[k], f"{k}0") for k in "wr"]
        + [numpy_helper.from_array(tensors["b"], "b")]
        + [numpy_helper.from_array(np.array(v), k) for k, v in numbers.items()])
    if not found:
        assert quantize(tmp_path, source).returncode == 0
        report = json.loads((tmp_path / "report.json").read_text())
        assert [row["reason"] for row in report["layers"] if row["class"] == "LSTM"] == [
            "weight is computed from constants", "default"]
        return
    result, report = made(tmp_path, source)
    assert ops(result.graph) == ["If", "DynamicQuantizeLSTM", "DynamicQuantizeLSTM"]
    assert not [t.name for t in result.graph.initializer if t.name.startswith("torch")]
    feeds = [{"x": x, "yes": np.array(yes)} for x in samples(2) for yes in (True, False)]
    runs = [outputs(result, feeds=[feed]) for feed in feeds]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[2], runs[3])
    assert db(source, result, feeds=feeds) > 25


@pytest.mark.parametrize("op, gates", [("GRU", 3), ("RNN", 1)])
def test_others_have_no_kernel(tmp_path, op, gates):
    tensors = {k: np.ascontiguousarray(v[:, :v.shape[1] // 4 * gates])
               for k, v in constants().items()}
    result, report = made(tmp_path, net([lstm(op=op)], tensors))
    assert [n.op_type for n in result.graph.node] == [op]
    assert report["layers"][0]["reason"] == (
        "the runtime has a dynamic kernel for LSTM, and for no other recurrent layer")


def layout():
    return net([lstm(layout=1)], constants(), [value("x", BATCH, "steps", INPUTS)])


def computed(which):
    tensors = constants()
    tensors["raw"] = tensors.pop(which)
    return net([helper.make_node("Mul", ["raw", "s"], [which]), lstm()], tensors,
               [value("x", "steps", BATCH, INPUTS), value("s")])


def sent():
    source = net([lstm()], constants())
    source.graph.input.append(value("r", 1, 4 * UNITS, UNITS))
    return source


def half():
    tensors = {k: v.astype(np.float16) for k, v in constants().items()}
    source = net([lstm()], tensors, opset=21)
    for one in (*source.graph.input, *source.graph.output):
        one.type.tensor_type.elem_type = TensorProto.FLOAT16
    return source


def filled():
    tensors = constants()
    del tensors["r"]
    return net([helper.make_node(
        "ConstantOfShape", ["shape"], ["r"],
        value=numpy_helper.from_array(np.array([0.01], np.float32))), lstm()],
        {**tensors, "shape": np.array([1, 4 * UNITS, UNITS])})


@pytest.mark.parametrize("source, reason", [
    (layout, "the runtime's dynamic LSTM has no layout 1"),
    (lambda: computed("w"), "weight is not constant"),
    (lambda: computed("r"), "weight is not constant"),
    (sent, "weight is an input of the graph, for which callers may send other values"),
    (half, "the runtime quantizes computed tensors of float32 alone"),
    (filled, "weight is kept in a form that is not read")],
    ids=["layout", "w", "r", "sent", "half", "filled"])
def test_where_it_stays(tmp_path, source, reason):
    result, report = made(tmp_path, source())
    assert "LSTM" in ops(result.graph) and "DynamicQuantizeLSTM" not in ops(result.graph)
    assert reason in {row["reason"] for row in report["layers"] if row["class"] == "LSTM"}


def test_small_ones_stay_unless_selected(tmp_path):
    """Rule C15: a small LSTM takes longer in integers. An entry for the class decides first."""
    source = net([lstm(units=8)], constants(inputs=INPUTS, units=8))
    result, report = made(tmp_path, source, recipe="auto")
    assert report["layers"][0]["reason"] == (
        "rule:C15, conversions cost more time than integers gain")
    result, report = made(tmp_path, source, recipe="auto", layers=[{"class": "LSTM"}])
    assert report["layers"][0]["reason"] == "layers[0]"
    assert ops(result.graph) == ["DynamicQuantizeLSTM"]
    assert db(source, result) > 25


@pytest.mark.parametrize("activations", [None, "none"])
def test_it_stays_without_dynamic_activations(tmp_path, activations):
    """By default and where weights alone are quantized; an entry for it is told why."""
    source = net([lstm()], constants())
    spec = {"activations": activations} if activations else {"activations": {}}
    result, report = made(tmp_path, source, samples(), layers=[{"name": "lstm"}], **spec)
    assert ops(result.graph) == ["LSTM"]
    assert report["layers"][0]["reason"] == (
        "recurrent layers are computed in integers with dynamic activations alone")
    assert "not_quantized" in {w["code"] for w in report["warnings"]}
    result, report = made(tmp_path, source, samples(), **spec)
    assert report["layers"][0]["reason"] == "off by default"


def test_it_is_seen_as_quantized(tmp_path):
    result, _ = made(tmp_path, net([lstm()], constants()))
    done = quantize(tmp_path, result)
    assert done.returncode == 1 and "DynamicQuantizeLSTM" in done.stderr
    kept, report = made(tmp_path, result, existing_qdq="keep")
    assert kept.graph == result.graph
    assert "integer_operators" in {w["code"] for w in report["warnings"]}


@pytest.mark.parametrize("directions", [1, 2])
def test_beside_quantize_dynamic(tmp_path, directions):
    """At least as near to float as onnxruntime's own quantizer makes it, in a file no larger."""
    direction = {1: "forward", 2: "bidirectional"}[directions]
    source = net([lstm(direction=direction)], constants(directions))
    result, _ = made(tmp_path, source)
    for per_channel in (False, True):
        quantize_dynamic(tmp_path / "m.onnx", tmp_path / "theirs.onnx",
                         per_channel=per_channel, weight_type=QuantType.QInt8)
        theirs = onnx.load(tmp_path / "theirs.onnx")
        assert "DynamicQuantizeLSTM" in ops(theirs.graph)
        assert db(source, result) > db(source, theirs) - 0.5
    assert (tmp_path / "q.onnx").stat().st_size <= (
        (tmp_path / "theirs.onnx").stat().st_size + 2000)
