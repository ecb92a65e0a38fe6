# SPDX-License-Identifier: Apache-2.0
"""Reports with the plan of a runtime that has no device, by the installed program for TensorRT for
RTX. A package that stands in for NVIDIA's says what the test wants; tests/tensorrt asks NVIDIA."""

import json
import os
import signal
import subprocess
import sys

import pytest

from service import DATA, FEW_SAMPLES, INSTALLED, QUANTIZE, Service, eventually
from test_runner import FAKE, Runners, programs, section

PROGRAM = INSTALLED / "share" / "qdqd" / "runners" / "tensorrt_rtx.py"
MODEL = DATA / "glyph_resnet.onnx"
# The rows of a plan as the package says them: two layers in int8, one of them with what is
# before and behind it, and one in float.
ROW = ("\nName: {name}, LayerType: {kind}, Inputs: [ {{ Name: i, Dimensions: [1,8], Datatype: {type}, "
       "Format: (Linear) Row major linear format }}], Constants: [ {{ Name: w, Datatype: Int8, Format: "
       "(Linear) }}], Outputs: [ {{ Name: o, Dimensions: [1,8], Datatype: Float, Format: (Linear) }}], "
       "Metadata: {nodes}")
ROWS = [("quantize", "kgen", "Float", "input_QuantizeLinear"),
        ("pad", "kgen", "Float", "Conv_0 input_QuantizeLinear"),
        ("c0", "correlation", "Int8", "Conv_0 input_DequantizeLinear"),
        ("after", "kgen", "Float", "Conv_0 Relu_0"),
        ("c1", "correlation", "Float", "Conv_1"),
        ("small", "kgen", "Int8", "Conv_2 Relu_2 Add_0")]
PACKAGE = '''
"""Stands in for NVIDIA's package: it plans what WAY says."""
import os, time, types
WAY, LAYERS = {way!r}, {layers!r}
__version__ = "1.7"


class ILogger:
    INTERNAL_ERROR, ERROR, VERBOSE = 0, 1, 4


class OnnxParser:
    num_errors = 1

    def __init__(self, network, log):
        self.log = log

    def parse_from_file(self, path):
        print("a library that prints", flush=True)
        if WAY == "ends":
            os.abort()
        if WAY == "hangs":
            time.sleep(600)
        return WAY != "refused" or not b"QuantizeLinear" in open(path, "rb").read()

    def get_error(self, i):
        return types.SimpleNamespace(node_name=lambda: "Conv_7", desc=lambda: "no such kernel")


class Builder:
    def __init__(self, log):
        self.log = log

    def create_network(self, flags):
        return types.SimpleNamespace(num_inputs=1, get_input=lambda i: types.SimpleNamespace(
            name="input", shape=(-1, 1, 32, 32)))

    def create_builder_config(self):
        return types.SimpleNamespace(clear_flag=lambda flag: None,
                                     add_optimization_profile=lambda profile: None)

    def create_optimization_profile(self):
        def set_shape(name, least, best, most):
            assert (name, least, best, most) == ("input", *[(1, 1, 32, 32)] * 3)
        return types.SimpleNamespace(set_shape=set_shape)

    def build_serialized_network(self, network, config):
        if WAY == "unbuilt":
            self.log.log(self.log.ERROR, "Conv_9: no implementation")
            return None
        self.log.log(self.log.VERBOSE, "Layers:" + LAYERS)
        return b"plan"


NetworkDefinitionCreationFlag = types.SimpleNamespace(STRONGLY_TYPED=1)
BuilderFlag = types.SimpleNamespace(TF32=1)
ProfilingVerbosity = types.SimpleNamespace(DETAILED=2)
'''


@pytest.fixture
def package(tmp_path):
    """Returns a function that makes the package and returns the section of its runner."""
    folder = tmp_path / "packages"

    def make(way="plans", **keys):
        layers = "".join(ROW.format(name=name, kind=kind, type=type, nodes="".join(
            f"[ONNX Layer: {node}]" for node in nodes.split())) for name, kind, type, nodes in ROWS)
        (folder / "tensorrt_rtx").mkdir(parents=True, exist_ok=True)
        (folder / "tensorrt_rtx" / "__init__.py").write_text(
            PACKAGE.format(way=way, layers=layers + "\nI/O Tensors:\n"))
        return section("rtx", PROGRAM, targets="tensorrt", packages=folder, allow=folder, **keys)

    return make


def quantize(tmp_path, *arguments, spec=()):
    (tmp_path / "spec.json").write_text(json.dumps({"target": "tensorrt", **dict(spec)}))
    done = subprocess.run(
        [*QUANTIZE, MODEL, "--calibration", FEW_SAMPLES, "--spec",
         tmp_path / "spec.json", "-o", tmp_path / "out.onnx", "--report", tmp_path / "out.json",
         "--html", tmp_path / "out.html", *arguments], capture_output=True, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)})
    report = json.loads((tmp_path / "out.json").read_text()) if not done.returncode else None
    return done, report


def with_runner(tmp_path, text, **keys):
    (tmp_path / "runners.conf").write_text(text)
    return quantize(tmp_path, "--runners", tmp_path / "runners.conf", **keys)


def without_times(report):
    return {k: v for k, v in report.items() if k not in ("timings", "stages", "kernels", "warnings",
                                                           "calibration")}  # what it reused


