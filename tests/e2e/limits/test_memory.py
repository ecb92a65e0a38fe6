# SPDX-License-Identifier: Apache-2.0
"""The daemon's memory follows its limits and not what clients send or ask for."""

import json
import sqlite3
import threading

import pytest

import access
import nets
from far import Far
from service import DATA, PeakMemory, Service, eventually, problem

pytestmark = pytest.mark.long
MODEL = DATA / "glyph_se.onnx"
MIB = 1 << 10  # in KiB
MOST = 256 * MIB


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """One daemon whose jobs never begin to calibrate."""
    service = Service(tmp_path_factory.mktemp("memory"), QDQD_TEST_WORKER_PAUSE_MS="600000",
                      QDQD_QUEUE_MAX="2000", QDQD_WORKERS_DRAIN_TIMEOUT="0")
    service.start()
    yield service
    service.stop()


def at_once(n, fn):
    """Runs fn(i) in n threads and returns the answers."""
    answers = [None] * n

    def run(i):
        answers[i] = fn(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def long_labels(one, jobs, size):
    """Labels as an older version stored them, whatever their size."""
    labels = json.dumps({"k": "v" * size})
    with sqlite3.connect(one.state / "qdqd.sqlite3") as database:
        for job in jobs:
            database.execute("UPDATE jobs SET labels = ? WHERE id = ?", (labels, job))
    database.close()
    return json.loads(labels)


def test_lists_of_jobs_with_long_texts(one):
    model = one.upload("models", MODEL)
    jobs = [one.submit(model=model, labels={"n": str(i)}, fresh=True) for i in range(20)]
    labels = long_labels(one, jobs[:15], 1 << 20)
    with PeakMemory(lambda: [one.process.pid]) as memory:
        lists = at_once(8, lambda i: one.get("/v1/jobs?limit=500").json())
    assert memory.peak < MOST
    for found in lists:
        assert [job["id"] for job in found["jobs"]] == jobs[::-1]
        assert found["next_cursor"] is None
    for job in lists[0]["jobs"]:
        is_long = job["id"] in jobs[:15]
        assert job["omitted"] == (["labels"] if is_long else [])
        assert (job["labels"] is None) == is_long
    with PeakMemory(lambda: [one.process.pid]) as memory:
        whole = at_once(12, lambda i: one.get(f"/v1/jobs/{jobs[i]}"))
    assert memory.peak < MOST
    assert {answer.status_code for answer in whole} <= {200, 503}
    assert whole[0].status_code == 503 or whole[0].json()["labels"] == labels
    assert one.get(f"/v1/jobs/{jobs[0]}").json()["labels"] == labels


def test_pages_of_a_list_that_is_streamed(one):
    """The same jobs in the same order, whatever the size of the pages."""
    model = one.upload("models", MODEL)
    sent = [one.submit(model=model, fresh=True) for _ in range(20)]
    whole = [job["id"] for job in one.get("/v1/jobs?limit=500").json()["jobs"]]
    assert set(sent) <= set(whole)
    for limit in (1, 7, 8, 9, 16, 17):
        seen, cursor = [], ""
        while cursor is not None:
            page = one.get(f"/v1/jobs?limit={limit}{cursor}").json()
            assert len(page["jobs"]) <= limit
            seen += [job["id"] for job in page["jobs"]]
            cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
        assert seen == whole, limit
    head = one.request("HEAD", "/v1/jobs?limit=500")
    assert head.status_code == 200 and not head.content


@pytest.mark.parametrize("text", ["[" + "{}," * 340_000 + "{}]", '"' + "x" * 1_000_000 + '"'],
                         ids=["objects", "string"])
def test_large_bodies_at_once(one, text):
    """Those that find no room are answered 503, and may be sent again."""
    body = '{"model": "sha256:' + 64 * "0" + '", "spec": {"cases": ' + text + "}}"
    assert len(body) < 1 << 20

    def send(i):
        return one.http.post(one.url + "/v1/jobs", data=body, timeout=100,
                             headers={"Content-Type": "application/json"})

    with PeakMemory(lambda: [one.process.pid]) as memory:
        answers = at_once(24, send)
    assert memory.peak < MOST
    for answer in answers:
        assert answer.status_code in (404, 422, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["code"] == "busy" and answer.headers["Retry-After"]
    assert any(answer.status_code != 503 for answer in answers)
    assert one.get("/healthz").status_code == 200


@pytest.mark.parametrize("labels", [
    {str(i): "" for i in range(65)}, {"k": "v" * 4096}, {"k" * 5000: ""}],
    ids=["too many", "a long value", "a long key"])
def test_labels_have_limits(one, labels):
    model = one.upload("models", MODEL)
    document = problem(one.post("/v1/jobs", json={"model": model, "labels": labels}),
                       422, "limit_exceeded")
    assert document["errors"][0]["pointer"] == "/labels"
    form = {"model": (None, model), "labels": (None, json.dumps(labels))}
    problem(one.post("/v1/jobs", files=form), 422, "limit_exceeded")


def test_labels_within_the_limits(one):
    model = one.upload("models", MODEL)
    labels = {f"{i:02}": "v" * 50 for i in range(64)}
    job = one.submit(model=model, labels=labels)
    assert one.job(job)["labels"] == labels


def test_jobs_that_join_another_count_in_the_queue(held, service):
    own = service(queue_max=3, **held)
    own.running(own.submit_glyphs())
    model = own.upload("models", MODEL)
    jobs = [own.submit(model=model) for _ in range(3)]
    assert own.job(jobs[1])["queue"]["waiting_for"] == jobs[0]
    problem(own.post("/v1/jobs", json={"model": model}), 429, "queue_full")


def test_many_large_reports_are_published(tmp_path):
    """A page is made of each report, as for a request."""
    far = Far(b"none")
    (tmp_path / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\n")
    daemon = Service(tmp_path)
    daemon.arguments = ["--config", tmp_path / "qdqd.conf"]
    daemon.start()
    go_on = threading.Event()
    try:
        tenants = [access.tenant(daemon, name) for name in "abcde"]
        net = nets.long_net(10_000)
        spec = {"mode": "partial", "layers": [{"match": "product/1??"}], "evaluate": False,
                "calibration": {"ranges": [{"name": f"r{i}", "min": -3, "max": 3}
                                           for i in range(99, 199)]}}
        places = [{"remote": "prod", "ref": f"models:/out{i}"} for i in range(3)]
        far.fault = lambda handler, path: not go_on.is_set() and (handler.answer({}, 503) or True)
        jobs = [(one, one.submit(model=one.upload("models", net), spec=spec, publish=places))
                for one in tenants]
        for one, job in jobs:
            one.succeeded(job)
        # Not held against the contract, which takes seconds for so many layers.
        size = len(one.http.get(f"{one.url}/v1/jobs/{job}/report").content)
        assert size > 1 << 20
        with PeakMemory(lambda: [daemon.process.pid]) as memory:
            go_on.set()
            for one, job in jobs:
                for delivery in one.get(f"/v1/jobs/{job}/deliveries").json()["deliveries"]:
                    one.post(f"/v1/jobs/{job}/deliveries/{delivery['id']}/retry")
            for one, job in jobs:
                eventually(lambda: all(delivery["state"] == "delivered" for delivery in one.get(
                    f"/v1/jobs/{job}/deliveries").json()["deliveries"]), seconds=120)
        print(f"a report has {size >> 10} KiB, the daemon {memory.peak} KiB")
        assert memory.peak < MOST // 2
    finally:
        daemon.stop()
        far.close()
