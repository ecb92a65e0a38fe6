# SPDX-License-Identifier: Apache-2.0
"""The files that clients/python writes: all or none, and nothing that was there is changed."""

import os
import signal
import subprocess
import sys
import time

import pytest

import nets
from cutting_proxy import CuttingProxy
from folders import snapshot
from test_multifile import external_net
from test_python import command, qdqd

WITH_DATA = {"output": {"external_data": "always"}, "calibration": {"random_samples": 1}}
DATA = "model.onnx.data"


@pytest.fixture
def net(daemon, tmp_path, monkeypatch):
    """A folder with the model of the user, whose data has the name that results use, too."""
    monkeypatch.setenv("QDQD_URL", daemon.url)
    model, files = external_net((DATA,), seed=12)
    (tmp_path / "model.onnx").write_bytes(model)
    (tmp_path / DATA).write_bytes(files[DATA])
    return tmp_path / "model.onnx"


def make(folder, seed=13):
    """Returns a result with a data file, whose model is of bytes."""
    model, files = external_net(("w",), seed=seed)
    (folder / "w").write_bytes(files["w"])
    (folder / "in.onnx").write_bytes(model)
    return qdqd.quantize(folder / "in.onnx", spec=WITH_DATA, external=[folder / "w"])


def refused(folder, words, call):
    before = snapshot(folder)
    with pytest.raises(qdqd.FileError, match=words):
        call()
    assert snapshot(folder) == before


@pytest.mark.shares_daemon
def test_data_that_is_there_stays(net, tmp_path):
    """The user's own weights are not replaced by those of the result."""
    result = qdqd.quantize(net, spec=WITH_DATA)
    refused(tmp_path, f"{DATA} is an input", lambda: result.save(tmp_path / "int8.onnx"))
    refused(tmp_path, "is an input", lambda: result.save(tmp_path / "int8.onnx", force=True))
    done = command(tmp_path, os.environ["QDQD_URL"], "model.onnx", "-s", "spec.json",
                   "-o", "int8.onnx")
    assert done.returncode == 2  # there is no spec
    (tmp_path / "spec.json").write_text(
        '{"output": {"external_data": "always"}, "calibration": {"random_samples": 1}}')
    before = snapshot(tmp_path)
    done = command(tmp_path, os.environ["QDQD_URL"], "model.onnx", "-s", "spec.json",
                   "-o", "int8.onnx", "--report", "r.json", "--force")
    assert (done.returncode, snapshot(tmp_path)) == (2, before), done.stderr
    assert "is an input" in done.stderr.splitlines()[-1]


@pytest.mark.shares_daemon
def test_two_results_in_one_folder(daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("QDQD_URL", daemon.url)
    for name in ("a", "b", "out"):
        (tmp_path / name).mkdir()
    first, second = make(tmp_path / "a", 13), make(tmp_path / "b", 14)
    out = tmp_path / "out"
    assert first.save(out / "a.onnx") == [out / "a.onnx", out / DATA]
    times = snapshot(out)
    refused(out, "other bytes", lambda: second.save(out / "b.onnx"))
    assert first.save(out / "a.onnx") == [out / "a.onnx", out / DATA]
    assert snapshot(out) == times
    refused(out, "other bytes", lambda: second.save(out / "a.onnx"))
    second.save(out / "a.onnx", force=True)
    assert sorted(os.listdir(out)) == ["a.onnx", DATA]
    assert snapshot(out) != times


@pytest.mark.shares_daemon
@pytest.mark.parametrize("kind", ["same", "spelling", "link", "hard link", "folder link"])
def test_a_target_that_is_the_model(daemon, tmp_path, monkeypatch, kind):
    monkeypatch.setenv("QDQD_URL", daemon.url)
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "sub").mkdir()
    target = {"same": "net.onnx", "spelling": "sub/../net.onnx", "link": "link.onnx",
              "hard link": "hard.onnx", "folder link": "again/net.onnx"}[kind]
    (tmp_path / "link.onnx").symlink_to("net.onnx")
    (tmp_path / "hard.onnx").hardlink_to(tmp_path / "net.onnx")
    (tmp_path / "again").symlink_to(".")
    result = qdqd.quantize(tmp_path / "net.onnx", nets.samples())
    refused(tmp_path, "is an input",
            lambda: result.save(tmp_path / target, force=True))
    before = snapshot(tmp_path)
    for option in ("-o", "--report"):
        done = command(tmp_path, daemon.url, "net.onnx", "--force", option, target)
        assert done.returncode == 2 and "is an input" in done.stderr, done.stderr
    assert snapshot(tmp_path) == before


@pytest.mark.shares_daemon
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", ".hidden", "/etc/x", "a\\b",
                                  "C:x", "a\nb", "a\x1b[2Jb", "\u202egnp", None, 5])
def test_names_of_the_service(daemon, tmp_path, monkeypatch, name):
    monkeypatch.setenv("QDQD_URL", daemon.url)
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    result = make(tmp_path / "in")
    result.job["result"]["files"][1]["path"] = name
    refused(tmp_path, "no plain file name", lambda: result.save(tmp_path / "out" / "o.onnx"))


