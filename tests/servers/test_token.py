# SPDX-License-Identifier: Apache-2.0
"""A signing key in a token of PKCS#11 (SoftHSM), which never leaves it."""

import subprocess

import pytest

import registry
from lineage import make_key, openssl, opened, write_result
from service import Service, problem

PIN = "4711-secret"


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    """A token with a key whose public half is token.public, and the URI of the key."""
    folder = tmp_path_factory.mktemp("token")
    module = registry.program("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\n")
    private, public = make_key(folder)
    openssl(folder, "pkcs8", "-topk8", "-nocrypt", "-in", private, "-out", "key.p8")
    environment = {"SOFTHSM2_CONF": str(folder / "softhsm2.conf"), "PATH": "/usr/bin:/bin"}
    for words in (["--init-token", "--free", "--label", "qdqd", "--so-pin", "12345678", "--pin", PIN],
                  ["--import", folder / "key.p8", "--token", "qdqd", "--label", "signing", "--id", "a1", "--pin", PIN]):
        subprocess.run(["softhsm2-util", *map(str, words)], env=environment, check=True, capture_output=True)
    private.unlink()
    (folder / "key.p8").unlink()
    (folder / "pin").write_text(PIN)
    (folder / "pin").chmod(0o600)

    class Token:
        uri = (f"pkcs11:token=qdqd;object=signing;type=private?module-path={module}"
               f"&pin-source=file:{folder}/pin")
    Token.folder, Token.public, Token.environment = folder, public, environment
    return Token


@pytest.fixture(scope="module")
def signing(token, tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("daemon"), QDQD_SIGNING_KEY=token.uri, QDQD_WORKERS_CAGE="require",
                      SOFTHSM2_CONF=token.environment["SOFTHSM2_CONF"]).start()
    service.done = service.succeeded(service.submit_glyphs(spec={"evaluate": False}))
    yield service
    service.stop()


def test_the_token_signs(signing, token, tmp_path):
    write_result(signing, signing.done, tmp_path / "m")
    answer = signing.get(f"/v1/jobs/{signing.done['id']}/signature")
    assert answer.status_code == 200, answer.text
    (tmp_path / "m.sig").write_bytes(answer.content)
    python = registry.program("model_signing")
    done = subprocess.run([python, "-m", "model_signing", "verify", "key", tmp_path / "m", "--public_key", token.public,
                           "--signature", tmp_path / "m.sig"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    provenance = signing.get(f"/v1/jobs/{signing.done['id']}/provenance").json()
    assert opened(provenance, token.public, tmp_path)["predicateType"] == "https://slsa.dev/provenance/v1"


def test_a_pin_that_is_wrong(signing, token):
    (token.folder / "pin").write_text("0000-wrong")
    try:
        refused = problem(signing.get(f"/v1/jobs/{signing.done['id']}/signature"), 503, "unavailable")
        assert "signing.key" in refused["detail"] and "0000" not in refused["detail"]
    finally:
        (token.folder / "pin").write_text(PIN)
    assert signing.get(f"/v1/jobs/{signing.done['id']}/signature").status_code == 200


@pytest.mark.parametrize("change", [("object=signing", "object=other"), ("token=qdqd", "token=other"),
                                    ("libsofthsm2.so", "no.so")])
def test_what_is_not_there(token, tmp_path, change):
    service = Service(tmp_path, QDQD_SIGNING_KEY=token.uri.replace(*change),
                      SOFTHSM2_CONF=token.environment["SOFTHSM2_CONF"]).start()
    try:
        job = service.succeeded(service.submit_glyphs(spec={"evaluate": False}))
        refused = problem(service.get(f"/v1/jobs/{job['id']}/signature"), 503, "unavailable")
        assert "signing.key" in refused["detail"]
        assert service.get(f"/v1/jobs/{job['id']}/bom").status_code == 200
    finally:
        service.stop()
