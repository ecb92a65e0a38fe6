# SPDX-License-Identifier: Apache-2.0
"""Rule P1: weights that are computed from constants become constants, and what ONNX Runtime's
optimizer fused becomes operators of ONNX again. Both compute what the source does, and are
quantized. Rules C22 and C23 of the target onnxruntime leave in float what has no integer kernel."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import INSTALLED, QUANTIZE

MS = "com.microsoft"
NUMBERS = np.random.default_rng(11)


def weight(*shape):
    fan = max(1, int(np.prod(shape[1:])))
    return (NUMBERS.laplace(size=shape) / np.sqrt(fan)).astype(np.float32)


class Graph:
    """Makes a model node by node."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def op(self, kind, inputs, n=1, **attributes):
        outputs = [f"t{len(self.nodes)}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, f"{kind}{len(self.nodes)}",
                                           **attributes))
        return outputs[0] if n == 1 else outputs

    def model(self, output, shape, opset=18, dtype=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [output], ["y"], "end"))
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", dtype, shape)],
            [helper.make_tensor_value_info("y", dtype, None)], self.constants)
        return helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)])


def weight_norm(g):
    v = g.constant(weight(8, 4, 3))
    norm = g.op("ReduceL2", [v, g.constant(np.array([1, 2]))], keepdims=1)
    w = g.op("Mul", [g.op("Div", [v, norm]), g.constant(np.full((8, 1, 1), 2, np.float32))])
    return g.op("Conv", ["x", w], pads=[1, 1]), [2, 4, 16]


def standardized(g):
    """Weight standardization: (w - mean) / sqrt(variance + epsilon)."""
    v, axes = g.constant(weight(8, 4, 3, 3)), g.constant(np.array([1, 2, 3]))
    centred = g.op("Sub", [v, g.op("ReduceMean", [v, axes])])
    variance = g.op("ReduceMean", [g.op("Pow", [centred, g.constant(np.float32(2))]), axes])
    deviation = g.op("Sqrt", [g.op("Add", [variance, g.constant(np.float32(1e-5))])])
    return g.op("Conv", ["x", g.op("Div", [centred, deviation])]), [1, 4, 9, 9]


def low_rank_update(g):
    update = g.op("MatMul", [g.constant(weight(16, 2)), g.constant(weight(2, 8))])
    scaled = g.op("Mul", [update, g.constant(np.float32(0.5))])
    return g.op("MatMul", ["x", g.op("Add", [g.constant(weight(16, 8)), scaled])]), [3, 16]


def packed(g):
    """A weight for three layers, multiplied by a factor and taken apart."""
    whole = g.op("Mul", [g.constant(weight(16, 24)), g.constant(weight(24))])
    parts = g.op("Split", [whole, g.constant(np.array([8, 8, 8]))], n=3, axis=1)
    made = [g.op("MatMul", ["x", part]) for part in parts]
    return g.op("Add", [g.op("Add", made[:2]), made[2]]), [3, 16]


def moved(g):
    """Slice, Concat, Transpose, Reshape, Unsqueeze, Squeeze and Expand of a computed weight."""
    half = g.op("Neg", [g.constant(weight(4, 16))])
    begins, ends = g.constant(np.array([1])), g.constant(np.array([3]))
    middle = g.op("Slice", [half, begins, ends, g.constant(np.array([0]))])
    joined = g.op("Concat", [half, middle, half], axis=0)
    turned = g.op("Transpose", [joined], perm=[1, 0])
    axis = g.constant(np.array([0]))
    there = g.op("Squeeze", [g.op("Unsqueeze", [turned, axis]), axis])
    shaped = g.op("Reshape", [there, g.constant(np.array([-1, 10]))])
    wide = g.op("Expand", [g.op("Abs", [g.constant(weight(1, 10))]), g.constant(np.array([16, 10]))])
    return g.op("MatMul", ["x", g.op("Max", [shaped, wide])]), [3, 16]


def fused_conv(g):
    w, b = g.constant(weight(8, 4, 3, 3)), g.constant(weight(8))
    first = g.op("FusedConv", ["x", w, b], domain=MS, activation="Relu", pads=[1] * 4,
                 kernel_shape=[3, 3])
    w2 = g.constant(weight(8, 8, 3, 3))
    return g.op("FusedConv", [first, w2, b, first], domain=MS, activation="Clip",
                activation_params=[-0.5, 0.75], pads=[1] * 4, kernel_shape=[3, 3]), [1, 4, 8, 8]


