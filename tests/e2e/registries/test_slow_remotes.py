# SPDX-License-Identifier: Apache-2.0
"""Remotes that are slow, or that never end, cost the tenants that use them, and nobody else."""

import json
import os
import re
import signal
import threading
import time

import pytest

import access
import nets
from carriers import carriers
from far import Far
from service import Service, eventually

MODEL = nets.block_net()
SPEC = {"calibration": {"random_samples": 2}, "evaluate": False}
LARGE = 20 << 20


@pytest.fixture
def good():
    one = Far(MODEL, **{"MLmodel": b"flavors: {}\n"})
    yield one
    one.close()


@pytest.fixture
def bad():
    one = Far(bytes(LARGE), **{"MLmodel": b"flavors: {}\n"})
    one.go_on = threading.Event()
    yield one
    one.go_on.set()
    one.close()


@pytest.fixture
def start(good, bad, tmp_path):
    """Makes a daemon that has both remotes and further sections."""
    made = []

    def make(more="", **settings):
        (tmp_path / "qdqd.conf").write_text("".join(
            f"[remote {name}]\nkind = mlflow\nurl = {one.url}\nallow_private = true\n"
            "timeout = 5\n" for name, one in (("good", good), ("bad", bad))) + more)
        one = Service(tmp_path, **{f"QDQD_{k.upper()}": str(v) for k, v in settings.items()})
        one.arguments = ["--config", tmp_path / "qdqd.conf"]
        made.append(one)
        return one.start()

    yield make
    for one in made:
        one.stop()


def is_file(path):
    return "/artifacts/" in path and path.endswith(".onnx")


def trickle(far):
    """Has the remote send its file as slowly as it may, a little more than 1 KB a second."""
    def send(handler, path):
        if not is_file(path):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(LARGE))
        handler.end_headers()
        try:
            while not far.go_on.wait(0.5):
                handler.wfile.write(bytes(1024))
        except OSError:
            pass
        handler.close_connection = True
        return True

    far.fault = send
    return lambda: sum(map(is_file, far.paths()))


def drip(far, size, every):
    """Has the remote send `size` bytes of its file at a time, every few seconds."""
    def send(handler, path):
        if not is_file(path):
            return False
        at = handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")
        handler.send_response(206 if int(at) else 200)
        handler.send_header("Content-Length", str(LARGE - int(at)))
        if int(at):
            handler.send_header("Content-Range", f"bytes {at}-{LARGE - 1}/{LARGE}")
        handler.end_headers()
        try:
            while not far.go_on.is_set():
                handler.wfile.write(bytes(size))
                far.go_on.wait(every)
        except OSError:
            pass
        handler.close_connection = True
        return True

    far.fault = send


def submit(one, remote, **members):
    answer = one.post("/v1/jobs", json={"model": f"{remote}:models:/glyph/1", "spec": SPEC,
                                        "fresh": True, **members})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def test_another_tenant_does_not_wait(start, good, bad):
    daemon = start()
    a, b, c = (access.tenant(daemon, name) for name in "abc")
    asked = trickle(bad)
    slow = [submit(one, "bad") for one in (a, b) for _ in range(8)]
    # Both get some of their files, one after the other only as far as others keep a share.
    eventually(lambda: asked() >= 4)
    job = submit(c, "good", publish=[{"remote": "good", "ref": "models:/out"}])
    assert c.succeeded(job)
    eventually(lambda: [one["state"] for one in c.job(job)["deliveries"]] == ["delivered"])
    for one, id in zip([a] * 8 + [b] * 8, slow):
        assert one.job(id)["state"] == "queued"
        one.post(f"/v1/jobs/{id}/cancel")


def test_a_tenant_has_three_fetches_and_its_deliveries_beside_them(start, good, bad):
    daemon = start()
    model = daemon.upload("models", MODEL)
    asked = trickle(bad)
    slow = [submit(daemon, "bad") for _ in range(5)]
    eventually(lambda: asked() == 3)
    job = daemon.submit(model=model, spec=SPEC, publish=[{"remote": "good", "ref": "models:/out"}])
    eventually(lambda: [one["state"] for one in daemon.job(job)["deliveries"]] == ["delivered"])
    assert asked() == 3
    # A fetch that ends lets the next one begin at once.
    bad.go_on.set()
    began = time.monotonic()
    bad.fault, bad.files["0/models/m-0/model.onnx"] = None, MODEL
    for id in slow:
        daemon.post(f"/v1/jobs/{id}/cancel")
    assert daemon.succeeded(submit(daemon, "bad"))
    assert time.monotonic() - began < 30


