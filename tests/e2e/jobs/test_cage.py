# SPDX-License-Identifier: Apache-2.0
"""Worker processes enter their cage, and do all their work inside."""

from pathlib import Path

import pytest

from service import CALIBRATION, DATA, Service

MODEL = DATA / "glyph_resnet.onnx"


def status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path)
    yield service
    service.stop()


def quantize(service):
    job = service.post("/v1/jobs", files={
        "model": MODEL.open("rb"), "calibration": CALIBRATION.open("rb"),
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
