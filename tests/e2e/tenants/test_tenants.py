# SPDX-License-Identifier: Apache-2.0
"""Tenants share a daemon and learn nothing about each other: no tenant can see, count or
deduce another's files, requests, answers or waiting jobs."""

import hashlib
import re
import signal
import sqlite3

import pytest

import access
import contract
import nets
from service import eventually, problem
from test_backup import backup, restore

pytestmark = pytest.mark.long
MODEL = nets.block_net()
DATA = nets.samples()


@pytest.fixture
def two(daemon):
    return access.tenant(daemon, "a"), access.tenant(daemon, "b")


def test_a_digest_is_not_the_data(two):
    a, b = two
    model, data = a.upload("models", MODEL), a.upload("datasets", DATA)
    for path in (f"/v1/models/{model}", f"/v1/models/{model}/info", f"/v1/datasets/{data}"):
        assert a.get(path).status_code == 200
        assert a.request("HEAD", path).status_code == 200
        problem(b.get(path), 404, "not_found")
        assert b.request("HEAD", path).status_code == 404
    for path in (f"/v1/models/{model}", f"/v1/datasets/{data}"):
        problem(b.request("DELETE", path), 404, "not_found")
    problem(b.post("/v1/jobs", json={"model": model, "calibration": data}), 404, "not_found")
    problem(b.post("/v1/plan", json={"model": model}), 404, "not_found")
    assert a.get(f"/v1/models/{model}").content == MODEL


def test_a_blob_is_its_own_too(two):
    a, b = two
    path = "/v1/blobs/sha256:" + hashlib.sha256(MODEL).hexdigest()
    for one in two:
        problem(one.get(path), 404, "not_found")
        assert one.request("PUT", path, data=MODEL).status_code == 201
        assert one.request("PUT", path, data=MODEL).status_code == 200
        assert one.get(path).content == MODEL
    assert a.request("DELETE", path).status_code == 204
    problem(a.get(path), 404, "not_found")
    assert b.get(path).content == MODEL
    made = {"files": [{"path": "model.onnx", "digest": path.removeprefix("/v1/blobs/")}]}
    problem(a.post("/v1/models", json=made), 404, "not_found")


def test_equal_bytes_are_new_to_the_second(two):
    for kind, body in (("models", MODEL), ("datasets", DATA)):
        for one in two:
            headers = {"Content-Type": "application/octet-stream"}
            assert one.post(f"/v1/{kind}", data=body, headers=headers).status_code == 201
            assert one.post(f"/v1/{kind}", data=body, headers=headers).status_code == 200


def test_what_one_deletes_the_other_keeps(two):
    """Equal bytes of two tenants are deleted independently."""
    a, b = two
    model = a.upload("models", MODEL)
    assert b.upload("models", MODEL) == model
    assert a.request("DELETE", f"/v1/models/{model}").status_code == 204
    assert b.get(f"/v1/models/{model}").content == MODEL


def job_of(one, **members):
    return one.submit(model=one.upload("models", MODEL), calibration=one.upload("datasets", DATA),
                      **members)


def test_jobs_are_nobody_elses(two):
    a, b = two
    job = job_of(a, labels={"for": "a"})
    a.succeeded(job)
    for path in ("", "/model", "/report", "/spec", "/events"):
        problem(b.get(f"/v1/jobs/{job}{path}"), 404, "not_found")
    problem(b.post(f"/v1/jobs/{job}/cancel"), 404, "not_found")
    problem(b.request("DELETE", f"/v1/jobs/{job}"), 404, "not_found")
    assert b.get("/v1/jobs").json() == {"jobs": [], "next_cursor": None}
    assert b.get("/v1/jobs?label=for:a").json()["jobs"] == []
    assert [j["id"] for j in a.get("/v1/jobs").json()["jobs"]] == [job]
    result = a.job(job)["result"]["model"]
    assert a.get(f"/v1/models/{result}").status_code == 200
    problem(b.get(f"/v1/models/{result}"), 404, "not_found")


