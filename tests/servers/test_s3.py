# SPDX-License-Identifier: Apache-2.0
"""qdq exchanges files with a real S3 server; curl is on the other side."""

import hashlib
import random
import subprocess
import zlib

import pytest

import registry

CREDENTIALS = ("[default]\naws_access_key_id = test-key\n"
               "aws_secret_access_key = test-secret\n")


def curl(*words):
    return subprocess.run(["curl", "--silent", "--show-error", "--fail", "--aws-sigv4",
                           "aws:amz:us-east-1:s3", "--user", "test-key:test-secret", *words],
                          check=True, capture_output=True, timeout=60).stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with registry.running("s3", tmp_path_factory.mktemp("s3")) as url:
        curl("--request", "PUT", f"{url}/models")
        yield url


@pytest.fixture
def remote(server, tmp_path, request):
    """A bucket below a prefix that is the test's own and has to be escaped."""
    place = f"{server}/models/it's (é) {zlib.crc32(request.node.name.encode())}"
    return registry.Remote(tmp_path, "s3", place, CREDENTIALS)


@pytest.fixture
def files(tmp_path):
    made = {"a.onnx": b"model" * 1000, "a.onnx.data": bytes(range(256)) * 999, "report.json": b"{}"}
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return made


@pytest.mark.parametrize("ref", ["a.onnx", "deep/er/a.onnx", "glyph/1/", "a&b <c>'\"+%=é/"])
def test_push_and_pull(remote, files, tmp_path, ref):
    push = ["push", f"prod:{ref}", *files, "--tag", "qdqd.job=j 1é"]
    assert remote(*push) == f"prod:{ref}\n"
    assert remote(*push) == f"prod:{ref}\n"  # what is there is not sent again
    listed = [line.split() for line in remote("ls", f"prod:{ref}").splitlines()[2:]]
    assert [line[1] for line in listed][:2] == ["model", "data"]
    remote("pull", f"prod:{ref}", "-o", "out")
    pulled = registry.files_below(tmp_path / "out")
    assert pulled == files if ref.endswith("/") else pulled.items() < files.items()
    assert len(pulled) == 3 if ref.endswith("/") else len(pulled) == 2


def test_nothing_is_replaced(remote, files, tmp_path):
    remote("push", "prod:a.onnx", "a.onnx")
    (tmp_path / "a.onnx").write_bytes(b"another")
    error = remote("push", "prod:a.onnx", "a.onnx", expect=1)
    assert error.startswith("qdq: remote_denied: prod:a.onnx: remote prod has the key a.onnx")
    remote("pull", "prod:a.onnx", "-o", "out")
    assert (tmp_path / "out" / "a.onnx").read_bytes() == files["a.onnx"]


def test_a_large_file_goes_in_parts(remote, server, tmp_path):
    data = random.Random(1).randbytes(150 << 20)
    (tmp_path / "big.onnx").write_bytes(data)
    remote("push", "prod:big.onnx", "big.onnx")
    assert remote("push", "prod:big.onnx", "big.onnx") == "prod:big.onnx\n"
    listed = remote("ls", "prod:big.onnx").splitlines()[2].split()
    assert listed[2] == str(len(data))
    digest = remote("pull", "prod:big.onnx", "-o", "out").splitlines()[2].split()[3]
    assert digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert b"<Upload>" not in curl(f"{server}/models?uploads=")


def test_an_object_of_somebody_else(remote, server, tmp_path, files):
    """An object that another client stored is pulled, and a key's own object is never replaced."""
    remote = registry.Remote(tmp_path, "s3", f"{server}/models/other", CREDENTIALS)
    curl("--upload-file", tmp_path / "a.onnx", "--header", "x-amz-content-sha256: " +
         hashlib.sha256(files["a.onnx"]).hexdigest(), f"{server}/models/other/a.onnx")
    remote("pull", "prod:a.onnx", "-o", "out")
    assert (tmp_path / "out" / "a.onnx").read_bytes() == files["a.onnx"]
    assert "already" in remote("push", "prod:a.onnx", "a.onnx", expect=1)


def test_a_folder_of_many_pages(remote, files, tmp_path):
    names = [f"part{i:04}.bin" for i in range(1010)]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    remote("push", "prod:many/", "a.onnx", *names)
    assert len(remote("ls", "prod:many/").splitlines()) == 2 + 1 + len(names)


def test_a_push_that_is_killed(remote, files, tmp_path):
    """Whenever it is killed, the next one completes it, and never replaces anything."""
    (tmp_path / "a.onnx").write_bytes(bytes(70 << 20))
    for i in range(6):
        push = ["push", f"prod:{i}/", *files]
        registry.kill_at_some_moment(remote, push, i / 8)
        remote(*push)
        remote("pull", f"prod:{i}/", "-o", "out")
        assert registry.files_below(tmp_path / "out") == {
            **files, "a.onnx": (tmp_path / "a.onnx").read_bytes()}


@pytest.mark.parametrize("credentials, ref, code", [
    (CREDENTIALS.replace("test-secret", "wrong"), "a.onnx", "remote_denied"),
    (CREDENTIALS.replace("test-key", "nobody"), "a.onnx", "remote_denied"),
    ("[default]\n", "a.onnx", "remote_denied"),
    (None, "a.onnx", "remote_denied"),
    (CREDENTIALS, "a.onnx", "remote_not_found"),
    (CREDENTIALS, "../a.onnx", "bad_request"),
    (CREDENTIALS, "/a.onnx", "bad_request"),
    (CREDENTIALS, "a//b.onnx", "bad_request"),
])
def test_errors(server, tmp_path, credentials, ref, code):
    remote = registry.Remote(tmp_path, "s3", f"{server}/models/empty", credentials)
    error = remote("pull", f"prod:{ref}", "-o", "out", expect=1)
    assert error.startswith(f"qdq: {code}: prod:{ref}: "), error
    assert "test-secret" not in error


def test_names_that_a_pull_would_not_find(remote, files):
    error = remote("push", "prod:b.onnx", "a.onnx", "a.onnx.data", expect=1)
    assert error.startswith("qdq: bad_request: prod:b.onnx: a.onnx.data"), error
    error = remote("push", "prod:a.onnx", "a.onnx", "--alias", "x", expect=1)
    assert "has no aliases" in error
