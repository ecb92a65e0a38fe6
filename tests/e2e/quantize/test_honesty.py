# SPDX-License-Identifier: Apache-2.0
"""The architecture's promises, checked from outside the processes: workers are processes,
the daemon never loads ONNX Runtime, weights are not copied into memory, and calibration
keeps no activations."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import judge
from service import CALIBRATION, DATA, PeakMemory

MIB = 1 << 20


def maps(pid):
    return Path(f"/proc/{pid}/maps").read_text()


def test_a_worker_is_a_process_of_its_own(held, service):
    one = service(**held)
    job = one.submit_glyphs(calibration=CALIBRATION)
    (worker,) = one.running(job)
    assert worker != one.process.pid
    parent = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1]
    assert int(parent) == one.process.pid
    one.post(f"/v1/jobs/{job}/cancel")


def test_the_daemon_never_loads_a_model_runner(daemon):
    answer = daemon.quantize(DATA / "glyph_resnet.onnx", CALIBRATION)
    assert answer.status_code == 200, answer.text
    assert any("libonnxruntime" in maps(worker) for worker in daemon.workers())
    daemon.post("/v1/plan", files={
        "model": ("m", (DATA / "glyph_vit.onnx").read_bytes())}).raise_for_status()
    assert "libonnxruntime" not in maps(daemon.process.pid)
    assert "sha256" not in maps(daemon.process.pid), "a stored file is mapped"


@pytest.fixture(scope="module")
def big_model(tmp_path_factory):
    """Returns a model with 100 MB of random weights: six square matrices."""
    rng = np.random.default_rng(7)
    side = 2048
    nodes, weights = [], []
    for i in range(6):
        values = rng.standard_normal((side, side), np.float32)
        weights.append(onnx.numpy_helper.from_array(values, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"],
                                      f"mm{i}"))
    graph = helper.make_graph(
        nodes, "big", [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [1, side])],
        [helper.make_tensor_value_info("t6", TensorProto.FLOAT, [1, side])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                              ir_version=8)
    path = tmp_path_factory.mktemp("big") / "big.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_do_not_pass_through_memory(daemon, big_model):
    """Neither daemon nor worker holds the weights while 100 MB are uploaded and
    quantized."""
    size = big_model.stat().st_size
    assert size > 100e6
    ranges = {f"t{i}": [-1, 1] for i in range(6)}
    with PeakMemory(lambda: [daemon.process.pid]) as network, \
            PeakMemory(daemon.workers) as engine:
        with open(big_model, "rb") as body:
            answer = daemon.post("/v1/models", data=body)
        assert answer.status_code == 201, answer.text
        job = daemon.submit(model=answer.json()["id"],
                            spec={"calibration": {"ranges": ranges}})
        daemon.succeeded(job)
    print(f"100 MB model: daemon {network.peak / 1024:.1f} MiB, "
          f"worker {engine.peak / 1024:.1f} MiB of their own")
    assert network.samples > 20 and engine.samples > 20 and engine.peak > 0
    assert network.peak * 1024 < 32 * MIB
    assert engine.peak * 1024 < size / 2
    result = daemon.result(job)
    pairs = judge.Pairs(onnx.load_model_from_string(result))
    assert len(pairs.tensors()) == 12


def test_integers_do_not_pass_through_memory(daemon, big_model):
    """Integer weights are made while the result is written, piece by piece, and are never
    in memory as a whole."""
    with open(big_model, "rb") as body:
        model = daemon.post("/v1/models", data=body).json()["id"]
    ranges = {f"t{i}": [-1, 1] for i in range(6)}
    with PeakMemory(daemon.workers) as engine:
        job = daemon.submit(model=model,
                            spec={"weights": {"storage": "dq", "method": "mse"},
                                  "calibration": {"ranges": ranges}})
        daemon.succeeded(job)
    result = onnx.load_model_from_string(daemon.result(job))
    size = sum(len(t.raw_data) for t in result.graph.initializer
               if t.name.endswith("_quantized"))
    assert size == 6 * 2048 * 2048
    print(f"{size / MIB:.0f} MiB of integers: worker {engine.peak / 1024:.1f} MiB")
    assert engine.samples > 20 and engine.peak > 0
    assert engine.peak * 1024 < size / 2, "not half of the integers, an eighth of the floats"


def test_calibration_keeps_no_activations(daemon, tmp_path):
    """Four times as many samples take no more memory. An observer that was an extra graph
    output, or kept its input, would show here."""
    images = np.load(CALIBRATION)["input"]
    peaks = []
    for repeat in (1, 4):
        data = tmp_path / f"{repeat}.npz"
        np.savez(data, input=np.concatenate([images] * repeat))
        job = daemon.submit_glyphs(calibration=data, spec={"evaluate": False})
        with PeakMemory(daemon.workers) as memory:
            daemon.succeeded(job)
        assert {t["samples"] for t in daemon.report(job)["tensors"]} == {256 * repeat}
        assert memory.samples > 20
        peaks.append(memory.peak)
    print("worker's own memory with 256 and 1,024 images: "
          + ", ".join(f"{p / 1024:.1f} MiB" for p in peaks))
    assert peaks[1] <= peaks[0] + 16 * 1024


def test_quantize_carries_out_the_plan(daemon):
    """The pairs in the result equal those of the plan."""
    for name in ("glyph_resnet", "glyph_mobilenet", "glyph_vit", "glyph_se"):
        model = daemon.upload("models", DATA / f"{name}.onnx")
        plan = daemon.post("/v1/plan", json={"model": model}).json()
        planned = {row["name"]: (row["quantized_inputs"], row["weight_quantized"])
                   for row in plan["layers"]}
        job = daemon.submit_glyphs(name, CALIBRATION, spec={"evaluate": False})
        daemon.succeeded(job)
        table = judge.Pairs(judge.load(daemon.result(job))).table()
        found = {n: (rows[0], bool(rows[1])) for n, rows in table.items()}
        nothing = ([], False)
        assert {n: row for n, row in found.items() if row != nothing} == {
            n: row for n, row in planned.items() if row != nothing}, name
