# SPDX-License-Identifier: Apache-2.0
"""external.py [GB [RUNS]]: quantizes the weights of a model far beyond 2 GB to int8,
compared with cp.

The model has MatMul layers with weights of 256 MiB in one data file, 6 GB by default; the
disk must hold that three times. The weights are blocks of the same normal random numbers
in different orders. Ranges are given and nothing is evaluated, so no model runs. cp and
qdq take turns, and each ends by syncing its files; the shortest times are printed. qdq
also hashes the files that it reads, which doubles the bytes that it reads compared with
cp."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from common import MIB, QDQ, Measured, best, machine, table

WIDE, NARROW = 16384, 4096  # elements; 256 MiB of float32


def write_weights(path, layers):
    random = np.random.default_rng(0)
    block = random.standard_normal(NARROW * 4096, dtype=np.float32) * 0.02
    with open(path, "wb") as file:
        for _ in range(layers * WIDE * NARROW // len(block)):
            file.write(np.roll(block, int(random.integers(len(block)))).data)


def make(folder, layers):
    nodes, weights = [], []
    for i in range(layers):
        shape = [NARROW, WIDE] if i % 2 == 0 else [WIDE, NARROW]
        weight = onnx.TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=shape,
                                  data_location=TensorProto.EXTERNAL)
        size = WIDE * NARROW * 4
        for key, text in (("location", "big.data"), ("offset", i * size),
                          ("length", size)):
            weight.external_data.add(key=key, value=str(text))
        weights.append(weight)
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"],
                                      f"mm{i}"))
    last = NARROW if layers % 2 == 0 else WIDE
    graph = helper.make_graph(
        nodes, "big",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [1, NARROW])],
        [helper.make_tensor_value_info(f"t{layers}", TensorProto.FLOAT, [1, last])],
        weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), folder / "big.onnx")
    write_weights(folder / "big.data", layers)


def main(gigabytes, rounds):
    layers = max(1, round(gigabytes * 1e9 / (WIDE * NARROW * 4)))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        make(folder, layers)
        data, out = folder / "big.data", folder / "out.onnx"
        spec = folder / "spec.json"
        spec.write_text(json.dumps({
            "evaluate": False, "weights": {"storage": "dq"},
            "output": {"external_data": "always"},
            "calibration": {"ranges": {f"t{i}": [-1, 1] for i in range(layers + 1)}}}))
        size = data.stat().st_size
        copies, ours, stages = [], [], []
        for _ in range(rounds):
            copy = folder / "copy"
            copies.append(Measured(["sh", "-c", f"cp {data} {copy} && sync {copy}"]))
            copy.unlink()
            subprocess.run(["sync", folder], check=True)
            ours.append(Measured([QDQ, "quantize", folder / "big.onnx", "--spec", spec,
                                  "-o", out, "--report", folder / "report.json"]))
            stages.append(json.loads((folder / "report.json").read_text())["timings"])
            out.unlink()
            (folder / "out.onnx.data").unlink()
            subprocess.run(["sync", folder], check=True)
    engine = min(stages, key=lambda timings: timings["total"])
    machine()
    rows = [(name, f"{best(runs, 'seconds'):.2f}", f"{best(runs, 'cpu'):.2f}",
             f"{max(r.anonymous for r in runs) / MIB:.1f}")
            for name, runs in (("cp of the data, synced", copies), ("qdq quantize", ours))]
    table(f"{layers} layers, {size / 1e9:.2f} GB of external data, {rounds} runs each",
          ("", "seconds", "of processors", "peak RssAnon, MiB"), rows)
    print(f"\nqdq takes {best(ours, 'seconds') / best(copies, 'seconds'):.2f} times cp; "
          f"the engine alone {engine['total']:.2f} s, of which scales "
          f"{engine['quantize']:.2f} s and writing {engine['write']:.2f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 6,
         int(sys.argv[2]) if len(sys.argv) > 2 else 3)
