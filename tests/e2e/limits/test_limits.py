# SPDX-License-Identifier: Apache-2.0
"""Each limit of connections is exceeded, and the daemon is healthy meanwhile and
afterwards."""

import json
import socket
import time

import pytest

import nets
from service import DATA, eventually, problem
from test_refused_early import Connection

HEALTHY = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def healthy(service):
    """Checks that /healthz answers a new connection before a limit of time closes another, by
    default after 20 s."""
    began = time.monotonic()
    with Connection(service) as one:
        one.socket.settimeout(60)
        one.head("GET", "/healthz")
        status, _, _ = one.answer()
    took = time.monotonic() - began
    assert status == 200
    assert took < 20, took
    return took


class Many:
    """Opens connections, sends the beginning of a request on each, and leaves them open.
    """

    def __init__(self, service, n, begin=b"", **options):
        self.service, self.n, self.begin, self.options = service, n, begin, options

    def __enter__(self):
        self.all = []
        for _ in range(self.n):
            one = Connection(self.service)
            one.send(self.begin)
            self.all.append(one)
        return self.all

    def __exit__(self, *exc):
        for one in self.all:
            one.socket.close()


UPLOAD = (b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
          + bytes(1000))


@pytest.mark.alone
def test_two_hundred_stalled_uploads(daemon):
    before = healthy(daemon)
    with Many(daemon, 200, UPLOAD):
        took = [healthy(daemon) for _ in range(20)]
        assert daemon.upload("models", nets.block_net())
    print(f"/healthz alone {before:.4f} s, beside 200 stalled uploads at most {max(took):.4f} s")
    healthy(daemon)
    eventually(lambda: not daemon.temporary_files())


@pytest.mark.parametrize("begin", [b"", b"GET", UPLOAD], ids=["silent", "line", "upload"])
@pytest.mark.parametrize("settings", [{"http_connections": 8},
                                      {"http_connections_per_address": 8}],
                         ids=["all", "address"])
def test_more_connections_than_there_may_be(service, settings, begin):
    daemon = service(**settings)
    with Many(daemon, 60, begin):
        for _ in range(5):
            healthy(daemon)
        with Connection(daemon) as one:
            one.head("GET", "/v1/jobs")
            status, headers, body = one.answer()
            assert status == 503 and json.loads(body)["code"] == "busy"
            assert headers["retry-after"] and one.ended()
    eventually(lambda: daemon.get("/v1/jobs").status_code == 200)
    healthy(daemon)


def test_the_default_leaves_room_for_256_of_one_address(daemon):
    """By default 256 connections of one address are served, less those that this test's
    own client keeps open."""
    with Many(daemon, 250, b"GET"), Connection(daemon) as one:
        one.head("GET", "/v1/jobs")
        assert one.answer()[0] == 200


def test_many_at_the_door_at_once(service):
    """More connections than the reserve holds come at the same time; /healthz still
    answers."""
    daemon = service(http_connections=8)
    for _ in range(10):
        with Many(daemon, 300):
            healthy(daemon)
    healthy(daemon)


def is_closed_on(one, piece, every):
    """Sends a piece now and then; returns whether the daemon closed the connection within a
    minute."""
    began = time.monotonic()
    one.socket.settimeout(every)
    while time.monotonic() - began < 60:
        try:
            one.send(piece)
            if not one.socket.recv(1000):
                return True
        except TimeoutError:
            pass
        except OSError:
            return True
    return False


def test_a_head_that_drips(service):
    """Each byte comes in time, but the head does not."""
    daemon = service(http_header_timeout=2, http_timeout=3600)
    began = time.monotonic()
    with Connection(daemon) as one:
        one.send(b"GET /healthz HTTP/1.1\r\n")
        assert is_closed_on(one, b"X", 0.3)
        assert time.monotonic() - began > 1.5
    with Connection(daemon) as one:  # and of a second request
        one.head("GET", "/healthz")
        one.answer()
        began = time.monotonic()
        one.send(b"GET /healthz HTTP/1.1\r\n")
        assert is_closed_on(one, b"X", 0.3)
        assert time.monotonic() - began > 1.5
    healthy(daemon)


def test_a_line_that_drips_between_requests(service):
    daemon = service(http_header_timeout=3600, http_timeout=2)
    with Connection(daemon) as one:
        one.head("GET", "/healthz")
        one.answer()
        assert is_closed_on(one, b"G", 0.3)
    healthy(daemon)


