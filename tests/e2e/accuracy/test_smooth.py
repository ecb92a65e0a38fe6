# SPDX-License-Identifier: Apache-2.0
"""smooth: the model computes the same function, and its activations quantize better."""

import json
import subprocess
from functools import lru_cache

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import CALIBRATION, DATA, FEW_SAMPLES, QUANTIZE
from test_equalize import KINDS, network, without_pairs


@lru_cache
def skewed_vit():
    """Returns glyph_vit with channels of all its normalizations skewed by 2^-4 to 2^4: scale
    and bias are multiplied, the rows of the weight behind are divided."""
    model = onnx.load(DATA / "glyph_vit.onnx")
    constants = {i.name: i for i in model.graph.initializer}
    random = np.random.default_rng(5)

    def multiply(name, factors):
        values = numpy_helper.to_array(constants[name]) * factors
        constants[name].CopyFrom(numpy_helper.from_array(values.astype(np.float32), name))

    def reader_of(tensor):
        return next(n for n in model.graph.node if tensor in n.input)

    for norm in model.graph.node:
        if norm.op_type != "LayerNormalization":
            continue
        reader = reader_of(norm.output[0])
        if reader.op_type == "ReduceMean":  # of the tokens, before the last layer
            reader = reader_of(reader.output[0])
        factors = 2.0 ** random.integers(-4, 5, 96)
        multiply(norm.input[1], factors)
        multiply(norm.input[2], factors)
        multiply(reader.input[1], 1 / (factors if reader.op_type == "Gemm"
                                       else factors[:, None]))
    return model.SerializeToString()


