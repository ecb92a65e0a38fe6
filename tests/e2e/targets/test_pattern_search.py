# SPDX-License-Identifier: Apache-2.0
"""The search by patterns of target tensorrt, with a runner whose times are planted (simulated_runner.py), and the journal
from which a job goes on that was killed."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from service import DATA, FEW_SAMPLES, INSTALLED, QUANTIZE, ROOT, Service, eventually, kill_process, repeats
from test_runner import Runners, section

SIMULATED = Path(__file__).parents[1] / "simulated_runner.py"
PROGRAM = INSTALLED / "share" / "qdqd" / "runners" / "onnxruntime_ep.py"
SPEC = {"target": "tensorrt", "frontier": {"points": 4}, "evaluate": {"samples": 4}}
KILLS = 50 if os.environ.get("QDQD_ALL_FIGURES") else 8
pytestmark = pytest.mark.long


def simulated(*words, **keys):
    return section("simulated", SIMULATED, f'"{PROGRAM}" {" ".join(words)}', targets="tensorrt",
                   **{"licence": "mine", "allow": ROOT, "timeout": 5, **keys})


def keep(path, kept):
    """Gives a journal a second name, under which it is read when it was removed."""
    if not kept.exists():
        with contextlib.suppress(FileNotFoundError):
            os.link(path, kept)


def entries_of(path):
    """The lines of a journal's entries; None where one is being written."""
    text = path.read_text() if path.exists() else ""
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(("QDQJOURNAL1 ", "end "))]
    return lines if not text or text.endswith("\n") else None


class Command:
    """The command with a cache of its own."""

    def __init__(self, folder, *words, spec=SPEC):
        self.folder = folder
        folder.mkdir()
        (folder / "runners.conf").write_text(simulated(*words))
        (folder / "spec.json").write_text(json.dumps(spec))
        self.kept = folder / "journal"

    def start(self, model="resnet"):
        return subprocess.Popen(
            [*QUANTIZE, DATA / f"glyph_{model}.onnx", "--calibration", FEW_SAMPLES, "--spec", "spec.json",
             "--runners", "runners.conf", "-o", "out.onnx", "--report", "report.json"],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), "TMPDIR": str(self.folder)})

    def journals(self):
        return list((self.folder / "cache" / "qdq" / "journals").glob("*"))

    def entries(self):
        for path in self.journals():
            keep(path, self.kept)
        return entries_of(self.kept)

    def ends(self, process):
        """Waits for the end, watches the journal meanwhile, and returns the report."""
        while process.poll() is None:
            self.entries()
            time.sleep(0.01)
        assert process.returncode == 0, process.stderr.read()
        assert not self.journals()  # it goes with the success of the job
        return json.loads((self.folder / "report.json").read_text())

    def run(self, *model):
        return self.ends(self.start(*model))

    def result(self):
        return (self.folder / "out.onnx").read_bytes()


def times_of(report):
    return {step["step"]: step["latency_ratio"] for step in reversed(report["recipe"])}


def test_what_the_search_finds(tmp_path):
    """It is faster than both ends, each point of the frontier can be made, and the frozen spec repeats the bytes."""
    command = Command(tmp_path / "one")
    report = command.run()
    times = times_of(report)
    assert times["patterns"] < min(0.97, times["integers"] - 0.03)
    assert report["costs"] == "measured" and report["kernels"] is None
    assert sum(line.startswith("ratio ") for line in command.entries()) <= 200
    points = report["frontier"]
    assert 2 <= len(points) <= 4
    ratios = [point["latency_ratio"] for point in points]
    assert ratios == sorted(ratios) and points[0]["sqnr_db"] >= 25
    again = Command(tmp_path / "two", spec=points[0]["spec"]).run()
    assert again["recipe"] is None and again["summary"]["quantized_layers"] > 0
    assert not list((tmp_path / "two").glob("journal"))


@pytest.mark.parametrize("words", [repeats(("lies",)), repeats(("crashes",)), ("lies", "crashes", "hangs")])
def test_lies_and_crashes_end_no_job_and_are_not_believed(tmp_path, words):
    command = Command(tmp_path / "one", *words)
    report = command.run()
    assert min(step["latency_ratio"] for step in report["recipe"] if step["latency_ratio"]) > 0.3
    failed = [line for line in command.entries() if line.startswith("ratio ") and line.endswith(" 0\n")]
    lies = [line for line in command.entries() if line.startswith("ratio ") and
            not 0.3 < float(line.split()[2]) < 3]
    assert failed or lies
    assert times_of(report)["unquantized"] == 1
    kept, = (step for step in report["recipe"] if step["kept"])
    assert kept["latency_ratio"] <= 1


def test_a_bound_that_can_be_met_is_met(tmp_path):
    spec = {"target": "tensorrt", "recipe": {"max_latency_ratio": 0.95, "min_sqnr_db": 25}, "evaluate": {"samples": 4}}
    report = Command(tmp_path / "met", spec=spec).run()
    kept, = (step for step in report["recipe"] if step["kept"])
    assert kept["latency_ratio"] <= 0.95 and kept["sqnr_db"] >= 25
    spec["recipe"]["max_latency_ratio"] = 0.1
    report = Command(tmp_path / "missed", spec=spec).run()
    assert "recipe_goal_missed" in {warning["code"] for warning in report["warnings"]}


