# SPDX-License-Identifier: Apache-2.0
"""Rule C18 of the target onnxruntime: a table whose rows a Gather selects is stored as integers,
and what is gathered is dequantized."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from test_onnxruntime_kernels import Made, numbers

HEAD = '<ir_version: 9, opset_import: ["" : %d]> g '
WORDS, WIDTH = 640, 32
GRAPH = """(int64[1,6] ids, float[1,6,32] x) => (float[1,6,32] y, float[1,6,32] rows) {
    [words] rows = Gather (table, ids)
    [sum] a = Add (rows, x)
    [product] y = MatMul (a, w) }"""


def net(opset=17, text=GRAPH, **more):
    made = onnx.parser.parse_model(HEAD % opset + text)
    table = numbers(WORDS, WIDTH) * np.exp(numbers(WIDTH) * 5)
    constants = {"table": table, "w": numbers(WIDTH, WIDTH), **more}
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in constants.items())
    return made


def samples():
    random = np.random.default_rng(5)
    return {"ids": random.integers(0, WORDS, (8, 1, 6)),
            "x": random.normal(0, 1, (8, 1, 6, WIDTH)).astype(np.float32)}


def nodes(made):
    return [(n.op_type, n.name) for n in made.model.graph.node]


def stored(made):
    return {t.name: t.data_type for t in made.model.graph.initializer}


@pytest.mark.parametrize("spec, least_db", [
    ({"recipe": "auto"}, 30),
    ({"rules": {"C18": True}}, 25),  # the Add and the MatMul compute in integers, too
    ({"recipe": "auto", "activations": "none"}, 30),
    ({"recipe": "auto", "weights": {"dtype": "uint8"}}, 30),
    ({"recipe": "auto", "weights": {"granularity": "tensor"}}, 15)])
def test_rows_are_dequantized(tmp_path, spec, least_db):
    made = Made(tmp_path, net(), samples(), **spec)
    kind = spec.get("weights", {}).get("dtype", "int8")
    assert stored(made)["table_quantized"] == {"int8": 3, "uint8": 2}[kind]
    assert "table" not in stored(made)
    row = made.layers["words"]
    assert row["class"] == "Embedding" and row["weight_quantized"]
    assert row["quantized_inputs"] == [] and "C18" in row["rules"]
    gather = next(n for n in made.model.graph.node if n.name == "words")
    behind = next(n for n in made.model.graph.node if gather.output[0] in n.input)
    assert list(gather.input) == ["table_quantized", "ids"]
    assert behind.op_type == "DequantizeLinear"
    assert min(made.db) > least_db


@pytest.mark.parametrize("spec, text", [
    ({"recipe": "none"}, GRAPH),
    ({"recipe": "auto", "rules": {"C18": False}}, GRAPH),
    ({"recipe": "auto", "weights": {"storage": "qdq"}}, GRAPH),
    ({"recipe": "auto", "layers": [{"name": "words", "quantize_input": False,
                                    "quantize_weight": False}]}, GRAPH),
    # Something else reads the table.
    ({"recipe": "auto"}, GRAPH.replace("[product]", "[other] t = Abs (table) [product]")),
    # It is gathered along another axis.
    ({"recipe": "auto"},
     GRAPH.replace("Gather (table, ids)", "Gather <axis = 1> (turned, ids)"))])
def test_where_the_table_stays(tmp_path, spec, text):
    more = {"turned": numbers(6, WORDS)} if "turned" in text else {}
    text = text.replace("float[1,6,32] rows", "float[6,1,6] rows") if more else text
    text = text.replace("Add (rows, x)", "Abs (x)") if more else text
    made = Made(tmp_path, net(text=text, **more), samples(), **spec)
    assert ("turned" if more else "table") in stored(made)
    assert not made.layers["words"]["weight_quantized"]


PRODUCTS = {
    "MatMul": """(int64[1,6] ids) => (float[1,6,32] y) {
        [words] rows = Gather (table, ids)
        [product] y = MatMul (rows, w) }""",
    "Gemm": """(int64[6] ids) => (float[6,32] y) {
        [words] rows = Gather (table, ids)
        [product] y = Gemm (rows, w) }"""}


@pytest.mark.parametrize("op", PRODUCTS)
@pytest.mark.parametrize("host, dtype, axis", [
    ("vnni", "uint8", None), ("arm", "uint8", None), ("arm", "int8", None),
    ("vnni", "int8", 1)])
def test_a_product_that_reads_the_rows(tmp_path, op, host, dtype, axis):
    """ONNX Runtime makes one kernel of both DequantizeLinear and the product, where the rows are
    uint8 or int8 may stay int8, as on ARM. It fails with a scale for each column of the rows."""
    data = {"ids": samples()["ids"].reshape(8, *([1, 6] if op == "MatMul" else [6]))}
    made = Made(tmp_path, net(text=PRODUCTS[op], table=numbers(WORDS, WIDTH)), data,
                activations="none", recipe="auto", host=host, weights={"dtype": dtype})
    axes = {row["name"]: row["axis"] for row in made.report["weights"]}
    assert axes == {"table": axis, "w": 1}
    assert min(made.db) > 30
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1" if host == "arm" else "0")
    run = onnxruntime.InferenceSession(made.model.SerializeToString(), options,
                                       providers=["CPUExecutionProvider"])
    run.run(None, {"ids": data["ids"][0]})


def test_a_small_table_stays_unless_it_is_named(tmp_path):
    source = net()
    small = next(t for t in source.graph.initializer if t.name == "table")
    small.CopyFrom(numpy_helper.from_array(numbers(64, WIDTH), "table"))
    data = {**samples(), "ids": samples()["ids"] % 64}
    made = Made(tmp_path, source, data, recipe="auto")
    assert made.layers["words"]["reason"] == "rule:C18, the table is small"
    made = Made(tmp_path, source, data, recipe="auto", layers=[{"name": "words"}])
    assert stored(made)["table_quantized"] == onnx.TensorProto.INT8


def test_two_readers_and_a_pair_behind(tmp_path):
    """All layers in integers: what is gathered has a pair behind its DequantizeLinear."""
    text = GRAPH.replace("[sum] a = Add (rows, x)",
                         "[again] b = Gather (table, ids) [sum] a = Add (rows, b)")
    text = text.replace(", float[1,6,32] x", "")
    data = {"ids": samples()["ids"]}
    made = Made(tmp_path, net(text=text), data, rules={"C18": True})
    assert stored(made)["table_quantized"] == onnx.TensorProto.INT8
    assert made.layers["sum"]["quantized_inputs"] == [0, 1]
    assert made.ops["QLinearAdd"] == 1
    assert min(made.db) > 25


def test_an_old_opset_has_one_scale(tmp_path):
    made = Made(tmp_path, net(opset=12), samples(), recipe="auto", opset="keep")
    assert [row["axis"] for row in made.report["weights"] if row["name"] == "table"] == [None]
    assert min(made.db) > 15


def test_float16(tmp_path):
    """The scales are float16 where the rest is."""
    made = Made(tmp_path, net(opset=19), samples(), recipe="auto", float="float16")
    assert stored(made)["table_quantized"] == onnx.TensorProto.INT8
    assert stored(made)["table_scale"] == onnx.TensorProto.FLOAT16
    assert min(made.db) > 25


TURNED = """(int64[1,6] ids) => (float[6,1,32] y%s) {
    [words] rows = Gather (table, ids)
    [turn] t = Transpose <perm = [1, 0, 2]> (rows)
    [reader] y = Sin (t) %s }"""
READERS = {"alone": ("", ""), "beside its shape": (", int64[3] s", "s = Shape (rows)"),
           "beside another": (", float[1,6,32] z", "z = Cos (rows)"),
           "of an output": (", float[1,6,32] rows", "")}


def turned(readers, **spec):
    return net(text=TURNED % READERS[readers]), {"ids": samples()["ids"]}, {"recipe": "auto", **spec}


def optimized(folder):
    """Returns the operators of the result as ONNX Runtime runs it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(str(folder / "q.onnx"), options, providers=["CPUExecutionProvider"])
    return [n.op_type for n in onnx.load(folder / "optimized.onnx").graph.node]


