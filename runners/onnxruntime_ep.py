#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runner for any execution provider of onnxruntime; docs/runners.md states the protocol.

It needs onnxruntime and numpy. A provider that is not there, or that does not take the whole
model, is an error: nothing falls back to the processor in silence.
"""

import json
import os
import pathlib
import sys
import time

PROTOCOL = 1
MOST_RUNS = 1000
# A profile grows with each run, so it ends after a few. The first one is slower than the others.
PROFILED_RUNS = 4

# The types of elements that pass through files, by onnxruntime's names.
TYPES = {
    "float": "float32",
    "float16": "float16",
    "double": "float64",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "bool": "bool",
}

# Kernels that compute with integers, beside those whose names begin with QLinear.
INTEGER_OPS = {
    "QGemm",
    "MatMulIntegerToFloat",
    "MatMulInteger",
    "ConvInteger",
    "MatMulNBits",
    "DynamicQuantizeMatMul",
    "DynamicQuantizeLSTM",
    "QAttention",
    "QOrderedGelu",
    "QEmbedLayerNormalization",
}
CONVERSIONS = {"QuantizeLinear", "DequantizeLinear"}
# Kernels that move or clip, whatever the type.
MOVERS = {
    "Cast",
    "Clip",
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Pad",
    "Reshape",
    "Relu",
    "ReorderInput",
    "ReorderOutput",
    "Shape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
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
        os.close(log)
        os.close(silence)
    return onnxruntime


# --- the provider ---------------------------------------------------------------------


class Provider:
    """An execution provider with its options, as sessions get it."""

    OWN_OPTIONS = ("provider", "library", "partial", "precision")

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

    def open(self, path, threads, own_precision, is_traced):
        """Opens a session of which the provider takes the whole model, unless `partial` says else."""
        o = self.runtime.SessionOptions()
        o.intra_op_num_threads = threads
        o.execution_mode = self.runtime.ExecutionMode.ORT_SEQUENTIAL
        o.enable_profiling = is_traced
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
    for suffix in ("_nchwc", "_token_"):
        name = name.partition(suffix)[0]
    return name


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
        nodes.setdefault(
            name,
            {
                "name": own_name(name)[:1024],
                "op": op[:128],
                "device": provider,
                "computes": computes(op, provider),
            },
        )
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
        self.provider = Provider(request.get("options", {}))
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
        self.session = self.provider.open(
            request["model"], request["threads"], request["own_precision"], self.is_traced
        )
        self.names = [output.name for output in self.session.get_outputs()]
        return {"precision": self.provider.precision_of(request["own_precision"])}

    def _run(self):
        try:
            began = time.perf_counter()
            arrays = self.session.run(None, self.feeds)
            ms = (time.perf_counter() - began) * 1e3
        except MemoryError:
            raise
        except Exception as error:
            raise Failure("memory" if "bad_alloc" in str(error) else "model", error) from None
        self.profiled += 1
        if self.is_traced and self.profiled == PROFILED_RUNS:
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
        self._read_inputs(request)
        if not 1 <= request["runs"] <= MOST_RUNS:
            raise Failure("failed", f"runs is not from 1 to {MOST_RUNS}")
        for _ in range(request["warm_up"]):
            self._run()
        return {"ms": [self._run()[0] for _ in range(request["runs"])]}

    def kernels(self, request):
        if not self.feeds or not self.is_traced:
            raise Failure("failed", "the model was not loaded to be traced, or has not run")
        while self.profiled < PROFILED_RUNS:
            self._run()
        return {"nodes": self.nodes}

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
