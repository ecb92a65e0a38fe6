# SPDX-License-Identifier: Apache-2.0
"""qdq pull and ls with an OCI registry that asks for tokens, or that misbehaves."""

import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse

import pytest

from far import Answers
from test_registry import files_below, qdq, registry  # noqa: F401 (fixtures)

MODEL = b"model" * 1000
DIGEST = "sha256:" + hashlib.sha256(MODEL).hexdigest()
MANIFEST = json.dumps({
    "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "layers": [{"digest": DIGEST, "size": len(MODEL), "mediaType": "application/octet-stream",
                "annotations": {"org.opencontainers.image.title": "glyph.onnx"}}]}).encode()
BASIC = "Basic " + base64.b64encode(b"user:s3cr3t-w0rd").decode()


class Handler(Answers):
    """A registry whose blobs and manifests need a token, which costs the password."""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        given = self.headers.get("Authorization")
        self.server.seen.append((self.path, given))
        if url.path == "/token":
            scope = urllib.parse.parse_qs(url.query)
            good = (given == BASIC and scope["service"] == ["a service"] and
                    scope["scope"] == ["repository:team/glyph:pull"])
            self.answer(self.server.token if good else b"{}", 200 if good else 401)
        elif given != "Bearer t0k3n":
            realm = self.server.realm or f"http://127.0.0.1:{self.server.server_port}/token"
            self.answer(b"", 401, WWW_Authenticate=f'Bearer realm="{realm}",service="a service"')
        elif url.path.startswith("/v2/team/glyph/manifests/"):
            self.answer(self.server.manifests.get(url.path.rpartition("/")[2], self.server.manifest),
                        Docker_Content_Digest="sha256:of-no-use")
        elif url.path.startswith("/v2/team/glyph/referrers/") and self.server.referrers:
            self.answer(self.server.referrers)
        elif url.path == f"/v2/team/glyph/blobs/{DIGEST}":
            self.server.blob(self)
        elif url.path.rpartition("/")[2] in self.server.archives:
            self.answer(self.server.archives[url.path.rpartition("/")[2]])
        else:
            self.answer(b"{}", 200 if url.path == "/v2/" else 404)


@pytest.fixture
def oci(registry, qdq, tmp_path):  # noqa: F811
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.realm, server.manifest = [], None, MANIFEST
    server.token = b'{"token": "t0k3n"}'
    server.manifests, server.archives, server.referrers = {}, {}, None
    server.blob = lambda handler: handler.answer(MODEL)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    secret = tmp_path / "prod.cred"
    secret.write_text("basic user:s3cr3t-w0rd\n")
    secret.chmod(0o600)
    qdq.config.write_text(f"[remote prod]\nkind = oci\nallow_private = true\ntimeout = 5\n"
                          f"url = http://127.0.0.1:{server.server_port}/team/\n"
                          f"credentials = {secret}\n")
    yield server
    server.shutdown()
    server.server_close()


def test_a_token(oci, qdq, tmp_path):  # noqa: F811
    qdq("pull", "prod:glyph:1", "-o", "out")
    assert files_below(tmp_path / "out") == {"glyph.onnx": MODEL}
    paid = [path for path, given in oci.seen if given == BASIC]
    assert paid and all(path.startswith("/token?") for path in paid)
    own = "sha256:" + hashlib.sha256(MANIFEST).hexdigest()
    assert qdq("ls", f"prod:glyph@{own}").startswith(f"prod:glyph@{own}\n")


def layers(**changes):
    layer = {**json.loads(MANIFEST)["layers"][0], **changes}
    return json.dumps({"layers": [layer]}).encode()


