# SPDX-License-Identifier: Apache-2.0
"""A real pgbouncer."""

import subprocess

import registry

from service import eventually


class Pooler:
    """pgbouncer in transaction mode before a server."""

    def __init__(self, folder, server):
        registry.program("pgbouncer")
        self.server, self.port = server, registry.free_port()
        with (folder / "pgbouncer.log").open("ab") as log:
            self.process = subprocess.Popen(
                [registry.HERE / "pgbouncer", str(self.port), str(server.port)],
                stdout=log, stderr=log, start_new_session=True)
        eventually(lambda: subprocess.run(
            [server.programs / "pg_isready", "-q", "-d", self.url_of("qdqd")],
            check=False).returncode == 0, 60)

    def url_of(self, database):
        return f"postgresql://qdqd@127.0.0.1:{self.port}/{database}"

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
