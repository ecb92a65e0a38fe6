# SPDX-License-Identifier: Apache-2.0
"""Rule P7: an Attention of com.microsoft whose positions see those before them alone becomes operators of ONNX, which
compute the same in both runtimes, and its weight is quantized."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import QUANTIZE

MS = "com.microsoft"
WIDTH = 32
NOTHING = {"mode": "partial", "on_unmatched": "warn", "evaluate": False, "recipe": "none",
           "layers": [{"class": "MatMul", "quantize_input": False, "quantize_weight": False}]}
MASKS = ("none", "right", "left", "nothing", "queries and keys")


def make_mask(kind, batch, length):
    mask = np.ones((batch, length), np.int32)
    if kind == "right":
        mask[0, length // 2:] = 0
    elif kind == "left":
        mask[0, :length // 2] = 0
    elif kind == "nothing":
        mask[:] = 0
    elif kind == "queries and keys":
        mask = (np.random.default_rng(5).random((batch, length, length)) < .5).astype(np.int32)
    return None if kind == "none" else mask


def make(batch=2, length=6, heads=4, mask="none", opset=17, dynamic=False, addend=False, **attributes):
    """Returns the model and its inputs. The mask is an input, and its axes are open as those of x are."""
    rng = np.random.default_rng(3)
    feed = {"x": rng.normal(size=(batch, length, WIDTH)).astype(np.float32)}
    constants = [numpy_helper.from_array((rng.normal(size=shape) * .5).astype(np.float32), name)
                 for name, shape in (("w", (WIDTH, 3 * WIDTH)), ("b", (3 * WIDTH,)))]
    made = make_mask(mask, batch, length)
    names = ["x", "w", "b", "" if made is None else "m", "", "a" if addend else ""]
    while not names[-1]:
        names.pop()
    if made is not None:
        feed["m"] = made
    if addend:
        constants.append(numpy_helper.from_array(rng.normal(size=(1, heads, length, length)).astype(np.float32), "a"))
    axes = {"x": ["batch", "length", WIDTH], "m": ["batch", "length", "length"][:made.ndim if made is not None else 0]}
    graph = helper.make_graph(
        [helper.make_node("Attention", names, ["t"], "attention", domain=MS, num_heads=heads, unidirectional=1,
                          **attributes), helper.make_node("Tanh", ["t"], ["y"], "end")], "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT if name == "x" else TensorProto.INT32,
                                       axes[name] if dynamic else value.shape) for name, value in feed.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", "l", WIDTH])], constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]), feed


def quantize(folder, model, feed, **spec):
    onnx.save(model, folder / "m.onnx")
    rng = np.random.default_rng(9)
    np.savez(folder / "data.npz", **{name: np.stack([value if value.dtype == np.int32 else rng.normal(
        size=value.shape).astype(np.float32) for _ in range(12)]) for name, value in feed.items()})
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "spec.json", "--calibration",
                           folder / "data.npz", "-o", folder / "q.onnx", "--report", folder / "r.json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(folder / "q.onnx")
    return onnx.load(folder / "q.onnx"), json.loads((folder / "r.json").read_text())


def run(model, feed):
    return judge.session(model.SerializeToString(), False).run(None, feed)[0]


def sees_a_key(feed):
    """Returns by batch and position whether one of the keys up to it is not masked."""
    batch, length, _ = feed["x"].shape
    mask = feed.get("m", np.ones((batch, length), np.int32))
    seen = (mask if mask.ndim == 3 else np.repeat(mask[:, None], length, 1)) * np.tril(np.ones((length, length), int))
    return seen.any(-1)


def by_openvino(model, feed):
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return np.array(next(iter(compiled(feed).values())))


def codes(report):
    return {w["code"] for w in report["warnings"]}


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("more", [
    *({"mask": mask} for mask in MASKS), *({"mask": mask, "dynamic": True} for mask in MASKS),
    {"batch": 1, "length": 1}, {"batch": 3, "length": 17, "heads": 2, "dynamic": True}, {"heads": 1, "opset": 13},
    {"dynamic": True, "opset": 13, "mask": "left"}, {"length": 600}, {"scale": .3}, {"addend": True, "mask": "left"},
    {"mask": "left", "mask_filter_value": -3.0}, {"addend": True}], ids=str)
def test_the_same_is_computed(tmp_path, more, target):
    source, feed = make(**more)
    real = run(source, feed)
    plain, report = quantize(tmp_path, source, feed, target=target, **NOTHING)
    assert "layers_unfused" in codes(report) and "Attention" not in {n.op_type for n in plain.graph.node}
    made = {"onnxruntime": run, "openvino": by_openvino}[target](plain, feed)
    rows = sees_a_key(feed)
    np.testing.assert_allclose(made[rows], real[rows], rtol=1e-5, atol=1e-5 if feed["x"].shape[1] < 500 else 3e-5)
    # Where all keys have -10000, floats keep thousandths of the scores, and the order of sums shows.
    np.testing.assert_allclose(made[~rows], real[~rows], atol=2e-3)


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "tensorrt", "qnn"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_its_weight_is_quantized(tmp_path, target, dynamic):
    source, feed = make(mask="right", dynamic=dynamic, length=12)
    made, report = quantize(tmp_path, source, feed, target=target, recipe="none")
    assert "attention" in [w["layer"] for w in report["weights"]] and "weights_in_attention" not in codes(report)
    said = [row for row in report["evaluation"]["outputs"] if row["name"] == "y"]
    assert said[0]["sqnr_db"] > 22
    if target == "openvino":
        assert judge.sqnr_db(run(source, feed), by_openvino(made, feed)) > 25


@pytest.mark.parametrize("length", [3, 5, 40])
def test_other_lengths_than_those_of_the_data(tmp_path, length):
    source, feed = make(dynamic=True, length=12)
    plain, _ = quantize(tmp_path, source, feed, target="onnxruntime", **NOTHING)
    feed = {"x": np.random.default_rng(8).normal(size=(2, length, WIDTH)).astype(np.float32)}
    np.testing.assert_allclose(run(plain, feed), run(source, feed), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_openvino(plain, feed), run(source, feed), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rules", [{"P7": False}, {"P3": False}])
def test_without_the_rule_it_stays(tmp_path, rules):
    source, feed = make()
    made, report = quantize(tmp_path, source, feed, target="onnxruntime", recipe="none", rules=rules)
    assert "Attention" in {n.op_type for n in made.graph.node} and not report["weights"]
    said = [w["detail"] for w in report["warnings"] if w["code"] == "weights_in_attention"]
    assert len(said) == ("P7" in rules) and all("each position sees" in text for text in said)
