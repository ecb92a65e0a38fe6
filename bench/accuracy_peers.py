# SPDX-License-Identifier: Apache-2.0
"""accuracy_peers.py [ROUNDS]: quantizing the networks of tests/data with accuracy methods,
by qdq and by NNCF, in one run on one machine: seconds, memory and SQNR.

Ours is `weights.rounding` `gptq` with asymmetric uint8 activations; NNCF is nncf.quantize()
with accurate bias correction (fast_bias_correction=False), its slower and better setting.
All 256 images are for calibration. Both start a process for each model and count the time
within it, without imports. A plain session of onnxruntime judges both on 1,000 other images.
PYTHON has `nncf==3.4.0 onnx onnxruntime==1.31.1 numpy`."""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import MIB, QDQ, ROOT, Measured, best, machine, table

DATA = ROOT / "tests" / "data"
MODELS = ("resnet", "vit", "mobilenet", "se")
SPEC = {"opset": "auto", "evaluate": False, "weights": {"rounding": "gptq"},
        "activations": {"dtype": "uint8", "symmetric": False}}


def nncf_quantize(model, out):
    """Runs in a process of its own, which must not take openvino.py of this folder for the
    package."""
    sys.path.remove(str(Path(__file__).parent))
    import nncf
    import onnx
    images = np.load(DATA / "calib_256.npz")["input"]
    start = time.monotonic()
    feeds = nncf.Dataset([{"input": images[i:i + 1]} for i in range(len(images))])
    onnx.save(nncf.quantize(onnx.load(model), feeds, subset_size=len(images),
                            fast_bias_correction=False), out)
    print(json.dumps(time.monotonic() - start))


def sqnr_db(model, made):
    import onnxruntime
    images = np.load(DATA / "test_1000.npz")["images"].astype(np.float32) / 255
    want, got = (onnxruntime.InferenceSession(
        str(m), providers=["CPUExecutionProvider"]).run(None, {"input": images})[0].astype(
            np.float64) for m in (model, made))
    return 10 * np.log10((want ** 2).sum() / ((want - got) ** 2).sum())


def ours(model, folder):
    (folder / "spec.json").write_text(json.dumps(SPEC))
    run = Measured([QDQ, "quantize", model, "--spec", folder / "spec.json", "--calibration",
                    DATA / "calib_256.npz", "-o", folder / "ours.onnx"])
    run.inner = run.seconds
    return run


def theirs(model, folder):
    run = Measured([sys.executable, "-W", "ignore", __file__, "--nncf", model,
                    folder / "nncf.onnx"])
    run.inner = json.loads(run.output.strip().splitlines()[-1])
    return run


def rows_of(name, rounds):
    model = DATA / f"glyph_{name}.onnx"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        pairs = [(ours(model, folder), theirs(model, folder)) for _ in range(rounds)]
        fast, slow = (best(runs, "inner") for runs in zip(*pairs))
        for who, seconds, runs in (("ours", fast, [p[0] for p in pairs]),
                                   ("nncf", slow, [p[1] for p in pairs])):
            yield [name, who, f"{seconds:.1f}", f"{seconds / fast:.1f}",
                   f"{best(runs, 'anonymous') / MIB:.0f}",
                   f"{sqnr_db(model, folder / f'{who}.onnx'):.1f}"]


def main(rounds=1):
    machine()
    table("Quantizing for accuracy, 256 images",
          ["model", "", "seconds", "ours = 1", "peak RssAnon, MiB", "SQNR, dB"],
          [row for name in MODELS for row in rows_of(name, int(rounds))])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--nncf"]:
        nncf_quantize(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
