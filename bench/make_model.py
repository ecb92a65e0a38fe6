# SPDX-License-Identifier: Apache-2.0
"""make_model.py [FILE]: makes a model of ResNet-50's shape with random weights, 102 MB.

It has convolutions with folded batch normalization, the input `input` [N,3,224,224], and
opset 13; the same seed gives the same bytes. Prints the file's path, by default one in
the cache."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import CACHE

SEED = 50
STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]  # width, blocks, stride


class Builder:
    def __init__(self):
        self.random = np.random.default_rng(SEED)
        self.nodes, self.weights = [], []

    def weight(self, name, shape, scale):
        array = self.random.standard_normal(shape, np.float32) * np.float32(scale)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name,
                                           **attributes))
        return f"{name}_out"

    def conv(self, name, x, channels, out, kernel, stride=1, gain=1.0):
        fan_in = channels * kernel * kernel
        w = self.weight(f"{name}.weight", (out, channels, kernel, kernel),
                        gain * np.sqrt(2 / fan_in))
        b = self.weight(f"{name}.bias", (out,), 0.01)
        return self.node("Conv", name, x, w, b, kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=[kernel // 2] * 4)

    def bottleneck(self, name, x, channels, width, stride):
        """Adds convolutions of 1x1, 3x3 and 1x1 beside the identity, or beside a
        projection where shapes differ."""
        out = 4 * width
        h = self.conv(f"{name}_conv1", x, channels, width, 1)
        h = self.node("Relu", f"{name}_relu1", h)
        h = self.conv(f"{name}_conv2", h, width, width, 3, stride)
        h = self.node("Relu", f"{name}_relu2", h)
        h = self.conv(f"{name}_conv3", h, width, out, 1, gain=0.3)
        if channels != out or stride != 1:
            x = self.conv(f"{name}_project", x, channels, out, 1, stride)
        return self.node("Relu", f"{name}_relu3",
                         self.node("Add", f"{name}_add", h, x))


def make():
    b = Builder()
    x = b.node("Relu", "stem_relu", b.conv("stem", "input", 3, 64, 7, 2))
    x = b.node("MaxPool", "stem_pool", x, kernel_shape=[3, 3], strides=[2, 2],
               pads=[1, 1, 1, 1])
    channels = 64
    for s, (width, blocks, stride) in enumerate(STAGES):
        for k in range(blocks):
            x = b.bottleneck(f"stage{s + 1}_block{k}", x, channels, width,
                             stride if k == 0 else 1)
            channels = 4 * width
    x = b.node("GlobalAveragePool", "pool", x)
    x = b.node("Flatten", "flatten", x)
    w = b.weight("dense.weight", (1000, channels), np.sqrt(1 / channels))
    bias = b.weight("dense.bias", (1000,), 0.01)
    b.nodes.append(helper.make_node("Gemm", [x, w, bias], ["logits"], name="dense",
                                    transB=1))
    image = helper.make_tensor_value_info("input", TensorProto.FLOAT,
                                          ["N", 3, 224, 224])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 1000])
    graph = helper.make_graph(b.nodes, "resnet50", [image], [logits], b.weights)
    model = helper.make_model(graph, ir_version=8, producer_name="qdqd-bench",
                              opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model, full_check=True)
    return model


def cached(path=CACHE / f"resnet50-{SEED}.onnx"):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".tmp")
        onnx.save(make(), part)
        part.rename(path)
    return path


if __name__ == "__main__":
    print(cached(Path(sys.argv[1])) if len(sys.argv) > 1 else cached())
