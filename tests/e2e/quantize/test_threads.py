# SPDX-License-Identifier: Apache-2.0
"""Weights that are quantized while the result is written, and those whose scales are computed
before: the same bytes for any number of threads, and the numbers that the reference gives.
About 15 seconds of a processor."""

import hashlib
import json
import os
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from service import INSTALLED

QDQ = INSTALLED / "bin" / "qdq"
# Nothing here runs a model. Without ONNX Runtime tools/tsan sees the command's threads alone.
ALONE = {**os.environ, "QDQD_ENGINE_RUNTIME": ""}
SPEC = {"target": "onnxruntime", "recipe": "none", "evaluate": False,
        "activations": "none"}
# Rows and columns of MatMul's weights: one piece, several, odd numbers of columns, a last
# block that is short, more columns than a piece has elements.
SHAPES = [(64, 32), (1024, 700), (333, 1001), (2000, 257), (34, 270_000)]


def weight(random, rows, columns, kind=np.float32):
    return random.normal(0, 0.02, (rows, columns)).astype(kind)


def net(weights, transposed=()):
    """Returns a model with one dense layer for each weight, each with an input."""
    nodes, inputs, outputs = [], [], []
    for name, values in weights.items():
        kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        of = values.shape[1] if name in transposed else values.shape[0]
        inputs.append(helper.make_tensor_value_info(f"x_{name}", kind, ["n", of]))
        outputs.append(helper.make_tensor_value_info(f"y_{name}", kind, None))
        op = {"op_type": "Gemm", "transB": 1} if name in transposed else {
            "op_type": "MatMul"}
        nodes.append(helper.make_node(inputs=[f"x_{name}", name], outputs=[f"y_{name}"],
                                      name=f"layer_{name}", **op))
    graph = helper.make_graph(nodes, "net", inputs, outputs, [
        numpy_helper.from_array(values, name) for name, values in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                             ir_version=10)


@pytest.fixture(scope="module")
def weights():
    random = np.random.default_rng(26)
    made = {f"w{i}": weight(random, *shape) for i, shape in enumerate(SHAPES)}
    made["half"] = weight(random, 512, 900, np.float16)
    made["dead"] = weight(random, 1024, 600)
    made["dead"][256:512, 100:400] = 0  # blocks of zeros, in some of the pieces
    made["turned"] = weight(random, 700, 1024)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory, weights):
    folder = tmp_path_factory.mktemp("threads")
    onnx.save(net(weights, {"turned"}), folder / "m.onnx")
    return folder


def quantize(folder, name, threads, model="m.onnx", ok=True, env=ALONE, **spec):
    (folder / "spec.json").write_text(json.dumps({**SPEC, **spec}))
    done = subprocess.run(
        [QDQ, "quantize", folder / model, "--spec", folder / "spec.json", "-o",
         folder / name, "--report", folder / f"{name}.json", "--threads", str(threads)],
        capture_output=True, text=True, env=env)
    assert (done.returncode == 0) == ok, done.stderr
    return (folder / name).read_bytes() if ok else done.stderr


def tensors(data):
    return {t.name: t for t in onnx.load_from_string(data).graph.initializer}


def block_spec(dtype, block, method="max"):
    return {"weights": {"dtype": dtype, "method": method,
                        "granularity": {"block": block}}}


@pytest.mark.parametrize("dtype, block, method", [
    ("int4", 32, "max"), ("uint4", 32, "max"), ("int8", 128, "max"), ("int4", 128, "mse"),
    ("uint4", 50, "mse")])
def test_the_same_bytes_and_those_of_scales_that_are_kept(folder, dtype, block, method):
    spec = block_spec(dtype, block, method)
    numbers = (1, 2, 7) if method == "max" else (1, 7)  # a search takes long
    made = [quantize(folder, f"q{n}.onnx", n, **spec) for n in numbers]
    assert len(set(made)) == 1
    # With data the scales are computed before the result is written, and kept.
    kept = quantize(folder, "kept.onnx", 1, calibration={"random_samples": 1}, **spec)
    ours, theirs = tensors(made[0]), tensors(kept)
    assert ours == theirs
    reports = [json.loads((folder / f"{name}.onnx.json").read_text())
               for name in ("q7", "kept")]
    assert reports[0]["weights"] == reports[1]["weights"]
    check_stages(reports[0], folder, 7)


@pytest.mark.parametrize("dtype, granularity, method", [
    ("int8", "channel", "mse"), ("uint8", "tensor", "max")])
def test_scales_without_blocks_are_the_same(folder, dtype, granularity, method):
    spec = {"weights": {"dtype": dtype, "granularity": granularity, "method": method}}
    assert quantize(folder, "s1.onnx", 1, **spec) == quantize(folder, "s7.onnx", 7, **spec)
    report = json.loads((folder / "s7.onnx.json").read_text())
    threads = {stage["name"]: stage["threads"] for stage in report["stages"]}
    assert threads["quantize"] == 7 and threads["plan"] == 1


