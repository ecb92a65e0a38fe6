# SPDX-License-Identifier: Apache-2.0
"""rounding.py [--folder FOLDER] [NAME…]: what `weights.rounding` and `bias_correction` bring
on models of other people, at 8 and 4 bits.

A plain session of onnxruntime judges every result on samples that no tool has seen: the
SQNR of the worst output, and the share of right answers in the model's own task. Models
and inputs are those of real.py; "quantize" is the seconds of that stage."""

import argparse
import logging
import tempfile
from pathlib import Path

from common import machine, table
from real import Judge, load, ours
from real_inputs import MODELS

FORMATS = (
    ("int8, int8 activations", {"target": "tensorrt"}, {}),
    ("int8, recipe of target onnxruntime", {"target": "onnxruntime"}, {}),
    ("int4, int8 activations", {"target": "tensorrt", "opset": "auto"}, {"dtype": "int4"}),
    ("int4 alone", {"target": "tensorrt", "opset": "auto", "activations": "none"},
     {"dtype": "int4"}),
)
ROUNDINGS = (("nearest", {}, {}), ("bias_correction", {"bias_correction": True}, {}),
             ("gptq", {}, {"rounding": "gptq"}))


def rows_of(name, folder):
    model, calibration, test, task = load(name, folder)
    judge = Judge(model, test, task)
    yield [name, "float", "", "", f"{judge.score:.3f}", ""]
    for title, spec, weights in FORMATS:
        for rounding, more, rounded in ROUNDINGS:
            full = {**spec, **more, "evaluate": False, "weights": {**weights, **rounded}}
            with tempfile.TemporaryDirectory() as work:
                try:
                    made, _, report = ours(model, calibration, Path(work), full)
                    figures = judge.figures(made)
                except (SystemExit, Exception) as error:
                    reason = str(error).strip().splitlines()[-1][:60]
                    yield [name, title, rounding, "–", "–", reason]
                    continue
                yield [name, title, rounding, f"{figures['sqnr_db']:.1f}",
                       f"{figures['task']:.3f}", f"{report['timings']['quantize']:.1f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    machine()
    rows = [row for name in arguments.names or MODELS
            for row in rows_of(name, arguments.folder)]
    table("Rounding, models of other people",
          ["model", "weights, activations", "rounding", "SQNR, dB", "task", "quantize, s"],
          rows)


if __name__ == "__main__":
    main()
