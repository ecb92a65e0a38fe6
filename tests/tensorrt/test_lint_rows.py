# SPDX-License-Identifier: Apache-2.0
"""Warnings about patterns say what NVIDIA's plans show, where the spec states the version."""

import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import INSTALLED

QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
IMAGE, ROWS = "float[1, 32, 32, 32]", "float[1, 64, 64]"
FIRST = "[c0] a = Conv <pads = [1, 1, 1, 1]> (x, w0) [r0] b = Relu (a) "
LAST = "[c2] y = Conv <pads = [1, 1, 1, 1]> (t, w2)"
SQUARE = (32, 32, 3, 3)
POOL = "MaxPool <kernel_shape = [2, 2], strides = [2, 2]>"
GELU = """[m0] a = MatMul (x, w0) [div] d = Div (a, root) [erf] e = Erf (d) [add] f = Add (e, one)
          [mul] g = Mul (a, f) [half] t = Mul (g, half) [m1] y = MatMul (t, w2)"""
GATE = FIRST + """[pool] g = GlobalAveragePool (b) [c1] h = Conv (g, gate) [s] s = Sigmoid (h)
                  [mul] t = Mul (b, s) """ + LAST
RESIDUAL = FIRST + """[c1] c = Conv <pads = [1, 1, 1, 1]> (b, w1) [add] d = Add (c, b)
                      [r1] t = Relu (d) """ + LAST
SMALL = "[m0] a = MatMul (x, w0) [r] b = Relu (a) [m1] y = MatMul (b, w2)"
TRANSPOSED = FIRST + "[up] y = ConvTranspose <strides = [2, 2]> (b, w2)"


def named(name, **keys):
    return {"layers": [{"name": name, **keys}]}


# code, types of x and y, nodes, weights, the spec that is warned of, the spec that heeds the warning
REFUTED = [
    ("pair_before_activation", IMAGE, IMAGE, FIRST.replace("b =", "t =") + LAST, {}, named("r0"), {}),
    ("residual_all_inputs", IMAGE, IMAGE, RESIDUAL, {"w1": SQUARE},
     named("add", quantization_index=[0, 1]), {"cases": ["residual"]}),
    ("pooling_alone", IMAGE, "float[1, 32, 16, 16]",
     FIRST + f"[pool] p = {POOL} (b) [s] y = Sigmoid (p)", {}, named("pool"), {}),
    ("output_layer", IMAGE, "float[1, 32, 16, 16]", FIRST + f"[pool] y = {POOL} (b)", {},
     named("pool"), {}),
    ("concat_scales", IMAGE, IMAGE, FIRST + "[c1] c = Conv <pads = [1, 1, 1, 1]> (x, w1) "
     "[join] t = Concat <axis = 1> (b, c) " + LAST, {"w1": SQUARE, "w2": (32, 64, 3, 3)},
     named("join"), {}),
    ("pair_behind_pad", IMAGE, IMAGE, FIRST + "[pad] t = Pad (b, pads) [c2] y = Conv (t, w2)",
     {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}, {}, None),
    ("norm_or_gelu", ROWS, ROWS, GELU, {
        "w0": (64, 64), "w2": (64, 64), "root": np.array(2 ** .5, "float32"),
        "one": np.array(1, "float32"), "half": np.array(.5, "float32")}, named("mul"), {}),
    ("int8_into_float", IMAGE, IMAGE, FIRST + "[add] c = Add (b, x) [s] y = Sigmoid (c)", {},
     named("add"), {}),
    ("gate_in_float", IMAGE, IMAGE, GATE, {"gate": (32, 32, 1, 1)}, {}, {"cases": ["efficientnet"]}),
]
CONFIRMED = [
    ("residual_without_case", IMAGE, IMAGE, RESIDUAL, {"w1": SQUARE}, {}, {"cases": ["residual"]}),
    ("small_matmul", ROWS, ROWS, SMALL, {"w0": (64, 8), "w2": (8, 64)}, {}, {"rules": {"T23": True}}),
    ("half_quantized", IMAGE, IMAGE, FIRST.replace("b =", "t =") + LAST, {},
     named("c2", quantize_input=False), named("c2", quantize_input=False, quantize_weight=False)),
    ("conv_transpose_in_float", IMAGE, "float[1, 32, 65, 65]", TRANSPOSED, {}, named("up"), {}),
]


