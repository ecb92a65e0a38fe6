# SPDX-License-Identifier: Apache-2.0
"""An evaluation that nothing asks for ends when its figures are settled (stages/evaluate/stopping.h)."""

import json
import subprocess

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

RANGE = 20  # of the input, so wide that a sample of size 1 has 27 dB, and one of size 0.1 has 7


def make_model(path, classes=False):
    """A convolution that makes an image, or, with classes, one row of ten for each sample."""
    random = numpy.random.default_rng(5)
    shape = (10, 8, 8, 8) if classes else (4, 8, 3, 3)
    weight = random.standard_normal(shape).astype(numpy.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c" if classes else "y"], "conv")]
    if classes:
        nodes.append(helper.make_node("Flatten", ["c"], ["y"], "flat"))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT,
                                       ["n", 10] if classes else ["n", 4, 6, 6])],
        [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)


def write_samples(path, n, faint=()):
    """Writes n samples, some of them a tenth of the others in size."""
    x = numpy.random.default_rng(6).standard_normal((n, 8, 8, 8)).astype(numpy.float32)
    x[list(faint)] *= 0.1
    numpy.savez(path, x=x)


@pytest.fixture
def quantize(tmp_path):
    def run(*arguments, **spec):
        """Returns the report, the graph, and what was printed."""
        spec = {"calibration": {"ranges": {"x": [-RANGE, RANGE]}}, **spec}
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run(
            [*QUANTIZE, "in.onnx", "--spec", "spec.json", "--calibration", "data.npz", "-o", "out.onnx",
             "--report", "report.json", *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        report = json.loads((tmp_path / "report.json").read_text())
        return report, onnx.load(tmp_path / "out.onnx").graph.SerializeToString(), done.stdout
    make_model(tmp_path / "in.onnx")
    return run


def figures(report):
    evaluation = report["evaluation"]
    return evaluation["samples"], evaluation["of"], evaluation["rule"]


def test_it_ends_when_the_figures_are_settled(tmp_path, quantize):
    write_samples(tmp_path / "data.npz", 128)
    report, model, printed = quantize()
    samples, of, rule = figures(report)
    assert (of, rule) == (128, "settled") and 32 <= samples < 128
    assert f"{samples} of 128 samples, which settle its figures" in printed
    whole, same, printed = quantize(evaluate=True)
    assert figures(whole) == (128, 128, "all") and "128 samples:" in printed
    assert same == model
    one, = report["evaluation"]["outputs"]
    other, = whole["evaluation"]["outputs"]
    assert abs(one["sqnr_db"] - other["sqnr_db"]) <= 0.2
    assert one["samples"] != other["samples"]
    assert report["summary"]["verdict"] == whole["summary"]["verdict"] == "good"
    again, _, _ = quantize()
    assert again["evaluation"] == report["evaluation"]


def evaluated_bytes(report):
    stage, = [s for s in report["stages"] if s["name"] == "evaluate"]
    return stage["bytes"]


def test_outputs_of_calibration_are_not_computed_again(tmp_path, quantize, monkeypatch):
    """The account of the stage has the files of models that were loaded, and each input as often as it
    ran: in the twin with both models, and then with the result alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_samples(tmp_path / "data.npz", 64)
    report, _, _ = quantize(calibration={})
    samples, of, _ = figures(report)
    model, result = ((tmp_path / name).stat().st_size for name in ("in.onnx", "out.onnx"))
    sample = 8 * 8 * 8 * 4
    assert 32 <= samples < of == 64
    assert report["evaluation"]["layer_samples"] == 16
    assert evaluated_bytes(report) == model + 2 * result + samples * sample
    # Given ranges need no calibration, so the model runs: alone behind the twin, and for the checks of
    # the data with those samples that did not run in the twin before.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    report, _, _ = quantize()
    more = figures(report)[0]
    once = 3 * model + 2 * result + (2 * more - 16 + 64) * sample
    assert once - 64 * sample < evaluated_bytes(report) <= once


def test_layers_are_compared_on_the_first_samples(tmp_path, quantize):
    write_samples(tmp_path / "data.npz", 128)
    report, _, _ = quantize()
    whole, _, _ = quantize(evaluate=True)
    assert report["evaluation"]["layer_samples"] == 16
    assert whole["evaluation"]["layer_samples"] == whole["evaluation"]["samples"] == 128
    one, = report["evaluation"]["layers"]
    other, = whole["evaluation"]["layers"]
    assert one["name"] == other["name"] and abs(one["sqnr_db"] - other["sqnr_db"]) < 0.5
    write_samples(tmp_path / "data.npz", 31)
    assert quantize()[0]["evaluation"]["layer_samples"] == 31


@pytest.mark.parametrize("n", [1, 16, 32])
def test_few_samples_are_all_compared(tmp_path, quantize, n):
    write_samples(tmp_path / "data.npz", n)
    assert figures(quantize()[0]) == (n, n, "all")


def test_a_row_for_each_sample_takes_more_of_them(tmp_path, quantize):
    """Two rows of 64 that differ are too many for a good result, and 33 samples may miss both."""
    make_model(tmp_path / "in.onnx", classes=True)
    write_samples(tmp_path / "data.npz", 64)
    report, _, _ = quantize()
    samples, of, rule = figures(report)
    agreement = report["evaluation"]["outputs"][0]["top1_agreement"]
    assert of == 64 and samples >= 48
    assert rule == ("settled" if samples < 64 else "all")
    assert rule == "all" or agreement == 1


@pytest.mark.parametrize("faint", [range(116, 128), range(0, 128, 11), range(40, 60)])
def test_rare_samples_keep_their_verdict(tmp_path, quantize, faint):
    write_samples(tmp_path / "data.npz", 128, faint)
    report, _, _ = quantize()
    whole, _, _ = quantize(evaluate=True)
    assert whole["summary"]["verdict"] == "fair", "the 5th percentile is below 15 dB"
    assert report["summary"]["verdict"] == "fair"
    assert report["evaluation"]["outputs"][0]["samples"]["p5_db"] < 15


def test_a_settled_evaluation_counts_as_all_its_samples(tmp_path, quantize):
    """Calibration reads the samples, too: fewer than 64 of them are not enough for `good`."""
    write_samples(tmp_path / "data.npz", 64)
    report, _, _ = quantize(calibration={})
    samples, of, rule = figures(report)
    assert samples < 64 == of and rule == "settled"
    assert "evaluated_on_calibration" in [w["code"] for w in report["warnings"]]
    assert report["summary"]["verdict"] == "good"
    write_samples(tmp_path / "data.npz", 60)
    report, _, _ = quantize(calibration={})
    assert figures(report)[1:] == (60, "settled")
    assert report["summary"]["verdict"] == "fair"


@pytest.mark.parametrize("asked", [
    {"evaluate": True}, {"evaluate": {"samples": 128}},
    {"accept": {"min_sqnr_db": 5}}, {"sensitivity": {"samples": 4}},
    {"search": {"min_sqnr_db": 5, "samples": 4}}])
def test_who_asks_gets_all_samples(tmp_path, quantize, asked):
    write_samples(tmp_path / "data.npz", 128)
    assert figures(quantize(**asked)[0]) == (128, 128, "all")


def test_data_to_judge_by_are_all_compared(tmp_path, quantize):
    write_samples(tmp_path / "data.npz", 64)
    write_samples(tmp_path / "judge.npz", 100)
    assert figures(quantize("--evaluation", "judge.npz")[0]) == (100, 100, "all")


def test_batches_are_not_drawn(tmp_path, quantize):
    write_samples(tmp_path / "data.npz", 128)
    report, _, _ = quantize(calibration={"batch": 4})
    assert figures(report) == (128, 128, "all")


@pytest.mark.parametrize("save", [numpy.save, numpy.savez_compressed])
def test_every_form_of_data_is_drawn_alike(tmp_path, quantize, save):
    write_samples(tmp_path / "data.npz", 128)
    expected = quantize()[0]["evaluation"]["outputs"]
    x = numpy.load(tmp_path / "data.npz")["x"]
    if save is numpy.save:
        numpy.save(tmp_path / "data.npy", x)
        (tmp_path / "data.npy").rename(tmp_path / "data.npz")
    else:
        save(tmp_path / "data.npz", x=x)
    assert quantize()[0]["evaluation"]["outputs"] == expected
