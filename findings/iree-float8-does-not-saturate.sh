#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# float8 pairs do not saturate in IREE: all that is beyond the range is NaN. Integers are right, but lose their sign.
#
# Seen with IREE 3.13.0 (llvm-cpu, x86-64).
#
# QuantizeLinear to float8 saturates unless its attribute says otherwise. IREE compiles such a pair, keeps
# what is in the range, and makes NaN of what is beyond: clipping, which calibration with anything but the maximum
# relies on, is a NaN in the output, and of one NaN the next MatMul makes a row of them. Pairs of integers clip as they
# should. But a graph whose output is uint8 hands it out as int8, so that 200 is read as -56; its shape
# and its bytes are right. Both without a message.
#
# Output (x of -900, -1, 1, 448 and 900, scale 1):
#
#   float8e4m3fn pair: nan -1 1 448 nan, should be -448 -1 1 448 448
#   int8 pair: -128 -1 1 127 127, should be -128 -1 1 127 127
#   uint8 output: int8 0 0 1 -1 -1, should be uint8 0 0 1 255 255
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
from onnx import helper
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


x = np.float32([-900, -1, 1, 448, 900])
node, kinds = helper.make_node, onnx.TensorProto
changed = []
for text, kind, pair, right in (("float8e4m3fn pair", kinds.FLOAT8E4M3FN, True, False),
                                ("int8 pair", kinds.INT8, True, True), ("uint8 output", kinds.UINT8, False, False)):
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q" if pair else "y"])]
    if pair:
        nodes.append(node("DequantizeLinear", ["q", "s", "z"], ["y"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [5])],
        [helper.make_tensor_value_info("y", 1 if pair else kind, [5])],
        [helper.make_tensor("s", 1, [], [1.0]), helper.make_tensor("z", kind, [], b"\0", raw=True)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    real, made = ReferenceEvaluator(model).run(None, {"x": x})[0], run(model, [x])
    shown = [f"{'' if pair else f'{v.dtype} '}{' '.join(f'{float(item):g}' for item in v)}" for v in (made, real)]
    print(f"{text}: {shown[0]}, should be {shown[1]}")
    if (shown[0] == shown[1]) != right:
        changed.append(text)
if changed:
    sys.exit(f"changed: {changed}")
EOF
