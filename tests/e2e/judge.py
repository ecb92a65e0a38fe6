# SPDX-License-Identifier: Apache-2.0
"""Judges a model by implementations other than the engine: onnx and onnxruntime."""

from functools import lru_cache

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from service import DATA

BOUNDARY = ("QuantizeLinear", "DequantizeLinear")


def test_images():
    data = np.load(DATA / "test_1000.npz")
    return data["images"].astype(np.float32) / np.float32(255), data["labels"]


def session(model, optimized=True, integers=True):
    """Opens a session. Without integers, a Q/DQ pair is computed as ONNX defines it,
    which is the same on every processor; integer kernels add in 16 bits where there is no
    VNNI, and saturate."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1  # two of them wait for each other more than they work
    if not optimized:
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    if not integers:
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(model, options,
                                        providers=["CPUExecutionProvider"])


def run(model, feed, batch=100, optimized=True, integers=True):
    """Returns the first output over all samples of the feed (input name to array)."""
    one = session(model, optimized, integers)
    n = len(next(iter(feed.values())))
    parts = [one.run(None, {k: v[i:i + batch] for k, v in feed.items()})[0]
             for i in range(0, n, batch)]
    return np.concatenate(parts).astype(np.float64)


@lru_cache
def saturates():
    """Returns whether this processor's integer kernels overflow when integers use all of
    their 8 bits: two products of 255 and 127 do not fit into 16 bits."""
    node = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    rows = np.full((16, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
    graph = onnx.helper.make_graph(
        [node], "probe", [onnx.helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, [16, 64])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [16, 16])],
        [numpy_helper.from_array(rows[1], "b")])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[
        onnx.helper.make_opsetid("", 13)])
    (made,) = session(model.SerializeToString()).run(None, {"a": rows[0]})
    return bool((made != 64 * 255 * 127).any())


def largest_sums(weight):
    """Returns for each output of the weight of a Conv, or of a Gemm with transB, the largest sum
    of two neighbours of the same sign: of the elements 2k and 2k + 1 of its input channels, for
    one element of the kernel after the other."""
    rows = np.moveaxis(weight, 1, -1).reshape(len(weight), -1)
    rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    parts = [np.maximum(sign * rows, 0) for sign in (1, -1)]
    return np.max([(part[:, ::2] + part[:, 1::2]).max(1) for part in parts], axis=0)


def sqnr_db(real, quantized):
    return 10 * np.log10(np.sum(real ** 2) / np.sum((real - quantized) ** 2))


def load(data):
    """Returns the model of these bytes after onnx has checked it, with its shapes."""
    model = onnx.load_model_from_string(data)
    onnx.checker.check_model(model, full_check=True)
    return model


class Pairs:
    """The Q/DQ pairs of a quantized model, found by reading its graph."""

    def __init__(self, model):
        self.graph = model.graph
        self.constants = {i.name: i for i in self.graph.initializer}
        self.producer = {o: n for n in self.graph.node for o in n.output}
        self.sources = {}  # output of a DequantizeLinear: the tensor that is quantized
        for node in self.graph.node:
            if node.op_type != "DequantizeLinear":
                continue
            quantize = self.producer[node.input[0]]
            assert quantize.op_type == "QuantizeLinear"
            assert list(quantize.input[1:]) == list(node.input[1:])
            assert attribute(quantize, "axis", 1) == attribute(node, "axis", 1)
            self.sources[node.output[0]] = quantize.input[0]

    def constant(self, name):
        return numpy_helper.to_array(self.constants[name])

    def of(self, tensor):
        """Returns the QuantizeLinear nodes that read this tensor."""
        return [n for n in self.graph.node
                if n.op_type == "QuantizeLinear" and n.input[0] == tensor]

    def scale(self, tensor):
        (node,) = self.of(tensor)
        return self.constant(node.input[1])

    def zero_point(self, tensor):
        (node,) = self.of(tensor)
        return self.constant(node.input[2])

    def tensors(self):
        return {n.input[0] for n in self.graph.node if n.op_type == "QuantizeLinear"}

    def table(self):
        """Returns {node name: (quantized activation inputs, quantized weight inputs)}."""
        rows = {}
        for node in self.graph.node:
            if node.op_type in BOUNDARY:
                continue
            edges = [i for i, name in enumerate(node.input) if name in self.sources]
            weights = [i for i in edges
                       if self.sources[node.input[i]] in self.constants]
            rows[node.name] = ([i for i in edges if i not in weights], weights)
        return rows


def attribute(node, name, default):
    for a in node.attribute:
        if a.name == name:
            return onnx.helper.get_attribute_value(a)
    return default


def observed_ranges(model_bytes, feed, tensors):
    """Returns the smallest and largest value of each tensor, from extra outputs and with
    one sample in a run."""
    model = onnx.load_model_from_string(model_bytes)
    known = {v.name for v in model.graph.output}
    inner = [t for t in tensors if t not in feed and t not in known]
    for name in inner:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    one = session(model.SerializeToString())
    names = inner + [t for t in tensors if t in known]
    low = {t: np.inf for t in tensors}
    high = {t: -np.inf for t in tensors}
    n = len(next(iter(feed.values())))
    for i in range(n):
        sample = {k: v[i:i + 1] for k, v in feed.items()}
        values = dict(zip(names, one.run(names, sample) if names else []), **sample)
        for t in tensors:
            low[t] = min(low[t], values[t].min())
            high[t] = max(high[t], values[t].max())
    return {t: (low[t], high[t]) for t in tensors}


def symmetric_scale(amax):
    """Returns float32 amax / 127, the scale of an int8 pair without zero point."""
    return np.float32(np.float64(amax) / 127)
