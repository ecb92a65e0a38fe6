# SPDX-License-Identifier: Apache-2.0
"""docs/extend/adding-a-target.md: its target is the one in a unit program, and its tables name
every member of a target."""

import re

from service import ROOT

TEXT = (ROOT / "docs" / "extend" / "adding-a-target.md").read_text()
NAMES = {"spark": "toy", "Spark": "Toy", "S1": "Y1", "S2": "Y2"}


def members_of(header, struct):
    text = (ROOT / "engine" / header).read_text()
    body = re.sub(r"/\*.*?\*/", "", text.split(f"struct {struct} {{")[1].split("\n};")[0],
                  flags=re.DOTALL)
    lines = [line.split("(")[1] if "(*" in line else line for line in body.split(";")]
    return {re.findall(r"\w+", part)[-1] for line in lines for part in line.split(",")
            if part.strip()}


def documented():
    return {name for cell in re.findall(r"^\| (`[^|]*`) \|", TEXT, re.MULTILINE)
            for name in re.findall(r"`(\w+)`", cell)}


def test_the_file_is_the_one_that_is_tested():
    (code,) = re.findall(r"^```c\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    toy = (ROOT / "tests" / "unit" / "targets" / "toy.c").read_text()
    for name, other in NAMES.items():
        code = code.replace(name, other)
    assert code == toy


def test_every_member_is_told():
    members = members_of("include/qdq/targets.h", "qdq_target")
    hooks = members_of("plan/placement/target.h", "qdqi_hooks")
    assert {"name", "storage", "n_rules"} <= members
    assert {"is_on", "cite", "lints", "vetoes", "complete"} <= hooks
    assert members | hooks == documented()


def test_five_files_know_a_target():
    """Beside its folder, its tests and what tells of its runtime, the rest reads the rows."""
    named = {path.relative_to(ROOT).as_posix() for part in ("api", "cli", "daemon", "engine", "judges", "man", "remote")
             for path in (ROOT / part).rglob("*")
             if path.is_file() and re.search(rb"\bqnn\b", path.read_bytes())}
    outside = {path for path in named if not path.startswith("engine/plan/targets/qnn/")}
    assert outside == {"api/openapi.yaml", "engine/local.mk"}
    pages = set(re.findall(r"^- `(docs/[^`]*)`", TEXT.split("## 3.")[1].split("## 4.")[0], re.MULTILINE))
    assert len(outside | pages) == 5
