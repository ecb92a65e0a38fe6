# SPDX-License-Identifier: Apache-2.0
"""Scales of caches are those of ONNX Runtime GenAI's own calibration, by each of its methods."""

import json
import subprocess

import numpy as np
import onnx
import pytest

import decoders
from service import QUANTIZE

# Those of a tensor are the largest of the others.
CASES = [("few", "int8_per_channel"), ("few", "int8_per_tensor"), ("few", "int4_per_channel"),
         ("few", "int4_per_tensor"), ("many", "int8_per_channel"), ("many", "int4_per_channel")]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The model, 20 samples that are kept whole, and 260 of which 47 positions each are kept."""
    path = tmp_path_factory.mktemp("decoder")
    onnx.save(decoders.decoder(), path / "model.onnx")
    np.save(path / "few.npy", decoders.ids(20, 40, seed=9))
    np.save(path / "many.npy", decoders.ids(260, 60, seed=9))
    return path


@pytest.mark.parametrize("method, percentile", [("minmax", 99.99), ("percentile", 99.99),
                                                ("percentile", 91.7), ("mse", 99.99)])
@pytest.mark.parametrize("data, scheme", CASES)
def test_scales_are_those_of_genai(tmp_path, small, calibrate_caches, data, scheme, method,
                                   percentile):
    ids = small / f"{data}.npy"
    want = calibrate_caches(small / "model.onnx", ids, scheme, method, percentile)
    chosen = {"scheme": scheme, "method": method}
    if method == "percentile":
        chosen["percentile"] = percentile
    spec = {"target": "onnxruntime", "activations": "none", "recipe": "none", "evaluate": False,
            "weights": {"dtype": "uint4", "granularity": {"block": 32}},
            "calibration": {"max_samples": len(np.load(ids))}, "output": {"kv_cache": chosen}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([*QUANTIZE, small / "model.onnx", "--spec", tmp_path / "spec.json",
                           "--calibration", ids, "-o", tmp_path / "out.onnx"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    got = json.loads((tmp_path / "out.kv_scales.json").read_text())
    assert got["qmax"] == want["qmax"] and got["layer_ids"] == want["layer_ids"]
    for name in ("k_scales", "v_scales"):
        np.testing.assert_allclose(got["scales"][name], want["scales"][name], rtol=1e-6)
