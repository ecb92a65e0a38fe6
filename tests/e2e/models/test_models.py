# SPDX-License-Identifier: Apache-2.0
"""Every row of tests/models/make.py is quantized as it says, valid, and close to the
float model in onnxruntime; or it is refused with the code in the row."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest

import judge
from service import QUANTIZE, ROOT

sys.path.insert(0, str(ROOT / "tests" / "models"))
from make import ROWS, tables  # noqa: E402

BOUNDARY = ("QuantizeLinear", "DequantizeLinear")
ENDED = {}  # row -> "quantized", "refused"; the last test looks at them


class Run:
    """`qdq quantize` of one row."""

    def __init__(self, row, folder):
        self.row, self.model = row, row.model()
        self.source, self.out = folder / "source.onnx", folder / "out.onnx"
        report, spec, data = (folder / n for n in ("report.json", "spec.json", "d.npz"))
        onnx.save(self.model, self.source)
        spec.write_text(json.dumps(row.spec))
        self.data = row.data(self.model)
        np.savez(data, **self.data)
        self.done = subprocess.run(
            [*QUANTIZE, self.source, "--spec", spec,
             "--calibration", data, "-o", self.out, "--report", report],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.report = (json.loads(report.read_text())
                       if self.done.returncode == 0 else None)

    def layers(self):
        return [layer["name"] for layer in self.report["layers"]
                if layer["quantized_inputs"] or layer["weight_quantized"]]

    def warnings(self):
        """Returns the warnings without those about slow kernels on the target and about
        quality, because the models are small and odd."""
        return sorted({w["code"] for w in self.report["warnings"] if not w["rule"]} -
                      {"poor", "slower_than_float", "evaluated_on_calibration", "few_samples",
                       "data_implausible"})

    def samples(self):
        n = len(next(iter(self.data.values())))
        return [{k: np.asarray(v[i]) for k, v in self.data.items()} for i in range(n)]


def outputs(model, samples):
    """Returns the outputs of all samples by name. Duplicate node names are changed first,
    because onnxruntime refuses them."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for node in model.graph.node:
        node.name = ""
    one = judge.session(model.SerializeToString(), optimized=False)
    return list(zip(*(one.run(None, sample) for sample in samples)))


def check_close(run, result):
    real = outputs(run.model, run.samples())
    quantized = outputs(result, run.samples())
    for name, f, q in zip([o.name for o in run.model.graph.output], real, quantized):
        if not isinstance(f[0], np.ndarray) or f[0].dtype.kind not in "f":
            assert len(f) == len(q)
            continue
        f, q = (np.concatenate([one.astype(np.float64).ravel() for one in part])
                for part in (f, q))
        assert f.shape == q.shape
        if not np.array_equal(f, q):
            assert judge.sqnr_db(f, q) > run.row.sqnr_db, name


def all_pairs(graph):
    for node in graph.node:
        if node.op_type == "DequantizeLinear":
            yield node
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from all_pairs(a.g)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_row(row, tmp_path):
    run = Run(row, tmp_path)
    if row.checks:
        onnx.checker.check_model(run.model, full_check=row.runs)
    if row.error:
        assert run.done.returncode == 1, run.done.stderr
        assert f"qdq: {row.error}: " in run.done.stderr
        assert not run.out.exists()
        ENDED[row.name] = "refused"
        return
    assert run.done.returncode == 0, run.done.stderr
    result = onnx.load(run.out)
    if row.checks:
        onnx.checker.check_model(result, full_check=row.runs)
    assert sorted(run.layers()) == sorted(row.layers)
    assert run.warnings() == sorted(row.warnings)
    assert len(list(all_pairs(result.graph))) == run.report["summary"]["qdq_pairs"]
    assert [v.name for v in result.graph.output] == [
        v.name for v in run.model.graph.output]
    if row.runs:
        check_close(run, result)
    ENDED[row.name] = "quantized"


def test_no_row_ended_otherwise():
    if len(ENDED) < len(ROWS):
        pytest.skip("not all rows were run")
    assert set(ENDED) == set(ROWS)
    assert {name for name, how in ENDED.items() if how == "refused"} == {
        row.name for row in ROWS.values() if row.error}


def test_the_document_has_the_table():
    """docs/reference/models.md has the table that `make.py --document docs/reference/models.md` writes."""
    text = (ROOT / "docs" / "reference" / "models.md").read_text()
    assert text.endswith("\n" + tables())
