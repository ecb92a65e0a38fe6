# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with the weights: int4 in blocks of 32 of decoders of 108 MB, and
before a release of 2.7 GB and 28 GB. The 28 GB share two ranges of one file, the rest of
which is a hole; the results (4.4 GB) are counted and removed. The small one takes 4 seconds of
a processor."""

import json
import os

import pytest

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
