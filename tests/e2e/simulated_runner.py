#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runner with planted times: simulated_runner.py ONNXRUNTIME_EP [WORD ...]

Outputs are those of ONNX Runtime, by the installed program ONNXRUNTIME_EP. A time is the sum over the layers of the model, of which
each kind has times of its own in float and in integers, of conversions between the two, and of what fused layers save. It has 3 % of
noise, which the bytes of the model and the number of the run decide alone, so that the same runs always take the same
time; the float model has none. Words: `lies`: one model in eight takes times that cannot be; `crashes`: one in eight ends the program; `hangs`: one in
thirty answers nothing; `none`: no times are told.
"""

import hashlib
import pathlib
import signal
import sys
import time
import types

ENGINE = types.ModuleType("onnxruntime_ep")
exec(compile(pathlib.Path(sys.argv[1]).read_text(), sys.argv[1], "exec"), ENGINE.__dict__)
RUNNER = ENGINE.Runner
WORDS = set(sys.argv[2:])
LAYERS = {"Conv", "Gemm", "MatMul", "Add", "MaxPool", "GlobalAveragePool"}
CONVERSION_MS, SAVED_MS, REST_MS, NOISE = 0.1, 0.3, 0.5, 0.03


def chance(*parts):
    """A number from 0 to 1 that follows from the parts."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:6], "little") / 2**48


def fields(data):
    """The fields of a protobuf message, by number: lists of numbers and bytes. It is read here because to import onnx takes
    longer than everything else of this program."""
    at, found = 0, {}

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        else:
            size = varint() if tag & 7 == 2 else {1: 8, 5: 4}[tag & 7]
            value, at = data[at : at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


class Node:
    def __init__(self, data):
        found = fields(data)
        self.input = [name.decode() for name in found.get(1, [])]
        self.output = [name.decode() for name in found.get(2, [])]
        self.op_type = found[4][0].decode()


def planted_ms(data):
    graph = fields(fields(data)[7][0])
    nodes = [Node(node) for node in graph[1]]
    makers = {name: node for node in nodes for name in node.output}
    tensors = [fields(tensor) for tensor in graph.get(5, [])]
    sizes = {t[8][0].decode(): repr(t.get(1)) for t in tensors}

    def behind_pair(name):
        """The tensor before a pair, and whether there is one."""
        node = makers.get(name)
        if not node or node.op_type != "DequantizeLinear":
            return name, False
        quantize = makers.get(node.input[0])
        return (quantize.input[0] if quantize else node.input[0]), True

    total, in_integers = REST_MS, {}
    for node in nodes:
        if node.op_type not in LAYERS:
            if node.output:  # what is no layer follows what it reads
                source = makers.get(behind_pair(node.input[0])[0]) if node.input else None
                in_integers[node.output[0]] = bool(source) and in_integers.get(source.output[0], False)
            continue
        source, quantized = behind_pair(node.input[0])
        weight = behind_pair(node.input[1])[0] if len(node.input) > 1 else ""
        kind = (node.op_type, sizes.get(weight))
        work = 0.2 + 2 * chance(kind, "work") * (node.op_type in ("Conv", "Gemm", "MatMul"))
        total += work * (0.35 + chance(kind, "gain")) if quantized else work
        maker = makers.get(source)
        before = bool(maker) and in_integers.get(maker.output[0], False)
        total += CONVERSION_MS * (before != quantized)
        total -= SAVED_MS * (before and quantized and node.op_type == "Add")
        in_integers[node.output[0]] = quantized
    return total


class Simulated(RUNNER):
    def hello(self, request):
        self.options = request["options"]
        return {"protocol": 1, "name": "simulated", "version": "1", "device": "planted"}

    def load(self, request):
        self.request = request
        self.bytes = pathlib.Path(request["model"]).read_bytes()
        self.mark = hashlib.sha256(self.bytes).hexdigest()
        self.ms, self.timed = planted_ms(self.bytes), 0
        self.is_float = b"QuantizeLinear" not in self.bytes
        return {"precision": "f32"}

    def outputs(self, request):
        if not self.session:
            RUNNER.hello(self, {"protocol": 1, "options": {"provider": "CPU"}})
            RUNNER.load(self, self.request)
        return {**super().outputs(request), "ms": self.ms}

    def misbehave(self):
        """Returns the time of a model that is not measured as it should be; None: it is."""
        which = chance(self.mark, "misbehaves")
        if self.is_float:
            return None
        if "hangs" in WORDS and which > 29 / 30:
            time.sleep(600)
        if "crashes" in WORDS and which < 1 / 8:
            signal.raise_signal(signal.SIGSEGV)
        if "lies" in WORDS and 1 / 8 <= which < 2 / 8:
            return (-1, 1e-9, 1e9, 0)[int(which * 32) % 4]
        return None

    def latency(self, request):
        if "none" in WORDS:
            return {"ms": None, "reason": "it has no clock"}
        self.timed += 1
        lie = self.misbehave()
        noise = 0 if self.is_float else sum(chance(self.mark, self.timed, i) for i in range(12)) - 6
        return {"ms": [self.ms * (1 + NOISE * noise) if lie is None else lie]}

    def kernels(self, request):
        return {"nodes": []}


ENGINE.Runner = Simulated
sys.exit(ENGINE.main())
