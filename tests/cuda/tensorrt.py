# SPDX-License-Identifier: Apache-2.0
"""tensorrt.py [--build-only] [MODEL.onnx DATA.npz …]: runs results for target tensorrt in
TensorRT for RTX on the machine's GPU.

Run by tools/check-gpu. QDQ is the command; the Python has tensorrt_rtx, onnx, onnxruntime
and numpy. The models are those of tests/data, where none is named. For each model and spec
are shown: the milliseconds of one run, how far the outputs are from those of the literal
arithmetic (ONNX Runtime on the CPU, without any optimization), and the same for each layer
with integer inputs alone. --build-only builds and runs nothing, for a machine without a
GPU. Exits with 1 where an output is further from the literal arithmetic than its bound,
or where no engine could be built or loaded at all."""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tensorrt_rtx_bindings as trt
from onnx import helper

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
QDQ = os.environ.get("QDQ", ROOT / "_install" / "bin" / "qdq")
GLYPHS = ("glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit")
ATTENTION = {"layers": [{"class": "MatMul"}]}
SPECS = {"float": None,
         "float16": {"float": "float16", "layers": [{"match": "*", "quantize_input": False, "quantize_weight": False}]},
         "int8": {},
         "int8, float16": {"float": "float16"},
         "attention": ATTENTION,
         "attention, float16": {"float": "float16", **ATTENTION}}
BATCHES = (1, 64)
LEAST_DB = {False: 30, True: 20}  # by whether the rest is float16
SAMPLES, SAMPLES_ALONE = 64, 8

wrong = []


def check(good, text):
    if not good:
        wrong.append(text)
        print(f"    wrong: {text}", flush=True)


# --- CUDA's runtime, as little of it as an engine needs --------------------------------


class Cuda:
    def __init__(self):
        for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
            try:
                self.library = ctypes.CDLL(name)
                return
            except OSError:
                pass
        sys.exit("no libcudart.so.13 or .12 is on LD_LIBRARY_PATH")

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            sys.exit(f"{name}: CUDA error {status}")

    def allocate(self, size):
        address = ctypes.c_void_p()
        self("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address

    def copy(self, to, what, size, kind):
        self("cudaMemcpy", to, what, ctypes.c_size_t(size), kind)


# --- engines ---------------------------------------------------------------------------


class Log(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.errors, self.layers = [], ""

    def log(self, severity, message):
        if severity in (self.INTERNAL_ERROR, self.ERROR):
            self.errors.append(message)
        elif message.startswith("Layers:"):
            self.layers = message

    def last_error(self):
        return self.errors[-1].strip().splitlines()[0] if self.errors else "no reason was said"


def build(model, shapes, capability):
    """Returns an engine's bytes, or None, and the log. shapes: of the inputs."""
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log)
    if not parser.parse(model.SerializeToString()):
        error = parser.get_error(0)
        log.errors.append(f"{error.node_name()}: {error.desc()}")
        return None, log
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if capability:
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(trt.ComputeCapability, capability), 0)
    profile = builder.create_optimization_profile()
    for name, shape in shapes.items():
        profile.set_shape(name, shape, shape, shape)
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    return plan, log


class Engine:
    """An engine with buffers for inputs of the given shapes."""

    def __init__(self, cuda, plan, log, shapes):
        self.cuda, self.buffers, self.outputs = cuda, {}, {}
        self.runtime = trt.Runtime(log)
        self.engine = self.runtime.deserialize_cuda_engine(plan)
        if self.engine is None:
            raise RuntimeError(log.last_error())
        self.context = self.engine.create_execution_context()
        if self.context is None:
            raise RuntimeError(log.last_error())
        for name, shape in shapes.items():
            self.context.set_input_shape(name, shape)
        for i in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(i)
            dtype = np.dtype(trt.nptype(self.engine.get_tensor_dtype(name)))
            shape = tuple(self.context.get_tensor_shape(name))
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            self.buffers[name] = cuda.allocate(size)
            self.context.set_tensor_address(name, self.buffers[name].value)
            if self.engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT:
                self.outputs[name] = np.empty(shape, dtype)
        self.stream = ctypes.c_void_p()
        cuda("cudaStreamCreate", ctypes.byref(self.stream))

    def enqueue(self):
        if not self.context.execute_async_v3(self.stream.value):
            raise RuntimeError("the engine does not run")

    def run(self, feeds):
        for name, value in feeds.items():
            value = np.ascontiguousarray(value)
            self.cuda.copy(self.buffers[name], value.ctypes.data_as(ctypes.c_void_p),
                           value.nbytes, 1)
        self.enqueue()
        self.cuda("cudaStreamSynchronize", self.stream)
        for name, value in self.outputs.items():
            self.cuda.copy(value.ctypes.data_as(ctypes.c_void_p), self.buffers[name],
                           value.nbytes, 2)
        return self.outputs

    def milliseconds(self, seconds=0.2):
        """The median of runs that are timed by events, after runs that are not."""
        start, end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (start, end):
            self.cuda("cudaEventCreate", ctypes.byref(event))
        times, began, warm = [], time.monotonic(), 10
        while time.monotonic() - began < seconds or len(times) < 20:
            self.cuda("cudaEventRecord", start, self.stream)
            self.enqueue()
            self.cuda("cudaEventRecord", end, self.stream)
            self.cuda("cudaEventSynchronize", end)
            ms = ctypes.c_float()
            self.cuda("cudaEventElapsedTime", ctypes.byref(ms), start, end)
            if warm:
                warm -= 1
            else:
                times.append(ms.value)
        return float(np.median(times))


