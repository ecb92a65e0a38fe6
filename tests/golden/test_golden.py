# SPDX-License-Identifier: Apache-2.0
"""Placement: which inputs of which node get a Q/DQ pair, one folder a case.

A case holds model.txt (ONNX's text form; a value that is declared and that no node
makes is a weight, filled here) or model.onnx.xz, spec.json and expect.json:

  layers    node name: op, class, inputs with a pair, weight (and its channel axis; null
            for one scale). No other node has a pair on any input.
  alone     node name: part of the reason for which a node of a known class has none
  unlisted  nodes of no known class, which the plan does not name
  pairs     number of pairs, each tensor once
  warnings  their codes
  error     the code of the error instead of all that

An unnamed node is called @OUTPUT. The folders toolkit_* are tables made by NVIDIA's
TensorFlow quantization toolkit of networks of its tests, ResNet50 and MobileNetV2.

Run with pytest; QDQ is the command's path, that of _install without it.
"""

import json
import lzma
import os
import subprocess
import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
INSTALLED = Path(os.environ.get("QDQD_INSTALLED", HERE.parents[1] / "_install"))
QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
CASES = sorted(p.name for p in HERE.iterdir() if (p / "expect.json").exists())


def fill_weights(graph):
    """Makes initializers of the declared values that no node makes."""
    made = {name for node in graph.node for name in node.output}
    for value in [v for v in graph.value_info if v.name not in made]:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        numbers = np.random.default_rng(zlib.crc32(value.name.encode()))
        array = (numbers.normal(size=shape) if dtype.kind == "f"
                 else np.ones(shape)).astype(dtype)
        graph.initializer.append(numpy_helper.from_array(array, value.name))
        graph.value_info.remove(value)


