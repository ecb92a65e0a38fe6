# SPDX-License-Identifier: Apache-2.0
"""Models of older opsets are converted by adapters, and compute the same function
afterwards."""

import json
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import judge
from service import QUANTIZE, ROOT

F = TensorProto.FLOAT
# Nothing is quantized, so that the result is the converted model alone.
ALONE = {"mode": "partial", "on_unmatched": "warn", "evaluate": False, "existing_qdq": "keep",
         "layers": [{"name": "none of these"}]}


def qdq(tmp_path, model, spec):
    """Runs the command; returns the model, or None when it failed, and its output."""
    source, out = tmp_path / "old.onnx", tmp_path / "new.onnx"
    source.write_bytes(model.SerializeToString())
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, source, "--spec", tmp_path / "spec.json",
         "-o", out], capture_output=True, text=True, check=False)
    return (onnx.load(out) if done.returncode == 0 else None), done.stdout + done.stderr


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def case(name, opset, nodes, inputs, outputs, constants=None, ir=None, **more):
    """Returns a model of that opset; its inputs are arrays, with which it runs."""
    types = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in inputs.items()}
    graph = helper.make_graph(
        nodes, name, [value(n, types[n], list(a.shape)) for n, a in inputs.items()],
        [value(n, more.get("types", {}).get(n, F), None) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n)
         for n, a in (constants or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              ir_version=ir or max(4, helper.find_min_ir_version_for(
                                  [helper.make_opsetid("", opset)])))
    return pytest.param(model, inputs, more.get("judge", "onnxruntime"),
                        range(more.get("first", opset + 1), more.get("last", 28) + 1),
                        id=name)


def node(op, inputs, outputs="y", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


R = np.random.default_rng(11)


def data(*shape):
    return R.normal(0, 1, shape).astype(np.float32)


X4 = data(2, 4, 6, 6)
GRID = R.uniform(-1.2, 1.2, (2, 3, 5, 2)).astype(np.float32)
ROIS = np.array([[0, 0, 5, 5], [1, 2, 4, 5]], np.float32)

REDUCERS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod",
            "SumSquare", "Sum"]


def with_softmax():
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield case(f"{op}-middle", 11, [node(op, "x", axis=1)], {"x": X4}, ["y"])
        yield case(f"{op}-default", 9, [node(op, "x")], {"x": X4}, ["y"])
        yield case(f"{op}-first", 11, [node(op, "x", axis=0)], {"x": X4}, ["y"])
        yield case(f"{op}-matrix", 9, [node(op, "x")], {"x": data(3, 5)}, ["y"])
        yield case(f"{op}-last", 11, [node(op, "x", axis=-1)], {"x": X4}, ["y"])
        yield case(f"{op}-negative", 11, [node(op, "x", axis=-2)], {"x": X4}, ["y"])


def with_reduce():
    for op in REDUCERS:
        x = np.abs(X4) + np.float32(0.1)
        for axes in ({"axes": [1, 2]}, {}, {"axes": [-1], "keepdims": 0}):
            name = "-".join(["Reduce" + op, *map(str, axes.get("axes", ["all"]))])
            yield case(name, 11, [node("Reduce" + op, "x", **axes)], {"x": x}, ["y"])


def with_resize():
    up = np.array([1, 1, 2, 3], np.float32)
    down = np.array([1, 1, 0.5, 0.6], np.float32)
    for mode in ("nearest", "linear"):
        yield case(f"Upsample-7-{mode}", 7,
                   [node("Upsample", "x", mode=mode, scales=up.tolist())], {"x": X4},
                   ["y"])
        yield case(f"Upsample-9-{mode}", 9, [node("Upsample", "x s", mode=mode)],
                   {"x": X4}, ["y"], {"s": up})
        yield case(f"Resize-10-{mode}-up", 10, [node("Resize", "x s", mode=mode)],
                   {"x": X4}, ["y"], {"s": up})
        yield case(f"Resize-10-{mode}-down", 10, [node("Resize", "x s", mode=mode)],
                   {"x": X4}, ["y"], {"s": down})
    yield case("Upsample-9-dynamic", 9, [node("Upsample", "x s", mode="nearest")],
               {"x": X4, "s": up}, ["y"])
    yield case("Resize-11-half-pixel", 11,
               [node("Resize", "x r s", mode="linear",
                     coordinate_transformation_mode="half_pixel")], {"x": X4}, ["y"],
               {"s": up, "r": np.zeros(0, np.float32)})


def with_recurrent():
    shape = dict(LSTM=4, GRU=3, RNN=1)
    for op, gates in shape.items():
        yield case(op, 7, [node(op, "x w r b", "y", hidden_size=5)],
                   {"x": data(4, 2, 3)}, ["y"],
                   {"w": data(1, gates * 5, 3), "r": data(1, gates * 5, 5),
                    "b": data(1, gates * 10)})


def with_bodies():
    """Puts the nodes to adapt into If, Loop and Scan, where they also read tensors from
    outside."""
    def branch(name, low):
        return helper.make_graph(
            [node("Unsqueeze", "x", name + "u", axes=[0]),
             node("ReduceSum", name + "u", name + "r", axes=[1], keepdims=0),
             node("Clip", name + "r", name, min=low, max=0.75)], name, [],
            [value(name, F, None)])
    yield case("If", 10, [node("If", "c", then_branch=branch("t", -0.5),
                               else_branch=branch("e", 0.0))],
               {"x": data(3, 4), "c": np.array(True)}, ["y"])
    body = helper.make_graph(
        [node("Squeeze", "s", "flat", axes=[0]), node("Add", "flat x", "sum"),
         node("Softmax", "sum", "soft", axis=0), node("Unsqueeze", "soft", "s2", axes=[0]),
         node("Identity", "c", "c2")], "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []),
         value("s", F, [1, 3, 4])],
        [value("c2", TensorProto.BOOL, []), value("s2", F, [1, 3, 4])])
    yield case("Loop", 11, [node("Loop", "n c s0", body=body)],
               {"x": data(3, 4), "c": np.array(True), "s0": data(1, 3, 4)}, ["y"],
               {"n": np.array(3, np.int64)})
    step = helper.make_graph(
        [node("Add", "s e", "s1"), node("Clip", "s1", "s2", max=1.0),
         node("Identity", "s2", "o")], "step", [value("s", F, [4]), value("e", F, [4])],
        [value("s2", F, [4]), value("o", F, [4])])
    yield case("Scan", 10, [node("Scan", "s0 x", "l y", num_scan_inputs=1, body=step)],
               {"x": data(3, 4), "s0": data(4)}, ["y", "l"])


