# SPDX-License-Identifier: Apache-2.0
"""Every limit is exceeded once. The answer must be as documented, and the daemon healthy:
/healthz answers and a job succeeds under the same limit.

LIMITS has a row for each setting that is a number, FIXED one for each limit without a
setting. Other files test most limits in more detail: test_limits.py (connections, slow
clients), test_engine_limits.py (models), test_time_limits.py, test_storage.py,
test_retention.py, test_tenants.py, test_faults.py."""

import io
import json
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import access
import nets
from service import ROOT, eventually, kill_process, problem
from test_engine_limits import RAW, chained, nested, packed, ranked, weighing
from test_limits import UPLOAD, Many, healthy, is_closed_on
from test_refused_early import EXPECT, Connection

pytestmark = pytest.mark.long
KEYS = re.findall(r"^SETTING_NUMBER\(\s*(\w+), (\w+),",
                  (ROOT / "daemon/settings/keys.h").read_text(), re.MULTILINE) + [
    ("limits", name) for name in re.findall(
        r"^    ROW\((\w+),", (ROOT / "engine/include/qdq/limits.h").read_text(), re.MULTILINE)]
NO_LIMIT = {
    "workers.threads",  # it determines how a model runs, and limits nothing
    "cluster.lease",    # it determines when another daemon takes a job over
    "blobs.cache",      # of a bucket: tests/e2e/store/test_bucket.py
}
MODEL, DATA = nets.block_net(), nets.samples()
# A job that takes longer than any test.
LONG = {"calibration": {"random_samples": 20_000_000}, "evaluate": False}
LIMITS = {}


def limit(key):
    """A row: a function that exceeds the limit and returns the daemon, or its client."""
    def add(exceed):
        LIMITS[key] = exceed
        return exceed
    return add


def small(one, **members):
    return one.submit(model=one.upload("models", MODEL),
                      calibration=one.upload("datasets", DATA), **members)


def long_job(one):
    job = one.submit(model=one.upload("models", MODEL), spec=LONG, fresh=True)
    one.running(job)
    return job


def cancel(one, *jobs):
    for job in jobs:
        assert one.post(f"/v1/jobs/{job}/cancel").status_code == 202


def failed(one, job, code, status, says):
    document = one.ended(job)
    assert document["state"] == "failed", document
    error = document["error"]
    assert (error["code"], error["status"]) == (code, status), error
    assert says in error["detail"], error


def closed(connection):
    """Expects that the daemon closes the connection soon, without an answer."""
    connection.socket.settimeout(60)
    assert connection.socket.recv(1) == b""


# --- connections and requests --------------------------------------------------------------


@limit("http.max_body")
def max_body(service):
    one = service(http_max_body="1M")
    problem(one.post("/v1/models", data=bytes((1 << 20) + 1)), 413, "too_large")
    return one


@limit("http.max_header")
def max_header(service):
    one = service(http_max_header="2K")
    with Connection(one) as client:
        client.head("GET", "/v1/jobs", "X-Long: " + 2500 * "x")
        client.problem(431, "header_too_large")
    return one


def crowd(one):
    with Many(one, 30, b"GET"), Connection(one) as client:
        client.head("GET", "/v1/jobs")
        client.problem(503, "busy")
        healthy(one)
    eventually(lambda: one.get("/v1/jobs").status_code == 200)
    return one


@limit("http.connections")
def connections(service):
    return crowd(service(http_connections=8))


@limit("http.connections_per_address")
def connections_per_address(service):
    return crowd(service(http_connections_per_address=8))


@limit("http.timeout")
def http_timeout(service):
    one = service(http_timeout=3)
    # A connection that is kept may be closed just when the next request is sent.
    one.http.headers["Connection"] = "close"
    with Connection(one) as client:
        client.send(UPLOAD)
        closed(client)
    return one


@limit("http.header_timeout")
def header_timeout(service):
    one = service(http_header_timeout=1)
    with Connection(one) as client:
        client.send(b"GET /healthz HTTP/1.1\r\n")
        assert is_closed_on(client, b"X", 0.2)
    return one


@limit("http.min_rate")
def min_rate(service):
    one = service(http_min_rate="1M", http_timeout=1)
    with Connection(one) as client:
        client.send(UPLOAD)
        assert is_closed_on(client, b"x", 0.2)
    return one


# --- stored bytes --------------------------------------------------------------------------


