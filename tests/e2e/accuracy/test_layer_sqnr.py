# SPDX-License-Identifier: Apache-2.0
"""evaluation.layers: the SQNR of each quantized layer agrees with onnxruntime, which gets
every layer as an output of the graph; and the memory that it needs."""

import io
import json
import subprocess
from functools import lru_cache

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
import nets
import test_float16 as halves
from service import CALIBRATION, DATA, QUANTIZE, PeakMemory
from test_equalize import without_pairs

DB = 0.01  # tolerance between two ways to run the same graph


# --- the reference ------------------------------------------------------------------------

def outputs_of(model, names):
    """Returns a session whose outputs are these tensors, with pairs that are not fused.
    """
    seen = {v.name for v in model.graph.output}
    for name in names:
        if name not in seen:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def reference(real, quantized, layers, feed):
    """Returns {layer: dB}, with one sample in a run."""
    nodes = {n.name or f"@{n.output[0]}": n for n in real.graph.node}
    tensors = [nodes[layer].output[0] for layer in layers]
    signal, noise = np.zeros(len(layers)), np.zeros(len(layers))
    one, other = outputs_of(real, tensors), outputs_of(quantized, tensors)
    for i in range(len(next(iter(feed.values())))):
        sample = {k: v[i:i + 1] for k, v in feed.items()}
        for k, (f, q) in enumerate(zip(one.run(tensors, sample),
                                       other.run(tensors, sample))):
            f, q = f.astype(np.float64), q.astype(np.float64)
            signal[k] += np.sum(f ** 2)
            noise[k] += np.sum((f - q) ** 2)
    with np.errstate(divide="ignore"):
        return dict(zip(layers, 10 * np.log10(signal / noise)))


class Quantized:
    """A model that the command quantized, calibrated and evaluated with all samples."""

    def __init__(self, folder, model, feed, **spec):
        self.source, self.feed = model, feed
        calibration = {"method": "minmax", **spec.pop("calibration", {})}
        (folder / "m.onnx").write_bytes(model)
        np.savez(folder / "d.npz", **feed)
        (folder / "s.json").write_text(json.dumps({"calibration": calibration, **spec}))
        done = subprocess.run(
            [*QUANTIZE, "m.onnx", "--spec", "s.json", "--calibration", "d.npz",
             "-o", "q.onnx", "--report", "r.json"], cwd=folder, capture_output=True,
            stdin=subprocess.DEVNULL, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        self.said, self.result = done.stdout, (folder / "q.onnx").read_bytes()
        self.report = json.loads((folder / "r.json").read_text())
        self.outputs = {o["name"]: o for o in self.report["evaluation"]["outputs"]}
        self.layers = {row["name"]: row["sqnr_db"]
                       for row in self.report["evaluation"]["layers"]}
        assert len(self.layers) == len(self.report["evaluation"]["layers"])

    def warned(self):
        return [w["code"] for w in self.report["warnings"]]

    def planned(self):
        return [row["name"] for row in self.report["layers"]
                if row["quantized_inputs"] or row["weight_quantized"]]

    def check(self, names=None, real=None):
        """Expects every quantized layer, in the plan's order, with the reference's
        figure. `real` are the bytes of the float model where it is another one."""
        assert list(self.layers) == (self.planned() if names is None else names)
        assert self.report["evaluation"]["samples"] == len(next(iter(self.feed.values())))
        found = reference(onnx.load_model_from_string(real or self.source),
                          onnx.load_model_from_string(self.result), list(self.layers),
                          self.feed)
        assert self.layers == pytest.approx(found, abs=DB)
        assert all(5 < value < 90 for value in self.layers.values())


@lru_cache
def glyphs(n):
    return np.load(CALIBRATION)["input"][:n]


# --- real networks ------------------------------------------------------------------------

@pytest.mark.parametrize("spec", [
    {}, {"calibration": {"batch": 8}}, {"weights": {"storage": "dq"}}, {"equalize": True},
], ids=str)
@pytest.mark.parametrize("name", ["glyph_resnet", "glyph_vit"])
def test_glyph_networks(tmp_path, name, spec):
    done = Quantized(tmp_path, (DATA / f"{name}.onnx").read_bytes(),
                     {"input": glyphs(24)}, **spec)
    assert len(done.layers) > 10
    done.check(real=without_pairs(done.result) if "equalize" in spec else None)
    head = done.report["layers"][-1]["name"]
    assert done.outputs["logits"]["sqnr_db"] == pytest.approx(done.layers[head], abs=DB)


def test_threads_and_repetition_change_nothing(tmp_path):
    """The sums are the same, because they are added in the same order."""
    model = (DATA / "glyph_resnet.onnx").read_bytes()
    found = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        found.append(Quantized(tmp_path / str(i), model, {"input": glyphs(16)}))
    assert found[0].layers == found[1].layers


def test_the_command_names_the_worst(tmp_path):
    done = Quantized(tmp_path, nets.block_net(),
                     {"x": np.load(io.BytesIO(nets.samples()))["x"]})
    worst = sorted(done.layers.items(), key=lambda row: row[1])[:3]
    assert ("    layers furthest from float: "
            + ", ".join(f"{name} {db:.2f} dB" for name, db in worst) + "\n") in done.said


def test_over_http(daemon):
    """The daemon's report has the figures, too, and matches the OpenAPI document."""
    job = daemon.submit_glyphs(spec={"evaluate": {"samples": 8}})
    daemon.succeeded(job)
    layers = daemon.report(job)["evaluation"]["layers"]
    assert len(layers) == 15 and all(row["sqnr_db"] > 15 for row in layers)


# --- shapes of graphs ---------------------------------------------------------------------

class Net:
    """Builds a small model with input x [n,4,8,8]."""

    def __init__(self):
        self.random = np.random.default_rng(3)
        self.nodes, self.weights = [], []

    def weight(self, name, *shape):
        values = self.random.normal(0, 0.5, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, op, name, inputs, outputs=None, **attributes):
        outputs = outputs or [name + "_out"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name, **attributes))
        return outputs[0]

    def conv(self, name, x, weight=None, **more):
        return self.node("Conv", name, [x, weight or self.weight(name + ".w", 4, 4, 3, 3)],
                         pads=[1] * 4, **more)

    def model(self, outputs, side=8, ir_version=8, inputs=(), typed=()):
        values = [helper.make_tensor_value_info(name, kind, None)
                  for name, kind in [(o, TensorProto.FLOAT) for o in outputs]]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, side, side])
        graph = helper.make_graph(self.nodes, "net", [x, *inputs], [*values, *typed],
                                  self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                 ir_version=ir_version).SerializeToString()


