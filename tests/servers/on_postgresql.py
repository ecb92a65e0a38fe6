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

import access
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
        if "QDQD_AUTH_TOKENS" not in self.environment:
            access.ELSEWHERE[self.state] = {name: value for name, value in self.environment.items()
                                            if name.startswith("QDQD_STORE_")}
    service.Service.__init__ = begin_on_postgresql


# Tests of what is otherwise here, each with the reason why it is not run.
FILE = "it opens the record's file"
COMMAND = "it is about a command for a record in SQLite"
ALONE = "another daemon may use the record: it does at its start what a leader does later"
OF_SQLITE = {
    "jobs/test_forget": ALONE,
    "::test_joined_survive_a_killed_daemon": ALONE,
    "::test_older_state_folder": FILE,
    "::test_lists_of_jobs_with_long_texts": FILE,
    "::test_clock_set_": "the clock is the database's",
    "::test_the_database_is_held_for_long": FILE,
    "::test_a_job_ends_while_the_database_is_held": FILE,
    "store/test_migrations.py": FILE,
    "store/test_backup.py": COMMAND,
    "store/test_multifile.py::test_backup": COMMAND,
    "store/test_bucket.py::test_a_backup_is_of_the_record": COMMAND,
    "store/test_bucket.py::test_files_move_to_a_bucket": COMMAND,
    "store/test_record.py::test_a_lost_database": FILE,
    "store/test_record.py::test_adoption_names_no_damaged_file": COMMAND,
    "store/test_record.py::test_leftovers_have_a_grace_period": ALONE,
    "::test_equal_times_do_not_lose_jobs": FILE,
}


def pytest_collection_modifyitems(items):
    for item in items:
        for name, reason in OF_SQLITE.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(f"not on PostgreSQL: {reason}"))
