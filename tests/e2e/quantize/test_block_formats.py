# SPDX-License-Identifier: Apache-2.0
"""Formats whose blocks and scales are their own (MXFP4, MXFP6, MXFP8, NVFP4): elements and scales
are bit for bit those of onnx's reference evaluator and of ml_dtypes, and packed as onnx packs."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import judge
from formats import ir_of
from test_data import Quantized, npz

RANDOM = np.random.default_rng(47)
# By name: the type of the elements, ONNX's, the block, the type of the scales, the first opset.
FORMATS = {
    "mxfp4": (ml_dtypes.float4_e2m1fn, TensorProto.FLOAT4E2M1, 32, TensorProto.FLOAT8E8M0, 24),
    "mxfp6": (ml_dtypes.float6_e2m3fn, TensorProto.FLOAT6E2M3, 32, TensorProto.FLOAT8E8M0, 28),
    "mxfp8": (ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E4M3FN, 32, TensorProto.FLOAT8E8M0, 24),
    "nvfp4": (ml_dtypes.float4_e2m1fn, TensorProto.FLOAT4E2M1, 16, TensorProto.FLOAT8E4M3FN, 23),
}
E4M3 = ml_dtypes.float8_e4m3fn


def spread(*shape):
    """Returns numbers of many magnitudes, with blocks of zeros, of one magnitude and of powers of
    two, whose quarters are ties of the elements' types."""
    w = np.float32(RANDOM.standard_normal(shape) * np.exp2(RANDOM.uniform(-20, 10, shape)))
    if len(shape) == 2 and shape[0] > 128:
        w[0:32] = 0
        w[32:64, ::2] = -0.0
        w[64:96] = np.float32(RANDOM.integers(-64, 65, (32, shape[1])) / 8)
        w[96:128] = np.exp2(RANDOM.integers(-60, 60, (32, shape[1]))).astype(np.float32)
        w[128] = np.float32(1e-40)  # a number below the normal ones
    return w


def net(opset, weights):
    """Returns a MatMul of each weight, one behind the other."""
    sizes = [w.shape for w in weights]
    nodes = [helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"h{i + 1}"], f"m{i}")
             for i in range(len(weights))]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("h0", 1, ["n", sizes[0][0]])],
        [helper.make_tensor_value_info(f"h{len(weights)}", 1, ["n", sizes[-1][1]])],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    return helper.make_model(graph, ir_version=ir_of(opset),
                             opset_imports=[helper.make_opsetid("", opset)])


def quantize(folder, name, model, data=None, weights=None, **spec):
    """Makes blocks that TensorRT refuses, too."""
    spec = {"target": "tensorrt", "recipe": "none", "activations": "none",
            "rules": {"T33": False}, **spec}
    return Quantized(folder, model, data, weights={"dtype": name, **(weights or {})}, **spec)


class File:
    """The stored parts of a weight of a result."""

    def __init__(self, data, weight):
        self.model = onnx.load_model_from_string(data)
        onnx.checker.check_model(self.model, full_check=True)
        constants = {t.name: t for t in self.model.graph.initializer}
        nodes = {n.output[0]: n for n in self.model.graph.node}
        (self.node,) = [n for n in nodes.values() if n.input[0] == f"{weight}_quantized"]
        assert len(self.node.input) == 2  # no zero point
        self.elements = constants[f"{weight}_quantized"]
        self.scales = constants[f"{weight}_scale"]
        self.own = nodes.get(self.node.input[1])
        self.tensor_scale = np.float32(1)
        if self.own is not None:
            self.tensor_scale = numpy_helper.to_array(constants[self.own.input[1]])
        self.scale = numpy_helper.to_array(self.scales).astype(np.float32) * self.tensor_scale
        self.axis = judge.attribute(self.node, "axis", None)
        self.block = judge.attribute(self.node, "block_size", 0)

    def full(self, shape):
        """Returns the scale of each element."""
        if not self.block:
            return self.scale.reshape([-1 if i == self.axis else 1 for i in range(len(shape))])
        return np.repeat(self.scale, self.block, self.axis)[tuple(map(slice, shape))]

    def made(self):
        """Returns what the reference evaluator makes of it."""
        graph = onnx.GraphProto(name="g")
        graph.initializer.extend(self.model.graph.initializer)
        graph.node.extend([self.own] if self.own is not None else [])
        graph.node.append(self.node)
        graph.output.append(onnx.ValueInfoProto(name=self.node.output[0]))
        # The evaluator has the operators of opset 25 for later ones, too.
        model = helper.make_model(graph, opset_imports=self.model.opset_import)
        return ReferenceEvaluator(model).run(None, {})[0]


