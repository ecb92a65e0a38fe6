# SPDX-License-Identifier: Apache-2.0
"""Target openvino: what OpenVINO itself makes of the results, on one thread in float32."""

import json
import subprocess

import numpy as np
import openvino
import pytest

import judge
from service import DATA, INSTALLED

PLAIN = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
WEIGHTS_ALONE = {"activations": "none",
                 "weights": {"dtype": "int4", "granularity": {"block": 32}}}


@pytest.fixture(scope="module")
def core():
    return openvino.Core()


@pytest.fixture(scope="module")
def images():
    images = np.load(DATA / "test_1000.npz")["images"][:100]
    return images.reshape(-1, 1, 32, 32).astype(np.float32) / 255


def quantize(folder, name, **spec):
    (folder / "spec.json").write_text(json.dumps({"target": "openvino", **spec}))
    done = subprocess.run(
        [INSTALLED / "bin/qdq", "quantize", DATA / f"{name}.onnx", "--spec",
         folder / "spec.json", "--calibration", DATA / "calib_256.npz", "-o",
         folder / "q.onnx", "--report", folder / "report.json"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "q.onnx", json.loads((folder / "report.json").read_text())


def run(core, path, images):
    """The outputs, and the kernels by the type of operator that they ran."""
    model = core.compile_model(core.read_model(path), "CPU", {**PLAIN, "PERF_COUNT": True})
    request = model.create_infer_request()
    outputs = request.infer([images])[model.outputs[0]]
    return outputs, [(node.node_type, node.exec_type)
                     for node in request.get_profiling_info()
                     if node.status == node.Status.EXECUTED]


# The third column is a margin below what OpenVINO 2026.4.1 gives without VNNI, which
# is the smaller figure: 34.1, 26.1, 29.5, 27.6 over 1,000 images.
@pytest.mark.parametrize("name, least", [
    ("glyph_resnet", 32), ("glyph_vit", 24), ("glyph_mobilenet", 27.5), ("glyph_se", 25.5)])
def test_it_runs_in_integers(tmp_path, core, images, name, least):
    path, report = quantize(tmp_path, name)
    real, _ = run(core, DATA / f"{name}.onnx", images)
    made, kernels = run(core, path, images)
    assert judge.sqnr_db(real, made) > least
    convolutions = [kernel for kind, kernel in kernels if kind == "Convolution"]
    assert convolutions and all(kernel.endswith("I8") for kernel in convolutions)
    assert report["evaluation"]["deployed"] is None
    assert "deployed_not_measured" in {w["code"] for w in report["warnings"]}


@pytest.mark.parametrize("host, products", [("avx2", False), ("vnni", True)])
def test_products_go_by_the_host(tmp_path, host, products):
    _, report = quantize(tmp_path, "glyph_vit", host=host, evaluate=False)
    for layer in report["layers"]:
        if layer["op"] in ("Gemm", "MatMul") and layer["class"] == "Dense":
            assert bool(layer["quantized_inputs"]) == products, layer["name"]
            assert ("V1" if products else "V4") in layer["rules"]
    assert report["spec"]["rules"]["C7"] == (not products)


def test_blocks_stay_compressed(tmp_path, core, images):
    path, _ = quantize(tmp_path, "glyph_vit", **WEIGHTS_ALONE)
    real, _ = run(core, DATA / "glyph_vit.onnx", images)
    made, _ = run(core, path, images)
    assert judge.sqnr_db(real, made) > 5
    assert path.stat().st_size < 0.35 * (DATA / "glyph_vit.onnx").stat().st_size


def test_a_block_that_does_not_divide_is_left(tmp_path, core, images):
    """OpenVINO would refuse to load the model otherwise."""
    spec = json.loads(json.dumps(WEIGHTS_ALONE))
    spec["weights"]["granularity"]["block"] = 48
    path, report = quantize(tmp_path, "glyph_vit", **spec)
    left = [layer for layer in report["layers"] if "V6" in layer["rules"]]
    assert left and not any(layer["weight_quantized"] for layer in left)
    [warning] = [w for w in report["warnings"] if w["code"] == "block_does_not_divide"]
    assert warning["rule"] == "V6" and warning["node"] == left[0]["name"]
    assert warning["detail"].startswith(f"{len(left)} layers")
    run(core, path, images[:1])


@pytest.mark.parametrize("weights, activations, warned", [
    ("int8", "uint8", 0), ("int8", "int8", 0), ("int8", "uint16", 1)])
def test_formats_without_kernels_are_said(tmp_path, weights, activations, warned):
    _, report = quantize(tmp_path, "glyph_resnet", evaluate=False,
                         weights={"dtype": weights}, activations={"dtype": activations},
                         opset="auto")
    assert sum(w["code"] == "target_format" for w in report["warnings"]) == warned
