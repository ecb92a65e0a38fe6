# SPDX-License-Identifier: Apache-2.0
"""serve.py [--emulated]: tests a daemon whose jobs run on a GPU.

Run by tools/check-gpu with tests/data. QDQD is the daemon's program, QDQD_ENGINE_RUNTIME
an ONNX Runtime built for CUDA, QDQD_GPU_MODULE the CUDA module. Exits with 1 and prints
the failures. --emulated uses the module of tests/cuda/emulator, to try this script
without a GPU.

Checked are: a job for a GPU runs there while its worker is in its cage, also when the
runtime is in a folder that the cage has to allow; a search lends the GPU to a short job
that comes later, and gives the same bytes as alone; after a worker was killed, another
one gets the GPU."""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
QDQD = os.environ.get("QDQD", ROOT / "_install" / "sbin" / "qdqd")
READABLE = ("/usr/", "/lib/", "/lib64/", "/opt/")
SHORT = {"device": "cuda", "calibration": {"max_samples": 4}, "evaluate": False}


def search_spec(emulated):
    """Returns the spec of a search that is long enough for another job to come meanwhile.
    """
    return {"device": "cuda", "calibration": {"max_samples": 2 if emulated else 8},
            "evaluate": False,
            "search": {"min_sqnr_db": 60, "max_float_layers": 6,
                       "samples": 2 if emulated else 128}}


def wait_for(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"{what}: it did not happen within {seconds} s")
        time.sleep(0.01)
    return value


class Daemon:
    def __init__(self, folder, cage):
        self.log = folder / "log"
        env = {**os.environ, "QDQD_GPU_DEVICES": "0", "QDQD_WORKERS_COUNT": "2",
               "QDQD_WORKERS_CAGE": cage}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [QDQD, "--listen", "127.0.0.1:0", "--state-dir", folder / "state"],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        pattern = r"listening on (?:http://)?(127\.0\.0\.1:\d+)"
        found = wait_for(lambda: self.process.poll() is not None or
                         re.search(pattern, self.log.read_text()), "the daemon's start")
        if found is True:
            sys.exit(f"the daemon ended:\n{self.log.read_text()}")
        self.url = f"http://{found[1]}/v1/"

    def stop(self):
        self.process.terminate()
        if self.process.wait(60) != 0:
            sys.exit(f"the daemon ended with {self.process.returncode}")

    def ask(self, path, data=None, kind="application/json"):
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.read()

    def upload(self, kind, name):
        body = (DATA / name).read_bytes()
        return json.loads(self.ask(kind, body, "application/octet-stream"))["id"]

    def submit(self, model, spec):
        members = {"model": self.upload("models", f"{model}.onnx"),
                   "calibration": self.upload("datasets", "calib_256.npz"),
                   "spec": spec, "fresh": True}
        return json.loads(self.ask("jobs", json.dumps(members).encode()))["id"]

    def job(self, job, wait=0):
        return json.loads(self.ask(f"jobs/{job}?wait={wait}"))

    def succeeded(self, job):
        document = self.job(job, 300)
        if document["state"] != "succeeded":
            sys.exit(f"a job has {document['state']}: {document['error']}")
        return document

    def device(self, job):
        return json.loads(self.ask(f"jobs/{job}/report"))["device"]

    def workers(self):
        found = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # A thread may end meanwhile.
                found += map(int, (task / "children").read_text().split())
        return found


# --- checks -------------------------------------------------------------------------


def check_device(daemon, emulated):
    job = daemon.submit("glyph_resnet", SHORT)
    daemon.succeeded(job)
    name = daemon.device(job)
    if not name.startswith("cuda:") or name.endswith("emulated on the host") != emulated:
        sys.exit(f"a job for a GPU ran on {name}")
    print(f"a job ran on {name}")


def is_in_search(daemon, job):
    document = daemon.job(job)
    if document["state"] not in ("queued", "running"):
        sys.exit(f"a search has {document['state']} too early: {document['error']}")
    progress = document["progress"]
    return progress and progress["stage"] == "search" and progress["done"] > 0


def check_lending(daemon, spec):
    alone = daemon.submit("glyph_se", spec)
    daemon.succeeded(alone)
    search = daemon.submit("glyph_se", spec)
    wait_for(lambda: is_in_search(daemon, search), "the search's begin")
    begun = time.monotonic()
    daemon.succeeded(daemon.submit("glyph_resnet", SHORT))
    waited = time.monotonic() - begun
    if daemon.job(search)["state"] != "running":
        sys.exit("the search has ended before a short job that came later")
    daemon.succeeded(search)
    if f"gpu_lent job={search}" not in daemon.log.read_text():
        sys.exit("the search has not lent its GPU")
    if daemon.ask(f"jobs/{alone}/model") != daemon.ask(f"jobs/{search}/model"):
        sys.exit("a search that lent its GPU has made other bytes")
    print(f"a search lent it: a short job ended {waited:.1f} s after it was sent")


def check_killed(daemon, spec):
    job = daemon.submit("glyph_se", spec)
    wait_for(lambda: is_in_search(daemon, job), "the search's begin")
    for pid in daemon.workers():
        os.kill(pid, signal.SIGKILL)
    document = daemon.succeeded(job)
    if document["attempts"] != 2 or not daemon.device(job).startswith("cuda:"):
        sys.exit(f"after its worker was killed a job took {document['attempts']} "
                 f"attempts, and ran on {daemon.device(job)}")
    print("a worker was killed: another one had the device next")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args()
    runtime = os.environ.get("QDQD_ENGINE_RUNTIME", "")
    # A time limit ends it like a failure: the log is shown and the daemon stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended from outside"))
    caged = options.emulated or os.path.realpath(runtime).startswith(READABLE)
    print(f"workers are {'' if caged else 'not '}locked in" +
          ("" if caged else f": {runtime} is not below {', '.join(READABLE)}"))
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), "require" if caged else "off")
        try:
            check_device(daemon, options.emulated)
            check_lending(daemon, search_spec(options.emulated))
            check_killed(daemon, search_spec(options.emulated))
        except SystemExit:
            print(daemon.log.read_text(), flush=True)
            raise
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
