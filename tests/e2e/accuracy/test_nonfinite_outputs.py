# SPDX-License-Identifier: Apache-2.0
"""Outputs with elements that are the same infinity or NaN in both models, as masked logits are."""

import json
import re
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

CLASSES, MASKED = 12, 3


def masked_net(fill, rng):
    """Two Gemms whose logits of some classes are `fill`."""
    first, second = (rng.normal(size=size).astype(np.float32) for size in ((16, 32), (32, CLASSES)))
    mask = np.zeros(CLASSES, np.bool_)
    mask[:MASKED] = True
    nodes = [helper.make_node("Gemm", ["x", "a"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "b"], ["l"]),
             helper.make_node("Where", ["mask", "fill", "l"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in (
            ("a", first), ("b", second), ("mask", mask), ("fill", np.float32(fill)))])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def report(folder, fill, target):
    rng = np.random.default_rng(11)
    (folder / "m.onnx").write_bytes(masked_net(fill, rng).SerializeToString())
    np.save(folder / "x.npy", rng.normal(size=(80, 16)).astype(np.float32))
    done = subprocess.run(
        [*QUANTIZE, "m.onnx", "--calibration", "x.npy", "--target", target, "--recipe", "none",
         "-o", "q.onnx", "--report", "r.json", "--html", "r.html"], cwd=folder,
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\b(nan|inf)\b", done.stdout + done.stderr)
    return json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize("target", ["tensorrt", "onnxruntime"])
@pytest.mark.parametrize("fill", [-np.inf, np.inf, np.nan])
def test_they_are_left_out_and_counted(tmp_path, fill, target):
    found = report(tmp_path, fill, target)
    evaluation = found["evaluation"]
    for figures in [evaluation["outputs"], (evaluation["deployed"] or evaluation)["outputs"]]:
        (output,) = figures
        assert output["nonfinite"] == MASKED * evaluation["samples"]
        assert 20 < output["sqnr_db"] < 60 and output["cosine"] > 0.98
        assert np.isfinite(output["max_abs_error"])
    assert found["summary"]["quantized_layers"] == 2
    assert found["summary"]["verdict"] in ("good", "fair")
    if fill == -np.inf:  # else a masked class has the top of each sample
        assert not [w for w in found["warnings"] if w["code"] == "data_implausible"]
