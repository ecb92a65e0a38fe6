# SPDX-License-Identifier: Apache-2.0
"""Jobs whose inputs come from a registry."""

import json
import threading

import pytest

import nets
from far import ARTIFACTS, Far
from service import Service, eventually, open_files, problem

MODEL = nets.block_net()
CHAMPION = {"remote": "prod", "ref": "models:/glyph@champion"}
SPEC = {"calibration": {"random_samples": 2}, "evaluate": False}


@pytest.fixture(scope="module")
def far():
    one = Far(MODEL, **{"MLmodel": b"flavors: {}\n", "calibration.npz": nets.samples()})
    yield one
    one.close()


@pytest.fixture(scope="module")
def daemon(far, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fetch")
    secret = folder / "prod.cred"
    secret.write_text("bearer quite-secret\n")
    secret.chmod(0o600)
    (folder / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\n"
        f"credentials = {secret}\ntimeout = 2\n"
        f"[remote small]\nkind = mlflow\nurl = {far.url}\nallow_private = true\nmax_bytes = 99\n"
        f"[remote public]\nkind = mlflow\nurl = {far.url}\n"
        f"[remote theirs]\nkind = mlflow\nurl = {far.url}\ntenants = acme\n")
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    one.start()
    yield one
    one.stop()
    assert "quite-secret" not in one.log.read_text()


@pytest.fixture(autouse=True)
def clean(far):
    far.reset()


def submit(daemon, **members):
    answer = daemon.post("/v1/jobs", json={"spec": SPEC, "fresh": True, **members})
    assert answer.status_code == 202, answer.text
    return answer.json()


def end(daemon, job):
    return daemon.get(f"/v1/jobs/{job['id']}?wait=60").json()


def test_a_model_by_alias(daemon, far):
    job = submit(daemon, model=CHAMPION)
    assert job["model"] is None and job["state"] == "queued"
    assert job["source"]["model"] == {**CHAMPION, "resolved": None, "digest": None}
    ended = end(daemon, job)
    assert ended["state"] == "succeeded", ended
    assert ended["source"]["model"] == {**CHAMPION, "resolved": "models:/glyph/1",
                                        "digest": ended["model"]}
    assert daemon.get(f"/v1/models/{ended['model']}").content == MODEL
    asked = next(headers for _, _, headers, _ in far.seen)
    assert asked["Authorization"] == "bearer quite-secret".replace("bearer", "Bearer")


def test_the_text_form_and_data_beside_the_model(daemon, far):
    job = submit(daemon, model="prod:models:/glyph/1", calibration="prod:models:/glyph/1",
                 spec={"evaluate": False})
    ended = end(daemon, job)
    assert ended["state"] == "succeeded", ended
    data = daemon.get(f"/v1/datasets/{ended['calibration']}")
    assert data.status_code == 200 and data.json()["samples"] > 0
    form = daemon.post("/v1/jobs", files={"model": (None, "prod:models:/glyph/1"),
                                          "spec": (None, json.dumps(SPEC))})
    assert end(daemon, form.json())["model"] == ended["model"]


def test_the_same_is_not_fetched_again(daemon, far):
    first = end(daemon, submit(daemon, model=CHAMPION))
    far.seen.clear()
    second = end(daemon, submit(daemon, model=CHAMPION, fresh=False,
                                spec={**SPEC, "mode": "full"}))
    third = end(daemon, submit(daemon, model="prod:models:/glyph/1", fresh=False,
                               spec={**SPEC, "mode": "full"}))
    assert second["model"] == first["model"] and third["cached_from"]
    assert not any(path.startswith(ARTIFACTS + "/") for path in far.paths())


REFUSED = [
    ({"model": "nowhere:models:/glyph/1"}, 422, "remote_unknown", "/model"),
    ({"model": {"remote": "theirs", "ref": "models:/glyph/1"}}, 403, "remote_denied", "/model"),
    ({"model": "prod:models:/glyph"}, 400, "bad_request", "/model"),
    ({"model": "prod:http://127.0.0.1/x"}, 400, "bad_request", "/model"),
    ({"model": "prod:models:/../../x/1"}, 400, "bad_request", "/model"),
    ({"model": {"remote": "prod"}}, 400, "bad_request", "/model/ref"),
    ({"model": CHAMPION, "calibration": "nowhere:x"}, 422, "remote_unknown", "/calibration"),
    ({"model": CHAMPION, "publish": [{"remote": "no", "ref": "models:/x"}]}, 422,
     "remote_unknown", "/publish/0"),
    ({"model": CHAMPION, "publish": [{"remote": "prod", "ref": "models:/x/1"}]}, 400,
     "bad_request", "/publish/0"),
    ({"model": CHAMPION, "publish": [{"remote": "prod", "ref": "models:/x",
                                      "what": ["report"]}]}, 422, "unsupported", "/publish/0"),
]


@pytest.mark.parametrize("asked, status, code, pointer", REFUSED)
def test_refused_at_once(daemon, far, asked, status, code, pointer):
    answer = daemon.post("/v1/jobs", json=asked)
    found = problem(answer, status, code)
    assert found["errors"][0]["pointer"] == pointer
    assert far.seen == []


@pytest.mark.parametrize("model, code", [
    ("prod:models:/glyph/7", "remote_not_found"), ("prod:models:/glyph@none", "remote_not_found"),
    ("small:models:/glyph/1", "remote_too_large"), ("public:models:/glyph/1", "remote_denied")])
def test_failed_after_the_answer(daemon, model, code):
    ended = end(daemon, submit(daemon, model=model))
    assert (ended["state"], ended["error"]["code"]) == ("failed", code)
    assert ended["model"] is None


def test_no_model(daemon, far):
    before = far.files["0/models/m-0/model.onnx"]
    far.files["0/models/m-0/model.onnx"] = b"not a model"
    far.versions["glyph"].append({"name": "glyph", "version": "2", "source": "models:/m-0",
                                  "tags": []})
    far.versions["glyph"][1]["source"] = "models:/m-2"
    far.files["0/models/m-2/model.onnx"] = b"not a model"
    far.files["0/models/m-0/model.onnx"] = before
    ended = end(daemon, submit(daemon, model="prod:models:/glyph/2"))
    assert ended["error"]["code"] == "invalid_model"


def test_a_remote_that_fails_is_asked_again(daemon, far):
    left = [2]

    def fail_twice(handler, _):
        left[0] -= 1
        if left[0] >= 0:
            handler.answer(b"down", 503)
        return left[0] >= 0

    far.fault = fail_twice
    ended = end(daemon, submit(daemon, model=CHAMPION))
    assert ended["state"] == "succeeded" and left[0] < 0


def test_cancelled_while_it_is_fetched(daemon, far):
    go_on = threading.Event()

    def hold(handler, _):
        go_on.wait(60)
        return False

    far.fault = hold
    job = submit(daemon, model=CHAMPION)
    eventually(lambda: far.seen)
    shown = daemon.get(f"/v1/jobs/{job['id']}").json()
    assert shown["progress"]["stage"] == "fetch" and shown["queue"] is None
    assert daemon.post(f"/v1/jobs/{job['id']}/cancel").status_code == 202
    assert end(daemon, job)["state"] == "cancelled"
    go_on.set()


def test_killed_while_it_fetches(daemon, far):
    held, go_on = [], threading.Event()

    def hold(handler, _):
        if not held:
            held.append(1)
            go_on.wait(60)
        return False

    far.fault = hold
    job = submit(daemon, model=CHAMPION)
    eventually(lambda: held)
    daemon.kill()
    go_on.set()
    daemon.start()
    assert end(daemon, job)["state"] == "succeeded"


def connections_to(port):
    """Returns the sockets of connections to a port of the loopback, as /proc names them."""
    found = set()
    with open("/proc/net/tcp") as table:
        for row in list(table)[1:]:
            words = row.split()
            if int(words[2].split(":")[1], 16) == port and words[3] == "01":
                found.add(f"socket:[{words[9]}]")
    return found


def test_another_process_than_the_daemon_connects(daemon, far):
    go_on = threading.Event()

    def hold(handler, _):
        go_on.wait(60)
        return False

    far.fault = hold
    job = submit(daemon, model=CHAMPION)
    there = eventually(lambda: connections_to(far.server_port))
    assert not there & set(open_files(daemon.process.pid))
    far.fault = None
    go_on.set()
    assert end(daemon, job)["state"] == "succeeded"
