# SPDX-License-Identifier: Apache-2.0
"""frontier.py [--before QDQ] [--folder FOLDER] [--turns N] [NAME…]: the default of target onnxruntime beside the
ends of its frontier: the float model, all layers in integers, and quantize_static of onnxruntime.

The time is the processor time of the thread that runs one sample, with one thread and by turns, so
that other work on the machine adds little to it: the median of the ratios to the float model's. The
SQNR is that of the worst output on samples that no tool has seen. The last column is the time of
the default as a part of the fastest row with at least 25 dB, the float model included.

--before names another qdq, whose default stands beside.

Models are those of tests/data, and those of a folder, as real.py takes them."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import ROOT, Measured, machine, table
import real
from real import Judge, feeds_of, ours, session

GLYPHS = ("glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit")
INTEGERS = {"recipe": "none", "rules": {"C15": False, "C16": True, "C17": True, "C18": True}}
GOOD_DB = 25


def glyph(name):
    """Returns a model of tests/data, and samples to calibrate and to judge with."""
    data = ROOT / "tests/data"

    with np.load(data / "calib_256.npz") as arrays:
        calibration = [{"input": row[None]} for row in arrays["input"]]
    with np.load(data / "test_1000.npz") as arrays:
        test = [{"input": row[None].astype(np.float32) / np.float32(255)}
                for row in arrays["images"][:100]]
    return data / f"{name}.onnx", calibration, test


def of_folder(folder, name):
    return folder / f"{name}.onnx", feeds_of(folder / f"{name}_calib_feeds.npz"), \
        feeds_of(folder / f"{name}_test_feeds.npz")


def ratios(sessions, feed, turns):
    """Returns the medians of the ratios to the first one's processor time, by turns."""
    times = [[] for _ in sessions]
    for turn in range(turns + 3):
        for k in range(len(sessions)):
            i = (turn + k) % len(sessions)
            start = time.thread_time()
            sessions[i].run(None, feed)
            if turn >= 3:
                times[i].append(time.thread_time() - start)
    return [float(np.median(np.divide(one, times[0]))) for one in times]


def compare(name, model, calibration, test, turns, before):
    judge = Judge(model, test, None)
    made = {"float": (model, np.inf)}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        own = real.QDQ
        for row, spec in (("default", {}), ("all in integers", INTEGERS),
                          *([("default before", {})] if before else [])):
            real.QDQ = before if row == "default before" else own
            path, run, _ = ours(model, calibration, folder, spec)
            real.QDQ = own
            print(f"{name}, {row}: {run.cpu:.1f} s of processor time", file=sys.stderr)
            path = path.rename(folder / f"{row.replace(' ', '_')}.onnx")
            made[row] = (path, judge.figures(path)["sqnr_db"])
        peer = folder / "peer.onnx"
        try:
            Measured([sys.executable, "-W", "ignore", Path(__file__).parent / "real.py", "--peer",
                      model, "MinMax", folder / "calib.npz", peer])
            made["quantize_static"] = (peer, judge.figures(peer)["sqnr_db"])
        except (SystemExit, Exception) as error:
            print(f"quantize_static fails: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
        times = ratios([session(path) for path, _ in made.values()], test[0], turns)
    least = min(t for t, (_, db) in zip(times, made.values()) if db >= GOOD_DB)
    return [(name if i == 0 else "", row, f"{t:.3f}", f"{db:.1f}",
             f"{t / least:.2f}" if row.startswith("default") else "")
            for i, (t, (row, (_, db))) in enumerate(zip(times, made.items()))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--turns", type=int, default=60)
    asked = parser.parse_args()
    rows = []
    names = asked.names or [*GLYPHS, *(sorted(path.stem for path in asked.folder.glob("*.onnx"))
                                       if asked.folder else [])]
    for name in names:
        inputs = glyph(name) if name in GLYPHS else of_folder(asked.folder, name)
        rows += compare(name, *inputs, asked.turns, asked.before)
    machine()
    table("Target onnxruntime, one thread, processor time by turns", ("model", "result", "time", "SQNR (dB)", "of the fastest"), rows)


if __name__ == "__main__":
    main()
