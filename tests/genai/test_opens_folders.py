# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime GenAI opens the folders that `qdq quantize` writes, and its tokens are those that
ONNX Runtime's logits ask for, step by step and without a cache."""

import json
import subprocess

import numpy as np
import onnxruntime
import pytest

import decoders
from service import QUANTIZE

PROMPT, N = decoders.ids(1, 8, seed=5)[0], 16
SMOOTH = {"target": "onnxruntime", "activations": "none", "smooth": "awq",
          "weights": {"dtype": "uint4", "granularity": {"block": 32}, "rounding": "gptq"},
          "layers": [{"name": "@logits", "weights": {"dtype": "uint8", "granularity":
                                                     {"block": 32}}}],
          "output": {"decoder": "matmulnbits"}}


def expected(model):
    """The likeliest tokens, each by a run over all ids before it; and the lead of the likeliest."""
    session = onnxruntime.InferenceSession(model)
    ids, leads = list(PROMPT), []
    for _ in range(N):
        logits = session.run(["logits"], decoders.inputs_of(ids))[0][0, -1]
        order = np.argsort(logits)
        ids.append(int(order[-1]))
        leads.append(logits[order[-1]] - logits[order[-2]])
    return ids[len(PROMPT):], leads


@pytest.mark.parametrize("spec", [None, SMOOTH], ids=["as it is", "awq"])
def test_tokens_are_those_of_the_logits(tmp_path, make_tokens, spec):
    source = decoders.folder(tmp_path / "float")
    np.save(tmp_path / "ids.npy", decoders.ids(40, 40))
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    options = ["--spec", tmp_path / "spec.json"] if spec else []
    done = subprocess.run([*QUANTIZE, source, *options, "--calibration", tmp_path / "ids.npy",
                           "-o", tmp_path / "out"], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    tokens, leads = expected(tmp_path / "out" / "model.onnx")
    made = make_tokens(tmp_path / "out", PROMPT, N)
    # Products of 8 bits differ a little with the number of rows, so a near tie may go either way.
    sure = next((i for i, lead in enumerate(leads) if lead < 0.02), N)
    assert len(made) == N and sure > 4 and made[:sure] == tokens[:sure]
