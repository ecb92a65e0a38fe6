# SPDX-License-Identifier: Apache-2.0
"""The daemon or its carrier is killed at random moments of publications to a real MLflow server,
QDQD_KILLS (50) times. Each publication makes exactly one version.

    QDQD_KILLS=50 build/venv/bin/python -m pytest -s tests/servers/test_killed.py
"""

import os
import random
import signal
import time

import pytest
import requests

import nets
import registry
from carriers import carriers
from service import Service, eventually

KILLS = int(os.environ.get("QDQD_KILLS", 50))
SEED = int(os.environ.get("QDQD_SEED", time.time()))
NAME = "killed-int8"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with registry.running("mlflow", tmp_path_factory.mktemp("mlflow"), "/health") as url:
        yield url


@pytest.fixture
def daemon(server, tmp_path):
    (tmp_path / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {server}\nallow_private = true\n")
    one = Service(tmp_path)
    one.arguments = ["--config", tmp_path / "qdqd.conf"]
    one.start()
    one.model = one.upload("models", nets.block_net())
    yield one
    one.stop()


def versions(server):
    found = requests.get(f"{server}/api/2.0/mlflow/model-versions/search", timeout=30,
                         params={"filter": f"name='{NAME}'", "max_results": 1000}).json()
    return [{tag["key"]: tag["value"] for tag in one["tags"]}
            for one in found.get("model_versions", [])]


def publish(daemon):
    answer = daemon.post("/v1/jobs", json={
        "model": daemon.model, "fresh": True, "spec": {"calibration": {"random_samples": 2}},
        "publish": [{"remote": "prod", "ref": f"models:/{NAME}", "alias": "challenger"}]})
    job = answer.json()["id"]
    assert daemon.get(f"/v1/jobs/{job}?wait=60").json()["state"] == "succeeded"
    return job


def delivered(daemon, job):
    def reached():
        [one] = daemon.get(f"/v1/jobs/{job}").json()["deliveries"]
        assert one["state"] != "failed", one
        return one if one["state"] == "delivered" else None
    return eventually(reached, seconds=120, every=0.05)


def kill(daemon, victim):
    """Kills the daemon, or the carrier if one runs. Returns whether anything was killed."""
    if victim == "daemon":
        daemon.kill()
        daemon.start()
        return True
    found = carriers(daemon)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return bool(found)


def test_killed_at_random_moments(server, daemon):
    dice = random.Random(SEED)
    times = []
    for _ in range(6):
        job = publish(daemon)
        began = time.monotonic()
        delivered(daemon, job)
        times.append(time.monotonic() - began)
    took = min(times)
    jobs, kills, late = len(times), 0, 0
    while kills < KILLS:
        job = publish(daemon)
        jobs += 1
        time.sleep(dice.uniform(0, took))
        pending = daemon.get(f"/v1/jobs/{job}").json()["deliveries"][0]["state"] == "pending"
        if kill(daemon, dice.choice(["daemon", "carrier"])):
            kills += pending
            late += not pending
            took *= 1.1 if pending else 0.8  # so that most kills are within publications
        location = delivered(daemon, job)["location"]
        mine = [one for one in versions(server) if one["qdqd.job"] == job]
        assert len(mine) == 1, (SEED, mine)
        assert location == f"models:/{NAME}/{jobs}", (SEED, location)
    assert len(versions(server)) == jobs
    print(f"seed {SEED}: {kills} kills within publications of {min(times):.2f} s and more, {late} after them; "
          f"{jobs} jobs, {jobs} versions")
