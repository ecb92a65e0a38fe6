# SPDX-License-Identifier: Apache-2.0
"""qdq pull, push and ls against a registry that misbehaves. The real servers are in
tests/servers."""

import http.server
import json
import re
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from far import Answers
from service import INSTALLED
from test_tls import make_certificate

QDQ = INSTALLED / "bin" / "qdq"
FILES = {"model.onnx": b"not really a model", "weights/a.data": bytes(range(256)) * 4096,
         "MLmodel": b"flavors: {}\n"}
API = "/api/2.0/mlflow/"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"


class Handler(Answers):
    """MLflow's answers to a pull of models:/glyph/1, spoiled by server.fault."""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        self.server.seen.append((url.path, self.headers.get("Range"),
                                 self.headers.get("Authorization")))
        if self.server.fault and self.server.fault(self, url.path):
            return
        if url.path == API + "registered-models/alias":
            known = (query["name"], query["alias"]) == ("glyph", "champion")
            self.answer(version() if known else {"error_code": "INVALID_PARAMETER_VALUE"},
                        200 if known else 400)
        elif url.path == API + "model-versions/get":
            known = (query["name"], query["version"]) == ("glyph", "1")
            self.answer(version() if known else {"error_code": "RESOURCE_DOES_NOT_EXIST"},
                        200 if known else 404)
        elif url.path == API + "model-versions/get-download-uri":
            self.answer({"artifact_uri": "mlflow-artifacts:/0/models/m-1/artifacts"})
        elif url.path == ARTIFACTS:
            self.answer({"files": listing(query["path"].removeprefix("0/models/m-1/artifacts"))})
        else:
            self.send_file(FILES[url.path.removeprefix(ARTIFACTS + "/0/models/m-1/artifacts/")])

    def send_file(self, data):
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not begin:
            return self.answer(data)
        first = int(begin[1])
        where = f"bytes {first}-{len(data) - 1}/{len(data)}"
        return self.answer(data[first:], 206, Content_Range=where)


def version():
    return {"model_version": {"name": "glyph", "version": "1", "source": "models:/m-1"}}


def listing(folder):
    if folder:
        return [{"path": "a.data", "is_dir": False, "file_size": len(FILES["weights/a.data"])}]
    return [{"path": "weights", "is_dir": True},
            *({"path": name, "is_dir": False, "file_size": len(FILES[name])}
              for name in FILES if "/" not in name)]


