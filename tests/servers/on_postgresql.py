# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: the daemons of all tests have their record in PostgreSQL, each in a database
of its own. With QDQD_TEST_POOLER=1 they reach it through pgbouncer in transaction mode, and
directly for what that cannot do.

    pytest -p on_postgresql tests/e2e/jobs
"""

import atexit
import itertools
import os
import tempfile
from pathlib import Path

import pytest

import registry
import service
from database import Server
from pooler import Pooler

NUMBERS = itertools.count()
started = []


def server():
    """Returns the server and the pooler, which are started for the first daemon of the process."""
    if not started:
        folder = tempfile.TemporaryDirectory()
        atexit.register(folder.cleanup)
        one = Server(Path(folder.name))
        atexit.register(one.close)
        pooler = None
        if os.environ.get("QDQD_TEST_POOLER"):
            pooler = Pooler(Path(folder.name), one)
            atexit.register(pooler.stop)
        started.append((one, pooler))
    return started[0]


def settings():
    """The environment of a daemon with a database of its own."""
    one, pooler = server()
    name = f"test{next(NUMBERS)}"
    one.sql(f"CREATE DATABASE {name}")
    if pooler:
        return {"QDQD_STORE_URL": pooler.url_of(name), "QDQD_STORE_DIRECT_URL": one.url_of(name)}
    return {"QDQD_STORE_URL": one.url_of(name)}


def pytest_configure():
    begin = service.Service.__init__

    def begin_on_postgresql(self, folder, **environment):
        begin(self, folder, **{**settings(), **environment})
    service.Service.__init__ = begin_on_postgresql


# Tests of a record in a file, of what a daemon without others does at its start, and of files
# that go at once.
OF_SQLITE = ("jobs/test_jobs.py::test_forget", "::test_joined_survive_a_killed_daemon",
             "::test_older_state_folder")


def pytest_collection_modifyitems(items):
    for item in items:
        if any(name in item.nodeid for name in OF_SQLITE):
            item.add_marker(pytest.mark.skip("it is about a record in SQLite"))
