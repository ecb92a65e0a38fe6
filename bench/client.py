# SPDX-License-Identifier: Apache-2.0
"""client.py [SAMPLES [ROUNDS]]: from `pip install` to an int8 file in three lines of Python, beside
onnxruntime.quantization on the same model.

Both install from wheels on this disk into an empty folder, and then run a program in a process of
its own, imports included: the client's three lines against a daemon that runs already, and
quantize_static with the same scheme and its default method. The model is the ResNet-50 of
make_model.py, with random images. Both take turns; the shortest time of each is printed, because
other work on the machine can only add to a time. Unless it is told not to, the service also
runs both models on the samples and measures the loss, which takes longer than the calibration;
quantize_static does nothing of the kind, so the client's program is measured with and without."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from calibrate import images
from common import CACHE, INSTALLED, ROOT, Measured, machine, table
from make_model import cached

OURS = """\
import qdqd
result = qdqd.quantize({model!r}, {data!r}, {spec!r})
result.save({out!r})
"""
THEIRS = """\
import sys
sys.path.insert(0, {bench!r})
from peers import static
static({model!r}, {data!r}, {samples}, {out!r})
"""
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


class Daemon:
    """A daemon with an empty state folder."""

    def __init__(self, folder):
        self.log = folder / "qdqd.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [INSTALLED / "sbin" / "qdqd", "--listen", "127.0.0.1:0", "--state-dir",
                 folder / "state"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        found = None
        while not found:
            time.sleep(0.05)
            found = re.search(r"listening on (?:http://)?(127\.0\.0\.1:\d+)", self.log.read_text())
        os.environ["QDQD_URL"] = f"http://{found[1]}"

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def wheels():
    """Returns a folder with the client's wheel and one with the wheels of onnxruntime, onnx and
    all that these need."""
    ours, theirs = CACHE / "wheel-qdqd", CACHE / "wheels-onnxruntime"
    shutil.rmtree(ours, ignore_errors=True)
    subprocess.run([*PIP, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir",
                    ours, ROOT / "clients" / "python"], check=True)
    if not theirs.exists():
        versions = subprocess.run([*PIP, "freeze"], check=True, capture_output=True, text=True)
        pinned = re.findall(r"^(?:onnx|onnxruntime|numpy)==.*$", versions.stdout, re.MULTILINE)
        subprocess.run([*PIP, "download", "--only-binary=:all:", "--dest", theirs, *pinned],
                       check=True)
    return ours, theirs


def install(wheels_of, folder, *names):
    """Returns the seconds of pip."""
    return Measured([*PIP, "install", "--no-index", "--find-links", wheels_of, "--target",
                     folder, *names]).seconds


def program(text, site):
    os.environ["PYTHONPATH"] = str(site)
    run = Measured([sys.executable, "-S", "-W", "ignore", "-c", text])
    del os.environ["PYTHONPATH"]
    return run.seconds


def main():
    samples, rounds = (int(text) for text in (sys.argv[1:] + ["16", "3"][len(sys.argv) - 1:])[:2])
    model, data = str(cached()), str(images(samples))
    ours, theirs = wheels()
    machine()
    best = {}

    def keep(name, seconds):
        best[name] = min(seconds, best.get(name, seconds))

    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            out = str(folder / "int8.onnx")
            keep("install ours", install(ours, folder / "ours", "qdqd"))
            daemon = Daemon(folder)
            try:
                for name, spec in (("int8", {"evaluate": False}), ("judged", {}),
                                   ("equal", {})):
                    keep(name, program(OURS.format(model=model, data=data, out=out, spec=spec),
                                       folder / "ours"))
                    if name == "int8":  # the next one finds nothing of it
                        daemon.stop()
                        shutil.rmtree(folder / "state")
                        daemon = Daemon(folder)
            finally:
                daemon.stop()
            keep("install theirs", install(theirs, folder / "theirs", "onnxruntime", "onnx"))
            text = THEIRS.format(bench=str(Path(__file__).parent), model=model, data=data,
                                 samples=samples, out=out)
            keep("static", program(text, folder / "theirs"))
    table(f"ResNet-50, {samples} samples, best of {rounds}, seconds",
          ["", "qdqd", "onnxruntime.quantization"],
          [["pip install", *(f"{best[n]:.2f}" for n in ("install ours", "install theirs"))],
           ["the program", f"{best['int8']:.2f}", f"{best['static']:.2f}"],
           ["from nothing to the int8 file", f"{best['install ours'] + best['int8']:.2f}",
            f"{best['install theirs'] + best['static']:.2f}"],
           ["the program, which also measures the loss", f"{best['judged']:.2f}", ""],
           ["the program, an equal job ran before", f"{best['equal']:.2f}", ""]])


if __name__ == "__main__":
    main()
