# SPDX-License-Identifier: Apache-2.0
"""Safetensors files as calibration data: the same result as from an .npz file of the arrays."""

import json
import struct

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

from test_data import TEXT, Quantized, findings, npz, text_feed

RANDOM = np.random.default_rng(23)


def test_tensors_are_as_good_as_arrays(tmp_path):
    feed = text_feed(9, 5)
    one = Quantized(tmp_path, TEXT, save(feed, {"made": "by a test"}), evaluate=True)
    other = Quantized(tmp_path, TEXT, npz(**feed), evaluate=True)
    assert findings(one) == findings(other)
    assert one.graph == other.graph


def net_of(dtype):
    """y = cast(x) w"""
    weight = np.random.default_rng(5).standard_normal((6, 2)).astype(np.float32)
    return helper.make_model(helper.make_graph(
        [helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT),
         helper.make_node("MatMul", ["c", "w"], ["y"], "dense")], "net",
        [helper.make_tensor_value_info("x", dtype, ["n", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(weight, "w")]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "int8",
                                   "uint64", "uint32", "uint16", "uint8", "bool"])
def test_each_type(tmp_path, dtype):
    x = (RANDOM.standard_normal((8, 6)) * 3).astype(dtype)
    model = net_of(helper.np_dtype_to_tensor_dtype(x.dtype))
    one = Quantized(tmp_path, model, save({"x": x}), calibration={"method": "minmax"})
    other = Quantized(tmp_path, model, npz(x=x), calibration={"method": "minmax"})
    assert findings(one) == findings(other)
    assert one.graph == other.graph


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def test_bfloat16(tmp_path):
    """NumPy has no such type, and the upper half of each float32 is one."""
    x = RANDOM.standard_normal((8, 6)).astype(np.float32)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    model = net_of(TensorProto.FLOAT)
    data = file_of({"x": {"dtype": "BF16", "shape": [8, 6], "data_offsets": [0, 96]}}, bits.tobytes())
    one = Quantized(tmp_path, model, data)
    other = Quantized(tmp_path, model,
                      npz(x=(bits.astype(np.uint32) << 16).view(np.float32)))
    assert findings(one) == findings(other)


ROW = {"dtype": "F32", "shape": [2, 6], "data_offsets": [0, 48]}


@pytest.mark.parametrize("data, said", [
    (file_of({"x": {**ROW, "dtype": "F8_E4M3"}}, bytes(48)), "dtype 'F8_E4M3' cannot be used"),
    (file_of({"x": {**ROW, "shape": []}}, bytes(48)), "a scalar"),
    (file_of({"x": {**ROW, "shape": [0, 6], "data_offsets": [0, 0]}}), "it has no samples"),
    (file_of({"x": {**ROW, "shape": [2, 7]}}, bytes(48)), "needs 56 bytes, and its offsets are 48"),
    (file_of({"x": ROW}, bytes(40)), "truncated: it ends at byte 48 behind the header"),
    (file_of({"x": ROW, "y": {**ROW, "shape": [12]}}, bytes(48)), "12 samples along axis 0"),
    (file_of({"x": {"dtype": "F32", "shape": [2, 6]}}, bytes(48)), "expected \"dtype\", \"shape\" and"),
    (file_of({"x": {**ROW, "more": 1}}, bytes(48)), "once"),
    (file_of(b'{"x":' + json.dumps(ROW).encode() + b',"x":' + json.dumps(ROW).encode() + b"}",
             bytes(48)), "the name is there twice"),
    (file_of(b'{"x": [1]}', bytes(48)), "at byte 14: expected an object"),
    (file_of(b'{"x": {"dtype": "F32" "shape": 1}}', bytes(48)), "expected"),
    (file_of({}, bytes(48)), "holds no array"),
    (file_of({"x": ROW}, bytes(48), length=1 << 40), "starts neither like"),
])
def test_damaged_headers(tmp_path, data, said):
    done = Quantized(tmp_path, net_of(TensorProto.FLOAT), data)
    assert not done.ok and said in done.said, done.said


@pytest.mark.shares_daemon
def test_the_service_describes_tensors(daemon):
    feed = text_feed(9, 5)
    stored = daemon.get(f"/v1/datasets/{daemon.upload('datasets', save(feed))}").json()
    assert stored["samples"] == 9
    assert {one["name"]: one["shape"] for one in stored["inputs"]} == {
        "ids": [9, 5], "mask": [9, 5], "x": [9, 5, 4]}
