# SPDX-License-Identifier: Apache-2.0
"""Masks of attention that the model itself makes infinite: they have no range, so the layers that
read them stay in float, and the others are quantized as ever."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import QUANTIZE

TARGETS = ("tensorrt", "onnxruntime", "openvino", "qnn")
SIZE, LENGTH = 96, 16
# These are added to the scores of attention.
PRODUCT = ("float[1,1,16] kept", "gone = Sub (unit, kept) mask = Mul (gone, low)")
MASKS = {
    "where": ("bool[1,1,16] m", "mask = Where (m, zero, low)"),
    "table": ("int64[1,16,16] d", "rows = Gather (table, d) mask = Squeeze (rows, last)"),
    "causal": ("bool[1] m", "mask = Identity (triangle)"),
    "moved": ("bool[1,16,1] m", "a = Where (m, zero, low) mask = Transpose <perm = [0, 2, 1]> (a)"),
    "filled": ("int64[1] n", "a = ConstantOfShape <value = float[1] {-inf}> (sixteen)"
                             " b = Trilu <upper = 1> (a, one) mask = Unsqueeze (b, first)"),
}
# The logarithm of a mask is infinite where the mask is 0.
LOGS = {
    "log of an input": ("float[1,1,16] kept", "mask = Log (kept)"),
    "log of a mask": ("bool[1,1,16] m", "f = Cast <to = 1> (m) wide = Expand (f, whole) mask = Log (wide)"),
}
# These stand between the masked scores and the Softmax.
BEHIND = {
    "nothing": "sm = Identity (sa)",
    "max": "[bound] sm = Max (sa, low)",
    "max of a row": "[bound] sm = Max (sa, lows)",
    "clip": "[bound] sm = Clip (sa, low)",
    "two": "[bound] sb = Max (sa, lows) sm = Reshape (sb, shape)",
}
TEXT = """<ir_version: 9, opset_import: ["": 17]> g (float[1,16,96] x, %s) => (float[1,16,96] y) {
    [to_q] q = MatMul (x, wq) [to_k] k = MatMul (x, wk) [to_v] v = MatMul (x, wv)
    kt = Transpose <perm = [0, 2, 1]> (k)
    [scores] s0 = MatMul (q, kt) [scaled] s = Mul (s0, c)
    %s
    [masked] %s [soft] p = Softmax <axis = -1> (sm)
    [mix] a0 = MatMul (p, v) [out] y = MatMul (a0, wo) }"""


def attention(kind, low=-np.inf, behind=None):
    rng = np.random.default_rng(1)
    declared, text = {**MASKS, **LOGS, "product": PRODUCT}[kind]
    added = f"sa = Add (s, mask) {BEHIND[behind]}" if behind else "sm = Add (s, mask)"
    if kind == "filled":  # the parser of ONNX's texts knows no infinities
        text = text.replace("{-inf}", "{-7}")
    made = onnx.parser.parse_model(TEXT % (declared, text, added))
    for node in made.graph.node:
        for attribute in node.attribute:
            if node.op_type == "ConstantOfShape":
                attribute.t.CopyFrom(numpy_helper.from_array(np.array([low], np.float32)))
    table = rng.normal(size=(12, 1)).astype(np.float32)
    table[0] = low
    constants = {
        **{f"w{k}": (rng.normal(size=(SIZE, SIZE)) / 10).astype(np.float32) for k in "qkvo"},
        "c": np.float32(0.125), "zero": np.float32(0), "low": np.float32(low), "table": table,
        "triangle": np.triu(np.full((1, LENGTH, LENGTH), low, np.float32), 1),
        "last": np.array([3]), "first": np.array([0]), "sixteen": np.array([LENGTH, LENGTH]), "one": np.int64(1), "unit": np.float32(1), "whole": np.array([1, LENGTH, LENGTH]),
        "lows": np.full(LENGTH, low, np.float32), "shape": np.array([1, LENGTH, LENGTH])}
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name)
                                  for name, value in constants.items() if name in used)
    data = {"x": rng.normal(size=(24, 1, LENGTH, SIZE)).astype(np.float32)}
    name = declared.split()[-1]
    if name == "d":
        data["d"] = rng.integers(0, 12, (24, 1, LENGTH, LENGTH))
    else:
        axes = {"moved": (1, LENGTH, 1), "causal": (1,), "filled": (1,)}.get(kind, (1, 1, LENGTH))
        data[name] = np.ones((24, *axes), {"n": np.int64, "kept": np.float32}.get(name, bool))
        if len(axes) > 1:
            for row in data[name]:
                row.reshape(-1)[int(rng.integers(5, LENGTH)):] = 0
    return made, data


def quantized(folder, kind, low=-np.inf, behind=None, **spec):
    made, data = attention(kind, low, behind)
    onnx.save(made, folder / "m.onnx")
    np.savez(folder / "d.npz", **data)
    (folder / "s.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, folder / "m.onnx", "--spec", folder / "s.json", "--calibration",
         folder / "d.npz", "-o", folder / "q.onnx", "--report", folder / "r.json"],
        capture_output=True, text=True)
    if done.returncode:
        return done.stderr, {}
    report = json.loads((folder / "r.json").read_text())
    return report, {row["name"]: row for row in report["layers"]}


@pytest.mark.parametrize("kind", [*MASKS, *LOGS])
@pytest.mark.parametrize("target", TARGETS)
def test_the_layers_at_the_mask_stay_in_float(tmp_path, target, kind):
    """All layers that can be are planned: the job failed, since the mask has no range."""
    report, layers = quantized(tmp_path, kind, target=target, mode="full", recipe="none")
    assert layers, report
    masked = layers.get("masked")  # an Add of a constant is no layer of some targets
    if target in ("onnxruntime", "qnn") and kind not in ("causal", "filled"):
        assert "infinite" in masked["reason"]
    assert not masked or (masked["quantized_inputs"] == [] and not masked["weight_quantized"])
    assert "soft" not in layers or layers["soft"]["quantized_inputs"] == []
    assert layers["to_q"]["weight_quantized"] and layers["out"]["weight_quantized"]
    assert not {row["name"] for row in report["tensors"]} & {"mask", "sm", "rows", "a", "b"}
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 25


@pytest.mark.parametrize("target", TARGETS)
def test_the_default_takes_them(tmp_path, target):
    report, layers = quantized(tmp_path, "where", target=target)
    assert layers, report


def test_a_range_makes_it_data(tmp_path):
    """A mask and scores to which the spec gives a range have pairs, as ever."""
    ranges = {"mask": [-30, 0], "sm": [-30, 10]}
    report, layers = quantized(tmp_path, "where", target="onnxruntime", mode="full", recipe="none",
                               calibration={"ranges": ranges})
    assert layers, report
    assert layers["masked"]["quantized_inputs"] == [0, 1]


def test_other_infinities_are_an_error(tmp_path):
    """Those that samples bring are no mask's."""
    made, data = attention("where")
    data["x"][3, 0, 0, 0] = np.inf
    onnx.save(made, tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", **data)
    done = subprocess.run(
        [*QUANTIZE, tmp_path / "m.onnx", "--target", "onnxruntime", "--calibration", tmp_path / "d.npz",
         "-o", tmp_path / "q.onnx"], capture_output=True, text=True)
    assert done.returncode != 0 and "nonfinite" in done.stderr


# --- masks that are as low as floats go -------------------------------------------------

LOWEST = [float(np.finfo(np.float32).min), -1e4]


@pytest.mark.parametrize("low", LOWEST)
@pytest.mark.parametrize("kind", [*MASKS, "product"])
@pytest.mark.parametrize("activations, least", [("uint8", 20), ("uint16", 35)])
def test_masks_leave_the_scores_their_integers(tmp_path, kind, low, activations, least):
    """Rule Q13: the ranges begin a little below all scores."""
    report, layers = quantized(tmp_path, kind, low, target="qnn", recipe="none",
                               activations={"dtype": activations})
    assert layers, report
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > least
    assert min(row["min"] for row in report["tensors"]) > -1000


def test_a_range_of_a_mask_that_is_given_stays(tmp_path):
    ranges = {"mask": [-2000, 0], "sm": [-2000, 10]}
    report, layers = quantized(tmp_path, "where", -1e4, target="qnn", recipe="none",
                               calibration={"ranges": ranges})
    assert layers, report
    rows = {row["name"]: row for row in report["tensors"]}
    assert rows["mask"]["min"] == rows["sm"]["min"] == -2000


@pytest.mark.parametrize("low", LOWEST)
def test_without_the_rule_nothing_is_left_of_the_scores(tmp_path, low):
    report, layers = quantized(tmp_path, "where", low, target="qnn", recipe="none", rules={"Q13": False})
    assert layers, report
    assert report["evaluation"]["outputs"][0]["sqnr_db"] < 15


# --- other targets, and bounds behind the sum --------------------------------------------

@pytest.mark.parametrize("low", LOWEST)
@pytest.mark.parametrize("kind", [*MASKS, "product"])
@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_other_targets_leave_the_scores_their_integers(tmp_path, target, kind, low):
    """Rule P4, where all layers have pairs: the mask took the whole range, and 5 to 8 dB were left."""
    report, layers = quantized(tmp_path, kind, low, target=target, mode="full", recipe="none")
    assert layers, report
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 20
    assert min(row["min"] for row in report["tensors"]) > -1000


@pytest.mark.parametrize("low", LOWEST)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("target, activations", [("qnn", "uint8"), ("qnn", "uint16"), ("onnxruntime", "uint8"),
                                                 ("openvino", "uint8")])
def test_bounds_of_masked_scores(tmp_path, target, activations, behind, low):
    """Rules Q14 and P4: what stands between the sum and the Softmax begins where the scores do."""
    report, layers = quantized(tmp_path, "where", low, behind, target=target, mode="full", recipe="none",
                               activations={"dtype": activations})
    assert layers, report
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > (35 if activations == "uint16" else 20)
    assert min(row["min"] for row in report["tensors"]) > -1000


@pytest.mark.parametrize("target, rule", [("qnn", "Q14"), ("onnxruntime", "P4")])
def test_without_these_rules_nothing_is_left_of_the_scores(tmp_path, target, rule):
    report, layers = quantized(tmp_path, "where", -1e4, "max of a row", target=target, mode="full", recipe="none",
                               rules={rule: False})
    assert layers, report
    assert report["evaluation"]["outputs"][0]["sqnr_db"] < 15


# --- what is no mask, and what is not for scores alone ------------------------------------

BESIDE = """<ir_version: 9, opset_import: ["": 17]> g (float[1,8,16] x, float[1,1,8] m) => (float[1,8,16] y, float[1,?,4] z) {
    q = MatMul (x, wq) k = MatMul (x, wk) kt = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, kt)
    gone = Sub (unit, m) mask = Mul (gone, low) sm = Add (s, mask) p = Softmax <axis = -1> (sm)
    v = MatMul (x, wv) y = MatMul (p, v) z = MatMul (%s, wz) }"""
ENERGIES = """<ir_version: 9, opset_import: ["": 17]> g (float[1,32] x) => (float[1,10] y) {
    a0 = MatMul (x, wa) a = Add (a0, low) b = MatMul (x, wb) s = Add (a, b) y = Softmax <axis = -1> (s) }"""


def judged(folder, text, constants, data, **spec):
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(numpy_helper.from_array(np.float32(value), name) for name, value in constants.items())
    onnx.save(made, folder / "m.onnx")
    np.savez(folder / "d.npz", **data)
    (folder / "s.json").write_text(json.dumps({"recipe": "none", "mode": "full", **spec}))
    subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "s.json", "--calibration",
                    folder / "d.npz", "-o", folder / "q.onnx", "--report", folder / "r.json"], check=True)
    return json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize("target", ["qnn", "onnxruntime"])
