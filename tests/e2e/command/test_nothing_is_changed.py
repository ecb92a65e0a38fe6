# SPDX-License-Identifier: Apache-2.0
"""Random folders, with files, links, pipes and dot files where qdq and the client for Python
write, and full disks, lost connections and signals: nothing that was there is changed, and a file
that is new is whole."""

import os
import random
import resource
import signal
import subprocess
import sys
import time

import pytest

from cutting_proxy import CuttingProxy
from folders import snapshot
from service import INSTALLED
from test_multifile import external_net
from test_pull_folder import REF, serve
from test_python import qdqd
from test_registry import FILES, half_a_body, on_file, qdq, registry  # noqa: F401
from test_service import clean

QDQ = INSTALLED / "bin" / "qdq"
DATA = "model.onnx.data"
SPEC = '{"output": {"external_data": "always"}, "calibration": {"random_samples": 1}}'
WITHOUT_DATA = '{"calibration": {"random_samples": 1}}'
KINDS = ["nothing"] * 6 + ["other", "same", "empty", "outside", "inside", "dangling", "folder",
                          "pipe", "hard"]
CALM = ["nothing", "nothing", "same"]


def put(path, kind, right, root):
    """Makes one thing at the path, or nothing. `right` are the bytes that a command would
    write there."""
    path.parent.mkdir(exist_ok=True)
    if path.exists() or path.is_symlink():
        return
    if kind in ("other", "same", "empty"):
        path.write_bytes({"other": b"mine", "same": right, "empty": b""}[kind])
    elif kind == "folder":
        path.mkdir()
        (path / "kept").write_bytes(b"kept")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "hard":
        path.hardlink_to(root / "outside" / "file")
    elif kind != "nothing":
        path.symlink_to({"outside": root / "outside" / "file", "inside": "kept.txt",
                         "dangling": "none"}[kind])


def furnish(rng, root, right):
    """Makes a folder `out` with random things in the places of the files `right`, and things
    beside them. Returns it."""
    out = root / "out"
    (root / "outside").mkdir(parents=True)
    (root / "outside" / "file").write_bytes(b"outside")
    out.mkdir()
    (out / "kept.txt").write_bytes(b"kept")
    (out / ".profile").write_bytes(b"kept, too")
    kinds = CALM if rng.random() < 0.5 else KINDS
    folders = {name.partition("/")[0] for name in right if "/" in name}
    for folder in sorted(folders):
        kind = rng.randrange(8) if kinds is KINDS else 8
        if kind == 0:
            (out / folder).symlink_to(root / "outside")
        elif kind == 1:
            (out / folder).write_bytes(b"a file")
        elif kind == 2:
            (out / folder).symlink_to(".")
    for name, data in right.items():
        if not (out / name).parent.exists() or not (out / name).parent.is_symlink():
            if not (out / name.partition("/")[0]).is_file() or "/" not in name:
                put(out / name, rng.choice(kinds), data, root)
    return out


