# SPDX-License-Identifier: Apache-2.0
"""Clients that generators make of the daemon's own contract, each with a program that uses it:
an upload, a plan, a job, its end, its model and report, and errors."""

import subprocess
from pathlib import Path

import pytest

import pipelines
from pipelines import MISSED, execute

HERE = Path(__file__).parent
GENERATORS = {
    "openapi-python-client": ["generate", "--path", "openapi.yaml", "--meta", "none",
                              "--output-path", "made_by_openapi_python_client"],
    "openapi-generator-cli": ["generate", "-g", "python", "-i", "openapi.yaml", "-o", ".",
                              "--package-name", "made_by_openapi_generator"]}
USERS = {"openapi-python-client": "use_openapi_python_client.py",
         "openapi-generator-cli": "use_openapi_generator.py"}
pytestmark = pytest.mark.shares_daemon


@pytest.fixture(scope="module")
def python():
    return pipelines.python_with("generators")


@pytest.fixture(scope="module", params=sorted(GENERATORS))
def generated(request, python, tmp_path_factory):
    """Returns a function that runs the program which uses the generated client."""
    name, folder = request.param, tmp_path_factory.mktemp("generated")

    def run(work, url):
        if not (folder / "openapi.yaml").exists():
            subprocess.run(["curl", "--silent", "--fail", "--output", folder / "openapi.yaml",
                            f"{url}/openapi.yaml"], check=True)
            done = execute(folder, [python.parent / name, *GENERATORS[name]],
                           PATH=f"{python.parent}:/usr/bin:/bin")
            assert done.returncode == 0, done.stdout
        return execute(work, [python, "-W", "error", HERE / USERS[name], url], PYTHONPATH=folder)

    run.version = f"{name} " + subprocess.run(
        [python, "-c", f"import importlib.metadata as m; print(m.version('{name}'))"],
        check=True, capture_output=True, text=True).stdout.strip()
    return run


def test_lost_connections(generated, daemon, tmp_path, record_property):
    record_property("version", generated.version)
    done = pipelines.survives(generated, daemon, tmp_path)
    assert "verdict good" in done.stdout.splitlines()[-1]


def test_a_missed_bound(generated, daemon, tmp_path):
    done = pipelines.misses(generated, daemon, tmp_path)
    assert MISSED in done.stdout.splitlines()[-1]
