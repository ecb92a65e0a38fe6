# SPDX-License-Identifier: Apache-2.0
"""hostile.py [MINUTES]: what two tenants notice of a third one that attacks the daemon.

The time is divided into turns of about five minutes, so that both loads see the same machine.
In the first fifth of a turn three tenants send jobs; in the rest of it the third attacks
instead, with as many clients: models whose constants crash a worker, functions that double,
slow scripts, floods of large requests and lists, uploads until its room is used up, uploads
that stop in the middle, requests that can be read in two ways. The state folder is on a disk of
512 MB where that can be mounted, and the daemon's main process (its workers have memory of
their own) in a control group of 512 MiB where there is one.

Printed are, for each load, the other two tenants' waits from submit to end, their lost jobs, the
times of /healthz, and the daemon's largest private memory. Exits with 1 when a job was lost, the
median wait is over 1.3 times as long, /healthz took over a second, or memory passed 256 MiB."""

import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import jobs as small
from common import INSTALLED, MIB, machine, table

DISK, MEMORY, MOST = "512m", 512 * MIB, 256
CLIENTS = 2  # of each tenant
TURN = 5  # minutes
HONEST_PART = 0.2  # of a turn
ROOM = {"QDQD_TENANTS_MAX_BYTES": "64M", "QDQD_TENANTS_QUEUE": "50",
        "QDQD_WORKERS_SHORT_TIMEOUT": "20", "QDQD_HTTP_TIMEOUT": "10"}
RAW, JSON = "application/octet-stream", "application/json"
HONEST = {"calibration": {"random_samples": 400}, "evaluate": False}


# --- hostile requests -----------------------------------------------------------------

def net(nodes, initializers=(), functions=()):
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in initializers])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets,
                             functions=functions).SerializeToString()


def crashing():
    """A division that the processor refuses: the smallest integer by -1."""
    return net([helper.make_node("Div", ["a", "b"], ["c"]),
                helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
                helper.make_node("Add", ["x", "d"], ["y"])],
               [("a", np.array([-2 ** 63], np.int64)), ("b", np.array([-1], np.int64))])


def doubling(n=40):
    """Functions that call each other, 2^n nodes in all."""
    rows = []
    for i in range(n):
        inner = ("Relu", "") if i == 0 else (f"f{i - 1}", "local")
        rows.append(helper.make_function(
            "local", f"f{i}", ["a"], ["r"],
            [helper.make_node(inner[0], ["a"], ["t"], domain=inner[1]),
             helper.make_node(inner[0], ["t"], ["r"], domain=inner[1])],
            [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]))
    return net([helper.make_node(f"f{n - 1}", ["x"], ["y"], domain="local")], (), rows)


SLOW = {"cases": [{"name": f"slow{i}", "lua":
                   "return {case = function(m, s) local t = {} for i = 1, 400000 do "
                   "t[i % 100] = ('x'):rep(100) end return {} end}"} for i in range(64)]}