def test_the_first_bad_weight_is_named(tmp_path, weights):
    """The threads may come to another one first."""
    bad = {name: values.copy() for name, values in weights.items()}
    bad["w2"][0, 5] = bad["w3"][0, 0] = np.nan
    onnx.save(net(bad, {"turned"}), tmp_path / "m.onnx")
    said = {quantize(tmp_path, "q.onnx", n, ok=False,
                     weights={"dtype": "int8", "granularity": "channel"})
            for n in (1, 2, 7)}
    assert len(said) == 1 and "'w2' holds a NaN or an infinity (channel 5)" in said.pop()


def check_stages(report, folder, threads):
    stages, size = report["stages"], (folder / "m.onnx").stat().st_size
    assert [s["name"] for s in stages] == [n for n in report["timings"] if n != "total"]
    for stage in stages:
        assert stage["seconds"] == report["timings"][stage["name"]]
    peaks = [s["peak_bytes"] for s in stages]
    assert peaks == sorted(peaks) and peaks[0] > 1 << 20
    used = {s["name"]: s for s in stages}
    assert used["load"]["bytes"] == size
    # The weights are read, and the result is written.
    assert used["write"]["bytes"] > 0.9 * size + report["summary"]["size_after"]
    assert used["write"]["threads"] == threads
    # Without a runtime nothing else has several threads.
    assert {s["threads"] for s in stages if s["name"] != "write"} == {1}


def test_the_reference(folder, weights):
    made = tensors(quantize(folder, "r.onnx", 2, **block_spec("int4", 32)))
    for name in ("w1", "w2", "w4", "dead"):
        values = weights[name]
        rows = -(-len(values) // 32)
        amax = np.array([np.abs(values[i * 32:(i + 1) * 32]).max(axis=0)
                         for i in range(rows)])
        alive = np.sort(amax[amax > 0])
        amax[amax == 0] = alive[len(alive) // 2]
        scales = (amax.astype(np.float64) / 7).astype(np.float32)
        got = numpy_helper.to_array(made[f"{name}_scale"])
        assert np.array_equal(got, scales)
        codes = np.clip(np.rint(values / np.repeat(scales, 32, axis=0)[:len(values)]),
                        -8, 7).astype(np.int8)
        raw = np.frombuffer(made[f"{name}_quantized"].raw_data, np.uint8)
        both = np.stack([raw & 15, raw >> 4], axis=1).ravel()[:codes.size]
        assert np.array_equal(both, codes.ravel() & 15)


def test_a_second_file_and_the_id_of_the_model(folder):
    """The model's id is known last, and stands in the result as before."""
    spec = {**block_spec("int4", 32), "output": {"external_data": "always"}}
    for threads in (1, 3):
        made = quantize(folder, f"e{threads}.onnx", threads, **spec)
        data = (folder / f"e{threads}.onnx.data").read_bytes()
        model = onnx.load_from_string(made)
        props = {p.key: p.value for p in model.metadata_props}
        digest = hashlib.sha256((folder / "m.onnx").read_bytes()).hexdigest()
        assert props["qdqd.source_model"] == f"sha256:{digest}"
        report = json.loads((folder / f"e{threads}.onnx.json").read_text())
        assert report["model"]["id"] == f"sha256:{digest}"
        found = (re.sub(rb"e\d.onnx", b"e.onnx", made), data)
        if threads == 1:
            first = found
    assert first == found
    assert "w1_scale" in {t.name for t in model.graph.initializer if t.raw_data}


def test_the_first_of_several_numbers_that_are_not_finite(folder, weights):
    bad = {"a": weights["w1"].copy(), "b": weights["w2"].copy()}
    bad["a"][900, 3] = np.nan  # in block 28
    bad["a"][1000, 0] = np.nan
    bad["b"][0, 0] = np.inf
    onnx.save(net(bad), folder / "bad.onnx")
    texts = {quantize(folder, "bad_q.onnx", n, "bad.onnx", False, **block_spec("int4", 32))
             for n in (1, 2, 7)}
    assert len(texts) == 1
    assert f"'a' holds a NaN or an infinity (channel {28 * 700 + 3})" in texts.pop()
    assert not (folder / "bad_q.onnx").exists()


@pytest.mark.parametrize("columns, is_small", [(9000, False), (2000, True)])
def test_kernels_of_a_large_result_are_not_counted_for_their_own_sake(
        tmp_path, columns, is_small):
    random = np.random.default_rng(1)
    onnx.save(net({"w": weight(random, 2048, columns)}), tmp_path / "m.onnx")
    quantize(tmp_path, "q.onnx", 2, env=os.environ, weights={"dtype": "int8"})
    report = json.loads((tmp_path / "q.onnx.json").read_text())
    texts = [w["detail"] for w in report["warnings"] if w["code"] == "kernels_not_counted"]
    if is_small:
        assert report["kernels"] is not None and texts == []
    else:
        assert report["kernels"] is None
        assert len(texts) == 1 and "for this alone it is not loaded" in texts[0]


