# SPDX-License-Identifier: Apache-2.0
"""What-ifs rank layers, search and refine ranges, with the model opened once.

Their figures are compared with models that are really quantized in that way, run by
onnxruntime."""

import json
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import judge
import nets
from service import CALIBRATION, DATA, QUANTIZE
from test_frozen_spec import without_verdict

pytestmark = pytest.mark.long

# Few samples: calibration uses the first 128 of 256, what-ifs some of the rest.
FEW = {"calibration": {"max_samples": 128}, "evaluate": {"samples": 64}}


def quantize(folder, model, data, ok=True, **spec):
    """Runs the command; returns the quantized model's bytes and the report, or its error
    output."""
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    (folder / "data.npz").write_bytes(data or b"")
    (folder / "spec.json").write_text(json.dumps(spec))
    command = [*QUANTIZE, "model.onnx", "--spec", "spec.json",
               "-o", "out.onnx", "--report", "report.json"]
    done = subprocess.run(command + (["--calibration", "data.npz"] if data else []),
                          cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300)
    if not ok:
        assert done.returncode != 0
        return done.stderr
    assert done.returncode == 0, done.stderr
    return ((folder / "out.onnx").read_bytes(),
            json.loads((folder / "report.json").read_text()))


def glyph(folder, name, **spec):
    return quantize(folder, (DATA / f"{name}.onnx").read_bytes(), CALIBRATION.read_bytes(),
                    **spec)


def codes(report):
    return [w["code"] for w in report["warnings"]]


def quantized_layers(report):
    return [r["name"] for r in report["layers"]
            if r["quantized_inputs"] or r["weight_quantized"]]


def images(first, n):
    data = np.load(CALIBRATION)
    return {k: data[k][first:first + n].astype(np.float32) for k in data.files}


def measured(name, model, first=128, n=64):
    """Returns the SQNR of a quantized model over calibration images."""
    real = judge.run((DATA / f"{name}.onnx").read_bytes(), images(first, n))
    return judge.sqnr_db(real, judge.run(model, images(first, n), optimized=False))


# --- the session is the quantized model ------------------------------------------------

@pytest.mark.parametrize("storage", ["qdq", "dq"])
@pytest.mark.parametrize("name", ["glyph_mobilenet", "glyph_se", "glyph_vit",
                                  "glyph_resnet_skewed"])
def test_all_on_is_the_quantized_model(tmp_path, name, storage):
    """A goal that is met at once: the first step of the search is the model with all
    layers quantized.

    Sums of products in another order change a few roundings, so the evaluation that
    follows what-ifs has the same optimizations as these."""
    model, report = glyph(tmp_path, name, search={"min_sqnr_db": 0, "samples": 64},
                      weights={"storage": storage}, **FEW)
    search = report["search"]
    assert search["met"] and search["samples"] == 64 and search["float_layers"] == []
    assert len(search["curve"]) == 1
    step, output = search["curve"][0], report["evaluation"]["outputs"][0]
    assert step["float_layers"] == 0 and step["layer"] is None
    assert abs(step["sqnr_db"] - measured(name, model)) < 0.02
    assert abs(step["sqnr_db"] - output["sqnr_db"]) < 0.02
    assert step["top1_agreement"] == output["top1_agreement"]
    assert report["what_ifs"] == 2 * 64  # float and quantized


# --- sensitivity -----------------------------------------------------------------------

