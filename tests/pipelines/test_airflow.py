# SPDX-License-Identifier: Apache-2.0
"""examples/airflow is run by `airflow dags test`, in a folder and a database of the test's own."""

import json

import pytest

import pipelines
from pipelines import EXAMPLES, MISSED, ROOT, execute

DAG = EXAMPLES / "airflow" / "qdqd_quantize.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    airflow = pipelines.python_with("airflow").parent / "airflow"
    home = tmp_path_factory.mktemp("airflow")
    settings = {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW__CORE__DAGS_FOLDER": DAG.parent,
                "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
                "PYTHONPATH": ROOT / "clients" / "python"}
    made = execute(home, [airflow, "db", "migrate"], **settings)
    assert made.returncode == 0, made.stdout

    def run(work, url):
        given = {name: str(work / file) for name, file in (
            ("model", "net.onnx"), ("calibration", "net.npz"), ("spec", "spec.json"),
            ("output", "int8.onnx"))}
        return execute(work, [airflow, "dags", "test", "-f", DAG, "qdqd_quantize", "-c",
                              json.dumps(given)], QDQD_URL=url, **settings)

    run.version = "airflow " + execute(home, [airflow, "version"],
                                       **settings).stdout.splitlines()[-1]
    return run


def test_lost_connections(run, daemon, tmp_path, record_property):
    record_property("version", run.version)
    done = pipelines.survives(run, daemon, tmp_path)
    assert "'verdict': 'good'" in done.stdout
    assert (tmp_path / "int8.md").read_text().startswith("#")


def test_a_missed_bound(run, daemon, tmp_path):
    """The task ends with the reason, and is not tried again. Airflow adds lines of its own."""
    done = pipelines.misses(run, daemon, tmp_path)
    assert done.stdout.splitlines()[-1] == "DagRun failed"
    told = [line for line in done.stdout.splitlines() if "AirflowFailException: qdqd: " in line]
    assert told and MISSED in told[-1]
    assert "min_cosine" in (tmp_path / "int8.md").read_text()
    assert "up_for_retry" not in done.stdout
