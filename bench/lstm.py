# SPDX-License-Identifier: Apache-2.0
"""lstm.py [TURNS]: one LSTM by qdq with dynamic activations, and by quantize_dynamic of
onnxruntime, per tensor and per channel, beside the float one: SQNR and the time of a run, of one
thread, the shortest of TURNS bursts in turns (25), as a ratio to float's. Weights are those of
onnxruntime's own initialization (uniform), inputs are normal, from fixed seeds."""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from common import QDQ, Measured, machine, table

# Inputs, units, steps, batch, directions.
SHAPES = [(16, 16, 1, 1, 1), (16, 16, 50, 1, 1), (32, 32, 50, 1, 1), (40, 64, 50, 1, 1),
          (64, 64, 1, 1, 1), (64, 64, 50, 1, 1), (128, 128, 1, 1, 1), (128, 128, 50, 1, 1),
          (256, 512, 1, 1, 1), (256, 512, 20, 1, 1), (512, 512, 50, 1, 1), (256, 256, 50, 8, 1),
          (256, 256, 50, 1, 2)]
BURST = 0.02  # seconds


def net(inputs, units, directions):
    random = np.random.default_rng(0)
    tensors = {name: random.uniform(-1, 1, (directions, *shape)).astype(np.float32) / units ** 0.5
               for name, shape in (("w", (4 * units, inputs)), ("r", (4 * units, units)),
                                   ("b", (8 * units,)))}
    node = helper.make_node("LSTM", ["x", *tensors], ["y"], hidden_size=units,
                            direction="bidirectional" if directions == 2 else "forward")
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in tensors.items()])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def seconds(one, feed, n):
    start = time.process_time()
    for _ in range(n):
        one.run(None, feed)
    return (time.process_time() - start) / n


def measure(shape, turns, folder):
    inputs, units, steps, batch, directions = shape
    files = {name: folder / f"{name}.onnx" for name in ("float", "qdq", "tensor", "channel")}
    onnx.save(net(inputs, units, directions), files["float"])
    (folder / "spec.json").write_text(json.dumps(
        {"target": "onnxruntime", "activations": "dynamic", "recipe": "none"}))
    Measured([QDQ, "quantize", files["float"], "--spec", folder / "spec.json", "-o", files["qdq"]])
    for name in ("tensor", "channel"):
        quantize_dynamic(files["float"], files[name], weight_type=QuantType.QInt8,
                         per_channel=name == "channel")
    x = np.random.default_rng(1).normal(0, 1, (steps, batch, inputs)).astype(np.float32)
    feed, sessions = {"x": x}, {name: session(path) for name, path in files.items()}
    real = sessions["float"].run(None, feed)[0]
    best = dict.fromkeys(files, np.inf)
    n = max(3, int(BURST / seconds(sessions["float"], feed, 3)))
    for _ in range(turns):
        for name, one in sessions.items():
            best[name] = min(best[name], seconds(one, feed, n))
    row = [", ".join(map(str, shape)), f"{best['float'] * 1e6:.0f}"]
    for name in ("qdq", "tensor", "channel"):
        error = real - sessions[name].run(None, feed)[0]
        row += [f"{10 * np.log10((real ** 2).sum() / (error ** 2).sum()):.1f}",
                f"{best[name] / best['float']:.2f}"]
    return row


def main():
    turns = int(sys.argv[1]) if sys.argv[1:] else 25
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(shape, turns, Path(folder)) for shape in SHAPES]
    machine()
    table("One LSTM, dynamic activations", [
        "inputs, units, steps, batch, directions", "float, µs", "qdq, dB", "time",
        "quantize_dynamic, dB", "time", "per channel, dB", "time"], rows)


if __name__ == "__main__":
    main()