def wanted_e8m0(blocks, highest):
    """OCP Microscaling Formats 1.0, 6.3: the exponent of the largest element less that of the
    largest number of the type."""
    amax = np.abs(blocks).max(axis=-1)
    powers = np.frexp(np.where(amax > 0, amax, 1))[1] - 1 - int(np.log2(highest))
    return np.exp2(np.clip(powers, -126, 127)).astype(np.float32), amax > 0


def in_blocks(w, block):
    """Returns [columns][blocks][block] of a matrix; the last block is filled up with zeros."""
    rows = -(-w.shape[0] // block) * block
    padded = np.zeros((rows, w.shape[1]), np.float32)
    padded[:len(w)] = w
    return padded.T.reshape(w.shape[1], -1, block)


def quantized_by_onnx(name, w, found):
    """Returns the elements that onnx's QuantizeLinear makes with these scales."""
    kind, number = FORMATS[name][:2]
    scale = helper.make_node("Identity", ["s"], ["t"])
    node = helper.make_node("QuantizeLinear", ["w", "t"], ["q"], axis=found.axis,
                            block_size=found.block, output_dtype=number)
    graph = helper.make_graph(
        [scale, node], "q", [], [onnx.ValueInfoProto(name="q")],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(found.scale, "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)])
    made = ReferenceEvaluator(model).run(None, {})[0]
    assert made.dtype == np.dtype(kind)
    return made


@pytest.mark.parametrize("method", ["max", "mse"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_million_numbers_are_onnxs(tmp_path, name, method):
    kind, number, block, scales, opset = FORMATS[name]
    w = spread(1027, 1001) if method == "max" else spread(259, 101)
    done = quantize(tmp_path, name, net(21, [w]), weights={"method": method})
    assert done.ok, done.said
    found = File(done.bytes, "w0")
    assert found.model.opset_import[0].version == max(21, opset)
    assert (found.elements.data_type, found.scales.data_type) == (number, scales)
    assert (found.block, found.axis) == (block, 0)
    assert judge.attribute(found.node, "output_dtype", 0) == (0 if found.own else 1)
    q = numpy_helper.to_array(found.elements)
    want = quantized_by_onnx(name, w, found)
    zero = want.astype(np.float32) == 0  # the evaluator's -0 may be 0
    np.testing.assert_array_equal(q.view(np.uint8)[~zero], want.view(np.uint8)[~zero])
    np.testing.assert_array_equal(q.astype(np.float32)[zero], 0)
    highest = float(ml_dtypes.finfo(kind).max)
    mine = np.clip(w / found.full(w.shape), -highest, highest).astype(kind)
    np.testing.assert_array_equal(q.view(np.uint8), mine.view(np.uint8))
    assert found.elements.raw_data == numpy_helper.from_array(q, "q").raw_data
    assert (found.scales.raw_data
            == numpy_helper.from_array(numpy_helper.to_array(found.scales), "s").raw_data)
    back = q.astype(np.float32) * found.full(w.shape)
    assert np.isfinite(back).all()
    np.testing.assert_array_equal(found.made().view(np.uint32), back.view(np.uint32))


@pytest.mark.parametrize("name", ["mxfp4", "mxfp6", "mxfp8"])
def test_powers_are_those_of_the_specification(tmp_path, name):
    w = spread(259, 101)
    highest = float(ml_dtypes.finfo(FORMATS[name][0]).max)
    found = File(quantize(tmp_path, name, net(21, [w])).bytes, "w0")
    want, alive = wanted_e8m0(in_blocks(w, 32), highest)
    np.testing.assert_array_equal(found.scale.T[alive], want[alive])
    best = File(quantize(tmp_path, name, net(21, [w]), weights={"method": "mse"}).bytes, "w0")
    ratio = best.scale.T[alive] / want[alive]
    assert set(ratio) == {1, 2}
    error = [np.square(f.made() - w.astype(np.float64)) for f in (found, best)]
    sums = [in_blocks(e.astype(np.float32), 32).astype(np.float64).sum(-1) for e in error]
    assert np.all(sums[1] <= sums[0] * (1 + 1e-5)) and np.any(sums[1] < sums[0] * 0.9)


def test_nvfp4_has_two_levels_of_scales(tmp_path):
    w = spread(259, 101)
    found = File(quantize(tmp_path, "nvfp4", net(21, [w])).bytes, "w0")
    assert found.tensor_scale == np.float32(np.abs(w).max() / np.float32(448 * 6))
    amax = np.abs(in_blocks(w, 16)).max(-1)
    wanted = (amax / np.float32(6) / found.tensor_scale).astype(E4M3).astype(np.float32)
    wanted = np.maximum(wanted, np.float32(2) ** -9)
    alive = amax > 0
    got = numpy_helper.to_array(found.scales).astype(np.float32).T
    np.testing.assert_array_equal(got[alive], wanted[alive])
    best = File(quantize(tmp_path, "nvfp4", net(21, [w]), weights={"method": "mse"}).bytes,
                "w0")
    errors = [np.square(f.made() - w.astype(np.float64)) for f in (found, best)]
    sums = [in_blocks(np.float32(e), 16).astype(np.float64).sum(-1) for e in errors]
    assert np.all(sums[1] <= sums[0] * (1 + 1e-5)) and np.any(sums[1] < sums[0] * 0.9)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (31, 3), (33, 7), (65, 1)])
@pytest.mark.parametrize("name", FORMATS)
def test_odd_numbers_of_elements(tmp_path, name, shape):
    w = spread(*shape)
    done = quantize(tmp_path, name, net(21, [w]))
    assert done.ok, done.said
    found = File(done.bytes, "w0")
    bits = {"mxfp6": 6, "mxfp8": 8}.get(name, 4)
    assert len(found.elements.raw_data) == -(-w.size * bits // 8)
    q = numpy_helper.to_array(found.elements)
    assert q.shape == w.shape
    assert found.elements.raw_data == numpy_helper.from_array(q, "q").raw_data
    np.testing.assert_array_equal(found.made(), q.astype(np.float32) * found.full(w.shape))


@pytest.mark.parametrize("name", FORMATS)
def test_figures_are_those_of_the_reference_evaluator(tmp_path, name):
    """No runtime of ours loads such a model: it runs with the floats that its nodes make."""
    weights = [np.float32(RANDOM.normal(0, 1, s)) for s in ((48, 40), (40, 8))]
    x = np.float32(RANDOM.standard_normal((40, 48)))
    done = quantize(tmp_path, name, net(21, weights), npz(h0=x), evaluate={"samples": 40})
    assert done.ok, done.said
    (row,) = done.report["evaluation"]["outputs"]
    real = x @ weights[0] @ weights[1]
    ours = x @ File(done.bytes, "w0").made() @ File(done.bytes, "w1").made()
    assert row["sqnr_db"] == pytest.approx(judge.sqnr_db(real, ours), abs=0.02)
    weights_rows = {w["name"]: w for w in done.report["weights"]}
    assert all((w["dtype"], w["granularity"], w["block"])
               == (name, "block", FORMATS[name][2]) for w in weights_rows.values())
    with pytest.raises(Exception, match="DequantizeLinear|IR version"):
        judge.session(done.bytes)


def test_an_entry_may_have_the_format(tmp_path):
    """Layers without it have a scale for each channel, and with it the format's blocks."""
    weights = [spread(40, 40), spread(40, 8)]
    entry = {"name": "m1", "weights": {"dtype": "mxfp4"}}
    done = quantize(tmp_path, "int8", net(21, weights), layers=[entry])
    assert done.ok, done.said
    rows = {w["name"]: (w["dtype"], w["block"]) for w in done.report["weights"]}
    assert rows == {"w0": ("int8", None), "w1": ("mxfp4", 32)}
    other = {"name": "m1", "weights": {"dtype": "int8"}}
    done = quantize(tmp_path, "nvfp4", net(21, weights), layers=[other])
    rows = {w["name"]: (w["dtype"], w["block"]) for w in done.report["weights"]}
    assert rows == {"w0": ("nvfp4", 16), "w1": ("int8", None)}


HALF = net(21, [spread(40, 8)])
for _info in (*HALF.graph.input, *HALF.graph.output):
    _info.type.tensor_type.elem_type = TensorProto.FLOAT16
HALF.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((40, 8), np.float16), "w0"))


@pytest.mark.parametrize("model, spec, said", [
    (None, {"weights": {"granularity": "tensor"}}, "has blocks of 32 elements"),
    (None, {"weights": {"granularity": {"block": 16}}}, "has blocks of 32 elements"),
    (None, {"weights": {"storage": "qdq"}}, "are stored in their format"),
    (None, {"float": "float16"}, "leave float out"),
    (None, {"layers": [{"name": "m0", "weights": {"dtype": "nvfp4", "granularity": "tensor"}}]},
     "has blocks of 16 elements"),
    (None, {"recipe": {"formats": ["int8", "mxfp4"], "max_size_ratio": 0.5}},
     "mxfp4 has blocks of its own"),
    (None, {"opset": "keep"}, "mxfp4 needs opset 24, the model has 21"),
    (HALF, {}, "is float16"),
])
def test_what_does_not_go_with_it_is_refused(tmp_path, model, spec, said):
    done = quantize(tmp_path, "mxfp4", model or net(21, [spread(40, 8)]), **spec)
    assert not done.ok and said in done.said
