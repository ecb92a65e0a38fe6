# SPDX-License-Identifier: Apache-2.0
"""Remotes that fail for long: each has its code in the job, and nothing is half published. All jobs
of a test wait at the same time; a fetch is given up after about two minutes."""

import hashlib
import time

import pytest
import requests

import nets
import registry
from far import API, ARTIFACTS, Far
from service import Service, eventually

MODEL = nets.block_net()
SPEC = {"calibration": {"random_samples": 2}, "evaluate": False}


def serve(folder, **remotes):
    (folder / "qdqd.conf").write_text("".join(
        f"[remote {name}]\n{text}\nallow_private = true\ntimeout = 1\nmax_bytes = 64M\n"
        for name, text in remotes.items()))
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    return one.start()


def submit(daemon, **members):
    answer = daemon.post("/v1/jobs", json={"spec": SPEC, "fresh": True, **members})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def half(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", len(MODEL))
    handler.end_headers()
    handler.wfile.write(MODEL[:len(MODEL) // 2])
    handler.close_connection = True


def endless(handler, pause=0):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 16) if not pause else b"x")
            time.sleep(pause)
    except OSError:
        handler.close_connection = True


FAULTS = {
    "answers-500": (lambda h: h.answer(b"", 500), "remote_unavailable"),
    "answers-429": (lambda h: h.answer(b"", 429, Retry_After="2"), "remote_unavailable"),
    "answers-403": (lambda h: h.answer(b"", 403), "remote_denied"),
    "half-a-body": (half, "remote_unavailable"),
    "never-ends": (endless, "remote_too_large"),
    "drips": (lambda h: endless(h, 0.3), "remote_unavailable"),
    "is-gone": (lambda h: h.answer(b"", 404), "remote_not_found"),
}


def test_a_fetch(tmp_path):
    far = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    for name in FAULTS:
        far.versions[name] = [{"name": name, "version": "1", "source": f"models:/m-{name}",
                               "tags": []}]
        far.files[f"0/models/m-{name}/model.onnx"] = MODEL

    def fault(handler, path):
        name = next((name for name in FAULTS if path.startswith(ARTIFACTS + "/") and
                     f"m-{name}/" in path), None)
        if name:
            FAULTS[name][0](handler)
        return bool(name)

    far.fault = fault
    daemon = serve(tmp_path, prod=f"kind = mlflow\nurl = {far.url}",
                   nobody="kind = mlflow\nurl = http://127.0.0.1:1")
    try:
        jobs = {name: submit(daemon, model=f"prod:models:/{name}/1") for name in FAULTS}
        jobs["down"] = submit(daemon, model="nobody:models:/x/1")
        codes = {name: code for name, (_, code) in FAULTS.items()} | {"down": "remote_unavailable"}
        for name, job in jobs.items():
            ended = eventually(lambda: (one := daemon.get(f"/v1/jobs/{job}?wait=60").json())
                               ["ended_at"] and one, seconds=300)
            assert (ended["state"], ended["error"]["code"]) == ("failed", codes[name]), name
            assert ended["model"] is None
    finally:
        daemon.stop()
        far.close()


def test_a_registry_that_is_down_for_a_minute(tmp_path):
    far = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    down = [True]

    def fault(handler, path):
        if down[0]:
            handler.close_connection = True
        return down[0]

    far.fault = fault
    daemon = serve(tmp_path, prod=f"kind = mlflow\nurl = {far.url}")
    try:
        model = daemon.upload("models", MODEL)
        to = {"remote": "prod", "ref": "models:/late-int8", "alias": "challenger"}
        jobs = {"fetches": submit(daemon, model="prod:models:/glyph/1"),
                "publishes": submit(daemon, model=model, publish=[to])}
        began = time.monotonic()

        def delivery():
            return daemon.get(f"/v1/jobs/{jobs['publishes']}").json()["deliveries"][0]

        daemon.get(f"/v1/jobs/{jobs['publishes']}?wait=60")
        eventually(lambda: (delivery()["error"] or {}).get("code") == "remote_unavailable")
        time.sleep(60 - (time.monotonic() - began))
        assert delivery()["state"] == "pending" and delivery()["attempts"] > 3
        assert daemon.get(f"/v1/jobs/{jobs['fetches']}").json()["progress"]["stage"] == "fetch"
        down[0] = False
        ended = daemon.get(f"/v1/jobs/{jobs['fetches']}?wait=120").json()
        assert ended["state"] == "succeeded", ended
        eventually(lambda: delivery()["state"] == "delivered", seconds=120)
        assert delivery()["location"] == "models:/late-int8/1" and delivery()["error"] is None
        assert len(far.versions["late-int8"]) == 1
    finally:
        daemon.stop()
        far.close()


CALLS = ["registered-models/create", "runs/create", "logged-models", "runs/outputs",
         "runs/log-batch", "model-versions/create"]


def test_a_publication_that_is_refused_halfway(tmp_path):
    """Wherever it ends, no version and no alias is there."""
    far = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    daemon = serve(tmp_path, prod=f"kind = mlflow\nurl = {far.url}")
    try:
        model = daemon.upload("models", MODEL)
        for call in CALLS:
            met = []

            def fault(handler, path, call=call, met=met):
                refused = path == API + call
                if refused:
                    met.append(path)
                    handler.answer(b"", 400)
                return refused

            far.reset()
            far.fault = fault
            job = submit(daemon, model=model, publish=[
                {"remote": "prod", "ref": "models:/half", "alias": "challenger"}])
            one = eventually(lambda: [one for one in daemon.get(f"/v1/jobs/{job}").json()
                                      ["deliveries"] if one["state"] != "pending"])[0]
            assert met and one["state"] == "failed", (call, one)
            assert one["error"]["code"] == "remote_denied" and one["location"] is None
            assert not far.versions.get("half") and ("half", "challenger") not in far.aliases
    finally:
        daemon.stop()
        far.close()


@pytest.fixture
def oci(tmp_path):
    (tmp_path / "oci").mkdir()
    with registry.running("oci", tmp_path / "oci", "/v2/", QDQD_REGISTRY_OPEN="1") as url:
        yield url, tmp_path / "oci"


def test_a_digest_that_is_wrong(oci, tmp_path):
    """The disk of a real OCI registry has other bytes than the registry says."""
    url, folder = oci
    (tmp_path / "m.onnx").write_bytes(MODEL)
    registry.Remote(tmp_path, "oci", url)("push", "prod:glyph:1", "m.onnx")
    digest = hashlib.sha256(MODEL).hexdigest()
    [blob] = folder.glob(f"data/docker/registry/v2/blobs/sha256/*/{digest}/data")
    spoiled = bytearray(MODEL)
    spoiled[-1] ^= 1
    blob.write_bytes(bytes(spoiled))
    assert requests.get(f"{url}/v2/glyph/blobs/sha256:{digest}", timeout=20).content == spoiled
    daemon = serve(tmp_path, prod=f"kind = oci\nurl = {url}")
    try:
        job = submit(daemon, model="prod:glyph:1")
        ended = daemon.get(f"/v1/jobs/{job}?wait=60").json()
        assert (ended["state"], ended["error"]["code"]) == ("failed", "remote_digest_mismatch")
        assert ended["model"] is None
    finally:
        daemon.stop()
