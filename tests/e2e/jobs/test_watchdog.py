# SPDX-License-Identifier: Apache-2.0
"""Notifications to the service manager: ready, alive while the daemon answers, stopping.
"""

import resource
import socket
import time

import pytest

from service import Service, eventually
from test_tls import make_certificate


class Manager:
    """The socket that NOTIFY_SOCKET names."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    def heard(self):
        """Returns all notifications since the last call."""
        said = []
        try:
            while True:
                said.append(self.socket.recv(200).decode())
        except BlockingIOError:
            return said


@pytest.fixture
def manager(tmp_path):
    one = Manager(tmp_path / "notify")
    yield one
    one.socket.close()


def watched(tmp_path, manager, **environment):
    one = Service(tmp_path / "watched", **environment)
    return one.start(NOTIFY_SOCKET=str(manager.path), WATCHDOG_USEC="400000")


@pytest.mark.alone
def test_watchdog(tmp_path, manager):
    daemon = watched(tmp_path, manager)
    eventually(lambda: "READY=1" in manager.heard())
    begin, beats = time.monotonic(), 0
    while beats < 8:  # one in half of the time that is allowed, unless the machine is busy
        eventually(lambda: "WATCHDOG=1" in manager.heard())
        beats += 1
    assert time.monotonic() - begin > 0.2 * (beats - 2)
    # No new connection is answered, because there is no descriptor for it.
    limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    eventually(lambda: "event=not_answering" in daemon.log.read_text())
    manager.heard()
    time.sleep(1)
    assert manager.heard() == []
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, limits)
    eventually(lambda: "WATCHDOG=1" in manager.heard())
    daemon.stop()
    # Running jobs have 30 s by default, and then there is something to close.
    assert manager.heard()[-1] == "STOPPING=1\nEXTEND_TIMEOUT_USEC=60000000"


def test_watchdog_of_a_listener_with_tls(tmp_path, manager):
    cert, key = make_certificate(tmp_path, "one")
    daemon = Service(tmp_path / "tls", QDQD_HTTP_TLS_CERT=str(cert), QDQD_HTTP_TLS_KEY=str(key))
    daemon.http.verify = str(cert)
    plain = daemon.get

    def get(path, **options):
        daemon.url = daemon.url.replace("http://", "https://")
        return plain(path, **options)

    daemon.get = get
    daemon.start(NOTIFY_SOCKET=str(manager.path), WATCHDOG_USEC="400000")
    # An alert of TLS is an answer.
    eventually(lambda: "WATCHDOG=1" in manager.heard())
    eventually(lambda: "WATCHDOG=1" in manager.heard())
    daemon.stop()


def test_no_watchdog_of_another_process(tmp_path, manager):
    daemon = Service(tmp_path / "other")
    daemon.start(NOTIFY_SOCKET=str(manager.path), WATCHDOG_USEC="200000", WATCHDOG_PID="1")
    time.sleep(0.6)
    assert manager.heard() == ["READY=1"]
    daemon.stop()