def test_ranks_what_single_layers_cost(tmp_path):
    name = "glyph_resnet_skewed"
    _, report = glyph(tmp_path / "all", name, sensitivity={"samples": 64}, **FEW)
    rows, layers = report["sensitivity"], quantized_layers(report)
    assert sorted(r["name"] for r in rows) == sorted(layers)
    alone = [r["sqnr_db_alone"] for r in rows]
    assert alone == sorted(alone)
    # Runs for each sample: each layer alone, all but this layer, all, and none.
    assert report["what_ifs"] == (2 * len(layers) + 2) * 64
    # Models that are really quantized in this way, for the costliest layer and another.
    all_on = report["evaluation"]["outputs"][0]["sqnr_db"]
    for row in (rows[0], rows[len(rows) // 2]):
        model, _ = glyph(tmp_path / "alone", name, mode="partial",
                         layers=[{"name": row["name"]}], **FEW)
        assert abs(measured(name, model) - row["sqnr_db_alone"]) < 0.1
        model, _ = glyph(tmp_path / "without", name, layers=[
            {"name": row["name"], "quantize_input": False, "quantize_weight": False}],
            **FEW)
        assert abs(measured(name, model) - all_on - row["gain_db"]) < 0.1
    assert rows[0]["gain_db"] > 3


def test_fewer_samples_and_batches(tmp_path):
    _, report = glyph(tmp_path, "glyph_resnet", sensitivity={"samples": 6},
                      calibration={"max_samples": 8, "batch": 4}, evaluate=False)
    assert report["what_ifs"] == (2 * len(report["sensitivity"]) + 2) * 2
    assert report["evaluation"] is None
    assert all(r["sqnr_db_alone"] > 20 for r in report["sensitivity"])


def test_nothing_quantized(tmp_path):
    _, report = glyph(tmp_path, "glyph_resnet", mode="partial", evaluate=False,
                      layers=[{"match": "*", "quantize_input": False,
                               "quantize_weight": False}],
                      sensitivity={"samples": 2}, search={"min_sqnr_db": 50,
                                                          "samples": 2})
    assert report["sensitivity"] == []
    assert report["search"]["met"] and report["search"]["float_layers"] == []


# --- search ----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    return glyph(tmp_path_factory.mktemp("searched"), "glyph_resnet_skewed",
                 search={"min_sqnr_db": 28, "samples": 64}, **FEW)


def test_leaves_the_fewest_layers_in_float(searched):
    model, report = searched
    search = report["search"]
    names = search["float_layers"]
    assert search["met"] and 0 < len(names) <= 5
    last = search["curve"][-1]
    assert last["float_layers"] == len(names) and last["sqnr_db"] >= 28
    # Report and model agree with the what-if.
    rows = {r["name"]: r for r in report["layers"]}
    for name in names:
        assert rows[name]["reason"] == "search"
        assert rows[name]["quantized_inputs"] == [] and not rows[name]["weight_quantized"]
    assert [r["name"] for r in report["layers"] if r["reason"] == "search"] == names
    assert abs(report["evaluation"]["outputs"][0]["sqnr_db"] - last["sqnr_db"]) < 0.06
    assert abs(measured("glyph_resnet_skewed", model) - last["sqnr_db"]) < 0.02
    pairs = sum(n.op_type == "DequantizeLinear" for n in judge.load(model).graph.node)
    assert pairs == len(report["tensors"]) + len(report["weights"])
    assert pairs == report["summary"]["qdq_pairs"]
    used = {t["name"] for t in report["tensors"]}
    assert len(used) == len(report["tensors"])


def test_curve_is_one_layer_a_step(searched):
    curve = searched[1]["search"]["curve"]
    now = set()
    for n, step in enumerate(curve):
        if n > 0:
            now ^= {step["layer"]}
        assert step["float_layers"] == len(now)
    assert now == set(searched[1]["search"]["float_layers"])
    assert all(s["sqnr_db"] < 28 for s in curve[:len(now)])


def test_frozen_spec_makes_the_same_bytes(daemon):
    """The frozen spec names the layers instead of the goal, and needs no data."""
    model = daemon.upload("models", (DATA / "glyph_resnet_skewed.onnx").read_bytes())
    data = daemon.upload("datasets", CALIBRATION.read_bytes())
    job = daemon.submit(model=model, calibration=data, spec={
        "search": {"min_sqnr_db": 12, "samples": 16}, "sensitivity": {"samples": 8},
        "calibration": {"method": "output_mse", "max_samples": 8},
        "layers": [{"class": "Add"}], "cases": ["residual"]})
    document = daemon.succeeded(job)
    report = daemon.report(job)
    assert report["search"]["float_layers"] and report["sensitivity"]
    spec = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert "search" not in spec and "sensitivity" not in spec
    assert spec["layers"][-1] == {"name": report["search"]["float_layers"],
                                  "quantize_input": False, "quantize_weight": False,
                                  "quantization_index": None}
    again = daemon.submit(model=model, spec=spec)
    assert (without_verdict(daemon.succeeded(again)["result"])
            == without_verdict(document["result"]))
    assert daemon.report(again)["search"] is None
    assert daemon.report(again)["refinement"] is None
    assert daemon.report(again)["what_ifs"] == 0


def test_no_more_than_allowed(tmp_path):
    _, report = glyph(tmp_path, "glyph_resnet_skewed", **FEW, search={
        "min_sqnr_db": 28, "max_float_layers": 2, "samples": 16})
    search = report["search"]
    assert not search["met"] and len(search["float_layers"]) == 2
    assert "search_goal_missed" in codes(report)
    text = next(w["detail"] for w in report["warnings"]
                if w["code"] == "search_goal_missed")
    assert "2 layers" in text and "not 28" in text


def test_agreement_is_a_goal(tmp_path):
    _, report = glyph(tmp_path, "glyph_resnet_skewed", **FEW, search={
        "min_top1_agreement": 1, "samples": 64})
    search = report["search"]
    assert search["met"] and search["curve"][-1]["top1_agreement"] == 1
    assert search["curve"][0]["top1_agreement"] < 1
    assert len(search["float_layers"]) < len(quantized_layers(report))


def test_warnings_are_said_once(tmp_path):
    """The plan and its scales are made twice, and each warning is reported once."""
    _, report = glyph(tmp_path, "glyph_se", **FEW, weights={"storage": "dq"}, search={
        "min_sqnr_db": 30, "samples": 8})
    assert report["search"]["float_layers"]
    seen = [(w["code"], w["node"], w["detail"]) for w in report["warnings"]]
    assert len(seen) == len(set(seen))


# --- refinement ------------------------------------------------------------------------

def test_refined_ranges_are_better_and_the_same_each_time(tmp_path):
    spec = {"calibration": {"method": "output_mse", "max_samples": 24},
            "evaluate": False}
    model, report = glyph(tmp_path / "a", "glyph_mobilenet", **spec)
    r = report["refinement"]
    assert r["start"] == "mse" and r["samples"] == 24
    assert r["adjusted"] > 0 and r["sqnr_db_after"] > r["sqnr_db_before"]
    assert {t["method"] for t in report["tensors"]} == {"output_mse"}
    assert abs(measured("glyph_mobilenet", model, 0, 24) - r["sqnr_db_after"]) < 0.02
    again, _ = glyph(tmp_path / "b", "glyph_mobilenet", **spec)
    assert again == model
    spec["calibration"]["method"] = "mse"
    model, before = glyph(tmp_path / "c", "glyph_mobilenet", **spec)
    assert abs(measured("glyph_mobilenet", model, 0, 24) - r["sqnr_db_before"]) < 0.02
    changed = sum(a != b for a, b in zip(
        [t["scale"] for t in before["tensors"]], [t["scale"] for t in report["tensors"]]))
    assert changed == r["adjusted"]


def test_given_ranges_stay(tmp_path):
    given = {"input": [0, 0.5]}
    _, report = glyph(tmp_path, "glyph_resnet", evaluate=False, calibration={
        "method": "output_mse", "max_samples": 8, "ranges": given})
    rows = {t["name"]: t for t in report["tensors"]}
    assert rows["input"]["method"] == "given" and rows["input"]["max"] == 0.5
    assert report["refinement"]["adjusted"] < len(rows)
    everything = {t["name"]: [t["min"], t["max"]] for t in report["tensors"]}
    _, report = glyph(tmp_path, "glyph_resnet", evaluate=False, calibration={
        "method": "output_mse", "ranges": everything})
    assert report["refinement"] is None and report["what_ifs"] == 0


# --- refused specs ---------------------------------------------------------------------

@pytest.mark.parametrize("member", ["sensitivity", "search"])
def test_needs_data(tmp_path, member):
    """Without data the spec is refused, also when every range is given, and before any
    work."""
    spec = {"sensitivity": {"sensitivity": {"samples": 4}},
            "search": {"search": {"min_sqnr_db": 30}}}[member]
    said = quantize(tmp_path, (DATA / "glyph_resnet.onnx").read_bytes(), None, ok=False,
                    **spec)
    assert "no_calibration: " in said and f"/{member}" in said


def no_inputs():
    value = helper.make_tensor("value", TensorProto.FLOAT, [2], [1.0, 2.0])
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], value=value)], "no_inputs", [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 13)]
                             ).SerializeToString()