def quantize(folder, model, data=CALIBRATION, **spec):
    """Runs the command; returns the process, the result's bytes and the report."""
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(model)
    (folder / "s.json").write_text(json.dumps({"evaluate": False, **spec}))
    given = ["--calibration", data] if data else []
    done = subprocess.run([*QUANTIZE, "m.onnx", "--spec", "s.json", "-o", "o.onnx",
                           "--report", "r.json", *given], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    if done.returncode:
        return done, None, None
    return done, (folder / "o.onnx").read_bytes(), json.loads((folder / "r.json").read_text())


def sqnr_of(result, images=250):
    feed = {"input": judge.test_images()[0][:images]}
    real = judge.run(DATA / "glyph_vit.onnx", feed)
    return judge.sqnr_db(real, judge.run(result, feed, integers=False))


def smoothed(report):
    return [row["tensor"] for row in report["smoothing"] if row["reason"] == "smoothed"]


@pytest.mark.parametrize("rounding, least", [("nearest", 29), ("gptq", 31.5)])
def test_a_skewed_transformer_is_as_good_as_the_straight_one(tmp_path, rounding, least):
    spec = {"weights": {"rounding": rounding}}
    _, plain, report = quantize(tmp_path / "a", skewed_vit(), **spec)
    assert report["smoothing"] is None
    _, ours, report = quantize(tmp_path / "b", skewed_vit(), smooth=True, **spec)
    worst, best = sqnr_of(plain), sqnr_of(ours)
    print(f"{rounding}: {worst:.2f} to {best:.2f} dB")
    assert worst < 10 and best > least
    named = ("/LayerNormalization", "/ReduceMean")  # the last one goes through the latter
    assert sum(name.startswith(named) for name in smoothed(report)) == 7


def test_a_straight_transformer_does_not_suffer(tmp_path):
    model = (DATA / "glyph_vit.onnx").read_bytes()
    _, plain, _ = quantize(tmp_path / "a", model)
    _, ours, _ = quantize(tmp_path / "b", model, smooth=True)
    assert sqnr_of(ours) > sqnr_of(plain) - 0.2


def test_the_function_stays(tmp_path):
    _, result, report = quantize(tmp_path, skewed_vit(), FEW_SAMPLES, smooth=True)
    assert smoothed(report)
    inner = without_pairs(result)
    constants = [{i.name: i.raw_data for i in onnx.load_model_from_string(m).graph.initializer}
                 for m in (skewed_vit(), inner)]
    assert any(constants[0][name] != data for name, data in constants[1].items()
               if name in constants[0])
    feed = {"input": judge.test_images()[0][:100]}
    real, ours = (judge.run(m, feed, optimized=False) for m in (skewed_vit(), inner))
    assert np.array_equal(real, ours)


def test_factors_follow_the_formula(tmp_path):
    """m_c is a_c^alpha / w_c^(1 - alpha) over its geometric mean, as the nearest power of
    two."""
    alpha = 0.7
    _, result, report = quantize(tmp_path, skewed_vit(), FEW_SAMPLES,
                                 smooth={"alpha": alpha})
    assert report["spec"]["smooth"] == {"alpha": alpha}
    source = onnx.load_model_from_string(skewed_vit())
    norm = next(n for n in source.graph.node if n.op_type == "LayerNormalization")
    (reader,) = (n for n in source.graph.node if norm.output[0] in n.input)
    tapped = onnx.ModelProto()
    tapped.CopyFrom(source)
    del tapped.graph.output[:]
    tapped.graph.output.append(onnx.helper.make_tensor_value_info(norm.output[0], 1, None))
    with np.load(FEW_SAMPLES) as arrays:
        seen = judge.run(tapped.SerializeToString(), {"input": arrays["input"]})
    peak = np.abs(seen).max(axis=(0, 1))
    before = {i.name: numpy_helper.to_array(i) for i in source.graph.initializer}
    weight = np.abs(before[reader.input[1]]).max(axis=1).astype(np.float64)
    exponents = alpha * np.log2(peak) - (1 - alpha) * np.log2(weight)
    factors = 2 ** np.round(exponents - exponents.mean())
    after = {i.name: numpy_helper.to_array(i)
             for i in onnx.load_model_from_string(without_pairs(result)).graph.initializer}
    assert np.array_equal(before[norm.input[1]] / after[norm.input[1]], factors)
    (row,) = (r for r in report["smoothing"] if r["tensor"] == norm.output[0])
    assert row["layers"] == [reader.name]
    assert row["channels"] == np.count_nonzero(factors != 1)


# --- what makes the activation ------------------------------------------------------------

R = np.random.default_rng(7)
SKEW = 4.0 ** (np.arange(6) * 3 % 5 - 2)
MAKERS = {
    "mul": ("s = Mul (x, g)", {"g": SKEW}),
    "mul and add": ("a = Mul (g, x) s = Add (a, b)", {"g": SKEW, "b": R.normal(size=6)}),
    "batchnorm": ("s = BatchNormalization (x, g, b, mean, var)",
                  {"g": SKEW, "b": R.normal(size=6), "mean": R.normal(size=6),
                   "var": np.ones(6)}),
    "matmul, add, relu": ("a = MatMul (x, g) c = Add (a, b) s = Relu (c)",
                          {"g": R.normal(size=(6, 6)) * SKEW, "b": R.normal(size=6)}),
    "gemm": ("s = Gemm <transB = 1> (x, g, b)",
             {"g": R.normal(size=(6, 6)) * SKEW[:, None], "b": R.normal(size=6)}),
}
# Two layers read what is made.
READERS = "p = MatMul (s, w) q = MatMul (s, v) y = Add (p, q)"


def net(body, constants):
    text = ('<ir_version: 8, opset_import: ["": 17]>\n'
            f"net (float[n, 6] x) => (float[n, 4] y) {{ {body} }}")
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}{i}"
    weights = {**constants, "w": R.normal(size=(6, 4)), "v": R.normal(size=(6, 4))}
    for name, values in weights.items():
        model.graph.initializer.append(
            numpy_helper.from_array(values.astype(np.float32), name))
    return model.SerializeToString()


def samples(folder):
    data = R.normal(size=(64, 6)).astype(np.float32)
    np.savez(folder / "d.npz", x=data)
    return folder / "d.npz", data


@pytest.mark.parametrize("kind", MAKERS)
def test_makers(tmp_path, kind):
    body, constants = MAKERS[kind]
    readers = READERS.replace("MatMul", "Gemm") if kind == "batchnorm" else READERS
    model = net(f"{body} {readers}", constants)
    path, data = samples(tmp_path)
    _, result, report = quantize(tmp_path / "a", model, path, smooth=True)
    row = next(r for r in report["smoothing"] if r["tensor"] == "s")
    assert row["reason"] == "smoothed", row
    assert len(row["layers"]) == 2 and row["channels"] > 0
    real = judge.run(model, {"x": data}, optimized=False)
    inner = judge.run(without_pairs(result), {"x": data}, optimized=False)
    assert np.array_equal(real, inner)


