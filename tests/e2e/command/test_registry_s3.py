# SPDX-License-Identifier: Apache-2.0
"""qdq ls and pull against a bucket whose lists are long or broken. The real servers are in
tests/servers."""

import html
import http.server
import threading
import urllib.parse

import pytest

from far import Answers
from test_registry import files_below, qdq as registry_qdq, registry  # noqa: F401

MODEL = "big/model.onnx"
PAGE = ('<?xml version="1.0"?><ListBucketResult><IsTruncated>{more}</IsTruncated>{token}{entries}'
        "</ListBucketResult>")


def entry(key, size=1, more="", escape=html.escape):
    return (f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z"
            f"</LastModified><ETag>&quot;e&quot;</ETag>{more}<Size>{size}</Size></Contents>")


def page(*entries, token=None):
    return PAGE.format(entries="".join(entries), more=str(token is not None).lower(), token=""
                       if not token else f"<NextContinuationToken>{token}</NextContinuationToken>")


class Handler(Answers):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = b"x"
        if "list-type" in query:
            body = self.server.pages[query.get("continuation-token")].encode()
        self.answer(body)


@pytest.fixture
def bucket():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def qdq(registry_qdq, bucket):  # noqa: F811
    registry_qdq.config.write_text("[remote b]\nkind = s3\nallow_private = true\n"
                                   f"url = http://127.0.0.1:{bucket.server_port}/bucket\n")
    return registry_qdq


def listed(qdq):
    return [line.split("  ")[0] for line in qdq("ls", "b:big/").splitlines()[2:]]


LONG = "big/" + "\"" * 500
EVERYTHING = {
    "a large owner": entry(LONG, more=f"<Owner><DisplayName>{'n' * 9000}</DisplayName></Owner>"),
    "escaped as long as can be": entry(LONG, escape=lambda key: "".join(
        f"&#x{ord(c):07x};" for c in key)),
    "plain": entry(LONG)}


@pytest.mark.parametrize("form", EVERYTHING)
def test_entries_of_any_length(qdq, bucket, tmp_path, form):
    """An object behind one whose entry is long is listed, and so is that one."""
    bucket.pages = {None: page(EVERYTHING[form], entry(MODEL), entry("big/w.data"))}
    assert listed(qdq) == [LONG[4:], "model.onnx", "w.data"]


def test_references_to_characters(qdq, bucket, tmp_path):
    keys = {"big/caf&#233;&#x20ac;&#x1F600;": "café€😀", "big/a&#38;b": "a&b"}
    bucket.pages = {None: page(entry(MODEL), *(entry(key, escape=str) for key in keys))}
    assert listed(qdq) == ["model.onnx", *keys.values()]
    qdq("pull", "b:big/", "-o", "out")
    assert set(files_below(tmp_path / "out")) == {"model.onnx", *keys.values()}


def test_a_long_token(qdq, bucket):
    """That of some servers has the last key in it."""
    token = "t" * 3000
    bucket.pages = {None: page(entry(MODEL), token=token), token: page(entry("big/w.data"))}
    assert listed(qdq) == ["model.onnx", "w.data"]


@pytest.mark.parametrize("body, code", [
    (page(entry(MODEL), token=""), "remote_unavailable"),
    (page(entry(MODEL), token="t" * 5000), "remote_unavailable"),
    (page(entry(MODEL), "<Contents><Key>big/w.data</Key></Contents>"), "remote_unavailable"),
    (page(entry(MODEL), "<Contents><Size>4</Size></Contents>"), "remote_unavailable"),
    (page(entry(MODEL), "<Contents><Key>big/w"), "remote_unavailable"),
    (page(entry(MODEL)).removesuffix("</ListBucketResult>"), "remote_unavailable"),
    (entry(MODEL), "remote_unavailable"), ("<html>", "remote_unavailable"),
    (page(entry(MODEL), entry("big/" + "k" * 1020)), "remote_denied")],
    ids=["no token", "a huge token", "no size", "no key", "cut", "no end", "no list", "a page",
         "a name that is too long"])
def test_lists_that_are_not_whole(qdq, bucket, body, code):
    """An object that is not seen would count as absent."""
    bucket.pages = {None: body}
    assert qdq("ls", "b:big/", expect=1).startswith(f"qdq: {code}: b:big/: ")