def fused_gemm(g):
    w, b = g.constant(weight(8, 16)), g.constant(weight(8))
    first = g.op("FusedGemm", ["x", w, b], domain=MS, activation="LeakyRelu", activation_alpha=0.2,
                 transB=1)
    return g.op("FusedGemm", [first, g.constant(weight(8, 8)), b], domain=MS, activation="Tanh",
                alpha=0.5, beta=2.0), [12, 16]


def fused_matmul(g):
    first = g.op("FusedMatMul", ["x", g.constant(weight(8, 16))], domain=MS, transB=1, alpha=0.25)
    return g.op("FusedMatMul", [first, g.constant(weight(8, 8))], domain=MS), [12, 16]


CASES = {"weight_norm": (weight_norm, 1), "standardized": (standardized, 1),
         "low_rank_update": (low_rank_update, 1), "packed": (packed, 3), "moved": (moved, 1),
         "fused_conv": (fused_conv, 2), "fused_gemm": (fused_gemm, 2),
         "fused_matmul": (fused_matmul, 2)}


NOTHING = {"mode": "partial", "on_unmatched": "warn", "evaluate": False, "recipe": "none",
           "layers": [{"class": name, "quantize_input": False, "quantize_weight": False}
                      for name in ("Conv", "Gemm", "MatMul")]}


def quantize(folder, model, **spec):
    onnx.save(model, folder / "m.onnx")
    value = model.graph.input[0].type.tensor_type
    shape = [16, *(d.dim_value for d in value.shape.dim)]
    half = value.elem_type == TensorProto.FLOAT16
    np.savez(folder / "data.npz",
             x=NUMBERS.normal(size=shape).astype(np.float16 if half else np.float32))
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec",
                           folder / "spec.json", "--calibration", folder / "data.npz", "-o", folder / "q.onnx", "--report",
                           folder / "report.json"], capture_output=True, text=True)
    return done, json.loads((folder / "report.json").read_text()) if done.returncode == 0 else None


def outputs(model, feed):
    return judge.session(model.SerializeToString(), False).run(None, {"x": feed})[0]


def codes(report):
    return {w["code"] for w in report["warnings"]}


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "tensorrt"])
@pytest.mark.parametrize("name", CASES)
def test_the_same_is_computed_and_the_layers_are_quantized(tmp_path, name, target):
    make, layers = CASES[name]
    g = Graph()
    output, shape = make(g)
    source = g.model(output, shape)
    done, report = quantize(tmp_path, source, target=target, recipe="none")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["op"] for row in report["layers"]}
    weights = [w for w in report["weights"] if rows[w["layer"]] in ("Conv", "Gemm", "MatMul")]
    assert len(weights) == layers, report["layers"]
    assert codes(report) & {"weights_computed", "layers_unfused"}
    done, plain = quantize(tmp_path, source, target=target, **NOTHING)
    assert done.returncode == 0, done.stderr
    assert plain["summary"]["quantized_layers"] == 0
    feed = NUMBERS.normal(size=shape).astype(np.float32)
    left = onnx.load(tmp_path / "q.onnx")
    assert not any(n.op_type.startswith("Fused") for n in left.graph.node)
    np.testing.assert_allclose(outputs(left, feed), outputs(source, feed), rtol=2e-5, atol=2e-5)


def test_without_the_rule_the_model_stays(tmp_path):
    g = Graph()
    source = g.model(*weight_norm(g))
    done, report = quantize(tmp_path, source, target="onnxruntime", rules={"P1": False})
    assert done.returncode == 0, done.stderr
    assert "weights_computed" not in codes(report) and "nothing_to_quantize" in codes(report)


@pytest.mark.parametrize("spec", [{"calibration": {"ranges": {"t1_0": [-1, 1]}}},
                                  {"layers": [{"name": "Div1", "quantize_input": False}]}])
def test_what_the_spec_names_stays(tmp_path, spec):
    g = Graph()
    done, report = quantize(tmp_path, g.model(*weight_norm(g)), target="tensorrt",
                            on_unmatched="warn", **spec)
    assert done.returncode == 0, done.stderr
    assert "weights_computed" not in codes(report) and "unmatched" not in codes(report)


def test_what_may_be_overridden_or_is_not_constant_is_not_computed(tmp_path):
    g = Graph()
    w = g.op("Mul", [g.constant(weight(8, 4, 3)), "factor"])
    source = g.model(g.op("Conv", ["x", w]), [1, 4, 9])
    source.graph.initializer.append(numpy_helper.from_array(np.float32(2), "factor"))
    source.graph.input.append(helper.make_tensor_value_info("factor", TensorProto.FLOAT, []))
    done, report = quantize(tmp_path, source, target="tensorrt")
    assert done.returncode == 0, done.stderr
    assert "weights_computed" not in codes(report)


