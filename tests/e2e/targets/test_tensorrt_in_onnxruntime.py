# SPDX-License-Identifier: Apache-2.0
"""Results for TensorRT that ONNX Runtime runs otherwise than they are defined: a warning says so,
and no other result has it."""

import numpy as np
import pytest

import judge
from test_runtime_numbers import BARE, CONSTANTS, CONV, IMAGES, Result, weight

CONSTANTS |= {"low": np.float32(-9), "high": np.float32(9), "thin": 1e-8 * weight(16, 16),
              "dense": weight(16, 16)}
CONSTANTS["dense"][0, 0] = 30
ODD = CONV + " r = Relu (a) b = Conv <pads = [1, 1, 1, 1]> (r, odd, cb) "
TINY = "a = Conv <pads = [1, 1, 1, 1]> (x, tiny, threes) "
FLAT = ("float[N, 16] x", (4, 16))
# name: nodes, the layer that stays in float or None, whether ONNX Runtime differs
PATTERNS = {
    "weight": (ODD + "y = Conv <pads = [1, 1, 1, 1]> (b, k)", "b", True),
    "weight, relu": (ODD + "s = Relu (b) y = Conv <pads = [1, 1, 1, 1]> (s, k)", "b", True),
    "weight of a gemm": ("a = Gemm (x, dense, threes) y = Add (a, x)", "a", True),
    "weight, leaky": (ODD + "s = LeakyRelu (b) y = Conv <pads = [1, 1, 1, 1]> (s, k)", "b", False),
    "weight at the end": (BARE + " r = Relu (a) y = Conv <pads = [1, 1, 1, 1]> (r, odd, cb)", "y", False),
    "bias": (TINY + "y = Conv (a, point)", None, True),
    "bias, relu": (TINY + "r = Relu (a) y = Conv (r, point)", None, True),
    "bias, clip": (TINY + "r = Clip (a, low, high) y = Conv (r, point)", None, True),
    "bias of a gemm": ("a = Gemm <alpha = 2.0> (x, thin, threes) y = Add (a, x)", None, True),
    "bias, sigmoid": (TINY + "s = Sigmoid (a) y = Conv (s, point)", None, False),
    "bias, two readers": (TINY + "r = Relu (a) q = Conv (r, point) y = Add (a, q)", None, False),
    "bias that fits": (CONV + " r = Relu (a) y = Conv (r, point)", None, False),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_difference_is_said(tmp_path, name):
    nodes, layer, differs = PATTERNS[name]
    given = FLAT if "Gemm" in nodes else IMAGES
    # Behind a Gemm stands no other one, whose integer sums overflow on a processor without VNNI.
    sums = [{"name": "y"}] if "Gemm" in nodes else []
    entries = sums + ([{"name": layer, "quantize_weight": False}] if layer else [])
    result = Result(tmp_path, "tensorrt", given, nodes, {"layers": entries})
    literal, ran = result.literal_db(), result.onnxruntime_db()
    assert (ran < literal - 1) == differs
    warnings = [w for w in result.report["warnings"] if w["code"] == "onnxruntime_differs"]
    assert len(warnings) == differs
    if not differs:
        return
    # The advice of the warning mends it.
    named = warnings[0]["node"]
    entries = [*sums, {"name": named, "quantize_input": False, "quantize_weight": False}]
    mended = Result(tmp_path, "tensorrt", given, nodes, {"layers": entries})
    assert "onnxruntime_differs" not in [w["code"] for w in mended.report["warnings"]]
    assert mended.onnxruntime_db() > mended.literal_db() - 1


def test_the_engine_of_tensorrt_gets_the_same_file(tmp_path):
    """The warning changes nothing: the bias is float32 beside int8 weights with their own scales."""
    result = Result(tmp_path, "tensorrt", IMAGES, PATTERNS["bias"][0], {})
    assert judge.sqnr_db(result.real, result.literal(result.path)) > 40
