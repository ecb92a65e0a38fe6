#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runner for any execution provider of onnxruntime; docs/runners.md states the protocol.

It needs onnxruntime and numpy. A provider that is not there, or that does not take the whole
model, is an error: nothing falls back to the processor in silence.

`provider = QNN` is Qualcomm's plugin of the package onnxruntime-qnn, whose emulator of the HTP
computes on an x86-64 processor what the accelerator of a phone computes. It needs onnx, too.
"""

import contextlib
import json
import os
import pathlib
import re
import sys
import time
import types

PROTOCOL = 1
MOST_RUNS = 1000
# A profile grows with each run, so it ends after a few. The first one is slower than the others.
PROFILED_RUNS = 4

# The types of elements that pass through files, by onnxruntime's names.
OWN_NAMES = "float16 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool"
TYPES = {"float": "float32", "double": "float64", **{name: name for name in OWN_NAMES.split()}}

# Kernels that compute with integers, beside those whose names begin with QLinear.
INTEGER_OPS = {
    *"QGemm MatMulIntegerToFloat MatMulInteger ConvInteger MatMulNBits DynamicQuantizeMatMul".split(),
    *"DynamicQuantizeLSTM QAttention QOrderedGelu QEmbedLayerNormalization".split(),
}
CONVERSIONS = {"QuantizeLinear", "DequantizeLinear"}
# Kernels that move or clip, whatever the type.
MOVERS = {
    *"Cast Clip Concat Expand Flatten Gather Identity Pad Reshape Relu Shape Slice Split".split(),
    *"Squeeze Tile Transpose Unsqueeze ReorderInput ReorderOutput".split(),
}


class Failure(Exception):
    """An error that becomes an answer."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def one_line(text):
    return " ".join(str(text).split())[:400]


def import_quietly():
    """Imports onnxruntime, which looks around where the walls are, and warns of each."""
    log = os.dup(2)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)
    try:
        import onnxruntime
    except ImportError as error:
        raise Failure("unavailable", f"onnxruntime cannot be imported: {error}") from None
    finally:
        os.dup2(log, 2)
        for fd in (log, silence):
            os.close(fd)
    return onnxruntime


# --- the provider ---------------------------------------------------------------------


