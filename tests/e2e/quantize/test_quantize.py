# SPDX-License-Identifier: Apache-2.0
"""The result is a valid model, placed as planned, scaled exactly, and accurate."""

from collections import Counter

import numpy as np
import onnx
import pytest

import judge
from service import CALIBRATION, DATA, Service

pytestmark = pytest.mark.long

# Model, and the least SQNR in dB over the logits of the test images: the best that other
# tools reach with symmetric int8 and weights per channel (onnxruntime by percentile,
# ModelOpt by its largest values).
GLYPHS = [
    ("glyph_resnet", 32.65),
    ("glyph_mobilenet", 27.66),
    ("glyph_vit", 25.82),
    ("glyph_se", 21.90),
]


@pytest.fixture(scope="module")
def quantized(tmp_path_factory):
    """Returns each glyph model, quantized by POST /v1/quantize: name to (bytes, report).
    """
    one = Service(tmp_path_factory.mktemp("quantize")).start()
    results = {}

    def quantize(name):
        if name not in results:
            answer = one.quantize(DATA / f"{name}.onnx", CALIBRATION)
            assert answer.status_code == 200, answer.text
            job = answer.headers["Location"].rsplit("/", 1)[1]
            results[name] = answer.content, one.report(job)
        return results[name]

    yield quantize
    one.stop()


@pytest.fixture(scope="module", params=[name for name, _ in GLYPHS])
def glyph(request, quantized):
    """Returns name, source model, quantized model and report."""
    source = onnx.load(DATA / f"{request.param}.onnx")
    data, report = quantized(request.param)
    return request.param, source, judge.load(data), report


@pytest.mark.parametrize("name, least", GLYPHS)
def test_accuracy(quantized, name, least):
    data, _ = quantized(name)
    images, labels = judge.test_images()
    real = judge.run(str(DATA / f"{name}.onnx"), {"input": images})
    ours = judge.run(data, {"input": images}, integers=False)
    sqnr = judge.sqnr_db(real, ours)
    top1 = [np.mean(x.argmax(1) == labels) for x in (real, ours)]
    agree = np.mean(real.argmax(1) == ours.argmax(1))
    print(f"{name}: SQNR {sqnr:.2f} dB, top-1 {top1[0]:.1%} -> {top1[1]:.1%}, "
          f"agreement {agree:.1%}")
    assert sqnr >= least
    assert abs(top1[0] - top1[1]) <= 0.005


def test_nodes_keep_their_names(glyph):
    _, source, result, _ = glyph
    names = Counter(n.name for n in result.graph.node)
    assert "" not in names
    assert [n for n, count in names.items() if count > 1] == []
    assert {n.name for n in source.graph.node} <= set(names)


def test_inputs_and_outputs_stay(glyph):
    _, source, result, _ = glyph
    assert list(source.graph.input) == list(result.graph.input)
    assert list(source.graph.output) == list(result.graph.output)


def test_one_pair_a_tensor(glyph):
    _, _, result, report = glyph
    pairs = judge.Pairs(result)
    for tensor in pairs.tensors():
        assert len(pairs.of(tensor)) == 1, tensor
    assert len(pairs.sources) == len(pairs.tensors()) == report["summary"]["qdq_pairs"]


def test_report_names_what_the_model_has(glyph):
    _, source, result, report = glyph
    pairs = judge.Pairs(result)
    found = pairs.table()
    told = {layer["name"]: layer for layer in report["layers"]}
    weights = {name: rows[1] for name, rows in found.items()}
    for node in source.graph.node:
        layer = told.get(node.name)
        want = (layer["quantized_inputs"] if layer else [],
                bool(layer and layer["weight_quantized"]))
        assert (found[node.name][0], bool(weights[node.name])) == want, node.name
        assert layer is None or layer["op"] == node.op_type
        assert layer is None or layer["reason"]
    assert report["summary"]["layers"] == len(told)
    assert report["summary"]["quantized_layers"] == sum(
        1 for rows in found.values() if rows[0] or rows[1])
    assert {t["name"] for t in report["tensors"]} | {
        w["name"] for w in report["weights"]} == pairs.tensors()


def test_default_matrix(glyph):
    """Conv, Gemm and MatMul with a constant operand quantize input and weight,
    GlobalAveragePool its input, and MaxPool, Concat, Add and Mul nothing."""
    _, source, result, _ = glyph
    constants = {i.name for i in source.graph.initializer}
    table = judge.Pairs(result).table()
    for node in source.graph.node:
        weight = len(node.input) > 1 and node.input[1] in constants
        want = {"Conv": ([0], [1]), "Gemm": ([0], [1]),
                "MatMul": ([0], [1]) if weight else None,
                "GlobalAveragePool": ([0], [])}.get(node.op_type, ([], []))
        if want is not None:
            assert table[node.name] == want, node.name