def others():
    yield case("BatchNormalization-spatial", 7,
               [node("BatchNormalization", "x s b m v", spatial=1)], {"x": X4}, ["y"],
               {"s": data(4), "b": data(4), "m": data(4), "v": np.abs(data(4)) + 1})
    for bounds in ({"min": -0.5, "max": 0.25}, {"max": 0.5}, {"min": -1.0}, {}):
        yield case("Clip-" + "-".join(bounds), 7, [node("Clip", "x", **bounds)],
                   {"x": X4}, ["y"])
    yield case("Clip-float64", 7, [node("Clip", "x", min=-0.1, max=0.7)],
               {"x": X4.astype(np.float64)}, ["y"], types={"y": TensorProto.DOUBLE},
               judge="reference")
    yield case("Clip-float16", 7, [node("Clip", "x", min=-1e-6, max=0.333)],
               {"x": X4.astype(np.float16)}, ["y"], types={"y": TensorProto.FLOAT16},
               judge="reference")
    yield case("DFT", 17, [node("DFT", "x")], {"x": data(2, 6, 5, 1)}, ["y"])
    yield case("DFT-axis", 17, [node("DFT", "x", axis=2, inverse=1)],
               {"x": data(2, 6, 5, 2)}, ["y"])
    yield case("Dropout-7", 7, [node("Dropout", "x", "y m", ratio=0.3)], {"x": X4}, ["y"])
    yield case("Dropout-10", 10, [node("Dropout", "x")], {"x": X4}, ["y"])
    yield case("Erf", 9, [node("Erf", "x")], {"x": X4}, ["y"])
    for mode in ("bilinear", "bicubic", "nearest"):
        yield case(f"GridSample-{mode}", 16,
                   [node("GridSample", "x g", mode=mode, align_corners=1)],
                   {"x": X4, "g": GRID}, ["y"])
    yield case("GroupNormalization", 18,
               [node("GroupNormalization", "x s b", num_groups=2)], {"x": X4}, ["y"],
               {"s": data(2), "b": data(2)}, judge="reference", first=21)
    for mode, extra in (("constant", {"value": 1.5}), ("constant", {}), ("edge", {}),
                        ("reflect", {})):
        yield case(f"Pad-{mode}-{extra.get('value', 'none')}", 7,
                   [node("Pad", "x", mode=mode, pads=[0, 0, 1, 2, 0, 0, 2, 1], **extra)],
                   {"x": X4}, ["y"])
    yield case("QuantizeLinear-int32", 13,
               [node("MatMulInteger", "x w", "a"), node("QuantizeLinear", "a s z")],
               {"x": R.integers(0, 9, (2, 4)).astype(np.uint8)}, ["y"],
               {"w": R.integers(-9, 9, (4, 3)).astype(np.int8), "s": np.float32(8), "z": np.int8(0)},
               types={"y": TensorProto.INT8}, judge="reference", last=21)
    yield case("RoiAlign", 10,
               [node("RoiAlign", "x r i", output_height=3, output_width=3,
                     sampling_ratio=2)], {"x": X4, "r": ROIS, "i": np.array([0, 1])},
               ["y"], last=21)
    yield case("Scatter", 9, [node("Scatter", "x i u", axis=1)],
               {"x": data(3, 5), "u": data(1, 2)}, ["y"], {"i": np.array([[1, 3]])})
    yield case("Slice", 7, [node("Slice", "x", starts=[1, 0], ends=[4, -1], axes=[1, 3])],
               {"x": X4}, ["y"])
    yield case("Slice-no-axes", 9, [node("Slice", "x", starts=[0, 1], ends=[1, 1000])],
               {"x": X4}, ["y"])
    yield case("Split-sizes", 7, [node("Split", "x", "y z", axis=1, split=[1, 3])],
               {"x": X4}, ["y", "z"])
    yield case("Split-equal", 7, [node("Split", "x", "y z", axis=1)], {"x": X4},
               ["y", "z"])
    yield case("Squeeze", 7, [node("Squeeze", "x", axes=[1])], {"x": data(3, 1, 4)},
               ["y"])
    yield case("Squeeze-all", 11, [node("Squeeze", "x")], {"x": data(1, 3, 1)}, ["y"])
    yield case("Unsqueeze", 7, [node("Unsqueeze", "x", axes=[0, 3])], {"x": data(3, 4)},
               ["y"])
    yield case("TopK", 7, [node("TopK", "x", "y i", axis=1, k=3)], {"x": data(3, 6)},
               ["y", "i"], types={"i": TensorProto.INT64})
    yield case("TopK-10", 10, [node("TopK", "x k", "y i", axis=1)], {"x": data(3, 6)},
               ["y", "i"], {"k": np.array([2])}, types={"i": TensorProto.INT64})
    for extra in ({}, {"ceil_mode": 1}, {"ceil_mode": 1, "count_include_pad": 1}):
        yield case("AveragePool-" + "-".join(extra), 10,
                   [node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2],
                         pads=[1, 1, 1, 1], **extra)], {"x": X4}, ["y"])
    yield case("MaxPool", 7, [node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2],
                                   pads=[1, 1, 1, 1])], {"x": X4}, ["y"])
    yield case("ConvTranspose-same", 8,
               [node("ConvTranspose", "x w", strides=[2, 2], auto_pad="SAME_UPPER")],
               {"x": X4}, ["y"], {"w": data(4, 3, 3, 3)})
    yield case("Gemm", 7, [node("Gemm", "x w b", transB=1)], {"x": data(3, 4)}, ["y"],
               {"w": data(5, 4), "b": data(5)})
    yield case("old-weights-are-inputs", 7,
               [node("Gemm", "x w b", "g", transB=1), node("Clip", "g", min=0.0)],
               {"x": data(3, 4)}, ["y"], {"w": data(5, 4), "b": data(5)}, ir=3)
    yield case("names-that-are-taken", 11,
               [node("Unsqueeze", "x", "y", axes=[0]),
                node("Identity", "x", "y_axes"), node("Identity", "y_axes", "y_node")],
               {"x": data(3, 4)}, ["y", "y_axes", "y_node"])
    yield case("OneHot", 9, [node("OneHot", "i d v")], {"i": np.array([0, 2, 1])}, ["y"],
               {"d": np.array([3]), "v": np.array([0, 1], np.float32)})
    yield case("Upsample-then-Softmax", 9,
               [node("Upsample", "x s", "u"), node("Squeeze", "u", "q", axes=[0]),
                node("Softmax", "q", axis=1)], {"x": data(1, 2, 3)}, ["y"],
               {"s": np.array([1, 2, 2], np.float32)})


