# SPDX-License-Identifier: Apache-2.0
"""One tenant's connections, busy or idle, leave places for the other tenants. All come from one
address, as behind a proxy."""

import socket

import pytest

import access
from service import problem

PLACES = 32


@pytest.fixture
def many():
    """Makes a client's connections, each of which sends one request and reads the first line of
    its answer."""
    made = []

    def make(one, path, n):
        host, port = one.url.removeprefix("http://").split(":")
        lines = []
        for _ in range(n):
            client = socket.create_connection((host, int(port)), timeout=60)
            made.append(client)
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
                           f"{one.http.headers['Authorization']}\r\n\r\n".encode())
            lines.append(client.makefile("rb").readline().split()[1])
        return lines

    yield make
    for client in made:
        client.close()


@pytest.mark.parametrize("path", ["/v1/jobs?limit=1", "/v1/jobs/{job}/events"],
                         ids=["idle", "streams"])
def test_a_tenant_leaves_places(service, held, many, path):
    daemon = service(**held, http_connections=PLACES)
    a, b, c = (access.tenant(daemon, name) for name in "abc")
    job = a.submit_glyphs()
    a.running(job)
    a.http.close()
    daemon.http.close()
    lines = many(a, path.format(job=job), PLACES + 8)
    # It gets most of what nobody else wants, and then an answer.
    assert lines.count(b"200") >= PLACES * 3 // 4
    assert lines[-1] == b"503" and set(lines) == {b"200", b"503"}
    for other in (b, c):
        for _ in range(3):
            assert other.get("/v1/jobs").status_code == 200
            other.http.close()
    problem(a.get("/v1/jobs"), 503, "busy")
    assert a.get("/v1/jobs").headers["Connection"] == "close"
    a.http.headers["Authorization"] = "Bearer " + access.add(
        daemon.state, "admin", "--tenant", "d", "--scope", "admin")
    a.post(f"/v1/jobs/{job}/cancel", headers={"Qdqd-Tenant": "a"})


def test_a_tenant_alone_may_have_all(service, many):
    """Without tokens there is one tenant."""
    daemon = service(http_connections=PLACES)
    daemon.http.close()
    daemon.http.headers["Authorization"] = "Bearer none"
    assert many(daemon, "/v1/jobs", PLACES - 2) == [b"200"] * (PLACES - 2)
