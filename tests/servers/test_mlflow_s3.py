# SPDX-License-Identifier: Apache-2.0
"""MLflow with its artifacts in a real S3 server: clients fetch them themselves
(--no-serve-artifacts), or the server hands out signed URLs."""

import json
import os
import re
import subprocess

import numpy
import pytest

import registry
from service import DATA, FEW_SAMPLES, VERSION, Service, eventually
from test_mlflow import run_model
from test_s3 import CREDENTIALS, curl


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with registry.running("s3", tmp_path_factory.mktemp("s3")) as url:
        curl("--request", "PUT", f"{url}/mlflow")
        yield url


class MLflow:
    """An MLflow server, its client, and a remote that knows its bucket."""

    def __init__(self, url, s3, environment):
        self.url, self.s3, self.environment = url, s3, environment

    def client(self, *words):
        done = subprocess.run(
            [registry.program("mlflow"), registry.HERE / "mlflow_client.py", *map(str, words)],
            capture_output=True, text=True, timeout=180,
            env={**os.environ, **self.environment, "MLFLOW_TRACKING_URI": self.url})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def remote(self, folder, *lines):
        remote = registry.Remote(folder, "mlflow", self.url)
        (folder / "s3.cred").write_text(CREDENTIALS)
        (folder / "s3.cred").chmod(0o600)
        with remote.config.open("a") as file:
            print(*lines, sep="\n", file=file)
        return remote


def mlflow(s3, tmp_path_factory, serves):
    environment = {
        "PYTHONPATH": registry.program("boto"), "MLFLOW_DISABLE_TELEMETRY": "true",
        "AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret",
        "AWS_DEFAULT_REGION": "us-east-1", "MLFLOW_S3_ENDPOINT_URL": s3,
        "QDQD_MLFLOW_S3": f"s3://mlflow/it's {serves}", "QDQD_MLFLOW_SERVES": str(serves)}
    return registry.running("mlflow", tmp_path_factory.mktemp("mlflow"), "/health",
                            **environment), environment


@pytest.fixture(scope="module")
def direct(s3, tmp_path_factory):
    server, environment = mlflow(s3, tmp_path_factory, 0)
    with server as url:
        one = MLflow(url, s3, environment)
        one.client("register", DATA / "glyph_resnet.onnx", "glyph", "champion")
        yield one


@pytest.fixture(scope="module")
def signed(s3, tmp_path_factory):
    server, environment = mlflow(s3, tmp_path_factory, 1)
    with server as url:
        one = MLflow(url, s3, environment)
        one.client("register", DATA / "glyph_resnet.onnx", "glyph", "champion")
        yield one


@pytest.fixture
def samples(tmp_path):
    data = numpy.load(FEW_SAMPLES)
    numpy.save(tmp_path / "samples.npy", data[data.files[0]][:4])
    return numpy.load(tmp_path / "samples.npy")


def check_pulled(folder, samples):
    pulled = registry.files_below(folder)
    assert {"model.onnx", "MLmodel", "requirements.txt"} < set(pulled)
    assert numpy.array_equal(run_model(folder / "model.onnx", samples),
                             run_model(DATA / "glyph_resnet.onnx", samples))
    return pulled


