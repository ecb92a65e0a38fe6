# SPDX-License-Identifier: Apache-2.0
"""The tutorial docs/start/ten-minutes.md: its commands work when pasted, and print the output that
it shows."""

import math
import re

from service import ROOT
from test_readme import paste

TUTORIAL = (ROOT / "docs" / "start" / "ten-minutes.md").read_text()
STEPS = re.findall(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", TUTORIAL,
                   re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(\d+(?:\.\d+)?)")


def lines(text):
    """Returns the sorted lines, without times and without the shell's messages about
    jobs. They are sorted because standard output and standard error mix in any order."""
    found = [re.sub(r", in \d+\.\d s$", "", line) for line in text.splitlines()]
    return sorted(line for line in found if line and not line.startswith("[1]"))


def assert_same(shown, printed):
    """Expects equal words and whole numbers. Measured numbers may differ a little,
    because ONNX Runtime rounds differently on other processors."""
    assert len(shown) == len(printed), (shown, printed)
    for one, other in zip(shown, printed):
        parts, others = NUMBER.split(one), NUMBER.split(other)
        assert parts[::2] == others[::2], (one, other)
        for expected, got in zip(parts[1::2], others[1::2]):
            assert expected == got or "." in expected and math.isclose(
                float(expected), float(got), rel_tol=0.03), (one, other)


def test_every_step_shows_its_output():
    assert len(STEPS) == TUTORIAL.count("```sh") == TUTORIAL.count("```text") >= 6


def test_steps(tmp_path):
    for block, shown in STEPS:
        done = paste(block, tmp_path)
        assert done.returncode == 0, done.stderr
        printed = (done.stdout + done.stderr).replace(f"{tmp_path}/", "/tmp/")
        assert_same(lines(shown), lines(printed))
