# SPDX-License-Identifier: Apache-2.0
"""The moments of layers' inputs: collected while calibration runs, kept with the
observations, and what rounding makes of them."""

import json
import os
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

import moments
from service import CALIBRATION, DATA, FEW_SAMPLES, QUANTIZE

pytestmark = pytest.mark.long
GPTQ = {"rounding": "gptq"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The first 32 images for calibration."""
    path = tmp_path_factory.mktemp("small") / "data.npz"
    np.savez(path, input=np.load(CALIBRATION)["input"][:32])
    return path


def quantize(folder, model, data, *more, **spec):
    spec = {"opset": "auto", "evaluate": False, **spec}
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, DATA / f"glyph_{model}.onnx", "--spec", "spec.json",
                           "--calibration", data, "-o", "out.onnx", "--report",
                           "report.json", *more], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    return (folder / "out.onnx").read_bytes(), report["calibration"]["inferences"]


def test_moments_take_no_runs_of_their_own_and_serve_later_jobs(tmp_path, small):
    kept = ["--observations", "kept"]
    alone, runs = quantize(tmp_path, "vit", small, weights=GPTQ)
    assert runs == 32
    first, runs = quantize(tmp_path, "vit", small, *kept, weights=GPTQ)
    assert runs == 32 and first == alone
    for weights in ({"dtype": "int4", **GPTQ}, {"rounding": "auto"}):
        alone, _ = quantize(tmp_path, "vit", small, weights=weights)
        again, runs = quantize(tmp_path, "vit", small, *kept, weights=weights)
        assert runs == 0 and again == alone


def test_observations_without_moments_get_them_later(tmp_path, small):
    kept = ["--observations", "kept"]
    plain, _ = quantize(tmp_path, "resnet", small, *kept)
    alone, _ = quantize(tmp_path, "resnet", small, weights=GPTQ)
    got, runs = quantize(tmp_path, "resnet", small, *kept, weights=GPTQ)
    assert runs == 32 and got == alone
    got, runs = quantize(tmp_path, "resnet", small, *kept, weights=GPTQ)
    assert runs == 0 and got == alone
    got, runs = quantize(tmp_path, "resnet", small, *kept)
    assert runs == 0 and got == plain


def rows_of(graph, name, array):
    """The weight as outputs by inputs."""
    for node in graph.node:
        if name in node.input:
            if node.op_type == "MatMul":
                return array.T
            across = any(a.name == "transB" and a.i for a in node.attribute)
            return array if node.op_type == "Conv" or across else array.T
    raise AssertionError(name)


def scale_ids(scale, weight, axis, block):
    """The index of each element's scale, in the shape of the weight."""
    ids = np.arange(scale.size)
    if scale.ndim < weight.ndim:
        shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
        return np.broadcast_to(ids.reshape(shape), weight.shape)
    ids = np.repeat(ids.reshape(scale.shape), block, axis)
    return ids.take(range(weight.shape[axis]), axis)


def first_scales(w, of, unsigned, limit):
    """The scales that cover the weights: [outputs, scales]."""
    blocks = [w[:, of == b] for b in range(of.max() + 1)]
    if unsigned:
        need = [np.maximum(b.max(axis=1), 0) - np.minimum(b.min(axis=1), 0) for b in blocks]
        return np.stack(need, axis=1) / (2 * limit + 1)
    return np.stack([np.abs(b).max(axis=1) for b in blocks], axis=1) / limit


FORMATS = [("vit", "int8", 0, False), ("resnet", "int8", 0, True),
           ("mobilenet", "int8", 0, True), ("vit", "int4", 32, True)]
# The rest takes longer: tools/check --release asks for it.
if os.environ.get("QDQD_ALL_FIGURES"):
    FORMATS += [("resnet", "int4", 0, False), ("vit", "int4", 0, True), ("vit", "uint4", 32, False)]


@pytest.mark.parametrize("model, dtype, block, centred", FORMATS)
def test_integers_are_those_of_float64(tmp_path, small, model, dtype, block, centred):
    """At most one integer of 10,000 differs from numpy's, from the same moments and
    first scales."""
    weights = {"granularity": {"block": block}} if block else {}
    quantize(tmp_path, model, small, "--observations", "kept", bias_correction=centred,
             weights={"dtype": dtype, "storage": "dq", **weights, **GPTQ},
             **({"activations": "none"} if block else {}))
    before = onnx.load(DATA / f"glyph_{model}.onnx").graph
    after = onnx.load(tmp_path / "out.onnx").graph
    floats = {t.name: onnx.numpy_helper.to_array(t) for t in before.initializer}
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in after.initializer}
    reader = {n.input[0]: n for n in after.node if n.op_type == "DequantizeLinear"}
    found = moments.read(tmp_path / "kept")
    bits, unsigned = int(dtype[-1]), dtype.startswith("u")
    n = differ = far = 0
    for name, groups in found.items():
        quantized = next(q for q in reader if q.removesuffix("_quantized") == name)
        scale, zero = (stored.get(i) for i in (*reader[quantized].input, "", "")[1:3])
        axis = next((a.i for a in reader[quantized].attribute if a.name == "axis"), 1)
        ids = rows_of(before, name, scale_ids(scale, floats[name], axis, block))
        w = rows_of(before, name, floats[name].astype(np.float64))
        got = rows_of(before, name, stored[quantized].astype(np.int64)).reshape(len(w), -1)
        w, ids = w.reshape(len(w), -1), ids.reshape(len(w), -1)
        _, first, of = np.unique(ids[0], return_index=True, return_inverse=True)
        made = scale.ravel()[ids[:, first]].astype(np.float64)
        zero = zero.ravel()[ids[:, first]].astype(np.int64) if unsigned else 0 * made
        scales = first_scales(w, of, unsigned, 2 ** (bits - 1) - 1)
        each = len(w) // len(groups)
        for g, moment in enumerate(groups):
            part = slice(g * each, (g + 1) * each)
            assert np.linalg.eigvalsh(moment.blocks[0]).min() > -1e-3
            want, fitted = moments.round_rows(w[part], scales[part], of, moment, bits,
                                              centred, zero[part])
            n += want.size
            differ += int((want + zero[part][:, of] != got[part]).sum())
            far += int((np.abs(fitted / made[part] - 1) > 1e-5).sum())
    assert n > 50_000 and differ * 10_000 <= n, (differ, n)
    assert far * 1_000 <= n, (far, n)


