# SPDX-License-Identifier: Apache-2.0
"""A request that its head already makes invalid is refused before its body: at once with
Expect: 100-continue, and otherwise so that the answer still arrives."""

import contextlib
import json
import socket
import time

import pytest

from service import DATA, eventually

MODEL = (DATA / "glyph_se.onnx").read_bytes()


class Connection:
    """A client that sees every byte of the answer."""

    def __init__(self, service):
        host, port = service.url.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def head(self, method, path, *headers):
        lines = [f"{method} {path} HTTP/1.1", *headers]
        if not any(h.startswith("Host") for h in headers):
            lines.append("Host: localhost")
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")

    def send(self, data):
        self.socket.sendall(data)

    def _until(self, done):
        while not done():
            piece = self.socket.recv(65536)
            assert piece, f"closed after {self.seen!r}"
            self.seen += piece

    def answer(self):
        """Returns the next answer: status, headers, body."""
        self._until(lambda: b"\r\n\r\n" in self.seen)
        head, self.seen = self.seen.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        size = int(headers.get("content-length", 0))
        self._until(lambda: len(self.seen) >= size)
        body, self.seen = self.seen[:size], self.seen[size:]
        return int(first.split()[1]), headers, body

    def problem(self, status, code):
        found, headers, body = self.answer()
        assert found == status, body
        assert headers["content-type"] == "application/problem+json"
        assert json.loads(body)["code"] == code
        return headers

    def ended(self):
        self.socket.settimeout(60)
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True


EXPECT = "Expect: 100-continue"
REFUSED = [
    (413, "too_large", "POST", "/v1/models", ["Content-Length: 99999999"]),
    (413, "too_large", "POST", "/v1/jobs",
     ["Content-Length: 2000000", "Content-Type: application/json"]),
    (404, "not_found", "POST", "/v1/nothing", ["Content-Length: 5"]),
    (405, "method_not_allowed", "PUT", "/v1/quantize", ["Content-Length: 5"]),
    (415, "unsupported_media_type", "POST", "/v1/jobs",
     ["Content-Length: 5", "Content-Type: image/png"]),
    (415, "unsupported_media_type", "POST", "/v1/models",
     ["Content-Length: 5", "Content-Encoding: gzip"]),
    (403, "host_not_allowed", "POST", "/v1/models",
     ["Content-Length: 5", "Host: evil.example"]),
    (400, "bad_request", "POST", "/v1/models",
     ["Content-Length: 5", "Repr-Digest: sha-256=:AAAA:"]),
    (400, "bad_request", "POST", "/v1/models",
     ["Content-Length: 5", "Content-Type: multipart/form-data"]),
]


@pytest.fixture
def small(service):
    return service(http_max_body="8M")


def test_with_expect_at_once(small):
    for status, code, method, path, headers in REFUSED:
        with Connection(small) as one:
            one.head(method, path, EXPECT, *headers)
            found = one.problem(status, code)  # and no "100 Continue" before
            assert found["connection"].lower() == "close", path
            assert one.ended()


def test_without_expect_it_arrives_nevertheless(small):
    """A simple client that sends its whole body before it reads still gets the answer."""
    for status, code, method, path, headers in REFUSED:
        size = int(headers[0].split()[1])
        with Connection(small) as one:
            one.head(method, path, *headers)
            one.send(bytes(min(size, 4 << 20)))
            one.problem(status, code)
            with contextlib.suppress(OSError):  # The daemon may have ended it already.
                one.socket.shutdown(socket.SHUT_WR)
            assert one.ended()
    assert small.temporary_files() == []


def test_a_client_that_goes_on_sending_is_cut_off(small):
    """The daemon closes the connection after 2 s; the limit of its bytes per second, which would
    close it too, is checked after http.timeout, 60 s."""
    with Connection(small) as one:
        one.head("POST", "/v1/models", "Content-Length: 99999999")
        one.problem(413, "too_large")
        begin = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < begin + 60:
                one.send(b"x")
                time.sleep(0.05)
        assert time.monotonic() - begin < 30


def test_good_ones_are_continued(small):
    """A valid request with Expect: 100-continue gets 100, then its answer."""
    for path, status in (("/v1/models", 201), ("/v1/models", 200)):
        with Connection(small) as one:
            one.head("POST", path, EXPECT, f"Content-Length: {len(MODEL)}")
            assert one.answer()[0] == 100
            one.send(MODEL)
            assert one.answer()[0] == status


def test_full_queue(held, service):
    one = service(queue_max=1, **held)
    first = one.submit_glyphs()
    one.running(first)
    second = one.submit_glyphs("glyph_mobilenet")
    for path in ("/v1/jobs", "/v1/quantize"):
        for headers in ([EXPECT], []):
            with Connection(one) as client:
                client.head("POST", path, "Content-Length: 3000000",
                            "Content-Type: multipart/form-data; boundary=xyz", *headers)
                if not headers:
                    client.send(bytes(3000000))
                assert client.problem(429, "queue_full")["retry-after"] == "1"
    for job in (second, first):
        one.post(f"/v1/jobs/{job}/cancel")


def test_full_disk(service):
    """An upload larger than any disk is refused."""
    one = service(http_max_body=10 ** 18)
    for path in ("/v1/models", "/v1/datasets", "/v1/quantize"):
        with Connection(one) as client:
            client.head("POST", path, f"Content-Length: {10 ** 17}", EXPECT,
                        "Content-Type: multipart/form-data; boundary=xyz")
            client.problem(507, "disk_full")
            assert client.ended()


def test_a_mistake_in_the_middle(small):
    """An error that is found in the body is answered at once, even if the client would
    send for hours."""
    part = b'--xyz\r\nContent-Disposition: form-data; name="modle"\r\n\r\n'
    with Connection(small) as one:
        one.head("POST", "/v1/quantize", "Transfer-Encoding: chunked",
                 "Content-Type: multipart/form-data; boundary=xyz")
        chunk = part + bytes(100000)
        sent = 0
        one.socket.settimeout(1)
        try:
            while sent < 40 << 20:
                one.send(b"%x\r\n" % len(chunk) + chunk + b"\r\n")
                sent += len(chunk)
                chunk = bytes(100000)
        except OSError:
            pass
        one.socket.settimeout(60)
        assert sent < 40 << 20
        one.problem(400, "bad_request")
    eventually(lambda: small.temporary_files() == [])


def test_a_mistake_near_the_end_keeps_the_connection(small):
    form = (b'--xyz\r\nContent-Disposition: form-data; name="modle"\r\n\r\n1\r\n'
            + bytes(100000) + b"\r\n--xyz--\r\n")
    with Connection(small) as one:
        for _ in range(2):
            one.head("POST", "/v1/quantize", f"Content-Length: {len(form)}",
                     "Content-Type: multipart/form-data; boundary=xyz")
            one.send(form)
            one.problem(400, "bad_request")
        one.head("GET", "/healthz")
        assert one.answer()[0] == 200
