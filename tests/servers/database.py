# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL server that can be stopped and started again."""

import shutil
import signal
import subprocess
from pathlib import Path

import registry

from service import eventually


class Server:
    """A cluster of PostgreSQL with the database qdqd."""

    def __init__(self, folder):
        self.programs = Path(registry.program("postgresql"))
        self.folder, self.port = folder, registry.free_port()
        self.url = self.url_of("qdqd")
        self.start()

    def url_of(self, database):
        return f"postgresql://qdqd@127.0.0.1:{self.port}/{database}"

    def answers(self):
        return subprocess.run([self.programs / "pg_isready", "-q", "-d", self.url],
                              check=False).returncode == 0

    def start(self):
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [registry.HERE / "postgresql", self.folder, str(self.port)], stdout=log,
                stderr=log, start_new_session=True)
        eventually(self.answers, 60)
        return self

    def stop(self, how=signal.SIGINT):
        """SIGINT ends the server in order, SIGQUIT at once, without a word to anybody."""
        self.process.send_signal(how)
        self.process.wait(60)

    def close(self):
        """Ends the server; its files go."""
        self.stop()
        shutil.rmtree(f"/tmp/qdqd-postgresql-{self.port}", ignore_errors=True)
        shutil.rmtree(self.folder / "cluster", ignore_errors=True)

    def sql(self, text, database="qdqd"):
        done = subprocess.run([self.programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d",
                               self.url_of(database), "-c", text],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def rows(self, text):
        return [line.split("|") for line in self.sql(text).splitlines()]

    def empty(self):
        """Removes all tenants of the database qdqd."""
        for schema in self.sql("SELECT nspname FROM pg_namespace"
                               " WHERE nspname LIKE 'qdqd%'").split():
            self.sql(f'DROP SCHEMA "{schema}" CASCADE')
