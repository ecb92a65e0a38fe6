# SPDX-License-Identifier: Apache-2.0
"""A library in OpenVINO's place (tests/unit/deploy/fake_openvino.c), and models at which it
crashes or never ends."""

import subprocess

import numpy as np
import onnx

from service import ROOT

# Both products are in integers, also on a processor where they do not pay, and where OpenVINO is wrong.
SPEC = {"target": "openvino", "rules": {"V4": False, "V21": False}}
SAMPLES = np.linspace(-1, 1, 24 * 8, dtype=np.float32).reshape(24, 8)


def library():
    """Returns its path. `make check` builds it, too."""
    target = "tests/unit/deploy/libfake_openvino.la"
    subprocess.run(["make", "-C", ROOT / "build", "--no-print-directory", "--silent", target],
                   check=True, capture_output=True)
    return ROOT / "build/tests/unit/deploy/.libs/libfake_openvino.so"


def model(what):
    """Two products, and a text that tells the library what to do: "crash here", "hang here"."""
    make = onnx.helper
    weights = [onnx.numpy_helper.from_array(
        np.random.default_rng(i).normal(size=(8, 8)).astype(np.float32), name)
        for i, name in enumerate("wv")]
    graph = make.make_graph(
        [make.make_node("MatMul", ["x", "w"], ["h"], "first"),
         make.make_node("MatMul", ["h", "v"], ["y"], "second")], "g",
        [make.make_tensor_value_info("x", 1, [1, 8])],
        [make.make_tensor_value_info("y", 1, [1, 8])], weights)
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8,
                           producer_name=what)
