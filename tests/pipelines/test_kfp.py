# SPDX-License-Identifier: Apache-2.0
"""examples/kfp is compiled and run by kfp on this machine."""

import subprocess

import pytest

import pipelines
from pipelines import MISSED, ROOT, execute


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Returns a function that runs the example in a Python that has kfp. The component installs
    the client into it, so it is not the one of the cache."""
    cached = pipelines.python_with("kfp")
    folder = tmp_path_factory.mktemp("kfp") / "venv"
    subprocess.run([cached, "-m", "venv", folder], check=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    (packages,) = cached.parent.parent.glob("lib/python3.*/site-packages")
    (site / "kfp.pth").write_text(f"{packages}\n")

    def run(work, url):
        return execute(work, [folder / "bin" / "python", ROOT / "tests" / "pipelines" / "run_kfp.py",
                              work, url], QDQD_CLIENT=wheel,
                       PATH=f"{folder / 'bin'}:/usr/bin:/bin")

    run.version = execute(folder, [folder / "bin" / "python", "-c",
                                   "import kfp; print('kfp', kfp.__version__)"]).stdout.strip()
    return run


def test_lost_connections(run, daemon, tmp_path, record_property):
    record_property("version", run.version)
    pipelines.survives(run, daemon, tmp_path)
    assert "image: python:3.12" in (tmp_path / "pipeline.yaml").read_text()


def test_a_missed_bound(run, daemon, tmp_path):
    done = pipelines.misses(run, daemon, tmp_path)
    log = done.stdout.rstrip("-\n ")  # kfp draws a line under the log
    assert MISSED in log.splitlines()[-1]
