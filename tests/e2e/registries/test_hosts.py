# SPDX-License-Identifier: Apache-2.0
"""No job reaches a host that no remote names, whatever its refs say and whatever a remote answers.
A server beside the remote counts the connections that it gets."""

import socket
import threading

import pytest

import nets
from far import ARTIFACTS, Far
from service import Service, eventually, problem

MODEL = nets.block_net()
SPEC = {"calibration": {"random_samples": 2}, "evaluate": False}


class Elsewhere:
    """Listens on all loopback addresses, and never answers."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET6)
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.bind(("::", 0))
        self.socket.listen()
        self.port = self.socket.getsockname()[1]
        self.visits = 0
        threading.Thread(target=self.count, daemon=True).start()

    def count(self):
        while True:
            self.socket.accept()[0].close()
            self.visits += 1


@pytest.fixture(scope="module")
def elsewhere():
    one = Elsewhere()
    socket.create_connection(("127.0.0.1", one.port)).close()
    socket.create_connection(("::1", one.port)).close()
    eventually(lambda: one.visits == 2)  # it does count
    return one


@pytest.fixture(scope="module")
def far():
    one = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    yield one
    one.close()


@pytest.fixture(scope="module")
def daemon(far, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosts")
    port = far.server_port
    remotes = {"prod": ("mlflow", far.url), "oci": ("oci", far.url + "/team"),
               "bucket": ("s3", far.url + "/bucket/prefix")}
    text = "".join(f"[remote {name}]\nkind = {kind}\nurl = {url}\nallow_private = true\n"
                   "timeout = 2\n" for name, (kind, url) in remotes.items())
    # Addresses of the loopback in all their forms, of a remote that may not have one.
    for i, host in enumerate(FORMS):
        text += f"[remote form{i}]\nkind = mlflow\nurl = http://{host}:{port}\ntimeout = 2\n"
    (folder / "qdqd.conf").write_text(text)
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    one.start()
    one.model = one.upload("models", MODEL)
    yield one
    one.stop()


@pytest.fixture(autouse=True)
def clean(far, elsewhere):
    far.reset()
    before = elsewhere.visits
    yield
    assert elsewhere.visits == before


FORMS = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0",
         "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
         "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "10.0.0.1",
         "169.254.169.254", "[::ffff:169.254.169.254]"]


@pytest.mark.parametrize("i", range(len(FORMS)), ids=FORMS)
def test_addresses_that_are_not_public(daemon, far, i):
    job = daemon.post("/v1/jobs", json={"model": f"form{i}:models:/glyph/1", "spec": SPEC}).json()
    ended = daemon.get(f"/v1/jobs/{job['id']}?wait=60").json()
    assert (ended["state"], ended["error"]["code"]) == ("failed", "remote_denied"), ended
    assert far.seen == []


def refs(port):
    """Refs that would name another host, or climb out of the remote's path."""
    hosts = [f"127.0.0.1:{port}", f"[::1]:{port}", f"[::ffff:127.0.0.1]:{port}"]
    for host in hosts:
        yield "prod", f"models://{host}/glyph/1"
        yield "prod", f"models:/@{host}/1"
        yield "prod", f"models:/glyph@{host}"
        yield "prod", f"http://{host}/models:/glyph/1"
        yield "oci", f"{host}/glyph:1"
        yield "oci", f"@{host}/glyph:1"
        yield "oci", f"//{host}/glyph:1"
        yield "oci", f"http://{host}/glyph:1"
        yield "bucket", f"//{host}/glyph.onnx"
    for up in ("..", "%2e%2e", ".%2e", "..%2f..", "%2f..", "..\\..", "%252e%252e"):
        yield "prod", f"models:/{up}/1"
        yield "prod", f"models:/glyph/{up}"
        yield "oci", f"{up}/glyph:1"
        yield "oci", f"glyph:{up}/x"
    for up in ("..", ".", "a/../../b", "/a", "a//b"):
        yield "bucket", up
    yield "prod", "models:/glyph%2f1/1"
    yield "prod", "models:/glyph/1?x=@host"
    yield "prod", "models:/glyph/1#@host"


