# SPDX-License-Identifier: Apache-2.0
"""Placement as NVIDIA's TensorFlow quantization toolkit does it, edge for edge.

toolkit/MODEL.json has the tables that the toolkit itself made of a network, each with
the spec that says the same here: {"tables": {variant: {"spec": …, "expect": {node name:
op, inputs with a pair, weight, axis}}}}. A node that a table does not name has no pair
on any input. MODEL.onnx.xz is the network as tf2onnx exports it; MODEL.nofold.onnx.xz
with every BatchNormalization kept. The networks: seven small ones of the toolkit's own
tests, ResNet50 and MobileNetV2; their weights are constants.
"""

import json
import lzma
import shutil

import onnx
import pytest

from placement import (HERE, Placement, Source, check_untouched, plan_rows, table_rows)

pytestmark = pytest.mark.long
TOOLKIT = HERE / "toolkit"
DATA = {path.stem: json.loads(path.read_text()) for path in TOOLKIT.glob("*.json")}

# (model, variant, node): placements that ONNX cannot express, with another row here. The
# reasons are in docs/start/from-tensorflow-quantization.md.
DIFFERENCES = {}

# The classes that the library's cases decide about.
CASE_OPS = {"resnet_v1": {"Add"}, "mobilenet": {"Add"}, "inception": {"MaxPool"}}


every_table = pytest.mark.parametrize(
    "model, variant",
    [(model, variant) for model in sorted(DATA) for variant in DATA[model]["tables"]])


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Makes the Source of a model; keeps the last one, because the tests come in order.
    """
    last = {}

    def get(model):
        if model not in last:
            clear()
            packed = (TOOLKIT / DATA[model]["model"]).read_bytes()
            last[model] = Source(onnx.load_model_from_string(lzma.decompress(packed)),
                                 tmp_path_factory.mktemp(model))
        return last[model]

    def clear():
        for source in last.values():
            shutil.rmtree(source.folder)
        last.clear()

    yield get
    clear()


@pytest.fixture
def source(unpacked, model):
    return unpacked(model)


@pytest.fixture
def spec(model, variant):
    return DATA[model]["tables"][variant]["spec"]


@pytest.fixture
def expect(model, variant):
    rows = dict(DATA[model]["tables"][variant]["expect"])
    for (m, v, node), row in DIFFERENCES.items():
        if (m, v) == (model, variant):
            assert rows.pop(node, None) != row, "no difference"
            rows.update({node: row} if row else {})
    return rows


def decider(spec, row, cases=CASE_OPS):
    """Returns the reason by precedence: the later name, a case, the later class, the
    default."""
    entries = list(enumerate(spec.get("layers", [])))[::-1]
    for i, entry in entries:
        if entry.get("name") == row["name"]:
            return f"layers[{i}]"
    for case in spec.get("cases", []):
        if row["op"] in cases[case]:
            return f"case:{case}"
    for i, entry in entries:
        if entry.get("class") == row["class"]:
            return f"layers[{i}]"
    return "default"


def unmatched(spec, layers):
    """Returns the number of entries that match nothing: those with a warning, and
    classes."""
    classes = {row["class"] for row in layers}
    return ("on_unmatched" in spec) + sum(
        "class" in entry and entry["class"] not in classes
        for entry in spec.get("layers", []))


@every_table
def test_plan(source, spec, expect):
    done = source.plan(spec)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    listed = {row["name"]: row for row in plan["layers"]}
    assert plan_rows(plan) == table_rows(expect)
    for name, row in expect.items():
        assert listed[name]["op"] == row["op"]
        assert listed[name]["reason"] == decider(spec, listed[name])
    for row in plan["layers"]:
        if row["name"] not in expect:
            by = decider(spec, row)
            assert row["reason"] != "default"
            assert by == "default" or row["reason"].startswith(by)
    summary = plan["summary"]
    assert summary["quantized_layers"] == len(expect)
    told = [w["detail"] for w in plan["warnings"] if w["code"] == "unmatched"]
    assert len(told) == unmatched(spec, plan["layers"]), told


@every_table
def test_model(source, spec, expect):
    done = source.quantize(spec)
    assert done.returncode == 0, done.stderr
    model = onnx.load(source.out)
    onnx.checker.check_model(model, full_check=True)
    placement = Placement(model)
    assert placement.rows() == table_rows(expect)
    report = json.loads(source.report.read_text())
    assert len(placement.pairs) == report["summary"]["qdq_pairs"]
    check_untouched(source.model, model)
