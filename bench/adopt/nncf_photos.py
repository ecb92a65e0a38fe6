# SPDX-License-Identifier: Apache-2.0
import glob
import nncf
import numpy as np
import openvino
from PIL import Image
def image(path):
    return np.asarray(Image.open(path), np.float32)[None, None] / 255
paths = sorted(glob.glob("photos/*/*.png"))
model = openvino.Core().read_model("net.onnx")
quantized = nncf.quantize(model, nncf.Dataset(paths[::8], image))
openvino.save_model(quantized, "nncf.xml")
runs = [openvino.compile_model(one, "CPU") for one in (model, quantized)]
a, b = (np.concatenate([run(image(path))[0] for path in paths[1::8]]) for run in runs)
print(f"SQNR {10 * np.log10((a ** 2).sum() / ((a - b) ** 2).sum()):.1f} dB,",
      f"same top 1 {(a.argmax(1) == b.argmax(1)).mean():.3f}")
