# SPDX-License-Identifier: Apache-2.0
"""budgets.py [--formats F,F] [MODEL…]: formats by layer for a number of bytes, by qdq and by
onnxsim, which mixes int4 and int8 in blocks of 32 by the share of layers that get int8.

The models are converted to opset 21 for onnxsim, which quantizes nothing of older ones.
Each share from none to all gives a file of onnxsim's. qdq gets the size of that file as
`recipe.max_bytes`, the same 256 images for calibration and the same formats. The 1,000 other
images judge both: SQNR over all logits, weights alone, in a plain session of onnxruntime.
The PYTHON of this script has `onnxsim==0.8.1 onnx onnxruntime==1.31.1 numpy`."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime

from common import QDQ, ROOT, Measured, machine, table

DATA = ROOT / "tests" / "data"
MODELS = ("resnet", "mobilenet", "vit", "se")
SHARES = tuple(i / 7 for i in range(8))


def logits(model, images):
    session = onnxruntime.InferenceSession(str(model))
    return np.concatenate([session.run(None, {"input": images[i:i + 100]})[0]
                           for i in range(0, len(images), 100)]).astype(np.float64)


def sqnr(float_logits, others):
    return 10 * np.log10((float_logits ** 2).sum() / ((float_logits - others) ** 2).sum())


def onnxsim_mixed(model, share, images, out):
    import onnxsim

    batches = [{"input": images[i:i + 1]} for i in range(len(images))]
    newer = onnx.version_converter.convert_version(onnx.load(model), 21)
    mixed = onnxsim.apply_mixed_precision_quantization(
        newer, high_bits_fraction=share, calibration_data=batches, block_size=32)
    used = {name for node in mixed.graph.node for name in node.input}
    kept = [c for c in mixed.graph.initializer if c.name in used]
    del mixed.graph.initializer[:]  # it leaves the float weights in the file
    mixed.graph.initializer.extend(kept)
    onnx.save(mixed, out)


def ours(model, folder, size, formats):
    spec, out = folder / "spec.json", folder / "ours.onnx"
    spec.write_text(json.dumps({
        "target": "onnxruntime", "activations": "none", "evaluate": False,
        "weights": {"dtype": formats[0], "granularity": {"block": 32}, "rounding": "gptq"},
        "recipe": {"max_bytes": size, "formats": formats}}))
    done = Measured([QDQ, "quantize", model, "--spec", spec, "--calibration",
                     DATA / "calib_256.npz", "-o", out])
    return out, done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--formats", default="int4,int8,float32")
    options = parser.parse_args()
    test = np.load(DATA / "test_1000.npz")["images"].astype(np.float32) / np.float32(255)
    data = np.load(DATA / "calib_256.npz")
    images = data[data.files[0]]
    rows = []
    for name in options.models:
        model = DATA / f"glyph_{name}.onnx"
        real = logits(model, test)
        for share in SHARES:
            with tempfile.TemporaryDirectory() as folder:
                theirs = Path(folder) / "theirs.onnx"
                begin = time.monotonic()
                onnxsim_mixed(model, share, images, theirs)
                seconds = time.monotonic() - begin
                size = theirs.stat().st_size
                cells = [name, f"{share:.2f}", size, f"{sqnr(real, logits(theirs, test)):.1f}",
                         f"{seconds:.1f}"]
                result, done = ours(model, Path(folder), size, options.formats.split(","))
                cells += [result.stat().st_size, f"{sqnr(real, logits(result, test)):.1f}",
                          f"{done.seconds:.1f}"] if result.exists() else ["", "", ""]
                rows.append(cells)
                print(*cells, file=sys.stderr, flush=True)
    print(machine())
    table("Formats by layer for a number of bytes",
          ["model", "share of int8", "onnxsim bytes", "dB", "s", "ours bytes", "dB", "s"], rows)


if __name__ == "__main__":
    main()
