# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: daemons of all tests have their blobs in a bucket, each below a prefix of its
own.

    pytest -p in_bucket tests/e2e/jobs
"""

import atexit
import itertools
import os
import tempfile
from pathlib import Path

import pytest

import service
from bucket import Bucket

NUMBERS = itertools.count()
started = []


def bucket():
    """Returns the server, which is started for the first daemon of the process."""
    if not started:
        folder = tempfile.TemporaryDirectory()
        one = Bucket(Path(folder.name))
        atexit.register(folder.cleanup)
        atexit.register(one.stop)
        started.append((one.start(), folder))
    return started[0][0]


def pytest_configure():
    begin = service.Service.__init__

    def begin_with_bucket(self, folder, **environment):
        prefix = f"{os.getpid()}/{next(NUMBERS)}"
        begin(self, folder, **{**bucket().settings(prefix), **environment})
    service.Service.__init__ = begin_with_bucket


# Tests of files that are not a cache: what is damaged there, and whose jobs go for want of a disk.
OF_FILES = ("store/test_damage.py", "store/test_check_store.py", "tenants/test_disk.py",
            "::test_a_small_disk", "::test_leftovers_have_a_grace_period")


def pytest_collection_modifyitems(items):
    for item in items:
        if any(name in item.nodeid for name in OF_FILES):
            item.add_marker(pytest.mark.skip("it is about files"))
