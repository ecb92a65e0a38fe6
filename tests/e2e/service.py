# SPDX-License-Identifier: Apache-2.0
"""A qdqd of the test's own: started on a free loopback port, used, stopped, checked."""

import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import requests

import contract

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(os.environ.get("QDQD_INSTALLED", ROOT / "_install"))
DATA = ROOT / "tests" / "data"
# The version, which stands in configure.ac alone.
VERSION = re.search(r"^AC_INIT\(\[qdqd\], \[(.*)\]\)", (ROOT / "configure.ac").read_text(), re.M)[1]
CALIBRATION = DATA / "calib_256.npz"
# The first 32 of them: enough where only that a job ends matters, in an eighth of the time.
FEW_SAMPLES = DATA / "calib_32.npz"
# Models of tests are so small that a second thread takes more processor time in waiting for
# work than one thread takes for all of it. Tests of threads themselves ask for several.
QUANTIZE = [INSTALLED / "bin" / "qdq", "quantize", "--threads=1"]
ENDED = ("succeeded", "failed", "cancelled")


def repeats(*values):
    """Returns a row that repeats a kind: tools/check --release runs it."""
    return pytest.param(*values, marks=pytest.mark.release)


def eventually(condition, seconds=60, every=0.01):
    """Returns the first true value of condition(); fails when there is none in time, which is
    long, because the machine may be busy."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every)


def anonymous_kib(pid):
    """Returns RssAnon of a process: its private memory, without pages of mapped files."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def cpu_seconds(pid):
    """Returns the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class PeakMemory:
    """Samples RssAnon of the processes that pids() names while the block runs."""

    def __init__(self, pids):
        self.pids = pids
        self.peak = 0
        self.samples = 0

    def __enter__(self):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self):
        while not self._stop.is_set():
            for pid in self.pids():
                self.peak = max(self.peak, anonymous_kib(pid))
                self.samples += 1
            time.sleep(0.003)

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()


def from_bench(name):
    """Returns a module of bench/, which is not on the path afterwards: it has modules with the
    names of others."""
    folder = str(ROOT / "bench")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def open_files(pid):
    """Returns the paths of the files that a process holds open, and "socket:[...]" and
    the like. Returns nothing when the process has ended; descriptors that are closed
    meanwhile are left out."""
    found = []
    with contextlib.suppress(FileNotFoundError, PermissionError, ProcessLookupError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(fd))
    return found


class Service:
    """A state folder and the daemon that runs on it, possibly restarted."""

    def __init__(self, folder, **environment):
        self.state = folder / "state"
        self.log = folder / "qdqd.log"
        self.environment = environment
        self.arguments = []
        self.process = None
        self.http = requests.Session()
        self.http.trust_env = False
        self._workers_seen = set()

    # --- life ------------------------------------------------------------------------

    def begin(self, program=INSTALLED / "sbin" / "qdqd", **environment):
        """Starts the daemon and waits until it listens."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")}
        env.update({"QDQD_WORKERS_THREADS": "1", "QDQD_ENGINE_OPENVINO": "", **self.environment, **environment})
        self.log.parent.mkdir(parents=True, exist_ok=True)
        begin = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [program, "--listen", "127.0.0.1:0",
                 "--state-dir", self.state, *self.arguments],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def address():
            assert self.process.poll() is None, self.log.read_text()
            text = self.log.read_text()[begin:]
            return re.search(r"listening on (?:http://)?(127\.0\.0\.1:\d+)", text)

        self.url = "http://" + eventually(address)[1]
        return self

    def start(self, *program, **environment):
        self.begin(*program, **environment)
        eventually(lambda: self.get("/readyz").status_code == 200)
        return self

    def kill(self):
        """Ends the daemon by kill -9, like a power cut or the kernel's OOM killer."""
        workers = self.workers()
        self.process.kill()
        self.process.wait()
        self.process = None
        eventually(lambda: not any(is_worker(pid) for pid in workers))

    def stop(self):
        """Sends SIGTERM; the daemon has to be alive, to end by itself and to leave no
        process behind."""
        if self.process is None:
            return
        self.workers()
        alive = self.process.poll() is None
        self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "no end within 60 s"
        self.process = None
        print(self.log.read_text())
        assert alive, "the daemon ended by itself"
        assert status == 0
        assert self.temporary_files() == []
        left = [pid for pid, when in self._workers_seen if is_worker(pid) and born(pid) == when]
        assert left == [], "workers outlived the daemon"

    # --- the processes from outside ----------------------------------------------------

    def workers(self):
        """Returns the ids of the worker processes."""
        pid = self.process.pid
        found = []
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                found += [int(p) for p in (task / "children").read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                pass
        found = [pid for pid in found if is_worker(pid)]
        self._workers_seen.update((pid, born(pid)) for pid in found)
        return found

    def busy_workers(self):
        """Returns the worker processes that work: they hold a file of the state folder
        open."""
        return [pid for pid in self.workers() if self._has_files_of_ours(pid)]

    def worker_of_the_job(self, but=()):
        """Returns the worker of the only job that runs, which is none of `but`. The worker of
        an upload holds its file for a moment after the answer, and no longer."""
        def stays():
            busy = set(self.busy_workers()) - set(but)
            time.sleep(0.1)
            return busy if len(busy) == 1 and busy <= set(self.busy_workers()) else None
        (worker,) = eventually(stays)
        return worker

    def _has_files_of_ours(self, pid):
        return any(link.startswith(str(self.state)) for link in open_files(pid))

    def temporary_files(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.state)
                for name in names if ".tmp" in name or os.path.basename(folder) == "tmp"]

    def stored_files(self):
        """Returns the names of all blobs."""
        return sorted(p.name for p in (self.state / "blobs").rglob("*") if p.is_file())

    # --- HTTP --------------------------------------------------------------------------

    def request(self, method, path, **options):
        options.setdefault("timeout", 120)
        answer = self.http.request(method, self.url + path, **options)
        contract.check(method, path, answer)
        return answer

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)

    def upload(self, kind, data):
        """Stores a model or dataset (kind "models", "datasets"); returns its id."""
        body = data if isinstance(data, bytes) else Path(data).read_bytes()
        answer = self.post(f"/v1/{kind}", data=body,
                           headers={"Content-Type": "application/octet-stream"})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["id"]

    def submit(self, **members):
        """Queues a job given as JSON; returns its id."""
        answer = self.post("/v1/jobs", json=members)
        assert answer.status_code == 202, answer.text
        job = answer.json()
        assert answer.headers["Location"].endswith("/v1/jobs/" + job["id"])
        return job["id"]

    def submit_glyphs(self, model="glyph_resnet", calibration=FEW_SAMPLES, **members):
        members["model"] = self.upload("models", DATA / f"{model}.onnx")
        members["calibration"] = self.upload("datasets", calibration)
        return self.submit(**members)

    def job(self, job, wait=0):
        answer = self.get(f"/v1/jobs/{job}" + (f"?wait={wait}" if wait else ""))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def running(self, job):
        """Waits until a worker has the job; returns the busy workers."""
        eventually(lambda: self.job(job)["state"] == "running")
        return eventually(self.busy_workers)

    def ended(self, job):
        for _ in range(3):  # five minutes, in the time of three requests
            document = self.job(job, wait=100)
            if document["state"] in ENDED:
                return document
        raise AssertionError(document)

    def succeeded(self, job):
        document = self.ended(job)
        assert document["state"] == "succeeded", document
        return document

    def result(self, job):
        answer = self.get(f"/v1/jobs/{job}/model")
        assert answer.status_code == 200, answer.text
        return answer.content

    def report(self, job):
        answer = self.get(f"/v1/jobs/{job}/report")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def quantize(self, model, calibration=None, spec=None, query="", fresh=False):
        """Calls POST /v1/quantize with a form and returns the answer. Unless `fresh`, it
        may be an earlier job's result."""
        parts = {"model": ("m", as_bytes(model), "application/octet-stream")}
        if calibration is not None:
            parts["calibration"] = ("c", as_bytes(calibration),
                                    "application/octet-stream")
        if spec is not None:
            text = spec if isinstance(spec, str) else json.dumps(spec)
            parts["spec"] = (None, text, "application/json")
        if fresh:
            parts["fresh"] = (None, "true")
        return self.post("/v1/quantize" + query, files=parts)


def as_bytes(data):
    return data if isinstance(data, bytes) else Path(data).read_bytes()


def is_worker(pid):
    try:
        return b"--worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False


def born(pid):
    """Returns when the process was started, which tells it from a later one with the same id, or
    None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def kill_process(pid):
    os.kill(pid, signal.SIGKILL)


def problem(answer, status, code):
    """Checks that the answer is this problem document, and returns it."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    document = answer.json()
    assert document["status"] == status
    assert document["code"] == code, document
    assert document["title"] and document["type"] and document["detail"]
    assert isinstance(document["retryable"], bool)
    return document
