# SPDX-License-Identifier: Apache-2.0
"""Messages of registries, and polls, become jobs by the operator's rule."""

import base64
import hashlib
import hmac
import json
import time
from datetime import datetime, timezone

import pytest
from standardwebhooks import Webhook

import access
import nets
from far import SECRET, Far
from service import Service, eventually, problem

MODEL = nets.block_net()
RAW = "the secret of MLflow"
OTHER = "whsec_" + base64.b64encode(b"another secret, as long as that").decode()


@pytest.fixture(scope="module")
def far():
    one = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    yield one
    one.close()


@pytest.fixture(scope="module")
def daemon(far, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hooks")
    files = {"standard": SECRET + "\n", "raw": RAW + "\n",
             "spec.json": json.dumps({"calibration": {"random_samples": 2}})}
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    rule = (f"remote = prod\nspec = {folder}/spec.json\n"
            "publish = models:/{name}-int8@challenger\n")
    (folder / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\ntimeout = 2\n"
        f"[hook glyph]\nsecret = {folder}/standard\nmodels = glyph*, other\n{rule}"
        f"[hook flow]\nsignature = mlflow\nsecret = {folder}/raw\nmodels = glyph\n{rule}"
        f"[hook theirs]\nsecret = {folder}/standard\nmodels = *\ntenant = acme\n{rule}"
        f"[hook lacking]\nsecret = {folder}/standard\nmodels = *\ncalibration = sha256:{'0' * 64}\n"
        f"{rule}"
        f"[hook polled]\nmodels = polled*\npoll = 1\n{rule}")
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    one.start()
    yield one
    one.stop()
    log = one.log.read_text()
    assert SECRET not in log and RAW not in log and "signature" not in log


@pytest.fixture(autouse=True)
def clean(far):
    far.reset()


def news(name="glyph", version="1", **tags):
    return json.dumps({"type": "model_version.created", "timestamp": "2026-03-01T12:00:00Z",
                       "data": {"name": name, "version": version, "tags": tags}})


def standard(identity, body, late=0, secret=SECRET):
    """Signs as the published package does."""
    now = datetime.fromtimestamp(int(time.time()) - late, timezone.utc)
    return {"webhook-id": identity, "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(secret).sign(identity, now, body)}


def mlflow(identity, body, late=0, secret=RAW):
    """Signs as MLflow's server does (mlflow/webhooks/delivery.py)."""
    stamp = str(int(time.time()) - late)
    made = hmac.new(secret.encode(), f"{identity}.{stamp}.{body}".encode(), hashlib.sha256)
    return {"X-MLflow-Delivery-Id": identity, "X-MLflow-Timestamp": stamp,
            "X-MLflow-Signature": "v1," + base64.b64encode(made.digest()).decode(),
            "Content-Type": "application/json"}


def post_event(daemon, hook, headers, body):
    return daemon.post(f"/v1/hooks/{hook}", data=body.encode(), headers=headers)


def jobs(daemon, tenant=""):
    return daemon.get(f"/v1/jobs?limit=500&tenant={tenant}").json()["jobs"]


def delivered(daemon, job, tenant=""):
    def reached():
        shown = daemon.get(f"/v1/jobs/{job}", headers={"Qdqd-Tenant": tenant}).json()
        assert shown["state"] != "failed", shown
        return shown if [one["state"] for one in shown["deliveries"]] == ["delivered"] else None
    return eventually(reached, seconds=60)


def test_a_message_becomes_a_version(daemon, far):
    body = news()
    answer = post_event(daemon, "glyph", standard("msg_1", body), body)
    assert answer.status_code == 202, answer.text
    job = delivered(daemon, answer.json()["id"])
    assert job["source"]["model"]["resolved"] == "models:/glyph/1"
    assert job["labels"] == {"hook": "glyph"}
    assert job["spec"] == {"calibration": {"random_samples": 2}}
    assert job["deliveries"][0]["location"] == "models:/glyph-int8/1"
    assert far.aliases["glyph-int8", "challenger"] == 1
    # Publishing makes the registry tell of it, and that is ignored.
    ours = {tag["key"]: tag["value"] for tag in far.versions["glyph-int8"][0]["tags"]}
    body = news("glyph-int8", "1", **ours)
    answer = post_event(daemon, "glyph", standard("msg_2", body), body)
    assert (answer.status_code, answer.json()) == (200, {"status": "ignored"})


def test_the_same_id_makes_one_job(daemon):
    body = news("glyph", 1)
    headers = standard("msg_again", body)
    first = post_event(daemon, "glyph", headers, body)
    before = len(jobs(daemon))
    delivered(daemon, first.json()["id"])
    again = post_event(daemon, "glyph", headers, body)
    later = post_event(daemon, "glyph", standard("msg_again", body, late=-30), body)
    assert {one.json()["id"] for one in (first, again, later)} == {first.json()["id"]}
    assert len(jobs(daemon)) == before
    other = news("glyph", 2)
    problem(post_event(daemon, "glyph", standard("msg_again", other), other), 422,
            "idempotency_mismatch")


def test_the_form_of_mlflow(daemon, far):
    body = json.dumps({"entity": "model_version", "action": "created", "data": {
        "name": "glyph", "version": "1", "source": "models:/m-0", "run_id": None, "tags": {},
        "description": None}})
    answer = post_event(daemon, "flow", mlflow("d-1", body), body)
    assert answer.status_code == 202, answer.text
    assert delivered(daemon, answer.json()["id"])["labels"] == {"hook": "flow"}
    tags = [{"key": "qdqd.job", "value": "j"}]
    ours = json.dumps({"entity": "model_version", "action": "created",
                       "data": {"name": "glyph", "version": "1", "tags": tags}})
    assert post_event(daemon, "flow", mlflow("d-2", ours), ours).json() == {"status": "ignored"}


IGNORED = [news("somebody's"), news("Glyph"), news(" glyph"), json.dumps({"type": "ping"}), "{}",
           "[]", json.dumps({"entity": "model_version", "action": "created"}),
           json.dumps({"entity": "model_version_tag", "action": "set",
                       "data": {"name": "glyph", "version": "1"}})]


@pytest.mark.parametrize("body", IGNORED)
def test_what_the_rule_does_not_take_is_ignored(daemon, far, body):
    before = len(jobs(daemon))
    answer = post_event(daemon, "glyph", standard(f"msg_i{IGNORED.index(body)}", body), body)
    assert (answer.status_code, answer.json()) == (200, {"status": "ignored"}), answer.text
    assert len(jobs(daemon)) == before
    assert {path.rsplit("/", 2)[1] for path in far.paths()} <= {"model-versions"}  # of polls


def forged():
    body, other = news("glyph", "1"), news("glyph", "9")
    good = standard("msg_f", body)
    yield "another secret", "glyph", standard("msg_f", body, secret=OTHER), body
    yield "late", "glyph", standard("msg_f", body, late=301), body
    yield "early", "glyph", standard("msg_f", body, late=-900), body
    yield "another body", "glyph", good, other
    yield "another id", "glyph", {**good, "webhook-id": "msg_g"}, body
    yield "replayed later", "glyph", {**standard("msg_f", body, late=999),
                                      "webhook-timestamp": good["webhook-timestamp"]}, body
    yield "another hook's", "flow", good, body
    yield "MLflow's form", "glyph", mlflow("msg_f", body, secret=SECRET), body
    yield "no such hook", "nobody", good, body
    yield "no name of a hook", "..", good, body
    yield "a remote's name", "prod", good, body
    yield "no signature", "glyph", {}, body
    yield "an empty one", "glyph", {**good, "webhook-signature": ""}, body
    yield "of another version", "glyph", {
        **good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,")}, body
    yield "nothing", "glyph", good, ""
    yield "a hook without a secret", "polled", good, body


@pytest.mark.parametrize("name", [one[0] for one in forged()])
def test_a_forged_message_leaves_no_trace_but_a_metric(daemon, far, name):
    # The times of the messages count from now.
    [(hook, headers, body)] = [one[1:] for one in forged() if one[0] == name]

    def refused():
        text = daemon.get("/metrics").text
        return int(text.split('qdqd_hook_messages_total{how="refused"} ')[1].split("\n")[0])

    before, log, count = jobs(daemon), daemon.log.stat().st_size, refused()
    answer = post_event(daemon, hook.replace("..", "%2e%2e"), headers, body)
    first = problem(answer, 401, "signature_invalid")
    assert answer.headers["WWW-Authenticate"] == "Signature"
    assert first["detail"] == problem(post_event(daemon, "nobody", {}, "{}"), 401,
                                      "signature_invalid")["detail"]
    assert refused() == count + 2
    assert [one["id"] for one in jobs(daemon)] == [one["id"] for one in before]
    told = daemon.log.read_bytes()[log:].decode()
    assert not [line for line in told.splitlines() if "hooks" in line or "hook=glyph" in line]
    assert far.versions.get("glyph-int8") is None


def test_a_rule_whose_data_is_not_stored(daemon):
    body = news()
    problem(post_event(daemon, "lacking", standard("msg_1", body), body), 404, "not_found")


def test_a_message_that_cannot_be_read(daemon):
    problem(post_event(daemon, "glyph", standard("msg_b", "{"), "{"), 400, "invalid_json")
    for i, name in enumerate(["glyph/../x", "glyph:1", "glyph%2f"]):
        body = news(name)
        problem(post_event(daemon, "glyph", standard(f"msg_b{i}", body), body), 400, "bad_request")
    body = " " * (256 << 10) + news()
    problem(post_event(daemon, "glyph", standard("msg_l", body), body), 413, "too_large")


def test_the_job_is_the_tenants(daemon):
    body = news()
    answer = post_event(daemon, "theirs", standard("msg_t", body), body)
    assert answer.status_code == 202
    delivered(daemon, answer.json()["id"], "acme")
    assert daemon.get(f"/v1/jobs/{answer.json()['id']}").status_code == 404


def test_a_message_needs_no_token(daemon):
    """Where there are tokens, the signature is enough, and a token is not."""
    token = access.add(daemon.state, "anybody", "--scope", "submit")
    try:
        body = news()
        problem(daemon.get("/v1/jobs"), 401, "unauthorized")
        good = standard("msg_without", body)
        assert post_event(daemon, "glyph", good, body).status_code == 202
        forged = {"Authorization": f"Bearer {token}"}
        problem(post_event(daemon, "glyph", forged, body), 401, "signature_invalid")
    finally:
        (daemon.state / "tokens").unlink()
        daemon.stop()
        daemon.start()


def test_a_poll_finds_new_versions(daemon, far):
    def version(name, number, **tags):
        far.versions.setdefault(name, []).append({
            "name": name, "version": str(number), "source": "models:/m-0", "status": "READY",
            "creation_timestamp": int(time.time() * 1000),
            "tags": [{"key": k, "value": v} for k, v in tags.items()]})

    def resolved():
        return sorted(one["source"]["model"]["ref"] for one in jobs(daemon)
                      if one["labels"] == {"hook": "polled"})

    for number in (1, 2):
        version("polled", number)
    version("polled-int8", 1, **{"qdqd.job": "j"})
    version("somebody", 1)
    # The newest version of a model that was never seen counts, then each.
    eventually(lambda: resolved() == ["models:/polled/2"])
    version("polled", 3)
    version("polled-too", 1)
    eventually(lambda: resolved() == ["models:/polled-too/1", "models:/polled/2",
                                      "models:/polled/3"])
    for job in jobs(daemon):
        if job["labels"] == {"hook": "polled"}:
            delivered(daemon, job["id"])
    polls = len([path for path in far.paths() if path.endswith("model-versions/search")])
    eventually(lambda: len([path for path in far.paths()
                            if path.endswith("model-versions/search")]) > polls + 1)
    assert len(resolved()) == 3
    daemon.stop()
    daemon.start()
    time.sleep(2)
    assert len(resolved()) == 3


def test_a_poll_of_a_remote_that_is_down(daemon, far):
    far.fault = lambda handler, path: handler.answer(b"", 503) or True
    failed = 'qdqd_hook_polls_total{how="failed"} '
    eventually(lambda: int(daemon.get("/metrics").text.split(failed)[1].split("\n")[0]) >= 2)
    assert "hook_poll_failed" in daemon.log.read_text()
    far.fault = None
    answered = 'qdqd_hook_polls_total{how="answered"} '
    before = daemon.get("/metrics").text.split(answered)[1].split("\n")[0]
    eventually(lambda: daemon.get("/metrics").text.split(answered)[1].split("\n")[0] != before)


def add_version(far, name, number=1, later=0):
    """Registers a version, whose clock is some seconds in the future."""
    far.versions.setdefault(name, []).append({
        "name": name, "version": str(number), "source": "models:/m-0", "status": "READY",
        "creation_timestamp": int((time.time() + later) * 1000), "tags": []})


def refs(daemon, hook):
    return {one["source"]["model"]["ref"] for one in jobs(daemon) if one["labels"] == {"hook": hook}}


def polls(far):
    return len([path for path in far.paths() if path.endswith("model-versions/search")])


def test_a_name_that_is_no_ref_stops_no_other_model(daemon, far):
    for name in ("polled%25", "polled-%", "polled-behind"):
        add_version(far, name)
    eventually(lambda: "models:/polled-behind/1" in refs(daemon, "polled"))
    add_version(far, "polled-much-later")
    eventually(lambda: "models:/polled-much-later/1" in refs(daemon, "polled"))
    asked = polls(far)
    eventually(lambda: polls(far) > asked + 1)
    lines = [line for line in daemon.log.read_text().splitlines() if "version_left_out" in line]
    assert len(lines) == 2 and "polled%25" in lines[0] and "polled-%" in lines[1]
    assert all("code=bad_request" in line for line in lines)


def test_a_version_of_the_future_hides_no_later_one(daemon, far):
    add_version(far, "polled-future", later=7 * 86400)
    eventually(lambda: "models:/polled-future/1" in refs(daemon, "polled"))
    asked = polls(far)
    eventually(lambda: polls(far) > asked + 1)
    for number in (1, 2):
        add_version(far, "polled-now", number)
    add_version(far, "polled-future", 2)
    eventually(lambda: {"models:/polled-now/2", "models:/polled-future/2"} <= refs(daemon, "polled"))


@pytest.mark.parametrize("told", [True, False])
def test_a_version_for_which_the_queue_was_full(far, tmp_path, told):
    """Whether a message told of it, which was answered 429, or a poll found it."""
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\n"
        f"[hook both]\nremote = prod\nmodels = both*\npoll = 1\nsecret = {tmp_path}/secret\n"
        "publish = models:/{name}-int8\n")
    one = Service(tmp_path, QDQD_QUEUE_MAX="1", QDQD_TEST_WORKER_PAUSE_MS="600000",
                  QDQD_WORKERS_DRAIN_TIMEOUT="0")
    one.arguments = ["--config", tmp_path / "qdqd.conf"]
    one.start()
    try:
        spec = {"calibration": {"random_samples": 2}}
        held = [one.submit(model=one.upload("models", MODEL), spec=spec)]
        one.running(held[0])
        held.append(one.submit(model=one.upload("models", MODEL), spec=spec, fresh=True))
        add_version(far, "both")
        if told:
            body = news("both")
            answer = post_event(one, "both", standard("msg_full", body), body)
            assert answer.status_code == 429, answer.text
        eventually(lambda: "hook_poll_failed" in one.log.read_text())
        assert not refs(one, "both")
        one.post(f"/v1/jobs/{held[1]}/cancel")
        eventually(lambda: refs(one, "both") == {"models:/both/1"})
        if told:  # the message comes again, and finds that job
            again = post_event(one, "both", standard("msg_full", body, late=-1), body)
            assert again.status_code == 202, again.text
        asked = polls(far)
        eventually(lambda: polls(far) > asked + 1)
        assert len([job for job in jobs(one) if job["labels"] == {"hook": "both"}]) == 1
    finally:
        one.stop()
