# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with the weights: int4 in blocks of 32 of decoders of 108 MB, and
before a release of 2.7 GB and 28 GB. The 28 GB share two ranges of one file, the rest of
which is a hole; the results (4.4 GB) are counted and removed. The small one takes 4 seconds of
a processor. The plan says what second moments take."""

import json
import os
import resource
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from service import from_bench

make_decoder, common = from_bench("make_decoder"), from_bench("common")
MIB, QDQ, Measured = common.MIB, common.QDQ, common.Measured

SPEC = {"target": "onnxruntime", "recipe": "none", "evaluate": False,
        "activations": "none",
        "weights": {"dtype": "int4", "granularity": {"block": 32}}}
ALL = [("100m", 0), ("682m", 0), ("7b", 2)]


def parameters(size):
    hidden, wide, layers, tokens = make_decoder.SIZES[size]
    return layers * (4 * hidden * hidden + 3 * hidden * wide) + hidden * tokens


@pytest.mark.parametrize("size, ranges",
                         ALL if os.environ.get("QDQD_ALL_FIGURES") else ALL[:1])
def test_memory_is_bounded(tmp_path, size, ranges):
    model = make_decoder.make(tmp_path, size, ranges)
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    out = tmp_path / "out.onnx"
    run = Measured([QDQ, "quantize", model, "--spec", tmp_path / "spec.json", "--threads",
                    2, "-o", out, "--report", tmp_path / "report.json"])
    report = json.loads((tmp_path / "report.json").read_text())
    written = sum(path.stat().st_size for path in tmp_path.glob("out.onnx*"))
    for path in tmp_path.glob(f"{size}.data"):
        path.unlink()
    for path in tmp_path.glob("out.onnx*"):
        path.unlink()
    print(f"{size}: {run.seconds:.1f} s, {run.anonymous / MIB:.1f} MiB")
    # Half a byte for each parameter; four for each block.
    least = parameters(size) / 2 + parameters(size) / 32 * 4
    assert least <= written < least * 1.01 + MIB
    assert len(report["weights"]) == 7 * make_decoder.SIZES[size][2] + 1
    assert run.anonymous < 40 * MIB


def chain(folder, layers, k=4608):
    """Makes products that read tensors of their own. All weights are one hole of a file."""
    weights = [TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[k, k],
                           data_location=TensorProto.EXTERNAL) for i in range(layers)]
    for weight in weights:
        for key, text in ("location", "hole"), ("offset", "0"), ("length", str(4 * k * k)):
            weight.external_data.add(key=key, value=text)
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"], f"layer{i}")
             for i in range(layers)]
    graph = helper.make_graph(nodes, "chain", *(
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k])]
        for name in ("x0", f"x{layers}")), weights)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 21)]), folder / "chain.onnx")
    with open(folder / "hole", "wb") as file:
        os.truncate(file.fileno(), 4 * k * k)
    (folder / "spec.json").write_text(json.dumps(
        {**SPEC, "weights": {**SPEC["weights"], "rounding": "gptq"}}))
    return [folder / "chain.onnx", "--spec", folder / "spec.json"]


@pytest.mark.parametrize("layers, least, most, left", [(8, 0, 0, 0), (20, 1024, 1536, 0),
                                                       (26, 1200, 1800, 3)])
def test_the_memory_of_moments_is_said_before(tmp_path, layers, least, most, left):
    """A moment of 4,608 elements takes 45 MiB, and all of them 1 GiB or half of the weights."""
    arguments = chain(tmp_path, layers)
    plan = subprocess.run([QDQ, "plan", "--json", *arguments], capture_output=True,
                          text=True, timeout=60, check=True)
    warnings = [w["detail"] for w in json.loads(plan.stdout)["warnings"]
                if w["code"] == "much_memory"]
    assert len(warnings) == (least > 0)
    if warnings:
        assert least <= int(warnings[0].split(" MiB")[0].split()[-1]) <= most
        assert ("for the moments of" in warnings[0]) == (left > 0)
    if left:
        assert f"moments of {left} layers" in warnings[0]


def test_too_little_memory_for_moments_is_an_error_before_any_run(tmp_path):
    arguments = chain(tmp_path, 20)
    np.save(tmp_path / "x0.npy", np.zeros((1, 4608), np.float32))
    limit = 512 * MIB
    done = subprocess.run(
        [QDQ, "quantize", *arguments, "--calibration", tmp_path / "x0.npy", "-o",
         tmp_path / "out.onnx"], capture_output=True, text=True, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    assert done.returncode != 0
    assert "limit_exceeded" in done.stderr and "may have 512 MiB" in done.stderr
    assert "(/weights/rounding)" in done.stderr and not (tmp_path / "out.onnx").exists()
