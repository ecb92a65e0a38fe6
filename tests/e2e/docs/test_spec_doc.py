# SPDX-License-Identifier: Apache-2.0
"""The pages about the spec in docs/reference/: their examples give the documented results, and
their tables equal the daemon's."""

import json
import re
import subprocess

import pytest

from service import FEW_SAMPLES, INSTALLED, ROOT

PAGES = ROOT / "docs" / "reference"
TEXT = "".join((PAGES / page).read_text() for page in
               ("spec.md", "number-formats.md", "accuracy-methods.md", "targets.md"))
MODEL = ROOT / "tests" / "data" / "glyph_resnet.onnx"
# A spec, and the part of the answer that follows it, with at most one paragraph between.
EXAMPLES = re.findall(r"^```json\n([^`]*)^```\n\n(?:[^`]{0,300}\n\n)?^```text\n([^`]*)^```",
                      TEXT, re.MULTILINE)


def words(text):
    return " ".join(text.split())


def test_every_example_is_run():
    assert len(EXAMPLES) == TEXT.count("```json") == TEXT.count("```text") > 10


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: words(example[0])[:60])
def test_example(example, tmp_path):
    spec, told = example
    path = tmp_path / "spec.json"
    path.write_text(spec)
    done = subprocess.run([INSTALLED / "bin" / "qdq", "plan", MODEL, "--spec", path],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    said = [words(line) for line in (done.stdout + done.stderr).splitlines()]
    is_error = re.search(r"\(/\S*\)$", told.strip())
    assert done.returncode == (1 if is_error else 0), done.stderr
    for line in told.splitlines():
        assert any(words(line) in one for one in said), (line, said)


def test_table_of_classes(daemon):
    listed = {row["class"]: row for row in daemon.get("/v1/layers").json()["layers"]}
    table = TEXT.split("\n## Layer support\n")[1].split("\n## ")[0]
    told = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`(\w+)`", cells[0]) if line.startswith("| `") else []:
            told[name] = cells
    assert set(told) == set(listed)
    for name, (_, _, quantizes_input, quantizes_weight, _) in told.items():
        row = listed[name]
        assert row["quantize_input"] == (quantizes_input == "yes"), name
        assert row["quantize_weight"] == (quantizes_weight == "yes"), name
        assert (row["weight_input"] is None) == (quantizes_weight == ""), name


def test_table_of_members():
    members = (ROOT / "api" / "spec" / "members.c").read_text()
    known = {name.lstrip("/").replace("/", ".")
             for name in re.findall(r'^    \{"(/[\w/]+)"', members, re.MULTILINE)}
    known -= {"weights", "activations", "calibration", "evaluate.samples"}
    section = TEXT.split("\n## Members\n")[1].split("\n## ")[0]
    missing = {name for name in known if f"`{name}`" not in section}
    assert not missing


def engine_source():
    return "\n".join(path.read_text() for path in sorted((ROOT / "engine").rglob("*.c")))


def test_tables_of_reasons_and_warnings():
    source = engine_source()
    plan = (ROOT / "engine" / "plan" / "placement" / "decide.c").read_text()
    reasons = re.findall(r'\[QDQI_INPUT_\w+\] = "([^"]+)"', source)
    reasons += re.findall(r'return "([a-z ]+)";', plan)
    reasons += ["default", "off by default", "not selected"]
    warnings = re.findall(r'\bqdqi_warn(?:_count)?\([^";]*"([a-z0-9_]+)"', source)
    warnings += re.findall(r'\bwarn\(feed, "([a-z0-9_]+)"', source)
    assert len(reasons) > 10 and len(set(warnings)) > 10
    contract = (ROOT / "api" / "openapi.yaml").read_text()
    for word in {*reasons, *warnings}:
        assert f"`{word}`" in TEXT, word
        assert f"`{word}`" in contract, word


def rows_of_table(text, first):
    """Returns the rows of the table whose head begins with these words, cell by cell."""
    table = text[text.index(f"| {first} |"):].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")]
            for line in table.splitlines()[2:]]


def test_tables_of_rules(daemon):
    section = TEXT.split("\n## `rules`\n")[1].split("\n## ")[0]
    targets = daemon.get("/v1/targets").json()["targets"]
    for target in targets:
        rules = [[f"`{rule['id']}`", rule["state"], rule["text"]]
                 for rule in target["rules"]]
        table = section.split(f"of the target `{target['name']}`")[1]
        assert rows_of_table(table, "rule") == rules
    assert sum(len(target["rules"]) for target in targets) > 25


def test_table_of_targets(daemon):
    targets = daemon.get("/v1/targets").json()["targets"]
    yes_or_no = {True: "yes", False: "no"}
    assert rows_of_table(TEXT, "target") == [
        [f"`{target['name']}`", target["title"], f"`{target['weights']['dtype']}`",
         f"`{target['activations']['dtype']}`",
         yes_or_no[target["activations"]["symmetric"]],
         f"`{target['weights']['storage']}`", yes_or_no[target["integer_kernels"]],
         target["info"]] for target in targets]


def test_table_of_defaults(daemon):
    """The defaults that are the target's."""
    rows = {row[0]: row[1:] for row in rows_of_table(TEXT, "member | `tensorrt`")}
    targets = {target["name"]: target for target in daemon.get("/v1/targets").json()["targets"]}
    head = re.search(r"^\| member \| (`tensorrt`.*) \|$", TEXT, re.MULTILINE)[1]
    chosen = [targets[name.strip("`")] for name in head.split(" | ")]
    assert len(chosen) == len(targets)
    assert rows["`activations.dtype`"] == [f"`{one['activations']['dtype']}`" for one in chosen]
    assert rows["`activations.symmetric`"] == [
        f"`{json.dumps(one['activations']['symmetric'])}`" for one in chosen]
    assert rows["`weights.storage`"] == [f"`{one['weights']['storage']}`" for one in chosen]
    model, data = daemon.upload("models", MODEL), daemon.upload("datasets", FEW_SAMPLES)
    recipes = []
    for one in chosen:
        job = daemon.submit(model=model, calibration=data,
                            spec={"target": one["name"], "evaluate": False})
        daemon.succeeded(job)
        recipes.append(daemon.get(f"/v1/jobs/{job}/report").json()["spec"]["recipe"])
    assert rows["`recipe`"] == [f"`{recipe}`" for recipe in recipes]


def test_table_of_lints():
    text = (PAGES / "lint.md").read_text()
    lints = [[f"`{code}`", f"`{rule}`"]
             for path in sorted((ROOT / "engine" / "plan" / "targets").glob("*/*.c"))
             for code, rule in re.findall(r"^    \{QDQI_(?:VETO_)?LINT\((\w+)\), (\w+),", path.read_text(),
                                          re.MULTILINE)]
    assert len(lints) > 10
    assert sorted(row[:2] for row in rows_of_table(text, "code")[2:]) == sorted(lints)
    assert all(row[2] and row[3] for row in rows_of_table(text, "code"))


def faults():
    """Yields the rows of the targets' tables of faults: version, symptom, what heeds it, test."""
    for path in sorted((ROOT / "engine" / "plan" / "targets").glob("*/faults.h")):
        text = re.sub(r'"\s*\n\s*"', "", path.read_text())
        for row in re.findall(r"^FAULT\((.*?)\)$", text, re.MULTILINE | re.DOTALL):
            yield path.parent, re.findall(r'"([^"]*)"', row)


def test_table_of_faults():
    """Each fault is told, heeded by code of the plan, and tested by a test that exists."""
    told = rows_of_table((PAGES / "targets.md").read_text(), "fault of")
    rows = list(faults())
    assert len(rows) == len(told) > 5
    for (folder, (version, symptom, heeded, test)), cells in zip(rows, told):
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text()
        code = "".join(path.read_text() for path in folder.parents[1].glob("**/*.c"))
        assert heeded in code
        assert cells[0].endswith(version) and cells[1] == symptom
        assert heeded in cells[2] and cells[3] == f"`{name}`"


def test_listed_cases_can_be_used(daemon, tmp_path):
    listed = daemon.get("/v1/cases").json()["cases"]
    assert {"residual", "resnet_v1"} <= {case["name"] for case in listed}
    assert all(case["info"] for case in listed)
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"cases": [case["name"] for case in listed]}))
    done = subprocess.run([INSTALLED / "bin" / "qdq", "plan", MODEL, "--spec", path],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
