# SPDX-License-Identifier: Apache-2.0
"""The operator tests of the onnx package, and its small models, through `qdq quantize`.

Each becomes a job twice: as it is, and with all inputs but the first made constants, so
that there are weights. Both are quantized as they are by default, with every class of
the layer support asked for, and for onnxruntime, whose integer kernels then run, too. The
result has to be

  ok       a valid model whose outputs are those of the float one, within a tolerance
  refused  with a code that says why

and all else is BAD and listed: a crash, a code that blames qdqd, an invalid model, one
that onnxruntime runs no more, outputs that are far off.

  sweep.py [--count N] [--seconds N] [--jobs N] [--only TEXT] [--list]

--count takes so many, spread over all by a hash of their names, in an order that is the
same everywhere; --seconds stops after that time, with what was done by then.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSTALLED = Path(os.environ.get("QDQD_INSTALLED", ROOT / "_install"))
SAMPLES = 4
MIN_SQNR_DB = 8  # of the outputs; models of one odd operator lose much
# One tensor holds 0 to 3 and 10,000 to 10,003: int8 has no scale for both.
TOO_WIDE = {"test_softmax_large_number", "test_logsoftmax_large_number",
            "test_softmax_large_number_expanded", "test_logsoftmax_large_number_expanded",
            "test_softmax_large_number_expanded_ver18",
            "test_logsoftmax_large_number_expanded_ver18"}
# Codes that blame the caller's model or data, or name a limit of this version.
REFUSALS = {"invalid_model", "unsupported", "existing_qdq", "calibration_mismatch",
            "no_calibration", "nonfinite", "not_observed", "run_failed",
            "limit_exceeded", "invalid_dataset"}


def classes():
    table = (ROOT / "engine" / "ground" / "tbl" / "layers.h").read_text()
    names = re.findall(r'^(?:LAYER|ACTIVATION|MOVEMENT)\("(\w+)"', table, re.MULTILINE)
    return list(dict.fromkeys(names))


SPECS = {
    "default": {},
    "onnxruntime": {"target": "onnxruntime", "recipe": "none"},
    "all": {"layers": [{"class": name} for name in classes()], "on_unmatched": "warn"},
}


# --- the models --------------------------------------------------------------


def collect():
    """Yields (name, model, arrays by input, or None where an input is not a tensor of
    numbers)."""
    from onnx.backend.test.case.model import collect_testcases as models
    from onnx.backend.test.case.node import collect_testcases as nodes

    warnings.simplefilter("ignore")  # of numpy: some cases overflow on purpose
    cases = [c for c in nodes(None) if c.model is not None]
    cases += [c for c in models() if c.model is not None]
    for case in cases:
        arrays = {}
        data = case.data_sets[0][0] if case.data_sets else []
        for value, given in zip(case.model.graph.input, data):
            if isinstance(given, onnx.TensorProto):
                given = numpy_helper.to_array(given)
            fits = isinstance(given, (np.ndarray, np.generic)) and given.dtype.kind in "fiubV"
            arrays[value.name] = np.asarray(given) if fits else None
        whole = len(data) == len(case.model.graph.input) and all(
            a is not None for a in arrays.values())
        yield case.name, case.model, arrays if whole else None


def with_weights(model, arrays):
    """Returns the model with all inputs but the first as constants; None when there are
    no others."""
    if not arrays or len(model.graph.input) < 2:
        return None, None
    model = onnx.ModelProto.FromString(model.SerializeToString())
    first = model.graph.input[0].name
    for value in list(model.graph.input)[1:]:
        model.graph.initializer.append(
            numpy_helper.from_array(arrays[value.name], value.name))
        model.graph.input.remove(value)
    return model, {first: arrays[first]}


def jobs():
    for name, model, arrays in collect():
        for kind, (m, a) in {"plain": (model, arrays),
                             "weights": with_weights(model, arrays)}.items():
            for spec in SPECS if m is not None else ():
                yield f"{name}/{kind}/{spec}", m, a, SPECS[spec]


# --- one model ---------------------------------------------------------------


def session(path, optimized):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    return onnxruntime.InferenceSession(path, options,
                                        providers=["CPUExecutionProvider"])


def runs(path, arrays, optimized=False):
    """Returns the model's outputs, or None when onnxruntime cannot run it."""
    try:
        return session(path, optimized).run(None, arrays)
    except Exception:
        return None