def backwards(g):
    """A permutation with an axis that counts from the end, which ONNX does not have."""
    turned = g.op("Transpose", [g.op("Neg", [g.constant(weight(16, 8))])], perm=[-1, 0])
    return g.op("MatMul", ["x", turned])


def sizes_beyond(g):
    shaped = g.op("Reshape", [g.op("Neg", [g.constant(weight(16, 8))]),
                              g.constant(np.array([2 ** 33, 2 ** 33, -1]))])
    return g.op("MatMul", ["x", shaped])


def doubled(g, shape):
    """Each node reads the one before it a hundred times."""
    y = g.constant(np.zeros(shape, np.float32))
    for _ in range(14):
        y = g.op("Concat", [y] * 100, axis=0)
    return g.op("MatMul", ["x", y])


@pytest.mark.parametrize("make", [backwards, sizes_beyond, lambda g: doubled(g, (0, 8)),
                                  lambda g: doubled(g, (1, 8))],
                         ids=["backwards", "sizes beyond", "nothing doubled", "doubled"])
def test_what_cannot_be_computed_ends_soon(tmp_path, make):
    """Such models are planned, or refused in words, and neither crash nor take long."""
    g = Graph()
    onnx.save(g.model(make(g), [3, 16]), tmp_path / "m.onnx")
    done = subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "m.onnx"],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode in (0, 1), done.stderr
    assert "weights_computed" not in done.stderr


@pytest.mark.parametrize("target", ["tensorrt", "onnxruntime", "openvino", "qnn"])
@pytest.mark.parametrize("kind", ["Erf", "Reciprocal", "Gelu", "Transpose", "Gather", "Identity",
                                  "FusedConv", "FusedMatMul", "GroupQueryAttention", "Softmax",
                                  "Sqrt", "Add", "Gemm", "MatMul", "Clip", "Pad", "Resize"])
def test_nodes_with_too_few_inputs_or_outputs(tmp_path, kind, target):
    """No operator is taken for one with the inputs and outputs that it should have."""
    domain = MS if kind.startswith(("Fused", "Group", "Gelu")) else ""
    w = numpy_helper.from_array(weight(8), "w")
    for inputs, outputs in (([], ["y"]), (["x"], []), (["x", "w"], ["y"]), ([], []), (["", "w"], [""]),
                            (["x", "", "", "x", "x"], ["y"])):
        odd = helper.make_node(kind, inputs, outputs, "odd", domain=domain)
        last = helper.make_node("Add", ["y" if outputs == ["y"] else "x", "w"], ["z"], "last")
        graph = helper.make_graph(
            [odd, last], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 8])], [w])
        model = helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)])
        onnx.save(model, tmp_path / "m.onnx")
        done = subprocess.run([INSTALLED / "bin/qdq", "plan", tmp_path / "m.onnx", "--target",
                               target], capture_output=True, text=True, timeout=20)
        assert done.returncode in (0, 1), (inputs, outputs, done.returncode, done.stderr)


def test_factors_of_a_gemm_are_folded(tmp_path):
    g = Graph()
    y = "x"
    for i in range(2):
        y = g.op("Gemm", [y, g.constant(weight(64, 64)), g.constant(weight(64))], alpha=1.5,
                 beta=0.5 + i)
    source = g.model(g.op("Gemm", [y, g.constant(weight(64, 64))], alpha=0.5), [4, 64])
    done, report = quantize(tmp_path, source, target="onnxruntime", **NOTHING)
    assert done.returncode == 0, done.stderr
    assert "layers_folded" in codes(report)
    made = onnx.load(tmp_path / "q.onnx")
    gemms = [n for n in made.graph.node if n.op_type == "Gemm"]
    assert [{a.name for a in n.attribute} & {"alpha", "beta"} for n in gemms] == [set()] * 3
    assert [len(n.input) for n in gemms] == [3, 3, 2]
    feed = NUMBERS.normal(size=(4, 64)).astype(np.float32)
    np.testing.assert_allclose(outputs(made, feed), outputs(source, feed), rtol=2e-5, atol=2e-5)
    _, report = quantize(tmp_path, source, target="onnxruntime", recipe="none")
    assert report["kernels"]["integer"] == 3


def float16_net():
    g, y = Graph(), "x"
    for _ in range(2):
        w = g.constant(weight(16, 16, 3, 3).astype(np.float16))
        y = g.op("Relu", [g.op("Conv", [y, w], pads=[1] * 4)])
    return g.model(y, [1, 16, 12, 12], 19, TensorProto.FLOAT16)