@pytest.fixture
def registry():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.fault, server.seen = None, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def qdq(registry, tmp_path):
    config = tmp_path / "remotes.conf"
    config.write_text(f"[remote prod]\nkind = mlflow\nallow_private = true\ntimeout = 2\n"
                      f"url = http://127.0.0.1:{registry.server_port}\n")

    def run(*words, expect=0):
        done = subprocess.run([QDQ, *words, "--config", config], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == expect, done
        return done.stderr if expect else done.stdout

    run.config = config
    return run


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def on_file(action):
    """A fault in the answers that are files of the model."""
    return lambda handler, path: path.startswith(ARTIFACTS + "/") and action(handler)


def half_a_body(handler):
    """The connection ends in the middle, once for each range."""
    data = FILES[handler.path.split("/artifacts/", 1)[1].split("/artifacts/", 1)[1]]
    if handler.headers.get("Range") or len(data) < 1000:
        return False
    handler.send_response(200)
    handler.send_header("Content-Length", len(data))
    handler.end_headers()
    handler.wfile.write(data[:len(data) // 2])
    handler.close_connection = True
    return True


def test_ls_and_pull(qdq, tmp_path):
    listed = qdq("ls", "prod:models:/glyph@champion").splitlines()
    assert listed[0] == "prod:models:/glyph/1"
    assert ["weights/a.data", "data", str(256 * 4096), "-"] in [line.split() for line in listed]
    (tmp_path / "a").mkdir()
    pulled = qdq("pull", "prod:models:/glyph@champion", "-o", "a/b").splitlines()
    assert len(pulled) == 2 + len(FILES) and "sha256:" in pulled[2]
    assert files_below(tmp_path / "a" / "b") == FILES


def test_a_broken_connection_is_resumed(qdq, registry, tmp_path):
    registry.fault = on_file(half_a_body)
    qdq("pull", "prod:models:/glyph/1", "-o", "out")
    assert files_below(tmp_path / "out") == FILES
    assert f"bytes={128 * 4096}-" in [seen[1] for seen in registry.seen]


def test_the_next_pull_continues(qdq, registry, tmp_path):
    def half_and_no_more(handler):
        return half_a_body(handler) or (handler.headers.get("Range") and
                                        (handler.answer(b"", 503), True)[1])
    registry.fault = on_file(half_and_no_more)
    error = qdq("pull", "prod:models:/glyph/1", "-o", "out", expect=1)
    assert error.startswith("qdq: remote_unavailable: prod:models:/glyph/1: "), error
    left = files_below(tmp_path / "out")
    assert all(name.endswith(".part") for name in left) and left
    registry.fault = None
    registry.seen.clear()
    qdq("pull", "prod:models:/glyph/1", "-o", "out")
    assert files_below(tmp_path / "out") == FILES
    assert f"bytes={128 * 4096}-" in [seen[1] for seen in registry.seen]


def test_another_range_than_asked_for(qdq, registry, tmp_path):
    """The file is begun again, and is never a mixture."""
    def other_range(handler):
        if not handler.headers.get("Range"):
            return half_a_body(handler)
        handler.answer(b"x" * (128 * 4096), 206, Content_Range="bytes 7-99/100")
        return True
    registry.fault = on_file(other_range)
    qdq("pull", "prod:models:/glyph/1", "-o", "out", expect=1)
    registry.fault = None
    qdq("pull", "prod:models:/glyph/1", "-o", "out")
    assert files_below(tmp_path / "out") == FILES


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 16))
    except OSError:
        handler.close_connection = True
    return True


def drip(handler):
    """Sends a byte now and then."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.2)
    except OSError:
        handler.close_connection = True
    return True


def answers(status, body=b"", **headers):
    return lambda handler, path: (handler.answer(body, status, **headers), True)[1]


def lists(*entries):
    """The folder of the model has other entries."""
    return lambda handler, path: path == ARTIFACTS and (
        handler.answer({"files": list(entries)}), True)[1]


SECRET = "s3cr3t-w0rd"
FAULTS = {
    "500": (answers(500), "remote_unavailable", "fault of its own"),
    "429": (answers(429, Retry_After=3), "remote_unavailable", "too many requests"),
    "401": (answers(401), "remote_denied", "credentials"),
    "404": (answers(404), "remote_not_found", "does not have"),
    "no JSON": (answers(200, b"<html>"), "remote_unavailable", "no JSON object"),
    "redirect": (answers(302, Location="http://localhost:1/"), "remote_denied", "another host"),
    "endless file": (on_file(endless), "remote_too_large", "more bytes"),
    "endless answer": (lambda handler, path: endless(handler), "remote_too_large", "more bytes"),
    "dripping file": (on_file(drip), "remote_unavailable", "min_rate"),
    "short file": (on_file(lambda handler: (handler.answer(b"short"), True)[1]),
                   "remote_unavailable", "another number of bytes"),
    "path that goes up": (lists({"path": "../evil.onnx", "file_size": 1}), "remote_denied",
                          "no relative path"),
    "absolute path": (lists({"path": "/tmp/evil.onnx", "file_size": 1}), "remote_denied",
                      "no relative path"),
    "folder that goes up": (lists({"path": "..", "is_dir": True}), "remote_denied",
                            "no relative path"),
    "folders without end": (lists({"path": "a", "is_dir": True}), "remote_denied",
                            "256 folders"),
    "a list in pages": (lambda handler, path: path == ARTIFACTS and (handler.answer(
        {"files": [{"path": "a.onnx", "file_size": 1}], "next_page_token": "t"}), True)[1],
        "remote_too_large", "in pages"),
    "two models": (lists({"path": "a.onnx", "file_size": 1}, {"path": "b.onnx", "file_size": 1}),
                   "remote_not_found", "2 files *.onnx"),
    "huge": (lists({"path": "a.onnx", "file_size": 1 << 50}), "remote_too_large", "max_bytes"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(qdq, registry, tmp_path, name):
    registry.fault, code, words = FAULTS[name]
    credentials = tmp_path / "prod.cred"
    credentials.write_text(f"bearer {SECRET}\n")
    credentials.chmod(0o600)
    qdq.config.write_text(qdq.config.read_text().replace("timeout = 2", "timeout = 1") +
                          f"credentials = {credentials}\nmax_bytes = 1G\n")
    error = qdq("pull", "prod:models:/glyph/1", "-o", "out", expect=1)
    assert error.startswith(f"qdq: {code}: prod:models:/glyph/1: "), error
    assert words in error and "remote" in error and SECRET not in error
    assert registry.seen[0][2] == f"Bearer {SECRET}"
    assert all(file.endswith(".part") for file in files_below(tmp_path / "out"))


def test_tls(registry, qdq, tmp_path):
    """The certificate has to be of an authority in `ca`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*make_certificate(tmp_path, "registry"))
    registry.socket = context.wrap_socket(registry.socket, server_side=True)
    plain = qdq.config.read_text().replace("http://", "https://")
    make_certificate(tmp_path, "other")
    (tmp_path / "bad.pem").write_text("no certificate\n")
    for name in ("registry.pem", "other.pem", "bad.pem", None):
        ok = name == "registry.pem"
        qdq.config.write_text(plain + (f"ca = {tmp_path / name}\n" if name else ""))
        done = qdq("ls", "prod:models:/glyph/1", expect=0 if ok else 1)
        assert ok or done.startswith("qdq: remote_denied: prod:models:/glyph/1: "), done


