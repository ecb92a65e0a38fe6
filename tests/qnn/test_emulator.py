# SPDX-License-Identifier: Apache-2.0
"""Results for target qnn run on Qualcomm's emulator as their reports say, whole and in integers, and
the faults of it that the target heeds are still there."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import DATA, INSTALLED

QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
RUN_ONCE = Path(__file__).with_name("run_once.py")
RUNNER = Path(__file__).resolve().parents[2] / "runners" / "onnxruntime_ep.py"
FEW = {"calibration": {"max_samples": 32}, "evaluate": {"samples": 8}, "recipe": "none"}


def sqnr(wanted, got):
    noise = ((wanted - got) ** 2).sum()
    return float("inf") if noise == 0 else 10 * np.log10((wanted ** 2).sum() / noise)


def on_emulator(python, model, x, folder, *graphs, soc="43"):
    np.save(folder / "x.npy", x)
    done = subprocess.run([python, RUN_ONCE, model, folder / "x.npy", folder / "y.npy", *graphs],
                          env={**os.environ, "SOC_MODEL": soc}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(folder / "y.npy")


def literally(model, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def fix_batch(path):
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, path)


def quantize(folder, net, runners, **spec):
    out, report = folder / "out.onnx", folder / "report.json"
    (folder / "spec.json").write_text(json.dumps({"target": "qnn", **FEW, **spec}))
    done = subprocess.run(
        [QDQ, "quantize", DATA / f"{net}.onnx", "--calibration", DATA / "calib_256.npz", "--spec",
         folder / "spec.json", "--runners", runners, "-o", out, "--report", report],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out, json.loads(report.read_text())


@pytest.mark.parametrize("net, least_db, activations", [
    ("glyph_resnet", 33, "uint8"), ("glyph_vit", 26, "uint8"), ("glyph_vit", 36, "uint16")])
def test_figures_are_those_that_are_said(qnn_python, runners, tmp_path, net, least_db, activations):
    out, report = quantize(tmp_path, net, runners, activations={"dtype": activations})
    deployed = report["evaluation"]["deployed"]
    assert "QNN" in deployed["device"] if "device" in deployed else True
    said = deployed["outputs"][0]["sqnr_db"]
    assert said > least_db
    kernels = report["kernels"]
    assert kernels["runner"] == "htp" and kernels["floats"] == []
    assert kernels["conversions"] == 2, "the edges alone are on the processor"
    assert kernels["integer"] > 15
    fix_batch(out)
    images = np.load(DATA / "calib_256.npz")["input"][32:40]  # those behind the calibration
    floats = np.concatenate([literally(DATA / f"{net}.onnx", x[None]) for x in images])
    runs = np.concatenate([on_emulator(qnn_python, out, x[None], tmp_path) for x in images])
    assert sqnr(floats, runs) == pytest.approx(said, abs=0.5)


def kernels_of(python, model, x, folder):
    """Returns the operators that the provider made, and whether all of their tensors are integers."""
    graphs = folder / "graphs"
    graphs.mkdir()
    on_emulator(python, model, x, folder, graphs)
    found = []
    for graph in (json.loads(path.read_text()).get("graph") for path in graphs.glob("*.json")):
        for node in graph["nodes"].values() if graph else ():
            types = {graph["tensors"][name]["data_type"] for name in node["input_names"] + node["output_names"]}
            found.append((node["type"], not types & {0x216, 0x232}))
    return found


def soc_30(python, folder):
    """Returns the path of a file for --runners, with the emulator of a chip of v68."""
    conf = folder / "runners.conf"
    conf.write_text(f"[runner htp]\ncommand = {python} {RUNNER}\nallow = {RUNNER.parent}\ntargets = qnn\n"
                    "provider = QNN\nsoc_model = 30\ntimeout = 300\n")
    return conf


def test_v68_has_a_gelu(qnn_python, tmp_path):
    """It computes the operator Gelu in integers, so that the whole model is one piece."""
    _, report = quantize(tmp_path, "glyph_vit", soc_30(qnn_python, tmp_path), host="v68")
    codes = {warning["code"] for warning in report["warnings"]}
    assert not codes & {"htp_fallback", "deployed_not_measured"}
    assert report["evaluation"]["deployed"]["outputs"][0]["sqnr_db"] > 27
    kernels = report["kernels"]
    assert kernels["floats"] == [] and kernels["conversions"] == 2 and kernels["ops"]["Gelu"] == 3


def test_v68_has_no_gelu_of_several_nodes(qnn_python, tmp_path):
    """Without rule Q18 pairs inside leave the Erf to the processor."""
    _, report = quantize(tmp_path, "glyph_vit", soc_30(qnn_python, tmp_path), host="v68", rules={"Q18": False})
    codes = {warning["code"] for warning in report["warnings"]}
    assert "htp_fallback" in codes and "deployed_not_measured" not in codes
    assert report["evaluation"]["deployed"]["outputs"][0]["sqnr_db"] > 27
    assert "Erf" not in report["kernels"]["ops"]
    floats = report["kernels"]["floats"]  # each Erf, with what the provider says of it
    assert len(floats) == 3 and all("Erf" in row["name"] and row["reason"] for row in floats)


@pytest.mark.parametrize("joined", [True, False])
def test_a_gelu_of_several_nodes_is_one_of_floats(qnn_python, runners, tmp_path, joined):
    """And the report says so; rule Q18 makes one operator of it, which has integers."""
    out, report = quantize(tmp_path, "glyph_vit", runners, rules={"Q18": joined})
    fix_batch(out)
    x = np.load(DATA / "calib_256.npz")["input"][:1]
    gelus = [is_integer for op, is_integer in kernels_of(qnn_python, out, x, tmp_path) if op == "Gelu"]
    assert gelus == [joined] * 3
    reasons = {row["reason"] for row in report["kernels"]["floats"]}
    assert len(report["kernels"]["floats"]) == (0 if joined else 15)
    assert all("GELU" in reason for reason in reasons)


def test_a_gelu_of_two_formats(runners, tmp_path):
    """One of several nodes falls to the processor; rule Q15 gives both of its ends the wider format. The products
    on its two sides have two formats then, and are float16: their weights are dequantized on the processor."""
    entry = {"name": ["Mul_2"], "activations": {"dtype": "uint16"}}  # the last node of the first GELU
    for joined in (True, False):
        rules = {"Q15": joined, "Q16": False, "Q18": False}
        _, report = quantize(tmp_path, "glyph_vit", runners, layers=[entry], rules=rules)
        left = {row["name"]: row["reason"] for row in report["kernels"]["floats"]}
        assert ("GELU" in left["Erf_0"]) == joined
        if joined:
            two = {name for name, reason in left.items() if "different formats" in reason}
            assert two == {"MatMul_4", "MatMul_5"}
            assert report["kernels"]["conversions"] == 6


def test_layers_of_two_widths(qnn_python, runners, tmp_path):
    """Rule Q16: pairs convert at the borders, so that all is integers, in one piece, as the literal arithmetic
    says; the right operands of products have 8 bits, as the HTP multiplies."""
    names = ["Mul_2", "MatMul_7", "Softmax_2", "Add_14", "Conv_1"]
    entry = {"name": names, "activations": {"dtype": "uint16"}}
    out, report = quantize(tmp_path, "glyph_vit", runners, layers=[entry])
    kernels, evaluation = report["kernels"], report["evaluation"]
    assert kernels["floats"] == [] and kernels["conversions"] == 2
    fix_batch(out)
    x = np.load(DATA / "calib_256.npz")["input"][:1]
    found = kernels_of(qnn_python, out, x, tmp_path)
    assert all(is_integer for _, is_integer in found)
    assert sum(op == "Convert" for op, _ in found) == sum("converted" in row for row in report["tensors"]) > 5
    said, literal = (part["outputs"][0]["sqnr_db"] for part in (evaluation["deployed"], evaluation))
    assert said == pytest.approx(literal, abs=1)


def test_products_of_16_bits_are_predicted(runners, tmp_path):
    """The literal arithmetic said 1.6 dB more than the emulator, which multiplies by 8 bits."""
    _, report = quantize(tmp_path, "glyph_vit", runners, activations={"dtype": "uint16"})
    deployed, literal = (part["outputs"][0]["sqnr_db"]
                         for part in (report["evaluation"]["deployed"], report["evaluation"]))
    assert deployed == pytest.approx(literal, abs=0.5)


def test_a_product_and_its_bias_are_one_kernel(runners, tmp_path):
    _, report = quantize(tmp_path, "glyph_vit", runners)
    weighted = [row for row in report["layers"] if row["op"] in ("MatMul", "Gemm") and
                row["weight_quantized"]]
    assert report["kernels"]["ops"]["Gemm"] == len(weighted) == 13
    assert report["kernels"]["floats"] == []


def test_the_same_bits_in_two_processes(qnn_python, runners, tmp_path):
    out, _ = quantize(tmp_path, "glyph_resnet", runners, evaluate=False)
    fix_batch(out)
    image = np.load(DATA / "calib_256.npz")["input"][:1]
    first, second = (on_emulator(qnn_python, out, image, tmp_path) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_no_times_are_claimed(runners, tmp_path):
    _, report = quantize(tmp_path, "glyph_resnet", runners, profile={"runs": 3}, evaluate=False)
    assert report["profile"] is None
    skipped = [w for w in report["warnings"] if w["code"] == "profile_skipped"]
    assert len(skipped) == 1 and "emulator" in skipped[0]["detail"]


class Net:
    """A small model of pairs around one operator."""

    def __init__(self, dtype):
        self.nodes, self.constants, self.dtype = [], [], dtype

    def _scale(self, name, low, high):
        q = np.iinfo(self.dtype)
        low, high = min(low, 0), max(high, 0)
        scale = np.float32((high - low) / (q.max - q.min) or 1)
        zero = self.dtype(round(q.min - low / scale))
        self.constants += [numpy_helper.from_array(scale, name + "_s"),
                           numpy_helper.from_array(zero, name + "_z")]
        return scale, zero, [name + "_s", name + "_z"]

    def pair(self, name, low, high):
        scale = self._scale(name, low, high)[2]
        self.nodes += [helper.make_node("QuantizeLinear", [name, *scale], [name + "_q"]),
                       helper.make_node("DequantizeLinear", [name + "_q", *scale], [name + "_d"])]
        return name + "_d"

    def constant(self, name, array):
        scale, zero, names = self._scale(name, array.min(), array.max())
        numbers = (np.round(array / scale) + zero).astype(self.dtype)
        self.constants.append(numpy_helper.from_array(numbers, name + "_q"))
        self.nodes.append(helper.make_node("DequantizeLinear", [name + "_q", *names], [name + "_d"]))
        return name + "_d"

    def save(self, path, shape):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y_d", TensorProto.FLOAT, shape)], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                    ir_version=10), path)


def steep(low, high):
    return np.exp(np.random.default_rng(1).uniform(np.log(low), np.log(high), (1, 16, 64)))


@pytest.mark.parametrize("op, dtype, domain, image, constant", [
    ("Reciprocal", np.uint8, (0.018, 0.16), (0, 58), None),
    ("Reciprocal", np.uint16, (0.018, 0.16), (0, 58), None),
    ("Log", np.uint16, (0.15, 4), (-2, 1.4), None),
    ("Max", np.uint16, (0.0005, 0.0257), (0, 0.0257), np.zeros(64, np.float32)),
])
def test_faults_that_the_target_heeds(qnn_python, tmp_path, op, dtype, domain, image, constant):
    """A test that fails says that the emulator has mended the fault: its row may go."""
    net, x = Net(dtype), steep(*domain).astype(np.float32)
    inputs = [net.pair("x", 0, domain[1])]
    if constant is not None:
        inputs.append(net.constant("c", constant))
    net.nodes.append(helper.make_node(op, inputs, ["y"]))
    net.pair("y", *image)
    net.save(tmp_path / "op.onnx", x.shape)
    wanted = literally(tmp_path / "op.onnx", x)
    assert sqnr(wanted, on_emulator(qnn_python, tmp_path / "op.onnx", x, tmp_path)) < 10


def test_a_product_behind_a_converted_input(qnn_python, tmp_path):
    """With a small matrix it does not load; a layer between is enough, and what rule Q16 heeds is the input alone."""
    for between in (True, False):
        net, x = Net(np.uint8), np.random.default_rng(2).random((1, 8, 32), np.float32)
        name = net.pair("x", -1, 1)
        if between:
            net.nodes.append(helper.make_node("Relu", [name], ["r"]))
            name = net.pair("r", 0, 1)
        net.dtype = np.uint16
        scale = net._scale("c", 0 if between else -1, 1)[2]
        net.nodes += [helper.make_node("QuantizeLinear", [name, *scale], ["c_q"]),
                      helper.make_node("DequantizeLinear", ["c_q", *scale], ["c_d"])]
        weight = np.random.default_rng(3).integers(-127, 128, (32, 32)).astype(np.int8)
        net.constants += [numpy_helper.from_array(weight, "w_q"),
                          numpy_helper.from_array(np.full(32, 1e-3, np.float32), "w_s")]
        net.nodes += [helper.make_node("DequantizeLinear", ["w_q", "w_s"], ["w"], axis=1),
                      helper.make_node("MatMul", ["c_d", "w"], ["y"])]
        net.pair("y", -2, 2)
        net.save(tmp_path / "op.onnx", x.shape)
        if between:
            wanted = literally(tmp_path / "op.onnx", x)
            assert sqnr(wanted, on_emulator(qnn_python, tmp_path / "op.onnx", x, tmp_path)) > 30
        else:
            with pytest.raises(AssertionError, match="Failed to finalize QNN graph"):
                on_emulator(qnn_python, tmp_path / "op.onnx", x, tmp_path)


def test_a_compiled_model_gives_the_same_bits(qnn_python, runners, tmp_path):
    out, _ = quantize(tmp_path, "glyph_resnet", runners, output={"context": True})
    compiled = tmp_path / "out.context.onnx"
    nodes = {n.op_type for n in onnx.load(compiled).graph.node}
    assert "EPContext" in nodes and "Conv" not in nodes
    fix_batch(out)
    x = np.load(DATA / "calib_256.npz")["input"][40:41]
    assert np.array_equal(on_emulator(qnn_python, out, x, tmp_path),
                          on_emulator(qnn_python, compiled, x, tmp_path))


def test_a_compiled_model_needs_a_runner(tmp_path):
    done = subprocess.run(
        [QDQ, "quantize", DATA / "glyph_resnet.onnx", "--target", "qnn", "--set",
         "output.context=true", "-o", tmp_path / "out.onnx"], capture_output=True, text=True)
    assert done.returncode != 0 and "/output/context" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bias_behind_large_inputs(runners, tmp_path):
    """A LayerNormalization divides by the deviation of its input, so that its bias needs a scale of its
    own: that of the input, times that of the factor, is larger than the bias here."""
    random = np.random.default_rng(0)
    size = 64
    constants = {"factor": 1 + random.standard_normal(size) / 10, "bias": random.standard_normal(size) / 3,
                 "weight": random.standard_normal((size, size)) / 8}
    graph = helper.make_graph(
        [helper.make_node("LayerNormalization", ["x", "factor", "bias"], ["y"], axis=-1),
         helper.make_node("MatMul", ["y", "weight"], ["z"])], "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, size])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 16, size])],
        [numpy_helper.from_array(np.float32(c), name) for name, c in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              tmp_path / "large.onnx")
    np.savez(tmp_path / "large.npz", x=np.float32(1000 * random.standard_normal((64, 16, size))))
    figures = {}
    for own in (True, False):
        spec = {"target": "qnn", "recipe": "none", "evaluate": {"samples": 4}, "rules": {"Q12": own}}
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run(
            [QDQ, "quantize", tmp_path / "large.onnx", "--calibration", tmp_path / "large.npz",
             "--spec", tmp_path / "spec.json", "--runners", runners, "-o", tmp_path / "out.onnx",
             "--report", tmp_path / "report.json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["kernels"]["floats"] == []
        figures[own] = report["evaluation"]["deployed"]["outputs"][0]["sqnr_db"]
    assert figures[True] > 32 > 29 > figures[False]
