# SPDX-License-Identifier: Apache-2.0
"""soak.py [MINUTES]: runs a mixed load for an hour, and reports whether anything grows.

Side by side there are uploads, jobs that run, are answered from the cache, join others or
are cancelled, event streams, downloads, deletions, invalid requests, and clients that
close their connection early. Retention is a few minutes. The daemon is measured from
outside, ten times a minute. It reaches its steady state when jobs and files have begun to
expire; from then on a straight line is fitted to the minute means of each figure. At the
end the load stops, retention passes, and the figures that are left then are printed, too.

A figure grows when its line rises by more than three times its standard error and, over
the whole time, by more than a twentieth of its mean. The stored files are those of the last two
minutes, of which a machine that others use less has more: their line is that of the figure divided
by the answers of that time, times the mean of these."""

import http.client
import io
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

import jobs as small
from common import MIB, ROOT, machine, table

DATA = ROOT / "tests" / "data"
RETENTION = {"QDQD_RETENTION_JOBS": "90", "QDQD_RETENTION_FILES": "120",
             "QDQD_WORKERS_MAX_JOBS": "200", "QDQD_CACHE_OBSERVATIONS": "4M"}
STEADY = 240  # seconds: the longer retention twice
RAW = {"Content-Type": "application/octet-stream"}
JSON = {"Content-Type": "application/json"}
BOUNDARY = "a-boundary-of-a-form"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


class Load:
    """Shared by the clients: the daemon's address, the stored files and jobs, and counts.
    """

    def __init__(self, port):
        self.port = port
        self.stop = threading.Event()
        self.answers, self.wrong = Counter(), []
        self.glyphs = (DATA / "glyph_se.onnx").read_bytes()
        self.images = (DATA / "calib_256.npz").read_bytes()


def form(**parts):
    body = b""
    for name, value in parts.items():
        body += (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
                 .encode() + (value if isinstance(value, bytes) else value.encode())
                 + b"\r\n")
    return body + f"--{BOUNDARY}--\r\n".encode()


