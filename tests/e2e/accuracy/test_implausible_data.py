# SPDX-License-Identifier: Apache-2.0
"""Data that cannot be what the model was made for: no result is called good by it, and the same
networks are as good as before with data that is right."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import CALIBRATION, DATA, QUANTIZE, from_bench, repeats

GLYPHS = ["glyph_resnet", "glyph_mobilenet", "glyph_se", "glyph_vit"]
TARGETS = ["tensorrt", "onnxruntime"]


def images():
    return np.load(CALIBRATION)["input"][:64]


def some(turn=0):
    """Returns the rows of all networks and targets, of which a network for each target is no
    repetition; another turn has others."""
    return [(repeats, lambda *row: row)[n == (turn + 2 * t) % len(GLYPHS)](name, target)
            for t, target in enumerate(TARGETS) for n, name in enumerate(GLYPHS)]


def quantize(folder, model, data, **spec):
    """Returns the report, or the last line of the errors."""
    paths = {name: folder / name for name in ("d.npz", "s.json", "o.onnx", "r.json")}
    if isinstance(data, np.ndarray):
        np.savez(paths["d.npz"], input=data)
        data = paths["d.npz"]
    paths["s.json"].write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, model, "--spec", paths["s.json"], "--calibration", data,
                           "-o", paths["o.onnx"], "--report", paths["r.json"]],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(paths["r.json"].read_text())


def found(report):
    return [w["detail"] for w in report["warnings"] if w["code"] == "data_implausible"]


@pytest.mark.parametrize("name, target", some(1))
def test_good_data(tmp_path, name, target):
    placed = {"recipe": "none", "rules": {"C15": True}} if target == "onnxruntime" else {}
    report = quantize(tmp_path, DATA / f"{name}.onnx", CALIBRATION, target=target, **placed)
    assert found(report) == []
    assert report["summary"]["verdict"] == "good"


BAD = {
    "uint8": (lambda x: np.round(x * 255), None),
    "zeros": (np.zeros_like, "all elements of the first 64 samples are 0"),
    "constant": (lambda x: np.full_like(x, 0.5), "all elements of the first 64 samples are 0.5"),
    "one sample": (lambda x: x[:1], "the data is a single sample"),
    "one of them": (lambda x: np.repeat(x[:1], 64, 0), "63 of the first 64 samples are equal"),
}


@pytest.mark.parametrize("name, target", some())
@pytest.mark.parametrize("what", BAD)
def test_bad_data_is_never_good(tmp_path, name, target, what):
    make, text = BAD[what]
    report = quantize(tmp_path, DATA / f"{name}.onnx", make(images()), target=target)
    assert report["summary"]["verdict"] != "good"
    said = " ".join(found(report))
    assert (text or "the float model") in said, said


@pytest.mark.parametrize("name", ["glyph_mobilenet", *map(repeats, ["glyph_resnet", "glyph_se", "glyph_vit"])])
def test_integers_are_refused(tmp_path, name):
    """Integers for a float input are an error that says what to write. With `cast` they are
    taken as they are, and are not good; scaled by `preprocess` they are the images."""
    model = DATA / f"{name}.onnx"
    raw = np.round(images() * 255).astype(np.uint8)
    said = quantize(tmp_path, model, raw)
    assert said.startswith("qdq: calibration_mismatch: input 'input' wants float32")
    assert '"calibration": {"cast": true}' in said and '"preprocess": {"input"' in said
    cast = quantize(tmp_path, model, raw, calibration={"cast": True})
    assert cast["summary"]["verdict"] != "good" and found(cast)
    assert cast["spec"]["calibration"]["cast"] is True
    scaled = quantize(tmp_path, model, raw, preprocess={"input": {"scale": 1 / 255}})
    assert scaled["summary"]["verdict"] == "good" and not found(scaled)


def test_preprocess_is_what_numpy_computes(tmp_path):
    """Arrays that are scaled here have the same ranges, to the last bit, as those that NumPy has
    scaled."""
    model = DATA / "glyph_resnet.onnx"
    raw = np.round(images() * 255).astype(np.uint8)
    scale, mean, std = np.float32(0.00392), np.float32(0.25), np.float32(0.75)
    by_numpy = (raw.astype(np.float32) * scale - mean) / std
    ranges = [{t["name"]: (t["min"], t["max"]) for t in quantize(
        tmp_path, model, data, calibration={"method": "minmax"}, **more)["tensors"]}
        for data, more in ((by_numpy, {}), (raw, {"preprocess": {"input": {
            "scale": 0.00392, "mean": [0.25], "std": 0.75}}}))]
    assert ranges[0] == ranges[1]


WRONG = [
    ({"x": 1}, "/preprocess/x"),
    ({"input": {"scale": 0}}, "/preprocess/input/scale"),
    ({"input": {"std": [1, 0]}}, "/preprocess/input/std"),
    ({"input": {"mean": []}}, "/preprocess/input/mean"),
    ({"input": {"layout": "hwc"}}, "/preprocess/input/layout"),
    ({"input": {"mean": [1, 2], "std": [1, 2, 3]}}, "/preprocess/input"),
    ({"input": {"crop": 3}}, "/preprocess/input/crop"),
    ({"other": {"scale": 2}}, "/preprocess/other"),
]


@pytest.mark.parametrize("preprocess, pointer", WRONG)
def test_wrong_preprocess(tmp_path, preprocess, pointer):
    said = quantize(tmp_path, DATA / "glyph_resnet.onnx", CALIBRATION, preprocess=preprocess)
    assert pointer in said


def test_channels_last(tmp_path):
    model = DATA / "glyph_resnet.onnx"
    said = quantize(tmp_path, model, images().transpose(0, 2, 3, 1))
    assert "the data looks like NHWC" in said and "numpy.transpose(x, (0, 3, 1, 2))" in said
    # A model that declares no sizes: its first convolution tells.
    open_model = onnx.load(model)
    for dim in open_model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "d" + str(id(dim))
    onnx.save(open_model, tmp_path / "open.onnx")
    said = quantize(tmp_path, tmp_path / "open.onnx", images().transpose(0, 2, 3, 1))
    assert "read by a convolution of 1 channels" in said and "NHWC" in said


def cubes(channels_last):
    """Images of eight channels that are eight wide and high, and smooth: the shape does not tell
    the layout."""
    random = np.random.default_rng(5)
    grid = np.linspace(0, 2, 8)
    phase = random.uniform(0, 6, (64, 8, 1, 1))
    level = random.normal(0, 2, (64, 8, 1, 1))
    x = np.sin(grid[:, None] + phase) * np.cos(grid[None, :] - phase) + level
    return (x.transpose(0, 2, 3, 1) if channels_last else x).astype(np.float32)


def cube_net():
    random = np.random.default_rng(6)
    weights = [numpy_helper.from_array(random.normal(0, 0.2, shape).astype(np.float32), name)
               for name, shape in (("w", (8, 8, 3, 3)), ("v", (5, 8)))]
    nodes = [helper.make_node("Conv", ["input", "w"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("GlobalAveragePool", ["c"], ["p"]),
             helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("Gemm", ["f", "v"], ["y"], transB=1)]
    return helper.make_model(helper.make_graph(
        nodes, "cube", [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 8, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])], weights),
        opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("channels_last", [False, True])
def test_channels_last_of_equal_sizes(tmp_path, channels_last):
    onnx.save(cube_net(), tmp_path / "m.onnx")
    report = quantize(tmp_path, tmp_path / "m.onnx", cubes(channels_last))
    assert any("NHWC" in text for text in found(report)) == channels_last


def test_low_percentile(tmp_path):
    spec = {"calibration": {"method": "percentile", "percentile": 40}}
    report = quantize(tmp_path, DATA / "glyph_resnet.onnx", CALIBRATION, **spec)
    assert any("/calibration/percentile" in text for text in found(report))
    spec["calibration"]["percentile"] = 60
    report = quantize(tmp_path, DATA / "glyph_resnet.onnx", CALIBRATION, **spec)
    assert not found(report)


mutations = from_bench("verdicts.mutations")
# The short form of bench/verdicts/mutations.py: of the numbers whose results lose accuracy, one of each
# kind.
LOSE = [3, 28, 41, *map(repeats, [52, 91, 112])]


@pytest.mark.parametrize("number", LOSE)
def test_mutation_that_loses_accuracy(tmp_path, number):
    """A result that loses more than five points is not called good, and does not pass by labels."""
    model, _, values = mutations.mutation(number)
    report = mutations.quantize(tmp_path, model, values, {"target": "tensorrt"})
    if mutations.top1(DATA / f"{model}.onnx") - mutations.top1(tmp_path / "o.onnx") <= mutations.LOST:
        pytest.skip("this processor loses less")
    assert report["summary"]["verdict"] != "good"
    spec = {"target": "tensorrt", "task": {"kind": "classification"},
            "accept": {"max_task_drop": mutations.LOST}}
    assert mutations.quantize(tmp_path, model, values, spec, "--evaluation",
                              mutations.labelled(tmp_path)) is None
