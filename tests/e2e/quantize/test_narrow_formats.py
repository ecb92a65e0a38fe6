# SPDX-License-Identifier: Apache-2.0
"""Weights of 2, 3 and 4 bits, by a million numbers and in convolutions of both kinds: the integers, the
floats that they stand for and the bytes are onnx's. int3 has elements of int4 from -4 to 3."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import judge
from formats import ir_of
from test_block_formats import RANDOM, net, spread
from test_data import Quantized, npz

# By name: the type of the elements, the lowest, the highest, the opset.
INTEGERS = {"int2": (TensorProto.INT2, -2, 1, 25), "uint2": (TensorProto.UINT2, 0, 3, 25),
            "int3": (TensorProto.INT4, -4, 3, 21), "int4": (TensorProto.INT4, -8, 7, 21),
            "uint4": (TensorProto.UINT4, 0, 15, 21)}
FLOATS = {"mxfp4": TensorProto.FLOAT4E2M1, "mxfp6": TensorProto.FLOAT6E2M3,
          "mxfp8": TensorProto.FLOAT8E4M3FN, "nvfp4": TensorProto.FLOAT4E2M1}


def quantize(folder, name, model, data=None, weights=None, **spec):
    blocks = {} if name in FLOATS else {"granularity": {"block": 32}}
    target = "tensorrt" if name in FLOATS else "onnxruntime"
    spec = {"recipe": "none", "activations": "none", "evaluate": False, "opset": "auto", **spec}
    return Quantized(folder, model, data, target=target,
                     weights={"dtype": name, **blocks, **(weights or {})}, **spec)


class Stored:
    """The stored parts of a weight, and what onnx's reference evaluator makes of them."""

    def __init__(self, data, weight):
        self.model = onnx.load_model_from_string(data)
        onnx.checker.check_model(self.model, full_check=True)
        self.constants = {t.name: t for t in self.model.graph.initializer}
        nodes = {n.output[0]: n for n in self.model.graph.node}
        (self.node,) = [n for n in nodes.values() if n.input[0] == f"{weight}_quantized"]
        self.own = [nodes[n] for n in self.node.input if n in nodes]
        self.elements = self.constants[f"{weight}_quantized"]
        self.axis = judge.attribute(self.node, "axis", None)
        self.block = judge.attribute(self.node, "block_size", 0)
        self.scale = numpy_helper.to_array(self.constants[f"{weight}_scale"]).astype(np.float32)
        if self.own:
            self.scale = self.scale * numpy_helper.to_array(
                self.constants[self.own[0].input[1]])

    def run(self, nodes, name, more=()):
        graph = onnx.GraphProto(name="g", node=nodes, output=[onnx.ValueInfoProto(name=name)],
                                initializer=[*self.model.graph.initializer, *more])
        return ReferenceEvaluator(helper.make_model(
            graph, opset_imports=self.model.opset_import)).run(None, {})[0]

    def made(self):
        return self.run([*self.own, self.node], self.node.output[0])

    def wanted(self, w):
        """Returns the elements that onnx's QuantizeLinear makes with these scales."""
        more = [numpy_helper.from_array(w, "given"), numpy_helper.from_array(self.scale, "by")]
        blocks = {"axis": self.axis, "block_size": self.block} if self.block else {}
        node = helper.make_node("QuantizeLinear", ["given", "by", *self.node.input[2:]], ["q"],
                                **blocks, output_dtype=0 if self.node.input[2:] else
                                self.elements.data_type)
        return self.run([node], "q", more)


def spread_over(values, found, shape):
    """Returns the value of each element from those of the blocks, or one for all."""
    if not found.block:
        return values
    return np.repeat(values, found.block, found.axis)[tuple(map(slice, shape))]


def check(found, w, name):
    kind = INTEGERS[name][0] if name in INTEGERS else FLOATS[name]
    q, want = numpy_helper.to_array(found.elements), found.wanted(w)
    assert found.elements.data_type == kind and q.dtype == want.dtype
    if name == "int3":
        want = np.clip(want.astype(np.int32), -4, 3)
    np.testing.assert_array_equal(q.astype(np.float32), want.astype(np.float32))
    assert found.elements.raw_data == numpy_helper.from_array(q, "q").raw_data
    zero = np.zeros_like(found.scale)
    if found.node.input[2:]:
        zero = numpy_helper.to_array(found.constants[found.node.input[2]]).astype(np.float32)
    np.testing.assert_array_equal(
        found.made(), (q.astype(np.float32) - spread_over(zero, found, w.shape))
        * spread_over(found.scale, found, w.shape))


