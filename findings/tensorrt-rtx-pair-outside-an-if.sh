#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether a Conv inside an If, and one outside of it, is int8 depends on where the pairs stand.
#
# Seen with TensorRT for RTX 1.7.1.116 (tensorrt-rtx-cu13), its ONNX parser and its builder on a CPU,
# no GPU, opset 21.
#
# The Conv in the branch reads x by way of QuantizeLinear and DequantizeLinear. With this pair in front
# of the If the plan has a float Conv; in a Loop it is an int8 Conv. With the pair inside the branch it is
# int8. Where a Conv outside reads x, too, by a pair of its own with the same scale, both are int8. With
# the inner pair behind the outer one, which computes the same numbers, the outer Conv is float. No GPU
# was there to run the plans.
#
# Output:
#
#   pair outside: inside Float
#   pair outside, Loop: inside Int8
#   pair inside: inside Int8
#   a pair each: inside Int8, outside Int8
#   one behind the other: inside Int8, outside Float
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 numpy==2.4.6 || exit 2
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    tensorrt-rtx-cu13-libs==1.7.1.116 tensorrt-rtx-cu13-bindings==1.7.1.116 || exit 2
cd "$folder"
cat >one.py <<'EOF'
import re
import sys

import numpy as np
import tensorrt_rtx_bindings as trt
from onnx import helper, numpy_helper

kind = sys.argv[1]
rng = np.random.default_rng(0)
node = helper.make_node
weights = {name: rng.integers(-127, 128, (16, 16, 3, 3)).astype(np.int8) for name in "wv"}
constants = {"s": np.float32(0.03), "z": np.int8(0), "ws": np.full(16, 0.01, np.float32),
             "wz": np.zeros(16, np.int8), "n": np.int64(2), "yes": np.array(True), **weights}


def value(name, shape=(1, 16, 8, 8), dtype=1):
    return helper.make_tensor_value_info(name, dtype, list(shape))


def pair(name, of):
    return [node("QuantizeLinear", [of, "s", "z"], [name + "_q"]),
            node("DequantizeLinear", [name + "_q", "s", "z"], [name])]


def conv(name, data, weight):
    return [node("DequantizeLinear", [weight, "ws", "wz"], [name + "_w"], axis=0),
            node("Conv", [data, name + "_w"], [name], name=name, pads=[1] * 4)]


inner = {"inside": "x", "each": "x", "behind": "outer"}.get(kind)
body = (pair("inner", inner) if inner else []) + conv("a", "inner" if inner else "outer", "w")
nodes = [node("Abs", ["x0"], ["x"])] + ([] if kind == "inside" else pair("outer", "x"))
has_outer = kind in ("each", "behind")
nodes += conv("o", "outer", "v") if has_outer else []
if kind == "loop":
    loop = helper.make_graph(
        body + [node("Identity", ["go"], ["on"]), node("Add", ["state", "a"], ["next"])], "body",
        [value("i", (), 7), value("go", (), 9), value("state")], [value("on", (), 9), value("next")])
    nodes.append(node("Loop", ["n", "yes", "x"], ["y"], body=loop))
else:
    then = helper.make_graph(body, "then", [], [value("a")])
    other = helper.make_graph([node("Relu", ["x"], ["b"])], "else", [], [value("b")])
    nodes.append(node("If", ["c"], ["y"], then_branch=then, else_branch=other))
graph = helper.make_graph(
    nodes, "g", [value("x0"), value("c", (), 9)], [value("y")] + ([value("o")] if has_outer else []),
    [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Log(trt.ILogger):
    text = ""

    def log(self, severity, message):
        if message.startswith("Layers:"):
            self.text = message


log = Log()
builder = trt.Builder(log)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
parser = trt.OnnxParser(network, log)
config = builder.create_builder_config()
config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
if not parser.parse(model.SerializeToString()) or not builder.build_serialized_network(network, config):
    print("refused")
    sys.exit()
types = {}
for row in log.text.split("\nName: ")[1:]:
    if "LayerType: correlation" in row:
        name = re.search(r"\b([ao])(_U\d+)?_myl", row)[1]
        types[name] = re.search(r"Datatype: (\w+)", row)[1]
print(", ".join(f"{'inside' if name == 'a' else 'outside'} {types[name]}" for name in sorted(types)))
EOF
seen=$(
    echo "pair outside: $(venv/bin/python one.py outside)"
    echo "pair outside, Loop: $(venv/bin/python one.py loop)"
    echo "pair inside: $(venv/bin/python one.py inside)"
    echo "a pair each: $(venv/bin/python one.py each)"
    echo "one behind the other: $(venv/bin/python one.py behind)"
)
echo "$seen"
[ "$seen" = "pair outside: inside Float
pair outside, Loop: inside Int8
pair inside: inside Int8
a pair each: inside Int8, outside Int8
one behind the other: inside Int8, outside Float" ] || {
    echo "changed: the output is not the one above"
    exit 1
}