# --- models ----------------------------------------------------------------------------


def quantized(folder, model, data, spec):
    spec_file, out = folder / "spec.json", folder / "out.onnx"
    spec_file.write_text(json.dumps({"device": "cpu", "target": "tensorrt", "evaluate": False,
                                     **spec}))
    run = subprocess.run([QDQ, "quantize", model, "--spec", spec_file, "-o", out,
                          "--calibration", data], capture_output=True, text=True,
                         stdin=subprocess.DEVNULL)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return onnx.load(str(out))


def literal(model, feeds):
    """The outputs by the arithmetic that the model's operators are defined by."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def decibels(reference, other):
    reference, other = (np.asarray(x, np.float64) for x in (reference, other))
    noise = ((reference - other) ** 2).sum()
    return 10 * np.log10((reference ** 2).sum() / noise) if noise else 200.0


def layers_alone(model):
    """Returns a model in which each layer with integer inputs stands alone: its pairs,
    whose inputs are inputs of the graph, and its output. None where there is none."""
    graph = model.graph
    maker = {o: node for node in graph.node for o in node.output}
    constants = {i.name: i for i in graph.initializer}
    shaped = onnx.shape_inference.infer_shapes(model)
    types = {v.name: v for v in [*shaped.graph.value_info, *shaped.graph.input,
                                 *shaped.graph.output]}
    nodes, inputs, outputs, used, made = [], {}, [], {}, set()

    def need(tensor):
        """Copies what computes a tensor, down to the tensors before pairs."""
        if tensor in constants:
            used[tensor] = constants[tensor]
        elif tensor in made or tensor in inputs or not tensor:
            return
        elif tensor not in maker:
            inputs[tensor] = types[tensor]
        else:
            node = maker[tensor]
            made.update(node.output)
            if node.op_type == "QuantizeLinear" and node.input[0] not in constants:
                for extra in node.input[1:]:
                    need(extra)
                inputs[node.input[0]] = types[node.input[0]]
            else:
                for name in node.input:
                    need(name)
            nodes.append(node)

    layers = []
    for node in graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul", "ConvTranspose"):
            continue
        sources = [maker.get(name) for name in node.input[:2]]
        if not all(s is not None and s.op_type == "DequantizeLinear" for s in sources):
            continue
        if node.output[0] not in types or any(
                s.input[0] in maker and maker[s.input[0]].input[0] not in
                (types.keys() | constants.keys()) for s in sources):
            continue
        for name in node.input:
            need(name)
        alone = onnx.NodeProto()
        alone.CopyFrom(node)
        alone.output[0] = f"{node.output[0]}/alone"
        nodes.append(alone)
        value = onnx.ValueInfoProto()
        value.CopyFrom(types[node.output[0]])
        value.name = alone.output[0]
        outputs.append(value)
        layers.append(node.name or node.output[0])
    if not layers:
        return None, []
    overlap = set(inputs) & made
    for name in overlap:  # a layer's output before a pair is an input of its own here
        raise RuntimeError(f"{name} is computed and given")
    alone = helper.make_graph(nodes, "layers alone", list(inputs.values()), outputs,
                              list(used.values()))
    result = helper.make_model(alone, opset_imports=model.opset_import)
    result.ir_version = model.ir_version
    return result, layers


def with_outputs(model, names):
    """The model with further outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    have = {o.name for o in copy.graph.output} | {i.name for i in copy.graph.input}
    shaped = onnx.shape_inference.infer_shapes(copy)
    types = {v.name: v for v in shaped.graph.value_info}
    for name in names:
        if name not in have:
            copy.graph.output.append(types[name])
    return copy