class Case:
    def __init__(self, name, folder):
        self.expect = json.loads((HERE / name / "expect.json").read_text())
        self.spec = json.loads((HERE / name / "spec.json").read_text())
        packed = HERE / name / "model.onnx.xz"
        if packed.exists():
            self.model = onnx.load_model_from_string(lzma.open(packed).read())
        else:
            text = (HERE / name / "model.txt").read_text()
            self.model = onnx.parser.parse_model(text)
            fill_weights(self.model.graph)
            if "com.example" not in text:
                onnx.checker.check_model(self.model, full_check=True)
        self.folder = folder
        self.path = folder / "model.onnx"
        onnx.save(self.model, self.path)

    def qdq(self, command, *arguments, **members):
        spec = self.folder / "spec.json"
        spec.write_text(json.dumps({**self.spec, **members}))
        return subprocess.run([QDQ, command, self.path, "--spec", spec, *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    return Case(request.param, tmp_path)


def refused(case, done):
    """True when the case wants an error, after checking that this is the one."""
    if "error" not in case.expect:
        assert done.returncode == 0, done.stderr
        return False
    assert done.returncode == 1
    assert case.expect["error"] in done.stderr.strip().splitlines()[-1]
    return True


def rows_of(layers):
    """Node name: (inputs with a pair, has a quantized weight, its axis)."""
    return {name: (row["inputs"], row["weight"], row.get("axis"))
            for name, row in layers.items()}


def test_plan(case):
    done = case.qdq("plan", "--json")
    if refused(case, done):
        return
    plan, expect = json.loads(done.stdout), case.expect
    listed = {row["name"]: row for row in plan["layers"]}
    assert len(listed) == len(plan["layers"]), "names are unique"

    quantized = {name: (row["quantized_inputs"], row["weight_quantized"],
                        row["weight_axis"])
                 for name, row in listed.items()
                 if row["quantized_inputs"] or row["weight_quantized"]}
    assert quantized == rows_of(expect["layers"])
    for name, row in expect["layers"].items():
        assert listed[name]["op"] == row["op"]
        assert listed[name]["class"] == row.get("class", listed[name]["class"])
        assert listed[name]["reason"] == "default"
    for name, reason in expect.get("alone", {}).items():
        assert reason in listed[name]["reason"]
    for name in expect.get("unlisted", []):
        assert name not in listed

    summary = plan["summary"]
    assert summary["layers"] == len(listed)
    assert summary["quantized_layers"] == len(quantized)
    assert summary["qdq_pairs"] == expect.get("pairs", summary["qdq_pairs"])
    codes = sorted(warning["code"] for warning in plan["warnings"])
    assert codes == sorted(expect.get("warnings", codes))


# --- the model itself, by reading its graph ------------------------------------------


def given_ranges(model):
    names = [v.name for v in model.graph.input]
    names += [name for node in model.graph.node for name in node.output if name]
    return {name: [-1, 3] for name in names}


def attribute(node, name):
    return next((helper.get_attribute_value(a) for a in node.attribute
                 if a.name == name), None)


class Placement:
    """Where the pairs of a quantized model lie."""

    def __init__(self, model):
        self.graph = model.graph
        self.makers = {name: n for n in model.graph.node for name in n.output}
        self.constants = {t.name: numpy_helper.to_array(t)
                          for t in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = numpy_helper.to_array(
                    attribute(node, "value"))
        self.pairs = [n for n in model.graph.node if n.op_type == "DequantizeLinear"]

    def source(self, name):
        """The tensor behind the pair that makes `name`, and its axis; or None."""
        dequantize = self.makers.get(name)
        if dequantize is None or dequantize.op_type != "DequantizeLinear":
            return None
        quantize = self.makers[dequantize.input[0]]
        assert quantize.op_type == "QuantizeLinear"
        assert list(quantize.input[1:]) == list(dequantize.input[1:])
        assert attribute(quantize, "axis") == attribute(dequantize, "axis")
        scale = self.constants[quantize.input[1]]
        return quantize.input[0], attribute(quantize, "axis") if scale.ndim else None

    def rows(self):
        rows = {}
        for node in self.graph.node:
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                continue
            inputs, weight, axis = [], False, None
            for i, name in enumerate(node.input):
                source = self.source(name)
                if source and source[0] in self.constants:
                    weight, axis = True, source[1]
                elif source:
                    inputs.append(i)
                    assert source[1] is None, "activations have one scale"
            if inputs or weight:
                rows[node.name or "@" + node.output[0]] = (inputs, weight, axis)
        return rows


def without_metadata(model):
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    del copy.metadata_props[:]
    return copy


def test_model(case):
    """What the plan says is what the model has, and nothing else of it changed."""
    out, report = case.folder / "out.onnx", case.folder / "report.json"
    done = case.qdq("quantize", "-o", out, "--report", report, evaluate=False,
                    calibration={"ranges": given_ranges(case.model)})
    if refused(case, done):
        assert not out.exists()
        return
    model = onnx.load(out)
    if all(o.domain == "" for o in model.opset_import):
        onnx.checker.check_model(model, full_check=True)
    placement = Placement(model)
    assert placement.rows() == rows_of(case.expect["layers"])
    summary = json.loads(report.read_text())["summary"]
    assert len(placement.pairs) == summary["qdq_pairs"]
    assert len(placement.pairs) == case.expect.get("pairs", summary["qdq_pairs"])
    constants = {t.name for t in case.model.graph.initializer}
    inputs = [v for v in case.model.graph.input
              if case.model.ir_version >= 4 or v.name not in constants]
    assert list(model.graph.input) == inputs
    assert model.graph.output == case.model.graph.output
    for pair in placement.pairs:
        assert not placement.constants[pair.input[2]].any(), "symmetric"
    after = [n.output[0] for n in model.graph.node
             if n.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    assert after == [n.output[0] for n in case.model.graph.node], "order"
    weights = {t.name: t for t in model.graph.initializer}
    for tensor in case.model.graph.initializer:
        assert weights[tensor.name] == tensor, "weights are the source's"
