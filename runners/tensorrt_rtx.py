#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runner for TensorRT for RTX; docs/runners.md states the protocol.

It needs NVIDIA's package tensorrt-rtx-cu13, which is proprietary and not a part of this program,
numpy and onnx. The parser and the builder need neither a GPU nor a driver: without one the program
loads models and names the kernels of NVIDIA's plan, and runs nothing.
"""

import ctypes
import json
import os
import re
import sys

PROTOCOL = 1
MOST_RUNS = 1000
MOST_NAME = 1024
MOST_MODEL_NODES = 256  # of one kernel

# Operators of the model that TensorRT has integer kernels for.
PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
PAIRS = {"QuantizeLinear", "DequantizeLinear"}
# Kinds of kernels that a product has for itself. Others are made of what stands beside products,
# and hold a product where it is small, or an attention.
PRODUCT_KERNELS = {"correlation", "gemm", "deconv", "runtime_fusion"}
NARROW = {"Int8", "Int4", "FP8", "FP4E2M1"}


class Failure(Exception):
    """An error that becomes an answer."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def one_line(text):
    return " ".join(str(text).split())[:400]


def import_runtime(packages):
    """Imports NVIDIA's bindings, from the folder `packages` where the option names one."""
    # This program has the name of the package, and must not be taken for it.
    own = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.realpath(path or ".") != own]
    if packages:
        sys.path.insert(0, packages)
    try:
        try:
            import tensorrt_rtx as runtime
        except ImportError:
            import tensorrt_rtx_bindings as runtime
    except ImportError as error:
        raise Failure("unavailable", f"tensorrt_rtx cannot be imported: {error}") from None
    return runtime


# --- the plan -------------------------------------------------------------------------


def make_log(trt):
    class Log(trt.ILogger):
        """Keeps the errors, and the message that lists the kernels."""

        def __init__(self):
            trt.ILogger.__init__(self)
            self.errors, self.layers = [], ""

        def log(self, severity, message):
            if severity in (self.INTERNAL_ERROR, self.ERROR):
                self.errors.append(message)
            elif message.startswith("Layers:"):
                self.layers = message

    return Log()


def types_in(row, what):
    """Returns the types of elements of a list of tensors in a kernel's row."""
    begin = row.find(f" {what}: [")
    if begin < 0:
        return []
    end = row.find("}]", begin)
    return re.findall(r"Datatype: (\w+)", row[begin : end if end >= 0 else begin])


class Kernel:
    """A row of the list of kernels."""

    def __init__(self, row, ops):
        self.op = re.search(r"LayerType: (\w+)", row)
        self.op = self.op[1] if self.op else "unknown"
        self.inputs = types_in(row, "Inputs")
        # A node of a nested graph is followed by the names of the graphs that hold it.
        found = re.findall(r"\[ONNX Layer: ([^\]]*)\]", row)
        names = dict.fromkeys(n if n in ops else n.partition(" | ")[0] for n in found)
        self.pairs_only = bool(names) and all(ops.get(n) in PAIRS | {"Cast"} for n in names)
        self.nodes = [n for n in names if ops.get(n) not in PAIRS]
        self.products = [n for n in self.nodes if ops.get(n) in PRODUCTS]
        self.is_product = self.op in PRODUCT_KERNELS
        self.computes = "conversion" if self.pairs_only else "other"

    @property
    def reads_narrow(self):
        return any(kind in NARROW for kind in self.inputs)

    def answer(self):
        main = [*self.products, *self.nodes, ""]
        return {
            "name": main[0][:MOST_NAME],
            "op": self.op[:128],
            "device": "TensorRT for RTX",
            "computes": self.computes,
            "ms": 0,
            "nodes": [n[:MOST_NAME] for n in self.nodes[:MOST_MODEL_NODES]],
        }


def read_kernels(layers, ops):
    """Reads the message `Layers:`. A product is computed by the kernel of its own kind, or else by
    the first one that holds it and reads integers; its other kernels scale, add and round."""
    rows = layers.partition("\nI/O Tensors")[0].split("\nName: ")[1:]
    kernels = [Kernel(row, ops) for row in rows]
    for product in dict.fromkeys(p for k in kernels for p in k.products):
        there = [k for k in kernels if product in k.products]
        own = [k for k in there if k.is_product]
        main = own or [k for k in there if k.reads_narrow][:1] or there[:1]
        for kernel in main:
            kernel.computes = "integer" if kernel.reads_narrow else "float"
    return kernels


class Model:
    """The nodes of a file, also those in nested graphs."""

    def __init__(self, path):
        import onnx

        try:
            model = onnx.load(path)
        except Exception as error:
            raise Failure("model", f"onnx cannot read the model: {error}") from None
        self.path = path
        self.outputs = [output.name for output in model.graph.output]
        self.ops, self.readers = {}, {}
        graphs = [model.graph]
        while graphs:
            for node in graphs.pop().node:
                self.ops[node.name] = node.op_type
                self.readers.update((name, node.name) for name in node.input)
                graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
                graphs += [g for a in node.attribute for g in a.graphs]

    def reader_of(self, reason):
        """Returns the node that reads the constant with which a parser's reason ends."""
        return self.readers.get(reason.rpartition(": ")[2].strip()) or "the model"


