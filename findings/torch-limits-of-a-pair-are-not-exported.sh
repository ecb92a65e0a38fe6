#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch exports a pair of 4 or 7 bits as one of 8: the limits of its integers are lost.
#
# Seen with torch 2.15.0 (onnxscript 0.7.2), torchao 0.18.0 and onnxruntime 1.31.1.
#
# torchao's PT2E quantization puts quantize_per_tensor into the graph, which clips at quant_min and quant_max. They say
# how many bits there are: the type is int8 or uint8 for 4 bits and for 7, too, which reduce_range asks for.
# torch.onnx.export makes a QuantizeLinear of it and reads neither, so that the model clips at the ends of the type:
# 16 times as far out for 4 bits. There is no message. A network that was trained with such limits
# computes something else behind each of them. quantize_per_channel and fake_quantize_per_tensor_affine
# get a Clip between the two nodes, and are right.
#
# It takes 6 GB of disk.
#
# Output (the exported model against PyTorch's, where inputs go beyond the limits):
#
#   quantize_per_tensor, -128 to 127: 200 dB, 0 Clip
#   quantize_per_tensor, -8 to 7: -16 dB, 0 Clip
#   quantize_per_tensor, 0 to 127: 10 dB, 0 Clip
#   quantize_per_channel, -8 to 7: 200 dB, 1 Clip
#   fake_quantize, 0 to 127: 200 dB, 1 Clip
#   PT2E of a Linear, reduce_range False: 140 dB, 0 Clip
#   PT2E of a Linear, reduce_range True: 0 dB, 0 Clip
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    torch==2.15.0 torchao==0.18.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import contextlib
import io
import sys

import numpy as np
import onnx
import onnxruntime
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

operators = torch.ops.quantized_decomposed
torch.manual_seed(0)


class Pair(torch.nn.Module):
    """A pair by two functions, which get the input and the same further arguments."""

    def __init__(self, function, *arguments):
        super().__init__()
        self.function, self.arguments = function, arguments

    def forward(self, x):
        return self.function(x, *self.arguments)


class Channels(torch.nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.limits = low, high
        self.register_buffer("scales", torch.full((16,), 0.2))
        self.register_buffer("zeros", torch.zeros(16, dtype=torch.int64))

    def forward(self, x):
        rest = self.scales, self.zeros, 1, *self.limits, torch.int8
        return operators.dequantize_per_channel(operators.quantize_per_channel(x, *rest), *rest)


def tensor(x, *rest):
    return operators.dequantize_per_tensor(operators.quantize_per_tensor(x, *rest), *rest)


def calibrated(reduce_range):
    """A Linear that PT2E quantizes by samples of a smaller range."""
    module = torch.export.export(torch.nn.Linear(16, 8).eval(), (x,)).module()
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(reduce_range=reduce_range))
    prepared = prepare_pt2e(module, quantizer)
    prepared(x.clamp(-4, 4))
    return convert_pt2e(prepared)


x = torch.randn(64, 16) * 10
changed = []
for text, module, right in (
        ("quantize_per_tensor, -128 to 127", Pair(tensor, 0.2, 0, -128, 127, torch.int8), True),
        ("quantize_per_tensor, -8 to 7", Pair(tensor, 0.2, 0, -8, 7, torch.int8), False),
        ("quantize_per_tensor, 0 to 127", Pair(tensor, 0.2, 64, 0, 127, torch.uint8), False),
        ("quantize_per_channel, -8 to 7", Channels(-8, 7), True),
        ("fake_quantize, 0 to 127", Pair(torch.fake_quantize_per_tensor_affine, 0.2, 64, 0, 127), True),
        ("PT2E of a Linear, reduce_range False", calibrated(False), True),
        ("PT2E of a Linear, reduce_range True", calibrated(True), False)):
    real = module(x).detach().numpy()
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(module, (x,), "made.onnx", dynamo=True, opset_version=21, input_names=["x"],
                          verbose=False, external_data=False)
    model = onnx.load("made.onnx")
    onnx.checker.check_model(model, full_check=True)
    clips = sum(node.op_type == "Clip" for node in model.graph.node)
    session = onnxruntime.InferenceSession("made.onnx", providers=["CPUExecutionProvider"])
    error = session.run(None, {"x": x.numpy()})[0].astype(np.float64) - real
    power = np.sum(real.astype(np.float64) ** 2)
    figure = 10 * np.log10(power / max(np.sum(error ** 2), power * 1e-20))
    print(f"{text}: {figure:.0f} dB, {clips} Clip")
    if (figure > 40) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
