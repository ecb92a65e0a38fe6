# SPDX-License-Identifier: Apache-2.0
"""The class of processors that a model is made for, the rule that depends on it, and frozen
specs of the version that knew neither."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from block_daemon import daemon, inputs  # noqa: F401, fixtures
from service import DATA, Service, problem

HERE = "avx2" if judge.saturates() else "vnni"


def make(daemon, inputs, **spec):
    """The report and the model of a job without an evaluation."""
    job = daemon.submit(**inputs, spec={"target": "onnxruntime", "recipe": "none", "evaluate": False, **spec})
    daemon.succeeded(job)
    return daemon.report(job), daemon.get(f"/v1/jobs/{job}/model").content, job


def largest_sum(data):
    return max(int(judge.largest_sums(numpy_helper.to_array(i).astype(np.int64)).max())
               for i in onnx.load_model_from_string(data).graph.initializer
               if i.data_type == onnx.TensorProto.INT8 and len(i.dims) == 4)


ROWS = [
    # what the spec has, whether C7 is on, a part of the reason
    ({"host": "avx2"}, True, "add in 16 bits"),
    ({"host": "vnni"}, False, "add in 32 bits"),
    ({"host": "arm"}, False, "add in 32 bits"),
    ({"host": "avx2", "rules": {"C7": "auto"}}, True, "add in 16 bits"),
    ({"host": "avx2", "rules": {"C7": False}}, False, "switches it off"),
    ({"host": "vnni", "rules": {"C7": True}}, True, "switches it on"),
    ({"host": "avx2", "weights": {"method": "mse"}}, True, "add in 16 bits"),
    ({"host": "avx2", "weights": {"storage": "qdq", "method": "mse"}}, True, "add in 16 bits"),
    ({"host": "avx2", "weights": {"dtype": "uint8"}}, False, "int8 weights"),
    ({"host": "avx2", "activations": "none"}, False, "stay floating point"),
    ({"host": "avx2", "activations": {"dtype": "int16"}}, False, "int8 and uint8"),
]


@pytest.mark.parametrize("spec, on, reason", ROWS)
def test_c7_follows_the_host(daemon, inputs, spec, on, reason):
    report, made, _ = make(daemon, inputs, **spec)
    assert report["spec"]["host"] == report["host"]["name"] == spec["host"]
    assert report["spec"]["rules"]["C7"] is on
    [rule] = [row for row in report["rules"] if row["id"] == "C7"]
    assert rule["on"] is on and reason in rule["reason"]
    cited = {layer["name"] for layer in report["layers"] if "C7" in layer["rules"]}
    assert bool(cited) == on
    dtype = spec.get("weights", {}).get("dtype", "int8")
    if dtype == "int8" and report["spec"]["weights"]["storage"] == "dq":
        assert 120 < largest_sum(made) <= 128 if on else largest_sum(made) > 128


def test_auto_is_the_class_of_this_processor(daemon, inputs):
    """onnxruntime itself says whether sums saturate here."""
    report, made, job = make(daemon, inputs)
    assert report["host"]["name"] == report["spec"]["host"] == HERE
    assert "this processor" in report["host"]["reason"] and report["host"]["processor"]
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["host"] == HERE and frozen["rules"]["C7"] is (HERE == "avx2")
    again = daemon.submit(model=inputs["model"], spec=frozen)
    daemon.succeeded(again)
    assert daemon.get(f"/v1/jobs/{again}/model").content == made


def test_an_older_processor_on_this_machine(older_processor, tmp_path):
    """A daemon with its workers, and a Python with onnxruntime, find a processor without VNNI."""
    said = subprocess.run([sys.executable, "-c", "import judge; print(judge.saturates())"],
                          cwd=Path(judge.__file__).parent, env={**os.environ, **older_processor},
                          capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "True"
    older = Service(tmp_path / "older", **older_processor).start()
    try:
        job = older.submit_glyphs(spec={"target": "onnxruntime", "recipe": "none"})
        older.succeeded(job)
        report = older.report(job)
        assert report["host"]["name"] == "avx2" and report["evaluation"]["deployed"]
        assert report["spec"]["rules"]["C7"]
    finally:
        older.stop()


def test_a_host_is_part_of_the_identity(daemon, inputs):
    """A job of the same host is answered by the first one; another host is another job."""
    make(daemon, inputs, host=HERE)
    spec = {"target": "onnxruntime", "recipe": "none", "evaluate": False}
    same = daemon.submit(**inputs, spec=spec)
    assert daemon.succeeded(same)["cached_from"]
    other = daemon.submit(**inputs, spec={**spec, "host": "arm", "rules": {"C7": True}})
    assert not daemon.succeeded(other)["cached_from"]


@pytest.mark.parametrize("spec, pointer, code", [
    ({"host": "sparc"}, "/host", "invalid_spec"),
    ({"host": None}, "/host", "invalid_spec"),
    ({"rules": {"C7": "on"}}, "/rules/C7", "invalid_spec"),
    ({"rules": {"C4": "auto"}}, "/rules/C4", "invalid_spec"),
    ({"rules": {"C7": True}, "weights": {"dtype": "uint8"}}, "/rules/C7", "unsupported"),
])
def test_mistakes(daemon, inputs, spec, pointer, code):
    answer = daemon.post("/v1/plan", json={"model": inputs["model"],
                                           "spec": {"target": "onnxruntime", "recipe": "none", **spec}})
    document = problem(answer, 422, code)
    assert document["errors"][0]["pointer"] == pointer