class Provider:
    """An execution provider with its options, as sessions get it."""

    OWN_OPTIONS = ("provider", "library", "partial", "precision")
    # Why the times of runs say nothing; None: they do.
    no_times = None

    def __init__(self, options):
        self.name = options.get("provider", "CPU")
        self.is_partial = self._read_yes(options, "partial")
        self.precision = options.get("precision", "f32")
        self.options = {k: v for k, v in options.items() if k not in self.OWN_OPTIONS}
        self.devices = []  # of a plugin
        self.runtime = onnxruntime = import_quietly()
        onnxruntime.set_default_logger_severity(3)
        if options.get("library"):
            self._register(options["library"])
        else:
            self._find()

    @staticmethod
    def _read_yes(options, key):
        if options.get(key, "no") not in ("yes", "no"):
            raise Failure("unavailable", f"the option {key} is neither yes nor no")
        return options.get(key) == "yes"

    def _find(self):
        """Finds a provider that is a part of the package."""
        there = self.runtime.get_available_providers()
        if self.name not in there:
            self.name += "ExecutionProvider"
        if self.name not in there:
            raise Failure(
                "unavailable",
                f"onnxruntime {self.runtime.__version__} has no {self.name}; it has: {', '.join(there)}",
            )

    def _register(self, library):
        """Loads a plugin, and finds the devices of its provider."""
        register = getattr(self.runtime, "register_execution_provider_library", None)
        if not register:
            raise Failure(
                "unavailable", f"onnxruntime {self.runtime.__version__} loads no plugins; 1.23 does"
            )
        try:
            register(self.name, library)
        except Exception as error:  # onnxruntime's exceptions have no common class but this one
            raise Failure("unavailable", f"{library} cannot be loaded: {error}") from None
        names = (self.name, self.name + "ExecutionProvider")
        devices = self.runtime.get_ep_devices()
        self.devices = [d for d in devices if d.ep_name in names]
        if not self.devices:
            found = sorted({d.ep_name for d in devices})
            raise Failure(
                "unavailable", f"{library} offers no device for {self.name}; there are: {', '.join(found)}"
            )
        self.name = self.devices[0].ep_name
        self.devices = self.devices[:1]

    @property
    def is_processor(self):
        return self.name == "CPUExecutionProvider"

    def device(self):
        if self.devices:
            hardware = self.devices[0].device
            return f"{self.name} ({hardware.vendor or hardware.type.name})"
        return self.name

    def _options_for(self, own_precision):
        options = dict(self.options)
        if self.name == "CUDAExecutionProvider" and not own_precision:
            options.setdefault("use_tf32", "0")
        return options

    def precision_of(self, own_precision):
        if self.name == "CUDAExecutionProvider" and self.options.get("use_tf32", "1") != "0":
            return "tf32" if own_precision else "f32"
        return self.precision

    def _explain(self, error):
        text = str(error)
        if "fallback to CPU EP has been explicitly disabled" in text:
            return Failure(
                "model",
                f"{self.name} does not take the whole model; with the option partial = yes "
                "the rest runs on the processor",
            )
        return Failure("memory" if "bad_alloc" in text else "model", text)

    def open(self, path, request):
        """Opens a session of which the provider takes the whole model, unless `partial` says else."""
        own_precision = request["own_precision"]
        o = self.runtime.SessionOptions()
        o.intra_op_num_threads = request["threads"]
        o.execution_mode = self.runtime.ExecutionMode.ORT_SEQUENTIAL
        o.enable_profiling = request["traced"]
        o.profile_file_prefix = "profile"
        if not self.is_processor and not self.is_partial:
            o.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        options = self._options_for(own_precision)
        providers = {"providers": [(self.name, options)]}
        if self.devices:
            o.add_provider_for_devices(self.devices, options)
            providers = {}
        try:
            session = self.runtime.InferenceSession(path, o, enable_fallback=0, **providers)
        except Exception as error:
            raise self._explain(error) from None
        if self.name not in session.get_providers():
            raise Failure("unavailable", f"onnxruntime could not start {self.name}; its log says why")
        return session

    def fit(self, feeds):
        """Called before each run: a provider may need the sizes of the inputs."""
        return None

    def context(self):
        """Writes what the provider compiled of the model as a model; returns the file's name."""
        raise Failure("unavailable", f"the runner makes no context of {self.name}")

    def kernels(self):
        """Returns the kernels where the provider tells them; None: a profile does."""
        return None


# --- Qualcomm's HTP -------------------------------------------------------------------

# A model of a chip of the HTP's generation v73: all chips from v73 on give the same numbers.
V73 = "43"
REFUSED = re.compile(r"Operator type: (\S+) Node name: (.*) Node index: \d+")
REASON = re.compile(r"REASON : (.*)")
GELU = "the provider makes one operator of floats of it, with the other nodes of the GELU"
TWO_FORMATS = "its inputs and outputs have different formats, so that the HTP computes it in float16"


def find_gelus(nodes, makers, readers):
    """Returns the names of the nodes of each GELU with an Erf, if no pairs stand inside."""
    names = set()
    for erf in (n for n in nodes if n.op_type == "Erf"):
        group, at = [makers.get(erf.input[0]), erf], erf
        for op in ("Add", "Mul", "Mul"):
            at = next((r for r in readers.get(at.output[0], ()) if r.op_type == op), None)
            if at is None:
                break
            group.append(at)
        else:
            group += [makers.get(i) for n in group[3:] for i in n.input]
            names |= {n.name for n in group if n is not None and n.op_type in ("Add", "Div", "Erf", "Mul")}
    return names