ALL = [*with_softmax(), *with_reduce(), *with_resize(), *with_recurrent(),
       *with_bodies(), *others()]


def results(model, inputs, by):
    if by == "reference":
        return ReferenceEvaluator(model).run(None, inputs)
    if model.opset_import[0].version > 26:  # none of the nodes here changed behind opset 26
        older = onnx.ModelProto.FromString(model.SerializeToString())
        older.opset_import[0].version, older.ir_version = 26, 13
        model = older
    return judge.session(model.SerializeToString(), optimized=False).run(None, inputs)


def declare(model, outputs):
    """Declares the shapes of outputs, which the checker requires."""
    for info, array in zip(model.graph.output, outputs):
        info.CopyFrom(value(info.name, info.type.tensor_type.elem_type, array.shape))


@pytest.mark.parametrize("model, inputs, by, opsets", ALL)
def test_a_raised_model_is_the_same_function(tmp_path, model, inputs, by, opsets):
    before = results(model, inputs, by)
    declare(model, before)
    for to in set(opsets) & {10, 11, 13, 18, 21, 25, 28}:
        raised, said = qdq(tmp_path, model, {**ALONE, "opset": to})
        assert raised is not None, said
        assert [i.version for i in raised.opset_import] == [to]
        onnx.checker.check_model(raised, full_check=True)
        assert [i.name for i in raised.graph.input] == list(inputs)
        assert ([o.name for o in raised.graph.output]
                == [o.name for o in model.graph.output])
        after = results(raised, inputs, by)
        for a, b in zip(before, after):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=str(to))


