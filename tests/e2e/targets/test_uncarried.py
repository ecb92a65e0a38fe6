# SPDX-License-Identifier: Apache-2.0
"""Rule C32: weights that a Loop or Scan carries from step to step and never changes are read from outside, so that the
layers of its body are quantized, as those of an LSTM of Keras."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

import judge
from service import QUANTIZE

N = 96
BODY = """body ({head} float[1, {n}] h_in, float[{n}, {n}] w_in, float[{n}, {n}] u_in{row}) =>
    ({tail} float[1, {n}] h_out, float[{n}, {n}] w_out, float[{n}, {n}] u_out)
    {{ {condition} a = MatMul (h_in, w_in)  u_kept = Identity (u_in)  c = MatMul ({data}, {u})  s = Add (a, c)
       h_out = Tanh (s)  {w_out}  u_out = Identity (u_kept) }}"""
LOOP = {"head": "int64 i, bool c_in,", "tail": "bool c_out,", "row": "",
        "condition": "c_out = Identity (c_in)  row = Gather (rows, i)"}
SCAN = {"head": "", "tail": "", "row": f", float[1, {N}] row", "condition": ""}
NOTHING = {"mode": "partial", "on_unmatched": "warn", "evaluate": False, "rules": {"C32": True},
           "layers": [{"class": "MatMul", "quantize_input": False, "quantize_weight": False}]}


def make(kind, end="y = Identity (h)", w_out="w_out = Identity (w_in)", u="u_kept", given="w"):
    body = BODY.format(n=N, data="row", u=u, w_out=w_out, **(LOOP if kind == "Loop" else SCAN))
    call = (f"h, z, z2 = Loop (n, true, x, {given}, u) <body = {body}>" if kind == "Loop" else
            f"h, z, z2 = Scan (x, {given}, u, rows) <num_scan_inputs = 1, body = {body}>")
    rng = np.random.default_rng(1)
    graph = parser.parse_graph(
        f"net (float[1, {N}] x, float[5, 1, {N}] rows) => (float y) {{ {call}  {end} }}")
    values = {"w": rng.laplace(size=(N, N)) / 24, "u": rng.laplace(size=(N, N)) / 12}
    graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), k) for k, v in values.items())
    graph.initializer.extend([numpy_helper.from_array(np.array(5), "n"), numpy_helper.from_array(np.array(True), "true")])
    if given == "v":
        graph.input.append(helper.make_tensor_value_info("v", 1, [N, N]))
    graph.output[0].type.tensor_type.ClearField("shape")
    for node in graph.node:
        node.name = node.output[0]
        for attribute in node.attribute:
            for inner in attribute.g.node:
                inner.name = inner.output[0]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def feeds_of(model, n=16):
    rng = np.random.default_rng(2)
    return [{value.name: rng.normal(size=[d.dim_value for d in value.type.tensor_type.shape.dim]).astype(np.float32)
             for value in model.graph.input} for _ in range(n)]


def quantize(folder, model, **spec):
    feeds = feeds_of(model)
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "data.npz", **{k: np.stack([feed[k] for feed in feeds]) for k in feeds[0]})
    (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", **spec}))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "spec.json", "--calibration",
                           folder / "data.npz", "-o", folder / "q.onnx", "--report", folder / "r.json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return onnx.load(folder / "q.onnx"), json.loads((folder / "r.json").read_text())


def run(model, feeds):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.stack([session.run(None, feed)[0] for feed in feeds])


def codes(report):
    return {w["code"] for w in report["warnings"]}


def carried(model):
    [node] = [node for node in model.graph.node if node.op_type in ("Loop", "Scan")]
    [body] = [a.g for a in node.attribute if a.name == "body"]
    return [len(row) for row in (node.input, node.output, body.input, body.output)]


@pytest.mark.parametrize("end", ["y = Identity (h)", "y = MatMul (h, z)"])  # what is carried is read behind the last step
@pytest.mark.parametrize("u", ["u_kept", "u_in"])
@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_the_same_is_computed(tmp_path, kind, u, end):
    source = make(kind, end, u=u)
    made, report = quantize(tmp_path, source, **NOTHING)
    assert "weights_uncarried" in codes(report) and "weights_in_loop" not in codes(report)
    assert carried(made) == [n - 2 for n in carried(source)]
    feeds = feeds_of(source, 4)
    np.testing.assert_allclose(run(made, feeds), run(source, feeds), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", [{}, {"activations": "none"}, {"rules": {"C32": True}, "recipe": "none"}], ids=str)
@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_its_layers_are_quantized(tmp_path, kind, spec):
    source = make(kind)
    made, report = quantize(tmp_path, source, evaluate=True, **spec)
    if spec:  # what a recipe does depends on times
        assert {"a", "c"} <= {w["layer"] for w in report["weights"]}
        assert len(made.SerializeToString()) < .4 * len(source.SerializeToString())
    feeds = feeds_of(source, 4)
    assert judge.sqnr_db(run(source, feeds), run(made, feeds)) > 20


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
@pytest.mark.parametrize("more", [
    {"w_out": "w_out = Mul (w_in, w_in)"}, {"given": "v"}, {"w_out": "w_out = Identity (u_in)"}], ids=str)
def test_what_changes_is_carried_on(tmp_path, kind, more):
    source = make(kind, **more)
    made, report = quantize(tmp_path, source, **NOTHING)
    # u is taken out alone, unless it is what w becomes, too
    assert carried(made) == [n - ("u_in" not in more.get("w_out", "")) for n in carried(source)]
    feeds = feeds_of(source, 4)
    np.testing.assert_allclose(run(made, feeds), run(source, feeds), rtol=1e-4, atol=1e-4)


def test_what_a_scan_goes_through_is_not_carried(tmp_path):
    """Its rows reach an output of the body, too, at the place of the input."""
    source = make("Scan")
    [scan] = [node for node in source.graph.node if node.op_type == "Scan"]
    [body] = [a.g for a in scan.attribute if a.name == "body"]
    body.node.append(helper.make_node("Identity", ["row"], ["row_out"], "row_out"))
    body.output.append(helper.make_tensor_value_info("row_out", 1, [1, N]))
    scan.output.append("rows_out")
    del source.graph.input[1]
    source.graph.initializer.append(numpy_helper.from_array(
        np.random.default_rng(3).normal(size=(5, 1, N)).astype(np.float32), "rows"))
    made, _ = quantize(tmp_path, source, **NOTHING)
    assert carried(made) == [n - 2 for n in carried(source)]
    feeds = feeds_of(source, 4)
    np.testing.assert_allclose(run(made, feeds), run(source, feeds), rtol=1e-4, atol=1e-4)


def test_an_output_of_the_model_stays(tmp_path):
    source = make("Loop")
    source.graph.output.append(helper.make_tensor_value_info("z", 1, [N, N]))
    made, _ = quantize(tmp_path, source, **NOTHING)
    assert carried(made) == [n - 1 for n in carried(source)]


@pytest.mark.parametrize("spec", [{"rules": {"C32": False}}, {"recipe": "none"}, {"target": "tensorrt"}], ids=str)
def test_without_the_rule_they_stay(tmp_path, spec):
    source = make("Loop")
    made, report = quantize(tmp_path, source, **spec)
    assert carried(made) == carried(source) and not report["weights"]
    assert "weights_in_loop" in codes(report) and "weights_uncarried" not in codes(report)