class Graph:
    """Tells of the nodes of a file which of them stand between pairs."""

    def __init__(self, model):
        self.nodes = list(model.graph.node)
        self.fixed = {i.name for i in model.graph.initializer}
        self.fixed |= {n.output[0] for n in self.nodes if n.op_type == "Constant"}
        self.makers = {o: n for n in self.nodes for o in n.output}
        self.readers = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.by_name = {n.name: n for n in self.nodes}
        self.gelus = find_gelus(self.nodes, self.makers, self.readers)
        self.types = {i.name: i.data_type for i in model.graph.initializer}

    def _is_from_pair(self, name, group):
        maker = self.makers.get(name)
        if maker is None:
            return name in self.fixed or not name
        return maker.op_type in ("DequantizeLinear", "Constant") or maker in group

    def _goes_to_pair(self, name, group):
        """Returns whether all readers quantize the tensor, perhaps behind a clipping."""
        readers = [r for r in self.readers.get(name, ()) if r not in group]
        return all(
            r.op_type == "QuantizeLinear"
            or (r.op_type in ("Relu", "Clip") and self._goes_to_pair(r.output[0], ()))
            for r in readers
        ) and bool(readers or group)

    def parts(self, name, op):
        """Returns the nodes of the file that a node of the runtime computes, the first one first."""
        node = self.by_name.get(name)
        if node is not None and node.op_type == "MatMul" and op == "Gemm":  # with the Add behind it, which it became
            return [node, *(r for r in self.readers.get(node.output[0], ()) if r.op_type == "Add")]
        return [] if node is None else [node]

    def why_float(self, name, op):
        """Returns why a node between pairs is one of floats, or None: its data have different types of integers.
        The second operand of a product has 8 bits in any kernel: the provider converts it."""
        if name in self.gelus:
            return GELU
        whole = self.parts(name, op)
        read = [t for n in whole for i, t in enumerate(n.input) if n.op_type != "MatMul" or i != 1]
        pairs = [self.makers[t] for t in read if t in self.makers]
        pairs += [r for n in whole for o in n.output for r in self.readers.get(o, ()) if r.op_type == "QuantizeLinear"]
        pairs = [p for p in pairs if p.op_type in CONVERSIONS and p.input[0] not in self.fixed]
        return TWO_FORMATS if len({self.types.get(p.input[2]) for p in pairs if len(p.input) > 2}) > 1 else None

    def computes(self, name, op):
        """Says what a node computes with, as far as its own file tells."""
        if op in CONVERSIONS:
            return "conversion"
        whole = self.parts(name, op)
        group = whole if len(whole) > 1 else []
        if not whole:
            return "other"
        if not self.why_float(name, op) and all(
            all(self._is_from_pair(i, group) for i in n.input[n.op_type == "Where" :])
            and all(self._goes_to_pair(o, group) for o in n.output)
            for n in whole
        ):
            return "integer"
        return "other" if op in MOVERS else "float"


