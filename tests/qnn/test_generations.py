# SPDX-License-Identifier: Apache-2.0
"""HTPs before v73 compute some numbers otherwise, and all of them do where tensors are moved to a Concat: the faults are
still there, and results for them are whole and right (rules Q19 to Q24)."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_emulator import QDQ, literally, on_emulator, soc_30, sqnr
from test_qnn_forms import encoder

V68, V69, V73 = "30", "36", "43"


class Net:
    """A model of pairs around nodes; each activation has a scale and the zero point 0 or another."""

    def __init__(self, dtype=np.uint16):
        self.nodes, self.constants, self.dtype = [], [], dtype

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(np.array(values), name))
        return name

    def pair(self, name, scale, zero=0):
        about = [self.constant(name + "_s", np.float32(scale)), self.constant(name + "_z", self.dtype(zero))]
        self.node("QuantizeLinear", [name, *about], name + "_q")
        return self.node("DequantizeLinear", [name + "_q", *about], name + "_d")

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def run(self, python, folder, shape, output, x, soc, inputs=("x",)):
        """Returns the decibels of the emulator to the literal arithmetic; fails where it does not load."""
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs]
        made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "g", values, made, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "op.onnx")
        return sqnr(literally(folder / "op.onnx", x), on_emulator(python, folder / "op.onnx", x, folder, soc=soc))


@pytest.mark.parametrize("soc", [V68, V69, V73])
def test_factors_are_rounded_to_eleven_digits(qnn_python, tmp_path, soc):
    rng, size = np.random.default_rng(1), 64
    x, found = np.float32(rng.uniform(-30, 30, (32, size))), {}
    wide = np.exp(rng.uniform(np.log(.002), np.log(.01), size)) * 1e-3 / 12e-3
    part, exponent = np.frexp(wide)
    for digits, factors in ((24, wide), (10, np.ldexp(np.ceil(part * 1024) / 1024, exponent))):
        net = Net()
        net.constant("w", rng.integers(-127, 128, (size, size)).astype(np.int8))
        net.constant("w_s", np.float32(factors * 12e-3 / 1e-3))
        net.node("DequantizeLinear", ["w", "w_s"], "w_d", axis=1)
        net.node("MatMul", [net.pair("x", 1e-3, 32768), "w_d"], "y")
        found[digits] = net.run(qnn_python, tmp_path, x.shape, net.pair("y", 12e-3, 32768), x, soc)
    assert found[10] > 80 and (found[24] > 80) == (soc == V73)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("soc", [V68, V69, V73])
def test_the_sum_of_one_row_of_products(qnn_python, tmp_path, soc, keeps):
    x, net = np.float32(np.abs(np.random.default_rng(0).normal(size=(1, 512))) * 16), Net()
    name = net.pair("x", .0022, 77)
    net.node("Mul", [name, name], "m")
    axes = net.constant("axes", np.array([1]))
    net.node("ReduceSum", [net.pair("m", .3164), axes], "r", keepdims=int(keeps))
    name = net.pair("r", 5.55)
    if keeps:
        net.node("Squeeze", [name, axes], "s")
        name = net.pair("s", 5.55)
    assert (net.run(qnn_python, tmp_path, x.shape, name, x, soc) > 60) == (keeps or soc == V73)


@pytest.mark.parametrize("soc", [V68, V73])
def test_a_quotient_by_a_norm(qnn_python, tmp_path, soc):
    x, net = np.float32(np.random.default_rng(0).normal(size=(1, 384)) / 4), Net()
    name = net.pair("x", 2 / 65535, 32768)
    net.node("ReduceL2", [name, net.constant("axes", np.array([1]))], "n")
    net.node("Div", [name, net.pair("n", 8 / 65535)], "y")
    output = net.pair("y", .6 / 65535, 32768)
    if soc == V73:
        assert net.run(qnn_python, tmp_path, x.shape, output, x, soc) > 60
    else:
        with pytest.raises(AssertionError, match="Failed to finalize QNN graph"):
            net.run(qnn_python, tmp_path, x.shape, output, x, soc)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("soc", [V68, V73])
def test_a_moved_input_in_front_of_a_concat(qnn_python, tmp_path, soc, same):
    x, net = np.float32(np.random.default_rng(0).uniform(0, 2, (1, 8, 16))), Net(np.uint8)
    scale = .02 if same else .01
    name = net.pair("x", scale, 8)
    net.node("Reshape", [name, net.constant("sizes", np.array([1, 16, 8]))], "m")
    net.node("Reshape", [net.pair("t", .02, 8) if net.node("Abs", [name], "t") else "", "sizes"], "u")
    net.node("Concat", [net.pair("m", scale, 8), net.pair("u", .02, 8)], "y", axis=1)
    assert (net.run(qnn_python, tmp_path, x.shape, net.pair("y", .02, 8), x, soc) > 30) == same


def test_a_table_of_floats(qnn_python, tmp_path):
    """And one of integers with another scale than what is gathered does not load as v68 either."""
    for dtype, factor in ((None, 1), (np.uint8, 2), (np.uint8, 1)):
        net = Net(np.uint8)
        table = np.random.default_rng(0).integers(0, 255, (20, 32)).astype(np.uint8)
        net.constant("table", table if dtype else np.float32(table) * .01)
        if dtype:
            net.constant("t_s", np.float32(.01 * factor))
            net.node("DequantizeLinear", ["table", "t_s", net.constant("t_z", np.uint8(0))], "t")
        net.node("Cast", ["x"], "i", to=TensorProto.INT64)
        net.node("Gather", ["t" if dtype else "table", "i"], "g")
        x, output = np.float32([[1, 3, 5, 7]]), net.pair("g", .01)
        if dtype and factor == 1:
            assert net.run(qnn_python, tmp_path, x.shape, output, x, V68) > 60
        else:
            with pytest.raises(AssertionError, match="Failed to finalize QNN graph"):
                net.run(qnn_python, tmp_path, x.shape, output, x, V68)


@pytest.mark.parametrize("dtype, least_db", [("uint8", 15), ("uint16", 28)])
def test_an_encoder_is_whole_as_v68(qnn_python, tmp_path, dtype, least_db):
    encoder(tmp_path)
    spec = {"target": "qnn", "host": "v68", "recipe": "none", "evaluate": {"samples": 8},
            "activations": {"dtype": dtype}, "calibration": {"max_samples": 40}}
    (tmp_path / "s.json").write_text(json.dumps(spec))
    done = subprocess.run([QDQ, "quantize", tmp_path / "m.onnx", "--calibration", tmp_path / "d.npz", "--spec",
                           tmp_path / "s.json", "--runners", soc_30(qnn_python, tmp_path), "-o", tmp_path / "q.onnx",
                           "--report", tmp_path / "r.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["kernels"]["floats"] == []
    deployed, literal = (part["outputs"][0]["sqnr_db"]
                         for part in (report["evaluation"]["deployed"], report["evaluation"]))
    assert deployed > least_db and deployed > literal - 2