@pytest.mark.parametrize("read", ["sm", "mask"])
def test_what_others_read_keeps_its_range(tmp_path, target, read):
    """A layer beside the Softmax reads masked scores, or the mask: it was left 0 dB. With target qnn the Softmax
    keeps its scores, too, which had 1.8 dB (rule Q17)."""
    rng = np.random.default_rng(3)
    kept = np.ones((32, 1, 1, 8), np.float32)
    kept[::2, ..., 5:] = 0
    constants = {"unit": 1, "low": -1e4, "wz": rng.normal(size=(8, 4)), **{f"w{k}": rng.normal(size=(16, 16)) / 4 for k in "qkv"}}
    report = judged(tmp_path, BESIDE % read, constants,
                    {"x": rng.normal(size=(32, 1, 8, 16)).astype(np.float32), "m": kept}, target=target)
    by_name = {row["name"]: row["sqnr_db"] for row in report["evaluation"]["outputs"]}
    assert by_name["z"] > 30
    assert (read == "sm" and target != "qnn") or by_name["y"] > 20
    left = {row["name"] for row in report["layers"] if "Q17" in row["rules"]}
    assert len(left) == (3 if read == "sm" and target == "qnn" else 0)


def test_sent_masks_are_masks(tmp_path):
    """Callers send -10000 in floats: the scores that another layer reads, too, stay in float (rule Q17)."""
    rng = np.random.default_rng(5)
    mask = np.zeros((32, 1, 1, 8), np.float32)
    mask[::2, ..., 5:] = -1e4
    text = (BESIDE % "sm").replace("gone = Sub (unit, m) mask = Mul (gone, low)", "mask = Identity (m)")
    constants = {"wz": rng.normal(size=(8, 4)), **{f"w{k}": rng.normal(size=(16, 16)) / 4 for k in "qkv"}}
    report = judged(tmp_path, text, constants,
                    {"x": rng.normal(size=(32, 1, 8, 16)).astype(np.float32), "m": mask}, target="qnn")
    assert len([row for row in report["layers"] if "Q17" in row["rules"]]) == 3
    by_name = {row["name"]: row["sqnr_db"] for row in report["evaluation"]["outputs"]}
    assert by_name["y"] > 20 and by_name["z"] > 30


def test_energies_of_a_layer_are_no_mask(tmp_path):
    """The numbers of a layer are as low as a mask, and the highest one tells the class: 1 dB was left."""
    rng = np.random.default_rng(4)
    constants = {"wa": rng.normal(size=(32, 10)) * 40, "low": -700, "wb": rng.normal(size=(32, 10)) / 5}
    report = judged(tmp_path, ENERGIES, constants, {"x": rng.normal(size=(128, 1, 32)).astype(np.float32)},
                    target="qnn", activations={"dtype": "uint16"})
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 15
