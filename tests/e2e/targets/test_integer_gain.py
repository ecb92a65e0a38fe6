# SPDX-License-Identifier: Apache-2.0
"""Rules C15 and C16 of the target onnxruntime: the layers that become integer kernels because
time is gained by them, the reason why another one does not, and who reads a pair."""

import numpy as np
import pytest

from test_onnxruntime_kernels import Made, model, numbers

RULES = {"C15": True, "C16": True}
GRAPH = """(float[1,64,16,16] x, float[1,64,128] z) =>
    (float[1,64,16,16] y, float[1,64,256] u, float[1,64,16,16] d, float[1,64,16,16] power) {
    [first] a1 = Conv <pads = [1, 1, 1, 1]> (x, w1)
    [relu] a2 = Relu (a1)
    [second] a3 = Conv <pads = [1, 1, 1, 1]> (a2, w2)
    [sum] a4 = Add (a2, a3)
    [third] y = Conv <pads = [1, 1, 1, 1]> (a4, w3)
    [depthwise] d1 = Conv <group = 64, pads = [1, 1, 1, 1]> (x, wd)
    [gate] d2 = Sigmoid (d1)
    [gated] d = Mul (d1, d2)
    [spectrum] s1 = Conv <pads = [1, 1, 1, 1]> (x, w4)
    [turned] s2 = Transpose <perm = [0, 1, 3, 2]> (s1)
    [square] power = Mul (s2, s2)
    [norm] n = LayerNormalization <axis = 2> (z, scale)
    [up] h1 = MatMul (n, m1)
    [biased] h2 = Add (h1, bias)
    [soft] h3 = Softmax (h2)
    [down] h4 = MatMul (h3, m2)
    [residual] h5 = Add (n, h4)
    [small] h6 = MatMul (h5, m3)
    [wide] u = Concat <axis = 2> (h6, h6) }"""
INTEGERS = {"first", "second", "sum", "third", "up", "down", "small"}
FLOATS = {
    "depthwise": "conversions cost more time", "gate": "gain no time", "gated": "gain no time",
    "spectrum": "its output is squared", "square": "gain no time", "biased": "gain no time",
    "soft": "gain no time", "residual": "not all of its neighbours",
    "wide": "not all of its neighbours"}


def net():
    return model(GRAPH, **{f"w{i}": numbers(64, 64, 3, 3) / 8 for i in (1, 2, 3, 4)},
                 wd=numbers(64, 1, 3, 3), m1=numbers(128, 256), m2=numbers(256, 128),
                 m3=numbers(128, 128), bias=numbers(256), scale=np.ones(128, np.float32))


def samples():
    numbers = np.random.default_rng(5)
    return {"x": numbers.normal(0, 1, (8, 1, 64, 16, 16)).astype(np.float32),
            "z": numbers.normal(0, 1, (8, 1, 64, 128)).astype(np.float32)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("gain"), net(), samples(), rules=RULES)


def test_each_layer_has_its_reason(made):
    assert {n for n, row in made.layers.items() if row["quantized_inputs"]} == INTEGERS
    for name, reason in FLOATS.items():
        assert made.layers[name]["reason"].startswith("rule:C15, ")
        assert reason in made.layers[name]["reason"]
        assert "C15" in made.layers[name]["rules"]


def test_only_integer_kernels_read_a_pair_on_what_they_do_not_make(made):
    nodes = {n.name: n for n in made.model.graph.node}
    assert nodes["residual"].input[0] == nodes["norm"].output[0]
    assert nodes["depthwise"].input[0] == nodes["spectrum"].input[0] == "x"
    pairs = {t["name"] for t in made.report["tensors"]}
    assert pairs == {"x", "a2", "a3", "a4", "y", "n", "h1", "h3", "h5"}
    assert made.ops == {"QLinearConv": 3, "QLinearAdd": 1, "QLinearMatMul": 1,
                        "MatMulIntegerToFloat": 2}
    assert min(made.db) > 30


def test_an_entry_decides_alone(tmp_path):
    made = Made(tmp_path, net(), samples(), rules=RULES, layers=[
        {"name": "residual"}, {"class": "Sigmoid"}, {"match": "up", "quantize_input": False}])
    assert made.layers["residual"]["quantized_inputs"] == [0, 1]
    assert made.layers["gate"]["quantized_inputs"] == [0]
    assert made.layers["up"]["reason"] == "layers[2]"


@pytest.mark.parametrize("taps, gains", [(3, True), (7, False)])
def test_a_gain_of_next_to_nothing_is_left(tmp_path, taps, gains):
    """The large Conv stays in float, because its output is squared. The little one gains time
    by itself: 17 % of what integers could gain, or 4 % beside a larger kernel."""
    pad = [taps // 2] * 4
    net = model(f"""(float[1,64,16,16] x) => (float[1,64,16,16] y, float[1,256,16,16] power) {{
        [little] y = Conv <pads = [1, 1, 1, 1]> (x, w1)
        [large] a = Conv <pads = {pad}> (x, w2)
        [square] power = Mul (a, a) }}""",
                w1=numbers(64, 64, 3, 3) / 8, w2=numbers(256, 64, taps, taps) / 8)
    data = {"x": samples()["x"]}
    made = Made(tmp_path, net, data, rules=RULES)
    assert bool(made.layers["little"]["quantized_inputs"]) is gains
    if not gains:
        assert "next to nothing" in made.layers["little"]["reason"]
    # An entry decides alone.
    asked = Made(tmp_path, net, data, rules=RULES, layers=[{"name": "little"}])
    assert asked.layers["little"]["quantized_inputs"] == [0]
