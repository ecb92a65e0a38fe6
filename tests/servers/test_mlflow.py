# SPDX-License-Identifier: Apache-2.0
"""qdq exchanges models with a real MLflow server; MLflow's own client is on the other side."""

import json
import os
import subprocess

import numpy
import onnx
import onnxruntime
import pytest
import requests

import registry
from service import DATA, FEW_SAMPLES, VERSION


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with registry.running("mlflow", tmp_path_factory.mktemp("mlflow"), "/health") as url:
        yield url


@pytest.fixture(scope="module")
def client(server):
    python = registry.program("mlflow")

    def run(*words):
        done = subprocess.run(
            [python, registry.HERE / "mlflow_client.py", *map(str, words)],
            capture_output=True, text=True, timeout=120,
            env={**os.environ, "MLFLOW_TRACKING_URI": server, "MLFLOW_DISABLE_TELEMETRY": "true"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def registered(client):
    """The float model that a user of MLflow registered."""
    client("register", DATA / "glyph_resnet.onnx", "glyph", "champion")


@pytest.fixture
def remote(server, tmp_path):
    return registry.Remote(tmp_path, "mlflow", server)


def run_model(path, samples):
    session = onnxruntime.InferenceSession(path)
    return session.run(None, {session.get_inputs()[0].name: samples})[0]


@pytest.fixture
def samples(tmp_path):
    data = numpy.load(FEW_SAMPLES)
    images = data[data.files[0]][:4]
    numpy.save(tmp_path / "samples.npy", images)
    return images


def test_from_a_champion_to_a_challenger(remote, client, registered, samples, tmp_path):
    listed = remote("ls", "prod:models:/glyph@champion")
    assert listed.splitlines()[0] == "prod:models:/glyph/1"
    remote("pull", "prod:models:/glyph@champion", "-o", "glyph")
    pulled = registry.files_below(tmp_path / "glyph")
    assert {"model.onnx", "MLmodel", "requirements.txt"} < set(pulled)
    assert [name for name in pulled if name.endswith(".data")]  # MLflow splits a model
    assert numpy.array_equal(run_model(tmp_path / "glyph" / "model.onnx", samples),
                             run_model(DATA / "glyph_resnet.onnx", samples))
    subprocess.run([registry.QDQ, "quantize", tmp_path / "glyph" / "model.onnx",
                    "--calibration", FEW_SAMPLES, "-o", tmp_path / "int8.onnx",
                    "--report", tmp_path / "report.json", "--html", tmp_path / "report.html"],
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
    push = ["push", "prod:models:/glyph-int8", "int8.onnx", "report.json", "report.html",
            "--alias", "challenger", "--tag", f"qdqd.version={VERSION}", "--source", "models:/glyph@champion"]
    assert remote(*push) == "prod:models:/glyph-int8/1\n"
    assert remote(*push) == "prod:models:/glyph-int8/1\n"  # the same, and not another one
    remote("pull", "prod:models:/glyph-int8/1", "-o", "int8")
    described = (tmp_path / "int8" / "MLmodel").read_text()
    assert "onnx_version" in described  # as the source's, with other ids
    assert not [line for line in described.splitlines() if "run_id" in line and
                line in pulled["MLmodel"].decode()]
    found = json.loads(client("load", "models:/glyph-int8@challenger", tmp_path / "samples.npy"))
    expected = run_model(tmp_path / "int8.onnx", samples)
    assert numpy.allclose(found["output"], expected, atol=1e-5)
    assert numpy.allclose(found["by_flavour"], expected, atol=1e-5)
    assert found["version"] in (1, "1") and found["status"] == "FINISHED"
    assert found["tags"]["qdqd.version"] == VERSION
    assert found["artifacts"] == ["report.html", "report.json"]
    report = json.loads((tmp_path / "report.json").read_text())
    figures = report["evaluation"]["outputs"][0]
    assert found["metrics"] == {
        **{name: figures[name] for name in ("sqnr_db", "cosine", "top1_agreement")},
        "size_ratio": report["summary"]["size_after"] / report["summary"]["size_before"]}
    assert len(found["inputs"]) == 1 and found["source"] == f"models:/{found['outputs'][0]}"


def test_a_model_of_several_files(remote, client, registered, samples, tmp_path):
    model = onnx.load(DATA / "glyph_resnet.onnx")
    (tmp_path / "big").mkdir()
    onnx.save(model, tmp_path / "big" / "big.onnx", save_as_external_data=True,
              location="big.onnx.data", size_threshold=0)
    remote("push", "prod:models:/big", "big/big.onnx", "big/big.onnx.data", "--alias", "first")
    found = json.loads(client("load", "models:/big@first", tmp_path / "samples.npy"))
    assert numpy.array_equal(numpy.float32(found["output"]),
                             run_model(DATA / "glyph_resnet.onnx", samples))
    remote("pull", "prod:models:/big/1", "-o", "again")
    again = registry.files_below(tmp_path / "again")
    assert again.pop("MLmodel")
    assert again == registry.files_below(tmp_path / "big")


def test_a_push_that_is_killed(remote, server, tmp_path):
    """Whenever it is killed, the next one completes exactly one version."""
    for i in range(20):
        (tmp_path / "m.onnx").write_bytes(f"model {i}".encode() * 100_000)
        push = ["push", "prod:models:/killed", "m.onnx", "--alias", "last"]
        registry.kill_at_some_moment(remote, push, i / 50)
        assert remote(*push).startswith("prod:models:/killed/")
        found = requests.get(f"{server}/api/2.0/mlflow/model-versions/search", timeout=20,
                             params={"filter": "name='killed'"}).json()["model_versions"]
        assert len(found) == i + 1
        assert len({one["tags"][0]["value"] for one in found}) == i + 1
        remote("pull", "prod:models:/killed@last", "-o", "out", "--force")
        assert (tmp_path / "out" / "m.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


@pytest.mark.parametrize("ref, code", [
    ("models:/glyph/99", "remote_not_found"), ("models:/glyph@nobody", "remote_not_found"),
    ("models:/nothing/1", "remote_not_found"), ("models:/nothing@x", "remote_not_found")])
def test_what_is_not_there(remote, registered, ref, code):
    error = remote("ls", f"prod:{ref}", expect=1)
    assert error.startswith(f"qdq: {code}: prod:{ref}: remote prod does not have"), error