@pytest.mark.parametrize("readers", READERS)
def test_a_transpose_moves_integers(tmp_path, readers):
    """Its input and output are what they were, and nothing is quantized twice."""
    source, data, spec = turned(readers)
    made = Made(tmp_path, source, data, **spec)
    turn = next(n for n in made.model.graph.node if n.name == "turn")
    behind = next(n for n in made.model.graph.node if turn.output[0] in n.input)
    assert behind.op_type == "DequantizeLinear" and behind.output[0] == "t"
    found = [n.op_type for n in made.model.graph.node].count("DequantizeLinear")
    assert found == (1 if readers in ("alone", "beside its shape") else 2)
    assert "QuantizeLinear" not in optimized(tmp_path)
    plain = Made(tmp_path, source, data, **spec, rules={"C25": False})
    assert min(made.db) > 25 and made.db == plain.db


def test_onnxruntime_quantizes_turned_rows_again(tmp_path):
    """Where this fails, ONNX Runtime has mended it and C25 may go."""
    source, data, spec = turned("alone", rules={"C25": False})
    Made(tmp_path, source, data, **spec)
    assert "QuantizeLinear" in optimized(tmp_path)


def test_a_transpose_with_a_pair_reads_it(tmp_path):
    """One scale serves columns of all sizes there."""
    source, data, spec = turned("alone", layers=[{"name": "turn"}, {"name": "words"}])
    made = Made(tmp_path, source, data, **spec)
    turn = next(n for n in made.model.graph.node if n.name == "turn")
    assert "words" not in turn.input[0] and min(made.db) > 10
