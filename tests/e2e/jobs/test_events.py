# SPDX-License-Identifier: Apache-2.0
"""Server-sent events of a job."""

import json
import os
import socket
import threading

import requests

from service import anonymous_kib, eventually, kill_process, problem


def parse(lines):
    """Returns events as (id, name, data), and comments as (None, None, text)."""
    fields = {}
    for line in lines:
        if line.startswith(":"):
            yield None, None, line[1:]
        elif line:
            name, value = line.split(": ", 1)
            assert name not in fields
            fields[name] = value
        elif fields:
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields = {}
    assert not fields, "the stream ended within an event"


class Stream:
    def __init__(self, service, job, last=None):
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        self.answer = requests.get(f"{service.url}/v1/jobs/{job}/events", stream=True,
                                   headers=headers, timeout=60)
        self.status = self.answer.status_code
        if self.status == 200:
            assert self.answer.headers["Content-Type"] == "text/event-stream"
        self.events = parse(self.answer.iter_lines(chunk_size=1, decode_unicode=True))

    def next(self):
        return next(self.events)

    def rest(self):
        return [event for event in self.events if event[1]]

    def close(self):
        self.answer.close()


def states(events):
    return [(i, data["state"]) for i, name, data in events if name != "progress"]


def check_life(service, job, events):
    """Checks the order of events that every complete stream of a job has."""
    ids = [event[0] for event in events]
    assert ids == sorted(ids)
    assert [name for _, name, _ in events if name == "end"] == ["end"]
    assert events[-1][1] == "end"
    assert events[-1][2] == service.job(job)
    told = states(events)
    assert [i for i, _ in told] == list(range(told[0][0], told[0][0] + len(told)))


def test_life_of_a_job(slow, service):
    one = service(**slow)
    job = one.submit_glyphs()
    events = Stream(one, job).rest()
    check_life(one, job, events)
    assert [s for _, s in states(events)][-2:] == ["running", "succeeded"]
    progress = [data for _, name, data in events if name == "progress"]
    assert progress
    for data in progress:
        assert data["stage"] and data["done"] <= data["total"] or data["total"] == 0
    assert all(i == 2 for i, name, _ in events if name == "progress")


def check_head(daemon, path):
    """Checks that HEAD gets the head alone, because a body would be read as the next
    answer."""
    host, port = daemon.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(f"HEAD {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        told = b""
        while part := client.recv(4096):
            told += part
    assert told.startswith(b"HTTP/1.1 200 ") and told.index(b"\r\n\r\n") + 4 == len(told)


def test_ended_job(daemon):
    job = daemon.submit_glyphs()
    document = daemon.succeeded(job)
    answer = daemon.get(f"/v1/jobs/{job}/events")
    (end,) = parse(answer.text.split("\n"))
    assert end == (3, "end", document)
    again = {"Last-Event-ID": "3"}
    assert daemon.get(f"/v1/jobs/{job}/events", headers=again).status_code == 204
    # A client that continues anywhere gets the events that it missed, in order.
    for last, missed in [("1", [2, 3]), ("2", [3])]:
        found = list(parse(daemon.get(f"/v1/jobs/{job}/events", headers={
            "Last-Event-ID": last}).text.split("\n")))
        assert [i for i, _, _ in found] == missed
        assert found[-1] == end
    running = list(parse(daemon.get(f"/v1/jobs/{job}/events", headers={
        "Last-Event-ID": "1"}).text.split("\n")))[0][2]
    assert running["state"] == "running"
    assert running["started_at"] == document["started_at"]
    assert running["ended_at"] is running["result"] is None
    for nonsense in ("x", "-1", "99", "1" * 30, ""):
        found = list(parse(daemon.get(f"/v1/jobs/{job}/events", headers={
            "Last-Event-ID": nonsense}).text.split("\n")))
        assert found == [end], nonsense
    check_head(daemon, f"/v1/jobs/{job}/events")
    problem(daemon.get("/v1/jobs/nobody/events"), 404, "not_found")
    daemon.request("DELETE", f"/v1/jobs/{job}")
    problem(daemon.get(f"/v1/jobs/{job}/events", headers=again), 404, "not_found")


def test_resume_repeats_and_loses_nothing(held, service):
    one = service(**held)
    first = one.submit_glyphs()
    one.running(first)
    job = one.submit_glyphs("glyph_mobilenet")
    stream = Stream(one, job)
    assert stream.next()[:2] == (1, "state")
    stream.close()
    waiting = Stream(one, job, last=1)
    one.post(f"/v1/jobs/{first}/cancel")
    event = waiting.next()  # the queued state was not sent again
    assert event[:2] == (2, "state") and event[2]["state"] == "running"
    resumed = Stream(one, job, last=2)
    one.post(f"/v1/jobs/{job}/cancel")
    for rest in (waiting.rest(), resumed.rest()):
        assert states(rest) == [(3, "cancelled")]


def test_cancelled_in_the_queue(held, service):
    one = service(**held)
    first = one.submit_glyphs()
    one.running(first)
    job = one.submit_glyphs("glyph_mobilenet")
    stream = Stream(one, job)
    assert stream.next()[:2] == (1, "state")  # a stream begins with the current state
    one.post(f"/v1/jobs/{job}/cancel")
    assert states(stream.rest()) == [(2, "cancelled")]
    assert states(Stream(one, job, last=1).rest()) == [(2, "cancelled")]  # it never ran
    one.post(f"/v1/jobs/{first}/cancel")


def test_every_change_is_told(held, service):
    """A job whose worker dies returns to the queue, and the stream reports each of these
    changes."""
    one = service(**held)
    job = one.submit_glyphs()
    one.running(job)
    stream = Stream(one, job)
    begin = stream.next()
    killed = set()
    for _ in range(2):
        worker = one.worker_of_the_job(but=killed)
        kill_process(worker)
        killed.add(worker)
    events = [begin, *stream.rest()]
    check_life(one, job, events)
    assert states(events) == [(2, "running"), (3, "queued"), (4, "running"),
                              (5, "failed")]
    assert states(Stream(one, job, last=2).rest()) == states(events)[1:]


def open_streams(service, job, n):
    host, port = service.url.removeprefix("http://").split(":")
    opened = []
    for _ in range(n):
        one = socket.create_connection((host, int(port)), timeout=60)
        one.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    .encode())
        opened.append(one)
    for one in opened:
        while b"event: " not in one.recv(65536):
            pass
    return opened


