# SPDX-License-Identifier: Apache-2.0
"""The warning weights_in_loop: a layer in a body multiplies by what a Loop or Scan carries and never changes."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

from service import INSTALLED

BODY = """body ({head} float[1, 8] h_in, float[8, 8] w_in{row}) => ({tail} float[1, 8] h_out, float[8, 8] w_out)
    {{ {condition} m = MatMul (h_in, {weight})  {more} h_out = Tanh (m) w_out = {kept} }}"""
LOOP = {"head": "int64 i, bool c_in,", "tail": "bool c_out,", "row": "", "condition": "c_out = Identity (c_in)"}
SCAN = {"head": "", "tail": "", "row": ", float[1, 8] row", "condition": ""}


def make(path, kind, weight="w_in", kept="Identity (w_in)", given="w", more=""):
    body = BODY.format(weight=weight, kept=kept, more=more, **(LOOP if kind == "Loop" else SCAN))
    call = (f"h, z = Loop (n, true, x, {given}) <body = {body}>" if kind == "Loop" else
            f"h, z = Scan (x, {given}, rows) <num_scan_inputs = 1, body = {body}>")
    graph = parser.parse_graph(
        f"net (float[1, 8] x, float[8, 8] v, float[3, 1, 8] rows) => (float[1, 8] h) {{ {call} }}")
    constants = {"w": np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32), "n": np.array(3),
                 "true": np.array(True)}
    used = {name for node in graph.node for name in node.input} | {weight}
    graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items() if k in used)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    onnxruntime.InferenceSession(path)


def warned(folder, target):
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", folder / "m.onnx", "--target", target, "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [w["detail"] for w in json.loads(done.stdout)["warnings"] if w["code"] == "weights_in_loop"]


@pytest.mark.parametrize("target", ["tensorrt", "openvino", "qnn"])
@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_it_names_the_layer(tmp_path, kind, target):
    make(tmp_path / "m.onnx", kind)
    [said] = warned(tmp_path, target)
    assert said.startswith("1 layer (") and "carries" in said


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
@pytest.mark.parametrize("more", [
    {"weight": "w"},                                                     # a constant from outside
    {"given": "v"},                                                      # an input of the model
    {"kept": "Identity (other)", "more": "other = Add (w_in, w_in)"}])   # it changes
def test_other_weights_are_not_named(tmp_path, kind, more):
    make(tmp_path / "m.onnx", kind, **more)
    assert warned(tmp_path, "openvino") == []