@pytest.fixture
def planned(tmp_path, plan_of):
    """Returns a function that writes the model of a row, and one from a spec to its codes and plan."""
    random = np.random.default_rng(45)
    file = tmp_path / "m.onnx"

    def write(inputs, outputs, nodes, weights):
        model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
            net ({inputs} x) => ({outputs} y) {{ {nodes} }}""")
        for name, value in {"w0": SQUARE, "w2": SQUARE, **weights}.items():
            if isinstance(value, tuple):
                value = random.standard_normal(value).astype("float32") / 16
            model.graph.initializer.append(numpy_helper.from_array(value, name))
        onnx.checker.check_model(model)
        onnx.save(model, file)
        sizes = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
        np.savez(tmp_path / "c.npz", x=random.standard_normal([8, *sizes[1:]]).astype("float32"))

    def quantize(spec):
        (tmp_path / "s.json").write_text(json.dumps(
            {"target": "tensorrt", "recipe": "none", "evaluate": False, **spec}))
        done = subprocess.run([
            QDQ, "quantize", file, "--spec", tmp_path / "s.json", "--calibration",
            tmp_path / "c.npz", "-o", tmp_path / "q.onnx", "--report", tmp_path / "r.json"],
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        report, plan = json.loads((tmp_path / "r.json").read_text()), plan_of(tmp_path / "q.onnx")
        assert plan.errors == []
        return {row["code"] for row in report["warnings"]}, (len(plan.kernels), plan.kilobytes)

    return write, quantize


@pytest.mark.parametrize("code,inputs,outputs,nodes,weights,spec,heeded", REFUTED,
                         ids=[row[0] for row in REFUTED])
def test_what_costs_nothing_is_not_warned_of(planned, code, inputs, outputs, nodes, weights, spec,
                                             heeded):
    write, quantize = planned
    write(inputs, outputs, nodes, weights)
    codes, cost = quantize(spec)
    assert code in codes
    assert code not in quantize({**spec, "version": "rtx-1.7"})[0]
    if heeded is None:  # without the Pad, which the convolution does itself
        write(inputs, outputs, FIRST.replace("b =", "t =") + LAST, weights)
    codes, heeded_cost = quantize(heeded or {})
    assert code not in codes
    assert cost[0] <= heeded_cost[0] and cost[1] <= heeded_cost[1]


@pytest.mark.parametrize("code,inputs,outputs,nodes,weights,spec,heeded", CONFIRMED,
                         ids=[row[0] for row in CONFIRMED])
def test_what_costs_something_is_warned_of(planned, code, inputs, outputs, nodes, weights, spec,
                                           heeded):
    write, quantize = planned
    write(inputs, outputs, nodes, weights)
    codes, cost = quantize({**spec, "version": "rtx-1.7"})
    assert code in codes
    codes, heeded_cost = quantize({**heeded, "version": "rtx-1.7"})
    assert code not in codes
    assert cost[0] > heeded_cost[0] or cost[1] > heeded_cost[1]


@pytest.mark.parametrize("channels, samples, pooled, is_float", [
    (4, 1, True, True), (1, 1, True, True), (5, 1, True, False), (4, 2, True, False), (4, 1, False, False)])
def test_one_place_of_few_channels(planned, plan_of, tmp_path, channels, samples, pooled, is_float):
    """The second of three Convs of size 1. With the version it is left in float where it is computed so."""
    write, quantize = planned
    side = 1 if pooled else 8
    pool = "[pool] g = GlobalAveragePool (x) " if pooled else "[pool] g = Relu (x) "
    write(f"float[{samples}, 32, 8, 8]", f"float[{samples}, 32, {side}, {side}]",
          pool + "[c0] a = Conv (g, w0) [r0] b = Relu (a) [c1] c = Conv (b, w1) [r1] t = Relu (c) "
          "[c2] y = Conv (t, w2)",
          {"w0": (channels, 32, 1, 1), "w1": (32, channels, 1, 1), "w2": (32, 32, 1, 1)})
    for spec, is_pair in (({}, True), ({"version": "rtx-1.7"}, not is_float)):
        assert ("one_place" in quantize(spec)[0]) == (is_float and is_pair)
        report = json.loads((tmp_path / "r.json").read_text())
        row = next(row for row in report["layers"] if row["name"] == "c1")
        assert (row["reason"] != "rule:T34") == is_pair == bool(row["weight_quantized"])
        plan = plan_of(tmp_path / "q.onnx")
        assert bool(plan.integer_kernels("c1")) == (not is_float)
        assert all(plan.integer_kernels(name) for name in ("c0", "c2"))


def test_an_add_behind_a_swish_is_in_its_kernel(planned, plan_of, tmp_path):
    write, quantize = planned
    write(IMAGE, IMAGE, "[c0] a = Conv <pads = [1, 1, 1, 1]> (x, w0) [s] s = Sigmoid (a) "
          "[mul] m = Mul (a, s) [add] t = Add (m, x) " + LAST, {})
    assert "swish_into_add" in quantize({})[0]
    assert "swish_into_add" not in quantize({"version": "rtx-1.7"})[0]
    assert any({"s", "mul", "add"} <= set(k["nodes"]) for k in plan_of(tmp_path / "q.onnx").kernels)
