# SPDX-License-Identifier: Apache-2.0
"""Calibration with many samples, and with a large one: a worker's memory does not grow
with them."""

import gzip
import json
import subprocess
import zipfile

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import QUANTIZE, PeakMemory
from test_data import sets, tarred, unzipped

pytestmark = pytest.mark.long
GB = 10 ** 9
RANDOM = np.random.default_rng(5)


def net(inner):
    """Returns y = x w over any number of rows, with a small weight."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        rows (float[n, {inner}] x) => (float[n, 4] y) {{ y = MatMul (x, w) }}""")
    weight = RANDOM.standard_normal((inner, 4)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def quantize(folder, model, data):
    """Returns the report of `qdq quantize` with the default spec, and its peak memory in
    bytes."""
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    command = [*QUANTIZE, folder / "m.onnx", "--calibration",
               data, "-o", folder / "o.onnx", "--report", folder / "r.json"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        with PeakMemory(lambda: [process.pid]) as memory:
            _, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert memory.peak > 0
    return json.loads((folder / "r.json").read_text()), memory.peak * 1024


# --- many samples ------------------------------------------------------------------------

MANY = 10_000
SMALL = RANDOM.standard_normal((MANY, 1, 16)).astype(np.float32)


def expect_all(report):
    assert report["calibration"]["samples"] == MANY
    (tensor,) = (t for t in report["tensors"] if t["name"] == "x")
    assert tensor["samples"] == MANY
    assert (np.float32(tensor["min"]) < -3) and (np.float32(tensor["max"]) > 3)
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 20


def test_many_samples_as_files(tmp_path):
    """Each sample is a file of a compressed archive, of which only the position stays in
    memory."""
    packed = tarred(unzipped(sets([{"x": sample} for sample in SMALL])))
    (tmp_path / "d.tgz").write_bytes(gzip.compress(packed, 1))
    report, peak = quantize(tmp_path, net(16), tmp_path / "d.tgz")
    expect_all(report)
    assert peak < 0.1 * GB


def test_many_samples_in_the_daemon(daemon, tmp_path):
    np.savez(tmp_path / "d.npz", x=SMALL)
    model = daemon.upload("models", net(16).SerializeToString())
    data = daemon.upload("datasets", (tmp_path / "d.npz").read_bytes())
    with PeakMemory(daemon.workers) as memory:
        job = daemon.ended(daemon.submit(model=model, calibration=data))
    assert job["state"] == "succeeded", job
    expect_all(daemon.get(f"/v1/jobs/{job['id']}/report").json())
    assert 0 < memory.peak * 1024 < 0.1 * GB


# --- one large sample ---------------------------------------------------------------------

INNER = 256
LARGE = GB // 2
ROWS = LARGE // (4 * INNER) + 1
BLOCK = 1 << 13  # rows


def write_large(path, packed):
    """Writes one sample of LARGE bytes [1, ROWS, INNER], in which a few rows repeat."""
    block = np.zeros((BLOCK, INNER), np.float32)
    block[:, ::8] = RANDOM.integers(-8, 9, (BLOCK, INNER // 8)) / 4
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    header = {"descr": "<f4", "fortran_order": False, "shape": (1, ROWS, INNER)}
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, header)
            for at in range(0, ROWS, BLOCK):
                member.write(block[:ROWS - at].tobytes())
    return block


@pytest.mark.parametrize("packing", ["stored", "deflated"])
def test_one_large_sample(tmp_path, packing):
    block = write_large(tmp_path / "d.npz", packing == "deflated")
    report, peak = quantize(tmp_path, net(INNER), tmp_path / "d.npz")
    (tmp_path / "d.npz").unlink()
    assert report["calibration"]["samples"] == 1
    (tensor,) = (t for t in report["tensors"] if t["name"] == "x")
    assert abs(tensor["scale"] * 127 / np.abs(block).max() - 1) < 0.1
    assert report["evaluation"]["samples"] == 1
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 30
    assert peak < 2 * LARGE
