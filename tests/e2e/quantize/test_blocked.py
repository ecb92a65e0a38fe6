# SPDX-License-Identifier: Apache-2.0
"""Tensors that are observed in the runtime's blocked layout: their extremes are those that the
runtime computes in the plain one, whatever stands between the convolutions."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import INSTALLED

QDQ = INSTALLED / "bin" / "qdq"
SHAPE = [3, 12, 12]
RUNTIME = "com.microsoft"


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], output, **attributes)


def erf_gelu(x, y):
    """The exporters' Gelu, which the runtime fuses into its own."""
    return [node("Div", f"{x} root2", f"{y}.div"), node("Erf", f"{y}.div", f"{y}.erf"),
            node("Add", f"{y}.erf one", f"{y}.add"), node("Mul", f"{x} {y}.add", f"{y}.mul"),
            node("Mul", f"{y}.mul half", y)]


def relu(x, y):
    return [node("Relu", x, y)]


def silu(x, y):
    return [node("Sigmoid", x, f"{y}.sigmoid"), node("Mul", f"{x} {y}.sigmoid", y)]


# The session with the runtime's own Gelu cannot be opened with observers in blocks.
BETWEEN = {"relu": relu, "silu": silu, "erf": erf_gelu,
           "gelu": lambda x, y: [node("Gelu", x, y, domain=RUNTIME)]}


def net(between):
    """Returns a model with a residual sum, and convolutions with 16, 20, 24 and 32 channels;
    behind the second one stands what is asked for, and a Relu behind the others."""
    random = np.random.default_rng(3)
    weights = [numpy_helper.from_array(np.float32(value), name) for name, value in
               (("root2", np.sqrt(2)), ("one", 1), ("half", 0.5))]
    nodes = []

    def conv(x, y, channels, of, between=relu):
        values = random.normal(0, 0.3, (channels, of, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"{y}.w"))
        nodes.append(node("Conv", f"{x} {y}.w", f"{y}.conv", pads=[1, 1, 1, 1]))
        nodes.extend(between(f"{y}.conv", y))

    conv("x", "a", 16, 3)
    conv("a", "b", 24, 16, between)
    conv("b", "c", 20, 24)
    conv("c", "d", 16, 20)
    nodes.append(node("Add", "d a", "sum"))
    conv("sum", "e", 32, 16)
    nodes.append(node("Concat", "e sum", "both", axis=1))
    conv("both", "y", 16, 48)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [value("x", TensorProto.FLOAT, ["n", *SHAPE])],
                              [value("y", TensorProto.FLOAT, ["n", 16, *SHAPE[1:]])],
                              weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 13), helper.make_opsetid(RUNTIME, 1)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("between", BETWEEN)
def test_extremes_are_those_of_the_plain_layout(tmp_path, between, threads):
    model = net(BETWEEN[between])
    images = np.random.default_rng(4).normal(0, 1, (5, *SHAPE)).astype(np.float32)
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=images)
    (tmp_path / "s.json").write_text(json.dumps(
        {"evaluate": False, "calibration": {"method": "minmax", "batch": 2}}))
    done = subprocess.run(
        [QDQ, "quantize", "m.onnx", "--spec", "s.json", "--calibration", "d.npz", "-o",
         "o.onnx", "--report", "r.json", "--threads", str(threads)],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    rows = {row["name"]: row for row in report["tensors"]}
    assert {"x", "a", "b", "c", "sum", "both"} <= set(rows)

    names = [name for name in rows if name != "x"]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name != "y")
    session = judge.session(model.SerializeToString())
    seen = [session.run(names, {"x": images[i:i + 2]}) for i in range(0, len(images), 2)]
    for k, name in enumerate(names):
        assert rows[name]["min"] == min(run[k].min() for run in seen), name
        assert rows[name]["max"] == max(run[k].max() for run in seen), name
