# SPDX-License-Identifier: Apache-2.0
"""openvino.py [--folder FOLDER] [--kept FOLDER] [--alone] [NAME…]: quantizes models for OpenVINO
by qdq and by NNCF: the glyph models of tests/data, and models of other people (real_inputs.py, or
a folder as real.py takes it).

OpenVINO, from Python, judges every result on samples that no tool has seen, on one thread and
with float32 where a layer is not integer: the SQNR of the worst output, the share of right
answers in the model's own task, and the latency, in batches of 50 for the glyph models and of
one sample for the others, as the ratio of the shortest times by turns with the float model. "said"
is the SQNR that qdq reports as deployed, less that of OpenVINO from Python on the same samples.
Seconds, those of the processor, and memory (RssAnon) are those of the whole process. With --kept
the results of NNCF, their seconds and their memory are taken from that folder where they are there,
and else made and put there; with --alone nothing is made by NNCF. NNCF is not among the packages of
the tests: run this by a Python that has `openvino==2026.4.1 nncf==3.4.0 onnx onnxruntime numpy`;
QDQD_ENGINE_OPENVINO is set to that OpenVINO's library."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.append(sys.path.pop(0))  # The package openvino comes before this file.
import openvino  # noqa: E402

import real  # noqa: E402
from common import MIB, QDQ, ROOT, Measured, machine, table  # noqa: E402
from real_inputs import MODELS, dataset  # noqa: E402

DATA = ROOT / "tests" / "data"
GLYPHS = ("glyph_resnet", "glyph_vit", "glyph_mobilenet", "glyph_se")
PLAIN = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
BATCH, TURNS = 50, 40
OURS = {
    "qdq, default": {},
    "qdq, gptq and bias correction": {"weights": {"rounding": "gptq"},
                                      "bias_correction": True},
    # The work that NNCF does: nothing is run to judge the result or to choose layers. The
    # rules are those of the default.
    "qdq, not judged": {"recipe": "none", "evaluate": False},
}
# The settings of nncf.quantize(), by name.
PEERS = {
    "NNCF, default": {},
    "NNCF, TRANSFORMER": {"model_type": "TRANSFORMER"},
    "NNCF, MIXED": {"preset": "MIXED"},
    "NNCF, MIXED, TRANSFORMER": {"preset": "MIXED", "model_type": "TRANSFORMER"},
    "NNCF, MIXED, min and max, full bias": {"preset": "MIXED", "plain_ranges": True,
                                            "fast_bias_correction": False},
}


def peer(model, data, out, settings):
    """Quantizes by NNCF what OpenVINO reads of the model, and saves it."""
    import nncf
    from nncf.quantization import advanced_parameters as advanced
    from nncf.quantization import range_estimator as ranges
    options = json.loads(settings)
    if "model_type" in options:
        options["model_type"] = nncf.ModelType(options["model_type"].lower())
    if "preset" in options:
        options["preset"] = nncf.QuantizationPreset(options["preset"].lower())
    if options.pop("plain_ranges", False):
        plain = ranges.RangeEstimatorParameters(
            min=ranges.StatisticsCollectorParameters(
                statistics_type=ranges.StatisticsType.MIN,
                aggregator_type=ranges.AggregatorType.MIN),
            max=ranges.StatisticsCollectorParameters(
                statistics_type=ranges.StatisticsType.MAX,
                aggregator_type=ranges.AggregatorType.MAX))
        options["advanced_parameters"] = advanced.AdvancedQuantizationParameters(
            activations_range_estimator_params=plain)
    feeds = real.feeds_of(data)
    quantized = nncf.quantize(openvino.Core().read_model(model), nncf.Dataset(feeds),
                              subset_size=len(feeds), **options)
    openvino.save_model(quantized, out, compress_to_fp16=False)


# --- inputs ----------------------------------------------------------------------------

def glyph(name):
    """Returns the model, samples of calibration, batches of the test, and the task."""
    images = np.load(DATA / "calib_256.npz")["input"]
    test = np.load(DATA / "test_1000.npz")
    given = test["images"].reshape(-1, 1, 32, 32).astype(np.float32) / 255
    batches = [{"input": given[i:i + BATCH]} for i in range(0, len(given), BATCH)]
    return (DATA / f"{name}.onnx", [{"input": images[i:i + 1]} for i in range(len(images))],
            batches, lambda outputs: np.mean(
                outputs[0].reshape(len(given), -1).argmax(1) == test["labels"]))


def load(name, folder):
    return glyph(name) if name in GLYPHS else real.load(name, folder)


# --- the judge -------------------------------------------------------------------------

class Judge:
    def __init__(self, model, feeds, task):
        self.core, self.feeds, self.task = openvino.Core(), feeds, task
        self.float = self.open(model)
        self.real = self.outputs(self.float, feeds)
        self.score = self.right(self.real)

    def right(self, outputs):
        """Returns the share of right answers, or None where the model has no task here."""
        return None if self.task is None else float(self.task(outputs))

    def open(self, path):
        model = self.core.read_model(path)
        return self.core.compile_model(model, "CPU", PLAIN).create_infer_request()

    def outputs(self, request, feeds):
        """Returns each output of all samples, stacked."""
        runs = [[np.array(value) for value in request.infer(feed).values()]
                for feed in feeds]
        return [np.stack(rows) for rows in zip(*runs)]

    def latency(self, request):
        """Returns the ratio of the shortest times, by turns with the float model. Other work
        can only add to a time."""
        times = {self.float: [], request: []}
        for turn in range(TURNS + 3):
            for one, found in times.items():
                start = time.perf_counter()
                one.infer(self.feeds[0])
                if turn >= 3:
                    found.append(time.perf_counter() - start)
        return min(times[request]) / min(times[self.float])

    def figures(self, by, path, run, **more):
        request = self.open(path)
        made = self.outputs(request, self.feeds)
        return {"by": by, "sqnr_db": real.sqnr_db(self.real, made),
                "task": self.right(made), "latency": self.latency(request),
                "seconds": run.seconds, "cpu": run.cpu, "mib": run.anonymous / MIB, **more}

    def excess(self, report, path, calibration):
        """Returns the SQNR that the report has, less that of OpenVINO from Python."""
        deployed = (report["evaluation"] or {}).get("deployed")
        if not deployed:
            return None
        n = report["evaluation"]["samples"]
        said = min((o["sqnr_db"] for o in deployed["outputs"] if o["sqnr_db"] is not None),
                   default=np.inf)
        ran = real.sqnr_db(self.outputs(self.float, calibration[-n:]),
                           self.outputs(self.open(path), calibration[-n:]))
        return said - ran if np.isfinite(said) else 0.0


# --- the work --------------------------------------------------------------------------

def ours(judge, model, calibration, folder):
    np.savez(folder / "calib.npz", **dataset(calibration))
    rules = {}
    for by, spec in OURS.items():
        own = {"rules": rules} if spec.get("recipe") == "none" else {}
        (folder / "spec.json").write_text(json.dumps({"target": "openvino", **spec, **own}))
        out = folder / "q.onnx"
        run = Measured([QDQ, "quantize", model, "--spec", folder / "spec.json",
                        "--calibration", folder / "calib.npz", "-o", out, "--report",
                        folder / "report.json"])
        report = json.loads((folder / "report.json").read_text())
        rules = {rule["id"]: rule["on"] for rule in report["rules"]}
        yield judge.figures(by, out, run, report=report,
                            said=judge.excess(report, out, calibration))


def kept_files(kept, name, by):
    stem = f"{name}, {by}".replace(", ", "-").replace(" ", "_")
    return [kept / (stem + ending) for ending in (".json", ".xml", ".bin")]


def make_peer(name, by, model, folder, kept):
    """Returns what NNCF made, and what it cost: from the folder where that is kept."""
    out = folder / "peer.xml"
    files = kept_files(kept, name, by) if kept else []
    if files and all(file.is_file() for file in files):
        return files[1], SimpleNamespace(**json.loads(files[0].read_text()))
    run = Measured([sys.executable, __file__, "--peer", model, folder / "feeds.npz", out,
                    json.dumps(PEERS[by])])
    if files:
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(out, files[1])
        shutil.copy(out.with_suffix(".bin"), files[2])
        files[0].write_text(json.dumps({member: getattr(run, member)
                                        for member in ("seconds", "cpu", "anonymous")}))
    return out, run


def peers(judge, name, model, calibration, folder, kept):
    np.savez(folder / "feeds.npz", **{f"{i:06}|{key}": value
                                      for i, feed in enumerate(calibration)
                                      for key, value in feed.items()})
    for by in PEERS:
        try:
            yield judge.figures(by, *make_peer(name, by, model, folder, kept))
        except (SystemExit, RuntimeError) as error:
            print(f"{by} fails: {str(error).strip().splitlines()[-1]}", file=sys.stderr)


def measure(name, folder, given):
    """Returns the right answers of the float model, and the rows of qdq and of NNCF."""
    model, calibration, feeds, task = load(name, given.folder)
    try:
        judge = Judge(model, feeds, task)
    except RuntimeError as error:
        why = str(error).strip().splitlines()[-1]
        print(f"{name}: OpenVINO cannot load it: {why}", file=sys.stderr)
        return None
    mine = list(ours(judge, model, calibration, folder))
    if given.alone:
        return judge.score, mine, []
    return judge.score, mine, list(peers(judge, name, model, calibration, folder,
                                         given.kept))


# --- what is printed -------------------------------------------------------------------

def share(right):
    return "" if right is None else f"{right:.3f}"


def shown(row):
    said = row.get("said")
    by = row["by"]
    if "report" in row:
        by += f" ({row['report']['summary']['verdict'] or 'no verdict'})"
    return ["", by, f"{row['sqnr_db']:.1f}", "" if said is None else f"{said:+.2f}",
            share(row["task"]), f"{row['latency']:.2f}", f"{row['seconds']:.1f}",
            f"{row['cpu']:.1f}", f"{row['mib']:.0f}"]


def best(rows):
    return max(rows, key=lambda row: row["sqnr_db"])


def beside(name, mine, others):
    """Returns how the best of both compare, the default's latency beside that of NNCF's best,
    and what the default and the last row cost beside what costs NNCF least."""
    top, default = best(others), mine[0]
    seconds, memory = (min(row[member] for row in others) for member in ("seconds", "mib"))
    return [name, *(f"{row['sqnr_db'] - top['sqnr_db']:+.1f}" for row in (default, best(mine))),
            f"{default['latency'] / top['latency']:.2f}",
            *(f"{seconds / row['seconds']:.1f}" for row in (default, mine[-1])),
            *(f"{row['mib'] / memory:.2f}" for row in (default, mine[-1]))]


def at_fault(name, row):
    """Returns what qdq says of a default that is not good."""
    report = row["report"]
    if report["summary"]["verdict"] == "good":
        return []
    said = [w["detail"] for w in report["warnings"] if w["code"] == "poor"]
    layers = [row for row in report["evaluation"]["layers"] if row["sqnr_db"] is not None]
    furthest = sorted(layers, key=lambda row: row["sqnr_db"])[:3]
    said += [f"{row['name']} {row['sqnr_db']:.1f} dB" for row in furthest]
    return [f"{name}: {report['summary']['verdict']}: " + ", ".join(said)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    [library] = (Path(openvino.__file__).parent / "libs").glob("libopenvino_c.so.*")
    os.environ["QDQD_ENGINE_OPENVINO"] = str(library)
    machine()
    rows, sums, faults, host = [], [], [], None
    for name in given.names or [*GLYPHS, *MODELS]:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, Path(folder), given)
        if not found:
            rows.append([name, "float", "not loaded", *[""] * 6])
            continue
        score, mine, others = found
        rows.append([name, "float", "", "", share(score), "1.00", *[""] * 3])
        rows += map(shown, mine + others)
        faults += at_fault(name, mine[0])
        host = mine[0]["report"]["host"]["name"]
        if others:
            sums.append(beside(name, mine, others))
    table(f"OpenVINO {openvino.__version__}, processor of class {host}, judged by OpenVINO "
          "from Python",
          ["model", "made by", "SQNR dB", "said", "task", "latency", "seconds", "CPU s", "MiB"],
          rows)
    table("qdq beside the best of NNCF",
          ["model", "default, dB", "best, dB", "latency", "times faster made", "not judged",
           "memory", "not judged"], sums)
    print("", *faults, sep="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:])
    else:
        main()
