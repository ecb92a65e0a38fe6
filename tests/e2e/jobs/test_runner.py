# SPDX-License-Identifier: Apache-2.0
"""Results that a program of the operator's judges, in the service and by the command."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service import DATA, FEW_SAMPLES, INSTALLED, QUANTIZE, Service, eventually, problem

PROGRAM = INSTALLED / "share" / "qdqd" / "runners" / "onnxruntime_ep.py"
FAKE = Path(__file__).parents[2] / "unit" / "judges" / "fake_runner.py"
MODEL = DATA / "glyph_resnet.onnx"
# The recipe is none: what is fast is a matter of the times, of which a runner has its own.
SPEC = {"target": "onnxruntime", "evaluate": True, "recipe": "none"}


def section(name="cpu", program=PROGRAM, arguments="", **keys):
    keys = {"command": f'"{sys.executable}" "{program}" {arguments}', "targets": "onnxruntime", **keys}
    return f"[runner {name}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items())


class Runners:
    """The folder of configuration of a daemon."""

    def __init__(self, folder):
        self.folder = folder / "etc"
        (self.folder / "runners.d").mkdir(parents=True)
        self.config = self.folder / "qdqd.conf"
        self.config.write_text("")

    def write(self, *sections):
        (self.folder / "runners.d" / "ours.conf").write_text("\n".join(sections))

    def check(self, *arguments):
        """Has the daemon check its configuration, and returns what it says."""
        return subprocess.run(
            [INSTALLED / "sbin" / "qdqd", "--config", self.config, "--state-dir",
             self.folder.parent / "state", "--check-config", *arguments],
            capture_output=True, text=True)


@pytest.fixture
def runners(tmp_path):
    return Runners(tmp_path)


@pytest.fixture
def service(tmp_path, runners):
    service = Service(tmp_path, QDQD_WORKERS_CAGE="require")
    service.arguments = ["--config", runners.config]
    yield service
    service.stop()


def reload(service):
    before = service.log.read_text().count("reloaded")
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: service.log.read_text().count("reloaded") > before)


def figures(report):
    """The figures of a report, without times and memory."""
    evaluation = json.loads(json.dumps(report["evaluation"]))
    evaluation["deployed"]["runtime"].pop("device", None)
    kernels = {k: report["kernels"][k] for k in ("integer", "conversions", "ops")}
    return evaluation, kernels, report["layers"]


def programs(name):
    """The processes that run a program."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name.encode() in path.read_bytes().split(b"\0")[1:3]:
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_a_runner_judges_as_the_engine_does(service, runners):
    service.start()
    own = service.submit_glyphs(spec={**SPEC, "profile": {"runs": 3, "threads": 1}})
    service.succeeded(own)
    runners.write(section(provider="CPU"))
    reload(service)
    job = service.submit_glyphs(spec={**SPEC, "profile": {"runs": 3, "threads": 1}})
    service.succeeded(job)
    before, report = service.report(own), service.report(job)
    assert figures(report) == figures(before)
    assert "runner" not in before["kernels"] and report["kernels"]["runner"] == "cpu"
    assert report["evaluation"]["deployed"]["runtime"]["device"] == "CPUExecutionProvider"
    assert report["profile"]["quantized"]["p50_ms"] > 0
    assert {n["provider"] for n in report["profile"]["nodes"]} == {"CPUExecutionProvider"}
    assert report["warnings"] == before["warnings"]
    assert service.result(job) == service.result(own)
    assert "lacking" not in service.log.read_text()
    # Nothing stays: neither programs nor their folders, and without the section the engine judges.
    eventually(lambda: not programs(str(PROGRAM)))
    runners.write("")
    reload(service)
    again = service.submit_glyphs(spec={**SPEC, "evaluate": {"samples": 8}})
    service.succeeded(again)
    assert "runner" not in service.report(again)["kernels"]
    eventually(lambda: not list((service.state / "runners").iterdir()))


def test_a_recipe_tries_by_the_runner(service, runners):
    runners.write(section(provider="CPU"))
    service.start()
    job = service.submit_glyphs(spec={**SPEC, "recipe": "best"})
    service.succeeded(job)
    report = service.report(job)
    assert report["recipe"] and report["kernels"]["runner"] == "cpu"
    assert report["evaluation"]["deployed"]["outputs"][0]["sqnr_db"] > 30


