# SPDX-License-Identifier: Apache-2.0
"""Range methods, by the command and over HTTP: the range that each one chooses, and that
batch, threads and repetition change nothing."""

import json
import subprocess

import numpy as np
import onnx
import pytest

import contract
import judge
from service import CALIBRATION, DATA, INSTALLED, problem

pytestmark = pytest.mark.long
QDQ = INSTALLED / "bin" / "qdq"
METHODS = contract.range_methods()
SAMPLES = 48


def quantize(folder, name, calibration, threads=1, data=CALIBRATION):
    """Returns the resulting graph as bytes, and the report's rows by tensor."""
    spec, out, report = (folder / part for part in ("spec.json", "o.onnx", "r.json"))
    spec.write_text(json.dumps({"calibration": calibration, "evaluate": False}))
    done = subprocess.run(
        [QDQ, "quantize", DATA / f"{name}.onnx", "--spec", spec, "--calibration", data,
         "-o", out, "--report", report, "--threads", str(threads)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text())["tensors"]
    graph = judge.load(out.read_bytes()).graph
    return graph.SerializeToString(deterministic=True), {t["name"]: t for t in rows}


@pytest.fixture(scope="module")
def activations(tmp_path_factory):
    """Returns the tensors with a pair and their values sample by sample, from extra graph
    outputs."""
    folder = tmp_path_factory.mktemp("activations")
    _, rows = quantize(folder, "glyph_se", {"method": "minmax", "max_samples": 1})
    model = onnx.load(DATA / "glyph_se.onnx")
    names = [name for name in rows if name != "input"]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    one = judge.session(model.SerializeToString())
    images = np.load(CALIBRATION)["input"][:SAMPLES]
    runs = [one.run(names, {"input": images[i:i + 1]}) for i in range(SAMPLES)]
    values = {name: np.stack([run[k] for run in runs]) for k, name in enumerate(names)}
    return {"input": images, **values}


def chosen(folder, activations, **calibration):
    _, rows = quantize(folder, "glyph_se", {"max_samples": SAMPLES, **calibration})
    assert set(rows) == set(activations)
    for name, row in rows.items():
        assert (row["method"], row["samples"]) == (calibration["method"], SAMPLES)
        seen = activations[name]
        assert seen.min() <= row["min"] <= row["max"] <= seen.max()
        amax = max(abs(row["min"]), abs(row["max"]))
        assert row["scale"] == judge.symmetric_scale(amax)
        yield seen.astype(np.float64), row, amax


def bin_width(values):
    """Returns the width of a bin: a power of two, with which the largest value is in the
    upper half of 2048 bins."""
    return 2.0 ** (np.floor(np.log2(np.abs(values).max())) - 10)


def test_minmax(tmp_path, activations):
    for values, row, _ in chosen(tmp_path, activations, method="minmax"):
        assert (row["min"], row["max"]) == (values.min(), values.max())


def test_moving_average(tmp_path, activations):
    for values, row, _ in chosen(tmp_path, activations, method="moving_average"):
        samples = values.reshape(SAMPLES, -1)
        low, high = samples[0].min(), samples[0].max()
        for sample in samples[1:]:
            low += 0.01 * (sample.min() - low)
            high += 0.01 * (sample.max() - high)
        assert (row["min"], row["max"]) == (low, high)


@pytest.mark.parametrize("percentile", [50, 99, 99.99, 100])
def test_percentile(tmp_path, activations, percentile):
    for values, _, amax in chosen(tmp_path, activations, method="percentile",
                                  percentile=percentile):
        want = np.percentile(np.abs(values), percentile, method="inverted_cdf")
        assert abs(amax - want) <= (0 if percentile == 100 else bin_width(values))


def squared_error(values, amax):
    scale = amax / 127
    return np.sum((values - scale * np.clip(np.round(values / scale), -127, 127)) ** 2)


def test_mse(tmp_path, activations):
    """No threshold of a grid is better over the data itself, to within a bin's width."""
    narrower = 0
    for values, _, amax in chosen(tmp_path, activations, method="mse"):
        full = np.abs(values).max()
        least = min(squared_error(values, full * k / 64) for k in range(8, 65))
        assert squared_error(values, amax) <= 1.01 * least
        narrower += amax < 0.9 * full
    assert narrower > 5


def test_entropy_searches(tmp_path, activations):
    share = [amax / np.abs(values).max()
             for values, _, amax in chosen(tmp_path, activations, method="entropy")]
    assert len(set(share)) > 10 and min(share) < 0.9


@pytest.mark.parametrize("name", ["glyph_resnet", "glyph_se"])
@pytest.mark.parametrize("method", METHODS)
def test_neither_batch_nor_threads_matter(tmp_path, name, method):
    """The last batch of 10 is incomplete. Batches of 1 run side by side."""
    calibration = {"method": method, "max_samples": SAMPLES}
    graphs = {quantize(tmp_path, name, {**calibration, "batch": batch}, threads)[0]
              for batch in (1, 10, 16) for threads in (1, 2, 4)}
    assert len(graphs) == 1


def bad_images(folder, at):
    """Returns a file with the images, of which one has a NaN."""
    images = np.load(CALIBRATION)["input"][:SAMPLES].copy()
    images[at, 0, 3, 3] = np.nan
    np.savez(folder / "bad.npz", input=images)
    return folder / "bad.npz"


def test_a_sample_that_is_not_finite_is_named_whatever_the_threads(tmp_path):
    """With several threads a small model runs samples side by side."""
    data = bad_images(tmp_path, 37)
    for threads in (1, 2, 4):
        with pytest.raises(AssertionError, match="NaN or an infinity in sample 37"):
            quantize(tmp_path, "glyph_se", {"method": "mse"}, threads, data)
    skipped = [quantize(tmp_path, "glyph_se", {"method": "mse", "on_nonfinite": "skip_sample"},
                        threads, data) for threads in (1, 2)]
    assert skipped[0] == skipped[1]


def test_large_tensors_are_shared_over_threads(tmp_path):
    """Several threads observe a tensor of more than 2^16 elements."""
    images = np.random.default_rng(5).standard_normal((16, 1, 256, 256), np.float32)
    np.savez(tmp_path / "images.npz", input=images)
    node = onnx.helper.make_node("Conv", ["input", "w"], ["y"], "conv")
    weight = onnx.numpy_helper.from_array(np.ones((1, 1, 1, 1), np.float32), "w")
    shape = ["n", 1, 256, 256]
    graph = onnx.helper.make_graph(
        [node], "one", [onnx.helper.make_tensor_value_info("input", 1, shape)],
        [onnx.helper.make_tensor_value_info("y", 1, shape)], [weight])
    onnx.save(onnx.helper.make_model(
        graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 13)]),
        tmp_path / "one.onnx")
    magnitudes = np.abs(images.astype(np.float64))
    for method in METHODS:
        results = []
        for threads in (1, 2, 4):
            for batch in (1, 16):
                results.append(quantize(tmp_path, tmp_path / "one", {
                    "method": method, "batch": batch}, threads,
                    data=tmp_path / "images.npz"))
        assert len({graph for graph, _ in results}) == 1, method
        row = results[0][1]["input"]
        amax = max(-row["min"], row["max"])
        if method == "minmax":
            assert amax == magnitudes.max()
        if method == "percentile":
            want = np.percentile(magnitudes, 99.99, method="inverted_cdf")
            assert abs(amax - want) <= bin_width(images)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("method", METHODS)
