# SPDX-License-Identifier: Apache-2.0
"""The daemon itself never connects to anything while it fetches, publishes, tells, polls and is
told of models: its carriers do. strace shows the connections of each process."""

import re
import shutil
import time
from datetime import datetime, timezone

import pytest
from standardwebhooks import Webhook

import nets
from bucket import Bucket
from database import Server
from far import SECRET, Far
from service import INSTALLED, Service, eventually

CALLS = "connect,execve,clone,clone3,fork,vfork"


@pytest.fixture
def traced(tmp_path):
    if not shutil.which("strace"):
        pytest.skip("strace is not here")
    far = Far(nets.block_net(), **{"MLmodel": b"flavors: {}\n"})
    spec = '{"calibration": {"random_samples": 2}}'
    for name, text in {"secret": SECRET, "spec.json": spec}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    rule = (f"remote = prod\nspec = {tmp_path}/spec.json\n"
            "publish = models:/{name}-int8@challenger\n")
    (tmp_path / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\n"
        f"[remote told]\nkind = webhook\nurl = {far.url}/told\nallow_private = true\n"
        f"secret = {tmp_path}/secret\n"
        f"[hook glyph]\nsecret = {tmp_path}/secret\nmodels = glyph\n{rule}"
        f"[hook polled]\nmodels = polled\npoll = 1\n{rule}")
    # strace leaves the process id to the daemon (-D).
    program = tmp_path / "traced"
    program.write_text(f"#!/bin/sh\nexec strace -D -f -o {tmp_path}/calls -e trace={CALLS} "
                       f"{INSTALLED}/sbin/qdqd \"$@\"\n")
    program.chmod(0o755)
    daemon = Service(tmp_path)
    daemon.arguments = ["--config", tmp_path / "qdqd.conf"]
    daemon.program = program
    yield daemon, far
    far.close()


def connections(calls, daemon):
    """Returns the connections to addresses of the internet: those of the daemon's threads, and
    those of other processes, each with the program that the process is."""
    program, parent, own, others = {}, {}, [], []
    lines = [(int(line.split(maxsplit=1)[0]), line.split(maxsplit=1)[1])
             for line in calls.splitlines()]
    for pid, call in lines:
        new = re.search(r"\b(?:clone3?|v?fork)(?:\(| resumed).* = (\d+)$", call)
        if new:
            parent[int(new[1])] = pid
        if call.startswith("execve(") and pid != daemon:
            program[pid] = call
    for pid, call in lines:
        if "AF_INET" not in call:
            continue
        process = pid
        while process not in program and process in parent:
            process = parent[process]  # a thread, or a child that executes nothing
        (others if process in program else own).append((call, program.get(process)))
    return own, others


def use_remotes(daemon, far):
    """Fetches, publishes, tells, polls and is told of models, and stops the daemon."""
    model = daemon.upload("models", nets.block_net())
    to = [{"remote": "prod", "ref": "models:/a-int8"}]
    fetched = daemon.post("/v1/jobs", json={"model": "prod:models:/glyph/1", "publish": to,
                                            "spec": {"calibration": {"random_samples": 2}}})
    missing = daemon.post("/v1/jobs", json={"model": "prod:models:/none/1"})
    uploaded = daemon.post("/v1/jobs", json={"model": model, "publish": to, "fresh": True,
                                             "spec": {"calibration": {"random_samples": 2}}})
    body = '{"type": "model_version.created", "data": {"name": "glyph", "version": "1"}}'
    now = datetime.now(timezone.utc).replace(microsecond=0)
    good = {"webhook-id": "m1", "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(SECRET).sign("m1", now, body)}
    told = daemon.post("/v1/hooks/glyph", data=body, headers=good)
    forged = daemon.post("/v1/hooks/glyph", data=body, headers={**good, "webhook-id": "m2"})
    assert (told.status_code, forged.status_code) == (202, 401)
    far.versions["polled"] = [{"name": "polled", "version": "1", "source": "models:/m-0",
                               "status": "READY", "tags": [],
                               "creation_timestamp": int(time.time() * 1000)}]
    for answer in (fetched, missing, uploaded, told):
        daemon.get(f"/v1/jobs/{answer.json()['id']}?wait=60")

    def all_delivered():
        jobs = daemon.get("/v1/jobs").json()["jobs"]
        return len(jobs) == 5 and all(one["ended_at"] for one in jobs) and all(
            one["state"] == "delivered" for job in jobs for one in job["deliveries"])

    eventually(all_delivered, seconds=120)
    assert far.versions["polled-int8"] and far.versions["a-int8"] and far.events()
    daemon.stop()


def test_the_daemon_does_not_connect(traced, tmp_path):
    daemon, far = traced
    daemon.start(program=daemon.program)
    pid = daemon.process.pid
    use_remotes(daemon, far)
    own, others = connections((tmp_path / "calls").read_text(), pid)
    assert own == []
    # The trace does show connections: those of carriers, and no other process's.
    assert len(others) >= 8 and all("--carrier" in (by or "") for _, by in others), others
    print(f"{len(others)} connections of carriers, none of the daemon")


def test_the_daemon_connects_to_postgresql_alone(traced, tmp_path):
    """With store.url and a bucket, which is the carriers' too."""
    daemon, far = traced
    bucket = Bucket(tmp_path)
    (tmp_path / "postgresql").mkdir()
    server = Server(tmp_path / "postgresql")
    try:
        bucket.start()
        daemon.environment = {"QDQD_STORE_URL": server.url, "QDQD_STORE_DIRECT_URL": server.url,
                              **bucket.settings()}
        daemon.start(program=daemon.program)
        pid = daemon.process.pid
        use_remotes(daemon, far)
    finally:
        server.close()
        bucket.stop()
    own, others = connections((tmp_path / "calls").read_text(), pid)
    assert own and all(f"sin_port=htons({server.port})" in call for call, _ in own), own
    to_bucket = [call for call, _ in others if f"sin_port=htons({bucket.port})" in call]
    assert len(to_bucket) >= 1 and all("--carrier" in (by or "") for _, by in others), others