def test_a_body_that_drips(service):
    daemon = service(http_timeout=2, http_min_rate=1000)
    with Connection(daemon) as one:
        one.head("POST", "/v1/models", "Content-Length: 1000000")
        one.send(bytes(5000))  # enough for the first check
        assert is_closed_on(one, b"x", 0.3)
    eventually(lambda: not daemon.temporary_files())
    healthy(daemon)


def test_a_body_that_is_slow_enough(service):
    daemon = service(http_timeout=3, http_min_rate=100)
    model = nets.block_net()
    piece = len(model) // 20 + 1
    assert piece / 0.4 > 300  # three times the lowest rate, for about 8 s
    with Connection(daemon) as one:
        one.head("POST", "/v1/models", f"Content-Length: {len(model)}")
        for at in range(0, len(model), piece):
            one.send(model[at:at + piece])
            time.sleep(0.4)
        assert one.answer()[0] == 201


def test_who_waits_is_not_slow(held, service):
    """A client that waits for a job's end is not cut off as slow."""
    daemon = service(**held, http_timeout=1, http_header_timeout=1)
    job = daemon.submit(model=daemon.upload("models", nets.block_net()))
    daemon.running(job)
    assert daemon.job(job, wait=4)["state"] == "running"
    daemon.post(f"/v1/jobs/{job}/cancel")


@pytest.mark.parametrize("size, status", [(1500, 200), (2500, 431), (20_000, 431),
                                          (300_000, 431)])
def test_a_head_that_is_too_large(service, size, status):
    daemon = service(http_max_header="2K")
    with Connection(daemon) as one:
        try:
            one.head("GET", "/healthz", "X-Long: " + size * "x")
        except ConnectionResetError:
            pass
        found, headers, body = one.answer()
        assert found == status
        if headers.get("content-type", "").startswith("application/problem+json"):
            assert json.loads(body)["code"] == "header_too_large"
        else:
            assert size > 16_000 or status == 200  # the HTTP parser itself refuses larger ones
    healthy(daemon)


def test_a_body_that_is_too_large(service):
    daemon = service(http_max_body="1M")
    problem(daemon.post("/v1/models", data=bytes((1 << 20) + 1)), 413, "too_large")

    def pieces():
        for _ in range(20):
            yield bytes(100_000)
    problem(daemon.post("/v1/models", data=pieces()), 413, "too_large")
    healthy(daemon)


def test_a_queue_that_is_full(held, service):
    daemon = service(**held, queue_max=2)
    model = daemon.upload("models", nets.block_net())
    jobs = [daemon.submit(model=model, fresh=True)]
    daemon.running(jobs[0])
    jobs += [daemon.submit(model=model, fresh=True) for _ in range(2)]
    answer = daemon.post("/v1/jobs", json={"model": model, "fresh": True})
    problem(answer, 429, "queue_full")
    healthy(daemon)
    for job in jobs:
        daemon.post(f"/v1/jobs/{job}/cancel")


def test_more_files_than_the_shell_allows(service):
    """The daemon raises its limit of descriptors as far as it may."""
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        daemon = service(http_connections_per_address=512)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with Many(daemon, 300, UPLOAD), socket.create_connection(
            ("127.0.0.1", int(daemon.url.rsplit(":", 1)[1])), timeout=60) as one:
        one.sendall(HEALTHY)
        assert one.recv(100).startswith(b"HTTP/1.1 200")
        assert daemon.upload("models", nets.block_net())


def test_processor_time_of_a_job(service):
    """The processor time of all threads counts, and the job is not tried again."""
    daemon = service(workers_cpu_time=1)
    spec = {"calibration": {"random_samples": 100_000}, "evaluate": False}
    job = daemon.ended(daemon.submit(model=daemon.upload("models", DATA / "glyph_resnet.onnx"),
                                     spec=spec))
    assert job["state"] == "failed" and job["error"]["code"] == "limit_exceeded", job
    assert "workers.cpu_time" in job["error"]["detail"]
    assert daemon.log.read_text().count("event=job_started") == 1
    small = daemon.submit(model=daemon.upload("models", nets.block_net()),
                          calibration=daemon.upload("datasets", nets.samples()))
    daemon.succeeded(small)
    healthy(daemon)
