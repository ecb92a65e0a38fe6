# SPDX-License-Identifier: Apache-2.0
import glob
import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from PIL import Image
def image(path):
    return {"input": np.asarray(Image.open(path), np.float32)[None, None] / 255}
class Reader(CalibrationDataReader):
    def __init__(self, paths):
        self.rows = map(image, paths)
    def get_next(self):
        return next(self.rows, None)
paths = sorted(glob.glob("photos/*/*.png"))
quant_pre_process("net.onnx", "prepared.onnx")
quantize_static("prepared.onnx", "static.int8.onnx", Reader(paths[::8]),
                quant_format=QuantFormat.QDQ, per_channel=True)
runs = [onnxruntime.InferenceSession(name) for name in ("net.onnx", "static.int8.onnx")]
a, b = (np.concatenate([run.run(None, image(path))[0] for path in paths[1::8]]) for run in runs)
print(f"SQNR {10 * np.log10((a ** 2).sum() / ((a - b) ** 2).sum()):.1f} dB,",
      f"same top 1 {(a.argmax(1) == b.argmax(1)).mean():.3f}")
