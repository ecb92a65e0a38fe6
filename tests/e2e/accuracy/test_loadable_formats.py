# SPDX-License-Identifier: Apache-2.0
"""Each weight gets one of the recipe's formats that the target's runtime loads for its layer."""

import functools
import glob
import itertools
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import QUANTIZE

FORMATS = ("int8", "uint8", "int4", "uint4", "int3", "int2", "uint2", "float8e4m3fn",
           "float8e5m2", "float4e2m1")
SAMPLES = np.random.default_rng(5).standard_normal((24, 32, 6, 6)).astype(np.float32)
[LIBRARY] = glob.glob(str(Path(openvino.__file__).parent / "libs" / "libopenvino_c.so.*"))
CHANNEL, BLOCK = "channel", {"block": 16}


@functools.lru_cache
def net():
    """A layer of each kind that has weights. The last one has columns that fill no bytes of 2 bits."""
    random = np.random.default_rng(3)
    weights = {"a": (32, 32, 3, 3), "b": (32, 1, 3, 3), "c": (32, 32, 2, 2), "d": (32, 48), "e": (48, 33)}
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["1"], "conv", pads=[1] * 4),
        helper.make_node("Conv", ["1", "b"], ["2"], "depthwise", pads=[1] * 4, group=32),
        helper.make_node("ConvTranspose", ["2", "c"], ["3"], "transposed"),
        helper.make_node("GlobalAveragePool", ["3"], ["4"]),
        helper.make_node("Flatten", ["4"], ["5"]),
        helper.make_node("MatMul", ["5", "d"], ["6"], "matmul"),
        helper.make_node("Gemm", ["6", "e"], ["y"], "gemm")]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 33])],
        [numpy_helper.from_array((random.standard_normal(shape) / 8).astype(np.float32), name)
         for name, shape in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def quantize(folder, target, activations, **spec):
    (folder / "net.onnx").write_bytes(net())
    np.savez(folder / "data.npz", x=SAMPLES)
    (folder / "spec.json").write_text(json.dumps({
        "target": target, "opset": "auto", "evaluate": False,
        "activations": {"dtype": activations} if activations else "none", **spec}))
    done = subprocess.run(
        [*QUANTIZE, folder / "net.onnx", "--spec", folder / "spec.json", "--calibration",
         folder / "data.npz", "-o", folder / "q.onnx", "--report", folder / "report.json"],
        capture_output=True, text=True, env={**os.environ, "QDQD_ENGINE_OPENVINO": LIBRARY})
    report = json.loads((folder / "report.json").read_text()) if done.returncode == 0 else None
    return report, done.stderr


def runs(folder, target):
    """Returns whether the runtime itself loads and runs the result."""
    try:
        if target == "openvino":
            openvino.Core().compile_model(str(folder / "q.onnx"), "CPU")([SAMPLES[:2]])
        else:
            judge.run(str(folder / "q.onnx"), {"x": SAMPLES[:2]})
    except Exception:  # each runtime has classes of its own
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("granularity", [CHANNEL, BLOCK], ids=["channel", "block"])
@pytest.mark.parametrize("target,activations", [
    ("onnxruntime", None), ("onnxruntime", "uint8"), ("openvino", None), ("openvino", "uint8")])
def test_each_pair_of_formats_loads(tmp_path, target, activations, granularity):
    """Where one of two formats loads for all layers, so does what is chosen of both."""
    alone = {}
    for name in FORMATS:
        report, said = quantize(tmp_path, target, activations, recipe="none",
                                weights={"dtype": name, "granularity": granularity})
        assert report, said
        alone[name] = runs(tmp_path, target)
    assert any(alone.values()) and not all(alone.values())
    for pair in itertools.combinations(FORMATS, 2):
        report, said = quantize(tmp_path, target, activations, weights={"granularity": granularity},
                                recipe={"formats": list(pair), "max_size_ratio": 0.24})
        if not report:
            assert not alone[pair[0]] and not alone[pair[1]], (pair, said)
            assert "loads none of the formats" in said and "/recipe/formats" in said
            continue
        assert runs(tmp_path, target), (pair, report["warnings"])
        # By rule V18 a ConvTranspose has int8 in the place of uint8.
        assert {w["dtype"] for w in report["weights"]} <= {*pair, *(["int8"] if "uint8" in pair else [])}


@pytest.mark.parametrize("target,activations,formats,left,why", [
    ("onnxruntime", "uint8", ["int2", "int4"], "int2", "2 bits behind activations"),
    ("onnxruntime", "uint8", ["float8e4m3fn", "int8"], "float8e4m3fn", "8-bit floats behind"),
    ("onnxruntime", None, ["float4e2m1", "int8"], "float4e2m1", "no kernel"),
    ("openvino", None, ["int8", "int2"], "int2", "does not read weights of int2"),
    ("tensorrt", None, ["uint4", "int4"], "uint4", "takes weights of"),
    ("tensorrt", "int8", ["int4", "int8"], "int4", "cannot multiply"),
])
def test_what_is_left_out_is_said(tmp_path, target, activations, formats, left, why):
    report, said = quantize(tmp_path, target, activations, weights={"granularity": CHANNEL},
                            recipe={"formats": formats, "max_size_ratio": 0.3})
    assert report, said
    told = [w for w in report["warnings"] if w["code"] == "format_left_out"]
    assert told and all(f"cannot have {left}" in w["detail"] for w in told)
    assert any(why in w["detail"] for w in told)
    assert "target_format" not in {w["code"] for w in report["warnings"]} or target == "tensorrt"
    assert left not in {w["dtype"] for w in report["weights"] if w["layer"] == told[0]["node"]}


def test_a_layer_without_any_stays_as_it_is(tmp_path):
    """The runtime packs 2 bits wrongly where columns fill no bytes."""
    report, said = quantize(tmp_path, "onnxruntime", None, weights={"granularity": BLOCK},
                            recipe={"formats": ["int2", "uint2"], "max_size_ratio": 0.5})
    assert report, said
    assert {w["layer"] for w in report["weights"]} == {"conv", "depthwise", "matmul"}
    told = [w for w in report["warnings"] if w["code"] == "format_left_out"]
    assert {w["node"] for w in told} == {"gemm"} and all("C26" in w["detail"] for w in told)


@pytest.mark.parametrize("target,activations,formats,why", [
    ("onnxruntime", None, ["float4e2m1"], "no kernel"),
    ("openvino", None, ["int2", "uint2"], "does not read"),
    ("tensorrt", None, ["uint4", "float8e5m2"], "takes weights of")])
def test_formats_of_which_none_loads(tmp_path, target, activations, formats, why):
    report, said = quantize(tmp_path, target, activations,
                            recipe={"formats": formats, "max_size_ratio": 0.5})
    assert not report
    assert "unsupported" in said and "loads none of the formats" in said and why in said, said


def test_tensorrt_has_blocks_where_it_takes_them(tmp_path):
    """A Gemm and a MatMul have blocks, and a Conv has a scale for each channel in the same result."""
    report, said = quantize(tmp_path, "tensorrt", None, weights={"granularity": BLOCK},
                            recipe={"formats": ["int4", "int8"], "max_size_ratio": 0.45})
    assert report, said
    found = {w["layer"]: w["granularity"] for w in report["weights"]}
    assert found["conv"] == "channel"
    assert "block" in found.values()
    assert not {"target_format", "recipe_goal_missed"} & {w["code"] for w in report["warnings"]}
    assert report["summary"]["size_after"] <= 0.45 * report["summary"]["size_before"]
    frozen = report["recipe"][-1]["spec"]
    again, said = quantize(tmp_path, "tensorrt", None, **{
        k: v for k, v in frozen.items() if k not in ("target", "activations", "opset")})
    assert again, said


def test_integers_are_stored_where_bytes_count(tmp_path):
    """Target tensorrt stores floats behind a pair, which save no bytes."""
    report, said = quantize(tmp_path, "tensorrt", "int8",
                            recipe={"formats": ["int8"], "max_size_ratio": 0.55})
    assert report, said
    assert report["summary"]["size_after"] < 0.55 * report["summary"]["size_before"]
