# SPDX-License-Identifier: Apache-2.0
"""Models of opsets that ONNX Runtime does not load yet: they are run as models of opset 26 where
their nodes mean the same there, and keep their opset in the result."""

import json
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import judge
from service import QUANTIZE, ROOT

F = TensorProto.FLOAT
RUNS = 26
RANDOM = np.random.default_rng(47)


def value(name, shape, dtype=F):
    return helper.make_tensor_value_info(name, dtype, shape)


def build(opset, ir, middle=(), functions=(), domains=()):
    """Returns a Conv, the nodes that make `m` of `c`, and a MatMul."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
             *(middle or [helper.make_node("Relu", ["c"], ["m"])]),
             helper.make_node("Flatten", ["m"], ["f"]),
             helper.make_node("MatMul", ["f", "v"], ["y"], "fc")]
    graph = helper.make_graph(
        nodes, "g", [value("x", [1, 3, 8, 8])], [value("y", [1, 5])],
        [numpy_helper.from_array(WEIGHTS["w"], "w"),
         numpy_helper.from_array(WEIGHTS["v"], "v")])
    return helper.make_model(
        graph, ir_version=ir, functions=functions,
        opset_imports=[helper.make_opsetid("", opset), *domains])


WEIGHTS = {"w": np.float32(RANDOM.normal(0, 0.3, (4, 3, 3, 3))),
           "v": np.float32(RANDOM.normal(0, 0.1, (256, 5)))}
DATA = np.float32(RANDOM.normal(0, 1, (32, 3, 8, 8)))


def quantize(tmp_path, model, **spec):
    """Quantizes with data; returns the result, or None, the report and the messages."""
    source, out, report = (tmp_path / n for n in ("m.onnx", "out.onnx", "report.json"))
    source.write_bytes(model.SerializeToString())
    np.savez(tmp_path / "data.npz", x=DATA)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, source, "--spec", tmp_path / "spec.json", "--calibration",
         tmp_path / "data.npz", "-o", out, "--report", report], capture_output=True,
        text=True, check=False)
    if done.returncode:
        return None, None, done.stderr
    return onnx.load(out), json.loads(report.read_text()), done.stdout + done.stderr


def codes(report):
    return [w["code"] for w in report["warnings"]]


@pytest.mark.parametrize("target", ["tensorrt", "onnxruntime"])
@pytest.mark.parametrize("opset, ir", [(27, 13), (28, 14), (26, 14)])
def test_a_later_model_is_judged_as_one_that_runs(tmp_path, target, opset, ir):
    """The figures and the integers are those of the same model of opset 26."""
    spec = {"target": target, "recipe": "none", "weights": {"storage": "dq"}}
    known, before, _ = quantize(tmp_path, build(RUNS, 13), **spec)
    done, report, said = quantize(tmp_path, build(opset, ir), **spec)
    assert done is not None, said
    assert done.opset_import[0].version == opset and done.ir_version == ir
    onnx.checker.check_model(done, full_check=True)
    assert report["evaluation"]["outputs"] == before["evaluation"]["outputs"]
    assert "run_as_older_opset" in codes(report)
    assert "run_as_older_opset" not in codes(before)
    refused = [w for w in report["warnings"] if w["code"] == "target_format"]
    assert bool(refused) == (target == "onnxruntime")
    assert [n.SerializeToString() for n in done.graph.node] == [
        n.SerializeToString() for n in known.graph.node]
    for a, b in zip(done.graph.initializer, known.graph.initializer):
        assert a.SerializeToString() == b.SerializeToString()
    with pytest.raises(Exception, match="opset|IR version"):
        judge.session(done.SerializeToString())
    got = ReferenceEvaluator(done).run(None, {"x": DATA[:1]})[0]
    want = judge.session(known.SerializeToString(), optimized=False).run(
        None, {"x": DATA[:1]})[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_result_may_get_a_later_opset(tmp_path):
    done, report, said = quantize(tmp_path, build(21, 10), opset=28)
    assert done is not None, said
    assert done.opset_import[0].version == 28 and done.ir_version == 14
    onnx.checker.check_model(done, full_check=True)
    assert {"opset_raised", "run_as_older_opset"} <= set(codes(report))
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 25


def depth(**attributes):
    return [helper.make_node("SpaceToDepth", ["c"], ["m"], "deep", blocksize=2, **attributes)]


def branches(node):
    """Returns an If whose branches make `m`, the first by the node."""
    other = helper.make_node("Relu", ["c"], ["e"])
    return [helper.make_node("ReduceSum", ["c"], ["sum"], keepdims=0),
            helper.make_node("Cast", ["sum"], ["yes"], to=TensorProto.BOOL),
            helper.make_node(
                "If", ["yes"], ["m"], "if",
                then_branch=helper.make_graph([node], "then", [],
                                              [value(node.output[0], None)]),
                else_branch=helper.make_graph([other], "else", [], [value("e", None)]))]


def in_branch(mode):
    node = helper.make_node("SpaceToDepth", ["c"], ["t"], "deep", blocksize=1, mode=mode)
    return branches(node)


# The nodes in the middle, and the node that is named where these do not run as opset 26.
MIDDLES = {
    "the default": (depth(mode="DCR"), None),
    "not stated": (depth(), None),
    "another mode": (depth(mode="CRD"), "node 'deep' (SpaceToDepth)"),
    "in a branch, the default": (in_branch("DCR"), None),
    "in a branch, another mode": (in_branch("CRD"), "node 'deep' (SpaceToDepth)"),
    "a new operator": ([helper.make_node("SwiGLU", ["c", "c"], ["m"], "gate")],
                       "node 'gate' (SwiGLU)"),
    "an operator with new types": ([helper.make_node("Celu", ["c"], ["m"])], None),
}


@pytest.mark.parametrize("case", MIDDLES)
def test_a_node_that_means_something_else_is_named(tmp_path, case):
    middle, named = MIDDLES[case]
    done, report, said = quantize(tmp_path, build(28, 14, middle))
    if named:
        assert done is None and "run_failed" in said, said
        assert named in said and "opset 28" in said and "opset 26" in said
        return
    assert done is not None, said
    assert "run_as_older_opset" in codes(report)
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 20
    kept = [a for n in done.graph.node for a in n.attribute if a.name == "mode"]
    assert len(kept) == sum(a.name == "mode" for n in middle for a in n.attribute)


def test_a_local_function_of_a_later_opset_runs(tmp_path):
    function = helper.make_function("own", "Twice", ["a"], ["b"],
                                    [helper.make_node("Add", ["a", "a"], ["b"])],
                                    [helper.make_opsetid("", 28)])
    middle = [helper.make_node("Twice", ["c"], ["m"], domain="own")]
    done, report, said = quantize(
        tmp_path, build(28, 14, middle, [function], [helper.make_opsetid("own", 1)]))
    assert done is not None, said
    assert "run_as_older_opset" in codes(report)


# --- the table ------------------------------------------------------------------------

def rows():
    """Returns {(operator, opset): its kind and what follows}."""
    text = (ROOT / "engine" / "ground" / "tbl" / "later_opsets.h").read_text()
    return {(op, int(opset)): (kind, re.findall(r'"(\w+)"', rest))
            for kind, op, opset, rest in re.findall(
                r'^LATER_(\w+)\("(\w+)", (\d+)(.*?)\)', text, re.M)}


def inputs_of(schema):
    return [(i.name, i.option, i.is_homogeneous) for i in schema.inputs]


def test_the_table_has_every_later_change():
    schemas = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            schemas.setdefault(schema.name, {})[schema.since_version] = schema
    changes = {(op, version) for op, versions in schemas.items() for version in versions
               if version > RUNS}
    assert set(rows()) == changes
    assert onnx.defs.onnx_opset_version() == 28
    for (op, opset), (kind, rest) in rows().items():
        before = [v for v in schemas[op] if v < opset]
        assert (kind == "OPERATOR") == (not before), op
        if not before:
            continue
        old, new = schemas[op][max(before)], schemas[op][opset]
        assert inputs_of(old) == inputs_of(new), op
        added = set(new.attributes) - set(old.attributes)
        assert set(old.attributes) <= set(new.attributes)
        assert added == ({rest[0]} if kind == "ATTRIBUTE" else set()), op
        for name in added:
            default = helper.get_attribute_value(new.attributes[name].default_value)
            text = default.decode() if isinstance(default, bytes) else str(default)
            assert text == rest[1], op
        for name in old.attributes:
            assert (new.attributes[name].default_value
                    == old.attributes[name].default_value), (op, name)