def test_blocks_of_int4_become_a_kernel_of_onnxruntime(tmp_path):
    """A layer of a language model: onnxruntime multiplies by the int4 blocks themselves, and
    compensated rounding brings decibels there, too."""
    k, n, block = 256, 192, 32
    random = np.random.default_rng(4)
    weight = random.standard_normal((k, n)).astype(np.float32) / 16
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "proj")], "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["n", "t", k])],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(weight, "w")])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "net.onnx")
    mix = random.standard_normal((16, k))
    x = (random.standard_normal((8, 64, 16)) @ mix).astype(np.float32)
    x += random.standard_normal(x.shape).astype(np.float32) / 2
    np.savez(tmp_path / "data.npz", x=x)
    noise = {}
    for rounding in ("nearest", "gptq"):
        (tmp_path / "spec.json").write_text(json.dumps(
            {"activations": "none", "evaluate": False, "weights": {
                "dtype": "int4", "granularity": {"block": block}, "storage": "dq",
                "rounding": rounding}}))
        done = subprocess.run([*QUANTIZE, "net.onnx", "--spec", "spec.json",
                               "--calibration", "data.npz", "-o", "out.onnx"],
                              cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "out.onnx"), options,
                                               providers=["CPUExecutionProvider"])
        run = onnx.load(tmp_path / "optimized.onnx").graph.node
        assert [node.op_type for node in run] == ["MatMulNBits"]
        noise[rounding] = float(((session.run(None, {"x": x})[0] - x @ weight) ** 2).sum())
    assert 10 * np.log10(noise["nearest"] / noise["gptq"]) > 3, noise


def test_moments_of_a_job_for_another_target_change_nothing(service):
    """The tensors that a target observes decide what the runtime fuses, and so the last bits of moments:
    those that an earlier job has kept would round some weights otherwise."""
    spec = {"target": "onnxruntime", "recipe": "none", "weights": {"rounding": "gptq"},
            "bias_correction": True}
    results = []
    for first in (None, {"target": "tensorrt", "weights": {"rounding": "gptq"}}):
        daemon = service()
        model = daemon.upload("models", (DATA / "glyph_resnet.onnx").read_bytes())
        data = daemon.upload("datasets", FEW_SAMPLES.read_bytes())
        for one in filter(None, (first, spec)):
            job = daemon.submit(model=model, calibration=data, spec=one)
            daemon.succeeded(job)
        results.append(daemon.get(f"/v1/jobs/{job}/model").content)
    assert results[0] == results[1]
