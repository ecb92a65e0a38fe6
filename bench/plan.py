# SPDX-License-Identifier: Apache-2.0
"""plan.py [RUNS]: measures how the time of planning grows with the graph, with every case
of the library.

The networks of 5,000 to 40,000 nodes are made here: residual blocks with and without
squeeze-and-excite, max pools, concatenations and a dense head, with small weights. The
stage's time comes from the report of `qdq quantize` with given ranges, so that no model
runs. The command is `qdq plan --json`, a whole process that reads model and spec and
prints every node. The shortest of several rounds is printed."""

import json
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from common import QDQ, Measured, best, machine, table
from make_model import Builder

SIZES = (5_000, 10_000, 20_000, 40_000)
BUDGET_NODES, BUDGET_MS = 20_000, 100
CASES = ("resnet_v1", "resnet_v2", "mobilenet", "efficientnet", "inception", "residual",
         "maxpool", "batchnorm")
CHANNELS = 8


class Network(Builder):
    def normalized(self, name, x):
        h = self.conv(f"{name}_conv", x, CHANNELS, CHANNELS, 1)
        statistics = [self.weight(f"{name}_bn.{what}", (CHANNELS,), 1.0)
                      for what in ("scale", "shift", "mean", "variance")]
        return self.node("BatchNormalization", f"{name}_bn", h, *statistics)

    def excite(self, name, x):
        h = self.node("GlobalAveragePool", f"{name}_squeeze", x)
        h = self.conv(f"{name}_reduce", h, CHANNELS, CHANNELS, 1)
        swish = self.node("Mul", f"{name}_swish", h,
                          self.node("Sigmoid", f"{name}_swish_gate", h))
        h = self.conv(f"{name}_expand", swish, CHANNELS, CHANNELS, 1)
        return self.node("Mul", f"{name}_excite", x,
                         self.node("Sigmoid", f"{name}_gate", h))

    def block(self, k, x):
        """Adds a block of seven nodes, and a few more now and then."""
        name = f"block{k}"
        h = self.node("Relu", f"{name}_relu1", self.normalized(f"{name}_1", x))
        if k % 4 == 1:
            h = self.excite(name, h)
        h = self.normalized(f"{name}_2", h)
        h = self.node("Relu", f"{name}_relu2",
                      self.node("Add", f"{name}_add", h, x))
        if k % 8 == 2:
            h = self.node("MaxPool", f"{name}_pool", h, kernel_shape=[3, 3],
                          pads=[1, 1, 1, 1])
        if k % 8 == 5:
            h = self.conv(f"{name}_mix", self.node("Concat", f"{name}_concat", h, x,
                                                   axis=1), 2 * CHANNELS, CHANNELS, 1)
        return h


def make(n_nodes):
    """Makes a network of about this many nodes."""
    b = Network()
    x, k = b.conv("stem", "input", 3, CHANNELS, 3), 0
    while len(b.nodes) < n_nodes - 3:
        x, k = b.block(k, x), k + 1
    x = b.node("Flatten", "flatten", b.node("GlobalAveragePool", "pool", x))
    b.node("Gemm", "dense", x, b.weight("dense.weight", (10, CHANNELS), 1.0), transB=1)
    image = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, 8, 8])
    logits = helper.make_tensor_value_info("dense_out", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(b.nodes, "blocks", [image], [logits], b.weights)
    return helper.make_model(graph, ir_version=8, producer_name="qdqd-bench",
                             opset_imports=[helper.make_opsetid("", 13)])


class Graph:
    """A network on disk, and its measured rounds."""

    def __init__(self, n_nodes, folder):
        model = make(n_nodes)
        onnx.checker.check_model(model, full_check=True)
        self.folder = folder / str(n_nodes)
        self.folder.mkdir()
        self.n_nodes = len(model.graph.node)
        self.model = self.folder / "model.onnx"
        onnx.save(model, self.model)
        names = ["input", *(node.output[0] for node in model.graph.node)]
        ranges = {"evaluate": False,
                  "calibration": {"ranges": {name: [-2.5, 3.0] for name in names}}}
        self.spec("plain.json", ranges)
        self.spec("cases.json", {**ranges, "cases": CASES})
        self.spec("plan.json", {"cases": CASES})
        self.plain, self.cases, self.commands = [], [], []

    def spec(self, name, spec):
        (self.folder / name).write_text(json.dumps(spec))

    def stage(self, spec):
        """Returns the seconds of the plan, and the number of pairs."""
        report = self.folder / "report.json"
        Measured([QDQ, "quantize", self.model, "--spec", self.folder / spec,
                  "-o", self.folder / "out.onnx", "--report", report])
        report = json.loads(report.read_text())
        return report["timings"]["plan"], report["summary"]["qdq_pairs"]

    def round(self):
        self.plain.append(self.stage("plain.json"))
        self.cases.append(self.stage("cases.json"))
        self.commands.append(Measured([QDQ, "plan", self.model, "--spec",
                                       self.folder / "plan.json", "--json"]))

    def row(self):
        plain, cases = min(self.plain)[0] * 1e3, min(self.cases)[0] * 1e3
        return [f"{self.n_nodes:,}", self.cases[0][1], f"{plain:.1f}", f"{cases:.1f}",
                f"{cases / self.n_nodes * 1e3:.2f}",
                f"{best(self.commands, 'seconds') * 1e3:.0f}"]


def main(rounds):
    with tempfile.TemporaryDirectory() as folder:
        graphs = {n: Graph(n, Path(folder)) for n in SIZES}
        for _ in range(rounds):
            for graph in graphs.values():
                graph.round()
        machine()
        table(f"Planning, best of {rounds}",
              ["nodes", "pairs", "stage without cases, ms",
               f"stage with {len(CASES)} cases, ms", "µs a node", "qdq plan --json, ms"],
              [graph.row() for graph in graphs.values()])
        measured = min(graphs[BUDGET_NODES].cases)[0] * 1e3
        table("Budget", ["", "measured", "budget"],
              [[f"stage with {len(CASES)} cases, {BUDGET_NODES:,} nodes",
                f"{measured:.1f} ms", f"under {BUDGET_MS} ms"]])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