def test_a_plan_is_told_and_nothing_is_measured(tmp_path, package):
    done, before = quantize(tmp_path)
    assert done.returncode == 0 and before["kernels"] is None
    bytes_before = (tmp_path / "out.onnx").read_bytes()
    done, report = with_runner(tmp_path, package())
    assert done.returncode == 0, done.stderr
    kernels = report["kernels"]
    assert kernels["layers"] == {"planned": 14, "integer": 2}
    assert (kernels["integer"], kernels["conversions"]) == (2, 1)
    assert kernels["ops"] == {"correlation": 1, "kgen": 1}
    assert [row["name"] for row in kernels["floats"]] == ["Conv_1"]
    assert kernels["fused"] == [
        {"op": "kgen", "computes": "other", "nodes": ["Conv_0", "Relu_0"]},
        {"op": "kgen", "computes": "integer", "nodes": ["Conv_2", "Relu_2", "Add_0"]}]
    assert kernels["runner"] == "rtx"
    assert kernels["planned_by"] == {"name": "tensorrt_rtx", "version": "1.7", "device": "no GPU"}
    # The figures stay those of the literal arithmetic, and the report says why.
    assert report["evaluation"]["deployed"] is None and report["profile"] is None
    more = [w for w in report["warnings"] if w not in before["warnings"]]
    assert [w["code"] for w in more] == ["deployed_not_measured"]
    assert "the runner 'rtx' plans kernels and runs nothing" in more[0]["detail"]
    assert without_times(report) == without_times(before)
    assert (tmp_path / "out.onnx").read_bytes() == bytes_before
    assert ("2 of 14 layers that multiply quantized tensors are integers in the plan of "
            "tensorrt_rtx 1.7, which ran nothing: no GPU" in done.stdout)
    page = (tmp_path / "out.html").read_text()
    assert "2 of 14 layers" in page and "Conv_2, Relu_2, Add_0" in page


def test_times_are_not_measured(tmp_path, package):
    done, report = with_runner(tmp_path, package(), spec={"profile": {"runs": 3}})
    assert done.returncode == 0, done.stderr
    [why] = [w["detail"] for w in report["warnings"] if w["code"] == "profile_skipped"]
    assert "it has no device" in why and report["profile"] is None
    done, _ = with_runner(tmp_path, package(), spec={"accept": {"max_latency_ratio": 1}})
    assert done.returncode != 0 and "unsupported: the latency cannot be measured" in done.stderr


def test_nothing_is_asked_where_nothing_is_evaluated(tmp_path, package):
    done, report = with_runner(tmp_path, package("ends"), spec={"evaluate": False})
    assert done.returncode == 0 and report["kernels"] is None, done.stderr


@pytest.mark.parametrize("way, code, text", [
    ("refused", "target_cannot_load", "Conv_7: no such kernel"),
    ("unbuilt", "target_cannot_load", "the model that was given: Conv_9: no implementation"),
    ("ends", "runner_failed", "was killed by signal 6"),
    ("hangs", "runner_failed", "took longer than 3 s for one answer (timeout)"),
])
def test_failures_are_named(tmp_path, package, way, code, text):
    done, _ = with_runner(tmp_path, package(way, timeout=3 if way == "hangs" else 60))
    assert done.returncode != 0
    assert f"{code}: " in done.stderr and text in done.stderr


def test_the_package_is_not_there(tmp_path):
    done, report = with_runner(tmp_path, section("rtx", PROGRAM, targets="tensorrt"))
    assert done.returncode == 0, done.stderr
    assert report["kernels"] is None
    details = {w["code"]: w["detail"] for w in report["warnings"]}
    assert "tensorrt_rtx cannot be imported" in details["deployed_not_measured"]


@pytest.mark.parametrize("way", ["kernel_nodes", "kernel_list", "runs"])
def test_a_program_that_lies_fails_the_job(tmp_path, way):
    """A runner of somebody else's that says that it only plans, or names kernels badly."""
    liar = tmp_path / "liar.py"
    liar.write_text(FAKE.read_text().replace('"device": "nothing"}', '"device": "nothing", "runs": False}'))
    done, _ = with_runner(tmp_path, section("liar", liar, way, targets="tensorrt"))
    assert done.returncode != 0 and "runner_failed: the runner 'liar' answered" in done.stderr


def test_the_daemon_lives_on(tmp_path, package):
    runners = Runners(tmp_path / "daemon")
    runners.write(package(licence="mine"))
    service = Service(tmp_path / "daemon", QDQD_WORKERS_CAGE="require")
    service.arguments = ["--config", runners.config]
    service.start()
    try:
        job = service.submit_glyphs(spec={"target": "tensorrt"})
        service.succeeded(job)
        assert service.report(job)["kernels"]["planned_by"]["name"] == "tensorrt_rtx"
        for way, text in ("ends", "was killed by signal 6"), ("hangs", "timeout"):
            runners.write(package(way, licence="mine", timeout=2 if way == "hangs" else 30))
            service.process.send_signal(signal.SIGHUP)
            eventually(lambda: service.log.read_text().count("reloaded") >= ("ends", "hangs").index(way) + 1)
            neighbour = service.submit_glyphs(spec={"target": "onnxruntime"})
            job = service.ended(service.submit_glyphs(spec={"target": "tensorrt"}))
            assert job["error"]["code"] == "runner_failed" and job["error"]["retryable"]
            assert text in job["error"]["detail"]
            service.succeeded(neighbour)
        eventually(lambda: not programs(str(PROGRAM)))
    finally:
        service.stop()