def parse(trt, builder, model, log):
    """Returns the network that NVIDIA's parser makes of the model."""
    flag = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(flag)
    parser = trt.OnnxParser(network, log)
    if parser.parse_from_file(model.path):
        return network
    errors = [parser.get_error(i) for i in range(parser.num_errors)]
    reasons = [f"{e.node_name() or model.reader_of(e.desc())}: {e.desc()}" for e in errors]
    raise Failure("model", "; ".join(reasons or log.errors) or "the parser gave no reason")


def configure(trt, builder, network, own_precision, shapes):
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if not own_precision:
        config.clear_flag(trt.BuilderFlag.TF32)
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        # Sizes that are open are 1 until a run tells them.
        sizes = tuple(1 if size < 0 else size for size in tensor.shape)
        sizes = tuple(shapes.get(tensor.name, sizes))
        profile.set_shape(tensor.name, sizes, sizes, sizes)
    config.add_optimization_profile(profile)
    return config


def build(trt, model, own_precision, shapes):
    """Returns the serialized engine, and the message that lists its kernels."""
    log = make_log(trt)
    builder = trt.Builder(log)
    network = parse(trt, builder, model, log)
    config = configure(trt, builder, network, own_precision, shapes)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise Failure("model", "; ".join(log.errors) or "the builder gave no reason")
    return engine, log.layers


# --- the device -----------------------------------------------------------------------


class Device:
    """The first GPU, by the functions of NVIDIA's driver."""

    def __init__(self, driver):
        self.driver = driver
        number, context, name = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
        self.call("cuDeviceGet", ctypes.byref(number), 0)
        self.call("cuDeviceGetName", name, len(name), number)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self.call("cuCtxSetCurrent", context)
        self.name = name.value.decode(errors="replace")
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 0)
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, function, *arguments):
        code = getattr(self.driver, function)(*arguments)
        if code:
            kind = "memory" if code == 2 else "failed"
            raise Failure(kind, f"{function} of the driver failed with code {code}")

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        return pointer

    def free(self, pointer):
        self.call("cuMemFree_v2", pointer)

    def upload(self, pointer, array):
        self.call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def download(self, array, pointer):
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), pointer, ctypes.c_size_t(array.nbytes))

    def time(self, run):
        """Returns the milliseconds of the work that `run` puts into the stream."""
        began, ended = self.events
        ms = ctypes.c_float()
        self.call("cuEventRecord", began, self.stream)
        run(self.stream.value)
        self.call("cuEventRecord", ended, self.stream)
        self.call("cuStreamSynchronize", self.stream)
        self.call("cuEventElapsedTime", ctypes.byref(ms), began, ended)
        return max(ms.value, 1e-6)