@pytest.mark.parametrize("member", ["sensitivity", "search"])
def test_nothing_can_be_fed(tmp_path, member):
    spec = {"sensitivity": {}, "search": {"min_sqnr_db": 30}}
    said = quantize(tmp_path, no_inputs(), None, ok=False, **{member: spec[member]},
                    calibration={"random_samples": 4})
    assert "no_calibration: " in said and f"/{member}" in said


def integer_output():
    """Returns a network whose only output is the index of the largest value."""
    model = onnx.load_model_from_string(nets.block_net())
    name = model.graph.output[0].name
    model.graph.node.append(helper.make_node("ArgMax", [name], ["best"], "best", axis=1,
                                             keepdims=0))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("best", TensorProto.INT64,
                                                            None))
    return model.SerializeToString()


@pytest.mark.parametrize("pointer,spec", [
    ("/sensitivity", {"sensitivity": {"samples": 4}}),
    ("/search", {"search": {"min_sqnr_db": 30}}),
    ("/calibration/method", {"calibration": {"method": "output_mse"}})])
def test_goes_by_an_output_of_integers(tmp_path, pointer, spec):
    random = {"random_samples": 4, "dims": {"n": 1}}
    _, report = quantize(tmp_path, integer_output(), None, evaluate=False,
                         **{**spec, "calibration": {**spec.get("calibration", {}), **random}})
    assert report["what_ifs"] > 0 or pointer == "/calibration/method"


