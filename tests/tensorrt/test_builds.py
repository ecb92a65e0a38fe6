# SPDX-License-Identifier: Apache-2.0
"""TensorRT takes what is handed out for it, or the report says before that it does not."""

import json
import os
import subprocess

import onnx
import onnx.version_converter
import pytest

from service import DATA, INSTALLED

CODES = {"target_format", "block_does_not_divide", "target_cannot_load"}
NETS = "glyph_resnet", "glyph_vit", "glyph_mobilenet"
FORMATS = "int8", "int4", "uint4", "float8e4m3fn", "float4e2m1", "int3", "int2"
OWN_BLOCKS = "mxfp4", "mxfp6", "mxfp8", "nvfp4"
OPSETS = {"float4e2m1": 23, "int2": 25, "mxfp4": 24, "mxfp6": 28, "mxfp8": 24, "nvfp4": 23}
QDQ = os.environ.get("QDQ", INSTALLED / "bin" / "qdq")
MISREAD = {"uint8"}  # taken for int8 where all zero points are 0, which is said


def specs():
    """Returns (name, opset, spec)."""
    yield "int8", 17, {}
    yield "float16", 17, {"float": "float16"}
    yield "storage", 17, {"weights": {"storage": "dq"}}
    yield "alone in float", 17, {"activations": "none", "weights": {"storage": "qdq"}}
    for name in ("uint8", "int16", "float8e4m3fn", "float8e5m2"):
        yield name, 21, {"activations": {"dtype": name}}
    for name in FORMATS:
        for block in (None, 32, 64, 128):
            weights = {"dtype": name}
            if block:
                weights["granularity"] = {"block": block}
            if name != "int3":  # stored as integers alone
                yield f"{name} {block}", OPSETS.get(name, 21), {"weights": weights}
            yield (f"{name} {block} alone", OPSETS.get(name, 21),
                   {"weights": weights, "activations": "none"})
    for name in OWN_BLOCKS:
        for matrices in (False, True):
            entries = [{"class": "Conv", "quantize_weight": False}] if matrices else []
            yield (f"{name} {'of matrices' if matrices else 'alone'}", OPSETS[name],
                   {"weights": {"dtype": name}, "activations": "none", "layers": entries,
                    "on_unmatched": "warn"})
    if os.environ.get("QDQD_ALL_FIGURES"):
        for opset in (13, 19, 20, 22, 24, 25):
            yield f"opset {opset}", opset, {}
            yield f"opset {opset} float16", opset, {"float": "float16"}


ROWS = [(net, *row) for i, row in enumerate(specs()) for net in NETS
        if os.environ.get("QDQD_ALL_FIGURES") or i < 8 or NETS.index(net) == i % 3]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("nets"), {}

    def convert(net, opset):
        if (net, opset) not in made:
            model = onnx.load(str(DATA / f"{net}.onnx"))
            if model.opset_import[0].version < opset:
                model = onnx.version_converter.convert_version(model, opset)
            model.ir_version = 10 if opset < 23 else 11
            made[net, opset] = folder / f"{net}-{opset}.onnx"
            onnx.save(model, made[net, opset])
        return made[net, opset]

    return convert


def quantize(folder, model, spec):
    (folder / "s.json").write_text(json.dumps({"target": "tensorrt", "evaluate": False, **spec}))
    done = subprocess.run([QDQ, "quantize", model, "--spec", folder / "s.json", "--calibration",
                           DATA / "calib_32.npz", "-o", folder / "q.onnx", "--report",
                           folder / "r.json", "--threads", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "q.onnx", json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize("net,name,opset,spec", ROWS, ids=lambda v: v if isinstance(v, str) else "")
def test_refusals_are_said(tmp_path, plan_of, converted, net, name, opset, spec):
    model, report = quantize(tmp_path, converted(net, opset), spec)
    plan = plan_of(model)
    said = CODES & {warning["code"] for warning in report["warnings"]}
    left = {"block_does_not_divide"} if any(
        layer["reason"].startswith(("rule:T29", "rule:T33")) for layer in report["layers"]) else set()
    if plan.errors:
        assert said - left, plan.errors
    else:
        assert said == left or name in MISREAD


@pytest.mark.parametrize("net", [*NETS, "glyph_se"])
def test_planned_integers_are_integers(tmp_path, plan_of, net):
    model, report = quantize(tmp_path, DATA / f"{net}.onnx", {})
    plan = plan_of(model)
    assert plan.errors == []
    wanted = [layer["name"] for layer in report["layers"] if layer["weight_quantized"] and
              layer["quantized_inputs"] and layer["op"] in ("Conv", "Gemm", "MatMul")]
    assert len(wanted) > 10
    assert [name for name in wanted if not plan.integer_kernels(name)] == []


def test_attention_is_one_kernel(tmp_path, plan_of):
    default = plan_of(quantize(tmp_path, DATA / "glyph_vit.onnx", {})[0])
    model, report = quantize(tmp_path, DATA / "glyph_vit.onnx", {
        "cases": ["attention"], "float": "float16"})
    plan = plan_of(model)
    products = [layer["name"] for layer in report["layers"]
                if layer["reason"] == "case:attention"]
    assert len(products) == 6
    assert all("T24" in layer["rules"] for layer in report["layers"]
               if layer["reason"] == "case:attention")
    fused = [k for k in plan.kernels if len(set(products) & set(k["nodes"])) == 2]
    assert len(fused) == 3 and all("Int8" in k["inputs"] for k in fused)
    assert plan.kilobytes <= 0.42 * default.kilobytes


@pytest.mark.parametrize("net", [*NETS, "glyph_se"])
def test_average_pools_need_no_pair(tmp_path, plan_of, net):
    """With version rtx-1.7 they have none: the kernels stay, and read and write as many bytes."""
    default = plan_of(quantize(tmp_path, DATA / f"{net}.onnx", {})[0])
    model, report = quantize(tmp_path, DATA / f"{net}.onnx", {"version": "rtx-1.7"})
    plan = plan_of(model)
    left = [layer for layer in report["layers"] if layer["reason"] == "rule:T30"]
    assert bool(left) == (net != "glyph_vit")
    assert len(plan.kernels) == len(default.kernels)
    assert plan.kilobytes == default.kilobytes
