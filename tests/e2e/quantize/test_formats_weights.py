# SPDX-License-Identifier: Apache-2.0
"""Weights of every format, granularity and storage. The integers in the file are those
that onnx's reference evaluator computes with the engine's scales, and the scales are
NumPy's. The layer's input is the same in onnxruntime or, where that lacks the format, in
the reference evaluator."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import judge
from formats import ir_of, of_use
from test_data import Quantized, npz

RANDOM = np.random.default_rng(31)
FORMATS = of_use("weights")
BLOCK = 4
FLOATS = [name for name, row in FORMATS.items() if row.is_float]
GRANULARITIES = ["tensor", "channel", {"block": BLOCK}]
BEYOND_ORT = {name for name, row in FORMATS.items() if row.opset > 21}
# Odd numbers of elements, and channels that fill no whole block; each has a dead channel. Not
# every runtime takes them: the target is one that leaves them as they are.
TARGET = {"target": "onnxruntime", "recipe": "none"}
WEIGHTS = {"w": RANDOM.standard_normal((5, 7, 3, 3)) * 0.3,
           "v": RANDOM.standard_normal((5, 9)) * np.exp2(RANDOM.integers(-6, 6, (5, 9))),
           "u": RANDOM.standard_normal((9, 3))}
WEIGHTS["w"][2] = WEIGHTS["v"][:, 4] = WEIGHTS["u"][:, 1] = 0
WEIGHTS = {name: value.astype(np.float32) for name, value in WEIGHTS.items()}
# The channels' axis and the blocks' axis.
AXES = {"w": (0, 1), "v": (1, 0), "u": (1, 0)}
X = RANDOM.standard_normal((6, 7, 8, 8)).astype(np.float32)


def net(opset, kind="float", weights=None):
    ir = ir_of(opset)
    model = onnx.parser.parse_model(f"""
        <ir_version: {ir}, opset_import: ["": {opset}]>
        net ({kind}[n, 7, 8, 8] x) => ({kind}[n, 3] y) {{
            [conv] c = Conv (x, w)  r = Relu (c)  g = GlobalMaxPool (r)
            f = Flatten (g)  [fc] h = Gemm (f, v)  [mm] y = MatMul (h, u) }}""")
    for name, value in (weights or WEIGHTS).items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.checker.check_model(model, full_check=True)
    return model


def opset_of(name, granularity):
    return max(FORMATS[name].opset, 21 if isinstance(granularity, dict) else 13)


def quantized(folder, name, granularity, storage, model=None, method="max", **spec):
    model = model or net(opset_of(name, granularity))
    done = Quantized(folder, model, None, activations="none", evaluate=False,
                     weights={"dtype": name, "granularity": granularity,
                              "storage": storage, "method": method}, **TARGET, **spec)
    assert done.ok, done.said
    return done


class File:
    """The initializers and DequantizeLinear nodes of a result, by weight."""

    def __init__(self, data):
        self.model = onnx.load_model_from_string(data)
        onnx.checker.check_model(self.model, full_check=True)
        self.constants = {t.name: t for t in self.model.graph.initializer}
        self.nodes = {}
        for node in self.model.graph.node:
            if node.op_type == "DequantizeLinear":
                self.nodes[node.input[1].removesuffix("_scale")] = node
        self.activations = [n.input[0] for n in self.model.graph.node
                            if n.op_type == "QuantizeLinear"
                            and n.input[0] not in self.constants]

    def scale(self, weight):
        return numpy_helper.to_array(self.constants[f"{weight}_scale"])

    def zero_point(self, weight):
        """Returns the zero points, which are zeros where there are none."""
        if len(self.nodes[weight].input) > 2:
            return self.constants[f"{weight}_zero_point"]
        stored, scale = self.constants[self.nodes[weight].input[0]], self.scale(weight)
        bits = next(f.bits for f in FORMATS.values() if f.kind == stored.data_type)
        return helper.make_tensor("none", stored.data_type, scale.shape,
                                  bytes(-(-scale.size * bits // 8)), raw=True)

    def made(self, weight):
        """Returns the layer's input, by onnxruntime or the reference evaluator."""
        model = onnx.ModelProto.FromString(self.model.SerializeToString())
        output = self.nodes[weight].output[0]
        del model.graph.output[:]
        model.graph.output.append(onnx.ValueInfoProto(name=output))
        if self.zero_point(weight).data_type == TensorProto.FLOAT4E2M1:
            keep = {self.nodes[weight].output[0], self.nodes[weight].input[0]}
            nodes = [n for n in model.graph.node if keep & set(n.output)]
            del model.graph.node[:]
            model.graph.node.extend(nodes)
            return ReferenceEvaluator(model).run(None, {"x": X})[0]
        session = judge.session(model.SerializeToString(), False)
        kind = np.float16 if "16" in session.get_inputs()[0].type else np.float32
        return session.run([output], {"x": X.astype(kind)})[0]