def test_refs_that_name_another_place(daemon, far, elsewhere):
    for remote, ref in refs(elsewhere.port):
        for asked in ({"model": {"remote": remote, "ref": ref}},
                      {"model": daemon.model, "calibration": {"remote": remote, "ref": ref}},
                      {"model": daemon.model, "publish": [{"remote": remote, "ref": ref}]}):
            answer = daemon.post("/v1/jobs", json={**asked, "spec": SPEC})
            assert answer.status_code == 400, (asked, answer.text)
            problem(answer, 400, "bad_request")
    assert far.seen == []


@pytest.mark.parametrize("key", ["%2e%2e/%2e%2e/x.onnx", "a%2f..%2f..%2fx.onnx", "@host/x.onnx",
                                 "x.onnx?versions#y"])
def test_a_key_is_escaped(daemon, far, key):
    """S3's keys may have any characters, which then are no part of the URL's form."""
    job = daemon.post("/v1/jobs", json={"model": {"remote": "bucket", "ref": key},
                                        "spec": SPEC}).json()
    eventually(lambda: far.seen)
    daemon.post(f"/v1/jobs/{job['id']}/cancel")
    assert {path for _, path, _, _ in far.seen} == {"/bucket"}


def places(port):
    yield from (f"http://127.0.0.1:{port}/x", f"//127.0.0.1:{port}/x", f"http://[::1]:{port}/x",
                f"http://localhost:{port}/", f"http://[::ffff:127.0.0.1]:{port}/",
                f"https://127.0.0.1:{port}/", f"http://127.0.0.1:{port}#@FAR/",
                f"http://FAR@127.0.0.1:{port}/", f"ftp://127.0.0.1:{port}/x",
                f"file://127.0.0.1:{port}/etc/passwd", "file:///etc/passwd", "gopher://FAR/")


@pytest.mark.parametrize("on", ["api", "file"])
def test_redirects_are_not_followed_elsewhere(daemon, far, elsewhere, on):
    jobs = []
    for place in places(elsewhere.port):
        place = place.replace("FAR", far.url.removeprefix("http://"))

        def redirect(handler, path, place=place):
            if (on == "file") != path.startswith(ARTIFACTS + "/"):
                return False
            handler.answer(b"", 302, Location=place)
            return True

        far.fault = redirect
        answer = daemon.post("/v1/jobs", json={"model": "prod:models:/glyph/1", "spec": SPEC,
                                               "fresh": True})
        ended = daemon.get(f"/v1/jobs/{answer.json()['id']}?wait=60").json()
        jobs.append((place, ended["state"], (ended["error"] or {}).get("code")))
    assert {job[1:] for job in jobs} == {("failed", "remote_denied")}, jobs


def test_an_artifact_is_nowhere_else(daemon, far, elsewhere):
    """The registry says where the files of a version are."""
    for uri in (f"http://127.0.0.1:{elsewhere.port}/x", f"s3://127.0.0.1:{elsewhere.port}/x",
                f"mlflow-artifacts:/../../../x@127.0.0.1:{elsewhere.port}", "file:///etc",
                f"mlflow-artifacts:@127.0.0.1:{elsewhere.port}/x"):
        def elsewhere_is(handler, path, uri=uri):
            if not path.endswith("get-download-uri"):
                return False
            handler.answer({"artifact_uri": uri})
            return True

        far.fault = elsewhere_is
        answer = daemon.post("/v1/jobs", json={"model": "prod:models:/glyph/1", "spec": SPEC,
                                               "fresh": True})
        ended = daemon.get(f"/v1/jobs/{answer.json()['id']}?wait=60").json()
        assert (ended["state"], ended["error"]["code"]) == ("failed", "remote_denied"), (uri, ended)
        assert not [path for path in far.paths() if path.startswith(ARTIFACTS)]


def test_a_publication_goes_nowhere_else(daemon, far, elsewhere):
    for place in (f"http://127.0.0.1:{elsewhere.port}/x", f"http://[::1]:{elsewhere.port}/"):
        def redirect(handler, path, place=place):
            if handler.command == "GET":
                return False
            handler.answer(b"", 307, Location=place)
            return True

        far.fault = redirect
        job = daemon.post("/v1/jobs", json={
            "model": daemon.model, "spec": SPEC, "fresh": True,
            "publish": [{"remote": "prod", "ref": "models:/glyph-int8"}]}).json()
        one = eventually(lambda: [one for one in daemon.get(f"/v1/jobs/{job['id']}").json()
                                  ["deliveries"] if one["state"] != "pending"])[0]
        assert one["state"] == "failed" and one["error"]["code"] == "remote_denied"