def feed(n=6):
    return {"x": np.random.default_rng(4).normal(0, 1, (n, 4, 8, 8)).astype(np.float32)}


def with_if():
    """Returns a model in which both branches read tensors from outside, one of them two
    levels deep, with layers before and behind."""
    net = Net()
    a = net.conv("first", "x")
    flag = net.node("Greater", "is_large", [
        net.node("ReduceMax", "most", ["x"], keepdims=0),
        net.weight("limit")])

    def branch(name, nodes, output):
        return helper.make_graph(nodes, name, [], [
            helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])

    deep = helper.make_node("If", [flag], ["deep"], "inner", then_branch=branch(
        "t2", [helper.make_node("Relu", [a], ["t2_out"])], "t2_out"), else_branch=branch(
        "e2", [helper.make_node("Neg", [a], ["e2_out"])], "e2_out"))
    net.node("If", "choose", [flag], ["chosen"], then_branch=branch(
        "t", [deep, helper.make_node("Add", ["deep", "x"], ["t_out"])], "t_out"),
        else_branch=branch("e", [helper.make_node("Sub", [a, "x"], ["e_out"])], "e_out"))
    return net.model([net.conv("last", "chosen")])


def shared_weights():
    net = Net()
    w = net.weight("w", 4, 4, 3, 3)
    a = net.conv("one", "x", w)
    b = net.conv("two", net.node("Relu", "relu", [a]), w)
    return net.model([net.node("Add", "sum", [a, b])])


def several_outputs():
    """Returns a model with layers that are outputs, one that another node reads, an
    integer output, and an input that is an output."""
    net = Net()
    a = net.conv("one", "x")
    b = net.conv("two", a)
    net.node("ArgMax", "which", [b], ["index"], axis=1)
    return net.model([b, a, "x"], typed=[
        helper.make_tensor_value_info("index", TensorProto.INT64, None)])