@pytest.mark.shares_daemon
def test_places_that_are_taken(daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("QDQD_URL", daemon.url)
    result = qdqd.quantize(nets.block_net(), nets.samples())
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to("none")
    (tmp_path / "elsewhere").symlink_to(__file__)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "other").write_text("other")
    for name, words in [("folder", "is a folder"), ("nowhere", "other bytes"),
                        ("elsewhere", "other bytes"), ("pipe", "not a regular file"),
                        ("other", "other bytes"), ("none/x", "does not exist")]:
        refused(tmp_path, words, lambda name=name: result.save(tmp_path / name))
    refused(tmp_path, "named for two", lambda: make_and_save(tmp_path, DATA))


@pytest.mark.shares_daemon
def test_reports_into_streams_and_links(daemon, tmp_path):
    """A report goes to standard output, and through a link, as before."""
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "r.json").write_text("the one before")
    (tmp_path / "r.json").symlink_to("there/r.json")
    words = ["net.onnx", "-c", "data.npz", "--report", "r.json", "--markdown", "/dev/stdout"]
    done = command(tmp_path, daemon.url, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#") and "verdict" in done.stdout.splitlines()[-1]
    assert (tmp_path / "r.json").is_symlink() and os.path.islink("/dev/stdout")
    assert (tmp_path / "there" / "r.json").read_text().startswith("{")
    with open(tmp_path / "redirected", "w") as to:
        subprocess.run([sys.executable, "-m", "qdqd", *words], cwd=tmp_path, stdout=to, check=True,
                       env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "QDQD_URL": daemon.url,
                            "PYTHONPATH": os.path.dirname(os.path.dirname(qdqd.__file__))})
    assert (tmp_path / "redirected").read_text()
    assert os.path.islink("/dev/stdout")
    result = qdqd.quantize(tmp_path / "net.onnx", tmp_path / "data.npz", url=daemon.url)
    with pytest.raises(qdqd.FileError, match="not a regular file"):
        result.save("/dev/null", force=True)


def make_and_save(folder, name):
    (folder.parent / "in").mkdir(exist_ok=True)
    return make(folder.parent / "in").save(folder / name)


@pytest.mark.shares_daemon
def test_a_full_disk_is_no_lost_connection(daemon, tmp_path):
    """The command ends at once, and what was there before is there."""
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    (tmp_path / "int8.onnx").write_text("the one before")
    before = snapshot(tmp_path)
    code = ("import resource, runpy, sys;"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
            "sys.argv[0] = 'qdqd'; runpy.run_module('qdqd', run_name='__main__')")
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, "net.onnx", "-c", "data.npz", "-o", "int8.onnx",
         "--force"], cwd=tmp_path, text=True, capture_output=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(qdqd.__file__)),
             "PYTHONDONTWRITEBYTECODE": "1", "QDQD_URL": daemon.url})
    assert done.returncode == 2 and "File too large" in done.stderr, done.stderr
    assert time.monotonic() - began < 30 and snapshot(tmp_path) == before


@pytest.mark.shares_daemon
def test_an_error_between_two_names(daemon, tmp_path, monkeypatch):
    """The data file that has its name already loses it when the model does not get one."""
    monkeypatch.setenv("QDQD_URL", daemon.url)
    (tmp_path / "in").mkdir()
    result = make(tmp_path / "in")
    (tmp_path / "out").mkdir()
    real = os.link

    def link(source, target, **options):
        if str(target).endswith("int8.onnx"):
            (tmp_path / "out" / "int8.onnx").write_text("of another process")
        return real(source, target, **options)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(qdqd.FileError, match="other bytes"):
        result.save(tmp_path / "out" / "int8.onnx")
    assert os.listdir(tmp_path / "out") == ["int8.onnx"]
    assert (tmp_path / "out" / "int8.onnx").read_text() == "of another process"


@pytest.mark.shares_daemon
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_stopped(daemon, tmp_path, number):
    """A signal within the download leaves the folder as it was."""
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    before = snapshot(tmp_path)
    with CuttingProxy(daemon.url, [("GET */model", "down", 2000)]) as proxy:
        process = subprocess.Popen(
            [sys.executable, "-m", "qdqd", "net.onnx", "-c", "data.npz", "-o", "int8.onnx"],
            cwd=tmp_path,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "QDQD_URL": proxy.url, "PYTHONDONTWRITEBYTECODE": "1",
                 "PYTHONPATH": os.path.dirname(os.path.dirname(qdqd.__file__))})
        while proxy.plans and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(number)
        errors = process.communicate(timeout=30)[1]
    assert process.returncode in (0, 130), errors
    if process.returncode:
        assert snapshot(tmp_path) == before


@pytest.mark.shares_daemon
def test_texts_of_a_service_are_printable(tmp_path):
    """Control characters of a hostile service reach neither terminal nor traceback."""
    text = '{"code": "in\\u001b[2J", "detail": "a\\u009b31mb\\u202ec\\n", "status": 400}'
    answer = (f"HTTP/1.1 400 Bad\r\nContent-Length: {len(text)}\r\n"
              f"Content-Type: application/json\r\n\r\n{text}").encode()
    plans = [("*", "answer", answer)] * 2
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    with CuttingProxy("http://127.0.0.1:9", plans) as proxy:
        done = command(tmp_path, proxy.url, "net.onnx")
    assert done.returncode == 3
    assert done.stderr == "qdqd: in?[2J: a?31mb?c?\n"


@pytest.mark.shares_daemon
def test_an_empty_spec(daemon, tmp_path):
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "spec.json").write_bytes(b"")
    done = command(tmp_path, daemon.url, "net.onnx", "-s", "spec.json")
    assert done.returncode == 2 and "invalid_json" in done.stderr