@pytest.mark.parametrize("way, text", [
    ("exit", "the runner 'bad' ended with status 3; its log ends with: no such device"),
    ("garbage", "the runner 'bad' answered no JSON"),
    ("hang", "the runner 'bad' took longer than 1 s for one answer (timeout)"),
    ("crash", "the runner 'bad' was killed by signal 11"),
])
def test_a_program_that_fails_fails_the_job(service, runners, way, text):
    runners.write(section("bad", FAKE, way, timeout=1 if way == "hang" else 60))
    service.start()
    job = service.ended(service.submit_glyphs(spec=SPEC))
    assert job["state"] == "failed"
    assert job["error"]["code"] == "runner_failed" and job["error"]["retryable"]
    assert text in job["error"]["detail"]
    eventually(lambda: not programs(str(FAKE)))


def test_a_provider_that_is_not_there_costs_the_figures(service, runners):
    runners.write(section(provider="QNN"))
    service.start()
    job = service.submit_glyphs(spec=SPEC)
    service.succeeded(job)
    report = service.report(job)
    assert report["evaluation"]["deployed"] is None
    [warning] = [w for w in report["warnings"] if w["code"] == "deployed_not_measured"]
    assert "the runner 'cpu': onnxruntime_qnn" in warning["detail"]
    assert "onnxruntime_qnn cannot be imported" in warning["detail"]


def test_nothing_falls_back_to_the_processor(service, runners):
    """The provider Azure is in the package and takes no node of the model."""
    runners.write(section(provider="Azure"))
    service.start()
    job = service.ended(service.submit_glyphs(spec=SPEC))
    assert job["error"]["code"] == "target_cannot_load"
    assert "AzureExecutionProvider does not take the whole model" in job["error"]["detail"]
    runners.write(section(provider="Azure", partial="yes"))
    reload(service)
    job = service.submit_glyphs(spec=SPEC)
    service.succeeded(job)
    report = service.report(job)
    assert report["evaluation"]["deployed"]["runtime"]["device"] == "AzureExecutionProvider"


# --- the configuration ------------------------------------------------------------------


def test_sections_are_printed(runners):
    runners.write(section(provider="CPU", soc_model="43", timeout=7, allow="/dev/nvidia*, exec"))
    found = runners.check("--print")
    assert found.returncode == 0, found.stderr
    lines = dict(re.findall(r"^runner\.cpu\.(\w+) = (.*?)  #", found.stdout, re.M))
    assert lines["timeout"] == "7" and lines["memory"] == "8G" and lines["licence"] == ""
    assert lines["allow"] == "/dev/nvidia*, exec"
    assert lines["provider"] == "CPU" and lines["soc_model"] == "43"


@pytest.mark.parametrize("sections, text", [
    ([section(command="python3 x")], "[runner cpu] command: does not begin with the absolute path"),
    ([section(command="")], "[runner cpu] command: is missing"),
    ([section(targets="")], "[runner cpu] targets: is missing"),
    ([section(targets="tflite")], '[runner cpu] targets: there is no target "tflite"'),
    ([section(targets="tensorrt")], "is proprietary; the section needs licence = mine"),
    ([section(), section("other")], "another runner judges results for onnxruntime"),
    ([section(allow="network")], "[runner cpu] allow: has a word that is not exec"),
    ([section(licence="yours")], "[runner cpu] licence"),
    ([section() + "provider = a\nprovider = b\n"], "provider: given twice"),
    (["[remote a]\nkind = s3\n"], "only sections [runner NAME] stand in runners.d"),
])
def test_mistakes_have_a_place(runners, sections, text):
    runners.write(*sections)
    found = runners.check()
    assert found.returncode != 0
    assert "ours.conf:" in found.stderr and text in found.stderr


def test_no_program_reads_the_store(runners, tmp_path):
    runners.write(section(allow=str(tmp_path)))
    found = runners.check()
    assert found.returncode != 0
    assert "the program could read the daemon's data" in found.stderr


# --- the command ------------------------------------------------------------------------


def quantize(tmp_path, name, *arguments, spec=SPEC, **environment):
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [QUANTIZE[0], "quantize", MODEL, "--calibration", FEW_SAMPLES, "--spec",
         tmp_path / "spec.json", "-o", tmp_path / f"{name}.onnx", "--report", tmp_path / f"{name}.json",
         *arguments], capture_output=True, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), **environment})
    report = tmp_path / f"{name}.json"
    return done, json.loads(report.read_text()) if done.returncode == 0 else None


