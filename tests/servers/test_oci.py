# SPDX-License-Identifier: Apache-2.0
"""qdq exchanges models with a real OCI registry; skopeo and plain requests are on the other
side."""

import hashlib
import json
import subprocess

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
            for layer in manifest["layers"]] == list(files)
    skopeo("copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--src-creds",
           ":".join(USER), "--dest-creds", ":".join(USER), at(server, "copied:1"),
           at(server, "copy/of:it"))
    assert remote("ls", "prod:copy/of:it").splitlines()[0].split("@")[1] == location.split("@")[1]
    remote("pull", "prod:copy/of:it", "-o", "out")
    assert registry.files_below(tmp_path / "out") == files


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
        remote("pull", location, "-o", "out")
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
