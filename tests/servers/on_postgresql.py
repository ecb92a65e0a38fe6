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


def is_of_a_store(name):
    return name.startswith("QDQD_STORE_")


def pytest_configure():
    new, begin = service.Service.__init__, service.Service.begin

    def new_on_postgresql(self, folder, **environment):
        new(self, folder, **{**settings(), **environment})
        self.store = {name: value for name, value in self.environment.items()
                      if is_of_a_store(name)}
        if "QDQD_AUTH_TOKENS" not in self.environment:
            access.ELSEWHERE[self.state] = self.store

    def begin_on_postgresql(self, *program, **environment):
        # A test that gives a daemon other settings means others than this.
        return begin(self, *program, **{**self.store, **self.environment, **environment})

    service.Service.__init__ = new_on_postgresql
    service.Service.begin = begin_on_postgresql


# Tests that have another meaning here, each with the reason why it is not run.
FILE = "it opens the record's file"
COMMAND = "it is about a command for a record in SQLite"
ALONE = "another daemon may use the record: it does at its start what a leader does later"
LATER = "another daemon may store the same bytes: deleted ones go after retention.leftovers"
TOKENS = "it is about the file of tokens"
SOON = "a daemon looks at the rows of tokens four times a second"
COUNTED = "the bytes of a shared record are counted once a second"
CLOCK = "the database's clock gives each row its own time"
NOT_HERE = {
    "::test_forget": LATER,
    "command/test_service.py::test_the_token": SOON,
    "browser/test_page.py::test_the_page_needs_no_token": SOON,
    "registries/test_hooks.py::test_a_message_needs_no_token": TOKENS,
    "::test_joined_survive_a_killed_daemon": ALONE,
    "::test_older_state_folder": FILE,
    "::test_lists_of_jobs_with_long_texts": FILE,
    "::test_lists_of_many_jobs": FILE,
    "::test_clock_set_": CLOCK,
    "::test_the_database_is_held_for_long": FILE,
    "::test_a_job_ends_while_the_database_is_held": FILE,
    "::test_a_disk_that_becomes_read_only": "the record is not on that disk",
    "store/test_migrations.py": FILE,
    "store/test_backup.py": COMMAND,
    "store/test_multifile.py::test_backup": COMMAND,
    "store/test_multifile.py::test_delete": LATER,
    "store/test_multifile.py::test_what_a_live_job_needs": LATER,
    "store/test_multifile.py::test_a_model_renews_its_blobs": LATER,
    "store/test_multifile.py::test_a_result_goes_with_its_job": LATER,
    "store/test_blobs.py::test_put_head_get_and_delete": LATER,
    "store/test_blobs.py::test_a_blob_and_a_model_of_the_same_bytes": LATER,
    "store/test_blobs.py::test_retention": CLOCK,
    "store/test_bucket.py::test_a_backup_is_of_the_record": COMMAND,
    "store/test_bucket.py::test_files_move_to_a_bucket": COMMAND,
    "store/test_check_store.py::test_no_state_folder": FILE,
    "store/test_check_store.py::test_small_files_that_the_record_has": FILE,
    "store/test_check_store.py::test_a_backup_after_a_loss_of_power": FILE,
    "store/test_record.py::test_a_lost_database": FILE,
    "store/test_record.py::test_adoption_names_no_damaged_file": COMMAND,
    "store/test_record.py::test_leftovers_have_a_grace_period": ALONE,
    "store/test_retention.py::test_what_is_seen_of_it": CLOCK,
    "store/test_retention.py::test_a_job_goes_with_all_that_it_left": LATER,
    "store/test_retention.py::test_files_go_unless_a_job_lives": LATER,
    "store/test_retention.py::test_swept_at_the_start": LATER,
    "store/test_storage.py::test_the_oldest_jobs_go_first": LATER,
    "store/test_storage.py::test_a_small_disk": LATER,
    "store/test_storage.py::test_an_older_result_makes_room": LATER,
    "tenants/test_disk.py::test_the_disk_that_another_tenant_fills": LATER,
    "tenants/test_disk.py::test_who_has_more_than_a_share": LATER,
    "tenants/test_tenants.py::test_the_rows_of_jobs_count": COUNTED,
    "tenants/test_tenants.py::test_a_queue_of_its_own": SOON,
    "tenants/test_tenants.py::test_equal_times_do_not_lose_jobs": FILE,
    "tenants/test_tenants.py::test_a_backup_has_all_tenants_and_the_tokens": COMMAND,
    "tenants/test_tenants.py::test_tokens_of_older_versions_are_read": TOKENS,
    "tenants/test_tenants.py::test_the_smallest_of_a_tenants_limits_holds": SOON,
    "tenants/test_tenants.py::test_bytes_of_its_own": SOON,
    "tenants/test_tenants.py::test_run_time_of_its_own": SOON,
    "tenants/test_tokens.py::test_from_the_first_token_on_one_is_needed": SOON,
    "tenants/test_tokens.py::test_what_is_no_token": SOON,
    "tenants/test_tokens.py::test_refused_before_the_body": SOON,
    "tenants/test_tokens.py::test_the_file_holds_hashes": TOKENS,
    "tenants/test_tokens.py::test_a_file_that_others_write": TOKENS,
}


def pytest_collection_modifyitems(items):
    for item in items:
        for name, reason in NOT_HERE.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(f"not on PostgreSQL: {reason}"))
