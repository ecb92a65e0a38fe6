#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A QLinearConv with a scale for each output channel and a bias gives the lowest or highest integer everywhere in IREE.
#
# Seen with IREE 3.13.0 (llvm-cpu, x86-64).
#
# IREE imports QLinearConv, compiles it and answers without a message. Without a bias, and with one scale for the
# weight, each number is right. With both a bias and a scale for each channel, which is what quantizers write in the
# operator format, nearly all outputs are at one of the ends of the range: 64 of 64 numbers here are wrong. The
# same layer as Q/DQ nodes around a Conv is right, bias and scales for each channel included.
#
# Output (outputs that are wrong, of 64):
#
#   one scale: 0
#   one scale, bias: 0
#   a scale for each channel: 0
#   a scale for each channel, bias: 64
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import subprocess
import sys

import numpy as np
import onnx
from iree import runtime
from iree.compiler import tools
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def run(model, feeds):
    """Returns the first output of what IREE compiles from a model."""
    onnx.save(onnx.shape_inference.infer_shapes(model), "model.onnx")
    subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", "model.onnx", "-o", "model.mlir"],
                   check=True)
    compiled = tools.compile_file("model.mlir", target_backends=["llvm-cpu"], input_type="onnx")
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, compiled))
    made = context.modules.module["g"](*feeds)
    return (made[0] if isinstance(made, (list, tuple)) else made).to_host()


rng = np.random.default_rng(0)
x = rng.integers(-128, 128, size=(1, 3, 6, 6)).astype(np.int8)
channels = rng.uniform(0.01, 0.05, 4).astype(np.float32)
changed = []
for text, scales, bias, right in (("one scale", np.float32(0.02), False, True),
                                  ("one scale, bias", np.float32(0.02), True, True),
                                  ("a scale for each channel", channels, False, True),
                                  ("a scale for each channel, bias", channels, True, False)):
    constants = {"xs": np.float32(0.02), "xz": np.int8(5),
                 "w": rng.integers(-127, 128, size=(4, 3, 3, 3)).astype(np.int8), "ws": scales,
                 "wz": np.zeros(scales.shape, np.int8), "ys": np.float32(0.4), "yz": np.int8(7),
                 **({"b": rng.integers(-5000, 5000, 4).astype(np.int32)} if bias else {})}
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", ["x", *constants], ["y"])], "g",
        [helper.make_tensor_value_info("x", 3, x.shape)], [helper.make_tensor_value_info("y", 3, [1, 4, 4, 4])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    wrong = int(np.sum(run(model, [x]) != ReferenceEvaluator(model).run(None, {"x": x})[0]))
    print(f"{text}: {wrong}")
    if (wrong == 0) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