def placed(report):
    return [(layer["name"], layer["quantized_inputs"]) for layer in report["layers"]]


@pytest.mark.parametrize("runner", [simulated("none"), ""])
def test_without_times_layers_stay_where_the_rules_place_them(tmp_path, runner):
    reports = []
    for name, spec in (("asked", SPEC), ("plain", {"target": "tensorrt", "evaluate": {"samples": 4}})):
        command = Command(tmp_path / name, spec=spec)
        (command.folder / "runners.conf").write_text(runner)
        reports.append(command.run())
    assert placed(reports[0]) == placed(reports[1])
    assert reports[0]["frontier"] is None and reports[0]["costs"] is None
    assert "frontier_not_measured" in {warning["code"] for warning in reports[0]["warnings"]}


def test_a_command_that_is_killed_goes_on_where_it_was(tmp_path):
    """Many times, at random moments. No measurement that was written is done again, and the end is the same."""
    whole = Command(tmp_path / "whole", "lies", "crashes")
    report = whole.run()
    killed = Command(tmp_path / "killed", "lies", "crashes")
    moments = random.Random(44)
    known = []
    for kill in range(KILLS):
        process = killed.start()
        further = len(known) + moments.choice([0, 1, 1, 2])
        until = time.monotonic() + 60
        while process.poll() is None and len(killed.entries() or known) < further and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(moments.random() * (0.5 if further == len(known) else 0.1))
        assert process.poll() is None, (kill, process.returncode, len(known))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = killed.entries()
        assert now is None or now[:len(known)] == known
        known = known if now is None else now
    assert len(known) >= KILLS // 2
    again = killed.run()
    assert killed.entries() == whole.entries()  # each measurement once
    assert killed.result() == whole.result()
    for mine, other in zip(again["recipe"], report["recipe"], strict=True):
        assert {**mine, "samples": 0} == {**other, "samples": 0}


def test_a_journal_of_another_job_is_not_read(tmp_path):
    """A runner with other options is another one."""
    command = Command(tmp_path / "one")
    process = command.start()
    eventually(lambda: len(command.entries() or []) > 3)
    process.kill()
    process.wait()
    assert len(command.journals()) == 1
    (command.folder / "runners.conf").write_text(simulated(card="another"))
    process = command.start()
    eventually(lambda: len(command.journals()) == 2)
    process.kill()
    process.wait()


def test_a_torn_journal(tmp_path):
    """An entry that was not written whole, and what is not an entry, are cut off."""
    command = Command(tmp_path / "one")
    process = command.start()
    eventually(lambda: len(command.entries() or []) > 5)
    process.kill()
    process.wait()
    journal, = command.journals()
    before = command.entries()
    journal.write_bytes(journal.read_bytes()[:-7])
    report = command.run()
    assert command.entries()[:len(before)] == before
    assert report["costs"] == "measured"


# --- the service ---------------------------------------------------------------------------


@pytest.fixture
def service(tmp_path):
    runners = Runners(tmp_path)
    runners.write(simulated("lies"))
    service = Service(tmp_path)
    service.arguments = ["--config", runners.config]
    yield service.start()
    service.stop()


def watch(service, job, kept, further):
    """Waits until the job has written so many entries more, or has ended; returns all."""
    known = len(entries_of(kept) or []) if kept.exists() else 0
    path = service.state / "journals" / job

    def goes_on():
        if path.exists():
            keep(path, kept)
        return len(entries_of(kept) or []) >= known + further or service.job(job)["state"] == "succeeded"

    eventually(goes_on, 120)
    return eventually(lambda: entries_of(kept))


def test_a_job_whose_worker_or_daemon_is_killed_goes_on(service, tmp_path):
    whole = service.submit_glyphs(spec=SPEC)
    watch(service, whole, tmp_path / "whole", 1)
    service.succeeded(whole)
    eventually(lambda: not list((service.state / "journals").iterdir()))
    job = service.submit_glyphs(spec=SPEC)
    known = []
    for way in ("worker", "daemon", "daemon"):
        now = watch(service, job, tmp_path / "killed", 8)
        assert now[:len(known)] == known
        known = now
        if way == "worker":
            kill_process(service.worker_of_the_job())
        else:
            service.kill()
            service.start()
    service.succeeded(job)
    assert len(known) >= 24
    assert entries_of(tmp_path / "killed") == entries_of(tmp_path / "whole")
    assert service.result(job) == service.result(whole)
    eventually(lambda: not list((service.state / "journals").iterdir()))


def test_a_journal_goes_with_its_job(service, tmp_path):
    job = service.submit_glyphs(spec=SPEC)
    watch(service, job, tmp_path / "journal", 3)
    (service.state / "journals" / ("0" * 8)).write_text("left behind")
    assert service.post(f"/v1/jobs/{job}/cancel").status_code in (200, 202)
    service.kill()
    service.start(QDQD_RETENTION_LEFTOVERS="1")
    eventually(lambda: not list((service.state / "journals").iterdir()))