@limit("retention.jobs")
def retention_jobs(service):
    one = service(retention_jobs=5)
    job = small(one)
    one.succeeded(job)
    eventually(lambda: one.get(f"/v1/jobs/{job}").status_code == 404)
    problem(one.get(f"/v1/jobs/{job}/model"), 404, "not_found")
    return one


@limit("retention.files")
def retention_files(service):
    one = service(retention_files=5)
    model = one.upload("models", MODEL)
    eventually(lambda: one.get(f"/v1/models/{model}").status_code == 404)
    problem(one.post("/v1/jobs", json={"model": model}), 404, "not_found")
    return one


@limit("retention.leftovers")
def retention_leftovers(service):
    one = service(retention_leftovers=0)
    path = one.state / "blobs" / "ab" / ("ab" + 62 * "0")
    one.stop()
    path.write_bytes(b"of no record")
    one.start()
    eventually(lambda: not path.exists())
    return one


@limit("storage.scrub_rate")
def scrub_rate(service):
    """So many bytes a second are checked, and no more."""
    one = service(storage_scrub_rate="20K")
    begin = time.monotonic()
    one.upload("models", MODEL)
    one.stop()
    one.start()
    seen = eventually(lambda: int(re.search(r"^qdqd_scrubbed_bytes_total (\d+)",
                                            one.get("/metrics").text, re.MULTILINE)[1]))
    assert seen <= 20 * 1024 * (time.monotonic() - begin + 1)
    return one


@limit("storage.max_bytes")
def max_bytes(service):
    one = service(storage_max_bytes="200K")
    problem(one.post("/v1/models", data=bytes(300_000)), 507, "disk_full")
    return one


@limit("storage.min_free")
def min_free(service, tmp_path):
    disk = os.statvfs(tmp_path)
    one = service(storage_min_free=disk.f_bavail * disk.f_frsize - (1 << 30))
    with Connection(one) as client:
        client.head("POST", "/v1/models", EXPECT, f"Content-Length: {2 << 30}")
        client.problem(507, "disk_full")
    return one


@limit("cache.observations")
def observations(service):
    """Exceeding this limit fails nothing: the next job observes again."""
    def inferences(one, method):
        job = small(one, spec={"calibration": {"method": method}})
        one.succeeded(job)
        return one.report(job)["calibration"]["inferences"]
    one = service()
    assert inferences(one, "minmax") > 0 and inferences(one, "mse") == 0
    one = service(cache_observations=1)
    assert inferences(one, "minmax") > 0 and inferences(one, "mse") > 0
    return one


# --- jobs ----------------------------------------------------------------------------------


def fill_queue(one):
    """Queues one job that runs and one that waits, so that a third has no place."""
    running = long_job(one)
    waits = small(one)
    problem(one.post("/v1/jobs", json={"model": one.upload("models", MODEL), "fresh": True}),
            429, "queue_full")
    healthy(one)
    cancel(one, waits, running)
    return one


@limit("queue.max")
def queue_max(service):
    return fill_queue(service(queue_max=1))


@limit("workers.count")
def workers_count(service):
    one = service(workers_count=2)
    jobs = [long_job(one), long_job(one)]
    third = small(one)
    time.sleep(1)
    assert one.job(third)["queue"]["position"] == 1
    assert len(one.busy_workers()) == 2
    cancel(one, jobs[0])
    one.succeeded(third)
    cancel(one, jobs[1])
    return one


@limit("workers.attempts")
def attempts(service):
    one = service(workers_attempts=1)
    job = long_job(one)
    kill_process(one.worker_of_the_job())
    failed(one, job, "worker_died", 500, "in attempt 1 of 1")
    return one


@limit("workers.max_jobs")
def max_jobs(service):
    """When a process has done its last job, the next one runs in another process."""
    one = service(workers_max_jobs=1)
    started = lambda: one.log.read_text().count("event=worker_started")  # noqa: E731
    for _ in range(2):
        before = started()
        one.succeeded(small(one, fresh=True))
        assert started() > before
    return one


@limit("workers.drain_timeout")
def drain_timeout(service):
    one = service(workers_drain_timeout=1)
    job = long_job(one)
    began = time.monotonic()
    one.stop()
    assert 0.9 < time.monotonic() - began < 25  # by default it waits for 30 s
    one.start()
    one.running(job)
    cancel(one, job)
    return one


