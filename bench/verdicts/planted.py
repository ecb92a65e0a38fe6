# SPDX-License-Identifier: Apache-2.0
"""planted.py [--count N]: networks whose output joins a large head with a small one, quantized for
three targets by five recipes with the gates 25 dB and cosine 0.99. Counts the results that are
`good` or accepted although one of their heads has less than 10 dB about its mean as deployed, on
samples that no job had. Takes some ten minutes; OpenVINO judges where its package is there."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, machine, table  # noqa: E402

sys.path.append(sys.path.pop(0))  # The package openvino comes before a file here.
sys.path.insert(0, str(ROOT / "tests/e2e/accuracy"))
import planted_heads  # noqa: E402

QDQ = os.environ.get("QDQ", ROOT / "_install/bin/qdq")
SPECS = {
    "none": {"recipe": "none"},
    "auto": {"recipe": "auto"},
    "best": {"recipe": "best"},
    "search": {"recipe": "none", "search": {"min_sqnr_db": 25, "samples": 16}},
    "dynamic": {"activations": "dynamic"},
}
GATES = {"min_sqnr_db": 25, "min_cosine": 0.99}


def openvino_session(path):
    from openvino import Core
    model = Core().compile_model(
        path, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    return lambda x: model([x])[0].copy()


def plain_session(path, literal):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if literal:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def outputs(path, target, x):
    run = (openvino_session(path) if target == "openvino"
           else plain_session(path, target == "tensorrt"))
    return [run(x[i:i + 1]) for i in range(len(x))]


def judge(planted, folder, target, spec, fresh):
    """Returns what became of one job, and the SQNR of its worst head."""
    model, report = folder / "q.onnx", folder / "r.json"
    for file in model, report:
        file.unlink(missing_ok=True)
    (folder / "s.json").write_text(json.dumps({"target": target, **spec, "accept": GATES}))
    subprocess.run([QDQ, "quantize", folder / "m.onnx", "--spec", folder / "s.json", "--calibration",
                    folder / "c.npz", "-o", model, "--report", report, "--threads", "1"],
                   capture_output=True, check=False)
    if not report.exists():
        return "refused", None
    if not model.exists():
        return "rejected", None
    verdict = json.loads(report.read_text())["summary"]["verdict"]
    worst = min(planted.sqnr(outputs(folder / "m.onnx", target, fresh),
                             outputs(model, target, fresh)))
    return f"accepted, {verdict}", worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    count = parser.parse_args().count
    print(machine())
    counts, passed = Counter(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form, ratio, planted in list(planted_heads.all_planted())[:count]:
            planted_heads.save(planted, folder / "m.onnx")
            np.savez(folder / "c.npz", x=planted.samples(64))
            for target in "tensorrt", "onnxruntime", "openvino":
                for recipe, spec in SPECS.items():
                    what, worst = judge(planted, folder, target, spec, planted.samples(32, 9))
                    counts[target, recipe, what] += 1
                    if worst is not None and worst < 10:
                        passed.append([form, ratio, target, recipe, what, f"{worst:.1f}"])
    table("jobs", ["target", "recipe", "outcome", "jobs"], [[*key, n] for key, n in sorted(counts.items())])
    table("accepted with a head below 10 dB", ["form", "ratio", "target", "recipe", "outcome", "dB"], passed)


if __name__ == "__main__":
    main()
