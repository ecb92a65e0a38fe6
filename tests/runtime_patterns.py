# SPDX-License-Identifier: Apache-2.0
"""Makes small patterns of two to five operators, quantizes each for onnxruntime and openvino
without a recipe, runs it there, and prints those that run 3 dB below the literal arithmetic
without a warning. Exits 1 where there is one.

    tests/runtime_patterns.py [SECONDS [FIRST_SEED]]
"""

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
import openvino
from onnx import helper, numpy_helper

QDQ = os.environ.get("QDQ", Path(__file__).parent.parent / "_install/bin/qdq")
LEAST_DB, LOST_DB, FLOAT_DB, SAMPLES = 8, 3, 60, 16
SPECS = [{}, {}, {"activations": {"symmetric": True}}, {"activations": {"dtype": "int8"}},
         {"weights": {"granularity": "tensor"}}, {"weights": {"dtype": "uint8"}}]


class Pattern:
    """A model of an image, a sequence or rows, whose last operator has a weight."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], {}
        kind = self.pick("image", "tokens", "rows")
        size = int(self.pick(8, 16, 32))
        batch = int(self.pick(1, 1, 2, 4))
        self.shape = {"image": [batch, self.pick(3, 8, 16), 8, 8], "tokens": [batch, 6, size],
                      "rows": [batch, size]}[kind]
        self.given, self.is_dynamic = [int(n) for n in self.shape], self.rng.random() < .4
        self.shape = list(self.given)
        self.last = "x"
        if self.rng.random() < .7:
            self.layer()
        for _ in range(self.rng.integers(1, 4)):
            self.step()
        self.layer()
        self.nodes[-1].output[0] = "y"

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def floats(self, *shape, scale=1.0):
        return self.constant((scale * self.rng.normal(size=shape)).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs or [self.last], [name], name, **attributes))
        self.last = name

    def layer(self):
        n, m = self.shape[1 if len(self.shape) == 4 else -1], int(self.pick(8, 16, 24))
        if len(self.shape) == 4:
            side = self.shape[2:]
            if self.rng.random() < .15:
                self.node("ConvTranspose", self.last, self.floats(n, m, 2, 2, scale=(4 * n) ** -.5),
                          strides=[2, 2])
                side = [2 * length for length in side]
            else:
                bias = [self.floats(m)] if self.rng.random() < .5 else []
                k = int(self.pick(1, 3))
                self.node("Conv", self.last, self.floats(m, n, k, k, scale=(k * k * n) ** -.5), *bias,
                          pads=[k // 2] * 4)
            self.shape = [self.shape[0], m, *side]
            return
        bias = self.rng.random() < .5
        if len(self.shape) == 2 and self.rng.random() < .5:
            self.node("Gemm", self.last, self.floats(n, m, scale=n ** -.5),
                      *([self.floats(m)] if bias else []))
        else:
            batch = [self.shape[0]] if len(self.shape) == 3 and self.rng.random() < .15 \
                and not self.is_dynamic else []
            self.node("MatMul", self.last, self.floats(*batch, n, m, scale=n ** -.5))
            if bias:
                self.node("Add", self.last, self.floats(m))
        self.shape = [*self.shape[:-1], m]

    def step(self):
        steps = [self.activation, self.activation, self.channels, self.channels, self.scalar,
                 self.concat, self.residual]
        if len(self.shape) == 4:
            steps += [self.pool, self.pool]
        if len(self.shape) > 2:
            steps += [self.reduce, self.reduce]
        self.pick(*steps)()

    def activation(self):
        self.node(self.pick("Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Elu", "Abs",
                            "Neg", "Softmax", "Identity"))

    def channels(self):
        n = self.shape[1 if len(self.shape) == 4 else -1]
        value = self.rng.uniform(.3, 2, n) * self.rng.choice([1, 1, -1] if self.rng.random() < .5
                                                             else [1], n)
        value = value.astype(np.float32)
        if len(self.shape) == 4:
            value = value.reshape(-1, 1, 1)
        self.node(self.pick("Mul", "Mul", "Add", "Div", "Sub"), self.last, self.constant(value))

    def scalar(self):
        one = self.constant(np.float32(self.pick(.5, 1, -1.5)))
        inputs = self.pick((self.last, one), (one, self.last))
        self.node(self.pick("Mul", "Add", "Sub"), *inputs)

    def residual(self):
        before = self.last
        self.node(self.pick("Sigmoid", "Relu", "Tanh"))
        self.node(self.pick("Add", "Mul"), before, self.last)

    def concat(self):
        before, axis = self.last, 1
        if self.rng.random() < .5:
            other = self.floats(self.shape[0], 1, *self.shape[2:])
            more = 1
            if self.is_dynamic or len(self.shape) == 2:
                return
        else:
            self.node(self.pick("Relu", "Tanh", "Identity"))
            other, more = self.last, self.shape[1]
        self.node("Concat", before, other, axis=axis)
        self.shape[axis] += more

    def pool(self):
        if min(self.shape[2:]) < 4:
            return
        op, k = self.pick("MaxPool", "AveragePool"), int(self.pick(2, 3))
        pad = int(self.pick(0, 1)) if k == 3 else 0
        more = {"count_include_pad": int(self.pick(0, 1))} if op == "AveragePool" else {}
        self.node(op, kernel_shape=[k, k], strides=[2, 2], pads=[pad] * 4, **more)
        self.shape[2:] = [(n + 2 * pad - k) // 2 + 1 for n in self.shape[2:]]

    def reduce(self):
        rank = len(self.shape)
        axes = sorted({int(self.rng.integers(1, rank))}) if rank == 3 else [2, 3]
        keep = int(self.pick(0, 1))
        op = self.pick("ReduceMean", "ReduceMean", "ReduceMax", "ReduceSum")
        signed = self.constant(np.array([axis - rank if self.rng.random() < .3 else axis
                                         for axis in axes], np.int64))
        self.node(op, self.last, signed, keepdims=keep)
        self.shape = ([1 if i in axes else n for i, n in enumerate(self.shape)] if keep
                      else [n for i, n in enumerate(self.shape) if i not in axes])

    def model(self):
        value = helper.make_tensor_value_info
        shape = ["n", *self.given[1:]] if self.is_dynamic else self.given
        graph = helper.make_graph(
            self.nodes, "pattern", [value("x", 1, shape)], [value("y", 1, None)],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def sqnr_db(real, other):
    error = np.square(real.astype(float) - other).sum()
    return 10 * np.log10(np.square(real.astype(float)).sum() / max(error, 1e-30))


def run_onnxruntime(model, x, level="ORT_ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    return onnxruntime.InferenceSession(model, options).run(None, {"x": x})[0]


def run_openvino(model, x):
    core = openvino.Core()
    return core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})({"x": x})[0]


RUN = {"onnxruntime": run_onnxruntime, "openvino": run_openvino}


def quantize(folder, model, target, spec, data):
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "d.npz", x=data)
    (folder / "s.json").write_text(json.dumps(
        {"target": target, "recipe": "none", "evaluate": False, **spec}))
    done = subprocess.run([QDQ, "quantize", "m.onnx", "--spec", "s.json", "--calibration", "d.npz",
                           "-o", "q.onnx", "--report", "r.json"], cwd=folder, capture_output=True,
                          text=True, check=False, env={**os.environ, "QDQD_ENGINE_OPENVINO": ""})
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return (folder / "q.onnx").read_bytes(), json.loads((folder / "r.json").read_text())


def over_all(whole, made, samples, target):
    """Returns the decibels of the literal arithmetic and of the runtime over all samples: in the few numbers
    that one sample gives, a single step of rounding is several decibels."""
    real, literal = (np.stack([run_onnxruntime(model, x, "ORT_DISABLE_ALL") for x in samples])
                     for model in (whole, made))
    run = np.stack([RUN[target](made, x) for x in samples])
    return sqnr_db(real, literal), sqnr_db(real, run)


def try_pattern(folder, seed, target):
    """Returns whether a result was compared, and what is wrong with it, or None."""
    pattern = Pattern(seed)
    model, spec = pattern.model(), pattern.pick(*SPECS)
    x = pattern.rng.normal(size=pattern.given).astype(np.float32)
    data = pattern.rng.normal(size=(SAMPLES * pattern.given[0], *pattern.given[1:]))
    whole = model.SerializeToString()
    real = run_onnxruntime(whole, x, "ORT_DISABLE_ALL")
    try:
        in_float = sqnr_db(real, RUN[target](whole, x))
    except (RuntimeError, onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented):
        return False, None  # the runtime does not run the float model either
    made, report = quantize(folder, model, target, spec, data.astype(np.float32))
    literal = sqnr_db(real, run_onnxruntime(made, x, "ORT_DISABLE_ALL"))
    if in_float < 60 or literal < LEAST_DB or any(
            one["code"] in ("target_format", "nothing_to_quantize") or "wrong" in one["detail"]
            for one in report["warnings"]):
        return False, None
    try:
        run = sqnr_db(real, RUN[target](made, x))
    except Exception as error:
        run, why = -np.inf, " ".join(str(error).split())[-120:]
    else:
        why = ""
    if not why and run <= min(literal, FLOAT_DB) - LOST_DB:
        samples = [x, *np.split(data.astype(np.float32), SAMPLES)]
        literal, run = over_all(whole, made, samples, target)
    if run > min(literal, FLOAT_DB) - LOST_DB:  # beyond it nothing is left with a pair
        return True, None
    ops = [f"{node.op_type}({', '.join(node.input)})" for node in model.graph.node]
    return True, f"{literal:.1f} dB literal, {run:.1f} run {spec} {pattern.given} {' '.join(ops)} {why}"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end, tried, wrong = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for target in RUN:
                compared, what = try_pattern(Path(folder), seed, target)
                tried += compared
                if what:
                    wrong += 1
                    print(f"seed {seed}, {target}: {what}", flush=True)
            seed += 1
    print(f"patterns: {tried} results compared, up to seed {seed}, {wrong} run {LOST_DB} dB below their own arithmetic")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
