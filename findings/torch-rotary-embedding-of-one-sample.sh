#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A decoder that PyTorch exports for opset 23 runs with one sample, and with no more.
#
# Seen with torch 2.15.0 (onnxscript 0.7.2) and onnxruntime 1.31.1.
#
# torch.onnx.export makes one RotaryEmbedding of the arithmetic that turns queries and keys by their positions.
# Its cosines and sines come from the positions, which are the same for all samples, so that their first axis is 1,
# where ONNX asks for the batch. onnxruntime computes it for one sample, which is what an exporter's
# test runs, and refuses two. onnx's reference evaluator spreads the axis and says nothing.
# For opset 22, and for 24, too, the arithmetic stays what it was, and any batch runs. Every Llama of
# transformers has this form.
#
# It takes 6 GB of disk.
#
# Output:
#
#   opset 22, 0 RotaryEmbedding: 1 sample right, 2 samples right
#   opset 23, 1 RotaryEmbedding: 1 sample right, 2 samples refused, by onnx's reference right
#   opset 24, 0 RotaryEmbedding: 1 sample right, 2 samples right
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 onnxruntime==1.31.1 onnxscript==0.7.2 torch==2.15.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from onnx.reference import ReferenceEvaluator

HEADS, WIDTH, LENGTH = 2, 32, 6


class Turned(torch.nn.Module):
    """The queries of each head, turned by their positions."""

    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(HEADS * WIDTH, HEADS * WIDTH)
        self.register_buffer("steps", 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH))

    def forward(self, x):
        batch, length = x.shape[:2]
        q = self.query(x).view(batch, length, HEADS, WIDTH).transpose(1, 2)
        positions = torch.arange(length, dtype=torch.float32)[None, None, :]
        angles = (self.steps[None, :, None] @ positions).transpose(1, 2)
        angles = torch.cat((angles, angles), dim=-1)
        turned = torch.cat((-q[..., WIDTH // 2:], q[..., :WIDTH // 2]), dim=-1)
        return q * angles.cos().unsqueeze(1) + turned * angles.sin().unsqueeze(1)


torch.manual_seed(0)
torn, x = Turned().eval(), torch.randn(2, LENGTH, HEADS * WIDTH)
wanted = torn(x).detach().numpy()


def judge(run, n):
    try:
        error = np.abs(run(x[:n].numpy()) - wanted[:n]).max()
    except Exception as why:
        return "refused" if "RotaryEmbedding" in str(why) else "failed"
    return "right" if error < 1e-5 else "wrong"


said = []
for opset in 22, 23, 24:
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", min=2, max=64)}
    torch.onnx.export(torn, (x,), "m.onnx", dynamo=True, opset_version=opset,
                      dynamic_shapes={"x": dims}, input_names=["x"], output_names=["y"],
                      verbose=False, external_data=False)
    model = onnx.load("m.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    one, two = (judge(lambda v: session.run(None, {"x": v})[0], n) for n in (1, 2))
    fused = sum(n.op_type == "RotaryEmbedding" for n in model.graph.node)
    line = f"opset {opset}, {fused} RotaryEmbedding: 1 sample {one}, 2 samples {two}"
    if two == "refused":
        line += ", by onnx's reference " + judge(
            lambda v: ReferenceEvaluator(model).run(None, {"x": v})[0], 2)
    print(line)
    said.append(line)
if said != ["opset 22, 0 RotaryEmbedding: 1 sample right, 2 samples right",
            "opset 23, 1 RotaryEmbedding: 1 sample right, 2 samples refused, "
            "by onnx's reference right",
            "opset 24, 0 RotaryEmbedding: 1 sample right, 2 samples right"]:
    sys.exit("changed: other nodes, or another answer")
EOF
