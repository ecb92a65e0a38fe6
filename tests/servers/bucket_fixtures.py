# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests with blobs in a bucket."""

import pytest

from bucket import Bucket
from service import Service


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    one = Bucket(tmp_path_factory.mktemp("s3"))
    try:
        yield one.start()
    finally:
        one.stop()


@pytest.fixture
def daemons(bucket, tmp_path):
    """Makes daemons whose blobs are below a prefix that is the test's own."""
    made = []

    def make(prefix=None, **environment):
        prefix = f"{tmp_path.name}/deep" if prefix is None else prefix
        one = Service(tmp_path / f"qdqd{len(made)}", **bucket.settings(prefix, **environment))
        one.prefix = prefix
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()


def key(daemon, blob, tenant="_"):
    return f"{daemon.prefix}/{tenant}/{blob.split(':')[1]}"


def drop_cache(daemon):
    for path in (daemon.state / "blobs").rglob("*"):
        if path.is_file():
            path.unlink()
