# SPDX-License-Identifier: Apache-2.0
"""The wheel of clients/python, in the oldest and the newest Python of this machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import judge
import nets
from service import ROOT, VERSION

OLDEST = (3, 9)
# A gate is met, then missed; nothing but the standard library is imported.
SCRIPT = """
import sys
import qdqd
result = qdqd.quantize("net.onnx", "data.npz")
result.save("int8.onnx")
try:
    qdqd.quantize("net.onnx", "data.npz", {"accept": {"min_cosine": 1}})
except qdqd.AccuracyError as error:
    assert error.report["gates"]
else:
    sys.exit("no gate was missed")
assert "numpy" not in sys.modules and qdqd.__file__.startswith(sys.argv[1])
print(qdqd.__version__)
"""


def interpreters():
    """Returns the Pythons of PATH, Debian's and pyenv's as {version: path}."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [*os.environ.get("PATH", "").split(":"), "/usr/bin", *pyenv.glob("*/bin")]
    found = {}
    for path in (p for folder in folders for p in Path(folder).glob("python3.*")):
        version = re.fullmatch(r"python3\.(\d+)", path.name)
        if version and os.access(path, os.X_OK) and "shims" not in path.parts:
            found.setdefault((3, int(version[1])), path)
    return {version: path for version, path in sorted(found.items()) if version >= OLDEST}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Builds the wheel with pip and installs it into a folder."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index",
                    "--wheel-dir", folder, ROOT / "clients" / "python"], check=True)
    (wheel,) = folder.glob("qdqd-*-py3-none-any.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", folder / "site",
                    wheel], check=True)
    return folder / "site"


@pytest.mark.shares_daemon
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_wheel(daemon, installed, tmp_path, which, record_property):
    found = interpreters()
    own = (3, sys.version_info[1])
    if which == "oldest" and min(found, default=own) >= own:
        pytest.skip(f"no Python older than {own} is here")
    if which == "newest" and max(found, default=own) < own:
        found[own] = Path(sys.executable)
    version = (min if which == "oldest" else max)(found)
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "data.npz").write_bytes(nets.samples())
    environment = {"PYTHONPATH": str(installed), "QDQD_URL": daemon.url,
                   "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([found[version], "-W", "error", "-c", SCRIPT, str(installed)],
                          cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=60)
    record_property("version", f"clients/python in Python {version[0]}.{version[1]}")
    assert done.returncode == 0, done.stderr
    judge.load((tmp_path / "int8.onnx").read_bytes())
    assert done.stdout.strip() == VERSION


def test_the_oldest_python_is_that_of_the_package():
    text = (ROOT / "clients" / "python" / "pyproject.toml").read_text()
    assert f'requires-python = ">={OLDEST[0]}.{OLDEST[1]}"' in text


@pytest.mark.shares_daemon
def test_the_lines_of_the_readme(daemon, installed, tmp_path):
    """README.md's lines of Python work when pasted."""
    (lines,) = re.findall(r"^```py\n(import qdqd\n.*?)^```", (ROOT / "README.md").read_text(),
                          re.MULTILINE | re.DOTALL)
    output = tmp_path / "int8.onnx"
    done = subprocess.run([sys.executable, "-c", lines.replace("int8.onnx", str(output))],
                          cwd=ROOT, capture_output=True, text=True, timeout=60,
                          env={"PYTHONPATH": str(installed), "QDQD_URL": daemon.url})
    assert done.returncode == 0, done.stderr
    judge.load(output.read_bytes())
