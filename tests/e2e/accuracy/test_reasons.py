# SPDX-License-Identifier: Apache-2.0
"""The advice for a poor result names each reason why a layer does harm, on a small model that fails
for it, and its spec mends that model."""

import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import QUANTIZE

N, WIDE = 48, 64
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, WIDE)).astype(np.float32)


# The outputs have one value, so that they list no classes and the SQNR alone decides.

def net(nodes, inputs, outputs, **weights):
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => ({outputs}) {{ {nodes} }}')
    for name, value in weights.items():
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(value, np.float32), name))
    onnx.checker.check_model(model, full_check=True)
    return model


def dense(rows=WIDE, columns=WIDE, gain=1):
    return RNG.normal(size=(rows, columns)) * gain / np.sqrt(rows)


def softmax():
    """512 nearly equal shares, which are less than a step of 1 / 256."""
    model = net("""[dense] a = MatMul (x, w)  [soft] s = Softmax <axis = -1> (a)
                   [out] y = MatMul (s, v)""", "float[n, 64] x", "float[n, 1] y",
                w=dense(WIDE, 512, 0.3), v=dense(512, 1, 20))
    return model, {"x": X}


def gate():
    """A gate that is nearly shut: its values are less than a step of 1 / 256."""
    model = net("""[dense] a = MatMul (x, w)  [bias] b = Add (a, k)  [open] g = Sigmoid (b)
                   [gate] t = Mul (g, x)  [out] y = MatMul (t, v)""",
                "float[n, 64] x", "float[n, 1] y",
                w=dense(), k=np.full(WIDE, -7), v=dense(WIDE, 1, 30))
    return model, {"x": X}


def normalization():
    """Rows whose sizes differ by a factor of 20,000, and their squares by its square."""
    model = net("""[mean] m = ReduceMean <axes = [-1]> (x)  [centre] c = Sub (x, m)
                   [square] q = Mul (c, c)  [variance] v = ReduceMean <axes = [-1]> (q)
                   [eps] e = Add (v, k)  [root] r = Sqrt (e)  [norm] z = Div (c, r)
                   [out] y = MatMul (z, w)""", "float[n, 64] x", "float[n, 1] y",
                w=dense(WIDE, 1), k=1e-6)
    return model, {"x": (X * np.exp(RNG.uniform(-5, 5, size=(N, 1)))).astype(np.float32)}


def state():
    """A state with two channels that are 3,000 times as large as the others."""
    weight, before = dense(), RNG.normal(size=(N, 1, WIDE)).astype(np.float32)
    before[:, :, :2] *= 3000
    weight[:2] /= 3000
    model = net("""[in] a = MatMul (x, v)  [again] b = MatMul (state, w)  [sum] s = Add (a, b)
                   [act] staten = Tanh (s)""",
                "float[n, 1, 64] x, float[n, 1, 64] state", "float[n, 1, 64] staten",
                v=dense(), w=weight)
    return model, {"x": X.reshape(N, 1, WIDE), "state": before}


def saturation():
    """Large products of one sign, two of which do not fit into 16 bits, in front of a layer whose
    products have both."""
    model = net("[sums] a = MatMul (x, w)  [out] y = MatMul (a, v)", "float[n, 64] x",
                "float[n, 1] y", w=RNG.uniform(0.8, 1, size=(WIDE, 32)), v=dense(32, 1))
    return model, {"x": RNG.uniform(0.7, 1, size=(N, WIDE)).astype(np.float32)}


def quantize(folder, model, feed, processor, **spec):
    """Returns whether the command succeeds, and its report."""
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    np.savez(folder / "calibration.npz", **feed)
    (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", "recipe": "none", **spec}))
    done = subprocess.run(
        [*QUANTIZE, "model.onnx", "--spec", "spec.json", "--calibration", "calibration.npz",
         "-o", "made.onnx", "--report", "report.json"], cwd=folder, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120, env={**os.environ, **processor})
    return done.returncode == 0, json.loads((folder / "report.json").read_text())


def advice(report):
    """Returns the text of the advice without its spec, and the spec."""
    [text] = [w["detail"] for w in report["warnings"] if w["code"] == "poor"]
    at = text.find('{"layers"')
    return (text[:at], json.loads(text[at:])) if at > 0 else (text, None)


@pytest.mark.parametrize("make, layer, reason", [
    (softmax, "out", "softmax"), (gate, "gate", "gate"),
    (normalization, "square", "decomposed normalization"), (state, "again", "recurrent state"),
    (saturation, "sums", "saturation")])
def test_the_layer_the_reason_and_a_spec_that_mends_it(tmp_path, request, make, layer, reason):
    processor, spec = {}, {}
    if make is saturation:
        processor, spec = request.getfixturevalue("older_processor"), {"rules": {"C7": False}}
    model, feed = make()
    ok, report = quantize(tmp_path, model, feed, processor, **spec)
    assert ok and report["summary"]["verdict"] == "poor"
    text, tried = advice(report)
    assert f"'{layer}' ({reason})" in text
    [entry] = tried["layers"]
    # as few as that: one layer, for a normalization the square and the sum behind it, and where the
    # layer behind the sums saturates in some runs, that one, too
    assert layer in entry["name"] and len(entry["name"]) <= (2 if make in (normalization, saturation) else 1)
    ok, mended = quantize(tmp_path, model, feed, processor, **spec, **tried)
    assert ok and mended["summary"]["verdict"] != "poor"
    assert any(row["weight_quantized"] for row in mended["layers"]) or (
        make is saturation and len(entry["name"]) == 2)


def test_a_missed_size_gets_advice(tmp_path):
    """Pairs of small layers take more than their weights save; the large one is worth it."""
    small = [f"small{i}" for i in range(6)]
    nodes = "".join(f"[{name}] a{i + 1} = MatMul (a{i}, w{i}) " for i, name in enumerate(small))
    model = net(nodes + "[big] b = MatMul (a6, v)  y = Sigmoid (b)", "float[n, 4] a0",
                "float[n, 2048] y", v=dense(4, 2048),
                **{f"w{i}": dense(4, 4) for i in range(6)})
    feed = {"a0": RNG.normal(size=(N, 4)).astype(np.float32)}
    ok, report = quantize(tmp_path, model, feed, {})
    assert ok
    sizes = report["summary"]["size_before"], report["summary"]["size_after"]
    bound = {"max_size_ratio": (sizes[1] - 1000) / sizes[0]}
    ok, report = quantize(tmp_path, model, feed, {}, accept=bound)
    assert not ok
    text, tried = advice(report)
    assert text.startswith("max_size_ratio is missed") and "of the size" in text
    names = tried["layers"][0]["name"]
    assert set(names) & set(small) and "big" not in names
    ok, mended = quantize(tmp_path, model, feed, {}, accept=bound, **tried)
    assert ok and mended["summary"]["size_after"] <= sizes[1] - 1000


def test_a_missed_latency_is_said(tmp_path):
    """No choice of layers makes a model a million times as fast."""
    model, feed = state()
    ok, report = quantize(tmp_path, model, feed, {}, accept={"max_latency_ratio": 1e-6})
    text, tried = advice(report)
    assert not ok and text.startswith("max_latency_ratio is missed") and tried is None
    assert "did not help" in text or "nothing that was tried is enough" in text
