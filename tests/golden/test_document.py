# SPDX-License-Identifier: Apache-2.0
"""The engine accepts the specs in docs/start/from-tensorflow-quantization.md."""

import json
import lzma
import re

import onnx
import pytest

from placement import HERE, Source

TEXT = (HERE.parents[1] / "docs" / "start" / "from-tensorflow-quantization.md").read_text()
BLOCKS = re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def inline_specs():
    """Returns the specs, or entries of specs, inside lines. `…` stands for anything."""
    for text in re.findall(r"`(\{[^`]*\})`", TEXT):
        if "…" in text:
            continue
        value = json.loads(text)
        entry = {"name", "class", "match"} & set(value)
        yield {"layers": [value], "on_unmatched": "warn"} if entry else value


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    packed = HERE / "toolkit" / "resnet50.onnx.xz"
    model = onnx.load_model_from_string(lzma.decompress(packed.read_bytes()))
    return Source(model, tmp_path_factory.mktemp("resnet"))


def test_blocks(resnet):
    assert len(BLOCKS) >= 5
    for block in BLOCKS:
        done = resnet.plan(json.loads(block))
        assert done.returncode == 0, (block, done.stderr)


def test_inline(resnet):
    specs = list(inline_specs())
    assert len(specs) >= 5
    for spec in specs:
        done = resnet.plan(spec)
        assert done.returncode == 0, (spec, done.stderr)
