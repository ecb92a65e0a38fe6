# SPDX-License-Identifier: Apache-2.0
"""frontier.py [--target openvino] [--before QDQ] [--folder FOLDER] [--turns N] [NAME…]: the default of target
onnxruntime or openvino beside the ends of its frontier: the float model, all layers in integers, for
onnxruntime its quantize_static, and for openvino what is measured where that is asked for. The runtime of the target runs them.

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

sys.path.append(sys.path.pop(0))  # The package openvino comes before openvino.py.
from common import ROOT, Measured, machine, table  # noqa: E402
import real  # noqa: E402
from real import feeds_of, ours, outputs_of, sqnr_db  # noqa: E402

GLYPHS = ("glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit")
INTEGERS = {
    "onnxruntime": {"recipe": "none",
                    "rules": {"C15": False, "C16": True, "C17": True, "C18": True}},
    "openvino": {"recipe": "none"},
}
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


class OpenVINO:
    """A model in OpenVINO, on one thread and with float32 where a layer is not integer."""

    def __init__(self, path):
        import openvino
        core = openvino.Core()
        model = core.compile_model(core.read_model(path), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
        self.request = model.create_infer_request()

    def run(self, _, feed):
        return [np.array(value) for value in self.request.infer(feed).values()]

    def run_again(self):
        self.request.infer(None, share_outputs=True)


class Session:
    """A model in ONNX Runtime."""

    def __init__(self, path):
        self.session, self.feed = real.session(path), None

    def run(self, _, feed):
        self.feed = feed
        return self.session.run(None, feed)

    def run_again(self):
        self.session.run(None, self.feed)


OPEN = {"onnxruntime": Session, "openvino": OpenVINO}


def ratios(sessions, feed, turns):
    """Returns the medians of the ratios to the first one's processor time, by turns."""
    for one in sessions:
        one.run(None, feed)
    times = [[] for _ in sessions]
    for turn in range(turns + 3):
        for k in range(len(sessions)):
            i = (turn + k) % len(sessions)
            start = time.thread_time()
            sessions[i].run_again()
            if turn >= 3:
                times[i].append(time.thread_time() - start)
    return [float(np.median(np.divide(one, times[0]))) for one in times]


def compare(name, model, calibration, test, turns, before, target):
    float_outputs = outputs_of(OPEN[target](model), test)
    made = {"float": (model, np.inf)}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        own = real.QDQ
        for row, spec in (("default", {}), ("all in integers", INTEGERS[target]),
                          *([("measured", {"frontier": True})] if target != "onnxruntime" else []),
                          *([("default before", {})] if before else [])):
            real.QDQ = before if row == "default before" else own
            path, run, _ = ours(model, calibration, folder, {"target": target, **spec})
            real.QDQ = own
            print(f"{name}, {row}: {run.cpu:.1f} s of processor time", file=sys.stderr)
            path = path.rename(folder / f"{row.replace(' ', '_')}.onnx")
            made[row] = (path, sqnr_db(float_outputs, outputs_of(OPEN[target](path), test)))
        peer = folder / "peer.onnx"
        try:
            if target != "onnxruntime":
                raise SystemExit("it is for onnxruntime alone")
            Measured([sys.executable, "-W", "ignore", Path(__file__).parent / "real.py", "--peer",
                      model, "MinMax", folder / "calib.npz", peer])
            made["quantize_static"] = (peer, sqnr_db(float_outputs, outputs_of(OPEN[target](peer), test)))
        except (SystemExit, Exception) as error:
            print(f"no quantize_static: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
        times = ratios([OPEN[target](path) for path, _ in made.values()], test[0], turns)
    least = min(t for t, (_, db) in zip(times, made.values()) if db >= GOOD_DB)
    return [(name if i == 0 else "", row, f"{t:.3f}", f"{db:.1f}",
             f"{t / least:.2f}" if row.startswith("default") else "")
            for i, (t, (row, (_, db))) in enumerate(zip(times, made.items()))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", choices=OPEN, default="onnxruntime")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--turns", type=int, default=60)
    asked = parser.parse_args()
    rows = []
    names = asked.names or [*GLYPHS, *(sorted(path.stem for path in asked.folder.glob("*.onnx"))
                                       if asked.folder else [])]
    for name in names:
        inputs = glyph(name) if name in GLYPHS else of_folder(asked.folder, name)
        rows += compare(name, *inputs, asked.turns, asked.before, asked.target)
    machine()
    table(f"Target {asked.target}, one thread, processor time by turns", ("model", "result", "time", "SQNR (dB)", "of the fastest"), rows)


if __name__ == "__main__":
    main()