def test_channels_are_blocks_behind_a_flatten(tmp_path):
    """The factors are those of the 6 channels of the Conv, each for 64 rows of the Gemm."""
    model, data, samples = network(KINDS["flatten"], [3, 8, 8])
    (tmp_path / "d.npz").write_bytes(data)
    _, result, report = quantize(tmp_path / "a", model, tmp_path / "d.npz", smooth=True)
    row = next(r for r in report["smoothing"] if r["layers"] == ["Gemm3"])
    assert row["reason"] == "smoothed" and 0 < row["channels"] <= 6, row
    inner = without_pairs(result)
    before, after = ({i.name: numpy_helper.to_array(i)
                      for i in onnx.load_model_from_string(m).graph.initializer}
                     for m in (model, inner))
    rows = (after["w3"] / before["w3"]).reshape(10, 6, 64)
    outputs = (before["w0"] / after["w0"])[:, 0, 0, 0]
    # The rows have the factors of the Gemm's own outputs, too.
    assert not np.ptp(rows / outputs[None, :, None], axis=(1, 2)).any()
    assert np.count_nonzero(outputs != 1) == row["channels"]
    assert np.array_equal(judge.run(model, {"x": samples}, optimized=False),
                          judge.run(inner, {"x": samples}, optimized=False))


# Operators that leave the channels, the last axis of x or axis 1 of an image, whole.
BETWEEN = {
    "mean of the rows": "s = ReduceMean <axes = [1], keepdims = 0> (m) y = Gemm (s, w)",
    "largest of the rows": "s = ReduceMax <axes = [-2]> (m) y = MatMul (s, w)",
    "one row": "s = Gather <axis = 1> (m, i) y = Gemm (s, w)",
    "some rows": "s = Slice (m, j, k, a) y = MatMul (s, w)",
    "rows in another order": "s = Transpose <perm = [1, 0, 2]> (m) y = MatMul (s, w)",
    "all rows as one matrix": "s = Reshape (m, shape) y = Gemm (s, w)",
    "scalars": "h = Mul (c, m) s = Div (h, d) y = MatMul (s, w)",
    "mean of an image": "t = Transpose <perm = [0, 2, 1]> (x) f = Conv (t, q)"
                        " s = ReduceMean <axes = [2], keepdims = 0> (f) y = Gemm (s, w)",
}
OTHER_AXES = {
    "s = ReduceMean <axes = [-1]> (m) y = MatMul (s, u)": "ReduceMean makes it",
    "p = Slice (m, j, k, b) s = Relu (p) y = MatMul (s, z)": "Slice makes it",
    "s = Transpose <perm = [2, 0, 1]> (m) y = MatMul (s, v)": "not one value for each channel",
    "s = Gather <axis = 2> (m, i) y = Gemm (s, v)": "not one value for each channel",
    "s = Reshape (m, rows) y = Gemm (s, z)": "not one value for each channel",
}


def rows_net(body):
    """A model of x with 4 rows of 6 channels, which m has in other sizes."""
    shape = "a, b" if "Gemm" in body else "a, b, c"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>\n'
        f"net (float[n, 4, 6] x) => (float[{shape}] y) {{ m = Mul (x, g) {body} }}")
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}{i}"
    floats = {"g": SKEW, "w": R.normal(size=(6, 5)), "u": R.normal(size=(1, 5)),
              "v": R.normal(size=(4, 5)), "z": R.normal(size=(3, 5)), "c": np.float64(3),
              "d": np.array([0.3]), "q": R.normal(size=(6, 6, 1)) * SKEW[:, None, None]}
    integers = {"i": 2, "j": [0], "k": [3], "a": [-2], "b": [-1], "shape": [-1, 6],
                "rows": [-1, 3]}
    for name, values in floats.items():
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(values, np.float32), name))
    for name, values in integers.items():
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(values, np.int64), name))
    return model.SerializeToString()


def rows_of_samples(folder):
    data = R.normal(size=(64, 4, 6)).astype(np.float32)
    np.savez(folder / "d.npz", x=data)
    return folder / "d.npz", data


@pytest.mark.parametrize("kind", BETWEEN)
def test_channels_are_followed_through_operators_that_leave_them_whole(tmp_path, kind):
    model = rows_net(BETWEEN[kind])
    path, data = rows_of_samples(tmp_path)
    done, result, report = quantize(tmp_path / "a", model, path, smooth=True)
    assert report, done.stderr
    row = next(r for r in report["smoothing"] if r["tensor"] == "s")
    assert row["reason"] == "smoothed" and row["channels"] > 0, row
    real = judge.run(model, {"x": data}, optimized=False)
    inner = judge.run(without_pairs(result), {"x": data}, optimized=False)
    assert np.array_equal(real, inner)


@pytest.mark.parametrize("body, reason", OTHER_AXES.items())
def test_channels_of_another_axis_are_left_alone(tmp_path, body, reason):
    path, _ = rows_of_samples(tmp_path)
    _, _, report = quantize(tmp_path / "a", rows_net(body), path, smooth=True)
    row, = report["smoothing"]
    assert reason in row["reason"] and row["channels"] == 0, row


