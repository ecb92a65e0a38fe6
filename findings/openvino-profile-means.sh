#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OpenVINO's profile of a run has means over all runs since the model was compiled, and leaves out nodes.
#
# Seen with OpenVINO 2026.4.1, CPU plugin, one thread.
#
# The real_time of a node in an infer request's profiling_info is documented as "the absolute time, in
# microseconds, that the node ran (in total)". It is neither that of the request nor a total, but the mean
# over all runs of the compiled model, in whole microseconds. The first run, which prepares the kernels,
# counts like any other, so that a model that was run a few times looks slower than it is, and the nodes of
# a short run behind a long one take far more than the whole call. A node whose mean is below one
# microsecond has the status NOT_RUN, though it ran.
#
# Output, of a model of 24 small Conv and 24 Sigmoid (the times differ from machine to machine):
#
#   a run behind a large one: the nodes take 99911 us, and the whole call 930 us
#   executed nodes of run 1: 26, of run 2000: 25
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnx==1.23.2 openvino==2026.4.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import datetime
import sys
import time

import numpy as np
import openvino
from onnx import helper, numpy_helper

random = np.random.default_rng(7)
nodes, constants, name = [], [], "x"
for i in range(24):
    constants.append(numpy_helper.from_array(
        random.standard_normal((4, 4, 1, 1)).astype(np.float32), f"w{i}"))
    nodes += [helper.make_node("Conv", [name, f"w{i}"], [f"c{i}"]),
              helper.make_node("Sigmoid", [f"c{i}"], [f"s{i}"])]
    name = f"s{i}"
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 4, 6, 6])],
                          [helper.make_tensor_value_info(name, 1, ["n", 4, 6, 6])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                          ir_version=9).SerializeToString()
core = openvino.Core()


def load():
    return core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1,
        "PERF_COUNT": True}).create_infer_request()


def run(request, batch):
    """Returns the microseconds of the call, and the sum and the number of the executed nodes."""
    x = np.ones((batch, 4, 6, 6), np.float32)
    start = time.perf_counter()
    request.infer([x])
    call = (time.perf_counter() - start) * 1e6
    rows = [row.real_time / datetime.timedelta(microseconds=1) for row in request.profiling_info
            if row.status == row.Status.EXECUTED]
    return call, sum(rows), len(rows)


one = load()
for batch in 1, 20_000:
    run(one, batch)
call, total, _ = run(one, 1)
print(f"a run behind a large one: the nodes take {total:.0f} us, and the whole call {call:.0f} us")
other = load()
counts = [run(other, 1)[2] for _ in range(2000)]
print(f"executed nodes of run 1: {counts[0]}, of run 2000: {counts[-1]}")
if total <= call or counts[-1] >= counts[0]:
    sys.exit("changed: the profile is that of one run, of all its nodes")
EOF
