# SPDX-License-Identifier: Apache-2.0
"""Activations of every format, symmetric and asymmetric. Scales and zero points equal
those of onnxruntime's quantization tools (for floats: the largest |x| over the format's
largest number). Ranges suit the format's steps. The model computes what onnx's reference
evaluator computes with its pairs."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization.quant_utils import compute_scale_zp

import judge
from formats import ir_of, of_use
from test_data import Quantized, npz

RANDOM = np.random.default_rng(48)
ROWS = of_use("activations")
FORMATS = [(name, symmetric) for name, row in ROWS.items()
           for symmetric in ((True,) if row.is_float else (True, False))]
IDS = [f"{name}{'' if symmetric else '-asymmetric'}" for name, symmetric in FORMATS]
W = RANDOM.standard_normal((8, 6)).astype(np.float32)
V = np.linalg.qr(RANDOM.standard_normal((6, 6)))[0]
X = (RANDOM.standard_normal((64, 8)) * 0.7 + 0.4).astype(np.float32)


def opset_of(name):
    return max(13, ROWS[name].opset)


def bounds(name, symmetric):
    """Returns the lowest and highest integer of the format, or those that symmetric
    quantization uses."""
    row = ROWS[name]
    return (-row.highest if symmetric and row.lowest < 0 else row.lowest), row.highest


def net(opset, kind="float"):
    model = onnx.parser.parse_model(f"""
        <ir_version: {ir_of(opset)}, opset_import: ["": {opset}]>
        net ({kind}[n, 8] x) => ({kind}[n, 6] y) {{
            [one] h = MatMul (x, w)  r = Relu (h)  t = Transpose <perm = [0, 1]> (r)
            [two] y = MatMul (t, v) }}""")
    dtype = np.float16 if kind == "float16" else np.float32
    for name, value in (("w", W), ("v", V)):
        model.graph.initializer.append(numpy_helper.from_array(value.astype(dtype), name))
    onnx.checker.check_model(model, full_check=True)
    return model


def asked(name, symmetric):
    return {"dtype": name, "symmetric": symmetric}


def expected(name, symmetric, low, high, dtype=np.float32):
    """Returns scale and zero point of a range."""
    lowest, highest = bounds(name, symmetric)
    if ROWS[name].is_float:
        return dtype(np.float64(max(abs(low), abs(high))) / highest), 0
    zero, scale = compute_scale_zp(np.float64(low), np.float64(high), np.float64(lowest),
                                   np.float64(highest), symmetric)
    zero = np.clip(float(zero), lowest, highest)
    return dtype(scale), int(zero)


def pairs_of(done):
    return judge.Pairs(judge.load(done.bytes))


def as_int(zero_point):
    return int(zero_point.astype(np.float32))


@pytest.mark.parametrize("name,symmetric", FORMATS, ids=IDS)
def test_pairs_are_those_of_the_ranges(tmp_path, name, symmetric):
    opset = opset_of(name)
    done = Quantized(tmp_path, net(opset), npz(x=X), activations=asked(name, symmetric),
                     calibration={"method": "minmax"}, opset="keep")
    assert done.ok, done.said
    pairs = pairs_of(done)
    ranges = judge.observed_ranges(net(opset).SerializeToString(), {"x": X}, ["x", "t"])
    assert set(done.tensors) == {"x", "t"}
    for tensor, (low, high) in ranges.items():
        scale, zero = expected(name, symmetric, low, high)
        assert pairs.scale(tensor) == scale
        (node,) = pairs.of(tensor)
        assert pairs.constants[node.input[2]].data_type == ROWS[name].kind
        assert as_int(pairs.zero_point(tensor)) == zero
        row = done.tensors[tensor]
        assert (row["dtype"], row["scale"], row["zero_point"]) == (name, float(scale), zero)
    refused = name in ("int8", "float8e4m3fn") and symmetric
    assert ("target_format" in done.warnings) == (not refused)
    if not refused:
        assert done.warnings["target_format"]["rule"] == "T1"
    real = judge.run(net(opset).SerializeToString(), {"x": X})
    # Without the runtime's fusions the results agree, except for the rounding of sums.
    ours = judge.run(done.bytes, {"x": X}, optimized=False)
    model = judge.load(done.bytes)
    model.opset_import[0].version = max(opset, 19)  # the evaluator knows no earlier pairs
    theirs = ReferenceEvaluator(model).run(None, {"x": X})[0]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=np.abs(real).max() * 1e-5)
    (output,) = done.report["evaluation"]["outputs"]
    assert output["sqnr_db"] > (18 if "float8e5m2" in name else 24)


@pytest.mark.parametrize("name,symmetric", FORMATS, ids=IDS)
def test_ranges_by_hand(tmp_path, name, symmetric):
    """Ranges on one side of zero, on both, always zero, and smaller than a normal float.
    """
    opset = opset_of(name)
    for low, high in [(0, 3), (-2, 0), (0.5, 7), (-9, -1), (-1, 1), (-0.3, 5.7), (0, 0)]:
        done = Quantized(tmp_path, net(opset), None, activations=asked(name, symmetric),
                         calibration={"ranges": {"x": [low, high], "t": [0, 1]}})
        assert done.ok, done.said
        pairs = pairs_of(done)
        # The tools widen a range to hold 0 before they make it symmetric.
        scale, zero = expected(name, symmetric, min(low, 0), max(high, 0)) \
            if (low, high) != (0, 0) else (1, 0)
        assert pairs.scale("x") == scale
        assert as_int(pairs.zero_point("x")) == zero


@pytest.mark.parametrize("name", ["int8", "uint8", "float8e4m3fn"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_models_of_float16(tmp_path, name, symmetric):
    if ROWS[name].is_float and not symmetric:
        return
    x = X.astype(np.float16)
    done = Quantized(tmp_path, net(19, "float16"), npz(x=x),
                     activations=asked(name, symmetric), calibration={"method": "minmax"})
    assert done.ok, done.said
    pairs = pairs_of(done)
    scale, zero = expected(name, symmetric, x.min(), x.max(), np.float16)
    assert pairs.scale("x").dtype == np.float16 and pairs.scale("x") == scale
    assert as_int(pairs.zero_point("x")) == zero
    judge.run(done.bytes, {"x": x}, optimized=not ROWS[name].is_float)


def fake(name, symmetric, low, high, x):
    """Computes Q and DQ by NumPy, in float64 except for the scale."""
    scale, zero = expected(name, symmetric, low, high)
    v = x.astype(np.float64) / np.float64(scale)
    row = ROWS[name]
    lowest, highest = row.lowest, row.highest
    if row.is_float:
        v = np.clip(v, lowest, highest).astype(np.float32).astype(row.dtype)
        return v.astype(np.float64) * scale
    return (np.clip(np.rint(v) + zero, lowest, highest) - zero) * np.float64(scale)


def cut(x, t):
    return (max(x.min(), -t), min(x.max(), t))


@pytest.mark.parametrize("data", ["both", "positive", "skewed"])
@pytest.mark.parametrize("name,symmetric", [f for f in FORMATS if "16" not in f[0]],
                         ids=[i for i in IDS if "16" not in i])
def test_mse_suits_the_steps_of_the_format(tmp_path, name, symmetric, data):
    """No threshold has a clearly smaller error over the data itself."""
    x = RANDOM.laplace(size=(4000, 8)).astype(np.float32) * 3
    x = np.abs(x) if data == "positive" else np.where(x < 0, x / 8, x) \
        if data == "skewed" else x
    opset = opset_of(name)
    done = Quantized(tmp_path, net(opset), npz(x=x), activations=asked(name, symmetric),
                     calibration={"method": "mse"}, evaluate=False)
    assert done.ok, done.said
    low, high = done.tensors["x"]["min"], done.tensors["x"]["max"]
    got = np.mean((fake(name, symmetric, low, high, x) - x) ** 2)
    top = np.abs(x).max()
    least = min(np.mean((fake(name, symmetric, *cut(x, top * k / 200), x) - x) ** 2)
                for k in range(10, 201))
    assert got <= least * 1.05


@pytest.mark.parametrize("method", ["entropy", "percentile", "moving_average",
                                    "output_mse"])
@pytest.mark.parametrize("name,symmetric", FORMATS, ids=IDS)
def test_every_method_does_it(tmp_path, name, symmetric, method):
    opset = opset_of(name)
    done = Quantized(tmp_path, net(opset), npz(x=X), activations=asked(name, symmetric),
                     calibration={"method": method})
    assert done.ok, done.said
    pairs = pairs_of(done)
    for tensor, row in done.tensors.items():
        scale, zero = expected(name, symmetric, row["min"], row["max"])
        assert pairs.scale(tensor) == scale and as_int(pairs.zero_point(tensor)) == zero
    (output,) = done.report["evaluation"]["outputs"]
    assert output["sqnr_db"] > 10


@pytest.mark.parametrize("name,symmetric", FORMATS, ids=IDS)
def test_what_ifs_do_what_the_model_does(tmp_path, name, symmetric):
    """What-ifs compute the same as the quantized model."""
    opset = opset_of(name)
    spec = {"activations": asked(name, symmetric),
            "layers": [{"name": "two", "quantize_input": False, "quantize_weight": False}]}
    done = Quantized(tmp_path, net(opset), npz(x=X), sensitivity={"samples": 64},
                     evaluate={"samples": 64}, **spec)
    assert done.ok, done.said
    (row,), (output,) = done.report["sensitivity"], done.report["evaluation"]["outputs"]
    # The runtime's fusions may round a tie elsewhere.
    assert row["sqnr_db_alone"] == pytest.approx(output["sqnr_db"], abs=0.2)


def test_the_frozen_spec_makes_the_same_model(daemon):
    model = daemon.upload("models", net(13).SerializeToString())
    data = daemon.upload("datasets", npz(x=X))
    job = daemon.submit(model=model, calibration=data,
                        spec={"activations": {"dtype": "uint8"}})
    daemon.succeeded(job)
    assert daemon.report(job)["spec"]["activations"] == {"dtype": "uint8",
                                                         "symmetric": False}
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["activations"] == {"dtype": "uint8", "symmetric": False}
    again = daemon.submit(model=model, spec=frozen)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)
