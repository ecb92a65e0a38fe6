# SPDX-License-Identifier: Apache-2.0
"""clients/python with a spec of several targets."""

import sys

import pytest

from service import DATA, FEW_SAMPLES, ROOT

sys.path.insert(0, str(ROOT / "clients" / "python"))
import qdqd  # noqa: E402
from qdqd import __main__ as command  # noqa: E402

RESNET = DATA / "glyph_resnet.onnx"
SPEC = {"targets": ["tensorrt", "onnxruntime"], "recipe": "none"}
pytestmark = pytest.mark.shares_daemon


def test_results_by_target(daemon, tmp_path):
    client = qdqd.Client(daemon.url)
    results = client.quantize(RESNET, FEW_SAMPLES,
                              {**SPEC, "output": {"external_data": "always"}})
    assert list(results.results) == SPEC["targets"] and not results.errors
    assert "2 of 2 targets" in repr(results)
    paths = results.save(tmp_path)
    assert paths == [tmp_path / target / name for target in SPEC["targets"]
                     for name in ("model.onnx", "model.onnx.data")]
    for target in SPEC["targets"]:
        one = results[target]
        assert one.report["spec"]["target"] == one.spec()["target"] == target
    assert [row["target"] for row in results.comparison()] == SPEC["targets"]
    assert results.html().startswith("<!doctype html>")
    with pytest.raises(KeyError):
        results["qnn"]


def test_a_target_that_misses_its_gate(daemon, tmp_path):
    client = qdqd.Client(daemon.url)
    results = client.quantize(RESNET, FEW_SAMPLES, {**SPEC, "accept": {"max_size_ratio": 0.5}})
    assert list(results.results) == ["onnxruntime"] and list(results.errors) == ["tensorrt"]
    with pytest.raises(qdqd.AccuracyError) as missed:
        results["tensorrt"]
    assert missed.value.report["gates"][0]["met"] is False
    assert results.save(tmp_path) == [tmp_path / "onnxruntime" / "model.onnx"]


def test_the_command_of_the_client_says_who_writes_them(daemon, tmp_path, capsys):
    (tmp_path / "spec.json").write_text('{"targets": ["tensorrt"], "recipe": "none"}')
    words = [str(RESNET), "-s", str(tmp_path / "spec.json"), "-o", str(tmp_path / "out.onnx"),
             "--url", daemon.url]
    assert command.main(words) == 2
    assert "qdq quantize does" in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()
