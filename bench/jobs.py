# SPDX-License-Identifier: Apache-2.0
"""jobs.py [SECONDS [CLIENTS]]: counts small, durable jobs in a second through a daemon.

Each client keeps one connection, sends one job after the other and waits for each job's
end. A job quantizes a network of one layer with given ranges and `"fresh": true`, so that
every job runs. One more client asks for a job's state meanwhile, and its times are
printed."""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from common import INSTALLED, machine, table

SPEC = {"calibration": {"ranges": {"x": [-1, 1]}}, "evaluate": False}


def small_model(seed=1):
    weight = np.random.default_rng(seed).standard_normal((16, 16), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["y"], "dense")], "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16])],
        [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 13)]
                             ).SerializeToString()


class Daemon:
    def __init__(self, folder, **environment):
        self.process = subprocess.Popen(
            [INSTALLED / "sbin" / "qdqd", "--listen", "127.0.0.1:0", "--state-dir",
             folder], env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"^listening on \S*?:(\d+)", line):
                self.port = int(found[1])
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def call(connection, method, path, body=None):
    headers = {"Content-Type": "application/json"} if isinstance(body, str) else {
        "Content-Type": "application/octet-stream"}
    connection.request(method, path, body, headers if body else {})
    answer = connection.getresponse()
    document = json.loads(answer.read())
    if answer.status >= 300:
        sys.exit(f"{method} {path}: {answer.status} {document}")
    return document


def send_jobs(daemon, model, until, times):
    connection = daemon.connect()
    body = json.dumps({"model": model, "spec": SPEC, "fresh": True})
    while (start := time.monotonic()) < until:
        job = call(connection, "POST", "/v1/jobs?wait=60", body)
        if job["state"] != "succeeded":
            sys.exit(f"a job ended {job['state']}: {job['error']}")
        times.append(time.monotonic() - start)


def ask(daemon, job, until, times):
    connection = daemon.connect()
    while (start := time.monotonic()) < until:
        call(connection, "GET", f"/v1/jobs/{job}")
        times.append(time.monotonic() - start)
        time.sleep(0.005)


def milliseconds(times, share):
    return f"{1000 * np.quantile(times, share):.1f}"


def main(seconds=10, clients=4):
    seconds, clients = float(seconds), int(clients)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        daemon = Daemon(folder)
        first = daemon.connect()
        model = call(first, "POST", "/v1/models", small_model())["id"]
        job = call(first, "POST", "/v1/jobs?wait=60",
                   json.dumps({"model": model, "spec": SPEC}))["id"]
        start = time.monotonic()
        jobs, asked = [[] for _ in range(clients)], []
        threads = [threading.Thread(target=send_jobs, args=(daemon, model,
                                                            start + seconds, times))
                   for times in jobs]
        threads.append(threading.Thread(target=ask, args=(daemon, job, start + seconds,
                                                          asked)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        passed = time.monotonic() - start
        daemon.stop()
    every = [time for times in jobs for time in times]
    machine()
    table(f"Jobs of {clients} clients, {passed:.0f} s",
          ["", "measured", "budget"],
          [["jobs a second", f"{len(every) / passed:.0f}", "at least 200"],
           ["a job, median and p99, ms",
            f"{milliseconds(every, .5)}, {milliseconds(every, .99)}", ""],
           ["GET of a job meanwhile, median and p99, ms",
            f"{milliseconds(asked, .5)}, {milliseconds(asked, .99)}",
            "p99 under 5"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
