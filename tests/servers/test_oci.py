# SPDX-License-Identifier: Apache-2.0
"""qdq exchanges models with a real OCI registry; skopeo and plain requests are on the other
side."""

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

import registry

USER = ("test", "test-secret")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with registry.running("oci", tmp_path_factory.mktemp("oci"), "/v2/") as url:
        yield url


@pytest.fixture
def remote(server, tmp_path):
    return registry.Remote(tmp_path, "oci", f"{server}/team/models", "basic test:test-secret")


@pytest.fixture
def files(tmp_path):
    made = {"a.onnx": b"model" * 1000, "weights/a.data": bytes(range(256)) * 9999,
            "report.json": b"{}"}
    for name, data in made.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return made


def skopeo(*words):
    return subprocess.run(["skopeo", *map(str, words)], check=True, capture_output=True,
                          text=True, timeout=60).stdout


def at(server, path):
    return "docker://" + server.removeprefix("http://") + "/team/models/" + path


def blob(server, repo, data):
    """Stores a blob as other clients do."""
    begun = requests.post(f"{server}/v2/team/models/{repo}/blobs/uploads/", auth=USER, timeout=20)
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    done = requests.put(begun.headers["Location"], params={"digest": digest}, data=data,
                        auth=USER, timeout=20)
    assert done.status_code == 201
    return {"mediaType": "application/octet-stream", "digest": digest, "size": len(data)}


def store(server, repo, tag, manifest):
    media = manifest["mediaType"]
    done = requests.put(f"{server}/v2/team/models/{repo}/manifests/{tag}", auth=USER, timeout=20,
                        data=json.dumps(manifest), headers={"Content-Type": media})
    assert done.status_code == 201, done.text
    return done.headers["Docker-Content-Digest"]


def test_push_and_pull(remote, server, files, tmp_path):
    push = ["push", "prod:glyph-int8:1.0", *files, "--tag", "qdqd.job=j é", "--alias", "challenger",
            "--source", "glyph@sha256:" + "0" * 64]
    location = remote(*push).strip()
    assert location.startswith("prod:glyph-int8@sha256:")
    assert remote(*push).strip() == location  # the same bytes make the same manifest
    for ref in ("prod:glyph-int8:1.0", "prod:glyph-int8:challenger", location):
        assert remote("ls", ref).splitlines()[0] == location
    listed = [line.split() for line in remote("ls", location).splitlines()[2:]]
    assert [line[:2] for line in listed] == [["a.onnx", "model"], ["weights/a.data", "data"],
                                             ["report.json", "report"]]
    assert listed[0][3] == "sha256:" + hashlib.sha256(files["a.onnx"]).hexdigest()
    remote("pull", "prod:glyph-int8:challenger", "-o", "out")
    assert registry.files_below(tmp_path / "out") == files


def test_skopeo_copies_what_was_pushed(remote, server, files, tmp_path):
    location = remote("push", "prod:copied:1", *files).strip()
    manifest = json.loads(skopeo("inspect", "--tls-verify=false", "--creds", ":".join(USER), "--raw",
                                 at(server, "copied:1")))
    assert manifest["artifactType"] == "application/vnd.cncf.model.manifest.v1+json"
    assert [layer["annotations"]["org.cncf.model.filepath"]
            for layer in manifest["layers"]] == ["a.onnx", "weights/a.data"]
    skopeo("copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--src-creds",
           ":".join(USER), "--dest-creds", ":".join(USER), at(server, "copied:1"),
           at(server, "copy/of:it"))
    assert remote("ls", "prod:copy/of:it").splitlines()[0].split("@")[1] == location.split("@")[1]
    remote("pull", "prod:copy/of:it", "-o", "out")  # skopeo copies no referrers
    assert registry.files_below(tmp_path / "out") == {
        name: data for name, data in files.items() if name != "report.json"}


