# SPDX-License-Identifier: Apache-2.0
"""Rounding of weights that several layers read."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import QUANTIZE

R = np.random.default_rng(3)
SIZE = 24
BODIES = {
    "MatMul, then Gemm": "a = MatMul (x, w) b = Relu (a) y = Gemm <transB = 1> (b, w)",
    "Gemm, then MatMul": "a = Gemm <transB = 1> (x, w) b = Relu (a) y = MatMul (b, w)",
    "two MatMuls": "a = MatMul (x, w) b = Relu (a) y = MatMul (b, w)",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_square_weight_is_rounded_along_its_layers_outputs(tmp_path, body):
    """Where layers disagree about the axis, the weight has the nearest integers, and the
    report says so. Where they agree, the integers lower the error of the outputs."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>\n'
        f"net (float[n, {SIZE}] x) => (float[n, {SIZE}] y) {{ {BODIES[body]} }}")
    weight = R.normal(size=(SIZE, SIZE)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    mix = R.normal(size=(4, SIZE))
    x = (R.normal(size=(256, 4)) @ mix + R.normal(size=(256, SIZE)) / 9).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x)
    spec = {"activations": "none", "evaluate": False, "bias_correction": False,
            "weights": {"dtype": "int8", "granularity": "tensor", "storage": "dq",
                        "rounding": "gptq"}}
    (tmp_path / "s.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, "m.onnx", "--spec", "s.json", "-o", "o.onnx",
                           "--calibration", "d.npz", "--report", "r.json"], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    constants = {t.name: numpy_helper.to_array(t)
                 for t in onnx.load(tmp_path / "o.onnx").graph.initializer}
    integers = constants["w_quantized"].astype(np.int64)
    scale = next(float(v) for name, v in constants.items() if name.startswith("w_scale"))
    nearest = np.rint(weight / np.float32(scale)).astype(np.int64)
    warnings = json.loads((tmp_path / "r.json").read_text())["warnings"]
    told = [w["detail"] for w in warnings if w["code"] == "rounded_to_nearest"]
    if body.count("MatMul") == body.count("Gemm"):
        assert (integers == nearest).all()
        assert len(told) == 1 and "different ways" in told[0]
        return
    assert not told and (integers != nearest).any()
    noise = [np.square(x @ (weight - scale * q)).sum() for q in (integers, nearest)]
    assert noise[0] < noise[1] / 2, noise
