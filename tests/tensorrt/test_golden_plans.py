# SPDX-License-Identifier: Apache-2.0
"""The golden results of target tensorrt: NVIDIA builds each of which it builds the float model, and
computes with integers what was planned in integers. A third of them is asked about in each check."""

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "golden"))
from test_golden import Case, cases, read  # noqa: E402

CODES = {"target_format", "block_does_not_divide", "packed_projection"}
PRODUCTS = "Conv", "Gemm", "MatMul"
ALL = [name for name in cases() if read(name)[0].get("target", "tensorrt") == "tensorrt"
       and "error" not in read(name)[1]]
CHOSEN = ALL if os.environ.get("QDQD_ALL_FIGURES") else ALL[::3]
# One has scales along the axis of the inputs, which its spec asks for, and no layer of the other has a
# name by which the plan could tell it.
NOT_COUNTED = "support_global_max_pool:of_the_operator_goes_before_its_classes", "unnamed_nodes"


def quantize(name, folder):
    """Returns the case with its report, or None where it has no pairs."""
    folder.mkdir()
    case = Case(name, folder)
    done = case.source.quantize(case.spec)
    assert done.returncode == 0, done.stderr
    case.name, case.result = name, json.loads(case.source.report.read_text())
    return case if case.result["summary"]["qdq_pairs"] else None


@pytest.fixture(scope="module")
def planned(tmp_path_factory, plans_of):
    """The cases with NVIDIA's plans of their results."""
    folder = tmp_path_factory.mktemp("golden")
    made = [quantize(name, folder / str(i)) for i, name in enumerate(CHOSEN)]
    made = [case for case in made if case]
    return list(zip(made, plans_of([case.source.out for case in made])))


def test_they_build_where_their_float_models_do(planned, plans_of):
    refused = [(case, plan) for case, plan in planned if plan.errors and not CODES & {
        warning["code"] for warning in case.result["warnings"]}]
    floats = plans_of([case.source.path for case, _ in refused]) if refused else []
    assert [(case.name, plan.errors) for (case, plan), other in zip(refused, floats)
            if not other.errors] == []


def test_planned_integers_are_integers(planned):
    """But for those of which the warning one_place says that they are not."""
    missed, n = [], 0
    for case, plan in planned:
        left = plan.errors or case.name in NOT_COUNTED
        for layer in [] if left else case.result["layers"]:
            both = layer["weight_quantized"] + len(layer["quantized_inputs"]) >= 2
            if layer["op"] not in PRODUCTS or not both:
                continue
            n += 1
            is_told = any(w["code"] == "one_place" and layer["name"] in w["detail"]
                          for w in case.result["warnings"])
            if bool(plan.integer_kernels(layer["name"])) == is_told:
                missed.append((case.name, layer["name"]))
    assert n > 100 and missed == []