class Lister(BaseHTTPRequestHandler):
    """Lists referrers in front of a registry that does not, as distribution 1.1 has it."""

    protocol_version = "HTTP/1.1"

    def forward(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        headers = {name: value for name, value in self.headers.items() if name != "Host"}
        answer = requests.request(self.command, self.server.behind + self.path, data=body,
                                  headers=headers, timeout=20)
        extra = {}
        subject = "/manifests/" in self.path and self.command == "PUT" and \
            json.loads(body).get("subject")
        if subject and answer.ok:
            self.server.entries.setdefault(subject["digest"], []).append(
                {"mediaType": headers["Content-Type"], "size": size,
                 "digest": answer.headers["Docker-Content-Digest"],
                 "artifactType": json.loads(body)["artifactType"]})
            extra = {"OCI-Subject": subject["digest"]}
        self.answer(answer.status_code, answer.content, {**answer.headers, **extra})

    def do_GET(self):
        self.server.asked.append(self.path)
        if "/referrers/" not in self.path:
            self.forward()
            return
        entries = self.server.entries.get(self.path.rsplit("/", 1)[1], [])
        kind = "application/vnd.oci.image.index.v1+json"
        self.answer(200, json.dumps({"schemaVersion": 2, "mediaType": kind,
                                     "manifests": entries}).encode(), {"Content-Type": kind})

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            if name not in ("Content-Length", "Transfer-Encoding", "Content-Encoding"):
                self.send_header(name, value.replace(self.server.behind, self.server.url))
        size = headers.get("Content-Length", "0") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", size)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_PATCH = forward

    def log_message(self, *_):
        pass


@pytest.fixture
def lister(server):
    with ThreadingHTTPServer(("127.0.0.1", 0), Lister) as one:
        one.behind, one.url = server, f"http://127.0.0.1:{one.server_address[1]}"
        one.entries, one.asked = {}, []
        threading.Thread(target=one.serve_forever).start()
        yield one
        one.shutdown()


def manifest_of(server, repo, version):
    return requests.get(f"{server}/v2/team/models/{repo}/manifests/{version}", auth=USER,
                        timeout=20, headers={"Accept": "application/vnd.oci.image.index.v1+json, "
                                             "application/vnd.oci.image.manifest.v1+json"})


def check_report(manifest, subject, files):
    """Checks a manifest of reports."""
    assert manifest["artifactType"] == "application/vnd.qdqd.report.v1+json"
    assert manifest["subject"]["digest"] == subject.headers["Docker-Content-Digest"]
    assert manifest["subject"]["size"] == len(subject.content)
    assert manifest["subject"]["mediaType"] == subject.json()["mediaType"]
    assert manifest["config"]["mediaType"] == "application/vnd.oci.empty.v1+json"
    assert {layer["annotations"]["org.cncf.model.filepath"]: layer["digest"]
            for layer in manifest["layers"]} == {
                name: "sha256:" + hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_a_report_refers_to_its_model(remote, server, files, tmp_path):
    """This registry does not list referrers, so the index with the subject's tag does."""
    (tmp_path / "report.html").write_bytes(b"<p>")
    push = ["push", "prod:reported:1", *files, "report.html"]
    location = remote(*push).strip()
    model = manifest_of(server, "reported", "1")
    assert [layer["annotations"]["org.cncf.model.filepath"]
            for layer in model.json()["layers"]] == ["a.onnx", "weights/a.data"]
    tag = model.headers["Docker-Content-Digest"].replace(":", "-")
    [entry] = manifest_of(server, "reported", tag).json()["manifests"]
    check_report(manifest_of(server, "reported", entry["digest"]).json(), model,
                 {"report.json": b"{}", "report.html": b"<p>"})
    assert remote(*push).strip() == location
    assert len(manifest_of(server, "reported", tag).json()["manifests"]) == 1
    # Another client's entry stays.
    other = {"schemaVersion": 2, "mediaType": entry["mediaType"], "layers": [],
             "config": blob(server, "reported", b"{}")}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
             "manifests": [{"mediaType": entry["mediaType"], "size": len(json.dumps(other)),
                            "digest": store(server, "reported", "other", other)}]}
    store(server, "reported", tag, index)
    assert remote(*push).strip() == location
    assert manifest_of(server, "reported", tag).json()["manifests"] == [
        *index["manifests"], entry]
    remote("pull", location, "-o", "out")
    assert registry.files_below(tmp_path / "out") == {**files, "report.html": b"<p>"}


def test_a_registry_that_lists_referrers(lister, files, tmp_path):
    remote = registry.Remote(tmp_path, "oci", f"{lister.url}/team/models", "basic test:test-secret")
    location = remote("push", "prod:listed:1", *files).strip()
    model = manifest_of(lister.url, "listed", "1")
    tag = model.headers["Docker-Content-Digest"].replace(":", "-")
    assert manifest_of(lister.url, "listed", tag).status_code == 404
    [[entry]] = lister.entries.values()
    check_report(manifest_of(lister.url, "listed", entry["digest"]).json(), model,
                 {"report.json": b"{}"})
    lister.asked.clear()
    remote("pull", location, "-o", "out")
    assert registry.files_below(tmp_path / "out") == files
    assert not [path for path in lister.asked if "/manifests/sha256-" in path]


def test_an_artifact_of_oras(remote, server, tmp_path):
    """Layers with a title alone, below an index."""
    layer = blob(server, "oras", b"model")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(server, "oras", b"{}"),
                "layers": [{**layer, "annotations": {"org.opencontainers.image.title": "m.onnx"}}]}
    digest = store(server, "oras", "plain", manifest)
    store(server, "oras", "index", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": manifest["mediaType"], "digest": digest,
                       "size": len(json.dumps(manifest))}]})
    for tag in ("plain", "index"):
        assert remote("pull", f"prod:oras:{tag}", "-o", tag).startswith(f"prod:oras@{digest}\n")
        assert registry.files_below(tmp_path / tag) == {"m.onnx": b"model"}


