# SPDX-License-Identifier: Apache-2.0
"""One small model of each oddity that users' models have, and what becomes of it.

The table is ROWS (rows.py), and its rows stand in odd_*.py. A row's function makes the model; its decorator says what is expected:

  says      what happens, for docs/reference/models.md
  spec      the spec that it is quantized with, {} unless given
  layers    names of the nodes with a pair, all of them
  error     the code of the refusal instead
  warnings  codes of the report's warnings, all but those of the target's rules
  sqnr_db   what the floating outputs have to reach against the float model
  runs      False: ONNX Runtime cannot run it, so that there is nothing to compare
  checks    False: onnx.checker does not accept the source, nor then the result
  section   where docs/reference/models.md has it

Models come as onnx.parser's text or by onnx.helper. Weights are the values that are
declared and that no node makes; all numbers follow from the row's name. Nobody draws
anything else, so each model is the same wherever it is made.

Run as a program, it writes all of them (make.py FOLDER), or the tables of the document
(make.py --document docs/reference/models.md).
"""

import sys
from pathlib import Path

import numpy as np
import onnx

from rows import ROWS, SECTIONS

# Each of these adds its rows, in the order of docs/reference/models.md.
import odd_bodies  # noqa: E402, F401
import odd_graphs  # noqa: E402, F401
import odd_layers  # noqa: E402, F401


def ends(one):
    """Returns the row's result in a word or two."""
    if one.error:
        return f"refused: `{one.error}`"
    warnings = ", ".join(f"`{w}`" for w in one.warnings)
    if not one.layers:
        return f"left alone: {warnings}"
    return f"quantized, {warnings}" if warnings else "quantized"


def tables():
    """Returns the tables of docs/reference/models.md, one row for each model."""
    lines = []
    for title in SECTIONS:
        lines += [f"### {title}", "", "| model | what happens | ends |",
                  "| --- | --- | --- |"]
        lines += [f"| `{one.name}` | {one.says} | {ends(one)} |"
                  for one in ROWS.values() if one.section == title] + [""]
    return "\n".join(lines)


MARK = "<!-- The tables of tests/models/make.py -->\n\n"


def document(path):
    head = path.read_text().partition(MARK)[0]
    path.write_text(head + MARK + tables())


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for one in ROWS.values():
        model = one.model()
        onnx.save(model, folder / f"{one.name}.onnx")
        np.savez(folder / f"{one.name}.npz", **one.data(model))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--document":
        document(Path(sys.argv[2]))
    elif len(sys.argv) == 2:
        write(Path(sys.argv[1]))
    else:
        sys.exit(__doc__)