def test_a_program_that_takes_its_time(tmp_path):
    """The command waits for as long as the section says, and not for a shorter time of its own."""
    slow = tmp_path / "slow.py"
    slow.write_text(f"import time\nBOTH = {PROGRAM.read_text()!r}\ntime.sleep(5.5)\nexec(BOTH)\n")
    file = tmp_path / "runners.conf"
    file.write_text(section("slow", slow, provider="CPU", timeout=60))
    done, report = quantize(tmp_path, "slow", "--runners", file)
    assert done.returncode == 0, done.stderr
    assert report["kernels"]["runner"] == "slow"


def test_a_runner_has_figures_of_its_own(tmp_path):
    """Times that the engine has kept are not taken for those of a program of the operator's, although
    both name the same version of ONNX Runtime."""
    file = tmp_path / "runners.conf"
    file.write_text(section(provider="CPU"))
    own, by_runner, again = (
        quantize(tmp_path, name, *more, spec={"target": "onnxruntime"})[1]
        for name, more in (("own", ()), ("runner", ("--runners", file)), ("again", ())))
    assert (own["costs"], by_runner["costs"], again["costs"]) == ("measured", "measured", "kept")


def test_the_command_has_runners_too(tmp_path):
    file = tmp_path / "runners.conf"
    file.write_text(section(provider="CPU"))
    _, own = quantize(tmp_path, "own")
    done, by_option = quantize(tmp_path, "option", "--runners", file)
    assert done.returncode == 0, done.stderr
    _, by_variable = quantize(tmp_path, "variable", QDQD_RUNNERS=str(file))
    assert figures(by_option) == figures(by_variable) == figures(own)
    assert by_option["kernels"]["runner"] == by_variable["kernels"]["runner"] == "cpu"
    assert "runner" not in own["kernels"]
    models = [(tmp_path / f"{n}.onnx").read_bytes() for n in ("own", "option", "variable")]
    assert models[0] == models[1] == models[2]
    [folder] = tmp_path.glob("qdq-runners-*")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("text, expected", [
    ("[runner a]\ntargets = onnxruntime\n", "[runner a] lacks command"),
    ("[runner a]\ncommand = /bin/true\n", "[runner a] lacks targets"),
    ("[runner a]\ncommand = true\n", "runners.conf:2: command: does not begin"),
    ("[runner a]\ncommand = /bin/true\ntargets = x\n", 'there is no target "x"'),
    ("[runner a]\ntimeout = soon\n", "runners.conf:2: timeout: not a number"),
    ("[remote a]\nkind = s3\n", "not a section [runner NAME]"),
])
def test_the_command_names_mistakes(tmp_path, text, expected):
    file = tmp_path / "runners.conf"
    file.write_text(text)
    done, _ = quantize(tmp_path, "out", "--runners", file)
    assert done.returncode != 0 and expected in done.stderr


def test_runners_are_no_business_of_a_service(tmp_path):
    done, _ = quantize(tmp_path, "out", "--runners", "x", "--url", "http://127.0.0.1:1")
    assert done.returncode == 2 and "--runners is for work without a service" in done.stderr


def test_the_command_says_why_a_program_failed(tmp_path):
    file = tmp_path / "runners.conf"
    file.write_text(section("bad", FAKE, "exit"))
    done, _ = quantize(tmp_path, "out", "--runners", file)
    assert done.returncode != 0
    assert "runner_failed: the runner 'bad' ended with status 3" in done.stderr


@pytest.mark.parametrize("target, runner, text", [
    ("onnxruntime", False, "no form for compiled models"),
    ("qnn", False, "needs a runner"),
    ("qnn", True, "makes no context"),
])
def test_a_compiled_model_that_cannot_be_had(tmp_path, target, runner, text):
    file = tmp_path / "runners.conf"
    file.write_text(section(targets="qnn") if runner else "")
    done, _ = quantize(tmp_path, "out", "--runners", file,
                       spec={"target": target, "recipe": "none", "evaluate": False,
                             "output": {"context": True}})
    assert done.returncode != 0
    assert "/output/context" in done.stderr and text in done.stderr
    assert not [*tmp_path.glob("*.onnx")]


def test_a_service_compiles_nothing(service):
    service.start()
    model = service.upload("models", MODEL)
    answer = service.post("/v1/jobs", json={"model": model, "spec": {
        "target": "qnn", "output": {"context": True}}})
    assert problem(answer, 422, "unsupported")["errors"][0]["pointer"] == "/output/context"
