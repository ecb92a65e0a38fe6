# SPDX-License-Identifier: Apache-2.0
"""The disk's budget: which files are removed for it, what is refused, and the effect of a
full disk."""

import contextlib
import os
import re
import resource
import subprocess

import numpy as np
import pytest

import nets
from service import DATA, FEW_SAMPLES, eventually, problem

MODEL = DATA / "glyph_resnet.onnx"
SHORT = {"calibration": {"max_samples": 4}, "evaluate": False}
RAW = {"Content-Type": "application/octet-stream"}


def data_of(tmp_path, n, bytes_of_it):
    """Returns an upload of almost that size, a different one for each n."""
    np.save(tmp_path / "d.npy", np.full(bytes_of_it // 4, n, np.float32))
    return (tmp_path / "d.npy").read_bytes()


def swept(one):
    """Returns what was removed for want of room, in this order."""
    found = re.findall(r"event=(job|file)_swept (?:job|kind)=(\S+).* reason=room",
                       one.log.read_text())
    return [what if kind == "job" else f"{kind} {what}" for kind, what in found]


def nothing_on_its_way(one):
    """Waits until the last temporary files are gone, which happens after the answer is
    sent."""
    return eventually(lambda: one.temporary_files() == [])


def size_of(one):
    return sum(p.stat().st_size for p in (one.state / "blobs").rglob("*") if p.is_file())


def test_the_oldest_jobs_go_first_then_the_oldest_files(service, tmp_path):
    one = service()
    jobs = [one.submit_glyphs(spec={**SHORT, "weights": {"granularity": granularity}})
            for granularity in ("tensor", "channel")]
    for job in jobs:
        one.succeeded(job)
    _, second = (one.upload("datasets", data_of(tmp_path, n, 400_000)) for n in (1, 2))
    size = size_of(one)
    one.stop()
    one.environment["QDQD_STORAGE_MAX_BYTES"] = str(size)
    one.start()
    assert swept(one) == []
    # The upload needs the room of the cache, both jobs and the oldest files, not the newest.
    big = one.upload("datasets", data_of(tmp_path, 3, size - 900_000))
    gone = swept(one)
    assert gone[:2] == jobs
    assert [line.split()[0] for line in gone[2:]] == ["file"] * (len(gone) - 2)
    assert "event=observations_swept" in one.log.read_text()
    assert one.get(f"/v1/datasets/{big}").status_code == 200
    assert one.get(f"/v1/datasets/{second}").status_code == 200
    assert one.get(f"/v1/jobs/{jobs[0]}").status_code == 404
    assert size_of(one) <= size


def test_more_than_all_is_refused_and_nothing_goes_for_it(service, tmp_path):
    one = service(storage_max_bytes=1_000_000)
    kept = one.upload("datasets", data_of(tmp_path, 1, 300_000))
    before = one.stored_files()
    answer = one.post("/v1/datasets", data=data_of(tmp_path, 2, 1_100_000), headers=RAW)
    problem(answer, 507, "disk_full")
    assert "storage.max_bytes" in answer.json()["detail"]
    form = {"model": ("m", bytes(1_200_000), "application/octet-stream")}
    problem(one.post("/v1/quantize", files=form), 507, "disk_full")
    assert one.stored_files() == before and nothing_on_its_way(one)
    assert one.get(f"/v1/datasets/{kept}").status_code == 200
    # Without a length the limit is noticed while the body arrives.
    pieces = (bytes(50_000) for _ in range(40))
    problem(one.post("/v1/datasets", data=pieces, headers=RAW), 507, "disk_full")
    assert nothing_on_its_way(one)


def test_what_a_live_job_needs_stays(held, service, tmp_path):
    """Making room does not remove data that an unfinished job needs."""
    size = MODEL.stat().st_size + FEW_SAMPLES.stat().st_size
    one = service(storage_max_bytes=size + 500_000, **held)
    job = one.submit_glyphs()
    one.running(job)
    other = one.upload("datasets", data_of(tmp_path, 1, 300_000))
    problem(one.post("/v1/datasets", data=data_of(tmp_path, 2, 600_000), headers=RAW),
            507, "disk_full")
    document = one.job(job)
    assert document["state"] == "running"
    assert one.get(f"/v1/datasets/{document['calibration']}").status_code == 200
    later = one.upload("datasets", data_of(tmp_path, 3, 400_000))
    assert one.get(f"/v1/datasets/{other}").status_code == 404
    assert one.get(f"/v1/datasets/{later}").status_code == 200
    one.post(f"/v1/jobs/{job}/cancel")


def test_a_result_that_does_not_fit(service):
    """The accepted job fails with that error, which is retryable."""
    size = MODEL.stat().st_size + FEW_SAMPLES.stat().st_size
    one = service(storage_max_bytes=size + 1000, cache_observations=0)
    job = one.submit_glyphs(spec=SHORT)
    document = one.ended(job)
    assert document["state"] == "failed"
    assert document["error"]["code"] == "disk_full" and document["error"]["retryable"]
    assert nothing_on_its_way(one)
    one.stop()
    one.environment = {}
    one.start()
    one.succeeded(one.submit_glyphs(spec=SHORT))


def test_an_older_result_makes_room_for_a_newer(service):
    one = service(cache_observations=0)
    first = one.submit_glyphs(spec=SHORT)
    one.succeeded(first)
    size = size_of(one)
    one.stop()
    one.environment["QDQD_STORAGE_MAX_BYTES"] = str(size + 1000)
    one.start()
    second = one.submit_glyphs(spec={**SHORT, "weights": {"granularity": "tensor"}})
    one.succeeded(second)
    assert swept(one) == [first]
    assert one.result(second)
    assert size_of(one) <= size + 1000


# --- a full disk ------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """Returns a folder on a disk of 48 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk of one's own: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def start_on(service, folder, **settings):
    """Returns a daemon whose state is in the folder."""
    one = service(**settings)
    one.stop()
    one.state = folder / "state"
    return one.start()


def test_a_small_disk(small_disk, service, tmp_path):
    one = start_on(service, small_disk)
    room = os.statvfs(small_disk)
    left = room.f_bavail * room.f_frsize
    problem(one.post("/v1/datasets", data=bytes(left - (4 << 20)), headers=RAW), 507,
            "disk_full")
    one.succeeded(one.submit_glyphs(spec=SHORT))
    # Each upload fits alone; the one before is removed for the next.
    for n in range(4):
        one.upload("datasets", data_of(tmp_path, n, 20 << 20))
    assert len([line for line in swept(one) if line == "file dataset"]) >= 3


def test_a_disk_that_others_fill(small_disk, service):
    """While nothing can be written, requests get an error and nothing is lost; afterwards
    work continues."""
    one = start_on(service, small_disk)
    job = one.submit_glyphs(spec=SHORT)
    before = one.succeeded(job)
    filler = small_disk / "others"
    with open(filler, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(1 << 16)):
                pass
    problem(one.post("/v1/datasets", data=nets.block_net(), headers=RAW), 507, "disk_full")
    assert one.job(job) == before and one.result(job)
    assert one.get("/healthz").status_code == 200
    filler.unlink()
    one.succeeded(one.submit_glyphs("glyph_mobilenet", spec=SHORT))
    assert nothing_on_its_way(one)


def test_files_may_not_grow(service, tmp_path):
    """The system's limit of a file's size is reached in the middle of a file."""
    limit = 1 << 20
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        one = service()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    problem(one.post("/v1/datasets", data=data_of(tmp_path, 1, 2 * limit), headers=RAW),
            507, "disk_full")
    assert nothing_on_its_way(one) and one.stored_files() == []
    one.upload("datasets", data_of(tmp_path, 1, limit // 2))
