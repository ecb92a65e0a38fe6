# SPDX-License-Identifier: Apache-2.0
"""qdq pull into folders where something is: nothing of it is changed without --force, and
nothing is written through a link."""

import os
import urllib.parse

import pytest

from folders import snapshot
from test_registry import (ARTIFACTS, FILES, files_below, half_a_body, on_file,  # noqa: F401
                           qdq, registry)

REF = "prod:models:/glyph/1"
MODEL = {"model.onnx": b"not really a model"}


def serve(registry, files):  # noqa: F811
    """The version has these files."""
    root = "0/models/m-1/artifacts"

    def answer(handler, path):
        query = urllib.parse.unquote(handler.path.partition("path=")[2])
        below = query.removeprefix(root).strip("/")
        if path == ARTIFACTS:
            rows = {}
            for name, data in files.items():
                rest = name.removeprefix(below + "/" if below else "")
                if rest == name and below:
                    continue
                first, slash, _ = rest.partition("/")
                rows[first] = {"path": first, "is_dir": bool(slash),
                               **({} if slash else {"file_size": len(data)})}
            handler.answer({"files": list(rows.values())})
        elif path.startswith(ARTIFACTS + "/"):
            name = urllib.parse.unquote(path.removeprefix(f"{ARTIFACTS}/{root}/"))
            handler.send_file(files[name])
        else:
            return False
        return True

    registry.fault = answer


def half_a_body_and_no_more(handler):
    return half_a_body(handler) or (handler.headers.get("Range") and
                                    (handler.answer(b"", 503), True)[1])


def refuse(qdq, folder, words, *options, code="io"):  # noqa: F811
    before = snapshot(folder)
    error = qdq("pull", REF, "-o", "out", *options, expect=1)
    assert error.startswith(f"qdq: {code}: ") and words in error, error
    after = {name: entry for name, entry in snapshot(folder).items()
             if not name.endswith(".part") and entry[1] is not None or name in before}
    assert after == before


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_other_bytes_stay(qdq, out, registry):  # noqa: F811
    (out / "model.onnx").write_bytes(b"mine, and of one size"[:len(MODEL["model.onnx"])])
    refuse(qdq, out, "out/model.onnx is there with other bytes")
    (out / "model.onnx").write_bytes(b"mine")
    refuse(qdq, out, "out/model.onnx is there with other bytes")
    (out / "MLmodel").write_bytes(FILES["MLmodel"])
    inode = (out / "MLmodel").stat().st_ino
    qdq("pull", REF, "-o", "out", "--force")
    assert files_below(out) == FILES
    assert (out / "MLmodel").stat().st_ino == inode
    before = {name: (out / name).stat().st_ino for name in FILES}
    qdq("pull", REF, "-o", "out")
    assert {name: (out / name).stat().st_ino for name in FILES} == before
    assert files_below(out) == FILES


@pytest.mark.parametrize("name", [".bashrc", ".git/config", "a/.b/c", "a/.hidden", "..a"])
@pytest.mark.parametrize("options", [[], ["--force"]])
def test_names_that_begin_with_a_dot(qdq, out, registry, name, options):  # noqa: F811
    serve(registry, {**MODEL, name: b"x"})
    refuse(qdq, out, "begins with a dot", *options, code="remote_denied")
    assert os.listdir(out) == []


@pytest.mark.parametrize("options", [[], ["--force"]])
@pytest.mark.parametrize("where", ["outside", "inside", "nowhere"])
def test_links_to_folders(qdq, out, tmp_path, where, options):  # noqa: F811
    (tmp_path / "outside").mkdir()
    (out / "inside").mkdir()
    target = {"outside": tmp_path / "outside", "inside": "inside", "nowhere": "none"}[where]
    (out / "weights").symlink_to(target)
    refuse(qdq, tmp_path, "symbolic link", *options)
    assert os.listdir(tmp_path / "outside") == os.listdir(out / "inside") == []


@pytest.mark.parametrize("options", [[], ["--force"]])
@pytest.mark.parametrize("target", ["../outside", "same", "none"])
def test_links_in_the_place_of_a_file(qdq, out, tmp_path, target, options):  # noqa: F811
    (tmp_path / "outside").write_bytes(b"outside")
    (out / "same").write_bytes(FILES["MLmodel"])
    (out / "MLmodel").symlink_to(target)
    refuse(qdq, tmp_path, "symbolic link", *options)


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_what_is_no_file(qdq, out, options):  # noqa: F811
    os.mkfifo(out / "MLmodel")
    refuse(qdq, out, "that is no file", *options)
    (out / "MLmodel").unlink()
    (out / "model.onnx").mkdir()
    refuse(qdq, out, "that is no file", *options)
    (out / "model.onnx").rmdir()
    (out / "weights").write_bytes(b"a file in the place of a folder")
    refuse(qdq, out, "is not a folder", *options)


def test_a_file_that_comes_meanwhile(qdq, out, registry):  # noqa: F811
    """The last file is published last: those before it go back when it cannot be."""
    def make(handler, path):
        if path.endswith("a.data"):
            (out / "model.onnx").write_bytes(b"of another process")
        return False
    registry.fault = make
    error = qdq("pull", REF, "-o", "out", expect=1)
    assert "out/model.onnx is there with other bytes" in error
    assert {name for name in files_below(out) if not name.endswith(".part")} == {"model.onnx"}
    assert (out / "model.onnx").read_bytes() == b"of another process"


def test_a_hidden_file_with_another_name(qdq, out, tmp_path, registry):  # noqa: F811
    """A file that an earlier pull seems to have left is not written where that changes a file that
    lies elsewhere."""
    registry.fault = on_file(half_a_body_and_no_more)
    qdq("pull", REF, "-o", "out", expect=1)
    (left,) = (out / "weights").glob(".*.part")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    registry.fault = None
    for make in (left.hardlink_to, left.symlink_to):
        left.unlink()
        make(victim)
        qdq("pull", REF, "-o", "out", expect=1)
        assert victim.read_bytes() == b"precious"


def test_texts_of_a_registry(qdq, out, registry):  # noqa: F811
    """Names with escape sequences of eight bits, and ones that turn the line around, are not
    printed as they came."""
    serve(registry, {**MODEL, "a\u009b31mb\u202ec": b"x"})
    assert "a?31mb?c" in qdq("ls", REF)
    assert "a?31mb?c" in qdq("pull", REF, "-o", "out")
