# SPDX-License-Identifier: Apache-2.0
"""weights.rounding and bias_correction: what they gain on the networks of tests/data, and
that what-ifs, frozen specs and stored integers have the same numbers."""

import io
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import judge
from service import CALIBRATION, DATA, QUANTIZE, repeats

pytestmark = pytest.mark.long
MODELS = ["resnet", "vit", "mobilenet", "se"]
INT4 = {"weights": {"dtype": "int4"}}
UINT8 = {"activations": {"dtype": "uint8", "symmetric": False}}
ALONE = {"activations": "none"}
BLOCKS = {"granularity": {"block": 32}}

# The least SQNR in dB over the logits of the 1,000 test images, with all 256 images for
# calibration, for each of MODELS. Rounding is gptq.
FIGURES = {
    "int8": ({}, (34.0, 31.5, 28.4, 25.5)),
    "int8 per tensor": ({"weights": {"granularity": "tensor"}}, (33.8, 31.2, 27.7, 25.0)),
    "uint8 activations": (UINT8, (39.5, 34.7, 32.5, 29.2)),
    "int4": (INT4, (24.8, 19.0, 18.7, 17.8)),
    "int4 alone": ({**INT4, **ALONE}, (25.4, 19.2, 19.1, 18.8)),
    "int4 blocks": ({"weights": {"dtype": "int4", **BLOCKS}, **ALONE},
                    (26.5, 19.8, 19.7, 19.9)),
    "int4 blocks, scales by moments": (
        {"weights": {"dtype": "int4", **BLOCKS, "scales": "moments"}, **ALONE},
        (27.5, 22.2, 21.6, 21.5)),
    "int4 blocks, full range": (
        {"weights": {"dtype": "int4", **BLOCKS, "range": "full"}, **ALONE},
        (27.2, 20.8, 20.5, 21.0)),
    "uint4 blocks": ({"weights": {"dtype": "uint4", **BLOCKS}, **ALONE},
                     (27.1, 21.3, 20.4, 21.0)),
}
# All figures take minutes: tools/check --release asks for them.
CHOSEN = list(FIGURES) if os.environ.get("QDQD_ALL_FIGURES") else ["int4"]


def quantize(folder, model="vit", data=CALIBRATION, **spec):
    (folder / "spec.json").write_text(json.dumps({"opset": "auto", **spec}))
    path = model if isinstance(model, Path) else DATA / f"glyph_{model}.onnx"
    done = subprocess.run([*QUANTIZE, path, "--spec", "spec.json",
                           "--calibration", data, "-o", "out.onnx", "--report",
                           "report.json"], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    return done, folder / "out.onnx", folder / "report.json"


def with_rounding(spec, rounding):
    return {**spec, "weights": {**spec.get("weights", {}), "rounding": rounding}}


@pytest.mark.parametrize("model", ["vit", "mobilenet", repeats("resnet"), repeats("se")])
@pytest.mark.parametrize("name", CHOSEN)
def test_sqnr_that_compensated_rounding_reaches(tmp_path, name, model):
    spec, least = FIGURES[name]
    done, out, _ = quantize(tmp_path, model, evaluate=False,
                            **with_rounding(spec, "gptq"))
    assert done.returncode == 0, done.stderr
    assert sqnr_of(out, model) >= least[MODELS.index(model)]


def sqnr_of(out, model):
    """SQNR in dB over the logits of the 1,000 test images."""
    images = np.load(DATA / "test_1000.npz")["images"].astype(np.float32) / 255
    want = judge.run(DATA / f"glyph_{model}.onnx", {"input": images})
    return judge.sqnr_db(want, judge.run(out, {"input": images}, integers=False))


@pytest.mark.parametrize("dtype, least", [("int8", 33.6), ("int4", 24.4)])
def test_channels_of_different_size_are_equalized_and_rounded(tmp_path, dtype, least):
    done, out, report = quantize(tmp_path, "resnet_skewed", evaluate=False, equalize=True,
                                 weights={"dtype": dtype, "rounding": "gptq"})
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text())["equalization"]
    assert any(row["reason"] == "equalized" for row in rows)
    assert sqnr_of(out, "resnet_skewed") >= least


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The first 32 images for calibration: enough where no figure is judged."""
    path = tmp_path_factory.mktemp("small") / "data.npz"
    np.savez(path, input=np.load(CALIBRATION)["input"][:32])
    return path


def test_a_what_if_has_the_numbers_that_are_written(tmp_path, small):
    """A search that leaves nothing in float judges the model as it is evaluated."""
    done, _, report = quantize(tmp_path, data=small, evaluate={"samples": 32},
                               search={"min_sqnr_db": 1, "samples": 32},
                               **with_rounding(INT4, "gptq"))
    assert done.returncode == 0, done.stderr
    report = json.loads(report.read_text())
    assert report["search"]["float_layers"] == []
    found = report["search"]["curve"][0]["sqnr_db"]
    assert abs(found - report["evaluation"]["outputs"][0]["sqnr_db"]) < 0.05


def test_sensitivity_sees_the_rounded_weights(tmp_path, small):
    """Each layer alone does less harm with integers that make up for each other's errors."""
    alone = {}
    for rounding in ("nearest", "gptq"):
        done, _, report = quantize(tmp_path, data=small, evaluate=False,
                                   sensitivity={"samples": 32}, **ALONE,
                                   **with_rounding(INT4, rounding))
        assert done.returncode == 0, done.stderr
        rows = json.loads(report.read_text())["sensitivity"]
        alone[rounding] = {row["name"]: row["sqnr_db_alone"] for row in rows}
    assert alone["nearest"].keys() == alone["gptq"].keys()
    gains = [alone["gptq"][name] - db for name, db in alone["nearest"].items()]
    assert len(gains) > 10 and np.median(gains) > 3 and min(gains) > -1, gains


