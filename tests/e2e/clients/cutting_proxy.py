# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy before a daemon that spoils the connections that a test names."""

import contextlib
import socket
import struct
import threading
from fnmatch import fnmatchcase
from urllib.parse import urlsplit


class CuttingProxy:
    """Passes connections on to a daemon. `plans` has a row for each connection to spoil, in
    their order: (a glob for the request's method and path, direction, bytes). After that many bytes in
    that direction ("up": to the daemon, "down": to the client) the connection is reset.
    With the direction "answer" the bytes are the answer, and the daemon sees nothing.
    With `is_closing` each connection serves one request, so that there is a row for each."""

    def __init__(self, url, plans, is_closing=False):
        self.plans = list(plans)
        self.is_closing = is_closing
        self.requests = []
        self._to = urlsplit(url)
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        # A blocked accept() ends by shutdown(), not by close().
        self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        self._server.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _plan(self, head):
        """Takes the first plan if it is for this request."""
        with self._lock:
            self.requests.append(head.split(b"\r\n")[0].decode().rsplit(" ", 1)[0])
            if self.plans and fnmatchcase(self.requests[-1], self.plans[0][0]):
                return self.plans.pop(0)[1:]
        return None, None

    def _serve(self, client):
        with client, contextlib.suppress(OSError):
            head = client.recv(65536)
            if not head:
                return
            direction, count = self._plan(head)
            if self.is_closing:
                head = head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            if direction == "answer":
                client.sendall(count)
                return
            with socket.create_connection((self._to.hostname, self._to.port)) as daemon:
                self._pass(client, daemon, head, direction, count)

    def _pass(self, client, daemon, head, direction, count):
        """Copies both ways until one side closes or the plan's bytes have passed."""
        def down():
            with contextlib.suppress(OSError):
                self._copy(daemon, client, b"", count if direction == "down" else None)
            for one in (client, daemon):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        back = threading.Thread(target=down)
        back.start()
        try:
            self._copy(client, daemon, head, count if direction == "up" else None)
        finally:
            # A client that has gone does not come back on this connection.
            with contextlib.suppress(OSError):
                daemon.shutdown(socket.SHUT_RDWR if direction == "up" else socket.SHUT_WR)
            with contextlib.suppress(OSError):
                if direction == "up":
                    client.shutdown(socket.SHUT_RDWR)
            back.join()

    @staticmethod
    def _copy(source, to, first, count):
        data, passed = first or source.recv(65536), 0
        while data:
            if count is not None and passed + len(data) >= count:
                to.sendall(data[:count - passed])
                reset = struct.pack("ii", 1, 0)
                to.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                return
            to.sendall(data)
            passed += len(data)
            data = source.recv(65536)