def test_every_route_of_the_contract_keeps_an_id_to_its_tenant(two):
    """Each route with the id of something that another tenant has is as if there were no such id."""
    a, b = two
    job = job_of(a)
    a.succeeded(job)
    result = a.job(job)["result"]["model"]
    ids = {"jobs": [job], "models": [result, a.upload("models", MODEL)],
           "datasets": [a.upload("datasets", DATA)], "blobs": [a.upload("models", MODEL)]}
    own = b.submit(model=b.upload("models", MODEL), spec={"calibration": {"random_samples": 2}})
    b.succeeded(own)
    assert b.request("DELETE", f"/v1/models/{ids['models'][1]}").status_code == 204
    asked = 0
    for path, methods in contract.document()["paths"].items():
        if "{id}" not in path:
            continue
        for method in {"get", "head", "post", "put", "delete", "patch"} & set(methods):
            if (path, method) == ("/v1/blobs/{id}", "put"):
                continue  # it stores bytes of the tenant's own
            for id in ids[path.split("/")[2]]:
                place = path.replace("{id}", id).replace("{delivery}", "d" + "0" * 32)
                query = f"?with={own}" if path.endswith("/compare") else ""
                problem(b.request(method.upper(), place + query), 404, "not_found")
                asked += 1
    assert asked >= 18
    # The same ids as members and parameters of requests of its own.
    problem(b.get(f"/v1/jobs/{own}/compare?with={job}"), 404, "not_found")
    for body in ({"model": result}, {"model": result, "calibration": ids["datasets"][0]}):
        problem(b.post("/v1/jobs", json=body), 404, "not_found")
    problem(b.post("/v1/plan", json={"model": result}), 404, "not_found")
    assert a.job(job)["state"] == "succeeded"
    assert a.get(f"/v1/models/{result}").status_code == 200


def test_nothing_is_answered_by_what_another_asked(two):
    """The second tenant's equal job runs, and calibrates, as if it were the first."""
    a, b = two
    first = a.succeeded(job_of(a))
    assert a.succeeded(job_of(a))["cached_from"] == first["id"]
    other = b.succeeded(job_of(b))
    assert other["cached_from"] is None and other["started_at"]
    kept = lambda one, job: one.report(job["id"])["calibration"]  # noqa: E731
    assert kept(b, other) == kept(a, first)
    assert b.result(other["id"]) == a.result(first["id"])


def test_a_job_on_its_way_is_not_joined(held, service):
    daemon = service(**held)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    first = job_of(a)
    a.running(first)
    joined, other = job_of(a), job_of(b)
    assert a.job(joined)["queue"]["waiting_for"] == first
    found = b.job(other)
    assert found["queue"] == {"position": 1, "waiting_for": None}
    a.post(f"/v1/jobs/{first}/cancel")
    a.post(f"/v1/jobs/{joined}/cancel")
    b.running(other)
    b.post(f"/v1/jobs/{other}/cancel")


