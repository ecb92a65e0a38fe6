# SPDX-License-Identifier: Apache-2.0
"""Remotes whose certificate is not valid. Each error says why, and the file never arrives."""

import http.server
import re
import ssl
import subprocess
import threading

import pytest

import nets
from far import Handler
from service import Service, eventually

EXTENSIONS = """
[root]
basicConstraints = critical, CA:TRUE
keyUsage = keyCertSign
[good]
subjectAltName = DNS:localhost, IP:127.0.0.1
[other]
subjectAltName = DNS:mlflow.example
"""


def openssl(folder, *words):
    subprocess.run(["openssl", *map(str, words)], cwd=folder, check=True, capture_output=True)


def make_root(folder, name):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", 9, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def sign(folder, name, issuer, extensions, *dates):
    """Makes a certificate that `issuer` signs."""
    openssl(folder, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    openssl(folder, "ca", "-batch", "-notext", "-config", "ca.conf", "-extfile", "extensions", "-extensions",
            extensions, "-cert", f"{issuer}.pem", "-keyfile", f"{issuer}.key", "-in", f"{name}.csr",
            "-out", f"{name}.pem", *(dates or ("-days", 9)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "extensions").write_text(EXTENSIONS)
    (folder / "ca.conf").write_text(
        "[ca]\ndefault_ca = one\n[one]\ndatabase = index\nnew_certs_dir = .\nrand_serial = yes\n"
        "default_md = sha256\nunique_subject = no\npolicy = any\n[any]\ncommonName = supplied\n")
    (folder / "index").touch()
    make_root(folder, "authority")
    sign(folder, "middle", "authority", "root")
    sign(folder, "good", "authority", "good")
    sign(folder, "other", "authority", "other")
    sign(folder, "old", "authority", "good", "-startdate", "20200101000000Z", "-enddate", "20210101000000Z")
    sign(folder, "early", "authority", "good", "-startdate", "20490101000000Z", "-enddate", "20491231000000Z")
    sign(folder, "leaf", "middle", "good")
    make_root(folder, "itself")
    make_root(folder, "stranger")
    sign(folder, "strange", "stranger", "good")
    (folder / "chain.pem").write_text((folder / "leaf.pem").read_text() + (folder / "middle.pem").read_text())
    (folder / "chain.key").write_text((folder / "leaf.key").read_text())
    (folder / "sent.pem").write_text(
        (folder / "strange.pem").read_text() + (folder / "stranger.pem").read_text())
    (folder / "sent.key").write_text((folder / "strange.key").read_text())
    return folder


class Far(http.server.ThreadingHTTPServer):
    """A registry behind TLS. Only a client that takes the certificate gets as far as a request."""

    daemon_threads = True

    def __init__(self, folder, name):
        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.host = f"127.0.0.1:{self.server_port}"
        self.lock, self.seen, self.fault, self.runs = threading.Lock(), [], None, 0
        self.versions = {"glyph": [{"name": "glyph", "version": "1", "source": "models:/m-0", "tags": []}]}
        self.aliases = {}
        self.files = {"0/models/m-0/model.onnx": nets.block_net()}
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, *_):
        pass


SERVED = {
    "old": "that has expired",
    "early": "that is not valid yet",
    "other": "that is for another host than its url names",
    "itself": "that is signed by itself",
    "leaf": "whose issuer is not known: the remote does not send its intermediate certificates",
    "strange": "whose issuer is not known",
    "sent": "of an authority that is not known",
}


@pytest.fixture(scope="module")
def daemon(folder, tmp_path_factory):
    """Has a remote for each certificate, which a webhook is, too."""
    place = tmp_path_factory.mktemp("daemon")
    fars = {name: Far(folder, name) for name in ("good", "chain", *SERVED)}
    secret = place / "secret"
    secret.write_text("whsec_" + "A" * 40)
    secret.chmod(0o600)
    (place / "qdqd.conf").write_text("".join(
        f"[remote {name}]\nkind = {kind}\nurl = https://{far.host}\nallow_private = true\ntimeout = 5\n"
        f"ca = {folder}/authority.pem\n{more}"
        for kind, more, names in (("mlflow", "", ""), ("webhook", f"secret = {secret}\n", "told-"))
        for name, far in ((names + one, fars[one]) for one in fars)))
    one = Service(place)
    one.arguments = ["--config", place / "qdqd.conf"]
    one.fars = fars
    yield one.start()
    one.stop()
    for far in fars.values():
        far.shutdown()
        far.server_close()


def fetch(daemon, remote):
    answer = daemon.post("/v1/jobs", json={
        "model": f"{remote}:models:/glyph/1", "fresh": True,
        "spec": {"calibration": {"random_samples": 2}, "evaluate": False}})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


@pytest.mark.parametrize("name", ["good", "chain"])
def test_a_valid_certificate(daemon, name):
    assert daemon.succeeded(fetch(daemon, name))


@pytest.mark.parametrize("name", SERVED)
def test_a_certificate_that_is_not_valid(daemon, name):
    job = fetch(daemon, name)
    document = eventually(lambda: (one := daemon.job(job))["state"] == "failed" and one)
    assert document["error"]["code"] == "remote_denied"
    assert f"remote {name} has a certificate {SERVED[name]}" in document["error"]["detail"]
    # It is not tried again, and nothing was asked of such a host.
    text = daemon.log.read_text()
    assert len(re.findall(f"event=job_fetches job={job} ", text)) == 1
    assert re.search(f"event=fetch_failed job={job} .*remote={name} host={daemon.fars[name].host} ", text)
    assert not daemon.fars[name].seen
    # Nor was it told of the job's end.
    failed = eventually(lambda: [line for line in daemon.log.read_text().splitlines()
                                 if "event=delivery_failed" in line and f" remote=told-{name} " in line])
    assert f"host={daemon.fars[name].host} attempt=1 code=remote_denied" in failed[0]
    assert f"remote told-{name} has a certificate {SERVED[name]}" in failed[0]
