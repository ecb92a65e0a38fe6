# SPDX-License-Identifier: Apache-2.0
"""The results that jobs publish, and the events that webhooks get."""

import os
import random
import signal
import time

import pytest
from standardwebhooks import WebhookVerificationError

import nets
from carriers import carriers
from far import OLD_SECRET, SECRET, Far
from service import Service, eventually, problem

SPEC = {"calibration": {"random_samples": 2}}
TO = {"remote": "prod", "ref": "models:/glyph-int8", "alias": "challenger", "tags": {"k": "v"}}
MODEL = nets.block_net()


@pytest.fixture(scope="module")
def far():
    one = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    yield one
    one.close()


@pytest.fixture(scope="module")
def daemon(far, tmp_path_factory):
    folder = tmp_path_factory.mktemp("deliver")
    for name, text in {"told.secret": SECRET, "old.secret": OLD_SECRET}.items():
        (folder / name).write_text(text + "\n")
        (folder / name).chmod(0o600)
    secret = folder / "told.secret"
    (folder / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\ntimeout = 2\n"
        f"[remote told]\nkind = webhook\nurl = {far.url}/told\nallow_private = true\n"
        f"secret = {secret}\nlabel = tell=yes\n"
        f"[remote both]\nkind = webhook\nurl = {far.url}/both\nallow_private = true\n"
        f"secret = {secret}\nsecret_old = {folder}/old.secret\nlabel = tell=both\n"
        "events = job.failed, delivery.failed\n")
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    one.start()
    one.model = one.upload("models", MODEL)
    one.samples = one.upload("datasets", nets.samples())
    yield one
    one.stop()
    assert SECRET not in one.log.read_text() and OLD_SECRET not in one.log.read_text()


@pytest.fixture(autouse=True)
def clean(far):
    far.reset()


def run(daemon, **members):
    answer = daemon.post("/v1/jobs", json={"model": daemon.model, "spec": SPEC, "fresh": True,
                                           **members})
    assert answer.status_code == 202, answer.text
    return daemon.get(f"/v1/jobs/{answer.json()['id']}?wait=60").json()


def deliveries(daemon, job, *states):
    """Returns the job's deliveries when all have one of these states."""
    def reached():
        found = daemon.get(f"/v1/jobs/{job['id']}/deliveries").json()["deliveries"]
        return [found] if all(one["state"] in states for one in found) else None
    return eventually(reached, seconds=60)[0]


def test_a_version_with_everything(daemon, far):
    job = run(daemon, model="prod:models:/glyph@champion", publish=[TO], spec={},
              calibration=daemon.samples)
    assert job["state"] == "succeeded", job
    [one] = deliveries(daemon, job, "delivered")
    assert one["location"] == "models:/glyph-int8/1" and one["attempts"] == 1
    [version] = far.versions["glyph-int8"]
    tags = {tag["key"]: tag["value"] for tag in version["tags"]}
    assert tags["k"] == "v" and tags["qdqd.job"] == job["id"]
    assert tags["qdqd.source_model"] == "models:/glyph/1"
    assert tags["qdqd.version"] and tags["qdqd.spec"].startswith("sha256:")
    assert far.aliases["glyph-int8", "challenger"] == 1
    assert {"sqnr_db", "cosine", "size_ratio"} <= set(far.metrics)
    names = {name.rsplit("/", 1)[1] for name in far.files if "-1/" in name or "/r1/" in name}
    assert {"model.onnx", "MLmodel", "report.html", "report.json", "spec.json"} <= names
    assert daemon.get(f"/v1/jobs/{job['id']}/model").content == \
        far.files["0/models/m-1/model.onnx"]
    assert daemon.get(f"/v1/jobs/{job['id']}").json()["deliveries"] == [one]
    problem(daemon.post(f"/v1/jobs/{job['id']}/deliveries/{one['id']}/retry"), 409, "ended")
    problem(daemon.post(f"/v1/jobs/{job['id']}/deliveries/d-1/retry"), 404, "not_found")


def test_a_missed_gate_publishes_nothing(daemon, far):
    job = run(daemon, publish=[TO], labels={"tell": "yes"},
              spec={**SPEC, "accept": {"min_sqnr_db": 200}})
    assert job["error"]["code"] == "accuracy"
    [one] = deliveries(daemon, job, "delivered")
    assert one["event"] == "job.rejected" and "glyph-int8" not in far.versions
    [(identity, body)] = far.events()
    assert identity == one["id"] and body["type"] == "job.rejected"
    assert body["data"]["id"] == job["id"] and body["data"]["state"] == "failed"


def test_events_by_label(daemon, far):
    silent = run(daemon, labels={"tell": "no"})
    told = run(daemon, labels={"tell": "yes"})
    assert deliveries(daemon, silent, "delivered") == []
    [one] = deliveries(daemon, told, "delivered")
    assert one["remote"] == "told" and one["ref"] is None
    [(_, body)] = far.events()
    assert body["type"] == "job.succeeded" and body["data"]["labels"] == {"tell": "yes"}
    assert body["timestamp"].endswith("Z")