# --- models that stay as is -----------------------------------------------------------

def conv_after(opset, nodes, inputs, constants=None, weight_of=4, source="y"):
    """Adds a Conv behind the nodes, so that there is a layer to quantize."""
    nodes = [*nodes, helper.make_node("Conv", [source, "w"], ["z"], "conv")]
    constants = {**(constants or {}), "w": data(3, weight_of, 1, 1)}
    return case("it", opset, nodes, inputs, ["z"], constants).values[0]


def batch_norm(*outputs, **attributes):
    return ([helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"],
                              ["y", *outputs], "norm", **attributes)], {"x": X4},
            {"s": data(4), "b": data(4), "m": data(4), "v": np.abs(data(4)) + 1})


SCAN_8 = helper.make_node(
    "Scan", ["", "s0", "x"], ["l", "y"], "scan", num_scan_inputs=1,
    body=helper.make_graph(
        [node("Add", "s e", "s1"), node("Identity", "s1", "o")], "step",
        [value("s", F, [4, 6, 6]), value("e", F, [4, 6, 6])],
        [value("s1", F, [4, 6, 6]), value("o", F, [4, 6, 6])]))
STANDS = [
    (conv_after(9, *batch_norm("um", "uv", "sm", "sv")), 14, "norm", 13),
    (conv_after(7, *batch_norm(spatial=0)), 9, "norm", 7),
    (conv_after(8, [SCAN_8], {"x": data(1, 2, 4, 6, 6), "s0": data(1, 4, 6, 6)},
                source="l"), 9, "scan", 8),
    (conv_after(10, [helper.make_node("Resize", ["x", "r"], ["y"], "resize")],
                {"x": X4, "r": np.ones(4, np.float32)}), 11, "resize", 10),
    (conv_after(10, [helper.make_node("Resize", ["x", "r"], ["y"], "resize")],
                {"x": X4}, {"r": np.array([1, 1, 2, 0.5], np.float32)}), 11, "resize",
     10),
    (conv_after(9, [helper.make_node("Dropout", ["x"], ["y0", "m"], "drop"),
                    node("Mul", "y0 m")], {"x": X4}), 10, "drop", 9),
]