class Qnn(Provider):
    """Qualcomm's plugin with the emulator of the HTP: always a model of a chip, sessions for
    the sizes that come, and what it left to the processor, with the reasons."""

    OWN_OPTIONS = (*Provider.OWN_OPTIONS, "backend_path", "soc_model")
    no_times = "an emulator of the HTP computes here, whose times say nothing of a chip"

    def __init__(self, options):
        super().__init__(options)
        if not self.devices:
            self._register(self._package("get_library_path", "library"))
        self.soc_model = options.get("soc_model", V73)
        self.backend = options.get("backend_path") or self._package("get_qnn_htp_path", "backend_path")
        if not os.path.isabs(self.backend) or not os.path.exists(self.backend):
            raise Failure("unavailable", f"backend_path is no absolute path: {self.backend}")
        self.path = self.request = self.graph = self.session = self.sizes = None
        self.nodes = []

    def _find(self):
        self.name = "QNNExecutionProvider"

    @staticmethod
    def _package(function, option):
        """Asks the package onnxruntime-qnn where a file of it is."""
        try:
            import onnxruntime_qnn
        except ImportError as error:
            raise Failure(
                "unavailable", f"onnxruntime_qnn cannot be imported, and there is no option {option}: {error}"
            ) from None
        return getattr(onnxruntime_qnn, function)()

    def device(self):
        return f"{self.name} (emulator of the HTP, soc_model {self.soc_model})"

    def precision_of(self, own_precision):
        return "f16"

    def open(self, path, request):
        import onnx

        try:
            model = onnx.load(path)
        except Exception as error:
            raise Failure("model", f"onnx cannot read the model: {error}") from None
        self.path, self.request = path, request
        self.graph = Graph(model)
        self.outputs = [output.name for output in model.graph.output]
        if not self._open_sizes(model) and not request.get("reads_only"):
            self._compile({})
        return self

    def get_outputs(self):
        return [types.SimpleNamespace(name=name) for name in self.outputs]

    @staticmethod
    def _open_sizes(model):
        fixed = {i.name for i in model.graph.initializer}
        inputs = [i for i in model.graph.input if i.name not in fixed]
        return [i.name for i in inputs if any(not d.dim_value for d in i.type.tensor_type.shape.dim)]

    def fit(self, feeds):
        """Makes a session for inputs of these sizes, which the HTP must know."""
        sizes = {name: list(array.shape) for name, array in feeds.items()}
        if self.session is None or (self.sizes and sizes != self.sizes):
            self.session = None
            self._compile(sizes)
        return self.session

    def context(self):
        import onnx

        name = "context.onnx"
        path = self._write_fixed(self.sizes or self._one_sample(onnx.load(self.path)))
        entries = {"ep.context_enable": "1", "ep.context_embed_mode": "1", "ep.context_file_path": name}
        self.session = None
        self.session = self._open_session(path, 4, entries)
        if os.path.exists(name):
            return name
        raise Failure("model", "the HTP takes no part of the model, so there is no context")

    def _one_sample(self, model):
        """The sizes of one sample, where only first axes of inputs are open; {}: none is."""
        if not self._open_sizes(model):
            return {}
        dims = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
        if any(0 in dims[name][1:] for name in self._open_sizes(model)):
            raise Failure("model", "an input has open sizes, which the spec's inputs can fix")
        return {name: [sizes[0] or 1, *sizes[1:]] if sizes else [] for name, sizes in dims.items()}

    def _write_fixed(self, sizes):
        """Writes the model with these sizes of its inputs; returns its path."""
        import onnx

        model = onnx.load(self.path)
        if not sizes or not self._open_sizes(model):
            return self.path
        for value in model.graph.input:
            for dim, size in zip(value.type.tensor_type.shape.dim, sizes.get(value.name, ())):
                dim.dim_value = size
        for value in model.graph.output:
            for dim in value.type.tensor_type.shape.dim:
                dim.ClearField("dim_param")
        del model.graph.value_info[:]
        onnx.save(model, "fixed.onnx")
        self.sizes = sizes
        return "fixed.onnx"

    def _options(self):
        return {**self.options, "backend_path": self.backend, "soc_model": self.soc_model}

    def _open_session(self, path, severity, entries=types.MappingProxyType({})):
        o = self.runtime.SessionOptions()
        o.intra_op_num_threads = self.request["threads"]
        o.log_severity_level = severity
        for key, value in {"session.record_ep_graph_assignment_info": "1", **entries}.items():
            o.add_session_config_entry(key, value)
        o.add_provider_for_devices(self.devices, self._options())
        try:
            return self.runtime.InferenceSession(path, o, enable_fallback=0)
        except Exception as error:
            raise self._explain(error) from None

    def _compile(self, sizes):
        path = self._write_fixed(sizes)
        self.session = self._open_session(path, 3)
        parts = [
            (part.ep_name == self.name, part.ep_name, node)
            for part in self.session.get_provider_graph_assignment_info()
            for node in part.get_nodes()
        ]
        left = [n for is_here, _, n in parts if not is_here and n.op_type not in CONVERSIONS]
        reasons = {}
        taken = any(is_here for is_here, _, _ in parts)
        if not taken or (left and self.request["traced"]):
            reasons = self._ask_reasons(path)
        if not taken:
            first = next(iter(reasons.values()), None)
            raise Failure(
                "model" if first else "unavailable",
                f"{self.name} takes no node of the model: {first or 'its backend was not loaded'}",
            )
        # A pair on the HTP is a part of the layers beside it.
        self.nodes = [
            self._make_kernel(node, name, None if is_here else reasons)
            for is_here, name, node in parts
            if not (is_here and node.op_type in CONVERSIONS)
        ]

    def _ask_reasons(self, path):
        """Opens the model once more with the log that tells why nodes are left."""
        with captured("qnn.log"):
            self._open_session(path, 0)
        return read_refusals("qnn.log")

    def _make_kernel(self, node, provider, reasons):
        name = own_name(node.name)
        kernel = {"name": name[:1024], "op": node.op_type[:128], "device": provider, "ms": 0}
        kernel["computes"] = self.graph.computes(name, node.op_type)
        if kernel["computes"] == "float" and (why := self.graph.why_float(name, node.op_type)):
            kernel["reason"] = why
        if reasons is not None and node.op_type not in CONVERSIONS:
            kernel["computes"] = kernel["computes"].replace("integer", "float")
            kernel["reason"] = one_line(reasons.get(node.name) or reasons.get(name) or "the provider does not say why")
        return kernel

    def kernels(self):
        return self.nodes


