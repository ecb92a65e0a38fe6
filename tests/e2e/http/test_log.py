# SPDX-License-Identifier: Apache-2.0
"""Requests in the log and in their answers: ids, traces, tenants and jobs."""

import json
import re

import pytest

import access
from service import eventually, problem

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def lines(daemon, **wanted):
    """Returns the lines of a JSON log that have these members."""
    found = []
    for line in daemon.log.read_text().splitlines():
        if line.startswith("{"):
            members = json.loads(line)
            if wanted.items() <= members.items():
                found.append(members)
    return found


def line(daemon, **wanted):
    return eventually(lambda: lines(daemon, **wanted))[0]


def test_request_id_in_and_out(daemon):
    answer = daemon.get("/v1/jobs", headers={"X-Request-Id": "mine-1:a.b_c"})
    assert answer.headers["X-Request-Id"] == "mine-1:a.b_c"
    eventually(lambda: "event=request request=mine-1:a.b_c tenant=- method=GET "
               "route=/v1/jobs status=200" in daemon.log.read_text())


@pytest.mark.shares_daemon
@pytest.mark.parametrize("id", ["", "x" * 65, "a b", "a\"b", "a=b", "ü".encode("latin1")])
def test_request_id_that_is_none(daemon, id):
    first, second = (daemon.get("/v1/jobs", headers={"X-Request-Id": id}) for _ in range(2))
    ids = [a.headers["X-Request-Id"] for a in (first, second)]
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in ids) and ids[0] != ids[1]


def test_request_id_of_a_problem(daemon):
    answer = daemon.get("/v1/jobs/none", headers={"X-Request-Id": "r1"})
    problem(answer, 404, "not_found")
    assert answer.headers["X-Request-Id"] == "r1"
    eventually(lambda: "request=r1 tenant=- method=GET route=/v1/jobs/{id} status=404"
               in daemon.log.read_text())


def test_trace(daemon):
    answer = daemon.get("/v1/jobs", headers={"traceparent": PARENT})
    got = re.fullmatch(f"00-{TRACE}-([0-9a-f]{{16}})-01", answer.headers["traceparent"])
    assert got and got[1] != "00f067aa0ba902b7"
    eventually(lambda: f"trace={TRACE} span={got[1]}" in daemon.log.read_text())
    assert "traceparent" not in daemon.get("/v1/jobs").headers


@pytest.mark.shares_daemon
@pytest.mark.parametrize("parent", [
    "", "00", PARENT[:-1], PARENT + "0", PARENT + "-x", PARENT.upper(), "ff" + PARENT[2:],
    f"00-{32 * '0'}-00f067aa0ba902b7-01", f"00-{TRACE}-{16 * '0'}-01", f"00-{TRACE}-x-01"])
def test_trace_that_is_none(daemon, parent):
    assert "traceparent" not in daemon.get(
        "/v1/jobs", headers={"traceparent": parent}).headers


def test_trace_of_a_later_version(daemon):
    answer = daemon.get("/v1/jobs", headers={"traceparent": "01" + PARENT[2:] + "-more"})
    assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")


def test_json(service):
    daemon = service(log_format="json")
    tenant = access.tenant(daemon, "team")
    job = tenant.submit_glyphs()
    tenant.succeeded(job)
    problem(tenant.post("/v1/jobs", data=b"{", headers={"Content-Type": "application/json",
                                                        "X-Request-Id": "bad"}),
            400, "invalid_json")
    post = line(daemon, event="request", route="/v1/jobs", status=202)
    assert post["tenant"] == "team" and post["job"] == job and post["level"] == "info"
    assert isinstance(post["seconds"], float) and post["received"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", post["time"])
    assert line(daemon, event="job_started", job=job)["tenant"] == "team"
    assert line(daemon, event="job_succeeded", job=job)["tenant"] == "team"
    assert line(daemon, event="request", request="bad")["status"] == 400
    rest = [x for x in daemon.log.read_text().splitlines() if not x.startswith("{")]
    assert all(x.startswith("listening on") for x in rest), rest


@pytest.mark.parametrize("which", ["errors", "none"])
def test_which_requests(service, which):
    daemon = service(log_requests=which)
    daemon.get("/v1/jobs")
    daemon.get("/v1/jobs/none")
    daemon.get("/v1/layers")
    if which == "errors":
        eventually(lambda: "event=request " in daemon.log.read_text())
    daemon.stop()
    assert daemon.log.read_text().count("event=request ") == (which == "errors")


def test_levels_in_the_journal(service):
    one = service()
    one.stop()
    file, before = one.log.stat(), len(one.log.read_text())
    one.start(JOURNAL_STREAM=f"{file.st_dev}:{file.st_ino}")
    one.succeeded(one.submit_glyphs("glyph_mobilenet"))
    one.stop()
    found = [text for text in one.log.read_text()[before:].splitlines() if "event=" in text]
    assert len(found) > 3 and all(text.startswith("<6>20") for text in found)


def test_no_levels_in_another_file(service):
    one = service()
    one.stop()
    one.start(JOURNAL_STREAM="1:2")
    one.stop()
    assert "event=started" in one.log.read_text()
    assert "<6>" not in one.log.read_text()
