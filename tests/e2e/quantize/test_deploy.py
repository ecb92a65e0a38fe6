# SPDX-License-Identifier: Apache-2.0
"""The programs at the end of a report run the result as they are printed."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import DATA, FEW_SAMPLES, INSTALLED, QUANTIZE, ROOT


def two_inputs(name="x"):
    """A model with a symbolic size, a scalar input and two types."""
    weight = np.random.default_rng(5).normal(size=(8, 4)).astype(np.float32)
    nodes = [helper.make_node("MatMul", [name, "w"], ["m"]),
             helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Add", ["m", "f"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 8]),
                     helper.make_tensor_value_info("n", TensorProto.DOUBLE, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4])],
        [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def deploy(folder, target, model, *words):
    done = subprocess.run(
        [*QUANTIZE, model, "--target", target, "-o", "model.onnx",
         "--report", "report.json", "--html", "page.html", *map(str, words)], cwd=folder,
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    return {row["language"]: row["text"] for row in report["deploy"] if row["target"] == target}


@pytest.fixture(params=["glyphs", "two inputs"])
def model(request, tmp_path):
    if request.param == "glyphs":
        return [DATA / "glyph_resnet.onnx", "--calibration", FEW_SAMPLES]
    (tmp_path / "m.onnx").write_bytes(two_inputs().SerializeToString())
    return ["m.onnx", "--set", "calibration.random_samples=4"]


def run(folder, text):
    done = subprocess.run([sys.executable, "-c", text + "print(list(outputs))"], cwd=folder,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "array" in done.stdout or "ConstOutput" in done.stdout


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_python(tmp_path, model, target):
    pytest.importorskip(target)
    text = deploy(tmp_path, target, *model)["python"]
    run(tmp_path, text)
    page = (tmp_path / "page.html").read_text()
    assert "How to run it" in page and "import numpy as np" in page


def test_c(tmp_path, model):
    (tmp_path / "run.c").write_text(deploy(tmp_path, "onnxruntime", *model)["c"])
    makefile = (ROOT / "build" / "Makefile").read_text()
    include = re.search(r"^ORT_CFLAGS = (.*)$", makefile, re.MULTILINE)[1].split()
    (library,) = (INSTALLED / "lib").rglob("libonnxruntime.so*")
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", *include, "run.c", library,
                    f"-Wl,-rpath,{library.parent}", "-o", "run"], cwd=tmp_path, check=True)
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_texts_of_tensorrt(tmp_path, model):
    texts = deploy(tmp_path, "tensorrt", *model)
    assert texts["sh"].startswith("trtexec --onnx=model.onnx --stronglyTyped ")
    assert ("'--shapes=x:1x8'" in texts["sh"]) == (model[0] == "m.onnx")
    assert 'platform: "tensorrt_plan"' in texts["config.pbtxt"]


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\\", "a b", "'"])
def test_names_that_do_not_fit(tmp_path, name):
    (tmp_path / "m.onnx").write_bytes(two_inputs(name).SerializeToString())
    assert deploy(tmp_path, "onnxruntime", "m.onnx", "--set", "calibration.random_samples=4") == {}
