# SPDX-License-Identifier: Apache-2.0
"""The digest of a file that the command has read before is kept in the user's cache folder."""

import hashlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

BUILD = Path(__file__).resolve().parents[3] / "build"
FALSE = "sha256:" + "5" * 64


@pytest.fixture
def folder():
    """A folder on a disk: no digest is kept of a file in memory."""
    with tempfile.TemporaryDirectory(dir=BUILD) as path:
        yield Path(path)


def make_model(path, seed=0):
    """A dense layer of 2 MiB."""
    weight = numpy.random.default_rng(seed).standard_normal((512, 1024), numpy.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "dense")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 512])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1024])],
        [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)


def source_model(folder, **environment):
    """Quantizes and returns the id of the model by the report, which is that in the result."""
    done = subprocess.run(
        [*QUANTIZE, "in.onnx", "--set", "calibration.random_samples=2", "-o", "out.onnx", "--report", "r.json"],
        cwd=folder, env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **environment},
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = {p.key: p.value for p in onnx.load(folder / "out.onnx").metadata_props}
    report = json.loads((folder / "r.json").read_text())
    assert told["qdqd.source_model"] == report["model"]["id"]
    return report["model"]["id"]


def sha256(path):
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def wait_until_settled():
    time.sleep(4)


def records(folder):
    return sorted((folder / "cache/qdq/digests").glob("*"))


def plant(folder):
    """Writes a false digest into the record, which tells whether it is read."""
    record, = records(folder)
    *facts, _ = record.read_text().splitlines()
    record.write_text("\n".join([*facts, FALSE, ""]))
    return record


def test_a_digest_is_kept_until_the_file_changes(folder):
    make_model(folder / "in.onnx")
    assert source_model(folder) == sha256(folder / "in.onnx")
    assert records(folder) == [], "the file had changed within two seconds"
    wait_until_settled()
    digest = sha256(folder / "in.onnx")
    assert source_model(folder) == digest
    record, = records(folder)
    before = os.stat(folder / "in.onnx")
    assert record.name == f"{before.st_dev:x}-{before.st_ino:x}"
    assert record.read_text().endswith(f"\n{digest}\n")
    plant(folder)
    assert source_model(folder) == FALSE, "the record is what was read"

    # Other bytes of the same size, with the time of the bytes set back: that of attributes tells.
    make_model(folder / "other.onnx", seed=1)
    with open(folder / "in.onnx", "r+b") as file:
        file.write((folder / "other.onnx").read_bytes())
    os.utime(folder / "in.onnx", ns=(before.st_atime_ns, before.st_mtime_ns))
    after = os.stat(folder / "in.onnx")
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert source_model(folder) == sha256(folder / "in.onnx") != digest
    wait_until_settled()
    assert source_model(folder) == sha256(folder / "in.onnx")
    assert records(folder) == [record] and FALSE not in record.read_text()


@pytest.mark.parametrize("text", ["", "qdq digest 1\n", "sha256:", None])
def test_a_damaged_record_counts_as_none(folder, text):
    make_model(folder / "in.onnx")
    wait_until_settled()
    source_model(folder)
    record = plant(folder)
    record.write_text(record.read_text()[:-3] if text is None else text)
    assert source_model(folder) == sha256(folder / "in.onnx")
    assert FALSE not in record.read_text()


def test_without_a_folder_no_digest_is_kept(folder):
    make_model(folder / "in.onnx")
    wait_until_settled()
    (folder / "file").write_text("")
    digest = sha256(folder / "in.onnx")
    assert source_model(folder, XDG_CACHE_HOME=str(folder / "file")) == digest
    assert not (folder / "cache").exists()


def test_external_data_are_kept_as_files_of_their_own(folder):
    make_model(folder / "whole.onnx")
    onnx.save(onnx.load(folder / "whole.onnx"), folder / "in.onnx", save_as_external_data=True,
              location="weights.bin", size_threshold=0)
    wait_until_settled()
    first = source_model(folder)
    record = plant(folder)
    assert record.name.endswith(f"-{os.stat(folder / 'weights.bin').st_ino:x}")
    assert source_model(folder) != first
    record.unlink()
    assert source_model(folder) == first