@pytest.mark.parametrize("model, at, who, most", STANDS)
def test_what_stands_in_the_way_is_named(tmp_path, model, at, who, most):
    """The warning or error names the node that cannot be adapted."""
    raised, said = qdq(tmp_path, model, {**ALONE, "opset": 25})
    assert raised is None
    assert f"node '{who}'" in said and f"cannot be brought to opset {at}: " in said
    if most < 10:  # no Q/DQ at all
        raised, said = qdq(tmp_path, model, {"evaluate": False, "calibration": {
            "random_samples": 1}})
        assert raised is None and "qdq: unsupported: " in said
        assert "Q/DQ nodes need 10: " in said and f"(node {who})" in said
        assert f"cannot be brought to opset {at}: " in said
    raised, said = qdq(tmp_path, model, ALONE)
    assert raised.opset_import[0].version == max(
        level for level in (model.opset_import[0].version, 10, 13) if level <= most)
    if most < 13:
        assert "opset_kept" in said


def test_weights_are_per_tensor_where_a_node_stands_in_the_way(tmp_path):
    model = conv_after(10, [helper.make_node("Resize", ["x", "r"], ["y"], "resize")],
                       {"x": X4}, {"r": np.array([1, 1, 2, 0.5], np.float32)})
    done, said = qdq(tmp_path, model, {"calibration": {"ranges": {"y": [-2, 2]}}})
    assert done.opset_import[0].version == 10
    assert "opset_kept" in said and "opset_per_tensor" in said
    assert all(not n.attribute for n in done.graph.node if n.op_type == "QuantizeLinear")


@pytest.mark.parametrize("spec, opset, channels", [
    ({}, 13, True), ({"weights": {"granularity": "tensor"}}, 10, False),
    ({"opset": "keep"}, 10, False), ({"opset": 11}, 11, False),
    ({"opset": 21}, 21, True)])
def test_auto_goes_as_far_as_the_scheme_needs(tmp_path, spec, opset, channels):
    model = conv_after(10, [node("Clip", "x", min=-1.0, max=1.0)], {"x": X4})
    spec = {**spec, "calibration": {"ranges": {"x": [-2, 2], "y": [-1, 1]}}}
    real = results(model, {"x": X4}, "onnxruntime")
    declare(model, real)
    done, said = qdq(tmp_path, model, spec)
    assert done.opset_import[0].version == opset
    assert done.ir_version >= helper.find_min_ir_version_for(list(done.opset_import))
    assert ("opset_raised" in said) == (opset > 10)
    onnx.checker.check_model(done)
    assert channels == any(a.name == "axis" for n in done.graph.node
                           if n.op_type == "DequantizeLinear" for a in n.attribute)
    assert judge.sqnr_db(real[0], results(done, {"x": X4}, "onnxruntime")[0]) > 25


def test_float16_needs_opset_19(tmp_path):
    model = onnx.ModelProto()
    model.CopyFrom(conv_after(13, [node("Relu", "x")], {"x": X4}))
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    weight = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float16)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    done, said = qdq(tmp_path, model, {"calibration": {"ranges": {"x": [-2, 2],
                                                                  "y": [0, 2]}}})
    assert done.opset_import[0].version == 19, said
    assert any(n.op_type == "QuantizeLinear" for n in done.graph.node)


@pytest.mark.parametrize("opset, of, text", [
    (6, 10, "/opset"), (29, 10, "/opset"), (9, 10, "/opset"), (13, 6, "/opset")])
def test_what_is_no_opset_to_raise_to(tmp_path, opset, of, text):
    """Opsets that a model cannot be converted to are refused."""
    model = case("it", of, [node("Relu", "x")], {"x": X4}, ["y"]).values[0]
    done, said = qdq(tmp_path, model, {**ALONE, "opset": opset})
    assert done is None and text in said


