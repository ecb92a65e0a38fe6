# SPDX-License-Identifier: Apache-2.0
"""Rule C30: with weights alone and the target onnxruntime, a weight with a scale for each channel has one for each
block of 64 inputs with 8 bits, and of 128 with 4, which makes a faster MatMulNBits and a more exact weight."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

import judge
from service import QUANTIZE

LAYERS = {
    "MatMul": "y = MatMul (x, w)",
    "MatMul, Add": "m = MatMul (x, w)  y = Add (b, m)",
    "Gemm": "y = Gemm (x, w, b)",
    "Linear": "y = Gemm <transB = 1> (x, t, b)",
}


def make(layer, inputs=320, opset=17, dtype="float"):
    rng = np.random.default_rng(3)
    # Rows of other sizes, as behind a normalization with factors: blocks are worth their scales.
    w = rng.normal(size=(inputs, 48)) * np.exp(rng.normal(size=(inputs, 1)))
    values = {"w": w, "t": w.T.copy(), "b": rng.normal(size=48)}
    graph = parser.parse_graph(f"net ({dtype}[N, {inputs}] x) => ({dtype} y) {{ {layer} }}")
    used = {name for node in graph.node for name in node.input}
    graph.initializer.extend(
        numpy_helper.from_array(value.astype(np.float16 if dtype == "float16" else np.float32), name)
        for name, value in values.items() if name in used)
    for node in graph.node:
        node.name = node.output[0]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


class Result:
    def __init__(self, folder, model, **spec):
        given, path, report = (folder / name for name in ("m.onnx", "q.onnx", "r.json"))
        onnx.save(model, given)
        (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", "activations": "none", **spec}))
        done = subprocess.run([*QUANTIZE, given, "--spec", folder / "spec.json", "-o", path, "--report", report],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.bytes = path.read_bytes()
        self.model, self.report = onnx.load(path), json.loads(report.read_text())
        onnx.checker.check_model(self.model)
        self.blocks = [attribute.i for node in self.model.graph.node if node.op_type == "DequantizeLinear"
                       for attribute in node.attribute if attribute.name == "block_size"]
        self.rows = {row["name"]: row for row in self.report["layers"]}

    def run(self, x, literal=False):
        options = onnxruntime.SessionOptions()
        if literal:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(self.bytes, options).run(None, {"x": x})[0]


def kernels_of(folder, result):
    """Returns the sizes of the blocks of the MatMulNBits that ONNX Runtime makes."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(result.bytes, options)
    return [helper.get_attribute_value(a) for node in onnx.load(options.optimized_model_filepath).graph.node
            if node.op_type == "MatMulNBits" for a in node.attribute if a.name == "block_size"]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dtype, block", [("int8", 64), ("uint8", 64), ("int4", 128), ("uint4", 128)])
@pytest.mark.parametrize("inputs", [384, 300])  # blocks that divide, and that do not
def test_a_layer_has_blocks_and_is_one_kernel(tmp_path, layer, dtype, block, inputs):
    model, spec = make(LAYERS[layer], inputs), {"weights": {"dtype": dtype}}
    x = np.random.default_rng(4).normal(size=(6, inputs)).astype(np.float32)
    result = Result(tmp_path, model, **spec)
    [row] = [row for row in result.rows.values() if "C30" in row["rules"]]
    assert row["weight_block"] == block and result.blocks == [block]
    assert result.report["kernels"]["ops"] == {"MatMulNBits": 1} and kernels_of(tmp_path, result) == [block]
    plain = Result(tmp_path, model, **spec, rules={"C30": False})
    assert plain.blocks == [] and kernels_of(tmp_path, plain) == [32]
    real = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert judge.sqnr_db(real, result.run(x, literal=True)) > judge.sqnr_db(real, plain.run(x, literal=True)) + 1
    assert judge.sqnr_db(real, result.run(x)) > judge.sqnr_db(real, plain.run(x)) - .5
    assert len(result.bytes) < 1.13 * len(plain.bytes)  # small models: 5 of 64 bytes, and names


def test_they_are_the_blocks_that_a_spec_can_ask_for(tmp_path):
    model = make(LAYERS["Linear"])
    asked = Result(tmp_path, model, weights={"granularity": {"block": 64}})
    made = Result(tmp_path, model)
    stored = [{t.name: numpy_helper.to_array(t).tobytes() for t in r.model.graph.initializer} for r in (asked, made)]
    assert stored[0] == stored[1]


@pytest.mark.parametrize("spec", [
    {"rules": {"C30": False}}, {"recipe": "none"}, {"weights": {"granularity": "tensor"}},
    {"weights": {"granularity": "channel"}},
    {"weights": {"storage": "qdq"}}, {"activations": "dynamic"}, {"opset": "keep"},
    {"layers": [{"name": "y", "weights": {"granularity": "channel"}}]}])
def test_what_asks_for_something_else_has_no_blocks(tmp_path, spec):
    result = Result(tmp_path, make(LAYERS["Gemm"]), **spec)
    assert result.blocks == [] and all("C30" not in row["rules"] for row in result.rows.values())
    assert "opset_raised" not in {w["code"] for w in result.report["warnings"]} or "layers" in spec


@pytest.mark.parametrize("inputs, opset, blocks, raised", [(320, 21, [64], False), (320, 17, [64], True),
                                                           (255, 17, [], False), (256, 17, [64], True)])
def test_the_opset_is_raised_where_that_is_needed(tmp_path, inputs, opset, blocks, raised):
    result = Result(tmp_path, make(LAYERS["MatMul"], inputs, opset))
    assert result.blocks == blocks
    assert raised == ("opset_raised" in {w["code"] for w in result.report["warnings"]})


@pytest.mark.parametrize("nodes", [
    "a = MatMul (x, w)  c = MatMul (x, w)  y = Add (a, c)",  # P5: stored once, for both
    "r = ReduceSum (w)  m = MatMul (x, w)  y = Add (m, r)"])  # another node reads the weight
def test_a_weight_of_several_nodes_has_none(tmp_path, nodes):
    assert Result(tmp_path, make(nodes)).blocks == []


def test_16_bit_floats(tmp_path):
    model = make(LAYERS["MatMul"], dtype="float16", opset=21)
    result = Result(tmp_path, model)
    assert result.blocks == [64] and kernels_of(tmp_path, result) == [64]


def test_a_frozen_spec_keeps_its_bytes(tmp_path):
    """One of this version states the rule; one of an earlier version does not, and has no blocks."""
    model = make(LAYERS["Linear"])
    made = Result(tmp_path, model)
    frozen = {**{k: v for k, v in made.report["spec"].items() if k != "evaluate"}, "recipe": "none"}
    assert frozen["rules"]["C30"] is True
    assert Result(tmp_path, model, **frozen).model.graph == made.model.graph
    older = {**frozen, "rules": {name: on for name, on in frozen["rules"].items() if name != "C30"}}
    again = Result(tmp_path, model, **older)
    assert again.blocks == [] and "C30" not in again.report["spec"]["rules"]