def test_float16_stays_float_where_only_float32_has_integer_kernels(tmp_path):
    done, report = quantize(tmp_path, float16_net(), target="onnxruntime")
    assert done.returncode == 0, done.stderr
    assert report["summary"]["quantized_layers"] == 0
    assert "nothing_to_quantize" in codes(report)
    convs = [row for row in report["layers"] if row["op"] == "Conv"]
    assert [row["reason"].split(",")[0] for row in convs] == ["rule:C22"] * 2
    _, report = quantize(tmp_path, float16_net(), target="onnxruntime", recipe="none",
                         rules={"C15": True, "C22": False})
    assert report["summary"]["quantized_layers"] > 0


def odd_net(kind):
    """Four convolutions, with an operator between the second and third that has axes."""
    g, y = Graph(), "x"
    for i in range(4):
        y = g.op("Conv", [y, g.constant(weight(16, 16, 3, 3)), g.constant(np.zeros(16, np.float32))],
                 pads=[1] * 4)
        if i == 1 and kind == "Pad":
            y = g.op("Pad", [y, g.constant(np.array([1, 1, 1, 1])), "", g.constant(np.array([2, 3]))])
        elif i == 1 and kind == "Resize":
            y = g.op("Resize", [y, "", g.constant(np.array([2, 2], np.float32))], axes=[2, 3],
                     mode="nearest")
        elif i == 1:
            y = g.op("CenterCropPad", [y, g.constant(np.array([12, 12]))], axes=[2, 3])
        else:
            y = g.op("Relu", [y])
    return g.model(y, [1, 16, 16, 16], 18)


@pytest.mark.parametrize("kind", ["Pad", "Resize", "CenterCropPad"])
def test_operators_with_axes_stand_between_no_pairs(tmp_path, kind):
    done, report = quantize(tmp_path, odd_net(kind), target="onnxruntime", recipe="none")
    assert done.returncode == 0, done.stderr
    assert report["kernels"]["integer"] >= 3
    assert report["evaluation"]["deployed"] is not None
    onnxruntime.InferenceSession(str(tmp_path / "q.onnx")).run(
        None, {"x": NUMBERS.normal(size=(1, 16, 16, 16)).astype(np.float32)})


@pytest.mark.parametrize("kind", ["Pad", "Resize", "CenterCropPad"])
def test_onnxruntime_fails_in_the_first_run(tmp_path, kind):
    """A result that its own runtime cannot run is no result."""
    done, _ = quantize(tmp_path, odd_net(kind), target="onnxruntime", recipe="none",
                       rules={"C23": False})
    assert done.returncode != 0
    assert "target_cannot_load" in done.stderr and "cannot run it" in done.stderr


def test_a_recipe_that_leaves_everything_in_float_says_so(tmp_path):
    """A channel 3,000 times larger than its neighbours, which the next layer takes back."""
    g = Graph()
    y = g.op("Relu", [g.op("Conv", ["x", g.constant(weight(64, 3, 3, 3))], pads=[1] * 4)])
    factors = np.ones((1, 64, 1, 1), np.float32)
    factors[0, 5] = 3000
    y = g.op("Mul", [y, g.constant(factors)])
    w = weight(64, 64, 3, 3)
    w[:, 5] /= 3000
    y = g.op("Relu", [g.op("Conv", [y, g.constant(w)], pads=[1] * 4)])
    source = g.model(g.op("Conv", [y, g.constant(weight(19, 64, 1, 1))]), [1, 3, 32, 32])
    np.savez(tmp_path / "data.npz", x=NUMBERS.normal(size=(24, 3, 32, 32)).astype(np.float32))
    onnx.save(source, tmp_path / "m.onnx")
    done = subprocess.run([*QUANTIZE, tmp_path / "m.onnx", "--target",
                           "onnxruntime", "--calibration", tmp_path / "data.npz", "-o",
                           tmp_path / "q.onnx", "--report", tmp_path / "report.json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["summary"]["quantized_layers"] == 0) == ("nothing_to_quantize" in codes(report))
    assert report["summary"]["quantized_layers"] == 0 and report["summary"]["verdict"] is None


# --- Attention of com.microsoft -------------------------------------------------------


BATCH, LENGTH, WIDTH, HEADS = 2, 6, 32, 4
MASKS = {"none": None,
         "keys": np.array([[1] * 6, [1] * 4 + [0] * 2], np.int32),
         "keys on the left": np.array([[0] * 2 + [1] * 4, [1] * 6], np.int32),
         "nothing is seen": np.array([[0] * 6, [1] * 6], np.int32),
         "queries and keys": np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32))}