def reference(name, weight, scale, zero_point, axis, block):
    """Returns the tensor that onnx's QuantizeLinear computes, as integers or floats."""
    attributes = {}
    if scale.ndim:
        attributes["axis"] = axis
    if block:
        attributes["block_size"] = block
    scale = scale.astype(np.float32)
    zero_point.name = "z"
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], **attributes)], "q",
        [], [onnx.ValueInfoProto(name="q")],
        [numpy_helper.from_array(weight.astype(np.float32), "w"),
         numpy_helper.from_array(scale, "s"), zero_point])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(23, FORMATS[name].opset))])
    return ReferenceEvaluator(model).run(None, {})[0]


def groups(weight, axis, block):
    """Returns arrays of the elements that share a scale, in the order of the scales."""
    if axis is None:
        return [weight.ravel()]
    if not block:
        return list(np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1))
    shape = list(weight.shape)
    shape[axis] = -(-shape[axis] // block)
    found = []
    for index in np.ndindex(*shape):
        at = tuple(slice(i * block, (i + 1) * block) if k == axis else i
                   for k, i in enumerate(index))
        found.append(weight[at].ravel())
    return found


def wanted(name, weight, axis, block):
    """Returns scales and zero points by the range rule, in float64 and rounded once."""
    low, high = FORMATS[name].lowest, FORMATS[name].highest
    parts = [part.astype(np.float64) for part in groups(weight, axis, block)]
    if low == 0:
        reach = [(min(part.min(), 0), max(part.max(), 0)) for part in parts]
        alive = sorted(np.float32(b - a) for a, b in reach if a != b)
        dead = float(alive[len(alive) // 2]) if alive else 0
        reach = [(a, b) if a != b else (0, dead) for a, b in reach]
        scales = [(b - a) / high for a, b in reach]
        points = [np.clip(np.rint(-a / s), 0, high) for (a, _), s in zip(reach, scales)]
    else:
        amax = [np.abs(part).max() for part in parts]
        alive = sorted(a for a in amax if a)
        scales = [(a or alive[len(alive) // 2]) / high for a in amax]
        points = [0] * len(scales)
    return np.float32(scales), np.float32(points)


def check_weight(found, name, weight, granularity, storage):
    block = BLOCK if isinstance(granularity, dict) else 0
    axis = None if granularity == "tensor" else AXES[weight][bool(block)]
    value, scale = WEIGHTS[weight], found.scale(weight)
    scales, points = wanted(name, value, axis, block)
    np.testing.assert_allclose(scale.ravel(), scales, rtol=2e-7)
    if FORMATS[name].lowest != 0:
        np.testing.assert_array_equal(scale.ravel(), scales)
    zero_point = numpy_helper.to_array(found.zero_point(weight))
    assert zero_point.shape == scale.shape
    np.testing.assert_array_equal(zero_point.ravel().astype(np.float32), points)
    node = found.nodes[weight]
    assert judge.attribute(node, "axis", None) == axis
    assert judge.attribute(node, "block_size", 0) == block
    assert (len(node.input) < 3) == (storage == "dq" and block > 0 and FORMATS[name].lowest < 0)
    want = reference(name, value, scale, onnx.TensorProto.FromString(
        found.zero_point(weight).SerializeToString()), axis, block)
    if storage == "dq":
        stored = found.constants[f"{weight}_quantized"]
        assert weight not in found.constants
        assert stored.data_type == FORMATS[name].kind and stored.HasField("raw_data")
        again = numpy_helper.from_array(want, stored.name)
        again.data_type = stored.data_type
        assert len(stored.raw_data) == -(-value.size * FORMATS[name].bits // 8)
        np.testing.assert_array_equal(numpy_helper.to_array(stored).astype(np.float32),
                                      want.astype(np.float32))
        if again.HasField("raw_data"):
            assert stored.raw_data == again.raw_data
    full = np.repeat(scale, block, axis)[tuple(map(slice, value.shape))] if block else \
        scale.reshape([-1 if i == axis else 1 for i in range(value.ndim)])
    shift = zero_point.astype(np.float32)
    shift = np.repeat(shift, block, axis)[tuple(map(slice, value.shape))] if block else \
        shift.reshape([-1 if i == axis else 1 for i in range(value.ndim)])
    back = (want.astype(np.float32) - shift) * full
    np.testing.assert_array_equal(found.made(weight), back)


@pytest.mark.parametrize("storage", ["qdq", "dq"])
@pytest.mark.parametrize("granularity", GRANULARITIES, ids=["tensor", "channel", "block"])
@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_onnxs(tmp_path, name, granularity, storage):
    done = quantized(tmp_path, name, granularity, storage)
    found = File(done.bytes)
    assert found.activations == [] and set(found.nodes) == set(WEIGHTS)
    for weight in WEIGHTS:
        check_weight(found, name, weight, granularity, storage)
    rows = {row["name"]: row for row in done.report["weights"]}
    block = BLOCK if isinstance(granularity, dict) else None
    for weight, row in rows.items():
        axis = None if granularity == "tensor" else AXES[weight][bool(block)]
        assert (row["dtype"], row["axis"], row["block"]) == (name, axis, block)
        assert row["granularity"] == ("block" if block else granularity)
        scale = found.scale(weight)
        assert (row["scales"], row["scale_min"], row["scale_max"]) == (
            scale.size, float(scale.min()), float(scale.max()))
        parts = row["channel_scales"]
        assert (parts is None) == (scale.size == 1)
        assert parts is None or (len(parts) == min(scale.size, 32) and
                                 max(parts) == row["scale_max"])
    assert done.report["tensors"] == []
    assert all(layer["quantized_inputs"] == [] for layer in done.report["layers"])
    assert {layer["name"] for layer in done.report["layers"]
            if layer["weight_quantized"]} == {"conv", "fc", "mm"}


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=["tensor", "channel", "block"])
@pytest.mark.parametrize("name", FORMATS)
def test_clipping_by_error_is_never_worse(tmp_path, name, granularity):
    """The error of `mse`, computed by onnx, is never above that of `max`, and below it
    for some weight of each integer format."""
    errors = {}
    for method in ("max", "mse"):
        found = File(quantized(tmp_path, name, granularity, "dq", method=method).bytes)
        errors[method] = {w: np.sum((found.made(w) - WEIGHTS[w].astype(np.float64)) ** 2)
                          for w in WEIGHTS}
    assert all(errors["mse"][w] <= errors["max"][w] * (1 + 1e-9) for w in WEIGHTS)
    assert name in FLOATS or any(errors["mse"][w] < errors["max"][w] for w in WEIGHTS)


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=["tensor", "channel", "block"])
@pytest.mark.parametrize("name", ["uint8", "int4", "float8e4m3fn"])
def test_weights_of_float16(tmp_path, name, granularity):
    halves = {w: value.astype(np.float16) for w, value in WEIGHTS.items()}
    model = net(max(19, opset_of(name, granularity)), "float16", halves)
    made = {}
    for storage in ("qdq", "dq"):
        found = File(quantized(tmp_path, name, granularity, storage, model).bytes)
        made[storage] = {w: found.made(w) for w in WEIGHTS}
        assert all(found.scale(w).dtype == np.float16 for w in WEIGHTS)
        judge.run(found.model.SerializeToString(), {"x": X.astype(np.float16)})
    for w in WEIGHTS:
        np.testing.assert_array_equal(made["qdq"][w], made["dq"][w])
        step = np.repeat(found.scale(w).astype(np.float64), BLOCK, AXES[w][1]) \
            if isinstance(granularity, dict) else found.scale(w).max()
        step = step[tuple(map(slice, halves[w].shape))] if np.ndim(step) else step
        if name != "float8e4m3fn":
            assert np.all(np.abs(made["dq"][w] - halves[w].astype(np.float64)) <= step * 1.01)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - BEYOND_ORT))
def test_weight_only_runs_and_is_evaluated(tmp_path, name):
    """Nothing is calibrated, and the figures agree with onnxruntime's."""
    granularity = {"block": BLOCK}
    model = net(opset_of(name, granularity))
    done = Quantized(tmp_path, model, npz(x=X), activations="none",
                     weights={"dtype": name, "granularity": granularity, "storage": "dq"},
                     sensitivity={"samples": 6}, **TARGET)
    assert done.ok, done.said
    assert done.report["calibration"]["inferences"] == 0
    real = judge.run(model.SerializeToString(), {"x": X})
    ours = judge.run(done.bytes, {"x": X})
    (row,) = done.report["evaluation"]["outputs"]
    assert row["sqnr_db"] == pytest.approx(judge.sqnr_db(real, ours), abs=0.05)
    assert len(done.report["sensitivity"]) == 3


@pytest.mark.parametrize("name", ["int4", "uint8", "float8e4m3fn"])
def test_what_ifs_are_what_the_model_does(tmp_path, name):
    """A layer's cost alone equals that of a model in which only this layer is quantized.
    """
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 21]>
        one (float[n, 9] x) => (float[n, 3] y) { [mm] y = MatMul (x, u) }""")
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS["u"], "u"))
    x = RANDOM.standard_normal((12, 9)).astype(np.float32)
    done = Quantized(tmp_path, model, npz(x=x), activations="none",
                     weights={"dtype": name, "granularity": {"block": BLOCK}},
                     sensitivity={"samples": 12}, evaluate={"samples": 12}, **TARGET)
    assert done.ok, done.said
    (row,), (output,) = done.report["sensitivity"], done.report["evaluation"]["outputs"]
    assert row["sqnr_db_alone"] == pytest.approx(output["sqnr_db"], abs=1e-4)


def test_float4_is_judged_by_its_floats_where_it_is_stored(tmp_path):
    """onnxruntime has no kernel for float4: it runs the floats that the reference evaluator makes
    of the result. Behind both nodes of a pair they are not known before the run."""
    granularity = {"block": BLOCK}
    spec = {"activations": "none", "weights": {"dtype": "float4e2m1", "storage": "dq",
                                               "granularity": granularity}}
    done = Quantized(tmp_path, net(23), npz(x=X), **spec)
    assert done.ok, done.said
    real = judge.run(net(23).SerializeToString(), {"x": X})
    ours = ReferenceEvaluator(onnx.load_model_from_string(done.bytes)).run(None, {"x": X})[0]
    (row,) = done.report["evaluation"]["outputs"]
    assert row["sqnr_db"] == pytest.approx(judge.sqnr_db(real, ours), abs=0.05)
    spec["weights"]["storage"] = "qdq"
    done = Quantized(tmp_path, net(23), npz(x=X), **spec)
    assert done.ok, done.said
    assert done.report["evaluation"] is None
    assert "QuantizeLinear" in done.warnings["evaluation_skipped"]["detail"]
    asked = Quantized(tmp_path, net(23), npz(x=X), evaluate=True, **spec)
    assert not asked.ok and "QuantizeLinear" in asked.said


@pytest.mark.parametrize("spec,opset,needed", [
    ({"weights": {"dtype": "int4"}}, 19, 21),
    ({"weights": {"dtype": "float8e4m3fn"}}, 13, 19),
    ({"weights": {"dtype": "float4e2m1"}}, 21, 23),
    ({"weights": {"granularity": {"block": 4}}}, 13, 21),
    ({"activations": {"dtype": "int16"}}, 19, 21),
    ({"activations": {"dtype": "float8e5m2"}}, 13, 19),
])
def test_an_opset_that_lacks_it(tmp_path, spec, opset, needed):
    done = Quantized(tmp_path, net(opset), npz(x=X), opset="keep", **spec)
    assert not done.ok
    assert f"needs opset {needed}, the model has {opset}" in done.said


@pytest.mark.parametrize("shape,axis,block", [((6, 1, 3, 3), 0, None), ((6, 4, 3, 3), 1, 4)])
def test_a_depthwise_weight_keeps_its_channels(tmp_path, shape, axis, block):
    group = 6 if shape[1] == 1 else 1
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": 21]>
        one (float[n, {shape[1] * group}, 8, 8] x) => (float[n, 6, 6, 6] y)
        {{ [conv] y = Conv <group = {group}> (x, w) }}""")
    model.graph.initializer.append(
        numpy_helper.from_array(RANDOM.standard_normal(shape).astype(np.float32), "w"))
    done = quantized(tmp_path, "int8", {"block": 4}, "qdq", model)
    (row,) = done.report["weights"]
    assert (row["axis"], row["block"]) == (axis, block)
    judge.load(done.bytes)


def test_the_frozen_spec_says_it(tmp_path, daemon):
    model = net(21).SerializeToString()
    spec = {"activations": "none", "weights": {"dtype": "uint4", "storage": "dq",
                                               "granularity": {"block": 4}}}
    job = daemon.submit(model=daemon.upload("models", model), spec=spec)
    daemon.succeeded(job)
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["activations"] == "none"
    assert frozen["weights"] == {"dtype": "uint4", "granularity": {"block": 4},
                                 "method": "max", "storage": "dq"}
    again = daemon.submit(model=daemon.upload("models", model), spec=frozen, fresh=True)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job)


