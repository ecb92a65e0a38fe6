# SPDX-License-Identifier: Apache-2.0
"""Fixtures that a file of tests imports to have one daemon for all its tests, instead of one
for each test, with nets.block_net() and samples for it stored there."""

import pytest

import nets
from service import Service


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One daemon for all tests of the file."""
    one = Service(tmp_path_factory.mktemp("qdqd"))
    yield one.start()
    one.stop()


@pytest.fixture(scope="module")
def inputs(daemon):
    """The ids of the model and of the samples."""
    return {"model": daemon.upload("models", nets.block_net()),
            "calibration": daemon.upload("datasets", nets.samples())}
