# SPDX-License-Identifier: Apache-2.0
"""Rule Q15 of the target qnn: a GELU of several nodes, which is one operator of the HTP, has one format, also
where an entry or the recipe gives 16 bits to one of its nodes alone."""

import json
import subprocess

import pytest

from service import DATA, QUANTIZE

INPUT, OUTPUT = "/Add_4_output_0", "/Mul_2_output_0"  # of the first GELU of glyph_vit


def formats(folder, node, **rules):
    entry = {"name": [node], "activations": {"dtype": "uint16"}}
    (folder / "spec.json").write_text(json.dumps(
        {"target": "qnn", "recipe": "none", "evaluate": False, "layers": [entry], "rules": {"Q18": False, **rules}}))
    done = subprocess.run(
        [*QUANTIZE, DATA / "glyph_vit.onnx", "--calibration",
         DATA / "calib_256.npz", "--spec", folder / "spec.json", "-o", folder / "out.onnx", "--report",
         folder / "report.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["dtype"] for row in json.loads((folder / "report.json").read_text())["tensors"]}
    assert "uint8" in rows.values(), "the other layers stay as they are"
    return rows[INPUT], rows[OUTPUT]


@pytest.mark.parametrize("node", ["Mul_2", "Div_0"])  # the last node of it, and one that reads the input
def test_a_gelu_has_one_format(tmp_path, node):
    assert formats(tmp_path, node) == ("uint16", "uint16")


def test_without_the_rule_it_has_two(tmp_path):
    assert formats(tmp_path, "Mul_2", Q15=False, Q16=False) == ("uint8", "uint16")
