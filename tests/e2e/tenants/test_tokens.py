# SPDX-License-Identifier: Apache-2.0
"""Access tokens and their scopes. A daemon without tokens is closed to other machines."""

import hashlib
import os
import re
import socket
import subprocess
import time

import pytest

import access
import nets
from service import INSTALLED, problem
from test_refused_early import EXPECT, Connection

ROUTES = ["/v1/jobs", "/v1/layers", "/v1/targets", "/v1/errors", "/version", "/openapi.yaml", "/v1/nothing",
          "/v1/models/sha256:" + 64 * "0"]


def test_without_tokens_nobody_is_asked(daemon):
    assert daemon.get("/v1/jobs").status_code == 200
    assert daemon.get("/v1/jobs", headers={"Authorization": "Bearer x"}).status_code == 200


def test_from_the_first_token_on_one_is_needed(daemon):
    """This takes effect while the daemon runs, and stays when the last token is revoked.
    """
    token = access.add(daemon.state, "first")
    for path in ROUTES:
        answer = daemon.get(path)
        problem(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert daemon.get("/healthz").status_code == 200
    assert daemon.get("/readyz").status_code == 200
    one = access.client(daemon, token)
    assert one.get("/v1/jobs").status_code == 200
    problem(one.get("/v1/nothing"), 404, "not_found")
    assert access.command(daemon.state, "revoke", "first").returncode == 0
    answer = one.get("/v1/jobs")
    problem(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    (daemon.state / "tokens").unlink()
    problem(daemon.get("/v1/jobs"), 401, "unauthorized")


@pytest.mark.parametrize("form", ["{}", "Basic {}", "bearer", "Bearer", "Bearer  ", "Bearer {}x",
                                  "Bearer x{}", "Bearer {},{}", "Token {}"])
def test_what_is_no_token(daemon, form):
    """Headers without a valid token get 401."""
    token = access.add(daemon.state, "one")
    answer = daemon.get("/v1/jobs", headers={"Authorization": form.format(token, token)})
    problem(answer, 401, "unauthorized")


def test_the_word_has_no_case_and_the_token_has(daemon):
    token = access.add(daemon.state, "one")
    for header, status in ((f"bearer {token}", 200), (f"Bearer {token.upper()}", 401)):
        assert daemon.get("/v1/jobs", headers={"Authorization": header}).status_code == status


def test_scopes(daemon):
    may = {name: access.client(daemon, access.add(daemon.state, name, "--scope", name))
           for name in ("read", "submit", "admin")}
    for name, one in may.items():
        reads, submits = one.get("/v1/jobs"), one.post("/v1/models", data=nets.block_net())
        if name == "submit":
            found = problem(reads, 403, "forbidden")
            assert "read" in found["detail"]
        else:
            assert reads.status_code == 200
        if name == "read":
            found = problem(submits, 403, "forbidden")
            assert "submit" in found["detail"]
            assert "insufficient_scope" in submits.headers["WWW-Authenticate"]
        else:
            assert submits.status_code in (200, 201)


def test_refused_before_the_body(daemon):
    reader = access.add(daemon.state, "reader", "--scope", "read")
    cases = [(401, "unauthorized", []), (401, "unauthorized", ["Authorization: Bearer x"]),
             (403, "forbidden", [f"Authorization: Bearer {reader}"])]
    for status, code, headers in cases:
        with Connection(daemon) as one:
            one.head("POST", "/v1/models", EXPECT, "Content-Length: 999999", *headers)
            found = one.problem(status, code)
            assert "www-authenticate" in found
            assert one.ended()
    assert daemon.temporary_files() == []


def test_the_file_holds_hashes_and_is_nobody_elses(daemon):
    token = access.add(daemon.state, "one", "--scope", "read", "--scope", "admin", "--tenant", "a")
    path = daemon.state / "tokens"
    text = path.read_text()
    assert token not in text and token.removeprefix("qdqd_") not in text
    assert hashlib.sha256(token.encode()).hexdigest() in text
    assert path.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"qdqd_[0-9a-f]{64}", token)
    listed = access.command(daemon.state, "list").stdout
    assert re.fullmatch(r"one read,admin a \S+Z\n", listed)
    log = daemon.log.read_text()
    access.client(daemon, token).get("/v1/jobs")
    assert token not in log


def test_a_file_that_others_write_or_nobody_can_read_lets_nobody_in(daemon):
    """The file must be repaired first. Otherwise a mistake in it could admit a revoked
    token."""
    token = access.add(daemon.state, "one")
    one = access.client(daemon, token)
    path = daemon.state / "tokens"
    good = path.read_text()
    for spoilt, mode in ((good + "two\n", 0o600), (good, 0o622)):
        path.write_text(spoilt)
        path.chmod(mode)
        problem(one.get("/v1/jobs"), 500, "io")
        assert one.get("/healthz").status_code == 200
        path.write_text(good)
        path.chmod(0o600)
        assert one.get("/v1/jobs").status_code == 200


@pytest.mark.parametrize("words, said", [
    (["add"], "Usage"), (["add", "Upper"], "lower case"), (["add", "a", "--tenant", "../x"], "lower"),
    (["add", "a", "--scope", "root"], "--scope"), (["add", "first"], "there is a token"),
    (["add", "a", "--tenant", "t", "--queue", "x"], "tenants.queue: not a whole number"),
    (["add", "a", "--tenant", "t", "--queue", "1000001"], "not between"),
    (["add", "a", "--tenant", "t", "--max-bytes", "1T"], "tenants.max_bytes"),
    (["add", "a", "--job-timeout", "5"], "limits are a tenant's"),
    (["limit", "first", "--queue", "5"], "limits are a tenant's"),
    (["limit", "none", "--queue", "5"], "no token"), (["limit", "first"], "Usage"),
    (["list", "--queue", "5"], "Usage"), (["revoke", "first", "--queue", "5"], "Usage"),
    (["revoke", "none"], "no token"), (["revoke"], "Usage"), (["list", "x"], "Usage"), ([], "Usage"),
])
def test_the_command_says_what_is_wrong(tmp_path, words, said):
    access.add(tmp_path / "state", "first")
    done = access.command(tmp_path / "state", *words)
    assert done.returncode in (1, 2)
    assert said in done.stderr and not done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_writes_is_the_owners_of_the_folder(tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    os.chown(state, 65534, 65534)
    access.add(state, "first")
    assert {path.name: path.stat().st_uid for path in state.iterdir()} == {
        "tokens": 65534, "tokens.lock": 65534}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["tokens.tmp", "tokens.lock"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_root_changes_no_file_that_a_link_names(tmp_path, name, link):
    """The daemon's user may have made a link in the state folder."""
    state, victim = tmp_path / "state", tmp_path / "victim"
    state.mkdir(mode=0o700)
    victim.write_text("of root")
    link(victim, state / name)
    os.chown(state, 65534, 65534)
    done = access.command(state, "add", "first")
    assert done.returncode == (0 if name == "tokens.tmp" else 1), done
    assert victim.read_text() == "of root" and victim.stat().st_uid == 0


@pytest.mark.parametrize("before", [["--state-dir", "DIR"], ["--state-dir=DIR"]])
def test_the_command_behind_options(tmp_path, before):
    before = [word.replace("DIR", str(tmp_path)) for word in before]
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", *before, "token", "add", "ci", "--tenant", "t"],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("qdqd: the word token comes first, and options behind it: "
                           "qdqd token add NAME --config FILE\n")


# --- beyond this machine ------------------------------------------------------------------


def start_far(state, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")} | environment
    return subprocess.Popen([INSTALLED / "sbin" / "qdqd", "--listen", "0.0.0.0:0",
                             "--state-dir", state], env=env, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True)


def test_without_tokens_only_this_machine(tmp_path):
    """Without tokens the daemon starts only with a loopback address."""
    one = start_far(tmp_path / "state")
    assert one.wait(60) == 1
    said = one.stderr.read()
    assert "0.0.0.0" in said and "qdqd token" in said


def test_nor_when_the_last_was_revoked(tmp_path):
    """After the last token was revoked, the daemon still does not listen for other
    machines."""
    access.add(tmp_path / "state", "one")
    access.command(tmp_path / "state", "revoke", "one")
    one = start_far(tmp_path / "state")
    assert one.wait(60) == 1


def ask(port, host, token=None):
    lines = ["GET /v1/jobs HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        one.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        return int(one.makefile().readline().split()[1])


def test_with_tokens_also_others_by_the_names_that_it_has(tmp_path):
    """With tokens the daemon listens for other machines, and answers requests that name
    one of its hosts."""
    token = access.add(tmp_path / "state", "one")
    one = start_far(tmp_path / "state", QDQD_HTTP_HOSTS="quant.example, q2.example")
    try:
        line = next(line for line in one.stderr if "listening on" in line)
        port = int(line.rsplit(":", 1)[1])
        assert ask(port, "quant.example") == 401
        for host in ("quant.example", "Q2.example:80", "localhost", "0.0.0.0"):
            assert ask(port, host, token) == 200
        for host in ("evil.example", "quant", "quant.example.org"):
            assert ask(port, host, token) == 403
    finally:
        one.terminate()
        one.stderr.read()
        assert one.wait(60) == 0


def test_a_revoked_token_ends_its_streams(held, service):
    """Others go on. So does the job."""
    one = service(**held)
    whose = access.client(one, access.add(one.state, "whose", "--scope", "read,submit"))
    other = access.client(one, access.add(one.state, "other", "--scope", "read"))
    job = whose.submit_glyphs()
    whose.running(job)
    streams = [client.http.get(f"{one.url}/v1/jobs/{job}/events", stream=True, timeout=30)
               for client in (whose, other)]
    lines = [stream.iter_lines(chunk_size=1) for stream in streams]
    assert all(next(each) for each in lines)
    assert access.command(one.state, "revoke", "whose").returncode == 0
    began = time.monotonic()
    for line in lines[0]:
        assert time.monotonic() - began < 10 and not line.startswith(b"event: end")
    assert other.job(job)["state"] == "running"
    streams[1].close()
    problem(whose.http.get(f"{one.url}/v1/jobs/{job}/events"), 401, "unauthorized")
