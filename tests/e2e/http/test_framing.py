# SPDX-License-Identifier: Apache-2.0
"""Requests that a proxy may read in another way than the daemon: each gets one answer, a
problem document, and no byte behind it runs as a request of its own."""

import ctypes
import json
import re
import socket

import pytest

from service import Service, eventually

HOST = b"Host: localhost\r\n"
# A request that a client hides in the body of another one. It is answered by 404.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("framing")).start()
    yield service
    service.stop()


def exchange(one, data):
    """Sends the bytes and returns all that comes until the daemon closes."""
    host, port = one.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        seen = b""
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The daemon has ended the connection already; its answer can still be read.
        try:
            while piece := client.recv(65536):
                seen += piece
        except ConnectionResetError:
            pass
    return seen


def statuses(seen):
    return [int(n) for n in re.findall(rb"HTTP/1\.[01] (\d{3}) ", seen)]


def get(*headers, line=b"GET /healthz HTTP/1.1", host=HOST):
    return line + b"\r\n" + host + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


def post(*headers, line=b"POST /v1/plan HTTP/1.1", body=SMUGGLED):
    return get(*headers, line=line) + body


N = str(len(SMUGGLED)).encode()
CHUNKED = b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n"

# Each is answered by 400 once, and the connection ends.
BAD = {
    "length with a space": post(b"Content-Length : " + N),
    "length with a tab": post(b"Content-Length\t: " + N),
    "length behind a space": post(b" Content-Length: " + N),
    "encoding with a space": post(b"Transfer-Encoding : chunked", body=CHUNKED),
    "encoding with a tab": post(b"Transfer-Encoding\t: chunked", body=CHUNKED),
    "another header with a space": get(b"X-Any : 1") + SMUGGLED,
    "a name with a control": get(b"X\x01: 1") + SMUGGLED,
    "a name with a parenthesis": get(b"X(y): 1") + SMUGGLED,
    "a line without a colon": get(b"Nothing") + SMUGGLED,
    "a return in a value": get(b"X: 1\rContent-Length: " + N) + SMUGGLED,
    "a control in a value": get(b"X: 1\x02") + SMUGGLED,
    "two lengths": post(b"Content-Length: 0", b"Content-Length: " + N),
    "the same length twice": post(b"Content-Length: " + N, b"Content-Length: " + N),
    "a list of lengths": post(b"Content-Length: " + N + b", " + N),
    "a length with a sign": post(b"Content-Length: +" + N),
    "a length below nought": post(b"Content-Length: -1"),
    "a length in hexadecimal": post(b"Content-Length: 0x10"),
    "a length that is a word": post(b"Content-Length: all"),
    "an empty length": post(b"Content-Length: "),
    "length and encoding": post(b"Content-Length: 5", b"Transfer-Encoding: chunked",
                                body=CHUNKED),
    "encoding and length": post(b"Transfer-Encoding: chunked", b"Content-Length: 5",
                                body=CHUNKED),
    "two encodings": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity",
                          body=CHUNKED),
    "a list of encodings": post(b"Transfer-Encoding: gzip, chunked", body=CHUNKED),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked", body=CHUNKED),
    "identity": post(b"Transfer-Encoding: identity"),
    "an unknown encoding": post(b"Transfer-Encoding: xchunked", body=CHUNKED),
    "an encoding with a return": post(b"Transfer-Encoding: \rchunked", body=CHUNKED),
    "an empty encoding": post(b"Transfer-Encoding: ", body=CHUNKED),
    "an encoding in HTTP/1.0": post(b"Transfer-Encoding: chunked", body=CHUNKED,
                                    line=b"POST /v1/plan HTTP/1.0"),
    "two tokens": get(b"Authorization: Bearer a", b"Authorization: Bearer b") + SMUGGLED,
    "two keys": post(b"Idempotency-Key: a", b"Idempotency-Key: b", b"Content-Length: " + N),
    "two tenants": get(b"Qdqd-Tenant: a", b"Qdqd-Tenant: b") + SMUGGLED,
    "two types": post(b"Content-Type: a/b", b"Content-Type: c/d", b"Content-Length: " + N),
    "two hosts": get(b"Host: localhost") + SMUGGLED,
    "two different hosts": get(b"Host: other") + SMUGGLED,
    "no host": get(host=b"") + SMUGGLED,
    "a slash in a path": get(line=b"GET /v1%2fjobs HTTP/1.1") + SMUGGLED,
    "a capital slash in a path": get(line=b"GET /v1/jobs%2Fx HTTP/1.1") + SMUGGLED,
    "a NUL in a path": get(line=b"GET /healthz%00x HTTP/1.1") + SMUGGLED,
    "a NUL in a query": get(line=b"GET /v1/jobs?limit=1%00x HTTP/1.1") + SMUGGLED,
    "a space in a path": get(line=b"GET /a /healthz HTTP/1.1") + SMUGGLED,
    "a tab in a path": get(line=b"GET /\thealthz HTTP/1.1") + SMUGGLED,
}


