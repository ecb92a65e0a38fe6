# SPDX-License-Identifier: Apache-2.0
"""What-ifs are the models that are written: their figures agree with the evaluation of the
written model on the same samples. A search says `met` when the result as deployed is."""

import io
import os
import random

import numpy as np
import pytest

import judge
from service import CALIBRATION, DATA, from_bench, repeats
from test_whatif import quantize, quantized_layers

N = 48
REAL = 16  # samples of the models of other people, which take longer


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "images.npz"
    images = np.load(CALIBRATION)["input"][:N]
    np.savez(path, input=images)
    return path.read_bytes(), {"input": images}


def spec_of(target, samples=N):
    return {"target": target, "recipe": "none", "calibration": {"method": "minmax"},
            "evaluate": {"samples": samples}}


def check_choices(folder, model, data, target, seeds, samples=N):
    """Some layers are in float by name, and the search switches off two more."""
    base = spec_of(target, samples)
    _, report = quantize(folder, model, data, **base)
    layers = quantized_layers(report)
    for seed in seeds:
        rng = random.Random(seed)
        names = rng.sample(layers, rng.randint(1, max(1, len(layers) - 4)))
        _, report = quantize(
            folder, model, data, **base,
            layers=[{"name": names, "quantize_input": False, "quantize_weight": False}],
            search={"min_sqnr_db": 300, "max_float_layers": 2, "samples": samples})
        assert len(report["search"]["float_layers"]) == 2
        last = report["search"]["curve"][-1]["sqnr_db"]
        written = report["evaluation"]["outputs"][0]["sqnr_db"]
        assert last == written is None or last == pytest.approx(written, abs=0.03)


@pytest.mark.parametrize("target", ["onnxruntime", "tensorrt"])
@pytest.mark.parametrize("name, seeds", [
    repeats("glyph_resnet", [0]), repeats("glyph_se", [0]),
    ("glyph_vit", [22])])  # with all optimizations the two differ by 0.047 dB
def test_a_choice_is_the_model_that_is_written(tmp_path, data, name, seeds, target):
    seeds = range(50) if os.environ.get("QDQD_ALL_FIGURES") else seeds
    check_choices(tmp_path, (DATA / f"{name}.onnx").read_bytes(), data[0], target, seeds)


@pytest.mark.parametrize("target", ["onnxruntime", "tensorrt"])
@pytest.mark.parametrize("name", ["magika", "ppocr_cls"])
def test_a_choice_for_a_model_of_other_people(tmp_path, name, target):
    if not os.environ.get("QDQD_ALL_FIGURES"):
        pytest.skip("takes long: tools/check --release runs it")
    real, inputs = from_bench("real"), from_bench("real_inputs")
    model, calibration, _, _ = real.load(name, None)
    samples = io.BytesIO()
    np.savez(samples, **inputs.dataset(calibration[:REAL]))
    seeds = range(int(os.environ.get("QDQD_SEEDS", 50)))
    check_choices(tmp_path, model.read_bytes(), samples.getvalue(), target, seeds, REAL)


@pytest.mark.parametrize("name, goal", [("glyph_resnet", 30)])
def test_met_is_met_as_deployed(tmp_path, data, name, goal):
    """Without rule C7 sums saturate on processors without VNNI, so that the literal figures
    reach the goal long before the result does."""
    path = (DATA / f"{name}.onnx").read_bytes()
    model, report = quantize(tmp_path, path, data[0], **spec_of("onnxruntime"),
                             rules={"C7": False},
                             search={"min_sqnr_db": goal, "samples": N})
    search = report["search"]
    assert search["met"] and search["deployed"]["sqnr_db"] >= goal
    real, made = judge.run(path, data[1], 1), judge.run(model, data[1], 1)
    assert judge.sqnr_db(real, made) >= goal
    assert search["deployed"]["sqnr_db"] == pytest.approx(judge.sqnr_db(real, made), abs=0.5)
