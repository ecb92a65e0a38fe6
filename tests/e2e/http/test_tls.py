# SPDX-License-Identifier: Apache-2.0
"""TLS, Unix sockets, and sockets that systemd has opened."""

import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys

import pytest
import requests

import access
import nets
from service import INSTALLED, Service, eventually, problem


def make_certificate(folder, name):
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def cert(tmp_path):
    return make_certificate(tmp_path, "first")


@pytest.fixture
def secure(service, cert, monkeypatch):
    """Makes daemons with TLS, whose clients know the certificate."""
    plain = Service.get

    def get(self, path, **options):
        self.url = self.url.replace("http://", "https://")
        self.http.verify = str(cert[0])
        return plain(self, path, **options)

    def make(**settings):
        monkeypatch.setattr(Service, "get", get)
        return service(http_tls_cert=cert[0], http_tls_key=cert[1], **settings)
    return make


def served(port, **options):
    """Returns the certificate that the daemon presents now."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in options.items():
        setattr(context, name, value)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as one:
            return one.getpeercert(True), one.version()


def port_of(daemon):
    return int(daemon.url.rsplit(":", 1)[1])


def test_a_job_by_tls(secure):
    daemon = secure()
    assert daemon.url.startswith("https://")
    answer = daemon.quantize(nets.block_net(), nets.samples())
    assert answer.status_code == 200 and len(answer.content) > 1000
    assert daemon.get("/healthz").status_code == 200
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(daemon.url + "/healthz", timeout=60)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(daemon.url.replace("https", "http") + "/healthz", timeout=60)


def test_versions(secure):
    daemon = secure()
    assert served(port_of(daemon))[1] == "TLSv1.3"
    assert served(port_of(daemon), maximum_version=ssl.TLSVersion.TLSv1_2)[1] == "TLSv1.2"
    with pytest.raises(ssl.SSLError), pytest.warns(DeprecationWarning):
        served(port_of(daemon), minimum_version=ssl.TLSVersion.TLSv1,
               maximum_version=ssl.TLSVersion.TLSv1_1)


def test_what_is_refused_in_the_middle_of_a_body_is_told(secure):
    daemon = secure(http_max_body="1M")

    def pieces():  # not more than the daemon reads and drops
        for _ in range(60):
            yield bytes(100_000)
    problem(daemon.post("/v1/models", data=pieces()), 413, "too_large")


def test_stalled_handshakes(secure):
    daemon = secure(http_connections=8, http_header_timeout=3)
    many = [socket.create_connection(("127.0.0.1", port_of(daemon))) for _ in range(60)]
    for one in many[:30]:
        one.sendall(b"\x16\x03\x01")
    assert requests.get(daemon.url + "/healthz", verify=daemon.http.verify,
                        timeout=60).status_code == 200
    eventually(lambda: daemon.get("/v1/jobs").status_code == 200)
    for one in many:
        one.close()


def test_a_new_certificate_without_a_restart(secure, cert, tmp_path):
    daemon = secure()
    first = served(port_of(daemon))[0]
    new, key = make_certificate(tmp_path, "second")
    cert[1].write_bytes(key.read_bytes())  # an invalid pair: the old one stays in use
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "event=reload_failed" in daemon.log.read_text())
    assert served(port_of(daemon))[0] == first
    cert[0].write_bytes(new.read_bytes())
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "event=reloaded" in daemon.log.read_text())
    assert served(port_of(daemon))[0] == ssl.PEM_cert_to_DER_cert(new.read_text())
    assert daemon.get("/healthz").status_code == 200


@pytest.mark.parametrize("spoil, said", [
    (lambda c, k, other: c.write_text("nonsense"), "http.tls_cert"),
    (lambda c, k, other: c.unlink(), "http.tls_cert"),
    (lambda c, k, other: k.unlink(), "http.tls_key"),
    (lambda c, k, other: k.write_bytes(other.read_bytes()), "not the key"),
], ids=["no certificate", "none", "no key", "another's key"])
def test_it_does_not_start_with(tmp_path, cert, spoil, said):
    """The daemon does not start with a certificate or key that it cannot use, and says
    why."""
    spoil(*cert, make_certificate(tmp_path, "other")[1])
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "--listen", "127.0.0.1:0", "--state-dir",
                           tmp_path / "state"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "QDQD_HTTP_TLS_CERT": str(cert[0]),
                               "QDQD_HTTP_TLS_KEY": str(cert[1])})
    assert done.returncode == 1 and said in done.stderr


# --- other sockets ------------------------------------------------------------------------


def ask(one, path="/v1/jobs", *headers):
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    one.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
    text = one.makefile("rb").read()
    return int(text.split()[1]), text.partition(b"\r\n\r\n")[2]


def unix(path):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(60)
    one.connect(str(path))
    return one


def start(*words, **options):
    return subprocess.Popen([INSTALLED / "sbin" / "qdqd", *words], stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, **options)


def listening(process):
    return next(line for line in process.stderr if "listening on" in line)


def end(process):
    process.terminate()
    process.stderr.read()
    assert process.wait(60) == 0


def test_a_unix_socket(tmp_path):
    path = tmp_path / "socket"
    one = start("--listen", f"unix:{path}", "--state-dir", tmp_path / "state")
    try:
        listening(one)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert ask(unix(path))[0] == 200
        token = access.add(tmp_path / "state", "one")
        assert ask(unix(path))[0] == 401
        assert ask(unix(path), "/v1/jobs", f"Authorization: Bearer {token}")[0] == 200
    finally:
        end(one)
    assert not path.exists()


# Passes the socket as descriptor 3, as systemd does.
ACTIVATE = """
import os, sys
fd = int(sys.argv[1])
os.dup2(fd, 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


def activate(listener, n, *words):
    return subprocess.Popen([sys.executable, "-c", ACTIVATE, str(listener.fileno()), str(n),
                             INSTALLED / "sbin" / "qdqd", *words], stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, pass_fds=[listener.fileno()])


def test_a_socket_of_systemd(tmp_path):
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    early = socket.create_connection(address, timeout=30)  # waits while it starts
    one = activate(listener, 1, "--listen", "192.0.2.1:1", "--state-dir", tmp_path / "state")
    try:
        assert listening(one).strip().endswith(f":{address[1]}")
        status, body = ask(early)
        assert status == 200 and json.loads(body)["jobs"] == []
    finally:
        end(one)


def test_a_unix_socket_of_systemd_stays(tmp_path):
    path = tmp_path / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    one = activate(listener, 1, "--state-dir", tmp_path / "state")
    try:
        assert str(path) in listening(one)
        assert ask(unix(path))[0] == 200
    finally:
        end(one)
    assert path.exists()


@pytest.mark.parametrize("host, n", [("0.0.0.0", 1), ("127.0.0.1", 2)])
def test_a_socket_of_systemd_that_is_refused(tmp_path, host, n):
    """A socket that other machines reach is refused without tokens, and so is a second
    socket."""
    listener = socket.create_server((host, 0))
    one = activate(listener, n, "--state-dir", tmp_path / "state")
    assert one.wait(60) == 1
    assert "from systemd" in one.stderr.read()
