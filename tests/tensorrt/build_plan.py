# SPDX-License-Identifier: Apache-2.0
"""build_plan.py MODEL.onnx...: asks TensorRT for RTX whether it takes models. Prints a JSON object
for each in a line, or {} where the process ended that asked:
`errors` (what the parser or the builder refuses, empty if it takes the model) and `kernels`, each
with `type`, `inputs` (types of elements), `outputs`, `nodes` (names of the model's nodes) and
`bytes` (of all activations that it reads and writes). It needs no GPU. Some models end the
process, so there is one process for each model."""

import json
import os
import re
import sys

import tensorrt_rtx_bindings as trt

SIZES = {"Float": 4, "Half": 2, "BFloat16": 2, "Int8": 1, "FP8": 1, "Int4": 0.5, "FP4E2M1": 0.5,
         "Int32": 4, "Int64": 8, "Bool": 1}


class Log(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.errors, self.layers = [], ""

    def log(self, severity, message):
        if severity in (self.INTERNAL_ERROR, self.ERROR):
            self.errors.append(message)
        elif message.startswith("Layers:"):
            self.layers = message


def tensors(text, what):
    """Returns (type, elements) of the tensors in a list of a kernel's row."""
    found = re.search(rf"{what}: \[(.*?)\}}\]", text)
    rows = re.findall(r"Dimensions: \[([\d,]*)\][^}]*?Datatype: (\w+)", found[1] + "}" if found else "")
    counts = []
    for sizes, kind in rows:
        n = 1
        for size in sizes.split(","):
            n *= int(size or 1)
        counts.append((kind, n))
    return counts


def read_kernels(layers):
    kernels = []
    for text in layers.partition("\nI/O Tensors")[0].split("\nName: ")[1:]:
        inputs, outputs = tensors(text, "Inputs"), tensors(text, "Outputs")
        kernels.append({
            "type": re.search(r"LayerType: (\w+)", text)[1],
            "inputs": [kind for kind, _ in inputs], "outputs": [kind for kind, _ in outputs],
            "nodes": re.findall(r"\[ONNX Layer: ([^\]]*)\]", text),
            "bytes": sum(n * SIZES[kind] for kind, n in inputs + outputs)})
    return kernels


def build(path):
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        errors = [parser.get_error(i) for i in range(parser.num_errors)]
        return [f"{e.node_name()}: {e.desc()}" for e in errors], []
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        shape = tuple(1 if size < 0 else size for size in tensor.shape)
        profile.set_shape(tensor.name, shape, shape, shape)
    config.add_optimization_profile(profile)
    made = builder.build_serialized_network(network, config)
    return [] if made is not None else log.errors or ["no reason"], read_kernels(log.layers)


def answer(path):
    """Asks in a process of its own, which has imported everything."""
    sys.stdout.flush()
    read, write = os.pipe()
    if os.fork() == 0:
        errors, kernels = build(path)
        with os.fdopen(write, "w") as to:
            json.dump({"errors": errors, "kernels": kernels}, to)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as got:
        text = got.read()
    os.wait()
    return text or "{}"


for path in sys.argv[1:]:
    print(answer(path), flush=True)