def is_valid(path):
    try:
        onnx.checker.check_model(path, full_check=True)
        return True
    except Exception:
        return False


def far_off(f, q):
    """Returns the reason why the outputs of two models differ, or None."""
    for i, (a, b) in enumerate(zip(f, q)):
        if not isinstance(a, np.ndarray) or a.dtype.kind != "f":
            continue
        if a.shape != b.shape:
            return f"output {i} has another shape"
        a, b = (np.nan_to_num(x.astype(np.float64)) for x in (a, b))
        noise = np.sum((a - b) ** 2)
        if noise == 0:
            continue
        sqnr = 10 * np.log10(max(np.sum(a ** 2), 1e-30) / noise)
        if sqnr < MIN_SQNR_DB:
            return f"output {i} has {sqnr:.1f} dB"
    return None


def judge(source, out, arrays, spec):
    if is_valid(source) and not is_valid(out):
        return "invalid"
    before = runs(source, arrays) if arrays is not None else None
    if before is None:
        return None
    after = runs(out, arrays)
    why = "runs no more" if after is None else far_off(before, after)
    if why or spec.get("target") != "onnxruntime":
        return why
    if runs(source, arrays, optimized=True) is None:
        return None
    after = runs(out, arrays, optimized=True)
    why = "runs no more" if after is None else far_off(before, after)
    return f"with integer kernels {why}" if why else None


def run(job):
    """Returns (name, "ok" or the refusal's code or "BAD", details)."""
    name, model, arrays, spec = job
    with tempfile.TemporaryDirectory() as folder:
        source, out, data, asked = (str(Path(folder) / n) for n in (
            "source.onnx", "out.onnx", "data.npz", "spec.json"))
        Path(source).write_bytes(model)
        Path(asked).write_text(json.dumps(spec))
        command = [INSTALLED / "bin" / "qdq", "quantize", source, "--spec", asked,
                   "-o", out, "--threads", "1"]
        if arrays:
            try:
                np.savez(data, **{k: np.stack([v] * SAMPLES) for k, v in arrays.items()})
            except ValueError:  # of a type that numpy cannot write
                arrays = None
        if arrays:
            command += ["--calibration", data]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return name, "BAD", "no end after 120 s"
        if done.returncode == 0:
            why = judge(source, out, arrays, spec)
            if why and why.endswith(" dB") and name.partition("/")[0] in TOO_WIDE:
                return name, "too wide", why
            return (name, "BAD", why) if why else (name, "ok", "")
        said = re.search(r"^qdq: (\w+): (.*)", done.stderr, re.MULTILINE)
        if done.returncode != 1 or not said or said[1] not in REFUSALS:
            return name, "BAD", f"status {done.returncode}: {done.stderr[-300:].strip()}"
        if said[1] == "run_failed" and arrays and (
                runs(source, arrays, optimized=True) is not None):
            return name, "BAD", f"onnxruntime runs it: {said[2][:200]}"
        return name, said[1], said[2]


# --- all models --------------------------------------------------------------


def chosen(count, only):
    rows = [job for job in jobs() if only in job[0]]
    rows.sort(key=lambda job: (zlib.crc32(job[0].encode()), job[0]))
    return [(n, m.SerializeToString(), a, s) for n, m, a, s in rows[:count or None]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    rows, start = chosen(asked.count, asked.only), time.monotonic()
    ended, bad = collections.Counter(), []
    with concurrent.futures.ProcessPoolExecutor(asked.jobs) as pool:
        for at in range(0, len(rows), 8 * asked.jobs):
            if asked.seconds and time.monotonic() - start > asked.seconds:
                break
            for name, how, said in pool.map(run, rows[at:at + 8 * asked.jobs]):
                ended[how] += 1
                if asked.list:
                    print(f"{name}: {how} {said}", flush=True)
                if how == "BAD":
                    bad.append(f"BAD {name}: {said}")
    print(f"{sum(ended.values())} of {len(rows)} models and specs: " + ", ".join(
        f"{n} {how}" for how, n in ended.most_common()))
    print("\n".join(bad))
    return 1 if bad or not ended["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
