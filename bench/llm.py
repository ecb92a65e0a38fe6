# SPDX-License-Identifier: Apache-2.0
"""llm.py [K [OUTPUTS [ROUNDS [THREADS]]]]: measures compensated rounding of one layer of a large
language model: a MatMul of 4,096 by 4,096, of which 8,192 rows of correlated random input are
observed. int8 is factorization and GPTQ alone; int4 in blocks of 32 has the search of
scales and the refinement, too. The bounds are 4 and 15 s on two cores with AVX2."""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import MIB, QDQ, Measured, best, machine, table

SPECS = (("int8 per channel: factorization and GPTQ", {"dtype": "int8"}),
         ("int4 in blocks of 32: with refinement", {"dtype": "int4",
                                                    "granularity": {"block": 32}}))


def make(folder, k, outputs):
    random = np.random.default_rng(1)
    weight = random.standard_normal((k, outputs), np.float32) / np.float32(np.sqrt(k))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "proj")], "layer",
        [helper.make_tensor_value_info("x", 1, ["n", "t", k])],
        [helper.make_tensor_value_info("y", 1, ["n", "t", outputs])],
        [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                ir_version=10), folder / "model.onnx")
    mix = random.standard_normal((64, k), np.float32)
    x = random.standard_normal((16, 512, 64), np.float32) @ mix / 8
    x += random.standard_normal(x.shape, np.float32) / 2
    np.savez(folder / "data.npz", x=x)


def quantize(folder, weights, threads):
    spec, report = folder / "spec.json", folder / "report.json"
    spec.write_text(json.dumps({"activations": "none", "evaluate": False, "weights": {
        "storage": "dq", "rounding": "gptq", **weights}}))
    run = Measured([QDQ, "quantize", folder / "model.onnx", "--spec", spec,
                    "--calibration", folder / "data.npz", "--observations",
                    folder / "kept", "-o", folder / "out.onnx", "--report", report,
                    "--threads", threads])
    run.stage = json.loads(report.read_text())["timings"]["quantize"]
    return run


def main(k=4096, outputs=4096, rounds=3, threads=os.cpu_count()):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        make(folder, int(k), int(outputs))
        quantize(folder, SPECS[0][1], threads)  # collects the moments
        rows = []
        for name, weights in SPECS:
            runs = [quantize(folder, weights, threads) for _ in range(int(rounds))]
            rows.append([name, f"{best(runs, 'stage'):.1f}", f"{best(runs, 'cpu'):.1f}",
                         f"{runs[0].anonymous / MIB:.0f}"])
    machine()
    table(f"Rounding of a MatMul of {k} by {outputs}, {threads} threads, best of {rounds}",
          ["", "seconds of the stage", "processor seconds of the process",
           "peak RssAnon, MiB"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