def test_random_samples_will_do(tmp_path):
    _, report = quantize(tmp_path, nets.block_net(), None, sensitivity={"samples": 4},
                         calibration={"random_samples": 4, "dims": {"n": 1}})
    assert len(report["sensitivity"]) > 2


# --- as a job --------------------------------------------------------------------------

def test_progress_and_cancelling(daemon):
    job = daemon.submit_glyphs("glyph_se", CALIBRATION, spec={
        "sensitivity": {"samples": 256}, "evaluate": False})
    seen, end = [], time.monotonic() + 60
    while len(seen) < 5 and time.monotonic() < end:
        progress = daemon.job(job)["progress"]
        if progress and progress["stage"] == "sensitivity" and progress["done"]:
            if not seen or seen[-1]["done"] < progress["done"]:
                seen.append(progress)
        time.sleep(0.05)
    # 40 layers, each alone and all but this one; then all, and none. The float model's run tells that
    # 128 samples are there, and the total is corrected once.
    totals = [p["total"] for p in seen]
    assert len(seen) == 5 and set(totals) <= {82 * 256, 82 * 128}
    assert totals == sorted(totals, reverse=True)
    assert all(p["done"] <= p["total"] for p in seen)
    assert daemon.post(f"/v1/jobs/{job}/cancel").status_code == 202
    assert daemon.ended(job)["state"] == "cancelled"


def test_sizes_that_nobody_knows(tmp_path):
    """The size of Compress's output is known only after a run: until then it is neither a
    symbol nor 0."""
    weight = np.random.default_rng(7).normal(size=(12, 5)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Greater", ["x", "low"], ["above"]),
         helper.make_node("Reshape", ["above", "all"], ["which"]),
         helper.make_node("Compress", ["x", "which"], ["kept"], axis=1),
         helper.make_node("MatMul", ["kept", "w"], ["y"], name="layer")],
        "sizes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        [onnx.numpy_helper.from_array(np.float32(-1e9), "low"),
         onnx.numpy_helper.from_array(np.array([12], np.int64), "all"),
         onnx.numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8)
    _, report = quantize(tmp_path / "sizes", model.SerializeToString(), None,
                         calibration={"random_samples": 8}, sensitivity={"samples": 4},
                         evaluate={"samples": 4})
    (row,) = report["sensitivity"]
    assert row["name"] == "layer" and row["sqnr_db_alone"] > 20
    (layer,) = report["evaluation"]["layers"]
    assert layer["name"] == "layer" and "layers_not_compared" not in codes(report)