def test_two_secrets_and_chosen_events(daemon, far):
    """While receivers change to a new secret, both fit; only what was asked for is told."""
    succeeded = run(daemon, labels={"tell": "both"})
    missed = run(daemon, labels={"tell": "both"}, spec={**SPEC, "accept": {"min_sqnr_db": 200}})
    failed = run(daemon, labels={"tell": "both"}, spec={})  # it has no calibration data
    assert failed["error"]["code"] == "no_calibration", failed
    [one] = deliveries(daemon, failed, "delivered")
    assert one["event"] == "job.failed" and one["remote"] == "both"
    assert deliveries(daemon, succeeded, "delivered") == []
    assert deliveries(daemon, missed, "delivered") == []
    [(identity, body)] = far.events("/both", (SECRET, OLD_SECRET))
    assert identity == one["id"] and body["data"]["error"]["code"] == "no_calibration"
    with pytest.raises(WebhookVerificationError):
        far.events("/both", ("whsec_" + "A" * 44,))


def test_retried_with_the_same_id(daemon, far):
    left = [2]

    def fail_twice(handler, path):
        left[0] -= path == "/told"
        if path == "/told" and left[0] >= 0:
            handler.answer(b"", 500)
            return True
        return False

    far.fault = fail_twice
    job = run(daemon, labels={"tell": "yes"})
    [one] = deliveries(daemon, job, "delivered")
    assert one["attempts"] == 3 and one["error"] is None
    assert len({identity for identity, _ in far.events()}) == 1 and len(far.events()) == 3


def test_a_delivery_that_fails_is_told_and_retried_by_hand(daemon, far):
    def refuse(handler, path):
        if path.endswith("model-versions/create"):
            handler.answer(b"", 403)
            return True
        return False

    far.fault = refuse
    job = run(daemon, publish=[TO], labels={"tell": "yes"})
    assert job["state"] == "succeeded"
    eventually(lambda: len(far.events()) == 2)
    found = deliveries(daemon, job, "delivered", "failed")
    assert [(one["event"], one["state"]) for one in found] == [
        (None, "failed"), ("job.succeeded", "delivered"), ("delivery.failed", "delivered")]
    assert found[0]["error"]["code"] == "remote_denied"
    assert far.versions.get("glyph-int8") == []
    assert {body["type"] for _, body in far.events()} == {"job.succeeded", "delivery.failed"}
    far.fault = None
    again = daemon.post(f"/v1/jobs/{job['id']}/deliveries/{found[0]['id']}/retry")
    assert again.status_code == 202
    assert deliveries(daemon, job, "delivered")[0]["location"] == "models:/glyph-int8/1"


def test_retry_after(daemon, far):
    times = []

    def later(handler, path):
        times.append(time.monotonic())
        if len(times) == 1:
            handler.answer(b"", 429, Retry_After="2")
            return True
        return False

    far.fault = later
    deliveries(daemon, run(daemon, labels={"tell": "yes"}), "delivered")
    assert times[1] - times[0] >= 2


@pytest.mark.parametrize("victim", ["carrier", "daemon"])
def test_killed_while_it_publishes(daemon, far, victim):
    """Wherever the publication is, one version comes of it."""
    at = {"runs/create": 0, "runs/log-batch": 0, "model-versions/create": 0}

    def hold(handler, path):
        call = next((name for name in at if path.endswith(name)), None)
        if call and not at[call]:
            at[call] = 1
            # The answer is lost: what the registry did, it did.
            if call == "model-versions/create":
                return False
            time.sleep(0.3)
        return False

    far.fault = hold
    job = run(daemon, publish=[TO])
    for call in at:
        eventually(lambda: at[call])
        if victim == "daemon":
            daemon.kill()
            daemon.start()
        else:
            for pid in carriers(daemon):
                os.kill(pid, signal.SIGKILL)
    [one] = deliveries(daemon, job, "delivered")
    assert one["location"] == "models:/glyph-int8/1"
    assert len(far.versions["glyph-int8"]) == 1
    assert far.aliases["glyph-int8", "challenger"] == 1


def test_killed_at_random_moments(daemon, far):
    """tests/servers/test_killed.py does this with a real server, and more often."""
    dice = random.Random(11)
    began = time.monotonic()
    deliveries(daemon, run(daemon, publish=[TO]), "delivered")
    took = time.monotonic() - began
    for i in range(6):
        job = run(daemon, publish=[TO])
        time.sleep(dice.uniform(0, took))
        if i % 2:
            daemon.kill()
            daemon.start()
        else:
            for pid in carriers(daemon):
                os.kill(pid, signal.SIGKILL)
        [one] = deliveries(daemon, job, "delivered")
        assert one["location"] == f"models:/glyph-int8/{2 + i}"
        tags = [tag["value"] for version in far.versions["glyph-int8"]
                for tag in version["tags"] if tag["key"] == "qdqd.job"]
        assert tags.count(job["id"]) == 1 and len(tags) == 2 + i


def test_a_delivery_that_is_dropped_with_its_job(daemon, far):
    far.fault = lambda handler, path: handler.answer(b"", 503) or True
    job = run(daemon, publish=[TO, {**TO, "ref": "models:/other"}])
    eventually(lambda: far.paths())
    answer = daemon.request("DELETE", f"/v1/jobs/{job['id']}")
    assert answer.status_code == 204, answer.text
    [line] = [line for line in daemon.log.read_text().splitlines()
              if "event=deliveries_dropped" in line and job["id"] in line]
    assert " n=2 " in line and "tenant=-" in line and line.endswith("by=request")
    # A job whose deliveries were made leaves no line.
    far.fault = None
    job = run(daemon, publish=[TO])
    deliveries(daemon, job, "delivered")
    assert daemon.request("DELETE", f"/v1/jobs/{job['id']}").status_code == 204
    assert f"deliveries_dropped job={job['id']}" not in daemon.log.read_text()
