# SPDX-License-Identifier: Apache-2.0
"""calibrate_caches.py MODEL IDS.npy SCHEME METHOD PERCENTILE OUT.json: scales of caches by the
calibration of ONNX Runtime GenAI, which reads the given ids in the place of a text's."""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np


class _Tokenizer:
    """The ids of all samples, one behind the other; GenAI cuts them into these samples again."""

    @classmethod
    def from_pretrained(cls, path):
        ret = cls()
        ret.ids = np.load(path).ravel().tolist()
        return ret

    def encode(self, text):
        return self.ids


sys.modules["transformers"] = types.SimpleNamespace(AutoTokenizer=_Tokenizer)
package = Path(importlib.util.find_spec("onnxruntime_genai").origin).parent
spec = importlib.util.spec_from_file_location(
    "calibration", package / "models" / "quantization" / "kv_cache_calibration.py")
calibration = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibration)

model, ids, scheme, method, percentile, out = sys.argv[1:]
samples, length = np.load(ids).shape
calibration.calibrate_kv_scales(model, ids, out, quant_type=scheme, method=method,
                                percentile=float(percentile), target_seq=length,
                                num_seqs=samples)
