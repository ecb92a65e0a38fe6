# SPDX-License-Identifier: Apache-2.0
"""docs/extend/adding-a-case.md: its session works when pasted, and its scripts are valid."""

import re
import subprocess

import pytest

from service import INSTALLED, ROOT
from test_qdq import qdq

TEXT = (ROOT / "docs" / "extend" / "adding-a-case.md").read_text()
# A block, and the output that stands below it, if any.
SESSION = re.findall(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", TEXT,
                     re.MULTILINE | re.DOTALL)
SCRIPTS = re.findall(r"^```lua\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_session(daemon, tmp_path):
    assert len(SESSION) == TEXT.count("```sh") == 4
    assert sum(bool(output) for _, output in SESSION) == TEXT.count("```text") == 2
    for block, output in SESSION:
        script = block.replace("http://127.0.0.1:8383", daemon.url)
        done = subprocess.run(["bash", "-euc", script.replace("/tmp/", f"{tmp_path}/")],
                              cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout == output
    # The last block's broken script was reported with its line, and removed.
    assert "bad.lua, line 1: " in done.stderr
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["pools.lua"]


@pytest.mark.parametrize("lua", SCRIPTS)
def test_script(lua, tmp_path):
    (tmp_path / "one.lua").write_text(lua)
    done = qdq("plan", ROOT / "tests" / "data" / "glyph_resnet.onnx", "--cases", tmp_path)
    assert done.returncode == 0, done.stderr


def test_library_is_told(daemon):
    listed = {case["name"] for case in daemon.get("/v1/cases").json()["cases"]}
    section = TEXT.split("\n## The library's cases\n")[1]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert listed == {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_members_are_told():
    bind = (ROOT / "engine" / "plan" / "cases" / "bind.c").read_text()
    members = re.findall(r'\{"(\w+)", \w+, \w+\}', bind)
    assert len(members) == 19
    for name in members:
        assert re.search(rf"^\| `\w+[.:]{name}[`(]", TEXT, re.MULTILINE), name


def names_in(tmp_path, table):
    """Returns the names that a script finds in one of its global tables."""
    (tmp_path / "names.lua").write_text(
        f"local t = {{}} for k in pairs({table}) do t[#t + 1] = k end "
        "error(table.concat(t, ' '), 0)")
    done = qdq("plan", ROOT / "tests" / "data" / "glyph_resnet.onnx", "--cases", tmp_path)
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1].rsplit(": ", 1)[1].split()


def test_functions_are_told(tmp_path):
    for lib in ("string", "table"):
        (line,) = re.findall(rf"^- `{lib}`: (.*)", TEXT, re.MULTILINE)
        assert names_in(tmp_path, lib) == re.findall(r"`(\w+)`", line)
    for name in ("random", "randomseed"):
        assert name not in names_in(tmp_path, "math")