FAULTS = {
    "token of another host": (dict(realm="http://localhost:1/token"), "remote_denied",
                              "another host"),
    "no token": (dict(token=b"{}"), "remote_unavailable", "without a token"),
    "a wrong token": (dict(token=b'{"token": "wrong"}'), "remote_denied", "credentials"),
    "other bytes": (dict(blob=lambda handler: handler.answer(b"x" * len(MODEL))),
                    "remote_digest_mismatch", "another digest"),
    "more bytes": (dict(blob=lambda handler: handler.answer(MODEL + b"x")), "remote_too_large",
                   "more bytes"),
    "blob of another host": (dict(blob=lambda handler: handler.answer(
        b"", 307, Location="http://localhost:1/x")), "remote_denied", "another host"),
    "no JSON": (dict(manifest=b"<html>"), "remote_unavailable", "no JSON"),
    "no layers": (dict(manifest=b"{}"), "remote_unavailable", "no layers"),
    "empty index": (dict(manifest=b'{"manifests": []}'), "remote_unavailable", "without entries"),
    "layer without digest": (dict(manifest=layers(digest="md5:1")), "remote_unavailable",
                             "without size or SHA-256"),
    "layer without size": (dict(manifest=layers(size="1")), "remote_unavailable",
                           "without size or SHA-256"),
    "layer that goes up": (dict(manifest=layers(annotations={
        "org.cncf.model.filepath": "../a.onnx"})), "remote_denied", "no relative path"),
    "archive": (dict(manifest=layers(mediaType="application/x.tar+gzip")), "remote_not_found",
                "0 files *.onnx"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(oci, qdq, tmp_path, name):  # noqa: F811
    spoiled, code, words = FAULTS[name]
    for member, value in spoiled.items():
        setattr(oci, member, value)
    error = qdq("pull", "prod:glyph:1", "-o", "out", expect=1)
    assert error.startswith(f"qdq: {code}: prod:glyph:1: "), error
    assert words in error and "s3cr3t-w0rd" not in error
    assert not any(file == "glyph.onnx" for file in files_below(tmp_path / "out"))


def test_another_manifest_than_the_digest_says(oci, qdq):  # noqa: F811
    error = qdq("ls", "prod:glyph@sha256:" + "0" * 64, expect=1)
    assert error.startswith("qdq: remote_digest_mismatch: "), error


def test_a_manifest_of_many_archives(oci, qdq):  # noqa: F811
    """Each of them costs the transfer of a layer."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w"):
        pass
    digest = "sha256:" + hashlib.sha256(packed.getvalue()).hexdigest()
    layer = {"digest": digest, "size": len(packed.getvalue()),
             "mediaType": "application/vnd.cncf.model.weight.v1.tar"}
    oci.archives = {digest: packed.getvalue()}
    oci.manifest = json.dumps({"layers": [layer] * 1000}).encode()
    error = qdq("ls", "prod:glyph:1", expect=1)
    assert error.startswith("qdq: remote_too_large: ") and "more than 64 archives" in error
    assert len([path for path, _ in oci.seen if path.endswith(digest)]) <= 2 * 64


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_name_that_is_not_utf8(oci, qdq, form):  # noqa: F811
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form, encoding="latin-1") as tar:
        member = tarfile.TarInfo("caf\u00e9.onnx")
        member.size = len(MODEL)
        tar.addfile(member, io.BytesIO(MODEL))
    digest = "sha256:" + hashlib.sha256(packed.getvalue()).hexdigest()
    oci.archives = {digest: packed.getvalue()}
    oci.manifest = json.dumps({"layers": [{
        "digest": digest, "size": len(packed.getvalue()),
        "mediaType": "application/vnd.cncf.model.weight.v1.tar"}]}).encode()
    error = qdq("ls", "prod:glyph:1", expect=1)
    assert error.startswith("qdq: remote_denied: ") and "is not UTF-8" in error, error


def test_many_reports_of_a_model(oci, qdq):  # noqa: F811
    """The newest ones are looked at; whoever may push could add any number."""
    report = {"digest": DIGEST, "size": 1, "mediaType": "application/octet-stream"}
    entries = []
    for i in range(1000):
        text = json.dumps({"layers": [{**report, "annotations": {
            "org.cncf.model.filepath": f"{i}.html"}}]}).encode()
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        oci.manifests[digest] = text
        entries.append({"digest": digest, "artifactType": "application/vnd.qdqd.report.v1+json"})
    oci.referrers = json.dumps({"manifests": entries}).encode()
    listed = qdq("ls", "prod:glyph:1")
    assert "999.html" in listed and "936.html" in listed and "935.html" not in listed
