# SPDX-License-Identifier: Apache-2.0
"""Models of other people, quantized for ONNX Runtime with nothing but calibration data, are as
good as the report says, and as good at their tasks as the float models."""

import functools
import os

import pytest

from service import from_bench

real = from_bench("real")
real_inputs = from_bench("real_inputs")


@functools.cache
def loaded(name):
    """Returns what real.load() does, and the outputs of the float model."""
    model, calibration, test, task = real.load(name, None)
    return model, calibration, test, task, real.outputs_of(real.session(model), test)


# Models whose runtime gains by integers, and the least part of the multiplications that are such.
# Placements of silero_vad with more have less than 25 dB in the worst twentieth of samples.
GAINS = {"magika": 0.5, "silero_vad": 0.3}
PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm")


def check_integers(name, result, report, folder):
    """A good part of the multiplications is in integers where the runtime gains by that. Elsewhere the
    report says of each layer why it is not."""
    if name in GAINS:
        assert real.integer_share(result, folder) >= GAINS[name]
        return
    left = [row for row in report["layers"]
            if row["op"] in PRODUCTS and not row["quantized_inputs"]]
    assert left and all(row["reason"] == "recipe" or row["reason"].startswith("rule:C15, ") for row in left)


@pytest.mark.alone
@pytest.mark.parametrize("name", real_inputs.MODELS)
def test_latency(tmp_path, name):
    """The default is not slower than float, with a tenth for what else the machine does. Where it
    has few integers, the model with all of them is slower than the default."""
    if not os.environ.get("QDQD_ALL_FIGURES"):
        pytest.skip("measures time: tools/check --release runs it")
    model, calibration, test, _, _ = loaded(name)

    def latency(spec):
        result, _, _ = real.ours(model, calibration, tmp_path, spec)
        return real.latency(real.session(model), real.session(result), test[0])

    taken = latency({})
    assert taken <= 1.1
    if name not in GAINS:
        assert latency(real.INTEGERS) > taken


@pytest.mark.parametrize("name", real_inputs.MODELS)
def test_by_default(tmp_path, name):
    if name == "basic_pitch" and not os.environ.get("QDQD_ALL_FIGURES"):
        pytest.skip("takes long: tools/check --release runs it")
    model, calibration, test, task, floats = loaded(name)
    result, _, report = real.ours(model, calibration, tmp_path, {})
    made = real.outputs_of(real.session(result), test)
    assert task(floats) > 0.9, "the inputs are not what the model was made for"
    assert abs(task(made) - task(floats)) <= 0.01
    assert real.sqnr_db(floats, made) >= 20
    nothing = report["summary"]["quantized_layers"] == 0
    assert report["summary"]["verdict"] in ((None,) if nothing else ("good", "fair"))
    gap = real.said(report, model, result, calibration)
    assert gap is not None and abs(gap) < 0.5
    # a result without integers has more metadata than the model
    assert result.stat().st_size < (1 if name in GAINS and not nothing else 1.01) * model.stat().st_size
    if name in GAINS and nothing:  # on a busy machine nothing that is good may have been faster
        good = [step for step in report["recipe"] if step["step"] != "unquantized" and (step["sqnr_db"] or 0) >= 25]
        assert report["costs"] == "measured" and all(step["latency_ratio"] >= 0.95 for step in good), report["recipe"]
    else:
        check_integers(name, result, report, tmp_path)


def test_the_judge_can_fail(tmp_path):
    """Without a recipe the same judge finds the result worse than what is asked of the default.
    How much worse depends on the processor: sums saturate where there is no VNNI."""
    model, calibration, test, task, floats = loaded("magika")
    result, _, report = real.ours(model, calibration, tmp_path,
                                  {"recipe": "none", "evaluate": {"samples": 16}})
    made = real.outputs_of(real.session(result), test)
    assert real.sqnr_db(floats, made) < 20 and task(made) < task(floats)
    assert report["summary"]["verdict"] in ("fair", "poor")