def test_an_idempotency_key_is_ones_own(two):
    a, b = two
    ids = []
    for one, priority in ((a, 1), (b, 2), (a, 1)):
        body = {"model": one.upload("models", MODEL), "calibration": one.upload("datasets", DATA),
                "priority": priority}
        answer = one.post("/v1/jobs", json=body, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 202, answer.text
        ids.append(answer.json()["id"])
    assert ids[0] == ids[2] != ids[1]


def test_places_and_pages_count_ones_own(held, service):
    daemon = service(**held)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    first = job_of(a)
    a.running(first)
    others = [job_of(a, fresh=True) for _ in range(5)]
    mine = [job_of(b, fresh=True) for _ in range(2)]
    assert [b.job(j)["queue"]["position"] for j in mine] == [1, 2]
    assert [a.job(j)["queue"]["position"] for j in others] == [1, 2, 3, 4, 5]
    page = b.get("/v1/jobs?limit=1").json()
    assert page["next_cursor"] == "2"  # the second of two, not the eighth of eight
    for one, jobs in ((a, [first, *others]), (b, mine)):
        for job in jobs:
            one.post(f"/v1/jobs/{job}/cancel")


def test_the_lanes_serve_one_after_the_other(slow, service):
    """A tenant with a long queue does not make another wait for its end."""
    daemon = service(**slow)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    many = [job_of(a, fresh=True) for _ in range(6)]
    few = [job_of(b, fresh=True, priority=-5) for _ in range(2)]
    for job in few:
        b.succeeded(job)
    waiting = [a.job(j)["state"] for j in many].count("queued")
    assert waiting >= 2, waiting
    for job in many:
        a.post(f"/v1/jobs/{job}/cancel")


def test_long_jobs_have_no_more_of_a_lane_than_short_ones(service):
    """Behind one long job, all short ones of another tenant run before the next long one."""
    daemon = service(workers_count=1)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    long = {"calibration": {"random_samples": 15_000, "dims": {"n": 1}}}
    model = a.upload("models", MODEL)
    first, second = (a.submit(model=model, spec=long, fresh=True) for _ in range(2))
    few = [job_of(b, fresh=True) for _ in range(6)]
    for job in few:
        b.succeeded(job)
    last = max(b.job(job)["started_at"] for job in few)
    assert a.job(first)["state"] == "succeeded"
    assert a.job(second)["state"] == "queued" or a.job(second)["started_at"] >= last
    a.post(f"/v1/jobs/{second}/cancel")


def test_no_process_works_for_two(two):
    """No worker process works for two tenants."""
    a, b = two
    a.succeeded(job_of(a))
    before = set(a.workers())
    b.succeeded(job_of(b))
    assert not before & set(b.workers())


# --- limits -------------------------------------------------------------------------------


def test_as_many_wait_as_a_tenant_may_have(held, service):
    daemon = service(**held, tenants_queue=2, queue_max=100)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    jobs = [job_of(a)]
    a.running(jobs[0])
    jobs += [job_of(a, fresh=True) for _ in range(2)]
    answer = a.post("/v1/jobs", json={"model": a.upload("models", MODEL), "fresh": True})
    problem(answer, 429, "queue_full")
    assert answer.headers["Retry-After"]
    other = job_of(b)
    for one, some in ((a, jobs), (b, [other])):
        for job in some:
            one.post(f"/v1/jobs/{job}/cancel")


def test_as_many_bytes_as_a_tenant_may_have(service):
    daemon = service(tenants_max_bytes=len(MODEL) + len(DATA) // 2)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    a.upload("models", MODEL)
    answer = a.post("/v1/models", data=bytes(2 * len(MODEL) + len(DATA)))
    problem(answer, 507, "disk_full")
    b.upload("models", MODEL)
    assert daemon.get("/healthz").status_code == 200


def test_the_rows_of_jobs_count(held, service):
    """Specs and labels are stored in the database, and count as stored bytes."""
    daemon = service(**held, tenants_max_bytes=len(MODEL) + 200_000)
    a, b = access.tenant(daemon, "a"), access.tenant(daemon, "b")
    root = administrator(daemon)

    def stored():
        (one,) = [x for x in root.get("/v1/tenants").json()["tenants"] if x["tenant"] == "a"]
        return one["bytes"]

    model = a.upload("models", MODEL)
    spec = {"cases": [{"name": "c", "lua": "return {}" + " " * 60_000}]}
    body = {"model": model, "spec": spec, "fresh": True}
    before = stored()
    jobs = [a.post("/v1/jobs", json=body).json()["id"]]
    assert 60_000 < stored() - before < 200_000
    while (answer := a.post("/v1/jobs", json=body)).status_code == 202:
        jobs.append(answer.json()["id"])
        assert len(jobs) < 4
    problem(answer, 507, "disk_full")
    other = job_of(b)
    # Jobs that have ended make room for new ones.
    for _ in range(2):
        a.post(f"/v1/jobs/{jobs[-1]}/cancel")
        answer = a.post("/v1/jobs", json=body)
        assert answer.status_code == 202
        jobs.append(answer.json()["id"])
    assert a.get(f"/v1/jobs/{jobs[0]}").status_code == 404
    a.post(f"/v1/jobs/{jobs[-1]}/cancel")
    assert b.post(f"/v1/jobs/{other}/cancel").status_code == 202


def test_as_long_as_a_tenants_job_may_run(held, service):
    daemon = service(**held, tenants_job_timeout=1)
    a = access.tenant(daemon, "a")
    job = a.ended(job_of(a))
    assert job["state"] == "failed" and job["error"]["code"] == "limit_exceeded"


def test_what_is_swept_is_logged_with_its_tenant(service):
    """Removal by age and for want of room are both logged with the tenant."""
    daemon = service(retention_jobs=4, retention_files=5)
    a = access.tenant(daemon, "a")
    job = job_of(a)
    a.succeeded(job)
    eventually(lambda: f"event=job_swept job={job} tenant=a reason=age" in daemon.log.read_text())
    eventually(lambda: re.search(r"event=file_swept kind=model id=\S+ tenant=a reason=age",
                                 daemon.log.read_text()))
    daemon = service(tenants_max_bytes="100K")
    a, root = access.tenant(daemon, "a"), access.client(daemon, access.add(daemon.state, "root"))
    job, others = job_of(a), job_of(root)
    a.succeeded(job)
    root.succeeded(others)
    answer = a.post("/v1/models", data=bytes(99_000))
    problem(answer, 400, "invalid_model")
    log = daemon.log.read_text()
    assert f"event=job_swept job={job} tenant=a reason=room" in log
    assert re.search(r"event=observations_swept bytes=\d+ tenant=a reason=room", log)
    assert f"job_swept job={others}" not in log


# --- limits of one tenant, which its tokens state -------------------------------------------


def waiting(one, n):
    return [job_of(one, fresh=True) for _ in range(n)]


def refused(one):
    answer = one.post("/v1/jobs", json={"model": one.upload("models", MODEL), "fresh": True})
    problem(answer, 429, "queue_full")


def limit(daemon, name, *options):
    done = access.command(daemon.state, "limit", name, *options)
    assert done.returncode == 0, done.stderr


def cancel(one, jobs):
    for job in jobs:
        one.post(f"/v1/jobs/{job}/cancel")


def works(daemon, one):
    """Checks after a limit was exceeded that the daemon is healthy, and that a job within
    the limit succeeds."""
    assert daemon.get("/healthz").status_code == 200
    one.succeeded(job_of(one, fresh=True))


def test_a_queue_of_its_own(held, service):
    """A tenant's own limit replaces the general one, can change while the daemon runs,
    and applies to this tenant alone."""
    daemon = service(**held, tenants_queue=3)
    a, b = access.tenant(daemon, "a", "--queue", "1"), access.tenant(daemon, "b")
    jobs = [job_of(a)]
    a.running(jobs[0])
    jobs += waiting(a, 1)
    refused(a)
    limit(daemon, "token-a", "--queue", "2")
    jobs += waiting(a, 1)
    refused(a)
    others = waiting(b, 3)
    refused(b)
    limit(daemon, "token-a", "--queue", "0")  # as for all
    jobs += waiting(a, 1)
    refused(a)
    cancel(a, jobs)
    cancel(b, others)
    assert daemon.get("/healthz").status_code == 200


def test_the_smallest_of_a_tenants_limits_holds(held, service):
    daemon = service(**held)
    a = access.tenant(daemon, "a", "--queue", "5")
    access.add(daemon.state, "second", "--tenant", "a", "--queue", "1")
    access.add(daemon.state, "third", "--tenant", "a")
    jobs = [job_of(a)]
    a.running(jobs[0])
    jobs += waiting(a, 1)
    refused(a)
    assert access.command(daemon.state, "revoke", "second").returncode == 0
    jobs += waiting(a, 4)
    refused(a)
    cancel(a, jobs)


def test_bytes_of_its_own(service):
    daemon = service()
    a, b = access.tenant(daemon, "a", "--max-bytes", "90K"), access.tenant(daemon, "b")
    for one, status in ((a, 507), (b, 400)):
        answer = one.post("/v1/models", data=bytes(100_000))
        problem(answer, status, "disk_full" if status == 507 else "invalid_model")
    works(daemon, a)
    limit(daemon, "token-a", "--max-bytes", "1M")
    problem(a.post("/v1/models", data=bytes(100_000)), 400, "invalid_model")


def test_run_time_of_its_own(service):
    """The worker is ended at the limit, also when the limit was set while the job ran."""
    daemon = service(test_worker_pause_ms=500)
    a, b = access.tenant(daemon, "a", "--job-timeout", "1"), access.tenant(daemon, "b")
    other = job_of(b)
    job = job_of(a)
    (worker,) = a.running(job)
    job = a.ended(job)
    assert job["state"] == "failed" and job["error"]["code"] == "limit_exceeded"
    assert job["error"]["status"] == 422 and "tenant's job_timeout" in job["error"]["detail"]
    eventually(lambda: worker not in daemon.workers())
    b.succeeded(other)
    limit(daemon, "token-a", "--job-timeout", "60")
    works(daemon, a)
    late = job_of(a, fresh=True)
    a.running(late)
    limit(daemon, "token-a", "--job-timeout", "1")
    daemon.process.send_signal(signal.SIGHUP)
    late = a.ended(late)
    assert late["state"] == "failed" and late["error"]["code"] == "limit_exceeded"


def test_a_run_time_that_is_set_while_a_job_says_nothing(held, service):
    """A limit that is set while a job reports no progress ends it all the same."""
    daemon = service(**held)
    a = access.tenant(daemon, "a")
    job = job_of(a)
    (worker,) = a.running(job)
    limit(daemon, "token-a", "--job-timeout", "1")
    assert a.get("/v1/jobs").status_code == 200  # makes the daemon read the tokens
    job = a.ended(job)
    assert job["error"]["code"] == "limit_exceeded"
    eventually(lambda: worker not in daemon.workers())


def test_limits_hold_from_the_start_on(held, service):
    """After a restart the limits apply before any token was used."""
    daemon = service(**held)
    a = access.tenant(daemon, "a", "--job-timeout", "1")
    daemon.stop()
    daemon.start()
    a.url, a.process = daemon.url, daemon.process
    job = a.ended(job_of(a))
    assert job["error"]["code"] == "limit_exceeded"


def test_tokens_of_older_versions_are_read(daemon):
    """Old tokens have no limits; a token without limits is written in a form that older
    versions can read."""
    a = access.tenant(daemon, "a")
    path = daemon.state / "tokens"
    line = path.read_text().splitlines()[-1]
    assert len(line.split(" ")) == 5
    limit(daemon, "token-a", "--queue", "7", "--max-bytes", "2K")
    assert path.read_text().splitlines()[-1] == line + " queue=7,max_bytes=2048"
    listed = access.command(daemon.state, "list").stdout
    assert re.fullmatch(r"token-a read,submit a \S+Z queue=7,max_bytes=2048\n", listed)
    limit(daemon, "token-a", "--queue", "0", "--max-bytes", "0")
    assert path.read_text().splitlines()[-1] == line
    assert a.get("/v1/jobs").status_code == 200


# --- administrators, and what survives ----------------------------------------------------


def test_an_administrator_acts_for_any_tenant_that_there_is(daemon, two):
    a, _ = two
    job = job_of(a)
    a.succeeded(job)
    token = access.add(daemon.state, "root", "--scope", "admin")
    root = access.client(daemon, token)
    assert root.get("/v1/jobs").json()["jobs"] == []
    problem(root.get(f"/v1/jobs/{job}"), 404, "not_found")
    as_a = access.client(daemon, token, **{"Qdqd-Tenant": "a"})
    assert as_a.job(job)["state"] == "succeeded"
    assert as_a.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    problem(a.get(f"/v1/jobs/{job}"), 404, "not_found")
    for name in ("nobody", "../a", "", "."):
        other = access.client(daemon, token, **{"Qdqd-Tenant": name})
        assert other.get("/v1/jobs").status_code in ((404,) if name else (200, 404))


def all_jobs(one, **query):
    """Returns all pages of all tenants' jobs."""
    found, cursor = [], None
    while True:
        query = dict(query, tenant="*", **({"cursor": cursor} if cursor else {}))
        page = one.request("GET", "/v1/jobs", params=query).json()
        found += page["jobs"]
        cursor = page["next_cursor"]
        if not cursor:
            return found


def administrator(daemon):
    return access.client(daemon, access.add(daemon.state, "root", "--scope", "admin"))


def test_an_administrator_sees_all_jobs(held, service):
    daemon = service(**held)
    a, b, root = access.tenant(daemon, "a"), access.tenant(daemon, "b"), administrator(daemon)
    made = [(None, job_of(root, labels={"n": "0"}))]
    root.running(made[0][1])
    for i, (name, one) in enumerate([("a", a), ("b", b), ("a", a), (None, root), ("b", b)]):
        made.append((name, job_of(one, fresh=True, labels={"n": str(i % 2)})))
    wanted = list(reversed(made))
    told = lambda jobs: [(job["tenant"], job["id"]) for job in jobs]  # noqa: E731
    for limit in (50, 1, 2, 4, 6):
        assert told(all_jobs(root, limit=limit)) == wanted
    assert told(all_jobs(root, state="running")) == made[:1]
    assert told(all_jobs(root, label="n:0", limit=2)) == [wanted[i] for i in (0, 2, 4, 5)]
    for name in ("a", "b", ""):
        page = root.get(f"/v1/jobs?tenant={name}").json()["jobs"]
        assert told(page) == [one for one in wanted if one[0] == (name or None)]
    assert "tenant" not in root.get("/v1/jobs").json()["jobs"][0]
    # The listed jobs can be used with the header Qdqd-Tenant.
    for name, job in wanted:
        headers = {"Qdqd-Tenant": name} if name else {}
        assert root.post(f"/v1/jobs/{job}/cancel", headers=headers).status_code == 202
    assert {one["state"] for one in all_jobs(root)} == {"cancelled"}
    for name, job in wanted[:2]:
        headers = {"Qdqd-Tenant": name} if name else {}
        assert root.request("DELETE", f"/v1/jobs/{job}", headers=headers).status_code == 204
    assert told(all_jobs(root)) == wanted[2:]


def test_equal_times_do_not_lose_jobs(held, service):
    """Jobs of several tenants that were made in the same millisecond are all listed, page
    by page."""
    daemon = service(**held)
    a, b, root = access.tenant(daemon, "a"), access.tenant(daemon, "b"), administrator(daemon)
    jobs = [(name, job_of(one, fresh=True)) for _ in range(3)
            for name, one in (("b", b), (None, root), ("a", a))]
    daemon.stop()
    for folder in (daemon.state, daemon.state / "tenants/a", daemon.state / "tenants/b"):
        with sqlite3.connect(folder / "qdqd.sqlite3") as database:
            database.execute("UPDATE jobs SET created_at = 1700000000000")
    daemon.start()
    root.url = daemon.url
    wanted = sorted(jobs, key=lambda one: one[0] or "")
    for limit in (1, 2, 5, 9):
        found = all_jobs(root, limit=limit)
        assert [one["tenant"] for one in found] == [one[0] for one in wanted]
        assert {one["id"] for one in found} == {one[1] for one in jobs}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("query", [
    *(f"tenant=*&cursor={text}" for text in (
        "", "1", "1.2", "x", "1.2.A", "-1.2.a", "1.99999999999999999999.a", "0.1.a", "1.0.a",
        "01.1.a", "1.1")),
    "cursor=1.2.a", "tenant=&cursor=1.2.a"])
def test_cursors_that_are_none(daemon, query):
    problem(daemon.get(f"/v1/jobs?{query}"), 400, "bad_request")


def test_an_administrator_sees_what_each_tenant_has(held, service):
    daemon = service(**held, tenants_queue=7)
    a, root = access.tenant(daemon, "a", "--max-bytes", "1M"), administrator(daemon)
    access.tenant(daemon, "b")  # this tenant has made no request
    jobs = [job_of(a)]
    a.running(jobs[0])
    jobs += waiting(a, 2)
    one, other = root.get("/v1/tenants").json()["tenants"]
    none = {"queued": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0}
    assert one == {"tenant": None, "jobs": none, "bytes": 0,
                   "limits": {"queue": 1000, "max_bytes": None, "job_timeout": 21600}}
    assert other["tenant"] == "a" and other["jobs"] == dict(none, queued=2, running=1)
    assert len(MODEL) + len(DATA) <= other["bytes"] < 1 << 20
    assert other["limits"] == {"queue": 7, "max_bytes": 1 << 20, "job_timeout": 21600}
    # This daemon alone has the record; where it could be shared, a heartbeat brings the number.
    node = eventually(lambda: next((node for node in root.get("/v1/nodes").json()["nodes"]
                                    if node["running"] == 1), None))
    assert node["lanes"] == 1
    assert node["version"] == root.get("/version").json()["version"]
    assert node["started_at"] < node["seen_at"]
    cancel(a, jobs)


def test_nobody_else_sees_others(daemon, two):
    """Tenants cannot even find out which other tenants exist."""
    a, _ = two
    every = access.tenant(daemon, "c", "--scope", "read", "--scope", "submit", "--scope", "metrics")
    for one in (a, every):
        answers = [one.get(f"/v1/jobs?tenant={name}") for name in ("b", "nobody", "*", "")]
        for answer in answers:
            problem(answer, 403, "forbidden")
        assert len({answer.json()["detail"] for answer in answers}) == 1
        problem(one.get("/v1/tenants"), 403, "forbidden")
        problem(one.get("/v1/nodes"), 403, "forbidden")
        problem(one.get("/v1/jobs", headers={"Qdqd-Tenant": "*"}), 403, "forbidden")
    assert a.get("/v1/jobs?tenant=a").json() == {"jobs": [], "next_cursor": None}
    root = administrator(daemon)
    problem(root.get("/v1/jobs?tenant=nobody"), 404, "not_found")
    problem(root.get("/v1/jobs", headers={"Qdqd-Tenant": "*"}), 404, "not_found")


def test_nobody_else_does(two):
    """Only an administrator's token may act for another tenant."""
    a, b = two
    problem(b.get("/v1/jobs", headers={"Qdqd-Tenant": "a"}), 403, "forbidden")
    assert a.get("/v1/jobs", headers={"Qdqd-Tenant": "a"}).status_code == 200


def test_a_tenants_queue_survives(held, service):
    daemon = service(**held)
    a = access.tenant(daemon, "a")
    job = job_of(a)
    a.running(job)
    daemon.kill()
    daemon.environment.pop("QDQD_TEST_WORKER_PAUSE_MS")
    daemon.start()
    a.url, a.process = daemon.url, daemon.process
    assert a.succeeded(job)["state"] == "succeeded"


def test_a_backup_has_all_tenants_and_the_tokens(daemon, two, service, tmp_path):
    a, b = two
    jobs = [job_of(one) for one in two]
    for one, job in zip(two, jobs):
        one.succeeded(job)
    copy = tmp_path / "copy"
    assert backup(daemon, copy).returncode == 0
    daemon.stop()
    other = tmp_path / "other" / "state"
    other.parent.mkdir()
    assert restore(copy, other).returncode == 0
    daemon.state = other
    daemon.start()
    for one, job in zip(two, jobs):
        one.url = daemon.url
        assert one.job(job)["state"] == "succeeded"
        assert one.result(job)
    problem(a.get(f"/v1/jobs/{jobs[1]}"), 404, "not_found")
