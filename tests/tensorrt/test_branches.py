# SPDX-License-Identifier: Apache-2.0
"""Layers inside an If are integers in NVIDIA's plan, where their pairs stand inside, too."""

import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import INSTALLED

QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
BOTH = """[if] y = If (c) < then_branch = th () => (float[1, 16, 14, 14] t) { [conv1] t = Conv (r, w) },
          else_branch = el () => (float[1, 16, 14, 14] e) { [conv2] e = Conv (r, v) }>"""
OUTSIDE = """[conv0] z = Conv (r, v) [if] s = If (c) <
          then_branch = th () => (float[1, 16, 14, 14] t) { [conv1] t = Conv (r, w) },
          else_branch = el () => (float[1, 16, 14, 14] e) { e = Identity (z) }> y = Add (s, z)"""
NESTED = """[if] y = If (c) < then_branch = th () => (float[1, 16, 14, 14] t) { t = If (d) <
            then_branch = th2 () => (float[1, 16, 14, 14] tt) { [conv1] tt = Conv (r, w) },
            else_branch = el2 () => (float[1, 16, 14, 14] te) { [conv2] te = Conv (r, v) }> },
          else_branch = el () => (float[1, 16, 14, 14] e) { [conv3] e = Conv (r, v) }>"""
AFTER = """[conv0] z = Conv (r, v) [if] s = If (c) <
          then_branch = th () => (float[1, 16, 14, 14] t) { [conv1] t = Conv (r, w) },
          else_branch = el () => (float[1, 16, 14, 14] e) { [conv2] e = Conv (r, v) }> y = Add (s, z)"""
ONE = """[if] y = If (c) < then_branch = th () => (float[1, 16, 14, 14] t) { [conv1] t = Conv (r, w) },
          else_branch = el () => (float[1, 16, 14, 14] e) { e = AveragePool <kernel_shape = [3, 3]> (x) }>"""


@pytest.mark.parametrize("text,convs", [(BOTH, 2), (OUTSIDE, 2), (AFTER, 3), (NESTED, 3), (ONE, 1)],
                         ids=["both", "outside", "after", "nested", "one"])
def test_they_are_integers(tmp_path, plan_of, text, convs):
    random = np.random.default_rng(45)
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
        net (float[1, 16, 16, 16] x, bool c, bool d) => (float[1, 16, 14, 14] y) {{
        r = Relu (x) {text} }}""")
    for name in "wv":
        value = random.standard_normal((16, 16, 3, 3)).astype("float32")
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "c.npz", x=random.standard_normal((8, 16, 16, 16)).astype("float32"),
             c=np.array([True, False] * 4), d=np.array([True, True, False, False] * 2))
    done = subprocess.run([QDQ, "quantize", tmp_path / "m.onnx", "--calibration", tmp_path / "c.npz",
                           "--set", "evaluate=false", "-o", tmp_path / "q.onnx", "--report",
                           tmp_path / "r.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report, plan = json.loads((tmp_path / "r.json").read_text()), plan_of(tmp_path / "q.onnx")
    assert plan.errors == [] and "target_format" not in {w["code"] for w in report["warnings"]}
    names = [row["name"] for row in report["layers"] if row["op"] == "Conv"]
    assert len(names) == convs
    assert [name for name in names if not plan.integer_kernels(name)] == []
