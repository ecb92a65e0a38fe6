# SPDX-License-Identifier: Apache-2.0
"""Worker processes enter their cage, and do all their work inside."""

import hashlib
from pathlib import Path

import pytest

from service import DATA, FEW_SAMPLES, Service, eventually, open_files

MODEL = DATA / "glyph_resnet.onnx"


def status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path)
    yield service
    service.stop()


def tasks(pid):
    """The status of every thread of a process."""
    return {task.name: status(f"{pid}/task/{task.name}")
            for task in Path(f"/proc/{pid}/task").iterdir()}


def quantize(service):
    job = service.post("/v1/jobs", files={
        "model": MODEL.open("rb"), "calibration": FEW_SAMPLES.open("rb"),
        "spec": '{"evaluate": {"samples": 8}, "sensitivity": {"samples": 2}}'})
    assert job.status_code == 202, job.text
    return service.succeeded(job.json()["id"])


def test_workers_work_in_their_cage(service):
    service.start(QDQD_WORKERS_CAGE="require")
    quantize(service)
    workers = service.workers()
    assert len(workers) >= 2  # one for jobs, one for short work
    for pid in workers:
        assert status(pid)["Seccomp"] == "2"  # a filter
        assert status(pid)["NoNewPrivs"] == "1"
    assert status(service.process.pid)["Seccomp"] == status("self")["Seccomp"]
    assert "cage_lacking" not in service.log.read_text()


def test_cage_can_be_switched_off(service):
    service.start(QDQD_WORKERS_CAGE="off")
    quantize(service)
    for pid in service.workers():
        assert status(pid)["Seccomp"] == status("self")["Seccomp"]


def test_every_thread_is_in_the_cage_while_a_model_runs(service):
    """ONNX Runtime's threads, too: three compute."""
    service.start(QDQD_WORKERS_CAGE="require", QDQD_WORKERS_THREADS="3",
                  QDQD_TEST_WORKER_PAUSE_MS="100")
    job = service.submit_glyphs()
    (worker,) = service.running(job)
    most, looks = 0, 0
    while service.job(job)["state"] == "running":
        try:
            threads = tasks(worker)
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread ended during the look
        most = max(most, len(threads))
        looks += 1
        for thread in threads.values():
            assert (thread["Seccomp"], thread["NoNewPrivs"]) == ("2", "1"), thread["Name"]
            assert int(thread["CapEff"], 16) == int(thread["CapPrm"], 16) == 0
    service.succeeded(job)
    assert most >= 3 and looks >= 3


def test_a_worker_has_no_descriptor_of_the_log(service):
    """It could empty the log, or write lines in the daemon's name."""
    service.start(QDQD_TEST_WORKER_PAUSE_MS="300")
    (worker,) = service.running(service.submit_glyphs())
    files = open_files(worker)
    assert str(service.log) not in files
    assert sorted(f.split(":")[0] for f in files if not f.startswith(str(service.state))) \
        == ["/dev/null", f"/proc/{worker}/clear_refs", "pipe", "pipe", "socket"]


def outputs_of(service, worker):
    """A descriptor of each of a job's six outputs; none before the worker has all of them."""
    found = {fd.resolve(): fd for fd in Path(f"/proc/{worker}/fd").iterdir()
             if str(service.state / "tmp") in str(fd.resolve())}
    return list(found.values()) if len(found) == 6 else []


def test_a_result_cannot_be_changed_by_its_worker_afterwards(service):
    """A worker that was taken over keeps a duplicate of its output's descriptor; here it is
    opened through /proc while the job runs."""
    service.start(QDQD_TEST_WORKER_PAUSE_MS="200")
    job = service.submit_glyphs()
    (worker,) = service.running(job)
    # The worker is known before it has received the descriptors of the job.
    found = eventually(lambda: outputs_of(service, worker))
    kept = [open(fd, "r+b", buffering=0) for fd in found]
    service.succeeded(job)
    before = service.result(job), service.report(job)
    for file in kept:
        file.seek(0)
        file.write(b"changed afterwards")
        file.truncate(18)
        file.close()
    assert (service.result(job), service.report(job)) == before
    for blob in (service.state / "blobs").glob("??/*"):
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    # The next job reads the observations of the first one.
    service.succeeded(service.submit_glyphs(spec={"calibration": {"method": "minmax"}}))