@contextlib.contextmanager
def captured(path):
    """Sends what is written to standard error into a file for a while."""
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


def read_refusals(path):
    """Returns, by the name of a node, why the provider left it; removes the log."""
    reasons, names = {}, []
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            if "Validation FAILED" in line or "Validation PASSED" in line:
                names = []
            elif found := REFUSED.search(line):
                names.append(found[2])
            elif found := REASON.search(line):
                for name in names:
                    reasons.setdefault(name, found[1])
    os.remove(path)
    return reasons


PROVIDERS = {"QNN": Qnn, "QNNExecutionProvider": Qnn}


# --- tensors --------------------------------------------------------------------------


class Tensors:
    """Reads the tensors of requests, and writes those of answers."""

    def __init__(self):
        import numpy

        self.numpy = numpy
        self.kept = {}  # by the name of the file, which always has the same bytes

    def read(self, inputs):
        feeds, kept = {}, {}
        for row in inputs:
            name = row["file"]
            kept[name] = self.kept.get(name)
            if kept[name] is None:
                kept[name] = self._read_file(name, row["type"], row["shape"])
            feeds[row["name"]] = kept[name]
        self.kept = kept
        return feeds

    def _read_file(self, name, kind, shape):
        if kind not in TYPES.values():
            raise Failure("model", f"an input of type {kind} cannot be passed to onnxruntime by numpy")
        return self.numpy.fromfile(name, dtype=kind).reshape(shape)

    def write(self, names, arrays):
        return [self._write_file(i, n, a) for i, (n, a) in enumerate(zip(names, arrays))]

    def _write_file(self, i, name, array):
        numpy = self.numpy
        if not isinstance(array, numpy.ndarray) or array.dtype.name not in TYPES.values():
            return {"name": name, "type": None}
        if array.dtype.kind == "f" and array.dtype != numpy.float32:
            array = array.astype(numpy.float32)
        file = f"out-{i}.bin"
        numpy.ascontiguousarray(array).tofile(file)
        return {"name": name, "type": array.dtype.name, "shape": list(array.shape), "file": file}


# --- kernels --------------------------------------------------------------------------


def computes(op, provider):
    if op in CONVERSIONS:
        return "conversion"
    if op in INTEGER_OPS or op.startswith("QLinear"):
        return "integer"
    # A provider that compiles a part of the model shows it as a kernel of its own.
    if op in MOVERS or op.startswith(provider.removesuffix("ExecutionProvider")):
        return "other"
    return "float"


def own_name(name):
    """Returns the name of the model's node, without a suffix of onnxruntime's."""
    return re.split("_nchwc|_token_|/MatMulAddFusion", name)[0]


