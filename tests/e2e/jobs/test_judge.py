# SPDX-License-Identifier: Apache-2.0
"""Jobs for target openvino: a process of its own judges, in a cage of its own."""

import ctypes
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import fake_openvino
from service import DATA, FEW_SAMPLES, INSTALLED, Service, eventually, from_bench, open_files

real_inputs = from_bench("real_inputs")

MODEL = DATA / "glyph_resnet.onnx"
[LIBRARY] = (Path(openvino.__file__).parent / "libs").glob("libopenvino_c.so.*")
SPEC = {"target": "openvino", "evaluate": {"samples": 8}}


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path)
    yield service
    service.stop()


def start(service, **environment):
    service.start(**{"QDQD_WORKERS_CAGE": "require", "QDQD_ENGINE_OPENVINO": str(LIBRARY),
                     **environment})
    # A judging process has told which OpenVINO it is, and has ended.
    return eventually(lambda: (found := service.get("/version").json())["devices"] and found)


def judges(service):
    """The judging processes of a daemon."""
    children = Path(f"/proc/{service.process.pid}/task").glob("*/children")
    found = []
    for pid in " ".join(path.read_text() for path in children).split():
        try:
            if b"--judge" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
        except OSError:
            continue  # it has ended
    return found


def status(path):
    lines = Path(path, "status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def is_caged(pid):
    """A process that is not has not begun to serve."""
    try:
        return status(f"/proc/{pid}").get("Seccomp") == "2"
    except (FileNotFoundError, ProcessLookupError):
        return False


def codes(report):
    return {warning["code"] for warning in report["warnings"]}


def test_a_job_is_judged_by_openvino(service):
    version = start(service)
    assert version["backends"][1] == {
        "name": "openvino", "version": openvino.get_version(), "path": str(LIBRARY),
        "problem": None}
    assert not judges(service)
    job = service.submit_glyphs(spec={**SPEC, "profile": {"runs": 3}})
    service.succeeded(job)
    report = service.report(job)
    deployed = report["evaluation"]["deployed"]
    assert deployed["runtime"] == {"name": "openvino", "version": openvino.get_version()}
    assert deployed["outputs"][0]["sqnr_db"] > 30
    assert report["profile"]["runtime"] == deployed["runtime"]
    assert any(node["provider"].endswith("_I8") for node in report["profile"]["nodes"])
    assert "deployed_not_measured" not in codes(report)
    log = service.log.read_text()
    assert "judge_started" in log and "cage_lacking" not in log
    # Another job of the tenant finds it warm.
    [before] = judges(service)
    service.succeeded(service.submit_glyphs(spec={**SPEC, "opset": "auto"}))
    assert judges(service) == [before]


def test_one_request_is_judged_too(service):
    """The answer of POST /v1/quantize is the model; its job has the report."""
    start(service)
    answer = service.quantize(MODEL, FEW_SAMPLES, SPEC)
    assert answer.status_code == 200, answer.text
    core = openvino.Core()
    core.compile_model(core.read_model(answer.content), "CPU")
    [job] = service.get("/v1/jobs").json()["jobs"]
    report = service.report(job["id"])
    assert report["evaluation"]["deployed"]["runtime"]["name"] == "openvino"
    assert report["kernels"]["integer"] > 0


def test_every_thread_of_the_judge_is_caged(service):
    """Those that OpenVINO starts while it compiles and runs, too."""
    start(service)
    job = service.submit_glyphs(spec={**SPEC, "evaluate": {"samples": 16},
                                      "profile": {"runs": 300}})
    eventually(lambda: judges(service))
    [judge] = judges(service)
    most = looks = 0
    while service.job(job)["state"] == "running":
        try:
            first = status(f"/proc/{judge}")
            tasks = [status(task) for task in Path(f"/proc/{judge}/task").iterdir()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread ended during the look
        if first["Seccomp"] != "2":  # OpenVINO is loading, and has no data yet.
            assert looks == 0
            continue
        most, looks = max(most, len(tasks)), looks + 1
        for thread in tasks:
            assert (thread["Seccomp"], thread["NoNewPrivs"]) == ("2", "1"), thread["Name"]
            assert int(thread["CapEff"], 16) == int(thread["CapPrm"], 16) == 0
    service.succeeded(job)
    assert most >= 2 and looks >= 3
    wanted = sorted(["/dev/null", "pipe", "pipe", "socket", str(LIBRARY.parent.resolve())])
    # The worker's socket goes a moment after the worker has let it go.
    eventually(lambda: sorted(name.split(":")[0] for name in open_files(judge)) == wanted)
    for worker in service.workers():
        assert status(f"/proc/{worker}")["Seccomp"] == "2"


WITHOUT_CODE = """#!{python}
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
os.execv("{program}", sys.argv)
"""


def test_where_no_memory_becomes_code(service, tmp_path):
    """As under systemd's MemoryDenyWriteExecute=: it is said, and such jobs succeed."""
    if ctypes.CDLL(None).prctl(66, 0, 0, 0, 0) < 0:  # PR_GET_MDWE
        pytest.skip("this kernel cannot forbid it to a process")
    program = tmp_path / "without_code"
    program.write_text(WITHOUT_CODE.format(python=sys.executable, program=INSTALLED / "sbin" / "qdqd"))
    program.chmod(0o755)
    service.start(program, QDQD_ENGINE_OPENVINO=str(LIBRARY))
    version = eventually(lambda: (found := service.get("/version").json())["devices"] and found)
    assert "at its start" in version["backends"][1]["problem"]
    assert re.search(r'runtime_missing .*no memory may become code here.*openvino\.conf',
                     service.log.read_text())
    job = service.submit_glyphs(spec=SPEC)
    service.succeeded(job)
    report = service.report(job)
    assert report["evaluation"]["deployed"] is None
    assert "deployed_not_measured" in codes(report)


def test_a_model_that_openvino_refuses(service):
    """silero_vad, whose types inside an If OpenVINO does not infer, is refused before it is
    calibrated."""
    start(service)
    model = service.upload("models", real_inputs.PACKAGES / real_inputs.MODELS["silero_vad"])
    job = service.submit(model=model, spec={**SPEC, "calibration": {"random_samples": 4}})
    document = service.ended(job)
    assert document["state"] == "failed", document
    assert document["error"]["code"] == "target_cannot_load"
    assert "OpenVINO cannot load the model that was given" in document["error"]["detail"]
    assert "\n" not in document["error"]["detail"]
    assert "judge_died" not in service.log.read_text()


@pytest.mark.parametrize("library", ["", "/nonexistent/libopenvino_c.so"])
def test_without_the_library(service, library):
    start(service, QDQD_ENGINE_OPENVINO=library)
    job = service.submit_glyphs(spec=SPEC)
    service.succeeded(job)
    report = service.report(job)
    assert report["evaluation"]["deployed"] is None
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 30
    [warning] = [w for w in report["warnings"] if w["code"] == "deployed_not_measured"]
    assert "OpenVINO" in warning["detail"]
    assert not judges(service)


def test_the_library_is_part_of_what_a_job_is(service):
    """A job that was answered without OpenVINO is not the answer to one with it."""
    start(service, QDQD_ENGINE_OPENVINO="")
    first = service.submit_glyphs(spec=SPEC)
    service.succeeded(first)
    service.stop()
    start(service)
    second = service.submit_glyphs(spec=SPEC)
    service.succeeded(second)
    report = service.report(second)
    assert report["evaluation"]["deployed"] is not None


def test_a_judge_that_dies_costs_the_figures_alone(service):
    start(service)
    job = service.submit_glyphs(spec={**SPEC, "profile": {"runs": 5000}})
    eventually(lambda: judges(service))
    [judge] = judges(service)
    eventually(lambda: (service.job(job)["progress"] or {}).get("stage") == "profile")
    os.kill(judge, 9)
    service.succeeded(job)
    report = service.report(job)
    assert report["profile"] is None and "profile_skipped" in codes(report)
    # The next job has another one.
    service.succeeded(service.submit_glyphs(spec={**SPEC, "opset": "auto"}))
    assert judges(service) and judges(service) != [judge]


def test_judges_that_die_again_and_again_cost_the_figures_alone(service):
    """Each is killed as soon as it serves, at whatever it does: the job succeeds all the same."""
    start(service)
    job = service.submit_glyphs(spec={**SPEC, "recipe": {"min_sqnr_db": 60}})
    killed = set()
    while service.job(job)["state"] in ("queued", "running"):
        for judge in set(judges(service)) - killed:
            if is_caged(judge):
                os.kill(judge, 9)
                killed.add(judge)
    service.succeeded(job)
    assert killed and len(killed) <= 2  # no job starts a third one
    report = service.report(job)
    sqnr = report["evaluation"]["outputs"][0]["sqnr_db"]
    assert sqnr is None or sqnr > 30  # None: without VNNI the recipe leaves all in float
    measured = report["evaluation"]["deployed"] is not None
    assert measured == ("deployed_not_measured" not in codes(report))


@pytest.mark.parametrize("stage, more", [
    ("profile", {"profile": {"runs": 5000}}),
    ("sensitivity", {"sensitivity": {}, "profile": {"runs": 50}})])
def test_a_judge_that_is_stopped_is_found(service, stage, more):
    """Its own timer ends it only when it goes on; a job may take hours."""
    start(service, QDQD_WORKERS_SHORT_TIMEOUT="5")
    job = service.submit_glyphs(spec={**SPEC, **more})
    eventually(lambda: judges(service))
    eventually(lambda: (service.job(job)["progress"] or {}).get("stage") == stage)
    [judge] = judges(service)
    os.kill(judge, signal.SIGSTOP)
    began = time.monotonic()
    eventually(lambda: judge not in judges(service), seconds=20)
    service.succeeded(job)
    assert time.monotonic() - began < 30


def test_a_cancelled_job_ends_its_judge(service):
    start(service)
    job = service.submit_glyphs(spec={**SPEC, "profile": {"runs": 5000}})
    eventually(lambda: judges(service))
    [judge] = judges(service)
    time.sleep(0.2)
    assert service.post(f"/v1/jobs/{job}/cancel").status_code in (200, 202)
    eventually(lambda: not Path(f"/proc/{judge}").exists())


def start_fake(service, **environment):
    """Starts a daemon with a library that crashes or hangs at some models."""
    start(service, QDQD_ENGINE_OPENVINO=str(fake_openvino.library()), **environment)


def submit_fake(service, folder, what, **spec):
    folder.mkdir()
    onnx.save(fake_openvino.model(what), folder / "m.onnx")
    np.savez(folder / "x.npz", x=fake_openvino.SAMPLES)
    return service.submit(model=service.upload("models", folder / "m.onnx"),
                          calibration=service.upload("datasets", folder / "x.npz"),
                          spec={**fake_openvino.SPEC, **spec})


def test_a_model_at_which_openvino_crashes(service, tmp_path):
    """The job ends with the reason, and the one that runs beside it and the next one are
    unharmed."""
    start_fake(service, QDQD_WORKERS_COUNT="2")
    beside = submit_fake(service, tmp_path / "beside", "nothing")
    crashed = submit_fake(service, tmp_path / "crashed", "crash here")
    document = service.ended(crashed)
    assert document["state"] == "failed", document
    assert document["error"]["code"] == "target_cannot_load"
    assert document["error"]["detail"] == (
        "OpenVINO cannot load the model that was given: it crashed twice: its process was killed "
        "by signal 11")
    assert document["attempts"] == 1
    service.succeeded(beside)
    following = submit_fake(service, tmp_path / "following", "nothing else")
    service.succeeded(following)
    for job in (beside, following):
        assert service.report(job)["evaluation"]["deployed"] is not None


def test_a_model_that_openvino_reads_for_ever(service, tmp_path):
    """It has the time of short work, and the next job has a judge that answers."""
    start_fake(service, QDQD_WORKERS_COUNT="1", QDQD_WORKERS_SHORT_TIMEOUT="4")
    began = time.monotonic()
    document = service.ended(submit_fake(service, tmp_path / "hangs", "hang here"))
    assert time.monotonic() - began < 40
    assert document["state"] == "failed", document
    assert document["error"]["code"] == "limit_exceeded"
    assert "workers.short_timeout" in document["error"]["detail"]
    job = submit_fake(service, tmp_path / "following", "nothing")
    service.succeeded(job)
    assert service.report(job)["evaluation"]["deployed"] is not None
    [judge] = judges(service)
    assert is_caged(judge)


def test_a_result_that_openvino_reads_for_ever(service, tmp_path):
    """Behind its calibration a job may take long, and one answer of OpenVINO may not: the judge
    ends by itself, and the job has no figures as deployed."""
    start_fake(service, QDQD_WORKERS_COUNT="1", QDQD_WORKERS_SHORT_TIMEOUT="4")
    job = submit_fake(service, tmp_path / "hangs", "hang when quantized")
    service.succeeded(job)
    report = service.report(job)
    assert report["evaluation"]["deployed"] is None
    [why] = [w["detail"] for w in report["warnings"] if w["code"] == "deployed_not_measured"]
    assert why.endswith("OpenVINO took longer than 4 s for one answer (workers.short_timeout)")
    following = submit_fake(service, tmp_path / "following", "nothing")
    service.succeeded(following)
    assert service.report(following)["evaluation"]["deployed"] is not None