def test_an_alias_that_is_not_there(qdq):
    error = qdq("ls", "prod:models:/glyph@nobody", expect=1)
    assert error.startswith("qdq: remote_not_found: prod:models:/glyph@nobody: "), error


CONFIGS = {
    "no section": ("", "remote_unknown", "has no section [remote prod]"),
    "no file": (None, "remote_unknown", "No such file"),
    "an unknown key": ("[remote prod]\nkind = mlflow\ncolour = red\n", "bad_request",
                       "conf:3: colour"),
    "a key twice": ("[remote prod]\nurl = http://h\nurl = http://h\n", "bad_request",
                    "conf:3: url: given twice"),
    "a section twice": ("[remote prod]\nkind = s3\n[remote x]\nkind = s3\n[remote prod]\nurl = h\n",
                        "bad_request", "given twice"),
    "no number": ("[remote prod]\ntimeout = soon\n", "bad_request", "conf:2: timeout"),
    "no section at all": ("kind\n", "bad_request", "conf:1: "),
    "no kind": ("[remote prod]\nurl = http://h\n", "unsupported", "the kind \"\""),
    "a long line": ("[remote prod]\nurl = http://" + "h" * 400 + "\n", "bad_request",
                    "too long"),
    "open credentials": ("[remote prod]\nkind = mlflow\ncredentials = /etc/passwd\n", "io",
                         "chmod 600"),
    "a private address": ("[remote prod]\nkind = mlflow\nurl = http://127.0.0.1:9\n",
                          "remote_denied", "allow_private"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations(tmp_path, name):
    text, code, words = CONFIGS[name]
    config = tmp_path / "remotes.conf"
    if text is not None:
        config.write_text(text)
    done = subprocess.run([QDQ, "ls", "prod:models:/glyph/1", "--config", config],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"qdq: {code}: "), done.stderr
    assert words in done.stderr


def test_the_users_own_configuration(qdq, registry, tmp_path):
    """The daemon's sections and keys stand beside the command's without harm."""
    own = tmp_path / ".config" / "qdq" / "remotes.conf"
    own.parent.mkdir(parents=True)
    own.write_text("[queue]\nmax = 7\n" + qdq.config.read_text() +
                   "tenants = acme\n[hook glyph]\nremote = prod\n")
    done = subprocess.run([QDQ, "ls", "prod:models:/glyph/1"], capture_output=True, text=True,
                          timeout=60, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("prod:models:/glyph/1\n")


@pytest.mark.parametrize("words, text", [
    (["push", "prod:models:/glyph-int8", "a.bin"], "0 files *.onnx"),
    (["push", "prod:models:/glyph-int8", "a.onnx", "b/a.onnx"], "2 files *.onnx"),
    (["push", "prod:models:/glyph-int8", "b/a.onnx", "a.bin", "b/a.bin"], "the name a.bin"),
    (["push", "prod:models:/glyph-int8", "a.onnx", "--tag", "x"], "not KEY=VALUE"),
    (["push", "prod:models:/glyph-int8/3", "a.onnx"], "no ref of MLflow"),
    (["push", "prod:models:/glyph-int8", "missing.onnx"], "No such file"),
])
def test_a_push_that_cannot_be(qdq, registry, tmp_path, words, text):
    (tmp_path / "b").mkdir()
    for name in ("a.onnx", "a.bin", "b/a.onnx", "b/a.bin"):
        (tmp_path / name).write_bytes(b"x")
    assert text in qdq(*words, expect=1)
    assert registry.seen == []
