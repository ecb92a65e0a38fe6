# SPDX-License-Identifier: Apache-2.0
"""Daemon and workers are killed at random moments under load; no job that was answered
with 202 is lost, but those whose deletion was asked for. QDQD_ROUNDS=300 runs more rounds."""

import os
import random
import threading
import time

import requests

from service import DATA, eventually, kill_process
from test_leftovers import check_blobs

ROUNDS = int(os.environ.get("QDQD_ROUNDS", "6"))
FINAL = {"succeeded", "failed"}
SHORT = {"evaluate": False, "calibration": {"max_samples": 4}}
RANGES = {"evaluate": False, "calibration": {"random_samples": 1}}


class Client(threading.Thread):
    """Submits jobs one after the other, by id and with their files, whatever happens."""

    def __init__(self, one, seed, stop):
        super().__init__()
        self.one, self.stop = one, stop
        self.random = random.Random(seed)
        self.accepted, self.unexpected, self.refused = [], [], 0
        # One client deletes some of its jobs; an answer to that may be lost.
        self.deletes, self.deleting, self.deleted = seed == 0, set(), set()

    def send(self, session):
        name = self.random.choice(["glyph_resnet", "glyph_se"])
        spec = self.random.choice([SHORT, RANGES])
        files = {"model": (DATA / f"{name}.onnx").read_bytes(), "fresh": "true",
                 "spec": str(spec).replace("'", '"').replace("False", "false")}
        if spec is SHORT:
            files["calibration"] = (DATA / "calib_256.npz").read_bytes()
        answer = session.post(f"{self.one.url}/v1/jobs", files=files, timeout=30)
        if answer.status_code == 500 and answer.json()["code"] == "worker_died":
            self.refused += 1  # the worker that reads the model was killed, and the next one, too
            return
        if answer.status_code != 202:
            self.unexpected.append((answer.status_code, answer.text))
            return
        job = answer.json()["id"]
        self.accepted.append(job)
        session.get(f"{self.one.url}/v1/jobs/{job}", params={"wait": 20}, timeout=30)

    def delete(self, session, job):
        may_be_gone = job in self.deleting
        self.deleting.add(job)
        answer = session.delete(f"{self.one.url}/v1/jobs/{job}", timeout=30)
        if answer.status_code == 204 or (answer.status_code == 404 and may_be_gone):
            self.deleted.add(job)
        elif answer.json().get("code") != "in_use":
            self.unexpected.append((answer.status_code, answer.text))

    def run(self):
        while not self.stop.is_set():
            try:
                with requests.Session() as session:
                    left = sorted(set(self.accepted) - self.deleted)
                    if self.deletes and left and self.random.random() < 0.5:
                        self.delete(session, self.random.choice(left))
                    self.send(session)
            except requests.RequestException:
                time.sleep(0.02)  # the daemon was killed


def final_states(one, accepted, deleting):
    """Returns the state of each job, or None while one has not ended. A job whose deletion
    was asked for may be gone."""
    answers = {job: one.get(f"/v1/jobs/{job}") for job in accepted}
    gone = {job for job, answer in answers.items() if answer.status_code == 404}
    assert gone <= deleting
    states = {job: answer.json()["state"] for job, answer in answers.items() if job not in gone}
    return states if set(states.values()) <= FINAL else None


def strike(one, rng):
    """Kills one process: mostly the daemon, which is then started again."""
    workers = one.workers()
    if workers and rng.random() < 0.3:
        try:
            kill_process(rng.choice(workers))
        except ProcessLookupError:
            pass
        return
    one.kill()
    one.start()


def test_rounds(service):
    one = service()
    rng, stop = random.Random(ROUNDS), threading.Event()
    clients = [Client(one, seed, stop) for seed in range(3)]
    for client in clients:
        client.start()
    for _ in range(ROUNDS):
        time.sleep(rng.random() * 0.6)
        strike(one, rng)
    stop.set()
    for client in clients:
        client.join()
    accepted = [job for client in clients for job in client.accepted]
    deleting, deleted = clients[0].deleting, clients[0].deleted
    eventually(lambda: final_states(one, accepted, deleting), 120)
    states = final_states(one, accepted, deleting)
    assert not deleted & set(states)
    print(f"{len(accepted)} jobs accepted, {len(deleting)} deletions asked for, "
          f"{len(deleted)} answered, {len(accepted) - len(states)} jobs gone, "
          f"{sum(client.refused for client in clients)} requests whose workers were killed")
    for job, state in states.items():
        if state == "failed":
            assert one.job(job)["error"]["code"] == "worker_died"
    assert [client.unexpected for client in clients] == [[], [], []]
    assert len(set(accepted)) == len(accepted) >= ROUNDS // 2
    assert list(states.values()).count("succeeded") > len(states) / 2
    check_blobs(one)
    eventually(lambda: one.temporary_files() == [])
    stored = one.stored_files()
    one.kill()
    one.start()
    assert one.stored_files() == stored  # no orphan to be swept
    assert final_states(one, accepted, deleting) == states