@limit("workers.short_timeout")
def short_timeout(service):
    one = service(workers_short_timeout=10)
    one.upload("models", MODEL)
    for worker in one.workers():
        os.kill(worker, signal.SIGSTOP)
    found = problem(one.post("/v1/models", data=MODEL, headers=RAW), 422, "limit_exceeded")
    assert "workers.short_timeout" in found["detail"]
    return one


@limit("workers.short_count")
def short_count(service):
    """Two tenants have a process each, which are stuck, and a third one waits for one."""
    one = service(workers_short_count=2, workers_short_timeout=10)
    tenants = [access.tenant(one, name) for name in "abc"]
    with ThreadPoolExecutor() as pool:
        for tenant in tenants[:2]:
            tenant.upload("models", MODEL)
            for worker in one.workers():
                os.kill(worker, signal.SIGSTOP)
            pool.submit(tenant.post, "/v1/models", data=MODEL, headers=RAW)
            eventually(one.temporary_files)
        tenants[2].upload("models", MODEL)
        assert len(one.workers()) <= 2
    return tenants[2]


def stopped_job(one):
    """Returns a job that never ends, because its worker is stopped, and takes no processor time."""
    job = long_job(one)
    os.kill(one.worker_of_the_job(), signal.SIGSTOP)
    return job


@limit("workers.job_timeout")
def job_timeout(service):
    one = service(workers_job_timeout=10)
    failed(one, stopped_job(one), "limit_exceeded", 422, "workers.job_timeout")
    return one


@limit("workers.cpu_time")
def cpu_time(service):
    one = service(workers_cpu_time=1)
    failed(one, long_job(one), "limit_exceeded", 422, "workers.cpu_time")
    return one


@limit("workers.memory")
def memory(service):
    """800 MB of samples at once: ONNX Runtime reports that the memory is not there."""
    one = service(workers_memory="400M", workers_threads=1)
    spec = {"calibration": {"random_samples": 1, "dims": {"n": 1 << 20}}, "evaluate": False}
    job = one.submit(model=one.upload("models", MODEL), spec=spec)
    failed(one, job, "run_failed", 422, "Failed to allocate memory")
    return one


# --- tenants -------------------------------------------------------------------------------


@limit("tenants.queue")
def tenants_queue(service):
    return fill_queue(access.tenant(service(tenants_queue=1), "a"))


@limit("tenants.max_bytes")
def tenants_max_bytes(service):
    one = access.tenant(service(tenants_max_bytes="200K"), "a")
    problem(one.post("/v1/models", data=bytes(300_000)), 507, "disk_full")
    return one


@limit("tenants.job_timeout")
def tenants_job_timeout(service):
    one = access.tenant(service(tenants_job_timeout=10), "a")
    failed(one, stopped_job(one), "limit_exceeded", 422, "the tenant's job_timeout")
    return one


# --- models and data -----------------------------------------------------------------------


def refused(one, kind, data, says):
    told = problem(one.post(f"/v1/{kind}", data=data, headers=RAW), 422, "limit_exceeded")
    assert says in told["detail"], told
    return one


@limit("limits.graph_nodes")
def graph_nodes(service):
    return refused(service(limits_graph_nodes=20), "models", chained(21), "limits.graph_nodes (20)")


@limit("limits.graph_depth")
def graph_depth(service):
    return refused(service(limits_graph_depth=1), "models", nested(2), "limits.graph_depth (1)")


@limit("limits.tensor_rank")
def tensor_rank(service):
    return refused(service(limits_tensor_rank=5), "models", ranked(6), "limits.tensor_rank (5)")


@limit("limits.tensor_bytes")
def tensor_bytes(service):
    return refused(service(limits_tensor_bytes=4000), "models", weighing(4004),
                   "limits.tensor_bytes (4000)")


@limit("limits.archive_bytes")
def archive_bytes(service):
    return refused(service(limits_archive_bytes="100K"), "datasets", packed(200 << 10),
                   "limits.archive_bytes")


# --- the tests -----------------------------------------------------------------------------


def test_each_key_has_a_row():
    keys = {f"{section}.{key}" for section, key in KEYS}
    assert len(keys) >= 30
    assert keys - NO_LIMIT == set(LIMITS)


def well(one):
    healthy(one)
    one.succeeded(small(one, fresh=True))
    eventually(lambda: one.temporary_files() == [])


