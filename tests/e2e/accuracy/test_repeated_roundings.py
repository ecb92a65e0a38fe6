# SPDX-License-Identifier: Apache-2.0
"""Rounding by moments gives the same bytes whatever was kept, and from the frozen spec: the last
bits of moments depend on the tensors that are observed beside them, so those are always the same."""

import json
import subprocess

import pytest
from onnx import ModelProto

from service import DATA, FEW_SAMPLES, QUANTIZE

TARGETS = ["tensorrt", "onnxruntime", "openvino"]
IN_FLOAT = [{"name": ["Conv_4", "Conv_5"], "quantize_input": False, "quantize_weight": False}]
GPTQ = {"weights": {"rounding": "gptq"}, "evaluate": False}


def command(tmp_path, model, spec):
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, model, "--spec", "spec.json",
                           "--calibration", FEW_SAMPLES, "-o", "made.onnx"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return (tmp_path / "made.onnx").read_bytes()


def quantized(daemon, inputs, spec, **members):
    job = daemon.submit(**inputs, spec=spec, **members)
    daemon.succeeded(job)
    return daemon.get(f"/v1/jobs/{job}/model").content, job


def without_metadata(content):
    model = ModelProto.FromString(content)
    del model.metadata_props[:]
    return model.SerializeToString()


@pytest.fixture
def inputs(daemon):
    return {"model": daemon.upload("models", DATA / "glyph_resnet.onnx"),
            "calibration": daemon.upload("datasets", FEW_SAMPLES)}


@pytest.mark.parametrize("target", TARGETS)
def test_what_earlier_jobs_have_kept_changes_nothing(daemon, inputs, tmp_path, target):
    spec = {**GPTQ, "target": target}
    if target != "tensorrt":
        spec["recipe"] = "none"
    wanted = command(tmp_path, DATA / "glyph_resnet.onnx", spec)
    for before in ({**spec, "weights": {}}, {**spec, "layers": IN_FLOAT}):
        quantized(daemon, inputs, before)
    made, job = quantized(daemon, inputs, spec)
    assert made == wanted
    assert daemon.report(job)["calibration"]["inferences"] > 0
    stored = {"rounding": "gptq", "storage": "dq" if target == "tensorrt" else "qdq"}
    _, job = quantized(daemon, inputs, {**spec, "weights": stored})
    assert daemon.report(job)["calibration"]["inferences"] == 0, "all that it needs is kept"


@pytest.mark.parametrize("spec", [
    *({**GPTQ, "target": target, "recipe": "none"} for target in TARGETS),
    {**GPTQ, "target": "onnxruntime", "evaluate": True},
    {**GPTQ, "target": "openvino", "evaluate": True},
    {**GPTQ, "target": "onnxruntime", "evaluate": True, "recipe": {"min_sqnr_db": 36}},
    {"target": "onnxruntime", "recipe": "best"}, {"target": "openvino", "recipe": "best"},
    {**GPTQ, "target": "onnxruntime", "recipe": "none",
     "layers": IN_FLOAT},
], ids=lambda spec: f"{spec['target']}-{spec.get('recipe', 'auto')}")
def test_the_frozen_spec_repeats_the_bytes(daemon, inputs, spec):
    if spec["target"] == "tensorrt":
        spec = {member: value for member, value in spec.items() if member != "recipe"}
    made, job = quantized(daemon, inputs, spec)
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    frozen["evaluate"] = False
    frozen.pop("accept", None)
    again, second = quantized(daemon, inputs, frozen, fresh=True)
    assert daemon.report(second)["summary"]["quantized_layers"] == \
        daemon.report(job)["summary"]["quantized_layers"]
    assert without_metadata(made) == without_metadata(again)


@pytest.mark.parametrize(("model", "spec"), [
    ("glyph_se", {"target": "onnxruntime", "recipe": {"min_sqnr_db": 38}}),
    ("glyph_vit", {"target": "onnxruntime"}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_the_frozen_spec_repeats_a_placement(daemon, inputs, model, spec):
    """Layers that a recipe leaves in float are not observed from the frozen spec."""
    whole = daemon.upload("models", DATA / f"{model}.onnx")
    made, job = quantized(daemon, {**inputs, "model": whole},
                          {**spec, "weights": {"rounding": "gptq"}})
    frozen = {**daemon.get(f"/v1/jobs/{job}/spec").json(), "evaluate": False}
    again, _ = quantized(daemon, {**inputs, "model": whole}, frozen, fresh=True)
    assert without_metadata(made) == without_metadata(again)
