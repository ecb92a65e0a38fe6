# SPDX-License-Identifier: Apache-2.0
"""Several daemons over one PostgreSQL and one bucket, and clients that know all of them."""

import random
import threading
import time

import requests

from service import DATA, ENDED, FEW_SAMPLES, Service, eventually

LEASE = 3  # seconds
QUICK = {"random_samples": 2}
SOME = {"max_samples": 4}
# The jobs that clients submit: a model, and how it is calibrated. Equal jobs have the same
# result, wherever they run.
ASKED = [(model, calibration) for model in ("glyph_resnet", "glyph_se")
         for calibration in (QUICK, SOME)]


class Node(Service):
    """A daemon that its supervisor starts again until it listens, also where its database is
    gone for a while. While it does not listen it has no URL."""

    url = None

    def start(self, **environment):
        deadline = time.monotonic() + 120
        while True:
            try:
                return self.begin(**environment)
            except AssertionError:
                assert time.monotonic() < deadline, self.log.read_text()[-4000:]
                if self.process.poll() is None:
                    self.process.kill()
                self.process.wait()
                self.process = None
                time.sleep(0.3)

    def is_ready(self):
        return self.http.get(self.url + "/readyz", timeout=30).status_code == 200

    def kill(self):
        self.url = None
        super().kill()

    def stop(self):
        self.url = None
        super().stop()


class Cluster:
    """Daemons that share a record and a bucket. Each has a state folder of its own."""

    def __init__(self, database, bucket, folder, prefix, **settings):
        self.database, self.bucket, self.folder = database, bucket, folder
        self.prefix = prefix
        self.settings = {"QDQD_STORE_URL": database.url, "QDQD_CLUSTER_LEASE": str(LEASE),
                         **bucket.settings(prefix), **settings}
        self.nodes = []

    def add(self, **settings):
        """Starts one more daemon."""
        node = Node(self.folder / f"node{len(self.nodes)}", **{**self.settings, **settings})
        self.nodes.append(node)
        node.start()
        eventually(node.is_ready, 60)
        return node

    def stop(self):
        for node in self.nodes:
            node.stop()

    # --- what is stored ----------------------------------------------------------------

    def named(self):
        """Returns the digests of all blobs that rows name."""
        return {row[0].split(":")[1] for row in self.database.rows(
            'SELECT id FROM "qdqd".files UNION SELECT result_model FROM "qdqd".jobs'
            ' UNION SELECT report FROM "qdqd".jobs UNION SELECT frozen FROM "qdqd".jobs'
            ' UNION SELECT blob FROM "qdqd".observations') if row[0]}

    def stored(self):
        """Returns the digests of all objects in the bucket, and "marks/DIGEST"."""
        skip = len(f"{self.prefix}/_/")
        return {key[skip:] for key in self.bucket.keys(f"{self.prefix}/_/")}


class Client(threading.Thread):
    """Submits jobs one after the other, to a node of its own or, where that cannot be reached,
    to the others, and waits for the end of each, until `enough(client)`.

    A request is sent again after 503 and after an error that is in `forgiven`, for two minutes.
    Each has an Idempotency-Key, so that no job is submitted twice."""

    def __init__(self, cluster, number, seed, enough, forgiven):
        super().__init__()
        self.cluster, self.number, self.enough = cluster, number, enough
        self.forgiven = forgiven
        self.dice = random.Random(f"{seed} {number}")
        self.accepted = {}  # what was asked, by job
        self.deleting, self.deleted = set(), set()
        self.failure = None
        self.sent = self.again = 0
        self.http = requests.Session()
        self.http.trust_env = False

    def ask(self, method, path, **options):
        """Returns the first answer that is not 503."""
        deadline = time.monotonic() + 120
        nodes = self.cluster.nodes
        turn = self.number if self.dice.random() < 0.8 else self.dice.randrange(len(nodes))
        last = "no node listens"
        while time.monotonic() < deadline:
            url = nodes[turn % len(nodes)].url
            turn += 1
            try:
                if url:
                    self.sent += 1
                    answer = self.http.request(method, url + path, timeout=10, **options)
                    if answer.status_code != 503:
                        return answer
                    assert "Retry-After" in answer.headers, answer.text
                    last = answer.text
            except self.forgiven as error:
                last = repr(error)
            self.again += 1
            time.sleep(0.05)
        raise AssertionError(f"{method} {path}: {last}")

    def expect(self, statuses, method, path, **options):
        answer = self.ask(method, path, **options)
        assert answer.status_code in statuses, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    def upload(self, kind, path):
        return self.expect((200, 201), "POST", f"/v1/{kind}", data=path.read_bytes(), headers={
            "Content-Type": "application/octet-stream"}).json()["id"]

    def submit(self):
        asked = self.dice.choice(ASKED)
        model, calibration = asked
        body = {"model": self.upload("models", DATA / f"{model}.onnx"),
                "spec": {"evaluate": False, "calibration": calibration},
                "fresh": self.dice.random() < 0.8}
        if calibration is SOME:
            body["calibration"] = self.upload("datasets", FEW_SAMPLES)
        key = f"{self.number}-{self.dice.getrandbits(64):x}"
        answer = self.expect((200, 202), "POST", "/v1/jobs", json=body,
                             headers={"Idempotency-Key": key})
        job = answer.json()["id"]
        self.accepted[job] = asked
        return job

    def wait(self, job):
        while True:
            state = self.expect((200,), "GET", f"/v1/jobs/{job}?wait=5").json()["state"]
            if state in ENDED:
                return

    def delete_one(self):
        left = sorted(set(self.accepted) - self.deleted)
        if not left:
            return
        job = self.dice.choice(left)
        before = job in self.deleting
        self.deleting.add(job)
        answer = self.ask("DELETE", f"/v1/jobs/{job}")
        # An answer that was lost may have been 204.
        assert answer.status_code in (204, 404, 409), answer.text
        assert answer.status_code != 404 or before or self.again, answer.text
        if answer.status_code != 409:
            self.deleted.add(job)

    def run(self):
        try:
            while not self.enough(self):
                jobs = [self.submit() for _ in range(self.dice.randrange(1, 4))]
                for job in jobs:
                    self.wait(job)
                if self.number == 0 and self.dice.random() < 0.3:
                    self.delete_one()
        except Exception as error:  # noqa: BLE001 - the test raises it again
            self.failure = error
