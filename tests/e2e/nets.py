# SPDX-License-Identifier: Apache-2.0
"""A small network with a layer of every kind that specs refer to, and data for it."""

import io
from functools import lru_cache

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUT, SHAPE = "x", [3, 8, 8]


@lru_cache
def block_net():
    """Returns a network with a stem, a residual block, pools and a head; the nodes' names
    are their paths."""
    random = np.random.default_rng(7)
    weights = []

    def weight(name, *shape):
        values = random.normal(0, 0.5, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(name, source, channels, of, **attributes):
        kernel = weight(name + ".w", channels, of, 3, 3)
        return helper.make_node("Conv", [source, kernel, weight(name + ".b", channels)],
                                [name], name, pads=[1, 1, 1, 1], **attributes)

    def simple(op, name, *sources, **attributes):
        return helper.make_node(op, list(sources), [name], name, **attributes)

    nodes = [
        conv("stem/conv", INPUT, 4, 3),
        simple("Relu", "stem/relu", "stem/conv"),
        conv("block/conv1", "stem/relu", 4, 4),
        simple("Relu", "block/relu1", "block/conv1"),
        conv("block/conv2", "block/relu1", 4, 4),
        simple("Add", "block/add", "block/conv2", "stem/relu"),
        simple("Relu", "block/relu2", "block/add"),
        simple("MaxPool", "pool/max", "block/relu2", kernel_shape=[2, 2],
               strides=[2, 2]),
        simple("AveragePool", "pool/mean", "block/relu2", kernel_shape=[2, 2],
               strides=[2, 2]),
        simple("Concat", "pool/both", "pool/max", "pool/mean", axis=1),
        simple("GlobalMaxPool", "head/max", "pool/both"),
        simple("Flatten", "head/flat", "head/max"),
        helper.make_node("Gemm", ["head/flat", weight("head/fc.w", 5, 8)], ["logits"],
                         "head/fc", transB=1),
    ]
    infos = [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", *SHAPE])]
    outs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 5])]
    model = helper.make_model(
        helper.make_graph(nodes, "block", infos, outs, weights),
        opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


@lru_cache
def samples():
    values = np.random.default_rng(8).normal(0, 1, [6, *SHAPE]).astype(np.float32)
    file = io.BytesIO()
    np.savez(file, **{INPUT: values})
    return file.getvalue()


def long_net(nodes):
    """Returns a chain of so many nodes: products with small weights, and activations."""
    random = np.random.default_rng(2)
    made, weights, x = [], [], "x"
    for i in range(nodes // 2):
        weights.append(numpy_helper.from_array(
            np.linalg.qr(random.standard_normal((4, 4)))[0].astype(np.float32), f"w{i}"))
        made += [helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"], f"product/{i}"),
                 helper.make_node("LeakyRelu", [f"m{i}"], [f"r{i}"], f"relu/{i}", alpha=0.99)]
        x = f"r{i}"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(made, "long", [value("x", TensorProto.FLOAT, ["n", 4])],
                              [value(x, TensorProto.FLOAT, ["n", 4])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()
