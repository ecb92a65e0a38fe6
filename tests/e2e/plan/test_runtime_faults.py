# SPDX-License-Identifier: Apache-2.0
"""Faults of the runtimes by themselves, on small models that no part of the project makes. Where
a test fails, the runtime has mended the fault: its row in engine/plan/targets/*/faults.h may go."""

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import helper, numpy_helper, parser

FLOATS = np.float32
SCALE, ZERO = np.array(0.1, FLOATS), np.array(128, np.uint8)


def model(graph, **constants):
    made = parser.parse_graph("net " + graph)
    made.initializer.extend(numpy_helper.from_array(one, name) for name, one in constants.items())
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def in_float(made):
    """The same model without integer kernels."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(made, options)


def test_a_concat_with_16_bit_scales():
    made = model("""(float16[1,3] a) => (float16[1,6] y) {
        q = QuantizeLinear (a, s, z)  d = DequantizeLinear (q, s, z)
        c = Concat <axis = 1> (d, d)
        r = QuantizeLinear (c, s, z)  y = DequantizeLinear (r, s, z) }""",
                 s=SCALE.astype(np.float16), z=ZERO)
    assert in_float(made)
    with pytest.raises(Exception, match="QLinearConcat"):
        onnxruntime.InferenceSession(made)


@pytest.mark.parametrize("dilation", [1, 2])
def test_a_pool_with_dilations(dilation):
    made = model(f"""(float[1,1,9,9] x) => (float[1,1,h,w] y) {{
        q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)
        p = AveragePool <kernel_shape = [3, 3], dilations = [{dilation}, {dilation}]> (d)
        r = QuantizeLinear (p, s, z)  y = DequantizeLinear (r, s, z) }}""", s=SCALE, z=ZERO)
    assert in_float(made)
    with pytest.raises(Exception, match="QLinearAveragePool"):
        onnxruntime.InferenceSession(made)


def test_a_product_of_gathered_rows():
    made = model("""(int64[1,6] i) => (float[1,6,8] y) {
        g = Gather (t, i)  r = DequantizeLinear <axis = 2> (g, ts, tz)
        v = DequantizeLinear <axis = 1> (w, ws)  y = MatMul (r, v) }""",
                 t=np.ones((50, 16), np.uint8), ts=np.full(16, 0.1, FLOATS),
                 tz=np.zeros(16, np.uint8), w=np.ones((16, 8), np.int8),
                 ws=np.full(8, 0.1, FLOATS))
    rows = {"i": np.ones((1, 6), np.int64)}
    assert in_float(made).run(None, rows)[0] == pytest.approx(0.16, rel=1e-4)
    with pytest.raises(Exception, match="MatMulIntegerToFloat"):
        onnxruntime.InferenceSession(made).run(None, rows)


@pytest.mark.parametrize("block, divides", [(32, True), (48, False)])
def test_a_block_that_does_not_divide(block, divides):
    made = model(f"""(float[1,4,64] x) => (float[1,4,16] y) {{
        v = DequantizeLinear <axis = 0, block_size = {block}> (w, s)  y = MatMul (x, v) }}""",
                 w=np.ones((64, 16), np.int8), s=np.full((2, 16), 0.1, FLOATS))
    ones = {"x": np.ones((1, 4, 64), FLOATS)}
    assert onnxruntime.InferenceSession(made).run(None, ones)[0] == pytest.approx(6.4, rel=1e-4)
    core = openvino.Core()
    if divides:
        assert core.compile_model(core.read_model(made), "CPU")
    else:
        with pytest.raises(Exception, match="DequantizeLinear"):
            core.compile_model(core.read_model(made), "CPU")
