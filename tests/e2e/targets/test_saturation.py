# SPDX-License-Identifier: Apache-2.0
"""Rule C7: processors without VNNI add two products of 8 bits in 16 bits, and no sum saturates,
for the largest activations and for weights of one sign, as either runtime pairs them."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import QUANTIZE

# The weight's shape, and that of a sample.
LAYERS = {
    "Conv": ((16, 6, 3, 3), (1, 6, 12, 12)),
    "Conv of three channels": ((16, 3, 5, 5), (1, 3, 12, 12)),
    "Conv of one channel": ((16, 1, 5, 5), (1, 1, 12, 12)),
    "ConvTranspose": ((6, 16, 2, 2), (1, 6, 12, 12)),
    "MatMul": ((31, 48), (5, 31)),
}
RUN = {"target openvino": {"V4": False}, "target onnxruntime": {"C15": False, "C16": False}}


def net(name):
    """Returns a layer whose weights are positive. Some of them are large, as neighbours often
    are not."""
    shape, sample = LAYERS[name]
    rng = np.random.default_rng(1)
    weight = np.abs(rng.normal(size=shape)) ** 2
    node = helper.make_node(name.split()[0], ["x", "w"], ["y"], name="layer")
    graph = helper.make_graph(
        [node], "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, sample)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight.astype(np.float32), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def figures(folder, name, target, **rules):
    """Returns the literal SQNR and the one as deployed, for samples of which half have the
    largest activation nearly everywhere."""
    rng = np.random.default_rng(2)
    rows = [np.where(rng.random((LAYERS[name][1])) < (0.9 if i % 2 else 0.1), 1,
                     rng.random(LAYERS[name][1])).astype(np.float32) for i in range(16)]
    np.savez(folder / "x.npz", x=np.stack(rows))
    onnx.save(net(name), folder / "net.onnx")
    (folder / "spec.json").write_text(json.dumps({
        "target": target, "recipe": "none", "evaluate": True,
        "rules": {**RUN[f"target {target}"], **rules}}))
    [library] = (Path(openvino.__file__).parent / "libs").glob("libopenvino_c.so.*")
    done = subprocess.run(
        [*QUANTIZE, folder / "net.onnx", "--spec", folder / "spec.json",
         "--calibration", folder / "x.npz", "-o", folder / "q.onnx", "--report",
         folder / "report.json"], capture_output=True, text=True,
        env={**os.environ, "QDQD_ENGINE_OPENVINO": str(library)})
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    assert any(layer["weight_quantized"] for layer in report["layers"])
    [literal] = report["evaluation"]["outputs"]
    [deployed] = report["evaluation"]["deployed"]["outputs"]
    return literal["sqnr_db"], deployed["sqnr_db"]


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("name", LAYERS)
def test_no_sum_saturates(tmp_path, name, target):
    if name == "ConvTranspose" and target == "onnxruntime":
        pytest.skip("ONNX Runtime has no integer kernel for it")
    literal, deployed = figures(tmp_path, name, target, C7=True)
    assert deployed == pytest.approx(literal, abs=0.5) and literal > 30
    if judge.saturates() and name not in ("Conv of one channel", "ConvTranspose"):
        literal, deployed = figures(tmp_path, name, target, C7=False)
        assert deployed < literal - 6