def test_over_http(daemon, tmp_path, method):
    calibration = {"method": method, "max_samples": SAMPLES}
    answer = daemon.quantize(DATA / "glyph_resnet.onnx", CALIBRATION,
                             {"calibration": calibration, "evaluate": False})
    assert answer.status_code == 200, answer.text
    report = daemon.report(answer.headers["Location"].rsplit("/", 1)[1])
    graph, rows = quantize(tmp_path, "glyph_resnet", calibration)
    assert judge.load(answer.content).graph.SerializeToString(
        deterministic=True) == graph
    assert {t["name"]: t for t in report["tensors"]} == rows
    assert report["spec"]["calibration"]["method"] == method
    percentile = report["spec"]["calibration"].get("percentile")
    assert percentile == (99.99 if method == "percentile" else None)


def test_the_default_is_mse(daemon):
    job = daemon.submit_glyphs(spec={"calibration": {"max_samples": 4}})
    daemon.succeeded(job)
    report = daemon.report(job)
    assert report["spec"]["calibration"]["method"] == "mse"
    assert {t["method"] for t in report["tensors"]} == {"mse"}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("calibration", [
    {"method": "percentile", "percentile": 0},
    {"method": "percentile", "percentile": -1},
    {"method": "percentile", "percentile": 100.001},
    {"method": "percentile", "percentile": "99"},
    {"method": "minmax", "percentile": 99},
    {"percentile": 99},
])
def test_a_percentile_that_cannot_be(daemon, calibration):
    answer = daemon.post("/v1/jobs", json={
        "model": daemon.upload("models", DATA / "glyph_resnet.onnx"),
        "spec": {"calibration": calibration}})
    told = problem(answer, 422, "invalid_spec")
    assert told["errors"][0]["pointer"] == "/calibration/percentile"


@pytest.mark.shares_daemon
@pytest.mark.parametrize("method", METHODS)
def test_a_tensor_that_is_always_zero(daemon, tmp_path, method):
    images = np.zeros((3, 1, 32, 32), np.float32)
    np.savez(tmp_path / "black.npz", input=images)
    job = daemon.submit_glyphs(calibration=tmp_path / "black.npz",
                               spec={"calibration": {"method": method}})
    daemon.succeeded(job)
    report = daemon.report(job)
    (row,) = [t for t in report["tensors"] if t["name"] == "input"]
    assert (row["min"], row["max"], row["scale"]) == (0, 0, 1)
    assert ("dead_tensor", "input") in [(w["code"], w["node"])
                                        for w in report["warnings"]]


@pytest.mark.shares_daemon
@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_is_not_finite_is_found(daemon, tmp_path, method):
    images = np.load(CALIBRATION)["input"][:8].copy()
    images[5, 0, 3, 3] = np.nan
    np.savez(tmp_path / "nan.npz", input=images)
    answer = daemon.quantize(DATA / "glyph_resnet.onnx", tmp_path / "nan.npz",
                             {"calibration": {"method": method}})
    told = problem(answer, 422, "nonfinite")
    assert "'input'" in told["detail"] and "sample 5" in told["detail"]