def run(rng, words, cwd, **environment):
    """Runs a command, perhaps with a small limit of file sizes, or stopped at some moment.
    Returns its status."""
    how = rng.choice(["plain"] * 4 + ["full", "full", "term", "kill"])
    limit = rng.choice([0, 1, 100, 5_000, 300_000])

    def start():
        if how == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = subprocess.Popen(words, cwd=cwd, env=clean(**environment), preexec_fn=start,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    if how in ("term", "kill"):
        time.sleep(rng.uniform(0, 0.3 if words[0] == sys.executable else 0.04))
        process.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
    process.communicate(timeout=60)
    return process.returncode


def check(before, after, status, right, may_replace=()):
    """Compares two snapshots. Files of `may_replace` may have their right bytes afterwards."""
    for path, entry in before.items():
        name = path.removeprefix("out/")
        replaced = name in may_replace and after.get(path, (0, 0))[1] == right[name]
        assert after.get(path) == entry or replaced, (path, entry, after.get(path))
    for path in set(after) - set(before):
        name = path.removeprefix("out/")
        content = after[path][1]
        hidden = ".qdqd" in path or path.endswith(".part") or ".tmp." in path
        assert hidden or content is None or content == right.get(name), path
    if status == 0:
        for name, data in right.items():
            assert after.get(f"out/{name}", (0, None))[1] == data, name


@pytest.mark.parametrize("part", range(5))
def test_pulls(qdq, registry, tmp_path, part):  # noqa: F811
    """250 pulls. With a file whose name begins with a dot none is written."""
    rng = random.Random(part)
    statuses = set()
    for i in range(50):
        files = dict(FILES)
        if rng.random() < 0.1:
            files[rng.choice([".profile", "a/.git/config", "weights/.x"])] = b"evil"
        serve(registry, files)
        served = registry.fault
        if rng.random() < 0.2:
            broken = on_file(half_a_body)
            registry.fault = lambda handler, path: broken(handler, path) or served(handler, path)
        root = tmp_path / str(i)
        furnish(rng, root, FILES)
        before = snapshot(root)
        status = run(rng, [QDQ, "pull", REF, "-o", "out", "--config", qdq.config], root)
        statuses.add(status)
        check(before, snapshot(root), status, files)
        assert status or len(files) == len(FILES)
    assert {0, 1} <= statuses


@pytest.fixture(scope="module")
def wanted(common, tmp_path_factory):
    """Makes the results once, and returns the folder of the inputs, and the bytes by name: of a
    result with a data file, and of one without."""
    folder = tmp_path_factory.mktemp("inputs")
    model, files = external_net(("w",), seed=15)
    (folder / "in.onnx").write_bytes(model)
    (folder / "w").write_bytes(files["w"])
    return folder


def results(url, folder):
    """Returns [(spec, bytes by name)] of the two jobs."""
    made = []
    for i, spec in enumerate((SPEC, WITHOUT_DATA)):
        (folder / f"{i}.json").write_text(spec)
        (folder / f"out{i}").mkdir(exist_ok=True)
        result = qdqd.quantize(folder / "in.onnx", spec=folder / f"{i}.json", url=url,
                               external=[folder / "w"])
        paths = result.save(folder / f"out{i}" / "o.onnx")
        made.append((result, {path.name: path.read_bytes() for path in paths}))
    return made


@pytest.mark.shares_daemon
@pytest.mark.parametrize("part", range(3))
def test_a_service_by_the_command(daemon, wanted, tmp_path, part):
    """120 results of `qdq --url quantize`. Files that the user names are replaced whole; the data
    file, which he does not name, replaces nothing."""
    rng = random.Random(100 + part)
    both, statuses = results(daemon.url, wanted), set()
    for i in range(40):
        with_data = rng.random() < 0.6
        _, right = both[0 if with_data else 1]
        root = tmp_path / str(i)
        furnish(rng, root, right)
        for name in ("in.onnx", "w"):
            (root / name).write_bytes((wanted / name).read_bytes())
        before = snapshot(root)
        target = rng.choice(["out/o.onnx"] * 5 + ["in.onnx", "w", "out/../in.onnx",
                                                  "out/model.onnx.data"])
        words = [QDQ, "--url", daemon.url, "--patience", "1", "quantize", "in.onnx", "--spec",
                 wanted / f"{0 if with_data else 1}.json", "-o", target]
        if target != "out/o.onnx":
            right = {}
            status = run(rng, words, root)
            assert status or (target.endswith(".data") and not with_data)
            if status:
                check(before, snapshot(root), status, right)
            continue
        plans = [("GET */model", "down", 1000)] if rng.random() < 0.2 else []
        with CuttingProxy(daemon.url, plans) as proxy:
            words[2] = proxy.url
            status = run(rng, words, root)
        statuses.add(status)
        check(before, snapshot(root), status, right, may_replace=["o.onnx"])
    assert {0, 1} <= statuses


@pytest.mark.shares_daemon
@pytest.mark.parametrize("part", range(2))
def test_the_client_for_python(daemon, wanted, tmp_path, part):
    """130 results in all: 100 in this process, 30 by the command, some of them stopped."""
    rng = random.Random(200 + part)
    both, statuses = results(daemon.url, wanted), set()
    for i in range(65):
        result, right = both[rng.randrange(2)]
        root = tmp_path / str(i)
        out = furnish(rng, root, right)
        before = snapshot(root)
        if i < 50:
            try:
                result.save(out / "o.onnx")
                status = 0
            except qdqd.FileError:
                status = 2
        else:
            words = [sys.executable, "-m", "qdqd", wanted / "in.onnx", "-e", wanted / "w", "-s",
                     wanted / f"{0 if len(right) == 2 else 1}.json", "-o", "out/o.onnx", "-q"]
            status = run(rng, words, root, QDQD_URL=daemon.url, PYTHONDONTWRITEBYTECODE="1",
                         PYTHONPATH=os.path.dirname(os.path.dirname(qdqd.__file__)))
        statuses.add(status)
        check(before, snapshot(root), status, right)
        if status == 2:
            assert snapshot(root) == before
    assert {0, 2} <= statuses