def attention(mask=None, addend=None, opset=18, is_stated=True, **attributes):
    g = Graph()
    sizes = attributes.get("qkv_hidden_sizes", [WIDTH] * 3)
    names = ["x", g.constant(weight(WIDTH, sum(sizes)) * 4), g.constant(weight(sum(sizes))),
             "" if mask is None else g.constant(mask), "", "" if addend is None else g.constant(addend)]
    while not names[-1]:
        names.pop()
    model = g.model(g.op("Attention", names, domain=MS, num_heads=HEADS, **attributes),
                    [BATCH, LENGTH, WIDTH], opset)
    if mask is not None and is_stated:  # what a file states of a mask that is computed
        model.graph.value_info.append(helper.make_tensor_value_info(names[3], TensorProto.INT32, mask.shape))
    return model


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "tensorrt", "qnn"])
@pytest.mark.parametrize("more", [
    *({"mask": mask} for mask in MASKS.values()), {"mask": MASKS["keys"], "is_stated": False}, {"scale": .3}, {"opset": 13}, {"opset": 21},
    {"qkv_hidden_sizes": [WIDTH, WIDTH, 48]}, {"mask": MASKS["keys"], "mask_filter_value": -3.0},
    {"addend": NUMBERS.normal(size=(1, HEADS, LENGTH, LENGTH)).astype(np.float32)},
    {"addend": NUMBERS.normal(size=(BATCH, 1, LENGTH, LENGTH)).astype(np.float32), "mask": MASKS["keys"]}])
def test_attention_is_the_same_and_its_weight_is_quantized(tmp_path, more, target):
    source = attention(**more)
    done, report = quantize(tmp_path, source, target=target, recipe="none")
    assert done.returncode == 0, done.stderr
    assert "Attention0" in [w["layer"] for w in report["weights"]] and "layers_unfused" in codes(report)
    done, _ = quantize(tmp_path, source, target=target, **NOTHING)
    assert done.returncode == 0, done.stderr
    left = onnx.load(tmp_path / "q.onnx")
    assert "Attention" not in [n.op_type for n in left.graph.node]
    feed = NUMBERS.normal(size=(BATCH, LENGTH, WIDTH)).astype(np.float32)
    np.testing.assert_allclose(outputs(left, feed), outputs(source, feed), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["onnxruntime", "qnn"])
def test_a_weight_that_is_joined_of_constants(tmp_path, target):
    """Those of queries, keys and values, which an exporter leaves as a Concat."""
    source = attention()
    node = source.graph.node[0]
    [whole] = [i for i in source.graph.initializer if i.name == node.input[1]]
    parts = np.split(numpy_helper.to_array(whole), 3, axis=1)
    names = [f"part{i}" for i in range(3)]
    source.graph.initializer.extend(numpy_helper.from_array(part, name) for part, name in zip(parts, names))
    source.graph.initializer.remove(whole)
    source.graph.node.insert(0, helper.make_node("Concat", names, [node.input[1]], axis=1))
    done, report = quantize(tmp_path, source, target=target, recipe="none")
    assert done.returncode == 0, done.stderr
    assert {"layers_unfused", "weights_computed"} <= set(codes(report))
    assert "Attention0" in [w["layer"] for w in report["weights"]]


def test_attention_with_an_output_that_has_no_name(tmp_path):
    """Its present keys and values, which a file may name by the empty string."""
    source = attention()
    source.graph.node[0].output.append("")
    done, report = quantize(tmp_path, source, target="onnxruntime", recipe="none")
    assert done.returncode == 0, done.stderr
    assert "layers_unfused" in codes(report) and "Attention0" in [w["layer"] for w in report["weights"]]


@pytest.mark.parametrize("more, why", [
    ({"mask": np.array([4, 6], np.int32)}, "its mask"),
    ({"opset": 12}, "older than 13"), ({"do_rotary": 1}, "turns")])
def test_attention_that_stays_is_told(tmp_path, more, why):
    done, report = quantize(tmp_path, attention(**more), target="onnxruntime", recipe="none", opset="keep",
                            weights={"granularity": "tensor"}, evaluate=False)
    assert done.returncode == 0, done.stderr
    [said] = [w["detail"] for w in report["warnings"] if w["code"] == "weights_in_attention"]
    assert why in said and not report["weights"]


def test_without_its_rule_attention_stays(tmp_path):
    done, report = quantize(tmp_path, attention(), target="onnxruntime", rules={"P3": False})
    assert done.returncode == 0 and not codes(report) & {"layers_unfused", "weights_in_attention"}