def test_from_a_champion_to_a_challenger(direct, samples, tmp_path):
    remote = direct.remote(tmp_path, f"artifacts_url = {direct.s3}/mlflow",
                           f"artifacts_credentials = {tmp_path}/s3.cred")
    remote("pull", "prod:models:/glyph@champion", "-o", "glyph")
    pulled = check_pulled(tmp_path / "glyph", samples)
    assert re.search(rb"artifact_path: ['\"]?s3://mlflow/", pulled["MLmodel"])
    subprocess.run([registry.QDQ, "quantize", tmp_path / "glyph" / "model.onnx",
                    "--calibration", FEW_SAMPLES, "-o", tmp_path / "int8.onnx",
                    "--report", tmp_path / "report.json", "--html", tmp_path / "report.html"],
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
    push = ["push", "prod:models:/glyph-int8", "int8.onnx", "report.json", "report.html",
            "--alias", "challenger", "--tag", f"qdqd.version={VERSION}", "--source",
            "models:/glyph@champion"]
    assert remote(*push) == "prod:models:/glyph-int8/1\n"
    assert remote(*push) == "prod:models:/glyph-int8/1\n"  # the same, and not another one
    found = json.loads(direct.client("load", "models:/glyph-int8@challenger",
                                     tmp_path / "samples.npy"))
    expected = run_model(tmp_path / "int8.onnx", samples)
    assert numpy.allclose(found["output"], expected, atol=1e-5)
    assert numpy.allclose(found["by_flavour"], expected, atol=1e-5)
    assert found["artifacts"] == ["report.html", "report.json"]
    assert len(found["inputs"]) == 1 and found["status"] == "FINISHED"
    remote("pull", "prod:models:/glyph-int8@challenger", "-o", "again")
    assert (tmp_path / "again" / "int8.onnx").read_bytes() == \
        (tmp_path / "int8.onnx").read_bytes()


def test_a_job(direct, tmp_path):
    """The daemon's carriers know the bucket, too."""
    remote = direct.remote(tmp_path, f"artifacts_url = {direct.s3}/mlflow",
                           f"artifacts_credentials = {tmp_path}/s3.cred")
    daemon = Service(tmp_path)
    daemon.arguments = ["--config", remote.config]
    daemon.start()
    try:
        job = daemon.post("/v1/jobs", json={
            "model": "prod:models:/glyph@champion",
            "spec": {"calibration": {"random_samples": 4}, "evaluate": False},
            "publish": [{"remote": "prod", "ref": "models:/glyph-job"}]}).json()["id"]
        [delivery] = eventually(
            lambda: [one for one in daemon.get(f"/v1/jobs/{job}?wait=5").json()["deliveries"]
                     if one["state"] != "pending"], seconds=60)
        assert delivery["state"] == "delivered", delivery
    finally:
        daemon.stop()
    remote("pull", "prod:models:/glyph-job/1", "-o", "out")
    assert any(name.endswith(".onnx") for name in registry.files_below(tmp_path / "out"))


@pytest.mark.parametrize("lines, why", [
    ([], "artifacts_url"),
    (["artifacts_url = {s3}/other", "artifacts_credentials = {folder}/s3.cred"], "artifacts_url"),
    (["artifacts_url = {s3}/mlflow/else", "artifacts_credentials = {folder}/s3.cred"],
     "artifacts_url"),
    (["artifacts_url = {s3}/mlflo", "artifacts_credentials = {folder}/s3.cred"], "artifacts_url"),
    (["artifacts_url = {s3}/mlflow"], "refuses access"),  # the bucket is not public
])
def test_another_bucket(direct, tmp_path, lines, why):
    remote = direct.remote(tmp_path, *[one.format(s3=direct.s3, folder=tmp_path) for one in lines])
    error = remote("pull", "prod:models:/glyph@champion", "-o", "out", expect=1)
    assert "remote_denied" in error and why in error, error
    assert not [one for one in registry.files_below(tmp_path) if one.startswith("out/")]


def test_signed_urls(signed, samples, tmp_path):
    """The server hands out the files, too; signed URLs spare it that."""
    (tmp_path / "proxied").mkdir()
    proxied = signed.remote(tmp_path / "proxied")
    proxied("pull", "prod:models:/glyph@champion", "-o", "out")
    remote = signed.remote(tmp_path, f"artifacts_url = {signed.s3}/mlflow")
    log = tmp_path / "strace"
    done = subprocess.run(
        ["strace", "-f", "-e", "trace=sendto,write", "-s", "200", "-o", log, registry.QDQ, "pull",
         "prod:models:/glyph@champion", "-o", "out", "--config", remote.config],
        cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert check_pulled(tmp_path / "out", samples) == registry.files_below(
        tmp_path / "proxied" / "out")
    asked = re.findall(r'"GET (/[^ ]*)', log.read_text())
    assert [one for one in asked if one.startswith("/mlflow/") and "X-Amz-" in one or
            "Signature=" in one], asked
    assert not [one for one in asked if "/mlflow-artifacts/artifacts/" in one]


def test_signed_urls_of_another_host(signed, tmp_path):
    remote = signed.remote(tmp_path, "artifacts_url = http://127.0.0.1:9/mlflow")
    error = remote("pull", "prod:models:/glyph@champion", "-o", "out", expect=1)
    assert "remote_denied" in error and "another host" in error, error