REFUSED = {
    "an input of the model": ("y = MatMul (x, w)", {}),
    "Sigmoid makes it": ("s = Sigmoid (x) y = MatMul (s, w)", {}),
    "Relu reads it, too": ("s = Mul (x, g) p = MatMul (s, w) r = Relu (s) "
                           "q = MatMul (r, v) y = Add (p, q)", {"g": SKEW}),
    "read elsewhere, too": ("a = Mul (x, g) s = Relu (a) p = MatMul (s, w) "
                            "r = Sigmoid (a) q = MatMul (r, v) y = Add (p, q)",
                            {"g": SKEW}),
    "used elsewhere, too": ("a = Mul (x, g) s = Add (a, g) y = MatMul (s, w)",
                            {"g": SKEW}),
    "not one value for each channel": ("s = Mul (x, g) y = MatMul (s, w)",
                                       {"g": np.full((1, 1), 3)}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_left_alone_says_why(tmp_path, reason):
    path, _ = samples(tmp_path)
    _, _, report = quantize(tmp_path / "a", net(*REFUSED[reason]), path, smooth=True)
    assert any(reason in row["reason"] for row in report["smoothing"]), report["smoothing"]
    assert all(row["channels"] == 0 for row in report["smoothing"])
    assert "nothing_smoothed" in [w["code"] for w in report["warnings"]]


# --- around it ----------------------------------------------------------------------------

@pytest.mark.parametrize("value, pointer", [
    (1, "/smooth"), ("yes", "/smooth"), ({"alpha": 0}, "/smooth/alpha"),
    ({"alpha": 1}, "/smooth/alpha"), ({"alfa": 0.5}, "/smooth/alfa")])
def test_a_wrong_value_is_named(tmp_path, value, pointer):
    done, _, _ = quantize(tmp_path, skewed_vit(), FEW_SAMPLES, smooth=value)
    assert done.returncode == 1 and pointer in done.stderr, done.stderr


def test_without_data_it_is_said_what_lacks(tmp_path):
    done, _, _ = quantize(tmp_path, skewed_vit(), None, smooth=True, activations="none")
    assert done.returncode == 1
    assert "/smooth" in done.stderr and "calibration data" in done.stderr


@pytest.mark.shares_daemon
def test_observations_are_those_of_the_smoothed_model(daemon):
    """Jobs with and without smoothing do not use each other's observations; a frozen spec
    gives the same bytes."""
    model = daemon.upload("models", skewed_vit())
    data = daemon.upload("datasets", FEW_SAMPLES)
    spec = {"evaluate": False}
    reports = []
    for smooth in (False, True):
        job = daemon.submit(model=model, calibration=data, spec={**spec, "smooth": smooth})
        daemon.succeeded(job)
        reports.append(daemon.report(job))
    ranges = [{t["name"]: t["max"] for t in r["tensors"]} for r in reports]
    assert ranges[0].keys() == ranges[1].keys() and ranges[0] != ranges[1]
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["smooth"] == {"alpha": 0.5}
    again = daemon.submit(model=model, calibration=data, spec=frozen, fresh=True)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)
    lacking = daemon.submit(model=model, spec=frozen)
    ended = daemon.ended(lacking)
    assert ended["state"] == "failed" and ended["error"]["code"] == "no_calibration"


def observed(folder, *more, **spec):
    """Runs the command; returns the result and how often calibration ran the model."""
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(skewed_vit())
    (folder / "s.json").write_text(json.dumps({"evaluate": False, **spec}))
    done = subprocess.run([*QUANTIZE, "m.onnx", "--spec", "s.json", "-o", "o.onnx", "--report",
                           "r.json", "--calibration", FEW_SAMPLES, *more], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "r.json").read_text())
    return (folder / "o.onnx").read_bytes(), report["calibration"]["inferences"]


def test_magnitudes_are_kept_for_later_jobs(tmp_path):
    """A second job with the same smoothing runs nothing, whatever its method and weights; one
    with another alpha runs again."""
    kept = ["--observations", tmp_path / "kept"]
    _, runs = observed(tmp_path / "a", *kept, smooth=True)
    assert runs > 0
    for more in ({"calibration": {"method": "minmax"}}, {"weights": {"granularity": "tensor"}}):
        alone, _ = observed(tmp_path / "b", smooth=True, **more)
        again, runs = observed(tmp_path / "a", *kept, smooth=True, **more)
        assert runs == 0 and again == alone
    _, runs = observed(tmp_path / "a", *kept, smooth={"alpha": 0.7})
    assert runs > 0