def old_weights_as_inputs():
    net = Net()
    out = net.conv("one", "x")
    return net.model([out], ir_version=3, inputs=[
        helper.make_tensor_value_info("one.w", TensorProto.FLOAT, [4, 4, 3, 3])])


def overridable_weights():
    net = Net()
    out = net.conv("one", "x")
    return net.model([out], inputs=[
        helper.make_tensor_value_info("one.w", TensorProto.FLOAT, [4, 4, 3, 3])])


def names_that_clash():
    net = Net()
    a = net.node("Relu", "one_quantized_half", ["x"], ["one_out_quantized_half"])
    b = net.conv("one", a)
    return net.model([net.conv("two", net.node("Neg", "", [b], ["one_out_output"]))])


def out_of_order():
    """Returns nodes in an order that onnx forbids and onnxruntime repairs."""
    net = Net()
    net.conv("first", "x")
    last = net.conv("last", "first_out")
    net.nodes.reverse()
    return net.model([last])


def function_inside():
    """The twin keeps the model's functions once, for both halves."""
    net = Net()
    a = net.conv("one", "x")
    net.nodes.append(helper.make_node("Twice", [a], ["twice"], "twice", domain="mine"))
    out = net.conv("two", "twice")
    model = onnx.load_model_from_string(net.model([out]))
    twice = helper.make_node("Add", ["v", "v"], ["w"])
    model.functions.append(helper.make_function(
        "mine", "Twice", ["v"], ["w"], [twice], [helper.make_opsetid("", 13)]))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    return model.SerializeToString()


GRAPHS = [with_if, shared_weights, several_outputs, old_weights_as_inputs,
          overridable_weights, names_that_clash, out_of_order, function_inside]


@pytest.mark.parametrize("spec", [{}, {"calibration": {"batch": 3}},
                                  {"weights": {"storage": "dq"}}], ids=str)
@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_graphs(tmp_path, make, spec):
    done = Quantized(tmp_path, make(), feed(), **spec)
    assert "layers_not_compared" not in done.warned()
    done.check()


def test_outputs_keep_their_names_and_order(tmp_path):
    done = Quantized(tmp_path, several_outputs(), feed())
    assert list(done.outputs) == ["two_out", "one_out", "x", "index"]
    assert done.outputs["index"]["cosine"] is None, "integers are compared one by one"
    assert done.outputs["two_out"]["sqnr_db"] == pytest.approx(done.layers["two"], abs=DB)
    assert done.outputs["one_out"]["sqnr_db"] == pytest.approx(done.layers["one"], abs=DB)
    assert done.outputs["x"]["sqnr_db"] is None, "what is equal has no noise"


def test_float16(tmp_path):
    """Sums are not computed in float16, whose largest number is 65504."""
    data = {"x": (8 * halves.X).astype(np.float16)}
    done = Quantized(tmp_path, halves.net().SerializeToString(), data)
    assert list(done.layers) == ["conv", "fc"]
    done.check()
    assert done.outputs["y"]["sqnr_db"] == pytest.approx(done.layers["fc"], abs=DB)


def test_unnamed_layers(tmp_path):
    net = Net()
    out = net.conv("", "x")
    done = Quantized(tmp_path, net.model([out]), feed())
    assert list(done.layers) == ["@_out"]
    done.check()


def test_other_kinds_of_layers(tmp_path):
    classes = ["Conv2D", "Add", "MaxPooling2D", "AveragePooling2D", "Concatenate", "Dense"]
    data = {"x": np.load(io.BytesIO(nets.samples()))["x"]}
    done = Quantized(tmp_path, nets.block_net(), data,
                     layers=[{"class": cls} for cls in classes])
    assert {"block/add", "pool/max", "pool/both", "head/fc"} <= set(done.layers)
    done.check()


def test_layers_that_are_left_alone_are_left_out(tmp_path):
    done = Quantized(tmp_path, shared_weights(), feed(), mode="partial",
                     layers=[{"name": "two"}])
    assert list(done.layers) == ["two"]


# --- models without figures ---------------------------------------------------------------

