# SPDX-License-Identifier: Apache-2.0
"""Rule P6: the runtimes read a zero point that is left out as 0, whatever the format and the layer."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

RANDOM = np.random.default_rng(8)
WEIGHTS = {"MatMul": (64, 48), "Gemm": (48, 64), "Conv": (24, 32, 3, 3), "ConvTranspose": (32, 24, 3, 3),
           "Gather": (40, 64)}
FORMATS = ("int2", "uint2", "int3", "int4", "uint4", "int8", "uint8")


def net(op, positive):
    """Without negative numbers, blocks of unsigned integers may have 0 as zero point."""
    weight = RANDOM.standard_normal(WEIGHTS[op]).astype(np.float32) / 8
    weight = np.abs(weight) if positive else weight
    shape = {"Gather": [7], "MatMul": ["n", 64], "Gemm": ["n", 64]}.get(op, ["n", 32, 6, 6])
    kind = TensorProto.INT64 if op == "Gather" else TensorProto.FLOAT
    more = {"transB": 1} if op == "Gemm" else {}
    node = helper.make_node(op, ["w", "x"] if op == "Gather" else ["x", "w"], ["y"], "layer", **more)
    graph = helper.make_graph([node], "net", [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    given = RANDOM.integers(0, 40, 7) if op == "Gather" else RANDOM.standard_normal(
        [3 if d == "n" else d for d in shape]).astype(np.float32)
    return onnx.shape_inference.infer_shapes(model), given


def quantized(folder, target, model, dtype, leave_out):
    onnx.save(model, folder / "m.onnx")
    (folder / "spec.json").write_text(json.dumps({
        "target": target, "opset": "auto", "activations": "none", "evaluate": False,
        "weights": {"dtype": dtype, "granularity": {"block": 16}, "rounding": "nearest"},
        "layers": [{"name": "layer"}], "rules": {"P6": leave_out}}))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "spec.json", "-o",
                           folder / "q.onnx"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = onnx.load(folder / "q.onnx")
    inputs = [len(n.input) for n in made.graph.node if n.op_type == "DequantizeLinear"]
    return (folder / "q.onnx").read_bytes(), inputs


def outputs(target, model, given):
    if target == "openvino":
        core = openvino.Core()
        return [core.compile_model(core.read_model(model, b""), "CPU", {"INFERENCE_NUM_THREADS": 1})([given])[0]]
    made = []
    for level in ("1", "4"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", level)
        made.append(onnxruntime.InferenceSession(model, options).run(None, {"x": given})[0])
    return made


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("op", WEIGHTS)
def test_runtimes_read_0_where_there_is_none(tmp_path, target, op):
    compared = 0
    for dtype in FORMATS:
        if target == "openvino" and dtype.endswith("2"):  # it reads none of 2 bits
            continue
        model, given = net(op, dtype.startswith("u"))
        (bare, few), (full, many) = (quantized(tmp_path, target, model, dtype, on) for on in (True, False))
        # The target leaves the layer in float, or a block of unsigned integers has a zero point.
        if not few or (few == many and dtype.startswith("u")):
            continue
        assert few == [2] and many == [3], (dtype, few, many)
        for one, other in zip(outputs(target, bare, given), outputs(target, full, given)):
            np.testing.assert_array_equal(one, other, err_msg=dtype)
            compared += 1
    assert compared >= 3 or op in ("ConvTranspose", "Gather")