def read_profile(path):
    """Returns the kernels with their mean times in all runs but the first; removes the file."""
    nodes, times = {}, {}
    events = json.loads(pathlib.Path(path).read_text(encoding="utf-8", errors="replace"))
    os.remove(path)
    for event in events:
        name = event.get("name", "")
        if event.get("cat") != "Node" or not name.endswith("_kernel_time"):
            continue
        name = name.removesuffix("_kernel_time")
        about = event.get("args", {})
        op, provider = about.get("op_name", ""), about.get("provider", "")
        kernel = {"name": own_name(name)[:1024], "op": op[:128], "device": provider}
        nodes.setdefault(name, {**kernel, "computes": computes(op, provider)})
        times.setdefault(name, []).append(event.get("dur", 0) / 1000)
    for name, node in nodes.items():
        later = times[name][1:] or times[name]
        node["ms"] = sum(later) / len(later)
    return list(nodes.values())


# --- requests -------------------------------------------------------------------------


class Runner:
    def __init__(self):
        self.provider = self.session = self.tensors = None
        self.names = []  # of the model's outputs
        self.feeds = {}  # the inputs of the last run
        self.is_traced = False
        self.profiled = 0  # runs of the session
        self.nodes = []  # the kernels, once so many runs were profiled

    def hello(self, request):
        if request.get("protocol") != PROTOCOL:
            raise Failure("failed", f"this program speaks version {PROTOCOL} of the protocol")
        options = request.get("options", {})
        self.provider = PROVIDERS.get(options.get("provider"), Provider)(options)
        self.tensors = Tensors()
        return {
            "protocol": PROTOCOL,
            "name": "onnxruntime",
            "version": self.provider.runtime.__version__,
            "device": self.provider.device()[:128],
        }

    def load(self, request):
        if not self.provider or self.session:
            raise Failure("failed", "load comes once, after hello")
        self.is_traced = request["traced"]
        self.session = self.provider.open(request["model"], request)
        self.names = [output.name for output in self.session.get_outputs()]
        return {"precision": self.provider.precision_of(request["own_precision"])}

    def _run(self):
        try:
            session = self.provider.fit(self.feeds) or self.session
            began = time.perf_counter()
            arrays = session.run(None, self.feeds)
            ms = (time.perf_counter() - began) * 1e3
        except (MemoryError, Failure):
            raise
        except Exception as error:
            raise Failure("memory" if "bad_alloc" in str(error) else "model", error) from None
        self.profiled += 1
        if self.provider.kernels() is None and self.is_traced and self.profiled == PROFILED_RUNS:
            self.nodes = read_profile(self.session.end_profiling())
        return ms, arrays

    def _read_inputs(self, request):
        if not self.session:
            raise Failure("failed", "no model is loaded")
        self.feeds = self.tensors.read(request["inputs"])

    def outputs(self, request):
        self._read_inputs(request)
        ms, arrays = self._run()
        return {"ms": ms, "outputs": self.tensors.write(self.names, arrays)}

    def latency(self, request):
        if self.provider.no_times:
            return {"ms": None, "reason": self.provider.no_times}
        self._read_inputs(request)
        if not 1 <= request["runs"] <= MOST_RUNS:
            raise Failure("failed", f"runs is not from 1 to {MOST_RUNS}")
        for _ in range(request["warm_up"]):
            self._run()
        return {"ms": [self._run()[0] for _ in range(request["runs"])]}

    def kernels(self, request):
        if not self.feeds or not self.is_traced:
            raise Failure("failed", "the model was not loaded to be traced, or has not run")
        if self.provider.kernels() is not None:
            return {"nodes": self.provider.kernels()}
        while self.profiled < PROFILED_RUNS:
            self._run()
        return {"nodes": self.nodes}

    def context(self, request):
        if not self.session:
            raise Failure("failed", "no model is loaded")
        name = self.provider.context()
        return {"file": name, "bytes": os.path.getsize(name)}

    def end(self, request):
        return {}

    def answer(self, line):
        request = json.loads(line)
        known = ("hello", "load", "outputs", "latency", "kernels", "context", "end")
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
        except Exception as error:  # a bug of this program, or of onnxruntime's Python
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
