# SPDX-License-Identifier: Apache-2.0
"""Weights that a model's nodes compute from constants: their scales are those of the
tensor that onnxruntime computes, and the result runs."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import judge
from service import QUANTIZE

RANDOM = np.random.default_rng(3)
N, C, SIZE = 2, 4, 8


def floats(*shape):
    """Returns numbers whose magnitude differs from channel to channel along every axis.
    """
    return np.float32(RANDOM.standard_normal(shape) * np.exp(RANDOM.standard_normal(shape)))


# The nodes that make `v` and use it, the initializers, the channel axis of v.
MODELS = {
    "transposed": ("v = Transpose <perm = [3, 2, 0, 1]> (w)  y = Conv (x, v)",
                   {"w": floats(3, 3, C, 6)}, 0),
    "reshaped": ("v = Reshape (w, s)  y = Conv (x, v)",
                 {"w": floats(6 * C * 9), "s": [6, C, 3, -1]}, 0),
    "depthwise": ("t = Transpose <perm = [2, 3, 0, 1]> (w)  v = Reshape (t, s) "
                  "y = Conv <group = 4> (x, v)",
                  {"w": floats(3, 3, C, 2), "s": [C * 2, 1, 3, 3]}, 0),
    "reshaped_first": ("t = Reshape (w, s)  v = Transpose <perm = [3, 2, 0, 1]> (t) "
                       "y = Conv <group = 4> (x, v)",
                       {"w": floats(3, 3, C, 2), "s": [3, 3, 1, C * 2]}, 0),
    "passed": ("a = Identity (w)  b = Dropout (a)  v = Cast <to = 1> (b) "
               "y = Conv (x, v)", {"w": floats(6, C, 3, 3)}, 0),
    "unsqueezed": ("v = Unsqueeze (w, a)  b = Squeeze (bias, z)  y = Conv (x, v, b)",
                   {"w": floats(6, C, 1), "a": [3], "bias": floats(1, 6), "z": [0]}, 0),
    "matmul": ("v = Transpose (w)  f = Flatten (x)  y = MatMul (f, v)",
               {"w": floats(5, C * SIZE * SIZE)}, 1),
    "gemm": ("v = Flatten (w)  f = Flatten (x)  y = Gemm <transB = 1> (f, v)",
             {"w": floats(5, C, SIZE, SIZE)}, 0),
    "filled": ("v = ConstantOfShape <value = float[1] {-0.75}> (s)  y = Conv (x, v)",
               {"s": [6, C, 3, 3]}, 0),
    "filled_and_moved": ("a = ConstantOfShape <value = float[1] {0.3}> (s) "
                         "b = Reshape (a, s2)  v = Transpose (b)  y = Conv (x, v)",
                         {"s": [6 * C * 9], "s2": [3, 3, C, 6]}, 0),
    "forms_of_constant": ("a = Constant <value_floats = [0.5, -2.0, 3.0, 1.0]> () "
                          "s = Constant <value_ints = [1, 4, 1, 1]> () "
                          "v = Reshape (a, s)  y = Conv (x, v)", {}, 0),
}


def build(nodes, initializers, output):
    text = (f'<ir_version: 8, opset_import: ["": 17]> '
            f"made (float[{N}, {C}, {SIZE}, {SIZE}] x) => (float[{output}] y) {{{nodes}}}")
    model = onnx.parser.parse_model(text)
    for name, value in initializers.items():
        array = np.array(value, np.int64) if isinstance(value, list) else value
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


@pytest.fixture(params=sorted(MODELS))
def made(request, tmp_path):
    nodes, initializers, axis = MODELS[request.param]
    rank = 4 if "Conv" in nodes else 2
    model = build(nodes, initializers, ", ".join("abcd"[:rank]))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, tmp_path / "model.onnx")
    return model, axis, tmp_path


def outputs(model, *names):
    for name in names:
        if name not in [v.name for v in model.graph.output]:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    x = RANDOM.standard_normal((N, C, SIZE, SIZE)).astype(np.float32)
    return x, judge.session(model.SerializeToString()).run(list(names), {"x": x})


def test_scales(made):
    model, axis, folder = made
    given = {"ranges": {"x": [-4, 4], "f": [-4, 4]}}
    (folder / "spec.json").write_text(json.dumps(
        {"evaluate": False, "calibration": given, "on_unmatched": "warn"}))
    done = subprocess.run([*QUANTIZE, "model.onnx", "--spec",
                           "spec.json", "-o", "out.onnx"], cwd=folder, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    data = (folder / "out.onnx").read_bytes()
    pairs = judge.Pairs(judge.load(data))  # requires nodes in order
    x, (y, weight) = outputs(model, "y", "v")
    others = tuple(i for i in range(weight.ndim) if i != axis)
    expected = np.abs(weight).max(axis=others).astype(np.float64) / 127
    assert np.array_equal(pairs.scale("v"), expected.astype(np.float32))
    (quantize,) = pairs.of("v")
    assert judge.attribute(quantize, "axis", None) == axis
    (quantized,) = judge.session(data).run(None, {"x": x})
    assert judge.sqnr_db(y.astype(np.float64), quantized) > 20