def test_equal_layers_have_no_figure(tmp_path):
    """All weights and activations are whole numbers times a power of two, so the pairs
    change nothing."""
    net = Net()
    w = np.zeros((4, 4, 3, 3), np.float32)
    w[:, :, 1, 1] = 127 * np.eye(4)
    net.weights.append(numpy_helper.from_array(w, "w"))
    out = net.conv("one", "x", "w")
    x = np.random.default_rng(5).integers(-127, 128, (4, 4, 8, 8)).astype(np.float32)
    x[0, 0, 0, 0] = 127
    done = Quantized(tmp_path, net.model([out]), {"x": x})
    assert done.layers == {"one": None}
    assert done.outputs[out]["sqnr_db"] is None


def test_a_twin_that_cannot_be_made(tmp_path):
    """In opset 13 Identity does not support sequences. The outputs are compared all the
    same, and a warning says that the layers are not."""
    net = Net()
    a = net.conv("one", "x")
    net.node("SplitToSequence", "split", [a], ["parts"], axis=1)
    parts = helper.make_value_info("parts", helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(TensorProto.FLOAT, None)))
    done = Quantized(tmp_path, net.model([a], typed=[parts]), feed())
    assert done.layers == {}
    assert done.warned().count("layers_not_compared") == 1
    assert done.outputs[a]["sqnr_db"] > 10


def test_without_an_evaluation_there_are_none(tmp_path):
    (tmp_path / "s.json").write_text('{"evaluate": false}')
    subprocess.run([*QUANTIZE, DATA / "glyph_se.onnx", "--spec", "s.json",
                    "--calibration", CALIBRATION, "-o", "q.onnx", "--report", "r.json"],
                   cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert json.loads((tmp_path / "r.json").read_text())["evaluation"] is None


# --- memory ------------------------------------------------------------------------------

def deep_net(layers):
    """Returns as many equally large activations as layers, with tiny weights; behind them
    are a node that is not a layer and that onnxruntime replaces, and a mean, which makes the
    output small: the advice that follows an evaluation keeps outputs."""
    net, x = Net(), "x"
    for i in range(layers):
        x = net.node("Conv", f"c{i}", [x, net.weight(f"w{i}", 4, 4, 1, 1)])
    return net.model([net.node("ReduceMean", "mean", [net.node("Relu", "relu", [x])],
                               axes=[2, 3])], side=384)


def peak_of_evaluation(folder, layers, samples):
    """Returns the KiB of private memory; ranges are given, so only the evaluation runs
    the model."""
    folder.mkdir()
    (folder / "m.onnx").write_bytes(deep_net(layers))
    x = np.random.default_rng(6).normal(0, 1, (1, 4, 384, 384)).astype(np.float32)
    np.save(folder / "d.npy", np.repeat(x, samples, 0))
    names = ["x", "relu_out", *(f"c{i}_out" for i in range(layers - 1))]
    (folder / "s.json").write_text(json.dumps({
        "evaluate": {"samples": samples},
        "calibration": {"ranges": {name: [-3, 3] for name in names}}}))
    process = subprocess.Popen(
        [*QUANTIZE, "m.onnx", "--spec", "s.json", "--calibration", "d.npy", "-o",
         "q.onnx", "--report", "r.json", "--threads", "2"], cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with PeakMemory(lambda: [process.pid]) as memory:
        assert process.wait(120) == 0
    report = json.loads((folder / "r.json").read_text())
    assert len(report["evaluation"]["layers"]) == layers + 1
    assert report["calibration"]["samples"] == 0
    assert memory.samples > 20
    return memory.peak


def test_memory_grows_neither_with_samples_nor_with_layers(tmp_path):
    """An activation has 2.25 MiB here. If layers were graph outputs, or one half ran
    before the other, all 32 activations of at least one half would be kept."""
    few = peak_of_evaluation(tmp_path / "few", 8, 8)
    many = peak_of_evaluation(tmp_path / "many", 8, 32)
    deep = peak_of_evaluation(tmp_path / "deep", 32, 8)
    print(f"8 layers, 8 samples: {few / 1024:.0f} MiB; 32 samples: {many / 1024:.0f} MiB; "
          f"32 layers, 8 samples: {deep / 1024:.0f} MiB")
    slack = 8 * 1024  # peaks are sampled; 24 samples more are 54 MiB
    assert many < few * 1.05 + slack
    assert deep < few + 16 * 1024, "24 activations more of one half are 54 MiB"
