# SPDX-License-Identifier: Apache-2.0
"""Tenants on a disk that is too small for all that they store together."""

import re

import pytest

import access
import nets
from service import problem
from test_storage import RAW, data_of, small_disk, start_on

pytestmark = pytest.mark.long
__all__ = ["small_disk"]  # a fixture


def gone(one, tenant):
    """Returns the jobs and files of a tenant that made room."""
    return re.findall(rf"event=(job|file)_swept .*tenant={tenant} reason=room",
                      one.log.read_text())


def finish_job(one):
    job = one.post("/v1/jobs", json={
        "model": one.upload("models", nets.block_net()),
        "calibration": one.upload("datasets", nets.samples())}).json()["id"]
    one.succeeded(job)
    return job


def store(one, tmp_path, n, megabytes):
    return one.post("/v1/datasets", data=data_of(tmp_path, n, megabytes << 20), headers=RAW)


def test_the_disk_that_another_tenant_fills(small_disk, service, tmp_path):
    """48 MB, of which 16 stay free. One tenant has 9 MB, and the other one all the rest."""
    daemon = start_on(service, small_disk)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    job = finish_job(a)
    assert store(a, tmp_path, 1, 8).status_code == 201
    for n in range(2, 8):
        assert store(b, tmp_path, n, 5).status_code == 201
    assert gone(daemon, "b") and not gone(daemon, "a")
    filled = []
    for n in range(8, 16):  # b takes what it gave back
        filled.append(store(b, tmp_path, n, 1).status_code)
    # The disk is short, and it is not a that filled it.
    for n in range(16, 22):
        answer = store(a, tmp_path, n, 5)
        if answer.status_code == 507:
            break
        assert answer.status_code == 201
    problem(answer, 507, "disk_full")
    assert not gone(daemon, "a")
    assert a.job(job)["state"] == "succeeded" and a.result(job)
    # Once b stores something again, it gives back more than it takes.
    before = len(gone(daemon, "b"))
    assert store(b, tmp_path, 30, 5).status_code == 201
    assert len(gone(daemon, "b")) > before
    assert store(a, tmp_path, 31, 1).status_code == 201
    assert not gone(daemon, "a")
    assert a.job(job)["state"] == "succeeded" and a.result(job)


def test_who_has_more_than_a_share_makes_room(small_disk, service, tmp_path):
    daemon = start_on(service, small_disk)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    kept = finish_job(b)
    for n in range(8):
        assert store(a, tmp_path, n, 6).status_code == 201
    assert gone(daemon, "a") and not gone(daemon, "b")
    assert b.job(kept)["state"] == "succeeded" and b.result(kept)