def held_things(service):
    """Returns the daemon's numbers of descriptors and threads."""
    pid = service.process.pid
    return [len(os.listdir(f"/proc/{pid}/{kind}")) for kind in ("fd", "task")]


def test_two_hundred_idle_streams(held, service):
    """Idle streams cost little memory, and leave no descriptor or thread when their
    clients close them."""
    one = service(**held)
    job = one.submit_glyphs()
    one.running(job)
    one.http.close()
    before = held_things(one)
    streams = open_streams(one, job, 200)
    assert min(held_things(one)) > 200
    kib = anonymous_kib(one.process.pid)
    print(f"RssAnon with 200 streams: {kib} KiB")
    assert kib < 64 << 10
    for stream in streams:
        stream.close()
    eventually(lambda: all(now <= then for now, then in zip(held_things(one), before)))
    one.post(f"/v1/jobs/{job}/cancel")


def test_quiet_streams_show_that_they_live(held, service):
    """Comments come more often than http.timeout, and keep the connection open."""
    one = service(http_timeout=2, **held)
    first = one.submit_glyphs()
    one.running(first)
    job = one.submit_glyphs("glyph_mobilenet")
    stream = Stream(one, job)
    assert stream.next()[:2] == (1, "state")
    for _ in range(5):
        assert stream.next() == (None, None, "")
    for held_job in (job, first):
        one.post(f"/v1/jobs/{held_job}/cancel")
    assert states(stream.rest()) == [(2, "cancelled")]


def test_streams_end_when_the_daemon_stops(slow, service):
    one = service(**slow)
    running = one.submit_glyphs()
    queued = one.submit_glyphs("glyph_mobilenet")
    one.running(running)
    of_queued, of_running = Stream(one, queued), Stream(one, running)
    ended = []
    thread = threading.Thread(target=lambda: ended.extend(of_running.rest()))
    thread.start()
    one.process.terminate()
    assert states(of_queued.rest()) == [(1, "queued")]
    thread.join(60)
    assert states(ended) == [(2, "running"), (3, "succeeded")]
    assert one.process.wait(60) == 0
    one.process = None


def test_stopping_breaks_no_stream_off(held, service):
    """When the drain's time is over, the job returns to the queue, and the stream reports
    that before it ends."""
    one = service(**held)
    job = one.submit_glyphs()
    one.running(job)
    stream = Stream(one, job)
    assert states([stream.next()]) == [(2, "running")]
    one.process.terminate()
    assert states(stream.rest()) == [(3, "queued")]
    assert one.process.wait(60) == 0
    one.process = None