def test_auto_without_bias_correction_is_gptq_or_nothing(tmp_path, small):
    """For 8 bits nothing is left of `auto`; for 4 bits it is gptq, and biases stay."""
    made = {}
    for bits, rounding in ((8, "nearest"), (8, "auto"), (4, "auto"), (4, "gptq")):
        done, out, _ = quantize(tmp_path, data=small, evaluate=False, bias_correction=False,
                                **with_rounding({"weights": {"dtype": f"int{bits}"}},
                                                rounding))
        assert done.returncode == 0, done.stderr
        constants = onnx.load(out).graph.initializer
        assert not any(t.name.endswith("_corrected") for t in constants)
        made[bits, rounding] = integers(out)
    for bits, other in ((8, "nearest"), (4, "gptq")):
        ours, theirs = made[bits, "auto"], made[bits, other]
        assert ours.keys() == theirs.keys() and len(ours) > 10
        assert all((q == theirs[name]).all() for name, q in ours.items())


def test_a_frozen_spec_repeats_the_bytes(tmp_path, small):
    done, out, report = quantize(tmp_path, data=small, evaluate=False,
                                 **with_rounding(INT4, "auto"))
    assert done.returncode == 0, done.stderr
    first = out.read_bytes()
    frozen = json.loads(report.read_text())["spec"]
    assert frozen["weights"]["rounding"] == "auto" and frozen["bias_correction"] is True
    done, out, _ = quantize(tmp_path, data=small, **frozen)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == first


def integers(path):
    """The integers that a model's weights become, by the weight's name: computed from the
    float weight behind Q and DQ, or stored."""
    graph = onnx.load(path).graph
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    found = {}
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] in stored:
            x, s, z = (stored[name] for name in node.input)
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
            shape = [-1 if i == axis else 1 for i in range(x.ndim)] if s.ndim else []
            q = np.rint(x / s.reshape(shape)) + z.astype(np.float32).reshape(shape)
            found[node.input[0].removesuffix("_rounded")] = q.astype(np.int64)
        elif node.op_type == "DequantizeLinear" and node.input[0] in stored:
            found[node.input[0].removesuffix("_quantized")] = stored[
                node.input[0]].astype(np.int64)
    return found


def test_both_storages_have_the_same_integers(tmp_path, small):
    made = {}
    for storage in ("qdq", "dq"):
        done, out, _ = quantize(tmp_path, data=small, evaluate=False,
                                weights={"rounding": "gptq", "storage": storage})
        assert done.returncode == 0, done.stderr
        onnx.checker.check_model(out)
        made[storage] = integers(out)
    assert made["qdq"].keys() == made["dq"].keys() and len(made["dq"]) > 10
    for name, q in made["qdq"].items():
        assert (q == made["dq"][name]).all(), name


def test_bias_correction_takes_out_the_mean(tmp_path, small):
    """The mean of the output on the calibration data is nearer to that of the float model."""
    inputs = np.load(small)["input"]
    want = judge.run(DATA / "glyph_resnet.onnx", {"input": inputs}).mean(axis=0)
    off = []
    for correct in (False, True):
        done, out, _ = quantize(tmp_path, "resnet", small, evaluate=False,
                                bias_correction=correct, **INT4, **ALONE)
        assert done.returncode == 0, done.stderr
        got = judge.run(out, {"input": inputs}).mean(axis=0)
        off.append(float(np.abs(got - want).mean()))
    assert off[1] < off[0] / 2, off


