# SPDX-License-Identifier: Apache-2.0
"""A search with target qnn, which takes a MatMul and the bias behind it for one layer (rule Q9): both
stay in float, and so does what clips them. Jobs ended with case_failed."""

import json
import subprocess

import numpy as np
import onnx
from onnx import numpy_helper

from service import QUANTIZE

TEXT = """<ir_version: 9, opset_import: ["": 17]> g (float[n,40] x) => (float[n,12] y) {
    [first] a = MatMul (x, wa) [clip] b = Relu (a) [last] y = MatMul (b, wb) }"""


def quantized(folder, name, spec):
    (folder / "s.json").write_text(json.dumps(spec))
    subprocess.run([*QUANTIZE, folder / "m.onnx", "--spec", folder / "s.json", "--calibration",
                    folder / "d.npz", "-o", folder / name, "--report", folder / "r.json"], check=True)
    return json.loads((folder / "r.json").read_text())


def test_a_bias_is_left_with_its_layer(tmp_path):
    rng = np.random.default_rng(2)
    made = onnx.parser.parse_model(TEXT)
    made.graph.initializer.extend(numpy_helper.from_array(rng.normal(size=size).astype(np.float32), name)
                                  for name, size in {"wa": (40, 48), "wb": (48, 12)}.items())
    onnx.save(made, tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=rng.normal(size=(64, 40)).astype(np.float32))
    report = quantized(tmp_path, "q.onnx", {"target": "qnn", "recipe": "none", "search": {"min_sqnr_db": 41}})
    layers = {row["name"]: row for row in report["layers"]}
    left = {name for name, row in layers.items() if row["reason"] == "search"}
    assert {"first", "first_bias"} <= left and "last" not in left
    assert not layers["first_bias"]["quantized_inputs"] and layers["last"]["weight_quantized"]
    assert report["evaluation"]["outputs"][0]["sqnr_db"] >= 41
    entry = {"name": sorted(left), "quantize_input": False, "quantize_weight": False, "quantization_index": None}
    again = quantized(tmp_path, "again.onnx", {"target": "qnn", "recipe": "none", "layers": [entry]})
    parts = ("name", "quantized_inputs", "quantized_outputs", "weight_quantized")
    assert [[row[part] for part in parts] for row in again["layers"]] == [
        [row[part] for part in parts] for row in report["layers"]]