# Versions of the library from 1.0 on refuse these before they tell the daemon of the
# request, and answer with a page of their own.
UNTOLD = ["a space in a path"]


def is_older_library():
    """Returns whether the library, which the daemon loads too, is older than 1.0."""
    version = ctypes.CDLL("libmicrohttpd.so.12").MHD_get_version
    version.restype = ctypes.c_char_p
    return version().startswith(b"0.")


@pytest.mark.parametrize("name", BAD)
def test_ambiguous(one, name):
    seen = exchange(one, BAD[name])
    assert statuses(seen) == [400], seen
    head, body = seen.split(b"\r\n\r\n", 1)
    assert re.search(rb"(?i)\r\nconnection: close\b", head), seen
    if name in UNTOLD and not is_older_library():
        return
    assert b"application/problem+json" in head, seen
    assert json.loads(body)["code"] == "bad_request"
    assert re.search(rb"(?i)\r\nx-request-id: ", head), seen


# The library refuses these before any of the daemon's code sees them; one head is enough.
ODD = {
    "no version": b"GET /healthz\r\n" + HOST + b"\r\n" + SMUGGLED,
    "an unknown version": get(line=b"GET /healthz HTTP/3.1") + SMUGGLED,
    "an old version": get(line=b"GET /healthz HTTP/0.9") + SMUGGLED,
    "a version with a zero": get(line=b"GET /healthz HTTP/1.01") + SMUGGLED,
    "no method": get(line=b" /healthz HTTP/1.1") + SMUGGLED,
    "a length without end": post(b"Content-Length: 99999999999999999999999"),
    "a chunk without a size": post(b"Transfer-Encoding: chunked", body=b"\r\n" + SMUGGLED),
    "a chunk with a sign": post(b"Transfer-Encoding: chunked",
                                body=b"+5\r\nabcde\r\n0\r\n\r\n" + SMUGGLED),
    "a chunk in 0x": post(b"Transfer-Encoding: chunked",
                          body=b"0x5\r\nabcde\r\n0\r\n\r\n" + SMUGGLED),
    "a chunk with a space": post(b"Transfer-Encoding: chunked",
                                 body=b"5 \r\nabcde\r\n0\r\n\r\n" + SMUGGLED),
    "a chunk without end": post(b"Transfer-Encoding: chunked",
                                body=b"f" * 17 + b"\r\nabcde\r\n0\r\n\r\n" + SMUGGLED),
    "a chunk that is longer": post(b"Transfer-Encoding: chunked",
                                   body=b"2\r\nabcde\r\n0\r\n\r\n" + SMUGGLED),
}


@pytest.mark.parametrize("name", ODD)
def test_malformed(one, name):
    seen = exchange(one, ODD[name])
    assert len(statuses(seen)) <= 1 and all(400 <= s < 600 for s in statuses(seen)), seen
    assert b"smuggled" not in seen


