# SPDX-License-Identifier: Apache-2.0
"""Placement: which inputs of which node get a Q/DQ pair, one folder a model.

A folder holds model.txt, in ONNX's text form; a value that is declared and that no node
makes is a weight, filled here. Beside it lie spec.json and expect.json, or cases.json
with several of both: {case: {"spec": …, "expect": …}}. A table in `expect`:

  layers    node name: op, class, inputs with a pair, weight (and its channel axis; none
            for one scale), and the reason unless it is "default". No other node has a
            pair on any input.
  alone     node name: part of the reason for which a node of a known class has none
  unlisted  nodes of no known class, which the plan does not name
  pairs     number of pairs, each tensor once, or once in each branch of an If
  integers  number of weights that are integers behind DequantizeLinear alone, 0 without
  gone      tensors of the source that the result lacks, none without
  squeezed  tensors of reductions whose axes a Squeeze drops in the result, none without
  rules     node name: the ids of the target's rules that its row follows
  warnings  their codes, all of them; or with what they say: {code: part of the text};
            but for those of the tables of lints, engine/plan/targets
  lint      the same of these: what the target does not fuse
  error     the code of the error instead of all that
  says      parts of the error's text: the place in the spec, a word

Run with pytest; QDQ is the command's path, that of _install without it.
"""

import json
import zlib

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from placement import (HERE, LINTS, Placement, Source, check_untouched, plan_rows, table_rows)


def cases():
    for folder in sorted(p.parent for p in HERE.glob("*/model.txt")):
        several = folder / "cases.json"
        if several.exists():
            for name in json.loads(several.read_text()):
                yield f"{folder.name}:{name}"
        else:
            yield folder.name


def read(case):
    folder, _, name = case.partition(":")
    folder = HERE / folder
    if name:
        row = json.loads((folder / "cases.json").read_text())[name]
        return row["spec"], row["expect"]
    return tuple(json.loads((folder / f"{part}.json").read_text())
                 for part in ("spec", "expect"))


def fill_weights(graph):
    """Makes initializers of the declared values that no node computes."""
    made = {name for node in graph.node for name in node.output}
    for value in [v for v in graph.value_info if v.name not in made]:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        numbers = np.random.default_rng(zlib.crc32(value.name.encode()))
        array = (numbers.normal(size=shape) if dtype.kind == "f"
                 else np.ones(shape)).astype(dtype)
        graph.initializer.append(numpy_helper.from_array(array, value.name))
        graph.value_info.remove(value)


def is_standard(model):
    return all(o.domain == "" for o in model.opset_import)


class Case:
    def __init__(self, name, folder):
        self.spec, self.expect = read(name)
        text = (HERE / name.partition(":")[0] / "model.txt").read_text()
        model = onnx.parser.parse_model(text)
        fill_weights(model.graph)
        if is_standard(model):
            onnx.checker.check_model(model, full_check=True)
        self.source = Source(model, folder)

    def refused(self, done):
        """Returns True when the row wants an error, after checking that this is the one.
        """
        if "error" not in self.expect:
            assert done.returncode == 0, done.stderr
            return False
        assert done.returncode == 1, done.stdout
        line = done.stderr.strip().splitlines()[-1]
        for part in [self.expect["error"], *self.expect.get("says", [])]:
            assert part in line
        return True


@pytest.fixture(params=cases())
def case(request, tmp_path):
    return Case(request.param, tmp_path)


def check_warnings(warnings, expect, lint):
    warnings = [w for w in warnings if (w["code"] in LINTS) == lint]
    codes = sorted(w["code"] for w in warnings)
    assert codes == sorted(expect)
    if isinstance(expect, dict):
        for w in warnings:
            assert expect[w["code"]] in f'{w["detail"]} ({w["node"]})'


def test_plan(case):
    done = case.source.plan(case.spec)
    if case.refused(done):
        return
    plan, expect = json.loads(done.stdout), case.expect
    listed = {row["name"]: row for row in plan["layers"]}
    assert len(listed) == len(plan["layers"]), "names are unique"

    assert plan_rows(plan) == table_rows(expect["layers"])
    for name, row in expect["layers"].items():
        assert listed[name]["op"] == row["op"]
        assert listed[name]["class"] == row.get("class", listed[name]["class"])
        assert listed[name]["reason"] == row.get("reason", "default")
    for name, reason in expect.get("alone", {}).items():
        assert reason in listed[name]["reason"]
    for name in expect.get("unlisted", []):
        assert name not in listed

    summary = plan["summary"]
    assert summary["layers"] == len(listed)
    assert summary["quantized_layers"] == len(expect["layers"])
    assert summary["qdq_pairs"] == expect.get("pairs", summary["qdq_pairs"])
    for name, rules in expect.get("rules", {}).items():
        assert listed[name]["rules"] == rules, name
    for member in ("warnings", "lint"):
        if member in expect:
            check_warnings(plan["warnings"], expect[member], member == "lint")


def test_model(case):
    """The model has the pairs in the plan, and nothing else of it changed."""
    source, expect = case.source, case.expect
    done = source.quantize(case.spec)
    if case.refused(done):
        assert not source.out.exists()
        return
    model = onnx.load(source.out)
    if is_standard(model):
        onnx.checker.check_model(model, full_check=True)
    report = json.loads(source.report.read_text())
    weights, activations = (report["spec"][name] for name in ("weights", "activations"))
    placement = Placement(model, weights["dtype"])
    assert placement.rows() == table_rows(expect["layers"])
    summary = report["summary"]
    assert len(placement.pairs) == summary["qdq_pairs"]
    assert len(placement.pairs) == expect.get("pairs", summary["qdq_pairs"])
    if isinstance(activations, dict) and activations["symmetric"]:
        for pair in placement.pairs:
            assert not placement.constant(pair.input[2]).any(), "symmetric"
    assert placement.integers() == expect.get("integers", 0)
    check_untouched(source.model, model, expect.get("gone", ()), expect.get("squeezed", ()))