def test_weights_are_scaled_exactly(glyph):
    _, source, result, report = glyph
    pairs = judge.Pairs(result)
    layers = {layer["name"]: layer for layer in report["layers"]}
    nodes = {n.name: n for n in source.graph.node}
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in source.graph.initializer}
    assert report["weights"]
    for row in report["weights"]:
        weight = constants[row["name"]]
        node = nodes[row["layer"]]
        if node.op_type == "Conv":
            axis = 0
        elif node.op_type == "Gemm":
            axis = 0 if judge.attribute(node, "transB", 0) else 1
        else:
            axis = weight.ndim - 1
        assert row["axis"] == layers[row["layer"]]["weight_axis"] == axis
        assert (row["dtype"], row["granularity"]) == ("int8", "channel")
        others = tuple(i for i in range(weight.ndim) if i != axis)
        amax = np.abs(weight).max(axis=others)
        assert (amax > 0).all()
        want = (amax.astype(np.float64) / 127).astype(np.float32)
        (quantize,) = pairs.of(row["name"])
        assert judge.attribute(quantize, "axis", 1) == axis
        np.testing.assert_array_equal(pairs.scale(row["name"]), want)
        zero = pairs.zero_point(row["name"])
        assert zero.dtype == np.int8 and zero.shape == want.shape and not zero.any()
        # The float weight is the source's, byte for byte.
        np.testing.assert_array_equal(pairs.constant(row["name"]), weight)


@pytest.mark.parametrize("name", [name for name, _ in GLYPHS])
def test_activations_are_scaled_exactly(daemon, name):
    """The scales of minmax equal those of a plain minmax over extra graph outputs."""
    job = daemon.submit_glyphs(name, CALIBRATION, spec={"calibration": {"method": "minmax"}})
    daemon.succeeded(job)
    report = daemon.report(job)
    pairs = judge.Pairs(judge.load(daemon.result(job)))
    images = np.load(CALIBRATION)["input"]
    rows = {t["name"]: t for t in report["tensors"]}
    ranges = judge.observed_ranges((DATA / f"{name}.onnx").read_bytes(),
                                   {"input": images}, list(rows))
    for tensor, (low, high) in ranges.items():
        scale = judge.symmetric_scale(max(abs(low), abs(high)))
        row = rows[tensor]
        assert (row["min"], row["max"]) == (float(low), float(high)), tensor
        assert pairs.scale(tensor) == scale, tensor
        assert np.float32(row["scale"]) == scale == row["scale"]
        assert pairs.zero_point(tensor) == 0 and row["zero_point"] == 0
        assert pairs.zero_point(tensor).dtype == np.int8
        assert (row["method"], row["samples"]) == ("minmax", len(images))


def test_report(glyph):
    name, source, _, report = glyph
    assert report["schema"] == 1
    assert report["engine"]
    assert report["device"] == "cpu"
    assert report["model"]["id"].startswith("sha256:")
    assert report["model"]["opset"] == source.opset_import[0].version
    assert report["calibration"]["samples"] == 256
    assert report["spec"]["mode"] == "full" and report["spec"]["target"] == "tensorrt"
    assert report["summary"]["size_before"] == (DATA / f"{name}.onnx").stat().st_size
    (output,) = report["evaluation"]["outputs"]
    assert output["name"] == "logits"
    assert output["sqnr_db"] > 15
    assert 0.99 < output["cosine"] <= 1
    assert output["max_abs_error"] > 0
    assert 0.9 < output["top1_agreement"] <= 1
    for stage in ("load", "plan", "calibrate", "quantize", "write", "evaluate"):
        assert report["timings"][stage] >= 0


def test_evaluation_is_what_onnxruntime_measures(daemon):
    job = daemon.submit_glyphs(calibration=CALIBRATION, spec={"evaluate": {"samples": 256}})
    daemon.succeeded(job)
    report = daemon.report(job)
    assert report["evaluation"]["samples"] == 256
    images = np.load(CALIBRATION)["input"]
    # Pairs as the operators say, not fused into integer kernels.
    real, ours = (judge.run(model, {"input": images}, batch=1, optimized=False)
                  for model in ((DATA / "glyph_resnet.onnx").read_bytes(),
                                daemon.result(job)))
    (output,) = report["evaluation"]["outputs"]
    assert output["sqnr_db"] == pytest.approx(judge.sqnr_db(real, ours), abs=0.1)
    cosine = np.sum(real * ours, 1) / np.linalg.norm(real, axis=1) / np.linalg.norm(
        ours, axis=1)
    assert output["cosine"] == pytest.approx(np.mean(cosine), abs=1e-5)
    assert output["max_abs_error"] == pytest.approx(np.abs(real - ours).max(), rel=0.01)
    agreement = np.mean(real.argmax(1) == ours.argmax(1))
    assert output["top1_agreement"] == pytest.approx(agreement, abs=1e-6)


