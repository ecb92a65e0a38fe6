# SPDX-License-Identifier: Apache-2.0
"""make_tokens.py FOLDER N ID...: prints the N ids that ONNX Runtime GenAI puts behind the given
ones, each the likeliest."""

import sys

import numpy as np
import onnxruntime_genai as genai

folder, n, *ids = sys.argv[1:]
model = genai.Model(folder)
params = genai.GeneratorParams(model)
length = len(ids) + int(n)
params.set_search_options(max_length=length, min_length=length, do_sample=False)
generator = genai.Generator(model, params)
generator.append_tokens(np.array(ids, np.int32))
while not generator.is_done():
    generator.generate_next_token()
print(*generator.get_sequence(0)[len(ids):])