def test_another_hook_does_not_wait(start, good, bad, tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    rule = f"models = *\npoll = 1\nspec = {tmp_path}/spec.json\npublish = models:/{{name}}-int8\n"
    bad.fault = lambda handler, path: bad.go_on.wait(60)
    daemon = start(f"[hook slow]\nremote = bad\n{rule}[hook quick]\nremote = good\n{rule}")
    eventually(lambda: len([1 for path in bad.paths() if path.endswith("search")]) == 1)
    polls = [path for path in good.paths() if path.endswith("search")]
    eventually(lambda: len([1 for path in good.paths() if path.endswith("search")])
               > len(polls) + 1, seconds=4)


def test_a_file_without_an_end_keeps_to_the_limit(start, bad):
    """The remote does not say how long its file is, and max_bytes is far away."""
    most = 24_000_000
    daemon = start(storage_max_bytes=most)
    broken = threading.Event()

    def send(handler, path):
        if path.endswith("/artifacts"):
            handler.answer({"files": [{"path": "model.onnx", "is_dir": False}]})
            return True
        if not is_file(path):
            return False
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        try:
            while not bad.go_on.wait(0.02):
                handler.wfile.write(os.urandom(1 << 20))
        except OSError:
            broken.set()
        handler.close_connection = True
        return True

    bad.fault = send
    job = submit(daemon, "bad")
    peak = 0
    deadline = time.monotonic() + 20
    while not broken.is_set() and time.monotonic() < deadline:
        peak = max(peak, sum(os.stat(path).st_size for path in daemon.temporary_files()
                             if os.path.exists(path)))
        time.sleep(0.01)
    assert broken.is_set()
    # The daemon looks ten times a second, and so much may come meanwhile.
    assert most / 2 < peak < most + (20 << 20)
    eventually(lambda: daemon.temporary_files() == [])
    # Nothing is counted that is gone.
    daemon.upload("datasets", nets.samples())
    daemon.post(f"/v1/jobs/{job}/cancel")


def failure(daemon):
    """Waits for the end of the first attempt, and returns its line in the log."""
    lines = eventually(lambda: [line for line in daemon.log.read_text().splitlines()
                                if "fetch_failed" in line])
    return lines[0]


@pytest.mark.parametrize("size, every, rate", [(1, 0.7, "[12]"), (9000, 1.9, "[1-9][0-9]{3}")],
                         ids=["bytes", "bursts"])
def test_a_file_below_the_lowest_rate_is_given_up(start, bad, size, every, rate):
    """Bursts, too: no few seconds of a window count for all of it."""
    drip(bad, size, every)
    daemon = start(f"[remote slow]\nkind = mlflow\nurl = {bad.url}\nallow_private = true\n"
                   "timeout = 2\nmin_rate = 10000\n")
    job = submit(daemon, "slow")
    line = failure(daemon)
    host = bad.url.removeprefix("http://")
    assert re.search(f"job={job} .*remote=slow host={host} code=remote_unavailable .*file of "
                     f"remote slow moved by {rate} bytes a second within 2 seconds, and its "
                     "min_rate is 10000", line), line
    # It is tried again, as after any other failure of the remote.
    assert daemon.job(job)["state"] == "queued"
    bad.fault, bad.files["0/models/m-0/model.onnx"] = None, MODEL
    assert daemon.succeeded(job)


def test_a_fetch_has_a_longest_time(start, bad):
    """The remote keeps its rate, and would hold the carrier for a quarter of an hour."""
    drip(bad, 2000, 0.1)
    daemon = start(f"[remote slow]\nkind = mlflow\nurl = {bad.url}\nallow_private = true\n"
                   "timeout = 2\ntotal_timeout = 3\n")
    began = time.monotonic()
    job = submit(daemon, "slow")
    assert "remote slow needs more than 3 seconds for all requests together (total_timeout)" in \
        failure(daemon)
    assert time.monotonic() - began < 20
    assert daemon.job(job)["state"] == "queued"
    daemon.post(f"/v1/jobs/{job}/cancel")
    assert b"qdqd_fetches_total" in daemon.get("/metrics").content


def test_a_silent_remote_names_the_setting(start, bad):
    bad.fault = lambda handler, path: bad.go_on.wait(60)
    daemon = start(f"[remote slow]\nkind = mlflow\nurl = {bad.url}\nallow_private = true\n"
                   "timeout = 1\n")
    job = submit(daemon, "slow")
    assert "remote slow moved no byte for 1 seconds (timeout)" in failure(daemon)
    daemon.post(f"/v1/jobs/{job}/cancel")


def test_a_slow_file_that_keeps_its_rate_arrives(start, bad):
    """It takes several windows, with pauses that are shorter than one."""
    model = bad.files["0/models/m-0/model.onnx"] = MODEL

    def send(handler, path):
        if not is_file(path):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(model)))
        handler.end_headers()
        for at in range(0, len(model), len(model) // 6 + 1):
            handler.wfile.write(model[at:at + len(model) // 6 + 1])
            time.sleep(0.8)
        return True

    bad.fault = send
    daemon = start(f"[remote slow]\nkind = mlflow\nurl = {bad.url}\nallow_private = true\n"
                   f"timeout = 2\nmin_rate = {len(model) // 20}\ntotal_timeout = 60\n")
    assert daemon.succeeded(submit(daemon, "slow"))
    assert "fetch_failed" not in daemon.log.read_text()


@pytest.mark.parametrize("work", ["fetch", "delivery", "poll"])
def test_a_carrier_that_is_stopped(start, bad, tmp_path, work):
    """It cannot heed total_timeout itself, so the daemon does."""
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    rule = (f"[hook x]\nremote = stuck\nmodels = *\npoll = 1\nspec = {tmp_path}/spec.json\n"
            "publish = models:/{name}-int8\n" if work == "poll" else "")
    bad.fault = lambda handler, path: bad.go_on.wait(60)
    daemon = start(f"[remote stuck]\nkind = mlflow\nurl = {bad.url}\nallow_private = true\n"
                   f"total_timeout = 2\n{rule}")
    if work == "fetch":
        submit(daemon, "stuck")
    elif work == "delivery":
        daemon.submit(model=daemon.upload("models", MODEL), spec=SPEC,
                      publish=[{"remote": "stuck", "ref": "models:/out"}])
    [carrier] = eventually(lambda: bad.paths() and carriers(daemon))
    os.kill(carrier, signal.SIGSTOP)
    eventually(lambda: not os.path.exists(f"/proc/{carrier}"), seconds=12)
    event = {"fetch": "fetch_failed", "delivery": "delivery_delayed", "poll": "hook_poll_failed"}[work]
    [line] = eventually(lambda: [line for line in daemon.log.read_text().splitlines()
                                 if f"event={event} " in line][:1])
    assert "total_timeout" in line and "code=remote_unavailable" in line
    bad.go_on.set()