@pytest.mark.parametrize("name", INTEGERS)
def test_a_million_numbers_are_onnxs(tmp_path, name):
    """An odd number of them, with ties, zeros of both signs and numbers below the normal ones."""
    w = spread(1027, 1001)
    done = quantize(tmp_path, name, net(21, [w]))
    assert done.ok, done.said
    found = Stored(done.bytes, "w0")
    assert found.model.opset_import[0].version == INTEGERS[name][3]
    check(found, w, name)


@pytest.mark.parametrize("weights, lowest", [({}, -3), ({"range": "full"}, -4),
                                             ({"method": "mse"}, -4)])
def test_int3_has_eight_numbers_at_most(tmp_path, weights, lowest):
    w = np.float32(RANDOM.standard_normal((257, 33)))
    done = quantize(tmp_path, "int3", net(21, [w]), weights=weights)
    q = numpy_helper.to_array(Stored(done.bytes, "w0").elements).astype(np.int32)
    assert q.min() == lowest and q.max() == 3
    (row,) = done.report["weights"]
    assert (row["dtype"], row["block"]) == ("int3", 32)
    full = quantize(tmp_path, "int4", net(21, [w]), weights=weights)
    assert abs(len(full.bytes) - len(done.bytes)) < 64


def convolution(op, group):
    """Returns a model of one convolution with an odd number of input channels for each group, and its
    weight."""
    shape = (6, 37, 3, 3) if op == "Conv" else (37 * group, 5, 3, 3)
    w = np.float32(RANDOM.standard_normal(shape) * np.exp2(RANDOM.uniform(-9, 3, shape)))
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["y"], "l", group=group)], "g",
        [helper.make_tensor_value_info("x", 1, ["n", 37 * group, 8, 8])],
        [helper.make_tensor_value_info("y", 1, ["n", None, None, None])], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, ir_version=ir_of(21),
                             opset_imports=[helper.make_opsetid("", 21)]), w


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_weights_of_convolutions_are_onnxs(tmp_path, name, op, group):
    model, w = convolution(op, group)
    done = quantize(tmp_path, name, model, layers=[{"class": op, "quantize_weight": True}])
    assert done.ok, done.said
    found = Stored(done.bytes, "w")
    if op == "ConvTranspose" and group > 1:  # its channels are along no axis: it has one scale
        assert found.block == 0 and found.scale.ndim == 0
    else:
        assert found.axis == (1 if op == "Conv" else 0)
        assert found.block == (16 if name == "nvfp4" else 32)
    check(found, w, name)


def test_int3_is_rounded_against_outputs(tmp_path):
    """On samples that no rounding saw, reconstruct is better than gptq, which is better than the nearest
    integers, and all are of three bits."""
    mix = RANDOM.standard_normal((16, 64))
    x = np.float32(RANDOM.standard_normal((600, 16)) @ mix + RANDOM.standard_normal((600, 64)) / 4)
    weights = [np.float32(RANDOM.normal(0, 0.1, s)) for s in ((64, 64), (64, 64), (64, 32))]
    found, model = {}, net(21, weights)
    want = x[300:] @ weights[0] @ weights[1] @ weights[2]
    for rounding in ("nearest", "gptq", "reconstruct"):
        done = quantize(tmp_path, "int3", model, npz(h0=x[:300]), weights={"rounding": rounding})
        assert done.ok, done.said
        parts = [Stored(done.bytes, f"w{i}") for i in range(3)]
        for part in parts:
            q = numpy_helper.to_array(part.elements).astype(np.int32)
            assert q.min() >= -4 and q.max() <= 3
        found[rounding] = judge.sqnr_db(
            want, judge.run(done.bytes, {"h0": x[300:]}, integers=False))
    assert found["nearest"] + 1 < found["gptq"] < found["reconstruct"] - 0.3, found


def test_a_weight_that_stays_float_is_int4(tmp_path):
    """Callers may send another one, which QuantizeLinear clips to the four bits of its type."""
    w = np.float32(RANDOM.standard_normal((40, 8)))
    model = net(21, [w])
    model.graph.input.append(helper.make_tensor_value_info("w0", 1, w.shape))
    done = quantize(tmp_path, "int3", model, on_unmatched="warn")
    assert done.ok, done.said
    assert "weight_stays_float" in {row["code"] for row in done.report["warnings"]}
    (row,) = done.report["weights"]
    assert row["scale_max"] == pytest.approx(np.abs(w).max() / 7)


@pytest.mark.parametrize("spec, said", [
    ({"weights": {"storage": "qdq"}}, "are stored as integers"),
    ({"layers": [{"name": "m0", "weights": {"storage": "qdq"}}]}, "are stored as integers"),
    ({"activations": {"dtype": "int3"}}, "/activations/dtype")])
def test_what_does_not_go_with_int3_is_refused(tmp_path, spec, said):
    done = quantize(tmp_path, "int3", net(21, [spread(40, 8)]), **spec)
    assert not done.ok and said in done.said