def test_bytes_behind_a_chunked_body_are_no_request(one):
    """The library's version on Debian 12 takes a bare line feed for the end of a chunk's
    line, which a proxy may read otherwise."""
    for ending in (b"\r\n", b"\n"):
        body = b"2" + ending + b"{}" + ending + b"0" + ending + ending
        seen = exchange(one, post(b"Transfer-Encoding: chunked", body=body + SMUGGLED))
        assert b"smuggled" not in seen or ending == b"\r\n", seen
        assert statuses(seen)[0] in (400, 415), seen


STRICT = {
    "a bare line feed": get(b"X: 1\nX-Other: 2"),
    "only bare line feeds": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "a NUL in a value": get(b"X: 1\x002"),
    "a NUL in a line": get(line=b"GET /heal\x00thz HTTP/1.1"),
    "a header in two lines": get(b"X: 1\r\n 2"),
}


@pytest.mark.skipif(is_older_library(), reason="versions before 1.0 cannot be told to refuse")
@pytest.mark.parametrize("name", STRICT)
def test_refused_from_version_1_on(one, name):
    seen = exchange(one, STRICT[name] + SMUGGLED)
    assert statuses(seen) in ([400], []), seen


MANY = {
    "query": get(line=b"GET /v1/jobs?" + b"a=b&" * 3000 + b" HTTP/1.1"),
    "empty members": get(line=b"GET /v1/jobs?" + b"&a" * 6000 + b" HTTP/1.1"),
    "headers": get(*[b"X-%d: 1" % i for i in range(1200)]),
    "cookies": get(b"Cookie: " + b"; ".join([b"a=b"] * 3000)),
    "cookie": get(b"Cookie: a=" + b"b" * 12000),
    "long query": get(line=b"GET /v1/jobs?a=" + b"b" * 17000 + b" HTTP/1.1"),
    "long line": get(line=b"GET /" + b"b" * 60000 + b" HTTP/1.1"),
    "long header": get(b"X: " + b"b" * 60000),
}


@pytest.mark.parametrize("name", MANY)
def test_large_heads_get_one_answer(one, name):
    seen = exchange(one, MANY[name])
    expected = [[200]] if name == "cookie" else [[431], [414]]
    assert statuses(seen) in expected, seen
    assert seen.count(b"Connection:") <= 1, seen
    if statuses(seen) == [431]:
        assert json.loads(seen.split(b"\r\n\r\n", 1)[1])["code"] == "header_too_large"


def test_good_ones_go_on(one):
    """Forms that are unusual and right keep their connection."""
    good = [get(), get(b"X-Empty:"), get(b"X-Tab:\ta\tb"), get(b"X-High: \xc3\xa9"),
            get(line=b"GET /healthz?x=%2f HTTP/1.1"), get(b"Content-Length: 0"),
            get(line=b"GET /v1/models/sha256%3Aabc HTTP/1.1")]
    seen = exchange(one, b"".join(good))
    assert statuses(seen) == [200] * 6 + [404], seen
    assert statuses(exchange(one, get(line=b"GET /healthz HTTP/1.0", host=b""))) == [200]


def count_refused(one):
    text = one.get("/metrics").text
    return sum(int(n) for n in re.findall(
        r'qdqd_http_requests_total\{.*status="400"\} (\d+)', text))


@pytest.mark.parametrize("target, status", [
    (b"/healthz", 200), (b"/v1/targets?x=1", 200), (b"", 302), (b"/nowhere", 404),
    (b"//healthz", 404), (b"/%2fhealthz", 400)])
@pytest.mark.parametrize("scheme", [b"http://", b"HTTPS://"])
def test_a_target_may_be_a_whole_url(one, scheme, target, status):
    """RFC 9112, 3.2.2: a server accepts them, though a client sends them to proxies alone."""
    line = b"GET " + scheme + HOST.split()[1] + target + b" HTTP/1.1"
    assert statuses(exchange(one, get(b"Connection: close\r\n", line=line))) == [status]


def test_they_are_logged_and_counted(one):
    """Whether the daemon refuses them or the library does."""
    before = count_refused(one)
    for name in ("length with a space", "a list of lengths"):
        exchange(one, BAD[name])
    eventually(lambda: count_refused(one) == before + 2)