@pytest.mark.parametrize("method", ["max", "mse"])
@pytest.mark.parametrize("name,granularity", [("int4", {"block": BLOCK}), ("uint8", "channel"),
                                              ("uint4", {"block": BLOCK}), ("uint8", "tensor"),
                                              ("float8e4m3fn", {"block": BLOCK})])
def test_a_view_is_the_weight_that_it_shows(tmp_path, name, granularity, method):
    """A weight behind a Transpose gets the same numbers as the transposed weight itself.
    """
    found = []
    for text, value in (("u = Identity (w)", WEIGHTS["u"]),
                        ("u = Transpose (w)", np.ascontiguousarray(WEIGHTS["u"].T))):
        model = onnx.parser.parse_model(f"""
            <ir_version: 10, opset_import: ["": 21]>
            one (float[n, 9] x) => (float[n, 3] y) {{ {text} [mm] y = MatMul (x, u) }}""")
        model.graph.initializer.append(numpy_helper.from_array(value, "w"))
        done = quantized(tmp_path, name, granularity, "dq", model, method)
        (node,) = [n for n in judge.load(done.bytes).graph.node
                   if n.op_type == "DequantizeLinear"]
        constants = {t.name: t for t in judge.load(done.bytes).graph.initializer}
        found.append([constants[i].raw_data for i in node.input])
        assert list(constants[node.input[0]].dims) == [9, 3]
    assert found[0] == found[1]