# --- checks ----------------------------------------------------------------------------


def built_engine(cuda, model, feeds, capability):
    shapes = {name: value.shape for name, value in feeds.items()}
    plan, log = build(model, shapes, capability)
    if plan is None:
        raise RuntimeError(log.last_error())
    return Engine(cuda, plan, log, shapes) if cuda else None


def show_layers(cuda, model, feeds, capability, least):
    alone, layers = layers_alone(model)
    if not alone:
        return
    names = [i.name for i in alone.graph.input]
    given = literal(with_outputs(model, names), feeds)
    inner = {name: feeds[name] if name in feeds else given[name] for name in names}
    engine = built_engine(cuda, alone, inner, capability)
    if not engine:
        print(f"    {len(layers)} layers alone: build", flush=True)
        return
    expected, got = literal(alone, inner), engine.run(inner)
    figures = [(decibels(expected[o.name], got[o.name]), layer)
               for o, layer in zip(alone.graph.output, layers, strict=True)]
    worst = min(figures)
    print(f"    {len(figures)} layers alone, the furthest from the literal arithmetic is "
          f"{worst[1]} with {worst[0]:.1f} dB", flush=True)
    check(worst[0] >= least, f"{worst[1]} alone has {worst[0]:.1f} dB, not {least}")


def check_model(cuda, folder, model, data, capability):
    arrays = np.load(data)
    original = onnx.load(str(model))
    inputs = [i.name for i in original.graph.input]
    feeds = {name: arrays[name][:SAMPLES] for name in inputs}
    reference = literal(original, feeds)
    print(f"{Path(model).stem}", flush=True)
    for name, spec in SPECS.items():
        try:
            made = original if spec is None else quantized(folder, model, data, spec)
            exact = literal(made, feeds)
            times = []
            for batch in BATCHES:
                some = {k: v[:batch] for k, v in feeds.items()}
                engine = built_engine(cuda, made, some, capability)
                if engine:
                    got = {k: v.copy() for k, v in engine.run(some).items()}
                    times.append(engine.milliseconds())
            if not cuda:
                show_layers(cuda, made, feeds, capability, 0)
                print(f"  {name}: builds", flush=True)
                continue
            output = original.graph.output[0].name
            near = decibels(exact[output], got[output])
            print(f"  {name}: {', '.join(f'{ms:.4f}' for ms in times)} ms with "
                  f"{', '.join(map(str, BATCHES))} samples; {near:.1f} dB from the literal "
                  f"arithmetic; from the float model {decibels(reference[output], got[output]):.1f}, "
                  f"literally {decibels(reference[output], exact[output]):.1f}", flush=True)
            least = LEAST_DB["float16" in name]
            check(near >= least, f"{name}: {near:.1f} dB from the literal arithmetic")
            show_layers(cuda, made, {k: v[:SAMPLES_ALONE] for k, v in feeds.items()}, capability,
                        least)
        except Exception as e:  # the next spec is a case of its own
            check(False, f"{name}: {type(e).__name__}: {e}")


def capability_that_runs(cuda, model, feeds):
    """Finds the name of a compute capability whose engines this device loads and runs."""
    for capability in ("CURRENT", None, "SM120", "SM89", "SM86", "SM80", "SM75"):
        try:
            engine = built_engine(cuda, model, feeds, capability)
            engine.run(feeds)
            print(f"engines for {capability or 'the default list'} run here", flush=True)
            return capability
        except Exception as e:  # tried in turn
            print(f"engines for {capability or 'the default list'} do not run here: {e}",
                  flush=True)
    sys.exit("no engine runs on this device")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    pairs = list(zip(options.models[::2], options.models[1::2], strict=True)) or [
        (DATA / f"{name}.onnx", DATA / "calib_256.npz") for name in GLYPHS]
    print(f"TensorRT for RTX {trt.__version__}", flush=True)
    cuda = None if options.build_only else Cuda()
    capability = None
    if cuda:
        first = onnx.load(str(pairs[0][0]))
        arrays = np.load(pairs[0][1])
        capability = capability_that_runs(
            cuda, first, {i.name: arrays[i.name][:1] for i in first.graph.input})
    with tempfile.TemporaryDirectory() as folder:
        for model, data in pairs:
            check_model(cuda, Path(folder), model, data, capability)
    if wrong:
        sys.exit(f"{len(wrong)} of these were wrong")


if __name__ == "__main__":
    main()
