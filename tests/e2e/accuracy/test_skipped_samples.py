# SPDX-License-Identifier: Apache-2.0
"""skip_sample: nothing of a sample that is not finite is left in the moments that rounding
uses, nor in the magnitudes that smoothing uses."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from service import QUANTIZE

R = np.random.default_rng(11)
ROWS, CHANNELS = 8, 24
BAD = [0, 7, 8, 21]
TEXT = f"""<ir_version: 8, opset_import: ["": 17]>
net (float[n, {ROWS}, {CHANNELS}] x) => (float[n, {ROWS}, 16] y) {{
  a = Mul (x, g)
  p = MatMul (a, w)
  y = Add (p, b)
}}"""
SPECS = {
    "gptq": {"weights": {"rounding": "gptq", "dtype": "int4", "storage": "dq"}},
    "bias_correction": {"bias_correction": True,
                        "weights": {"dtype": "int4", "storage": "dq"}},
    "smooth": {"smooth": True, "weights": {"storage": "dq"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, samples, and the same samples with others in between. Those have one row with
    a NaN or an infinity, and large finite numbers in the other rows."""
    folder = tmp_path_factory.mktemp("skipped")
    model = onnx.parser.parse_model(TEXT)
    shapes = {"g": (CHANNELS,), "w": (CHANNELS, 16), "b": (16,)}
    for name, shape in shapes.items():
        values = (R.normal(size=shape) + 0.1).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(model, folder / "m.onnx")
    good = bad = R.normal(size=(20, ROWS, CHANNELS)).astype(np.float32)
    for i, value in zip(BAD, [np.nan, np.inf, -np.inf, np.nan]):
        sample = (30 * R.normal(size=(1, ROWS, CHANNELS)) + 20).astype(np.float32)
        sample[0, 3, 5] = value
        bad = np.insert(bad, i, sample, axis=0)
    np.savez(folder / "good.npz", x=good)
    np.savez(folder / "bad.npz", x=bad)
    return folder


def quantize(folder, out, data, spec, *more, batch=4):
    """Returns the constants of the result, and the report."""
    out.mkdir(exist_ok=True)
    calibration = {"method": "minmax", **spec.get("calibration", {}), "batch": batch,
                   "on_nonfinite": "skip_sample"}
    (out / "s.json").write_text(json.dumps({"evaluate": False, **spec,
                                            "calibration": calibration}))
    done = subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", "s.json", "-o", "o.onnx",
                           "--calibration", folder / f"{data}.npz", "--report", "r.json",
                           *more], cwd=out, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    constants = {t.name: numpy_helper.to_array(t).tobytes()
                 for t in onnx.load(out / "o.onnx").graph.initializer}
    return constants, json.loads((out / "r.json").read_text())


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_the_result_is_that_of_the_other_samples(tmp_path, folder, name, batch):
    clean, _ = quantize(folder, tmp_path / "a", "good", SPECS[name], batch=batch)
    ours, report = quantize(folder, tmp_path / "b", "bad", SPECS[name], batch=batch)
    assert any(w["code"] == "sample_skipped" and "4 of 24" in w["detail"]
               for w in report["warnings"])
    assert ours == clean


@pytest.mark.parametrize("name", SPECS)
def test_a_frozen_spec_leaves_out_the_same_samples(tmp_path, folder, name):
    first, report = quantize(folder, tmp_path / "a", "bad", SPECS[name])
    again, _ = quantize(folder, tmp_path / "b", "bad", report["spec"])
    assert again == first


@pytest.mark.parametrize("name", ["gptq", "bias_correction"])
def test_kept_observations_lack_moments(tmp_path, folder, name):
    """A first job that had no use for moments skipped samples. The second one skips them
    again when it collects the moments; the third one runs nothing."""
    kept = ["--observations", tmp_path / "kept"]
    clean, _ = quantize(folder, tmp_path / "a", "good", SPECS[name])
    quantize(folder, tmp_path / "b", "bad", {"weights": {"storage": "dq"}}, *kept)
    for runs in (True, False):
        ours, report = quantize(folder, tmp_path / "c", "bad", SPECS[name], *kept)
        assert bool(report["calibration"]["inferences"]) == runs
        assert ours == clean
