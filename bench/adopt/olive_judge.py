# SPDX-License-Identifier: Apache-2.0
import glob
import numpy as np
import onnxruntime
from PIL import Image
def image(path):
    return {"input": np.asarray(Image.open(path), np.float32)[None, None] / 255}
paths = sorted(glob.glob("photos/*/*.png"))
runs = [onnxruntime.InferenceSession(name) for name in ("net.onnx", "olive/model.onnx")]
a, b = (np.concatenate([run.run(None, image(path))[0] for path in paths[1::8]]) for run in runs)
print(f"SQNR {10 * np.log10((a ** 2).sum() / ((a - b) ** 2).sum()):.1f} dB,",
      f"same top 1 {(a.argmax(1) == b.argmax(1)).mean():.3f}")
