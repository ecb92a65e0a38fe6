# SPDX-License-Identifier: Apache-2.0
"""run_once.py MODEL INPUT OUTPUT [GRAPHS]: runs a model on the emulator of the HTP, generation v73, or that of the
chip that SOC_MODEL says, with an array of float32 for its only input, and writes its only output, and into a
folder what the provider made of the model."""

import os
import sys

import numpy as np
import onnxruntime
import onnxruntime_qnn

NAME = "QNNExecutionProvider"

os.dup2(2, 1)  # the emulator prints
onnxruntime.set_default_logger_severity(4)
onnxruntime.register_execution_provider_library(NAME, onnxruntime_qnn.get_library_path())
device = next(d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME)
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
graphs = {"dump_json_qnn_graph": "1", "json_qnn_graph_dir": sys.argv[4]} if len(sys.argv) > 4 else {}
options.add_provider_for_devices(
    [device], {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), "soc_model": os.environ.get("SOC_MODEL", "43"),
               **graphs})
session = onnxruntime.InferenceSession(sys.argv[1], options)
taken = [n for part in session.get_provider_graph_assignment_info() if part.ep_name == NAME
         for n in part.get_nodes()]
assert taken, "the emulator takes no node"
name = session.get_inputs()[0].name
np.save(sys.argv[3], session.run(None, {name: np.load(sys.argv[2])})[0])