def test_an_older_model_is_raised(tmp_path):
    done = quantized(tmp_path, "int4", {"block": BLOCK}, "dq", net(13))
    assert judge.load(done.bytes).opset_import[0].version == 21
    judge.run(done.bytes, {"x": X})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("granularity", GRANULARITIES, ids=["tensor", "channel", "block"])
@pytest.mark.parametrize("name", ["int8", "uint4", "float8e5m2"])
def test_what_is_not_finite_is_named(tmp_path, name, granularity, bad):
    """A weight with a NaN or an infinity is an error that names the weight."""
    weights = {w: value.copy() for w, value in WEIGHTS.items()}
    weights["v"][3, 2] = bad
    done = Quantized(tmp_path, net(21, weights=weights), None, activations="none",
                     weights={"dtype": name, "granularity": granularity}, **TARGET)
    assert not done.ok and "nonfinite" in done.said and "'v'" in done.said


# --- int4 over its whole range ----------------------------------------------------------------

@pytest.mark.parametrize("storage", ["qdq", "dq"])
@pytest.mark.parametrize("granularity", GRANULARITIES, ids=str)
@pytest.mark.parametrize("method", ["max", "mse"])
def test_whole_range(tmp_path, granularity, storage, method):
    """Scales of either sign; no scale has a larger error than the positive one of r / 7."""
    def done(range_, folder):
        (tmp_path / folder).mkdir()
        made = Quantized(tmp_path / folder, net(21), None, activations="none", evaluate=False,
                         weights={"dtype": "int4", "granularity": granularity, "method": method,
                                  "storage": storage, "range": range_}, **TARGET)
        assert made.ok, made.said
        return File(made.bytes), made.report["weights"]
    full, rows = done("full", "full")
    narrow, _ = done("narrow", "narrow")
    negative = 0
    for name, weight in WEIGHTS.items():
        scale = full.scale(name)
        negative += (scale < 0).sum()
        (row,) = [row for row in rows if row["name"] == name]
        assert np.float32(row["scale_min"]) == np.abs(scale).min()
        assert np.float32(row["scale_max"]) == np.abs(scale).max()
        errors = []
        for file in (full, narrow):
            axis = AXES[name][isinstance(granularity, dict)]
            spread = np.repeat(file.scale(name), BLOCK, axis)[
                tuple(slice(n) for n in weight.shape)] if isinstance(granularity, dict) else (
                file.scale(name).reshape([-1 if i == axis else 1 for i in range(weight.ndim)])
                if file.scale(name).size > 1 else file.scale(name).reshape(()))
            assert np.all(spread != 0) and np.all(np.isfinite(spread))
            q = np.clip(np.rint(weight / spread), -8, 7)
            errors.append(((weight - q * spread) ** 2).astype(np.float64).sum())
            if storage == "dq":
                stored = numpy_helper.to_array(file.constants[f"{name}_quantized"])
                assert np.array_equal(stored.astype(np.int32), q)
        assert errors[0] <= errors[1] * (1 + 1e-6)
    assert negative > 0 or granularity == "tensor"


def test_zeros_are_left_out_and_stay_in_what_was_frozen_before(tmp_path):
    """Rule P6. A version without the rule stated all others."""
    done = quantized(tmp_path, "int4", {"block": BLOCK}, "dq")
    spec = json.loads(json.dumps(done.report["spec"]))
    assert spec["rules"].pop("P6") is True
    before = Quantized(tmp_path, net(opset_of("int4", {"block": BLOCK})), None, **spec)
    assert before.ok, before.said
    new, old = File(done.bytes), File(before.bytes)
    for weight in WEIGHTS:
        assert len(new.nodes[weight].input) == 2 and len(old.nodes[weight].input) == 3
        assert not numpy_helper.to_array(old.zero_point(weight)).astype(np.float32).any()
        np.testing.assert_array_equal(new.made(weight), old.made(weight))
    stored = {name: t for name, t in old.constants.items() if not name.endswith("_zero_point")}
    assert new.constants == stored
