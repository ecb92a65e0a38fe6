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


def on_emulator(python, model, x, folder):
    np.save(folder / "x.npy", x)
    done = subprocess.run([python, RUN_ONCE, model, folder / "x.npy", folder / "y.npy"],
                          capture_output=True, text=True)
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


def test_v68_has_no_gelu(qnn_python, tmp_path):
    """An HTP of v68 does not take the one operator; pairs inside leave the Erf to the processor."""
    conf = tmp_path / "runners.conf"
    conf.write_text(f"[runner htp]\ncommand = {qnn_python} {RUNNER}\nallow = {RUNNER.parent}\ntargets = qnn\n"
                    "provider = QNN\nsoc_model = 30\ntimeout = 300\n")
    _, report = quantize(tmp_path, "glyph_vit", conf, host="v68")
    codes = {warning["code"] for warning in report["warnings"]}
    assert "htp_fallback" in codes and "deployed_not_measured" not in codes
    assert report["evaluation"]["deployed"]["outputs"][0]["sqnr_db"] > 27
    assert "Erf" not in report["kernels"]["ops"]
    floats = report["kernels"]["floats"]  # each Erf, with what the provider says of it
    assert len(floats) == 3 and all("Erf" in row["name"] and row["reason"] for row in floats)


def test_a_gelu_of_two_formats(runners, tmp_path):
    """It falls to the processor; rule Q15 gives both of its ends the wider format. The products on its two
    sides have two formats then, and are float16: their weights are dequantized on the processor."""
    entry = {"name": ["Mul_2"], "activations": {"dtype": "uint16"}}  # the last node of the first GELU
    for joined in (True, False):
        _, report = quantize(tmp_path, "glyph_vit", runners, layers=[entry], rules={"Q15": joined})
        left = {row["name"]: row["reason"] for row in report["kernels"]["floats"]}
        assert ("Erf_0" in left) != joined
        if joined:
            assert set(left) == {"MatMul_4", "MatMul_5"}
            assert all("different formats" in reason for reason in left.values())
            assert report["kernels"]["conversions"] == 6


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
