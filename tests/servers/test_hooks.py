# SPDX-License-Identifier: Apache-2.0
"""A real MLflow server tells the daemon of new versions, by its own webhooks."""

import json
import os
import subprocess

import numpy
import pytest

import registry
from service import DATA, FEW_SAMPLES, Service, eventually

SECRET = "what only the two know"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with registry.running("mlflow", tmp_path_factory.mktemp("mlflow"), "/health",
                          MLFLOW_WEBHOOK_ALLOWED_SCHEMES="http",
                          MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS="true") as url:
        yield url


@pytest.fixture
def daemon(server, tmp_path):
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "spec.json").write_text('{"accept": {"min_sqnr_db": 20}}')
    one = Service(tmp_path)
    one.arguments = ["--config", tmp_path / "qdqd.conf"]
    hook = (f"[remote prod]\nkind = mlflow\nurl = {server}\nallow_private = true\n"
            f"[hook glyph]\nremote = prod\nsignature = mlflow\nsecret = {tmp_path}/secret\n"
            f"models = glyph*\nspec = {tmp_path}/spec.json\n"
            "publish = models:/{name}-int8@challenger\n")
    (tmp_path / "qdqd.conf").write_text(hook)
    one.start()
    samples = one.upload("datasets", FEW_SAMPLES.read_bytes())
    one.stop()
    (tmp_path / "qdqd.conf").write_text(hook + f"calibration = {samples}\n")
    one.start()
    yield one
    one.stop()


def client(server, *words):
    done = subprocess.run(
        [registry.program("mlflow"), registry.HERE / "mlflow_client.py", *map(str, words)],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "MLFLOW_TRACKING_URI": server, "MLFLOW_DISABLE_TELEMETRY": "true"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def counted(daemon, how):
    text = daemon.get("/metrics").text
    return int(text.split(f'qdqd_hook_messages_total{{how="{how}"}} ')[1].split("\n")[0])


def test_who_registers_a_model_finds_its_int8_version(server, daemon, tmp_path):
    # MLflow's own test of a webhook tells of a model that is not the rule's.
    tested = json.loads(client(server, "webhook", f"{daemon.url}/v1/hooks/glyph", SECRET))
    assert tested["success"] and tested["status"] == 200, tested
    assert json.loads(tested["body"]) == {"status": "ignored"}
    client(server, "register", DATA / "glyph_resnet.onnx", "glyph", "champion")

    def delivered():
        found = [one for one in daemon.get("/v1/jobs").json()["jobs"] if one["deliveries"]]
        return [one["state"] for job in found for one in job["deliveries"]] == ["delivered"]

    eventually(delivered, seconds=60)
    data = numpy.load(FEW_SAMPLES)
    numpy.save(tmp_path / "samples.npy", data[data.files[0]][:4])
    found = json.loads(client(server, "load", "models:/glyph-int8@challenger",
                              tmp_path / "samples.npy"))
    assert found["tags"]["qdqd.source_model"] == "models:/glyph/1"
    assert found["metrics"]["sqnr_db"] >= 20 and len(found["inputs"]) == 1
    # The publication was told, too: MLflow's test and that one were ignored.
    eventually(lambda: counted(daemon, "ignored") == 2)
    assert counted(daemon, "accepted") == 1 and counted(daemon, "refused") == 0
    assert len(daemon.get("/v1/jobs").json()["jobs"]) == 1
