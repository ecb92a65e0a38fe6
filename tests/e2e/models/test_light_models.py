# SPDX-License-Identifier: Apache-2.0
"""Networks that are older than Q/DQ: the light models in the Python package onnx, of
opset 9, converted to opset 13 by onnx's own converter.

Their weights are made by ConstantOfShape, their scales and shifts are Mul and Add of
unsqueezed constants, and their residual connections are Sum."""

import json
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import version_converter

import judge
from service import QUANTIZE

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
OPSET = 13

# Convolutions and dense layers; average pools; max pools; residual sums of a convolution
# (with its normalization) and something else.
NETWORKS = {
    "bvlc_alexnet": (8, 0, 3, 0),
    "densenet121": (121, 4, 1, 0),
    "inception_v1": (58, 1, 13, 0),
    "inception_v2": (70, 8, 5, 0),
    "resnet50": (54, 1, 1, 16),
    "shufflenet": (50, 4, 1, 13),
    "squeezenet": (26, 1, 3, 0),
    "vgg19": (19, 0, 5, 0),
    "zfnet512": (8, 0, 3, 0),
}
WEIGHTED = ("Conv", "Gemm")
POOLS = ("AveragePool", "GlobalAveragePool")


@pytest.fixture(params=sorted(NETWORKS))
def network(request, tmp_path):
    source = onnx.load(LIGHT / f"light_{request.param}.onnx")
    onnx.checker.check_model(source, full_check=True)
    model = version_converter.convert_version(source, OPSET)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, tmp_path / "model.onnx")
    return request.param, model, tmp_path


def quantize(model, folder, **spec):
    """Returns the quantized model, with given ranges, and its report."""
    names = [v.name for v in model.graph.input]
    names += [o for node in model.graph.node for o in node.output]
    given = {"ranges": {name: [-1, 3] for name in names}}
    (folder / "spec.json").write_text(
        json.dumps({**spec, "evaluate": False, "calibration": given}))
    done = subprocess.run([*QUANTIZE, "model.onnx", "--spec",
                           "spec.json", "-o", "out.onnx", "--report", "report.json"],
                          cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    data = (folder / "out.onnx").read_bytes()
    judge.session(data, optimized=False)  # nor any weight unfolded into memory
    return judge.load(data), json.loads((folder / "report.json").read_text())


def fixed_tensors(graph):
    """Returns the tensors that follow from constants alone."""
    fixed = {t.name for t in graph.initializer}
    for node in graph.node:
        if node.op_type not in judge.BOUNDARY and fixed.issuperset(node.input):
            fixed.update(node.output)
    return fixed


def table(model):
    """Returns {node name: its operator, and its activation and weight inputs with pairs}.
    """
    pairs, fixed = judge.Pairs(model), fixed_tensors(model.graph)
    rows = {}
    for node in model.graph.node:
        edges = [i for i, name in enumerate(node.input) if name in pairs.sources]
        weights = [i for i in edges if pairs.sources[node.input[i]] in fixed]
        if edges and node.op_type not in judge.BOUNDARY:
            rows[node.output[0]] = (node.op_type,
                                    [i for i in edges if i not in weights], weights)
    return rows


def of(rows, *ops):
    return [row[1:] for row in rows.values() if row[0] in ops]


def check_defaults(rows, network):
    n_weighted, n_pools, _, _ = NETWORKS[network]
    assert of(rows, *WEIGHTED) == n_weighted * [([0], [1])]
    assert of(rows, *POOLS) == n_pools * [([0], [])]


def test_default(network):
    name, model, folder = network
    quantized, report = quantize(model, folder)
    rows = table(quantized)
    check_defaults(rows, name)
    assert len(rows) == report["summary"]["quantized_layers"] == sum(NETWORKS[name][:2])
    told = [w["code"] for w in report["warnings"]
            if w["rule"] is None or w["code"] == "residual_without_case"]
    assert told == (["residual_without_case"] if NETWORKS[name][3] else [])


def test_cases(network):
    name, model, folder = network
    quantized, report = quantize(model, folder, cases=["residual", "maxpool"])
    rows = table(quantized)
    check_defaults(rows, name)
    assert of(rows, "MaxPool") == NETWORKS[name][2] * [([0], [])]
    sums = of(rows, "Sum")
    assert len(sums) == NETWORKS[name][3]
    assert all(len(inputs) == 1 for inputs, _ in sums), "one branch stays raw"
    assert len(rows) == report["summary"]["quantized_layers"] == sum(NETWORKS[name])
    assert [w for w in report["warnings"] if w["rule"] is None] == []
