# SPDX-License-Identifier: Apache-2.0
"""quantize.py [--emulated] [MODEL.onnx …]: compares jobs on a GPU with the same jobs on
the CPU.

Run by tools/check-gpu. The models are those of tests/data and the ResNet-50 of
bench/make_model.py with random samples. QDQ is the command, QDQD_ENGINE_RUNTIME an ONNX
Runtime built for CUDA, QDQD_GPU_MODULE the CUDA module. Exits with 1 and prints the
failures; a missing GPU is a failure, too. --emulated uses the module of
tests/cuda/emulator, to try this script without a GPU.

Checked are:
 - the report's `device` names the GPU, nothing fell back to the CPU, and no batch was made
   smaller;
 - ranges differ by at most a thousandth of the larger end, because the provider's kernels
   add in another order; it is told to compute in float32;
 - the figures of evaluation and what-ifs differ by at most 0.3 dB, below 80 dB; those of
   weights of 4 bits, rounded by moments, by at most 1 dB, because the CPU takes all patches
   of some convolutions and the GPU never;
 - a repeated job on the GPU makes the same bytes."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
QDQ = os.environ.get("QDQ", ROOT / "_install" / "bin" / "qdq")
GLYPHS = ("glyph_mobilenet", "glyph_resnet", "glyph_se", "glyph_vit")
SPEC = {"calibration": {"method": "minmax", "batch": 8}}
ROUNDED = {"weights": {"dtype": "int4", "rounding": "gptq"}, "bias_correction": True}
RANGES, DECIBELS, ROUNDED_DECIBELS, NO_NOISE = 1e-3, 0.3, 1, 80

most_samples, judged, alone = 64, 16, 8  # of calibration, of evaluation, of each what-if
wrong = []


def check(good, text):
    if not good:
        wrong.append(text)
        print(f"    wrong: {text}", flush=True)


# --- jobs ---------------------------------------------------------------------------


class Job:
    def __init__(self, folder, model, data, spec):
        spec_file, out = folder / "spec.json", folder / "out.onnx"
        spec_file.write_text(json.dumps(spec))
        command = [QDQ, "quantize", model, "--spec", spec_file, "-o", out,
                   "--report", folder / "report.json"]
        if data:
            command += ["--calibration", data]
        run = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True)
        self.failed = run.stderr.strip() if run.returncode else None
        if not self.failed:
            self.report = json.loads((folder / "report.json").read_text())
            self.bytes = out.read_bytes()


def spec_of(model, data, device, **more):
    spec = json.loads(json.dumps({**SPEC, "evaluate": {"samples": judged}, "device": device, **more}))
    if data:
        spec["calibration"]["max_samples"] = most_samples
    else:
        spec["calibration"]["random_samples"] = 16
    return spec


# --- checks -------------------------------------------------------------------------


def check_device(there, here, emulated):
    """Returns whether the device is the one that is to be checked."""
    name = there.report["device"]
    check(name.startswith("cuda:"), f"the report says that it ran on {name}")
    check(name.endswith("emulated on the host") == emulated,
          f"{name} is {'a' if emulated else 'no'} device")
    check(here.report["device"] == "cpu", f"device cpu ran on {here.report['device']}")
    for warning in there.report["warnings"]:
        check(warning["code"] not in ("device_fallback", "batch_halved"),
              warning["detail"])
    return name.endswith("emulated on the host") == emulated


def check_ranges(there, here):
    ranges = {t["name"]: (t["min"], t["max"]) for t in here.report["tensors"]}
    check(ranges, "there are no ranges")
    check(len(there.report["tensors"]) == len(ranges), "not the same tensors")
    worst = 0
    for tensor in there.report["tensors"]:
        name, pair = tensor["name"], (tensor["min"], tensor["max"])
        size = max(map(abs, ranges[name])) or 1
        by = max(abs(a - b) for a, b in zip(pair, ranges[name])) / size
        worst = max(worst, by)
        check(by <= RANGES, f"the range of {name} is {pair}, not {ranges[name]}")
    print(f"    {len(ranges)} ranges, the largest difference is {worst:.1e}")


def decibels(what, a, b, tolerance=DECIBELS):
    """Checks that two figures agree. Both are limited to the value beyond which only
    rounding shows; null means no noise."""
    a, b = (NO_NOISE if x is None or x > NO_NOISE else x for x in (a, b))
    check(math.isclose(a, b, abs_tol=tolerance), f"{what} is {a:.2f} dB, not {b:.2f}")


def check_figures(there, here, tolerance=DECIBELS):
    for a, b in zip(there.report["evaluation"]["outputs"],
                    here.report["evaluation"]["outputs"], strict=True):
        decibels(f"output {a['name']}", a["sqnr_db"], b["sqnr_db"], tolerance)


def check_what_ifs(folder, model, data):
    jobs = [Job(folder, model, data, spec_of(model, data, device, evaluate=False,
                                             sensitivity={"samples": alone}))
            for device in ("cuda", "cpu")]
    for job in jobs:
        check(not job.failed, job.failed)
    if any(job.failed for job in jobs):
        return
    here = {row["name"]: row for row in jobs[1].report["sensitivity"]}
    for row in jobs[0].report["sensitivity"]:
        decibels(f"{row['name']} alone", row["sqnr_db_alone"],
                 here[row["name"]]["sqnr_db_alone"])
    print(f"    {len(here)} layers, each alone")


def run_both(folder, model, data, emulated, **more):
    """Returns the job on the GPU and that on the CPU, after the first was run again there;
    None if one failed, or ran elsewhere."""
    there, again, here = jobs = [Job(folder, model, data, spec_of(model, data, device, **more))
                                 for device in ("cuda", "cuda", "cpu")]
    for job in jobs:
        check(not job.failed, job.failed)
    if any(job.failed for job in jobs):
        return None
    if not check_device(there, here, emulated):
        return None
    check(there.bytes == again.bytes, "run there again it made other bytes")
    return there, here


def check_rounding(folder, model, data, emulated):
    jobs = run_both(folder, model, data, emulated, **ROUNDED)
    if not jobs:
        return
    check_figures(*jobs, ROUNDED_DECIBELS)
    seconds = [job.report["timings"]["calibrate"] for job in jobs]
    print(f"    rounded to 4 bits by moments: calibration took {seconds[0]:.2f} s there "
          f"and {seconds[1]:.2f} s on the CPU")


def check_model(folder, model, data, emulated):
    print(f"{Path(model).name}: device cuda against cpu", flush=True)
    jobs = run_both(folder, model, data, emulated)
    if not jobs:
        return
    check_ranges(*jobs)
    check_figures(*jobs)
    if data:
        check_rounding(folder, model, data, emulated)
        check_what_ifs(folder, model, data)


# --- main ---------------------------------------------------------------------------


def main():
    global most_samples, judged, alone
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    # An emulated device is slow: few samples are enough to try this script.
    if options.emulated:
        most_samples, judged, alone = 8, 4, 2
    data = DATA / ("calib_32.npz" if options.emulated else "calib_256.npz")
    models = [(model, data) for model in options.models]
    if not models:
        sys.path.insert(0, str(ROOT / "bench"))
        from make_model import cached
        models = [(DATA / f"{name}.onnx", data) for name in GLYPHS]
        models.append((cached(), None))
    with tempfile.TemporaryDirectory() as folder:
        for model, data in models:
            check_model(Path(folder), model, data, options.emulated)
    if wrong:
        sys.exit(f"{len(wrong)} of these were wrong")


if __name__ == "__main__":
    main()