def test_a_node_without_what_it_needs_is_an_invalid_model(tmp_path):
    for nodes in ([node("Slice", "x", starts=[0])], [node("Unsqueeze", "x")],
                  [node("TopK", "x", "y i")], [node("Pad", "x")],
                  [helper.make_node("Clip", [], ["y"], min=0.0)],
                  [helper.make_node("Softmax", ["x"], [])],
                  [helper.make_node("Upsample", ["x"], ["y"])],
                  [helper.make_node("GroupNormalization", ["x"], ["y"])]):
        opset = 18 if nodes[0].op_type == "GroupNormalization" else 7
        model = case("it", opset, [*nodes, node("Relu", "x", "z")], {"x": X4},
                     ["z"]).values[0]
        done, said = qdq(tmp_path, model, {**ALONE, "opset": 25})
        assert done is None and "invalid_model" in said, (nodes[0].op_type, said)


# --- functions and other domains ------------------------------------------------------

def with_function(opset, own):
    """Returns a local function with an opset of its own and nodes to adapt."""
    body = [node("Unsqueeze", "a", "u", axes=[0]),
            node("ReduceSum", "u", "s", axes=[0], keepdims=0),
            node("Softmax", "s", "r", axis=0)]
    function = helper.make_function("local", "Odd", ["a"], ["r"], body,
                                    [helper.make_opsetid("", own)])
    return helper.make_model(
        helper.make_graph([helper.make_node("Odd", ["x"], ["y"], domain="local")], "g",
                          [value("x", F, [3, 4])], [value("y", F, [3, 4])]),
        functions=[function], ir_version=8,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("local", 1)])


@pytest.mark.parametrize("to", [13, 18, 21])
def test_local_functions_are_raised_too(tmp_path, to):
    model, inputs = with_function(12, 12), {"x": data(3, 4)}
    raised, said = qdq(tmp_path, model, {**ALONE, "opset": to})
    assert raised is not None, said
    for function in raised.functions:
        assert [i.version for i in function.opset_import if not i.domain] == [to]
    onnx.checker.check_model(raised, full_check=True)
    real = results(model, inputs, "onnxruntime")
    np.testing.assert_allclose(results(raised, inputs, "onnxruntime")[0], real[0],
                               rtol=1e-6)


# --- the table ------------------------------------------------------------------------

