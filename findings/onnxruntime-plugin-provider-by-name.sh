#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A plugin provider that was registered cannot be named: the session falls back to the CPU.
#
# Seen with onnxruntime 1.31.1 and onnxruntime-ep-openvino 1.8.1 from PyPI.
#
# Sessions of Python take a list of providers by name. register_execution_provider_library() makes the
# name of a plugin known to the process, and get_ep_devices() may list it. But the list of a session
# knows built-in providers alone: the name of the registered plugin gives a UserWarning, as before it
# was registered, and a session that runs on the CPU provider. Python shows such a warning once, so a
# loop of measurements goes on with the wrong provider in silence. get_available_providers() does not
# list the plugin either. Plugins are chosen by SessionOptions.add_provider_for_devices() alone.
#
# The devices that add_provider_for_devices() takes depend on the machine: the plugin listed none on a
# processor of AMD. The script prints their number and does not judge it.
#
# Output:
#
#   named before it is registered: 1 warning, providers ['CPUExecutionProvider']
#   named after it is registered: 1 warning, providers ['CPUExecutionProvider']
#   get_available_providers() lists it: False
#   devices of the plugin on this machine: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ORT_DISABLE_TELEMETRY=1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    onnxruntime-ep-openvino==1.8.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import sys
import warnings

import numpy as np
import onnxruntime
import onnxruntime_ep_openvino
from onnx import helper

onnxruntime.set_default_logger_severity(4)
value = helper.make_tensor_value_info
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", 1, [2])],
                          [value("y", 1, [2])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                          ir_version=8).SerializeToString()
NAME = onnxruntime_ep_openvino.get_ep_name()


def open_by_name():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = onnxruntime.InferenceSession(model, providers=[NAME])
    session.run(None, {"x": np.ones(2, np.float32)})
    return len(caught), session.get_providers()


before = open_by_name()
onnxruntime.register_execution_provider_library(
    NAME, onnxruntime_ep_openvino.get_library_path())
after = open_by_name()
is_listed = NAME in onnxruntime.get_available_providers()
devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]
print(f"named before it is registered: {before[0]} warning, providers {before[1]}")
print(f"named after it is registered: {after[0]} warning, providers {after[1]}")
print("get_available_providers() lists it:", is_listed)
print("devices of the plugin on this machine:", len(devices))
cpu = ["CPUExecutionProvider"]
if before != (1, cpu) or after != (1, cpu) or is_listed:
    sys.exit("changed: the name of a plugin provider has another effect")
EOF
