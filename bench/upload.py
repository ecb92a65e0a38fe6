# SPDX-License-Identifier: Apache-2.0
"""upload.py [MIB [ROUNDS]]: measures a large upload, compared with sha256sum, and idle
event streams.

The upload is an array, sent as it is over loopback. Its time ends when a worker has
checked it and it is stored and synced. sha256sum reads the same file; the two take turns.
Then 200 clients watch a job that does not change."""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import jobs as small
from common import MIB, machine, peak_anonymous, table

STREAMS = 200


class Peak:
    """Measures the largest RssAnon of a process, in MiB, while the block runs."""

    def __init__(self, pid):
        self.pid, self.result, self.end = pid, {"anon": 0}, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=peak_anonymous,
                                       args=(self.pid, self.end, self.result))
        self.thread.start()
        return self

    def __exit__(self, *exc):
        time.sleep(0.01)
        self.end.set()
        self.thread.join()
        self.mib = self.result["anon"] / 1024


def upload(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    start = time.monotonic()
    with open(path, "rb") as file:
        connection.request("POST", "/v1/datasets", file,
                           {"Content-Type": "application/octet-stream",
                            "Content-Length": str(os.path.getsize(path))})
        answer = connection.getresponse()
        document = json.loads(answer.read())
    if answer.status != 201:
        sys.exit(f"{answer.status} {document}")
    seconds = time.monotonic() - start
    connection.request("DELETE", f"/v1/datasets/{document['id']}")
    connection.getresponse().read()
    return seconds


def sha256sum(path):
    start = time.monotonic()
    subprocess.run(["sha256sum", path], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def watch(port, job):
    client = socket.create_connection(("127.0.0.1", port), 60)
    client.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
                   .encode())
    client.recv(4096)
    return client


def main(mib=1024, rounds=3):
    mib, rounds = int(mib), int(rounds)
    os.environ["QDQD_TEST_WORKER_PAUSE_MS"] = "600000"  # the job that is watched
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = f"{folder}/data.npy"
        np.save(path, np.random.default_rng(1).standard_normal(
            (mib, MIB // 4), np.float32))
        daemon = small.Daemon(f"{folder}/state")
        pid, first = daemon.process.pid, daemon.connect()
        sums, uploads = [], []
        with Peak(pid) as loaded:
            for _ in range(rounds):
                sums.append(sha256sum(path))
                uploads.append(upload(daemon.port, path))
        model = small.call(first, "POST", "/v1/models", small.small_model())["id"]
        job = small.call(first, "POST", "/v1/jobs",
                         json.dumps({"model": model, "spec": small.SPEC}))["id"]
        with Peak(pid) as before:
            time.sleep(1)
        clients = [watch(daemon.port, job) for _ in range(STREAMS)]
        with Peak(pid) as watched:
            time.sleep(2)
        for client in clients:
            client.close()
        daemon.process.kill()
        daemon.process.wait()
    machine()
    table(f"An upload of {mib} MiB, best of {rounds}",
          ["", "measured", "budget"],
          [["sha256sum, s", f"{min(sums):.2f}", ""],
           ["upload, s", f"{min(uploads):.2f}", ""],
           ["rate of sha256sum's", f"{min(sums) / min(uploads):.2f}", "at least 0.5"],
           ["daemon's peak RssAnon, MiB", f"{loaded.mib:.1f}", "under 64"],
           [f"RssAnon with {STREAMS} idle event streams, MiB",
            f"{watched.mib:.1f} (before {before.mib:.1f})", "under 64"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