# The opsets at which an operator's schema changed, and nodes from before stay valid and mean
# the same. A schema that requires less than the one before (OneHot and Gather accept negative
# indices from 11 on) is one of them; so is ConvTranspose 11, which only changed the
# description of padding.
SAME = """
Abs 13, Acos 22, Acosh 22, Add 13/14, ArgMax 11/12/13, ArgMin 11/12/13, Asin 22, Asinh 22,
Atan 22, Atanh 22, Attention 24/25, AveragePool 10/11/19/22, BatchNormalization 15,
Bernoulli 22, BitShift 28, Cast 9/13/19/21/23/24/25/28, CastLike 19/21/23/24/25, Ceil 13, Clip 12/13,
Celu 28, Compress 11/28, Concat 11/13, Constant 9/11/12/13/19/21/23/24/25, ConstantOfShape
20/21/23/24/25, Conv 11/22, ConvTranspose 11/22, Cos 22, Cosh 22, CumSum 14, DeformConv 22,
DepthToSpace 11/13/28, DequantizeLinear 13/19/21/23/24/25/28, Det 22, Div 13/14, Dropout 13/22,
Einsum 28, Elu 22, Equal 11/13/19, Exp 13, Expand 13, EyeLike 22, Flatten 9/11/13/21/23/24/25, Floor
13, GRU 14/22, Gather 11/13, GatherElements 13, GatherND 12/13, Gemm 9/11/13,
GlobalAveragePool 22, GlobalLpPool 22, GlobalMaxPool 22, Greater 9/13, GreaterOrEqual 16,
GridSample 22, HardSigmoid 22, HardSwish 22, Hardmax 11, Identity 13/14/16/19/21/23/24/25,
If 11/13/16/19/21/23/24/25, InstanceNormalization 22, IsInf 20, IsNaN 13/20, LRN 13, LSTM
14/22, LeakyRelu 16, Less 9/13, LessOrEqual 16, Log 13, LogSoftmax 11, Loop
11/13/16/19/21/23/24/25, LpNormalization 22, LpPool 11/18/22, MatMul 9/13, Max 8/12/13,
MaxPool 8/10/11/12/22, MaxRoiPool 22, MaxUnpool 11/22, Mean 8/13, MeanVarianceNormalization
13, Min 8/12/13, Mish 22, Mod 13/28, Mul 13/14, Multinomial 22, Neg 13,
NegativeLogLikelihoodLoss 13/22, NonMaxSuppression 11, NonZero 13, OneHot 11/28,
Optional 28, OptionalGetElement 18/28, OptionalHasElement 18/28, PRelu 9/16, Pad 13/18/19/21/23/24/25, Pow
12/13/15, QLinearMatMul 21, QuantizeLinear 13/21/23/24/25/28, RNN 14/22, RandomNormal 22,
RandomNormalLike 22, RandomUniform 22, RandomUniformLike 22, Range 27, Reciprocal 13, ReduceL1 11/13,
ReduceL2 11/13, ReduceLogSum 11/13, ReduceLogSumExp 11/13, ReduceMax 11/12/13, ReduceMax 20,
ReduceMean 11/13, ReduceMin 11/12/13, ReduceMin 20, ReduceProd 11/13, ReduceSum 11,
ReduceSumSquare 11/13, ReverseSequence 28, Relu 13/14, Reshape 13/14/19/21/23/24/25, Resize 13/18/19, RoiAlign
22, Round 22, Scan 11/16/19/21/23/24/25, ScatterElements 13/16/18, ScatterND 13/16/18, Selu
22, Shape 13/15/19/21/23/24/25, Sigmoid 13, Sign 13, Sin 22, Sinh 22, Size
13/19/21/23/24/25, Slice 11/13, Softmax 11, SoftmaxCrossEntropyLoss 13, Softplus 22,
Softsign 22, SpaceToDepth 13/28, Split 11, SplitToSequence 24, Sqrt 13, Squeeze 11, Squeeze
21/23/24/25, Sub 13/14, Sum 8/13, Tan 22, Tanh 13, ThresholdedRelu 22, Tile 13, TopK 11/24,
Transpose 13/21/23/24/25, Unique 28, Unsqueeze 11, Unsqueeze 21/23/24/25, Where 16"""


def table():
    """Returns {(operator, opset): its adapter, or None when nothing has to change}."""
    text = (ROOT / "engine" / "ground" / "tbl" / "opsets.h").read_text()
    rows = {}
    for op, opset, adapter in re.findall(r'OPSET_CHANGE\(\s*"(\w+)", (\d+), (\w+)\)', text):
        rows[op, int(opset)] = adapter
    for row in SAME.replace("\n", " ").split(", "):
        op, opsets = row.split()
        for opset in opsets.split("/"):
            assert (op, int(opset)) not in rows
            rows[op, int(opset)] = None
    return rows


def history():
    known = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            known.setdefault(schema.name, {})[schema.since_version] = schema
    return known


def test_the_table_has_every_change_of_every_operator():
    changes = {(op, version) for op, versions in history().items()
               for before, version in zip(sorted(versions), sorted(versions)[1:])
               if 8 <= version <= 28}
    assert set(table()) == changes


def test_what_the_table_calls_the_same_takes_every_older_node():
    """Every attribute, required input and type of the older schema is still valid."""
    schemas = history()
    for (op, opset), adapter in table().items():
        versions = sorted(schemas[op])
        new = schemas[op][opset]
        old = schemas[op][versions[versions.index(opset) - 1]]
        if adapter is not None:
            continue
        assert not new.deprecated, op
        for name, attribute in old.attributes.items():
            assert new.attributes[name].type == attribute.type, (op, opset, name)
            if attribute.default_value.name and not attribute.required:
                assert new.attributes[name].default_value == attribute.default_value, op
        assert new.min_input <= old.min_input and new.max_input >= old.max_input, op
        assert new.min_output <= old.min_output, op
        assert new.max_output >= old.max_output, (op, opset)
        for i, (was, now) in enumerate(zip(old.inputs, new.inputs)):
            assert set(was.types) <= set(now.types), (op, opset, i)