class Tenant:
    def __init__(self, load, name, seed):
        self.load, self.name, self.random = load, name, random.Random(seed)
        self.token = load.tokens[name]

    def call(self, method, path, body=None, kind=RAW, timeout=90):
        connection = http.client.HTTPConnection("127.0.0.1", self.load.port, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content[:1] == b"{" else content
        finally:
            connection.close()

    def ask(self, method, path, document):
        return self.call(method, path, json.dumps(document).encode(), JSON)

    # --- honest ---------------------------------------------------------------------

    def job(self):
        """Uploads a model, sends a job and waits for its end."""
        status, model = self.call("POST", "/v1/models",
                                  small.small_model(self.random.randrange(50)))
        begin = time.monotonic()
        job = None
        if status in (200, 201):
            status, job = self.ask("POST", "/v1/jobs?wait=60",
                                   {"model": model["id"], "spec": HONEST, "fresh": True})
        ended = status in (200, 202) and job["state"] == "succeeded"
        if not ended:
            self.load.lost.append(f"{self.name}: {status} {str(job or model)[:300]}")
        self.load.waits.append(time.monotonic() - begin)

    # --- hostile ----------------------------------------------------------------------

    def crash(self):
        status, model = self.call("POST", "/v1/models", crashing())
        if status in (200, 201):
            self.ask("POST", "/v1/jobs?wait=20", {"model": model["id"], "fresh": True,
                     "spec": {"calibration": {"random_samples": 2}}})

    def double(self):
        status, model = self.call("POST", "/v1/models", doubling())
        if status in (200, 201):
            self.ask("POST", "/v1/plan", {"model": model["id"]})

    def scripts(self):
        _, model = self.call("POST", "/v1/models", small.small_model(1))
        self.ask("POST", "/v1/plan", {"model": model["id"], "spec": SLOW})

    def flood(self):
        text = "[" + "{}," * 300_000 + "{}]"
        body = ('{"model": "sha256:' + 64 * "0" + '", "spec": {"cases": ' + text + "}}").encode()
        self.call("POST", "/v1/jobs", body, JSON)

    def lists(self):
        _, model = self.call("POST", "/v1/models", small.small_model(2))
        for i in range(20):
            self.ask("POST", "/v1/jobs", {
                "model": model["id"], "fresh": True, "priority": 1 << 40,
                "labels": {str(k): "v" * 50 for k in range(60)}, "spec": {
                    "calibration": {"random_samples": 200},
                    "cases": [{"name": "c", "lua": "return {case = function() end} --" +
                               "x" * 100_000}]}})
        for _ in range(5):
            self.call("GET", "/v1/jobs?limit=500")

    def fill(self):
        rows = self.random.randrange(1 << 20)
        header = b"\x93NUMPY\1\0\x76\0" + str({"descr": "<f4", "fortran_order": False, "shape":
                                              (1 << 16, 64)}).ljust(117).encode() + b"\n"
        self.call("POST", "/v1/datasets", header + rows.to_bytes(4, "little") * (1 << 22))

    def stall(self):
        with contextlib.ExitStack() as stack:
            for _ in range(30):
                one = stack.enter_context(
                    socket.create_connection(("127.0.0.1", self.load.port), 10))
                one.sendall(f"POST /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                            f"{self.token}\r\nContent-Length: 900000\r\n\r\nabc".encode())
            time.sleep(2)

    def smuggle(self):
        for head in ("Content-Length : 40\r\n", "Transfer-Encoding : chunked\r\n",
                     "Content-Length: 4\r\nContent-Length: 40\r\n"):
            with socket.create_connection(("127.0.0.1", self.load.port), 10) as one:
                one.sendall(f"POST /v1/models HTTP/1.1\r\nHost: x\r\n{head}\r\n"
                            "GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                one.recv(4096)

    ATTACKS = [crash, crash, double, scripts, flood, lists, fill, stall, smuggle]

    def run(self, attacks, until):
        while time.monotonic() < until:
            what = self.random.choice(self.ATTACKS) if attacks else Tenant.job
            try:
                what(self)
                self.load.done[what.__name__] += 1
            except (OSError, http.client.HTTPException) as error:
                self.load.done[f"{what.__name__}: {type(error).__name__}"] += 1
                if not attacks:
                    self.load.lost.append(f"{self.name}: {error!r}")


# --- the daemon and its surroundings ------------------------------------------------------

class Load:
    def __init__(self, port, tokens):
        self.port, self.tokens = port, tokens
        self.waits, self.lost, self.healthz, self.memory = [], [], [], []
        self.done = Counter()

    def watch(self, pid, until):
        while time.monotonic() < until:
            begin = time.monotonic()
            one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                one.request("GET", "/healthz")
                one.getresponse().read()
            except (OSError, http.client.HTTPException) as error:
                self.lost.append(f"/healthz: {error!r}")
            one.close()
            self.healthz.append(time.monotonic() - begin)
            text = Path(f"/proc/{pid}/status").read_text()
            self.memory.append(int(text.split("RssAnon:")[1].split()[0]) / 1024)
            time.sleep(0.1)


@contextlib.contextmanager
def small_disk(folder):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder],
                          capture_output=True)
    yield done.returncode == 0
    if done.returncode == 0:
        subprocess.run(["umount", "--lazy", folder], check=True)


class Confined(threading.Thread):
    """Keeps the daemon's main process, and no worker, in a group with little memory."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        root = Path("/sys/fs/cgroup")
        unified = (root / "cgroup.controllers").exists()
        self.root = root if unified else root / "memory"
        self.group = self.root / f"qdqd-hostile-{pid}"
        self.pid, self.over = pid, threading.Event()
        try:
            self.group.mkdir()
            limit = "memory.max" if unified else "memory.limit_in_bytes"
            (self.group / limit).write_text(str(MEMORY))
            (self.group / "cgroup.procs").write_text(str(pid))
            self.works = True
        except OSError:
            self.works = False

    def run(self):
        while self.works and not self.over.wait(0.02):
            with contextlib.suppress(OSError):
                for one in (self.group / "cgroup.procs").read_text().split():
                    if int(one) != self.pid:
                        (self.root / "cgroup.procs").write_text(one)

    def close(self):
        self.over.set()
        with contextlib.suppress(OSError):
            self.group.rmdir()


def token(folder, tenant):
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "token", "add", f"of-{tenant}",
                           "--tenant", tenant, "--state-dir", folder], check=True,
                          capture_output=True, text=True).stdout.strip()


def add_turn(load, pid, attacks, seconds):
    """Has all tenants at work for so long, and adds what they notice to the load's lists."""
    port, tokens, until = load.port, load.tokens, time.monotonic() + seconds
    threads = [threading.Thread(target=load.watch, args=(pid, until))]
    for n, name in enumerate(name for name in tokens for _ in range(CLIENTS)):
        one = Load(port, tokens) if name == "c" else load
        one.done = load.done
        threads.append(threading.Thread(target=Tenant(one, name, n).run,
                                        args=(attacks and name == "c", until)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(minutes=10):
    turns = max(1, round(float(minutes) / TURN))
    seconds = 60 * float(minutes) / turns
    os.environ.update(ROOM)
    with tempfile.TemporaryDirectory() as folder, small_disk(folder) as is_small:
        tokens = {name: token(folder, name) for name in "abc"}
        daemon = small.Daemon(folder)
        pid = daemon.process.pid
        confined = Confined(pid)
        confined.start()
        honest, hostile = loads = [Load(daemon.port, tokens) for _ in range(2)]
        for _ in range(turns):
            add_turn(honest, pid, False, HONEST_PART * seconds)
            add_turn(hostile, pid, True, (1 - HONEST_PART) * seconds)
        alive = daemon.process.poll() is None
        daemon.stop()
        confined.close()
    machine()
    print(f"disk of {DISK}: {is_small}; group of 512 MiB: {confined.works}; "
          f"the daemon lived: {alive}")
    rows = []
    for name, load in zip(("honest", "hostile"), loads):
        rows.append([name, len(load.waits), *(f"{np.quantile(load.waits, q):.3f}"
                                              for q in (.5, .95)), len(load.lost),
                     f"{max(load.healthz):.3f}", f"{max(load.memory):.0f}"])
    table(f"Two tenants beside a third one, {turns} turns of {seconds:.0f} s",
          ["the third", "jobs of the two", "wait, median, s", "p95", "lost",
           "/healthz, longest, s", "RssAnon, largest, MiB"], rows)
    print("\nwhat was done:", dict(hostile.done))
    for load in loads:
        for line in load.lost[:10]:
            print("lost:", line)
    ratio = np.median(hostile.waits) / np.median(honest.waits)
    print(f"wait beside a hostile tenant, beside an honest one = 1: {ratio:.2f}")
    sys.exit(0 if alive and not honest.lost and not hostile.lost and ratio <= 1.3 and
             max(hostile.healthz) < 1 and max(hostile.memory) < MOST else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