@pytest.mark.parametrize("key", LIMITS)
def test_it_is_exceeded(key, request, service):
    exceed = LIMITS[key]
    wanted = exceed.__code__.co_varnames[:exceed.__code__.co_argcount]
    well(exceed(*[request.getfixturevalue(name) for name in wanted]))


# --- limits without a setting --------------------------------------------------------------

JSON = {"Content-Type": "application/json"}


def job_json(one, text):
    return one.post("/v1/jobs", data=text, headers=JSON)


def plan(one, **spec):
    return one.post("/v1/plan", json={"model": one.upload("models", MODEL), "spec": spec})


def quantize(one, **spec):
    return one.post("/v1/quantize", json={"model": one.upload("models", MODEL), "spec": spec})


def npz(n):
    file = io.BytesIO()
    np.savez(file, **{f"a{i}": np.zeros(1, np.float32) for i in range(n)})
    return file.getvalue()


def npy(rank):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rank * '1, '}), }}"
    head = head.ljust(1014 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(4)


def messages(depth):
    """Returns a model whose graph is in an attribute of a node of a graph, and so on."""
    inner = b""
    for field in depth // 3 * (0x0a, 0x2a, 0x32):  # graph.node, node.attribute, attribute.g
        size, head = len(inner), b""
        while size > 127:
            head += bytes([size & 127 | 128])
            size >>= 7
        inner = bytes([field]) + head + bytes([size]) + inner
    return b"\x08\x08" + inner


def script(text):
    return {"cases": [{"name": "mine", "lua": text}]}


CASE = "return {{ info = {{}}, case = function(model, spec) {} end }}"
FIXED = {
    "depth of JSON": (lambda one: job_json(one, '{"model":' + 3000 * "[" + 3000 * "]" + "}"),
                      400, "invalid_json"),
    "bytes of a job's JSON": (lambda one: job_json(
        one, json.dumps({"labels": {"a": 9_000_000 * "x"}})), 413, "too_large"),
    "bytes of a text part": (lambda one: one.post("/v1/jobs", files={
        "model": (None, one.upload("models", MODEL)),
        "labels": (None, json.dumps({"a": 1_100_000 * "x"}))}), 413, "too_large"),
    "files of a model": (lambda one: one.post("/v1/models", files=[
        ("model", ("m.onnx", MODEL)), *(("external", (f"w{i}", b"x")) for i in range(129))]),
        422, "limit_exceeded"),
    "seconds of wait": (lambda one: one.get("/v1/jobs/x?wait=301"), 400, "bad_request"),
    "jobs of a page": (lambda one: one.get("/v1/jobs?limit=501"), 400, "bad_request"),
    "bytes of an Idempotency-Key": (lambda one: one.post(
        "/v1/jobs", json={"model": one.upload("models", MODEL)},
        headers={"Idempotency-Key": 256 * "k"}), 400, "bad_request"),
    "depth of a model's messages": (lambda one: one.post(
        "/v1/models", data=messages(300), headers=RAW), 400, "invalid_model"),
    "arrays of a dataset": (lambda one: one.post("/v1/datasets", data=npz(4097), headers=RAW),
                            422, "limit_exceeded"),
    "rank of an array": (lambda one: one.post("/v1/datasets", data=npy(65), headers=RAW),
                         400, "invalid_dataset"),
    "bytes of an input": (lambda one: quantize(one, calibration={
        "random_samples": 1, "dims": {"n": 2_000_000}}, evaluate=False), 422, "limit_exceeded"),
    "bytes of a script": (lambda one: plan(one, **script("-" * 300_000)), 422, "limit_exceeded"),
    "cases of a spec": (lambda one: plan(one, cases=65 * ["resnet_v1"]), 422, "limit_exceeded"),
    "bytes of a glob": (lambda one: plan(one, layers=[{"match": 1025 * "x"}]),
                        422, "limit_exceeded"),
    "instructions of a script": (lambda one: plan(one, **script(CASE.format("while true do end"))),
                                 422, "case_failed"),
    "memory of a script": (lambda one: plan(one, **script(CASE.format(
        "local t = {} while true do t[#t + 1] = { #t } end"))), 422, "case_failed"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One daemon for all rows, so that the next row notices any harm."""
    from service import Service
    one = Service(tmp_path_factory.mktemp("fixed")).start()
    yield one
    one.stop()


@pytest.mark.parametrize("what", FIXED)
def test_a_fixed_limit_is_exceeded(what, shared):
    exceed, status, code = FIXED[what]
    problem(exceed(shared), status, code)
    well(shared)
