# SPDX-License-Identifier: Apache-2.0
"""A plan takes a time that grows with the nodes of the model, however they are connected."""

import resource
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import INSTALLED

NODES = 30_000
SECONDS = 5  # of the processor; each of these took more than 10


def readers():
    """All layers read one tensor, and each makes an output."""
    nodes = [helper.make_node("MatMul", ["x", "w"], [f"y{i}"]) for i in range(NODES)]
    return nodes, [f"y{i}" for i in range(NODES)]


def weights_in_a_row():
    """Each weight is the transposed one of the layer before."""
    nodes, x, w = [], "x", "w"
    for i in range(NODES):
        nodes += [helper.make_node("MatMul", [x, w], [f"y{i}"]),
                  helper.make_node("Transpose", [w], [f"w{i}"])]
        x, w = f"y{i}", f"w{i}"
    return nodes, [x]


def model(nodes, outputs):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])

    graph = helper.make_graph(nodes, "large", [value("x")], [value(y) for y in outputs],
                              [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("make", [readers, weights_in_a_row])
def test_a_plan(make, tmp_path):
    onnx.save(model(*make()), tmp_path / "m.onnx")
    (tmp_path / "spec.json").write_text('{"target": "onnxruntime"}')

    def seconds():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    before = seconds()
    subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "m.onnx", "--json",
                    "--spec", tmp_path / "spec.json"],
                   check=True, stdout=subprocess.DEVNULL, timeout=600)
    assert seconds() - before < SECONDS


@pytest.mark.parametrize("callers_last", [True, False])
@pytest.mark.parametrize("depth", [500, 501])
def test_functions_that_call_each_other(depth, callers_last, tmp_path):
    """ONNX Runtime inlines them by recursion, and ends at a few thousand."""
    head = '<domain: "f", opset_import: ["": 17, "f": 1]> '
    bodies = ["f0 (X) => (Y) { Y = Relu (X) }"] + [
        f"f{i} (X) => (Y) {{ Y = f.f{i - 1} (X) }}" for i in range(1, depth)]
    made = model([helper.make_node(f"f{depth - 1}", ["x"], ["r"], domain="f"),
                  helper.make_node("MatMul", ["r", "w"], ["y"])], ["y"])
    made.functions.extend(onnx.parser.parse_function(head + body)
                          for body in (bodies if callers_last else bodies[::-1]))
    made.opset_import.append(helper.make_opsetid("f", 1))
    onnx.save(made, tmp_path / "m.onnx")
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "m.onnx"],
                          capture_output=True, text=True, timeout=60)
    said = "qdq: limit_exceeded: the model's functions call each other more than 500 deep"
    assert (done.returncode, said in done.stderr) == ((1, True) if depth > 500 else (0, False))
