# SPDX-License-Identifier: Apache-2.0
"""Conditional requests by RFC 9110, 13: each route with a tag, without one, and with none yet."""

import hashlib

import pytest

import nets
from service import problem
from test_refused_early import Connection

pytestmark = pytest.mark.shares_daemon
MODEL = nets.block_net()
OTHER = f'"sha256:{"0" * 64}"'


@pytest.fixture
def job(daemon):
    job = daemon.submit(model=daemon.upload("models", MODEL),
                        spec={"calibration": {"random_samples": 2}})
    daemon.succeeded(job)
    return f"/v1/jobs/{job}"


def tagged(job):
    """The paths whose answers have a tag, and what they accept."""
    blob = f"/v1/models/sha256:{hashlib.sha256(MODEL).hexdigest()}"
    yield blob, {}
    yield job + "/model", {}
    yield job + "/spec", {}
    yield job + "/report?histograms=0", {}
    yield job + "/report?histograms=1", {}
    for form in ("application/json", "text/markdown", "text/html"):
        yield job + "/report", {"Accept": form}


def test_reading_with_a_tag(daemon, job):
    for path, headers in tagged(job):
        def ask(method="GET", **more):
            return daemon.request(method, path, headers={
                **headers, **{k.replace("_", "-"): v for k, v in more.items()}})

        whole = ask()
        tag = whole.headers["ETag"]
        assert tag == f'"sha256:{hashlib.sha256(whole.content).hexdigest()}"'
        for method in ("GET", "HEAD"):
            for good in (tag, "*", f"{OTHER}, {tag}", f"W/{tag}, {tag}"):
                assert ask(method, If_Match=good).status_code == 200, (path, good)
            for bad in (OTHER, f"W/{tag}", tag.strip('"'), "", f"{tag}x", tag[:-1]):
                answer = ask(method, If_Match=bad)
                assert answer.status_code == 412, (path, bad)
                assert "ETag" not in answer.headers
            for known in (tag, f"W/{tag}", "*", f"{OTHER}, {tag}"):
                answer = ask(method, If_None_Match=known)
                assert (answer.status_code, answer.content) == (304, b""), (path, known)
                assert answer.headers["ETag"] == tag
            assert ask(method, If_None_Match=OTHER).status_code == 200
        problem(ask(If_Match=OTHER), 412, "precondition_failed")
        # If-Match comes first.
        assert ask(If_Match=OTHER, If_None_Match=tag).status_code == 412
        assert ask(If_Match=tag, If_None_Match=tag).status_code == 304
        # Dates say nothing: there is no time of modification.
        never = "Thu, 01 Jan 1970 00:00:00 GMT"
        assert ask(If_Unmodified_Since=never, If_Modified_Since=never).content == whole.content


def test_a_range_comes_after_the_conditions(daemon, job):
    path = job + "/model"
    tag = daemon.get(path).headers["ETag"]
    for sent, match, status in (("bytes=0-9", tag, 206), ("bytes=0-9", OTHER, 412),
                                ("bytes=999999999-", tag, 416), ("bytes=999999999-", OTHER, 412)):
        answer = daemon.get(path, headers={"Range": sent, "If-Match": match})
        assert answer.status_code == status, (sent, match)


def test_reading_without_a_tag(daemon, job):
    for path in (job, "/v1/jobs", "/v1/targets", "/healthz", job + "/events"):
        assert daemon.get(path, headers={"If-Match": "*"}).status_code == 200
        problem(daemon.get(path, headers={"If-Match": OTHER}), 412, "precondition_failed")
        assert daemon.get(path, headers={"If-None-Match": OTHER}).status_code == 200
        assert daemon.get(path, headers={"If-None-Match": "*"}).status_code == 304
    # A request that fails without a condition fails with one.
    problem(daemon.get("/v1/jobs/none", headers={"If-Match": OTHER}), 404, "not_found")
    problem(daemon.get("/v1/nothing", headers={"If-None-Match": "*"}), 404, "not_found")


def test_a_blob_is_stored_only_once(daemon):
    body = b"a blob of test_conditions"
    id = "sha256:" + hashlib.sha256(body).hexdigest()
    path, tag = f"/v1/blobs/{id}", f'"{id}"'

    def put(**headers):
        return daemon.request("PUT", path, data=body, headers={
            k.replace("_", "-"): v for k, v in headers.items()})

    for absent in ("*", tag):
        problem(put(If_Match=absent), 412, "precondition_failed")
    problem(daemon.get(path), 404, "not_found")
    assert put(If_None_Match="*").status_code == 201
    for there in ("*", tag, f"W/{tag}", f"{OTHER}, {tag}"):
        problem(put(If_None_Match=there), 412, "precondition_failed")
    for good in ({"If_Match": "*"}, {"If_Match": tag}, {"If_None_Match": OTHER}):
        assert put(**good).status_code == 200
    problem(put(If_Match=f"W/{tag}"), 412, "precondition_failed")
    # The answer comes before the body.
    with Connection(daemon) as one:
        one.head("PUT", path, "If-None-Match: *", "Expect: 100-continue",
                 "Content-Length: 1000000000")
        assert one.answer()[0] == 412


@pytest.mark.parametrize("kind", ["blobs", "models", "datasets", "jobs"])
def test_deleting(daemon, kind):
    if kind == "blobs":
        body = b"another blob of test_conditions"
        path = "/v1/blobs/sha256:" + hashlib.sha256(body).hexdigest()
        assert daemon.request("PUT", path, data=body).status_code == 201
    elif kind == "jobs":
        job = daemon.submit(model=daemon.upload("models", MODEL), spec={"calibration": {
            "random_samples": 2}})
        daemon.succeeded(job)
        path = f"/v1/jobs/{job}"
    else:
        data = {"models": MODEL, "datasets": nets.samples()}[kind]
        path = f"/v1/{kind}/" + daemon.upload(kind, data)
    tag = f'"{path.rpartition("/")[2]}"'

    def delete(**headers):
        return daemon.request("DELETE", path, headers={
            k.replace("_", "-"): v for k, v in headers.items()})

    problem(delete(If_Match=OTHER), 412, "precondition_failed")
    problem(delete(If_None_Match="*"), 412, "precondition_failed")
    if kind in ("datasets", "jobs"):  # these are read as JSON, which has no tag
        problem(delete(If_Match=tag), 412, "precondition_failed")
    assert daemon.get(path).status_code == 200
    assert delete(If_Match="*" if kind in ("datasets", "jobs") else tag).status_code == 204
    problem(delete(If_Match=tag), 404, "not_found")


def test_making(daemon, job):
    """A path that cannot be read has no representation, and a list has one without a tag."""
    model = daemon.upload("models", MODEL)
    asked = {"model": model, "spec": {"calibration": {"random_samples": 2}}}
    for path, can_be_read in (("/v1/jobs", True), ("/v1/plan", False)):
        def post(**headers):
            return daemon.post(path, json=asked, headers={
                k.replace("_", "-"): v for k, v in headers.items()})

        problem(post(If_Match=OTHER), 412, "precondition_failed")
        assert (post(If_Match="*").status_code == 412) != can_be_read
        assert (post(If_None_Match="*").status_code == 412) == can_be_read
        assert post(If_None_Match=OTHER).status_code < 300