def archive(members, form=tarfile.PAX_FORMAT):
    """Returns a tar archive with folders and a link beside the files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        folder, link = tarfile.TarInfo("a folder"), tarfile.TarInfo("link.onnx")
        folder.type, link.type, link.linkname = tarfile.DIRTYPE, tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(folder)
        tar.addfile(link)
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


def store_kit(server, tag, *layers):
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "artifactType": "application/vnd.kitops.modelkit.manifest.v1+json",
                "config": {**blob(server, "kit", b"{}"),
                           "mediaType": "application/vnd.kitops.modelkit.config.v1+json"},
                "layers": [{**blob(server, "kit", data), "mediaType": kind}
                           for kind, data in layers]}
    return store(server, "kit", tag, manifest)


KIT = "application/vnd.kitops.modelkit."


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("ending, pack", [("tar", bytes), ("tar+gzip", gzip.compress)])
def test_a_kit_of_archives(remote, server, tmp_path, form, ending, pack):
    deep = "folder" * 8 + "/" + "name" * 20 + ".bin"  # too long for the field of a name
    model = {"./m.onnx": b"model" * 50_000, "empty.bin": b""}
    part = {deep: bytes(range(256)) * 999}
    tag = f"{form}-{ending}".replace("+", "-")
    digest = store_kit(server, tag, (f"{KIT}model.v1.{ending}", pack(archive(model, form))),
                       (f"{KIT}modelpart.v1.{ending}", pack(archive(part, form))),
                       (f"{KIT}docs.v1.{ending}", pack(archive({"README.md": b"#"}, form))))
    assert remote("ls", f"prod:kit:{tag}").splitlines()[0] == f"prod:kit@{digest}"
    remote("pull", f"prod:kit:{tag}", "-o", "out")
    pulled = registry.files_below(tmp_path / "out")
    assert {name: data for name, data in pulled.items() if not name.startswith("layer-")} == {
        "m.onnx": model["./m.onnx"], "empty.bin": b"", deep: part[deep]}


@pytest.mark.parametrize("data, code", [
    (archive({"../m.onnx": b"x"}), "remote_denied"),
    (archive({"/m.onnx": b"x"}), "remote_denied"),
    (archive({"m.onnx": bytes(9999)})[:5000], "remote_unavailable"),
    (bytes(range(256)) * 9, "remote_unavailable"),
    (b"", "remote_not_found"),
])
def test_archives_that_are_none(remote, server, tmp_path, data, code):
    store_kit(server, "bad", (f"{KIT}model.v1.tar", data))
    error = remote("pull", "prod:kit:bad", "-o", "out", expect=1)
    assert error.startswith(f"qdq: {code}: prod:kit:bad: "), error
    assert not (tmp_path / "m.onnx").exists()


def test_the_source_is_told(remote, files, server, tmp_path):
    """Blobs of the source's repository are mounted where the registry can do that."""
    source = remote("push", "prod:float:1", *files).strip().removeprefix("prod:")
    location = remote("push", "prod:int8:1", *files, "--source", source).strip()
    remote("pull", location, "-o", "out")
    assert registry.files_below(tmp_path / "out") == files
    manifest = json.loads(skopeo("inspect", "--tls-verify=false", "--creds", ":".join(USER),
                                 "--raw", at(server, "int8:1")))
    assert manifest["annotations"]["org.opencontainers.image.base.name"] == source
    assert manifest["annotations"]["org.opencontainers.image.base.digest"] == source.split("@")[1]


def test_a_push_that_is_killed(remote, files, tmp_path):
    """Whenever it is killed, the next one completes the same manifest."""
    for i in range(20):
        (tmp_path / "a.onnx").write_bytes(f"model {i}".encode() * 500_000)
        push = ["push", "prod:killed:last", *files]
        registry.kill_at_some_moment(remote, push, i / 200)
        location = remote(*push).strip()
        assert remote("ls", "prod:killed:last").splitlines()[0] == location
        remote("pull", location, "-o", "out", "--force")
        assert (tmp_path / "out" / "a.onnx").read_bytes() == (tmp_path / "a.onnx").read_bytes()


def test_an_open_registry(tmp_path, files, monkeypatch):
    monkeypatch.setenv("QDQD_REGISTRY_OPEN", "1")
    (tmp_path / "state").mkdir()
    with registry.running("oci", tmp_path / "state", "/v2/") as url:
        remote = registry.Remote(tmp_path, "oci", url)
        remote("push", "prod:glyph:1", *files)
        remote("pull", "prod:glyph:1", "-o", "out")
    assert registry.files_below(tmp_path / "out") == files


@pytest.mark.parametrize("credentials, ref, code", [
    ("basic test:wrong", "glyph:1", "remote_denied"),
    (None, "glyph:1", "remote_denied"),
    ("bearer x", "glyph:1", "remote_denied"),
    ("basic test:test-secret", "nothing:1", "remote_not_found"),
    ("basic test:test-secret", "nothing@sha256:" + "0" * 64, "remote_not_found"),
    ("basic test:test-secret", "Glyph:1", "bad_request"),
    ("basic test:test-secret", "../glyph:1", "bad_request"),
])
def test_errors(server, tmp_path, credentials, ref, code):
    remote = registry.Remote(tmp_path, "oci", f"{server}/team", credentials)
    error = remote("pull", f"prod:{ref}", "-o", "out", expect=1)
    assert error.startswith(f"qdq: {code}: prod:{ref}: "), error
    assert "test-secret" not in error
