# SPDX-License-Identifier: Apache-2.0
"""eta.py [--folder FOLDER] [--targets T,…] [--specs S,…] [--raw FILE] [NAME…]: measures how well a daemon
tells the time that a job still takes.

Each job runs twice, one after the other, in a daemon that has nothing else to do: the second run may
go by what the first one took. The job is asked every 20 ms; what it said at 10, 25,
50 and 75 % of its time is divided by what it took from then on. Models are those of the tests, and
those of a folder in the form that real.py describes."""

import argparse
import atexit
import io
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import ROOT, machine, table
from jobs import Daemon, call
from real import feeds_of
from real_inputs import dataset

SHARES = (0.1, 0.25, 0.5, 0.75)
LEAST_SECONDS = 4  # of a job whose estimates count
GLYPHS = ("glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit")
SPECS = {
    "default": {},
    "auto": {"recipe": "auto"},
    "gptq": {"weights": {"rounding": "gptq"}},
    "reconstruct": {"weights": {"rounding": "reconstruct"}},
    "sensitivity": {"sensitivity": {}},
    "search": {"search": {"min_sqnr_db": 35}},
}


def files_of(name, folder):
    """Returns the bytes of a model and of its calibration data."""
    if name in GLYPHS:
        data = ROOT / "tests" / "data"
        return ((data / f"{name}.onnx").read_bytes(), (data / "calib_256.npz").read_bytes())
    packed = io.BytesIO()
    feeds = feeds_of(folder / f"{name}_calib_feeds.npz")
    np.savez(packed, **dataset(feeds))
    return (folder / f"{name}.onnx").read_bytes(), packed.getvalue()


def watch(daemon, body):
    """Runs a job. Returns its seconds and what it said: (seconds since it began, progress)."""
    connection = daemon.connect()
    connection.request("POST", "/v1/jobs", json.dumps(body), {"Content-Type": "application/json"})
    job = json.loads(connection.getresponse().read())
    if "state" not in job:
        return None, job
    seen, began = [], None
    while job["state"] in ("queued", "running"):
        now = time.monotonic()
        if job["state"] == "running":
            began = began or now
            if job["progress"]:
                seen.append((now - began, job["progress"]))
        time.sleep(0.02)
        job = call(connection, "GET", f"/v1/jobs/{job['id']}")
    if job["state"] != "succeeded":
        return None, job["error"]
    return time.monotonic() - began, seen


def ratios(seconds, seen):
    """Returns estimated by true seconds at each share; None: there was no estimate."""
    found = []
    for share in SHARES:
        at, progress = next(((t, p) for t, p in seen if t >= share * seconds), seen[-1])
        eta = progress["eta_s"]
        found.append(None if eta is None else eta / (seconds - at))
    return found


def show(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--targets", default="tensorrt,onnxruntime,openvino")
    parser.add_argument("--specs", default=",".join(SPECS))
    parser.add_argument("--raw", type=Path)
    asked = parser.parse_args()
    rows, raw, all_ratios = [], [], {1: [], 2: []}
    with tempfile.TemporaryDirectory() as state:
        daemon = Daemon(state)
        atexit.register(daemon.stop)
        for name in asked.names or GLYPHS:
            connection = daemon.connect()
            model, data = (call(connection, "POST", f"/v1/{kind}", content)["id"] for kind, content
                           in zip(("models", "datasets"), files_of(name, asked.folder)))
            for target in asked.targets.split(","):
                for key, run in itertools.product(asked.specs.split(","), (1, 2)):
                    seconds, seen = watch(daemon, {
                        "model": model, "calibration": data, "fresh": True,
                        "spec": {**SPECS[key], "target": target}})
                    if seconds is None:
                        print(f"# {name} {target} {key}: {seen['detail'][:200]}", file=sys.stderr)
                        break
                    raw.append([name, target, key, seconds, seen])
                    found = ratios(seconds, seen)
                    rows.append([name, target, key, run, f"{seconds:.1f}", *map(show, found)])
                    print(*rows[-1], file=sys.stderr)
                    if seconds >= LEAST_SECONDS:
                        all_ratios[run] += found
                    if asked.raw:
                        asked.raw.write_text(json.dumps(raw))
    machine()
    table("Estimated by true seconds that are left",
          ["model", "target", "spec", "run", "seconds", *(f"at {s:.0%}" for s in SHARES)], rows)
    for run, found in all_ratios.items():
        told = [one for one in found if one is not None]
        within = sum(0.5 <= one <= 2 for one in told)
        print(f"run {run}, jobs of {LEAST_SECONDS} s and more: {within} of {len(told)} estimates are within a "
              f"factor of two, {len(found) - len(told)} times there was none")


if __name__ == "__main__":
    main()