class Client(threading.Thread):
    """Does one random action after the other, mostly on a connection that it keeps."""

    def __init__(self, load, seed):
        super().__init__(daemon=True)
        self.load, self.random = load, random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.connection = None

    def call(self, method, path, body=None, headers=None, expect=(200, 201, 202, 204)):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.load.port,
                                                         timeout=120)
        try:
            self.connection.request(method, path, body, headers or {})
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise
        self.load.answers[answer.status] += 1
        if answer.status not in expect:
            self.load.wrong.append(f"{method} {path}: {answer.status} {content[:200]!r}")
        if answer.getheader("Content-Type", "").endswith("json") and content:
            return answer.status, json.loads(content)
        return answer.status, content

    def model(self):
        """Uploads a small network: a new one each time, or one that is stored already."""
        if self.random.random() < 0.3:
            return self.load.glyphs
        return small.small_model(self.random.randrange(1 << 30))

    def dataset(self, rows):
        file = io.BytesIO()
        np.save(file, self.numbers.standard_normal((rows, 16)).astype(np.float32))
        return file.getvalue()

    # --- actions -------------------------------------------------------------------

    def upload(self):
        _, model = self.call("POST", "/v1/models", self.model(), RAW)
        self.call("GET", f"/v1/models/{model['id']}/info")
        _, data = self.call("POST", "/v1/datasets",
                            self.dataset(self.random.choice([10, 100, 20_000])), RAW)
        self.call("GET", f"/v1/datasets/{data['id']}")
        if self.random.random() < 0.3:
            self.call("DELETE", f"/v1/datasets/{data['id']}", expect=(204, 404, 409))

    def send(self, **members):
        _, model = self.call("POST", "/v1/models",
                             small.small_model(self.random.randrange(20)), RAW)
        body = {"model": model["id"], "spec": small.SPEC, **members}
        status, job = self.call("POST", "/v1/jobs", json.dumps(body), JSON, (202, 429))
        return job if status == 202 else None

    def run_job(self):
        job = self.send(fresh=self.random.random() < 0.5,
                        labels={"round": str(self.random.randrange(5))})
        if not job:
            return
        path = f"/v1/jobs/{job['id']}"
        _, job = self.call("GET", f"{path}?wait=60")
        if job["state"] == "succeeded":
            for what in ("model", "report", "spec"):
                self.call("GET", f"{path}/{what}")
            self.call("GET", f"{path}/report", headers={"Accept": "text/markdown"})
        if self.random.random() < 0.3:
            self.call("DELETE", path, expect=(204, 404, 409))

    def calibrate(self):
        spec = {"evaluate": self.random.random() < 0.2,
                "calibration": {"max_samples": self.random.choice([2, 4, 8])}}
        self.call("POST", "/v1/quantize?wait=120",
                  form(model=self.load.glyphs, calibration=self.load.images,
                       spec=json.dumps(spec),
                       fresh=self.random.choice(["true", "false"])), FORM, (200, 429))

    def cancel(self):
        job = self.send(fresh=True)
        if job:
            time.sleep(self.random.random() * 0.02)
            self.call("POST", f"/v1/jobs/{job['id']}/cancel", b"", expect=(202, 409))

    def events(self):
        """Reads a job's events, sometimes to the end, sometimes not."""
        job = self.send(fresh=True)
        if not job:
            return
        with socket.create_connection(("127.0.0.1", self.load.port), 60) as watcher:
            watcher.sendall(f"GET /v1/jobs/{job['id']}/events HTTP/1.1\r\n"
                            "Host: localhost\r\n\r\n".encode())
            seen = b""
            while b"event: end" not in seen and self.random.random() < 0.9:
                piece = watcher.recv(4096)
                if not piece:
                    break
                seen += piece

    def plan_and_look(self):
        self.call("POST", "/v1/plan", form(model=self.load.glyphs, spec="{}"), FORM)
        _, page = self.call("GET", "/v1/jobs?limit=5")
        if page["next_cursor"]:
            self.call("GET", f"/v1/jobs?limit=5&cursor={page['next_cursor']}")
        for path in ("/healthz", "/readyz", "/version", "/v1/layers", "/openapi.yaml"):
            self.call("GET", path)

    def wrong(self):
        expect = (400, 404, 405, 409, 413, 415, 422)
        self.call("POST", "/v1/models", b"no model", RAW, expect)
        self.call("POST", "/v1/datasets", b"\x93NUMPY\1\0\xff\xff", RAW, expect)
        self.call("POST", "/v1/jobs", b'{"model": ', JSON, expect)
        self.call("POST", "/v1/jobs", json.dumps({"model": "sha256:" + 64 * "0"}), JSON,
                  expect)
        self.call("POST", "/v1/quantize", form(modle=b"x"), FORM, expect)
        self.call("POST", "/v1/quantize", form(model=self.load.glyphs, spec='{"a": 1}'),
                  FORM, expect)
        self.call("GET", "/v1/jobs/nothing", expect=expect)
        self.call("PATCH", "/v1/jobs", expect=expect)

    def go_away(self):
        """Closes the connection in the middle of an upload, of a wait or of a download.
        """
        head = self.random.choice([
            "POST /v1/models HTTP/1.1\r\nContent-Length: 500000\r\n",
            "POST /v1/datasets HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
            "GET /v1/jobs?limit=100 HTTP/1.1\r\n", "GET /openapi.yaml HTTP/1.1\r\n"])
        with socket.create_connection(("127.0.0.1", self.load.port), 60) as client:
            client.sendall((head + "Host: localhost\r\n\r\n").encode())
            if head.startswith("POST"):
                client.sendall(b"186a0\r\n" + bytes(self.random.randrange(100_000)))

    WORKS = [upload, run_job, run_job, run_job, calibrate, cancel, cancel, events,
             plan_and_look, wrong, go_away]

    def run(self):
        while not self.load.stop.is_set():
            try:
                self.random.choice(self.WORKS)(self)
            except (OSError, http.client.HTTPException) as error:
                self.load.answers[type(error).__name__] += 1
            if self.connection and self.random.random() < 0.05:
                self.connection.close()
                self.connection = None
            time.sleep(self.random.random() * 0.1)


# --- measuring the daemon from outside ------------------------------------------------------

FIGURES = {"daemon, RssAnon, MiB": 0.5, "workers, RssAnon, MiB": 4, "descriptors": 2,
           "threads": 2, "state folder, MiB": 1, "its files": 20, "database, MiB": 0.2}
"""Each with a growth that is none, however straight the line: a page, a connection."""
FOLLOW = {"state folder, MiB", "its files"}
"""Figures that follow the load of the time that files are kept."""


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += (task / "children").read_text().split()
        except FileNotFoundError:
            pass
    return found


