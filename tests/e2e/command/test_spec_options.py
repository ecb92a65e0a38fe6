# SPDX-License-Identifier: Apache-2.0
"""Members of the spec by options of qdq: the same bytes as with a file."""

import json
import subprocess

import pytest

from service import DATA, FEW_SAMPLES, INSTALLED

RESNET = DATA / "glyph_resnet.onnx"
SPEC = {"target": "onnxruntime", "recipe": "none", "weights": {"rounding": "gptq"},
        "accept": {"min_sqnr_db": 20.5, "min_cosine": 0.5}, "bias_correction": True}
WORDS = ["--target", "onnxruntime", "--recipe", "none", "--set", "weights.rounding=gptq",
         "--accept", "min_sqnr_db=20.5", "--accept=min_cosine=0.5", "--set",
         "bias_correction=true"]


def qdq(*words, cwd=None, text=None):
    return subprocess.run([INSTALLED / "bin" / "qdq", *map(str, words)], cwd=cwd, input=text,
                          capture_output=True, text=True, timeout=120)


def quantize(folder, name, *words, text=None):
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", f"{name}.onnx", "--report",
               f"{name}.json", *words, cwd=folder, text=text)
    assert done.returncode == 0, done.stderr
    return (folder / f"{name}.onnx").read_bytes(), json.loads((folder / f"{name}.json").read_text())


@pytest.mark.shares_daemon
def test_the_bytes_are_those_of_a_spec(daemon, tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    whole, report = quantize(tmp_path, "whole", "--spec", "spec.json")
    for name, words, text in (
            ("options", WORDS, None),
            ("both", ["--spec", "-", *WORDS], json.dumps({"target": SPEC["target"]})),
            ("far", ["--url", daemon.url, *WORDS], None)):
        model, other = quantize(tmp_path, name, *words, text=text)
        assert model == whole, name
        assert other["spec"] == report["spec"] and other["gates"] == report["gates"], name


@pytest.mark.shares_daemon
@pytest.mark.parametrize("words, said", [
    (["--target", "openvino"], "invalid_spec: --target: the spec has another value"),
    (["--set", "weights.rounding=nearest"], "invalid_spec: --set weights.rounding=nearest: "),
    (["--accept", "min_sqnr_db"], 'invalid_spec: --accept "min_sqnr_db" is to be'),
    (["--set", "mode={"], "invalid_json: --set mode={: the value is neither JSON nor a word"),
    (["--set", "weights.dtype.x=1"], "/weights/dtype"),
    (["--set", "no.such=1"], 'unknown member "no"'),
])
def test_what_is_refused(daemon, tmp_path, words, said):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    for before in ([], ["--url", daemon.url]):
        for command in ("plan", "quantize"):
            done = qdq(*before, command, RESNET, "--spec", "spec.json", *words, cwd=tmp_path)
            assert done.returncode == 1 and said in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["spec.json"]


def test_too_many():
    done = qdq("plan", RESNET, *(["--set", "mode=full"] * 65))
    assert done.returncode == 2 and "--set is given more than 64 times" in done.stderr