def find_device():
    """Returns the first GPU; None: there is no driver, or no GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    number = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(number)) or number.value == 0:
        return None
    return Device(driver)


# The types of elements by their names in TensorRT. numpy has no bfloat16: its bits are read.
TYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "uint16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
}


class Engine:
    """An engine on the device, for inputs of certain sizes."""

    def __init__(self, trt, device, serialized, shapes):
        import numpy

        self.numpy, self.device, self.shapes = numpy, device, shapes
        self.log = make_log(trt)
        self.runtime = trt.Runtime(self.log)
        self.engine = self.runtime.deserialize_cuda_engine(serialized)
        self.context = self.engine.create_execution_context() if self.engine else None
        if self.context is None:
            raise Failure("model", "; ".join(self.log.errors) or "the engine cannot be loaded")
        self.inputs, self.outputs = {}, {}
        for i in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(i)
            is_input = self.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            if is_input:
                self.context.set_input_shape(name, tuple(shapes[name]))
            (self.inputs if is_input else self.outputs)[name] = self._type_of(name)
        for tensors in (self.inputs, self.outputs):
            for name, (kind, dtype) in tensors.items():
                tensors[name] = self._place(name, kind, dtype)

    def _type_of(self, name):
        kind = self.engine.get_tensor_dtype(name).name
        if kind not in TYPES:
            raise Failure("model", f"{name}: elements of type {kind} cannot be passed by numpy")
        return kind, TYPES[kind]

    def _place(self, name, kind, dtype):
        """Gives a tensor its memory on the device; returns (type, array here, address there)."""
        shape = tuple(self.context.get_tensor_shape(name))
        if any(size < 0 for size in shape):
            raise Failure("model", f"{name}: its sizes depend on values")
        array = self.numpy.zeros(shape, dtype)
        pointer = self.device.allocate(array.nbytes)
        self.context.set_tensor_address(name, pointer.value)
        return kind, array, pointer

    def close(self):
        for _, _, pointer in (*self.inputs.values(), *self.outputs.values()):
            self.device.free(pointer)

    def feed(self, feeds):
        for name, (_, array, pointer) in self.inputs.items():
            array[...] = feeds[name]
            self.device.upload(pointer, array)

    def run(self):
        def enqueue(stream):
            if not self.context.execute_async_v3(stream):
                raise Failure("model", "; ".join(self.log.errors) or "the run failed")

        return self.device.time(enqueue)

    def read(self, name):
        kind, array, pointer = self.outputs[name]
        self.device.download(array, pointer)
        if kind == "BF16":
            return (array.astype(self.numpy.uint32) << 16).view(self.numpy.float32)
        return array


# --- requests -------------------------------------------------------------------------

# The types of inputs' elements that numpy has.
READABLE = {"float32", "float16", "float64", "bool"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class Runner:
    def __init__(self):
        self.trt = self.device = self.engine = self.serialized = None
        self.model, self.own_precision = None, False
        self.shapes = {}  # of the inputs that the plan was made for
        self.layers = ""
        self.kept = {}  # inputs by the name of their file, which always has the same bytes

    def hello(self, request):
        if request.get("protocol") != PROTOCOL:
            raise Failure("failed", f"this program speaks version {PROTOCOL} of the protocol")
        self.trt = import_runtime(request.get("options", {}).get("packages"))
        self.device = find_device()
        return {
            "protocol": PROTOCOL,
            "name": "tensorrt_rtx",
            "version": self.trt.__version__,
            "device": self.device.name[:128] if self.device else "no GPU",
            "runs": self.device is not None,
        }

    def load(self, request):
        if not self.trt or self.model:
            raise Failure("failed", "load comes once, after hello")
        self.model, self.own_precision = Model(request["model"]), request["own_precision"]
        if request["reads_only"]:
            log = make_log(self.trt)
            parse(self.trt, self.trt.Builder(log), self.model, log)
        else:
            self._build({})
        return {"precision": "f32" if not self.own_precision else "tf32"}

    def _build(self, shapes):
        self.serialized, self.layers = build(self.trt, self.model, self.own_precision, shapes)
        self.shapes = shapes

    def _prepare(self, request):
        """Reads the inputs, and makes an engine for their sizes."""
        if not self.device:
            raise Failure("unavailable", "there is no GPU, or no driver of it, so nothing runs here")
        if not self.model:
            raise Failure("failed", "no model is loaded")
        import numpy

        feeds, kept = {}, {}
        for row in request["inputs"]:
            if row["type"] not in READABLE:
                raise Failure("model", f"an input of type {row['type']} cannot be passed by numpy")
            name = row["file"]
            kept[name] = self.kept.get(name)
            if kept[name] is None:
                kept[name] = numpy.fromfile(name, dtype=row["type"]).reshape(row["shape"])
            feeds[row["name"]] = kept[name]
        self.kept = kept
        shapes = {name: tuple(array.shape) for name, array in feeds.items()}
        if not self.engine or self.engine.shapes != shapes:
            if self.engine:
                self.engine.close()
            self.engine = None
            self._build(shapes)
            self.engine = Engine(self.trt, self.device, self.serialized, shapes)
        self.engine.feed(feeds)

    def outputs(self, request):
        self._prepare(request)
        ms = self.engine.run()
        rows = []
        for i, name in enumerate(self.model.outputs):
            array = self.engine.read(name)
            if array.dtype == "float16":
                array = array.astype("float32")
            file = f"out-{i}.bin"
            array.tofile(file)
            rows.append({"name": name, "type": array.dtype.name, "shape": list(array.shape), "file": file})
        return {"ms": ms, "outputs": rows}

    def latency(self, request):
        self._prepare(request)
        if not 1 <= request["runs"] <= MOST_RUNS:
            raise Failure("failed", f"runs is not from 1 to {MOST_RUNS}")
        for _ in range(request["warm_up"]):
            self.engine.run()
        return {"ms": [self.engine.run() for _ in range(request["runs"])]}

    def kernels(self, request):
        if not self.serialized:
            raise Failure("failed", "no model was built")
        return {"nodes": [kernel.answer() for kernel in read_kernels(self.layers, self.model.ops)]}

    def end(self, request):
        return {}

    def answer(self, line):
        request = json.loads(line)
        known = ("hello", "load", "outputs", "latency", "kernels", "end")
        name = request["request"]
        answer = {"id": request["id"]}
        try:
            if name not in known:
                raise Failure("failed", f"there is no request {name}")
            answer["result"] = getattr(self, name)(request)
        except Failure as error:
            answer["error"] = {"kind": error.kind, "text": one_line(error)}
        except MemoryError:
            answer["error"] = {"kind": "memory", "text": "Python has no more memory"}
        except Exception as error:  # a bug of this program, or of NVIDIA's bindings
            text = f"{type(error).__name__}: {error}"
            answer["error"] = {"kind": "failed", "text": one_line(text)}
        return name, answer


def main():
    # Libraries that print must not break the protocol: what they print goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    runner = Runner()
    for line in sys.stdin.buffer:
        name, answer = runner.answer(line)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if name == "end":
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
