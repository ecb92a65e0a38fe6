# SPDX-License-Identifier: Apache-2.0
"""The target onnxruntime, compared with onnxruntime's own quantizer and optimizer."""

import collections
import json
import logging
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                      quantize_static)

import judge
import nets
from service import CALIBRATION, DATA, QUANTIZE

GLYPHS = ["glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit"]
INTEGER = ("QLinear", "QGemm", "MatMulInteger", "ConvInteger")


def quantize(folder, model, data=None, **spec):
    """Returns the model's bytes and the report."""
    spec.setdefault("target", "onnxruntime")
    spec.setdefault("recipe", "none")  # these tests are about placement
    (folder / "spec.json").write_text(json.dumps(spec))
    if isinstance(model, bytes):
        (folder / "m.onnx").write_bytes(model)
        model = folder / "m.onnx"
    if isinstance(data, bytes):
        (folder / "d.npz").write_bytes(data)
        data = folder / "d.npz"
    command = [*QUANTIZE, model, "--spec", folder / "spec.json",
               "-o", folder / "q.onnx", "--report", folder / "report.json"]
    if data:
        command += ["--calibration", data]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ((folder / "q.onnx").read_bytes(),
            json.loads((folder / "report.json").read_text()))


def kernels(folder, model):
    """Returns the operators of the model after onnxruntime's optimizer, and the session's
    output."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(folder / "optimized.onnx").graph.node
    return collections.Counter(node.op_type for node in nodes)


def integers(counts):
    return {op: n for op, n in counts.items() if op.startswith(INTEGER)}


class Reader(CalibrationDataReader):
    def __init__(self, values):
        self.rows = iter([{"input": values[i:i + 1]} for i in range(len(values))])

    def get_next(self):
        return next(self.rows, None)


def peer(folder, name):
    logging.disable(logging.WARNING)
    values = np.load(CALIBRATION)["input"][:32]
    quantize_static(DATA / f"{name}.onnx", folder / "peer.onnx", Reader(values),
                    quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, per_channel=True)
    logging.disable(logging.NOTSET)
    return (folder / "peer.onnx").read_bytes()


@pytest.mark.parametrize("name", GLYPHS)
def test_as_many_integer_kernels_as_the_quantizer_of_onnxruntime(tmp_path, name):
    model, report = quantize(tmp_path, DATA / f"{name}.onnx", CALIBRATION)
    judge.load(model)
    ours = kernels(tmp_path, model)
    theirs = kernels(tmp_path, peer(tmp_path, name))
    assert sum(integers(ours).values()) >= sum(integers(theirs).values())
    assert report["kernels"]["ops"] == integers(ours)
    assert report["kernels"]["integer"] == sum(integers(ours).values())
    assert report["kernels"]["conversions"] == (ours["QuantizeLinear"] +
                                                ours["DequantizeLinear"])
    assert report["kernels"]["floats"] == []

    images, _ = judge.test_images()
    feed = {"input": images[:200]}
    real = judge.run((DATA / f"{name}.onnx").read_bytes(), feed)
    db = judge.sqnr_db(real, judge.run(model, feed))
    assert db > judge.sqnr_db(real, judge.run(peer(tmp_path, name), feed)) - 0.5


def test_formats_by_default(tmp_path):
    model, report = quantize(tmp_path, DATA / "glyph_resnet.onnx", CALIBRATION)
    assert report["spec"]["activations"] == {"dtype": "uint8", "symmetric": False}
    assert report["spec"]["weights"]["storage"] == "dq"
    types = {i.name: i.data_type for i in onnx.load_from_string(model).graph.initializer}
    assert {t["dtype"] for t in report["tensors"]} == {"uint8"}
    for weight in report["weights"]:
        assert types[weight["name"] + "_quantized"] == TensorProto.INT8


def test_biases_are_int32_of_the_product_of_scales(tmp_path):
    model, _ = quantize(tmp_path, DATA / "glyph_resnet.onnx", CALIBRATION)
    source = onnx.load(DATA / "glyph_resnet.onnx")
    graph = onnx.load_from_string(model).graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    floats = {i.name: numpy_helper.to_array(i) for i in source.graph.initializer}
    before = {n.name: n for n in source.graph.node}
    makers = {n.output[0]: n for n in graph.node}
    checked = 0
    for node in graph.node:
        if node.op_type not in ("Conv", "Gemm"):
            continue
        data, weight, bias = (makers[node.input[i]] for i in range(3))
        assert {data.op_type, weight.op_type, bias.op_type} == {"DequantizeLinear"}
        scale = values[data.input[1]] * values[weight.input[1]]
        assert values[bias.input[0]].dtype == np.int32
        np.testing.assert_array_equal(values[bias.input[1]], scale)
        wanted = floats[before[node.name].input[2]].astype(np.float64)
        np.testing.assert_array_equal(values[bias.input[0]], np.rint(wanted / scale))
        checked += 1
    assert checked == 14
    assert not set(floats) & set(values)  # no float weight or bias is left


def test_all_read_a_tensor_from_its_pair(tmp_path):
    model, report = quantize(tmp_path, nets.block_net(), nets.samples())
    graph = judge.load(model).graph
    rows = {row["name"]: row for row in report["layers"]}
    assert rows["stem/conv"]["quantized_outputs"] == []  # the Relu is folded
    assert rows["stem/relu"]["quantized_outputs"] == [0]
    assert rows["pool/max"]["quantized_outputs"] == [0]
    makers = {o: n.op_type for n in graph.node for o in n.output}
    for tensor in report["tensors"]:
        name = tensor["name"]
        readers = [n.op_type for n in graph.node if name in n.input]
        raw = name if name == nets.INPUT else name + "_QuantizeLinear_Input"
        assert [n.op_type for n in graph.node if raw in n.input] == ["QuantizeLinear"]
        if name != nets.INPUT:
            assert makers[name] == "DequantizeLinear"
            assert readers or name == "logits"
    numbers = {t["name"]: (t["scale"], t["zero_point"]) for t in report["tensors"]}
    assert numbers["pool/max"] == numbers["block/relu2"]
    assert numbers["pool/mean"] != numbers["block/relu2"]
    assert graph.output[0].name == "logits"


def test_frozen_spec_makes_the_same_bytes(tmp_path):
    model, report = quantize(tmp_path, DATA / "glyph_se.onnx", CALIBRATION,
                             evaluate=False)
    ranges = report["tensors"]
    again, second = quantize(tmp_path, DATA / "glyph_se.onnx",
                             calibration={"ranges": ranges})
    strip = [onnx.load_from_string(m) for m in (model, again)]
    for one in strip:
        del one.metadata_props[:]
    assert strip[0].SerializeToString() == strip[1].SerializeToString()
    assert [t["scale"] for t in second["tensors"]] == [t["scale"] for t in ranges]
    assert {t["method"] for t in report["tensors"]} == {"mse", "operator"}


def one_layer(op, inputs, constants, shape, out, **attributes):
    node = helper.make_node(op, inputs, ["y"], "layer", **attributes)
    return helper.make_model(
        helper.make_graph(
            [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
            [numpy_helper.from_array(v, k) for k, v in constants.items()]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def npz(values):
    import io
    file = io.BytesIO()
    np.savez(file, x=values)
    return file.getvalue()


RANDOM = np.random.default_rng(3)


def test_bias_beyond_int32_widens_the_weight_and_says_so(tmp_path):
    weight = RANDOM.normal(0, 1, (4, 3, 3, 3)).astype(np.float32)
    weight[1] *= 1e-9
    bias = np.array([0.1, 5000, -0.2, 3], np.float32)
    model = one_layer("Conv", ["x", "w", "b"], {"w": weight, "b": bias}, ["n", 3, 8, 8],
                      ["n", 4, 6, 6])
    data = RANDOM.normal(0, 1e-3, (8, 3, 8, 8)).astype(np.float32)
    made, report = quantize(tmp_path, model, npz(data))
    [warning] = [w for w in report["warnings"] if w["code"] == "bias_widens_weight"]
    assert warning["node"] == "b" and warning["detail"].startswith("1 channels")
    real = judge.run(model, {"x": data})
    for optimized in (False, True):
        got = judge.run(made, {"x": data}, optimized=optimized)
        np.testing.assert_allclose(got[:, 1], real[:, 1], rtol=0.01)


def test_a_bias_that_is_too_large_for_the_scale_of_the_weight_enlarges_it(tmp_path):
    """It was left in float, and ONNX Runtime made an int32 of it that did not fit."""
    weight = RANDOM.normal(0, 1e-9, (4, 3, 3, 3)).astype(np.float32)
    model = one_layer("Conv", ["x", "w", "b"],
                      {"w": weight, "b": np.array([5000, 4990, 5000, 4980], np.float32)},
                      ["n", 3, 8, 8], ["n", 4, 6, 6])
    data = RANDOM.normal(0, 1e-3, (8, 3, 8, 8)).astype(np.float32)
    made, report = quantize(tmp_path, model, npz(data),
                            weights={"granularity": "tensor"})
    assert not [w for w in report["warnings"] if w["code"] == "bias_stays_float"]
    real = judge.run(model, {"x": data})
    for optimized in (False, True):
        np.testing.assert_allclose(judge.run(made, {"x": data}, optimized=optimized), real,
                                   rtol=0.02)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op,weight,shape,out", [
    ("MatMul", (64, 16), [4, 64], [4, 16]), ("Gemm", (64, 16), [4, 64], [4, 16]),
    ("Conv", (16, 64, 1, 1), [1, 64, 2, 2], [1, 16, 2, 2])])
def test_layers_with_blocks_of_8_bits_run(tmp_path, op, weight, shape, out, dtype):
    """onnxruntime makes integer kernels of Conv and MatMul that refuse scales of blocks when they
    run, so that these layers have no pair on what they read."""
    model = onnx.ModelProto.FromString(one_layer(
        op, ["x", "w"], {"w": RANDOM.normal(0, 1, weight).astype(np.float32)}, shape, out))
    data = RANDOM.normal(0, 1, (8, *shape)).astype(np.float32)
    made, report = quantize(tmp_path, model.SerializeToString(), npz(data),
                            weights={"dtype": dtype, "granularity": {"block": 32}})
    [layer] = report["layers"]
    warned = [w["node"] for w in report["warnings"] if w["code"] == "target_format"]
    assert layer["weight_quantized"] and report["evaluation"]["deployed"]
    assert (layer["quantized_inputs"], warned) == (
        ([0], []) if op == "Gemm" else ([], ["layer"]))
    real = judge.run(model.SerializeToString(), {"x": data[0]})
    assert judge.sqnr_db(real, judge.run(made, {"x": data[0]}, optimized=True)) > 30


@pytest.mark.parametrize("op,constant_first,shape,out", [
    ("Add", True, (16,), [4, 16]), ("Mul", False, (4, 16), [4, 16]),
    ("MatMul", False, (16,), [4]), ("MatMul", True, (4,), [16])])
@pytest.mark.parametrize("block", [4, 32])
def test_operands_have_no_blocks(tmp_path, op, constant_first, shape, out, block):
    """onnxruntime refuses a block for a single scale, and several scales for an operand."""
    inputs = ["c", "x"] if constant_first else ["x", "c"]
    model = one_layer(op, inputs, {"c": RANDOM.normal(0, 1, shape).astype(np.float32)}, [4, 16],
                      out)
    data = RANDOM.normal(0, 1, (8, 4, 16)).astype(np.float32)
    made, report = quantize(tmp_path, model, npz(data),
                            weights={"granularity": {"block": block}})
    blocks = op == "MatMul" and not constant_first and block == 4
    assert report["layers"][0]["weight_axis"] == (0 if blocks else None)
    real = judge.run(model, {"x": data[0]})
    assert judge.sqnr_db(real, judge.run(made, {"x": data[0]}, optimized=True)) > 25


@pytest.mark.parametrize("reader", ["", " z = Relu (y)"])
def test_an_entry_for_a_layer_behind_which_nothing_is_quantized(tmp_path, reader):
    """The output of a MaxPool has a pair also if nothing reads it, or a layer in float."""
    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 3, 8, 8] x) => (float[1, 3, 7, 7] y) {
            a = InstanceNormalization (x, s, s)
            y = MaxPool <kernel_shape = [2, 2]> (a)%s
        }''' % reader)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "s"))
    data = RANDOM.normal(0, 1, (8, 1, 3, 8, 8)).astype(np.float32)
    made, report = quantize(tmp_path, model.SerializeToString(), npz(data), recipe="auto",
                            layers=[{"class": "MaxPooling2D"}])
    assert [layer["quantized_outputs"] for layer in report["layers"]
            if layer["op"] == "MaxPool"] == [[0]]
    real = judge.run(model.SerializeToString(), {"x": data[0]})
    assert judge.sqnr_db(real, judge.run(made, {"x": data[0]}, optimized=True)) > 30


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("constant_first", [False, True])
def test_constant_operands_have_the_activations_format(tmp_path, op, constant_first):
    value = RANDOM.normal(0, 1, (6,)).astype(np.float32)
    inputs = ["c", "x"] if constant_first else ["x", "c"]
    model = one_layer(op, inputs, {"c": value}, ["n", 6], ["n", 6])
    data = RANDOM.normal(0, 1, (32, 6)).astype(np.float32)
    made, report = quantize(tmp_path, model, npz(data))
    [weight] = report["weights"]
    assert (weight["name"], weight["dtype"], weight["axis"]) == ("c", "uint8", None)
    assert integers(kernels(tmp_path, made)) == {"QLinear" + op: 1}
    assert judge.sqnr_db(judge.run(model, {"x": data}),
                         judge.run(made, {"x": data})) > 30


def test_softmax_makes_numbers_from_0_to_1(tmp_path):
    model = one_layer("Softmax", ["x"], {}, ["n", 6], ["n", 6], axis=-1)
    data = RANDOM.normal(0, 1, (32, 6)).astype(np.float32)
    made, report = quantize(tmp_path, model, npz(data))
    rows = {t["name"]: t for t in report["tensors"]}
    # ONNX Runtime rounds the reciprocal of the scale 1/255 down, and loses the last step by it.
    most = float(np.nextafter(np.float32(1), np.float32(0)))
    assert (rows["y"]["min"], rows["y"]["max"], rows["y"]["method"]) == (0, most, "operator")
    assert rows["y"]["zero_point"] == 0
    assert integers(kernels(tmp_path, made)) == {"QLinearSoftmax": 1}


def test_partial_and_layers_left_alone(tmp_path):
    _, report = quantize(tmp_path, nets.block_net(), nets.samples(), mode="partial",
                         layers=[{"name": "block/conv1"}])
    rows = {row["name"]: row for row in report["layers"]
            if row["quantized_inputs"] or row["quantized_outputs"]}
    assert set(rows) == {"block/conv1", "block/relu1"}
    made, report = quantize(tmp_path, nets.block_net(), nets.samples(),
                            layers=[{"name": "block/add", "quantize_input": False}])
    rows = {row["name"]: row for row in report["layers"]}
    assert rows["block/add"]["quantized_inputs"] == []
    assert rows["block/add"]["quantized_outputs"] == []
    # A tensor that is also read without a pair is computed in floating point.
    floats = {k["name"] for k in report["kernels"]["floats"]}
    assert {"stem/conv", "block/conv2"} <= floats
    assert "QLinearAdd" not in report["kernels"]["ops"]
    [add] = [n for n in judge.load(made).graph.node if n.name == "block/add"]
    assert list(add.input) == ["block/conv2", "stem/relu_QuantizeLinear_Input"]
    judge.load(made)


def test_symmetric_activations_keep_the_relu_between_pairs(tmp_path):
    made, report = quantize(tmp_path, nets.block_net(), nets.samples(),
                            activations={"dtype": "int8", "symmetric": True})
    rows = {row["name"]: row for row in report["layers"]}
    assert rows["stem/conv"]["quantized_outputs"] == [0]
    judge.load(made)


def test_search_and_sensitivity(tmp_path):
    _, report = quantize(tmp_path, nets.block_net(), nets.samples(),
                         sensitivity={"samples": 4}, search={"min_sqnr_db": 25})
    assert report["search"]["met"] and report["sensitivity"]


def test_weights_alone(tmp_path):
    made, report = quantize(tmp_path, nets.block_net(), activations="none")
    assert report["tensors"] == [] and report["weights"]
    assert all(row["quantized_outputs"] == [] for row in report["layers"])
    judge.load(made)


# --- names -----------------------------------------------------------------------------

def with_long_names():
    """Returns a model whose activations and weights have names of 300 characters."""
    model = onnx.load(DATA / "glyph_resnet.onnx")
    kept = {value.name for value in [*model.graph.input, *model.graph.output]}

    def long(name):
        return name if name in kept or not name else name + "/" * (300 - len(name))

    for tensor in [*model.graph.initializer, *model.graph.value_info]:
        tensor.name = long(tensor.name)
    for node in model.graph.node:
        node.input[:] = map(long, node.input)
        node.output[:] = map(long, node.output)
    return model.SerializeToString()


def test_long_names_are_not_repeated(tmp_path):
    """A pair repeats the name of its tensor a dozen times. The target tensorrt and frozen specs
    of version 0.1, which state no host, keep these names."""
    values = np.load(CALIBRATION)["input"][:4]
    np.savez(tmp_path / "few.npz", input=values)
    given, data = with_long_names(), (tmp_path / "few.npz").read_bytes()
    made, longest, outputs = {}, {}, {}
    for name, spec in {"short": {"rules": {"C7": False}},
                       "frozen": {"calibration": {"source": "sha256:" + 64 * "0"}},
                       "tensorrt": {"target": "tensorrt"}}.items():
        made[name] = quantize(tmp_path, given, data, evaluate=False, **spec)[0]
        nodes = onnx.load_from_string(made[name]).graph.node
        longest[name] = max(len(n.name) for n in nodes if n.op_type in judge.BOUNDARY)
        outputs[name] = judge.run(made[name], {"input": values})
    assert longest["short"] < 32 and longest["frozen"] > 300 and longest["tensorrt"] > 300
    assert len(made["frozen"]) > len(made["short"]) + 100_000
    assert np.array_equal(outputs["short"], outputs["frozen"])


@pytest.mark.parametrize("weights, activations", [
    ("int8", "uint8"), ("int8", "int16"), ("int8", "float8e4m3fn"), ("int8", "float8e5m2"),
    ("float8e4m3fn", "uint8"), ("float8e5m2", "int8"), ("float8e4m3fn", "uint16"),
    ("float8e4m3fn", None), ("float4e2m1", "uint8"), ("float4e2m1", "int16"),
    ("float4e2m1", None), ("int2", "uint8"), ("uint2", "int8"), ("int2", "int16")])
def test_formats_that_do_not_load_are_said(tmp_path, weights, activations):
    """onnxruntime loads the result by its default optimizations exactly where nothing is said."""
    made, report = quantize(
        tmp_path, DATA / "glyph_resnet.onnx", CALIBRATION, weights={"dtype": weights}, opset="auto",
        activations={"dtype": activations} if activations else "none", evaluate=False,
        calibration={"max_samples": 8})
    said = [w["detail"] for w in report["warnings"] if w["code"] == "target_format"]
    assert len(said) <= 1 and all(text.startswith("ONNX Runtime 1.31 does not load") for text in said)
    try:
        kernels(tmp_path, made)
        loads = True
    except Exception:  # onnxruntime has a class for each reason
        loads = False
    assert loads == (not said)
