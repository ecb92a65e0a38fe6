# SPDX-License-Identifier: Apache-2.0
"""A frozen spec of an old release still makes the same model."""

import hashlib
import json

import pytest

from service import DATA, VERSION

OLD = DATA / "frozen_0.1"


def version_entry(version):
    """Returns the bytes of the metadata `qdqd.version` in a model's file."""
    key, text = b"qdqd.version", version.encode()
    pair = b"\n%c%b\x12%c%b" % (len(key), key, len(text), text)
    return b"r%c%b" % (len(pair), pair)


@pytest.mark.parametrize("name", sorted(json.loads((OLD / "digests.json").read_text())))
def test_a_frozen_spec_of_version_0_1_gives_the_same_bytes(daemon, name):
    """All but those of the version in the metadata."""
    text = (OLD / f"{name}.json").read_bytes()
    model = daemon.upload("models", (OLD / "block_net.onnx").read_bytes())
    job = daemon.submit(model=model, spec=json.loads(text))
    daemon.succeeded(job)
    made = daemon.get(f"/v1/jobs/{job}/model").content
    digests = json.loads((OLD / "digests.json").read_text())
    assert made.count(version_entry(VERSION)) == 1
    made = made.replace(version_entry(VERSION), version_entry("0.1.0"))
    assert hashlib.sha256(made).hexdigest() == digests[name]
    assert daemon.get(f"/v1/jobs/{job}/spec").content == text
    assert daemon.report(job)["host"]["name"] is None