def anonymous(pid):
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(text.split("RssAnon:")[1].split()[0]) / 1024 if "RssAnon:" in text else 0.0


def sizes(folder):
    """Returns the size of each file below the folder; files that vanish meanwhile are
    left out."""
    found = {}
    for path in Path(folder).rglob("*"):
        try:
            if path.is_file():
                found[path] = path.stat().st_size
        except FileNotFoundError:
            pass
    return found


def look(pid, folder):
    files = sizes(folder)
    database = sum(size for path, size in files.items()
                   if path.name.startswith("qdqd.sqlite3"))
    values = [anonymous(pid), sum(anonymous(child) for child in children(pid)),
              len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")),
              sum(files.values()) / MIB, len(files), database / MIB]
    return dict(zip(FIGURES, values))


def mean_of_looks(pid, folder, seconds, looks=10):
    """Returns the mean of a minute, so that files which exist for seconds do not disturb
    the line."""
    seen = []
    for _ in range(looks):
        time.sleep(seconds / looks)
        seen.append(look(pid, folder))
    return {name: float(np.mean([one[name] for one in seen])) for name in FIGURES}


def line(minutes, values):
    """Returns the slope of the best straight line, and the slope's standard error."""
    x, y = np.array(minutes) - np.mean(minutes), np.array(values)
    slope = float(x @ (y - y.mean()) / (x @ x))
    rest = y - y.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / max(len(y) - 2, 1) / (x @ x)))


def rate(before):
    """Returns the answers of a second, in the last part of `before` that is as long as files are
    kept. These are pairs of a time and the answers until then."""
    end, answers = before[-1]
    begin, earlier = next(pair for pair in before if pair[0] >= end - STEADY / 2)
    return (answers - earlier) / (end - begin)


def judged(samples, at, answers):
    """`answers` are those of the time that files are kept, before each sample."""
    rows, grown = [], []
    for name, none in FIGURES.items():
        values = [sample[name] for sample in samples]
        by = np.mean(answers) / answers if name in FOLLOW else np.ones(len(values))
        slope, error = line(at, values * by)
        rise = slope * (at[-1] - at[0])
        grows = slope > 3 * error and rise > max(none, np.mean(values) / 20)
        grown += [name] if grows else []
        rows.append([name, f"{values[0]:.1f}", f"{np.mean(values):.1f}",
                     f"{values[-1]:.1f}", f"{60 * slope:+.2f} ± {60 * error:.2f}",
                     "grows" if grows else "does not grow"])
    return rows, grown


def main(minutes=60, clients=6):
    minutes, clients = float(minutes), int(clients)
    os.environ.update(RETENTION)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        daemon = small.Daemon(folder)
        pid, load = daemon.process.pid, Load(daemon.port)
        idle = look(pid, folder)
        threads = [Client(load, seed) for seed in range(clients)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        samples, at, answers, before = [], [], [], [(begin, 0)]
        while time.monotonic() < begin + 60 * minutes:
            sample = mean_of_looks(pid, folder, min(60, 6 * minutes))
            passed = time.monotonic() - begin
            before.append((begin + passed, sum(load.answers.values())))
            print(f"{passed / 60:5.1f} min  " + ", ".join(
                f"{name} {value:.1f}" for name, value in sample.items()), flush=True)
            if passed >= min(STEADY, 30 * minutes):
                samples.append(sample)
                at.append(passed / 60)
                answers.append(rate(before))
        load.stop.set()
        for thread in threads:
            thread.join()
        time.sleep(150)  # retention, and the sweep after it
        left = look(pid, folder)
        daemon.stop()
    machine()
    rows, grown = judged(samples, at, np.array(answers))
    for row, name in zip(rows, FIGURES):
        row[1:1] = [f"{idle[name]:.1f}"]
        row.insert(5, f"{left[name]:.1f}")
    table(f"{clients} clients, {minutes:.0f} min, {sum(load.answers.values())} answers",
          ["", "at the start", f"minute {at[0]:.0f}", "mean", "last", "150 s after",
           "per hour", ""], rows)
    print("\nanswers:", dict(sorted(load.answers.items(), key=str)))
    for wrong in load.wrong[:20]:
        print("not expected:", wrong)
    sys.exit(1 if grown or load.wrong or daemon.process.returncode else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