@pytest.fixture(scope="module")
def unbiased(tmp_path_factory):
    """A Conv, a Gemm and a MatMul without biases, and inputs whose mean is not 0."""
    random = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("unbiased")
    nodes = [helper.make_node("Conv", ["x", "w1"], ["a"], "conv", pads=[1] * 4),
             helper.make_node("Relu", ["a"], ["b"], "relu"),
             helper.make_node("GlobalAveragePool", ["b"], ["c"], "pool"),
             helper.make_node("Flatten", ["c"], ["d"], "flatten"),
             helper.make_node("Gemm", ["d", "w2"], ["e"], "gemm", transB=1),
             helper.make_node("MatMul", ["e", "w3"], ["y"], "matmul")]
    weights = [numpy_helper.from_array(
        (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)
        for name, shape in (("w1", (16, 8, 3, 3)), ("w2", (24, 16)), ("w3", (24, 20)))]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 8, 9, 9])],
        [helper.make_tensor_value_info("y", 1, ["n", 20])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                ir_version=10), folder / "model.onnx")
    np.savez(folder / "data.npz",
             x=(random.standard_normal((64, 8, 9, 9)) + 0.5).astype(np.float32))
    return folder


@pytest.mark.parametrize("target, made, gain", [("tensorrt", 3, 6), ("onnxruntime", 2, 2)])
def test_layers_without_a_bias_get_one(tmp_path, unbiased, target, made, gain):
    """Where the target computes it at no cost. `existing` leaves them as they are, and the
    frozen spec repeats either."""
    spec = {"target": target, "recipe": "none", "activations": "none",
            "weights": {"dtype": "int4"}}
    sqnr, files = {}, {}
    for biases in (False, "existing", True):
        done, out, report = quantize(tmp_path, unbiased / "model.onnx", unbiased / "data.npz",
                                     **spec, bias_correction=biases)
        assert done.returncode == 0, done.stderr
        onnx.checker.check_model(out)
        files[biases] = out.read_bytes()
        report = json.loads(report.read_text())
        sqnr[biases] = report["evaluation"]["outputs"][0]["sqnr_db"]
        counts = [w["detail"].split()[0] for w in report["warnings"]
                  if w["code"] == "biases_made"]
        assert counts == ([str(made)] if biases is True else [])
        assert report["spec"].get("bias_correction", False) == biases
        done, out, _ = quantize(tmp_path, unbiased / "model.onnx", unbiased / "data.npz",
                                **report["spec"])
        assert done.returncode == 0, done.stderr
        assert out.read_bytes() == files[biases]
    assert sqnr["existing"] == sqnr[False]
    assert sqnr[True] > sqnr[False] + gain, sqnr


def test_target_onnxruntime_stores_corrected_biases(tmp_path, small):
    done, out, report = quantize(tmp_path, "resnet", small, target="onnxruntime",
                                 weights={"rounding": "auto"})
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(out)
    report = json.loads(report.read_text())
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 30


@pytest.mark.parametrize("spec, pointer", [
    ({"weights": {"rounding": "adaround"}}, "/weights/rounding"),
    ({"bias_correction": "yes"}, "/bias_correction"),
])
def test_a_wrong_value_is_named(tmp_path, small, spec, pointer):
    done, _, _ = quantize(tmp_path, data=small, **spec)
    assert done.returncode == 1 and pointer in done.stderr, done.stderr


def test_without_data_it_is_said_what_lacks(tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(
        {"weights": {"dtype": "int8", "rounding": "gptq"}, **ALONE}))
    done = subprocess.run([*QUANTIZE, DATA / "glyph_vit.onnx", "--spec", "spec.json", "-o",
                           "out.onnx"], cwd=tmp_path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "/weights/rounding" in done.stderr and "calibration data" in done.stderr


def test_a_layer_that_cannot_be_observed_is_named(tmp_path):
    """A transposed convolution has no moments: it is rounded to the nearest integers."""
    weight = np.random.default_rng(1).standard_normal((3, 4, 3, 3)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("ConvTranspose", ["x", "w"], ["y"], "up")], "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["n", 3, 8, 8])],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(weight, "w")])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    data = io.BytesIO()
    np.savez(data, x=np.random.default_rng(2).random((4, 3, 8, 8), np.float32))
    (tmp_path / "data.npz").write_bytes(data.getvalue())
    (tmp_path / "spec.json").write_text(json.dumps(
        {"weights": {"rounding": "gptq"}, "layers": [{"class": "ConvTranspose"}]}))
    done = subprocess.run([*QUANTIZE, "net.onnx", "--spec",
                           "spec.json", "--calibration", "data.npz", "-o", "out.onnx",
                           "--report", "report.json"], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    warnings = json.loads((tmp_path / "report.json").read_text())["warnings"]
    assert [w["node"] for w in warnings if w["code"] == "rounded_to_nearest"] == ["w"]