def test_evaluation_prefers_what_calibration_did_not_use(daemon, tmp_path):
    """200 images calibrate; the 56 after them are black, so that their use shows."""
    images = np.load(CALIBRATION)["input"].copy()
    images[200:] = 0
    np.savez(tmp_path / "data.npz", input=images)
    job = daemon.submit_glyphs(calibration=tmp_path / "data.npz",
                               spec={"calibration": {"max_samples": 200},
                                     "evaluate": {"samples": 56}})
    daemon.succeeded(job)
    evaluation = daemon.report(job)["evaluation"]
    assert evaluation["samples"] == 56
    sqnr = []
    for some in (images[200:201], images[:56]):
        real, ours = (judge.run(model, {"input": some}, batch=1, optimized=False)
                      for model in ((DATA / "glyph_resnet.onnx").read_bytes(),
                                    daemon.result(job)))
        sqnr.append(judge.sqnr_db(real, ours))
    # Optimizations of the float operators move it by some hundredths of a dB.
    assert abs(sqnr[0] - sqnr[1]) > 1
    assert evaluation["outputs"][0]["sqnr_db"] == pytest.approx(sqnr[0], abs=0.2)


def test_metadata_names_the_sources(daemon):
    job = daemon.submit_glyphs(calibration=CALIBRATION)
    daemon.succeeded(job)
    document = daemon.job(job)
    model = judge.load(daemon.result(job))
    metadata = " ".join(p.value for p in model.metadata_props)
    assert document["model"] in metadata
    assert document["calibration"] in metadata
    assert daemon.report(job)["engine"] in metadata
    assert document["result"]["size"] == len(daemon.result(job))


def test_same_job_twice_gives_the_same_bytes(service):
    results = set()
    for _ in range(2):
        one = service()
        for _ in range(2):
            answer = one.quantize(DATA / "glyph_mobilenet.onnx", CALIBRATION, fresh=True)
            assert answer.status_code == 200, answer.text
            results.add(answer.content)
    assert len(results) == 1


def test_weights_per_tensor(daemon):
    answer = daemon.quantize(DATA / "glyph_resnet.onnx", CALIBRATION,
                             {"weights": {"granularity": "tensor"}})
    assert answer.status_code == 200, answer.text
    pairs = judge.Pairs(judge.load(answer.content))
    for tensor in pairs.tensors():
        scale = pairs.scale(tensor)
        assert scale.size == 1
        if tensor in pairs.constants:
            amax = np.abs(pairs.constant(tensor)).max()
            assert scale == judge.symmetric_scale(amax)


def test_ranges_by_hand_need_no_data(daemon):
    plan = daemon.post("/v1/plan", json={
        "model": daemon.upload("models", DATA / "glyph_resnet.onnx")}).json()
    source = onnx.load(DATA / "glyph_resnet.onnx")
    nodes = {n.name: n for n in source.graph.node}
    tensors = {nodes[layer["name"]].input[i]
               for layer in plan["layers"] for i in layer["quantized_inputs"]}
    ranges = {t: [-1.0 - i / 7, i / 3] for i, t in enumerate(sorted(tensors))}
    answer = daemon.quantize(DATA / "glyph_resnet.onnx",
                             spec={"calibration": {"ranges": ranges}})
    assert answer.status_code == 200, answer.text
    pairs = judge.Pairs(judge.load(answer.content))
    for tensor, (low, high) in ranges.items():
        amax = max(abs(low), abs(high))
        assert pairs.scale(tensor) == judge.symmetric_scale(amax)
    report = daemon.report(answer.headers["Location"].rsplit("/", 1)[1])
    assert {t["method"] for t in report["tensors"]} == {"given"}
    assert report["evaluation"] is None


def test_max_samples_limits_calibration(daemon):
    job = daemon.submit_glyphs(calibration=CALIBRATION, spec={
        "calibration": {"method": "minmax", "max_samples": 10}})
    daemon.succeeded(job)
    report = daemon.report(job)
    assert {t["samples"] for t in report["tensors"]} == {10}
    images = np.load(CALIBRATION)["input"][:10]
    (row,) = [t for t in report["tensors"] if t["name"] == "input"]
    assert (row["min"], row["max"]) == (float(images.min()), float(images.max()))


def test_npy_serves_a_model_of_one_input(daemon, tmp_path):
    np.save(tmp_path / "input.npy", np.load(CALIBRATION)["input"])
    job = daemon.submit_glyphs(calibration=tmp_path / "input.npy")
    daemon.succeeded(job)
    whole = daemon.submit_glyphs(calibration=CALIBRATION)
    daemon.succeeded(whole)
    scales = [[t["scale"] for t in daemon.report(j)["tensors"]] for j in (job, whole)]
    assert scales[0] == scales[1]
