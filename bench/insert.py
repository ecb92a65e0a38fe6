# SPDX-License-Identifier: Apache-2.0
"""insert.py [RUNS]: measures Q/DQ insertion with given ranges, compared with onnxruntime
and cp.

The model is the ResNet-50 of make_model.py (102 MB); nothing is calibrated or evaluated.
All take turns in each round; the shortest times are printed, because other work on the
machine can only add to a time. Besides the engine's work, the command hashes the model,
opens onnxruntime, and syncs its output before it renames it into place. cp does none of
that, so cp followed by a sync is measured, too."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

from common import MIB, QDQ, Measured, best, machine, peer, table
from make_model import cached


def ranges_of(path):
    graph = onnx.load(path).graph
    names = [v.name for v in graph.input] + [o for n in graph.node for o in n.output]
    return {name: [-2.5, 3.0] for name in names}


def pairs_of(path):
    ops = [node.op_type for node in onnx.load(path).graph.node]
    return ops.count("DequantizeLinear")


def main(rounds):
    model = cached()
    size = model.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ranges, spec = folder / "ranges.json", folder / "spec.json"
        given = ranges_of(model)
        ranges.write_text(json.dumps(given))
        spec.write_text(json.dumps({"evaluate": False,
                                    "calibration": {"ranges": given}}))
        ours, theirs, copies, synced, stages = [], [], [], [], []
        stages_file = folder / "report.json"
        out, other, copy = (folder / n for n in ("ours.onnx", "theirs.onnx", "copy"))
        shutil.copyfile(model, copy)  # into the page cache
        for _ in range(rounds):
            for path in (out, other, copy):
                path.unlink(missing_ok=True)
            subprocess.run(["sync", folder], check=True)
            copies.append(Measured(["cp", model, copy]))
            copy.unlink()
            synced.append(Measured(["sh", "-c", f"cp {model} {copy} && sync {copy}"]))
            ours.append(Measured([QDQ, "quantize", model, "--spec", spec, "-o", out,
                                  "--report", stages_file]))
            stages.append(json.loads(stages_file.read_text())["timings"]["total"])
            theirs.append(peer("insert", model, ranges, other))
        onnx.checker.check_model(onnx.load(out))
        report(size, ours, stages, theirs, copies, synced, pairs_of(out),
               pairs_of(other))


def report(size, ours, stages, theirs, copies, synced, pairs, their_pairs):
    t, e, c = best(ours, "seconds"), min(stages), best(copies, "seconds")
    p, anon = best(theirs, "inner"), max(run.anonymous for run in ours)
    their_anon = max(run.anonymous for run in theirs)
    machine()
    table(f"Q/DQ insertion with given ranges, ResNet-50, {size / MIB:.0f} MiB, "
          f"best of {len(ours)}",
          ["", "seconds", "pairs", "peak RssAnon, MiB", "of the file"],
          [["qdq quantize, the whole process", f"{t:.3f}", pairs, f"{anon / MIB:.1f}",
            f"{anon / size:.2f}"],
           ["  the engine in it", f"{e:.3f}", "", "", ""],
           ["onnxruntime's QDQQuantizer, without imports", f"{p:.3f}", their_pairs,
            f"{their_anon / MIB:.1f}", f"{their_anon / size:.2f}"],
           ["cp", f"{c:.3f}", "", "", ""],
           ["cp and sync", f"{best(synced, 'seconds'):.3f}", "", "", ""]])
    table("Budget", ["", "engine", "whole command", "budget"],
          [["faster than QDQQuantizer", f"{p / e:.1f} times", f"{p / t:.1f} times",
            "at least 20"],
           ["time of cp", f"{e / c:.1f} times", f"{t / c:.1f} times", "at most 2"],
           ["peak RssAnon of the file's size", "", f"{anon / size:.2f}",
            "at most 0.5"]])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
