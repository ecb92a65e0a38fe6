# SPDX-License-Identifier: Apache-2.0
"""Signatures of a daemon, verified by PyPI's model-signing, and its bills of materials by the schema
of CycloneDX."""

import base64
import json
import subprocess

import pytest

from lineage import make_key, openssl, write_result
from registry import program
from service import DATA, FEW_SAMPLES, INSTALLED, Service, as_bytes
from test_postgresql import database, server  # noqa: F401

BOM = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
"""


@pytest.fixture(scope="module")
def python():
    return program("model_signing")


def verifies(python, folder, signature, *how):
    done = subprocess.run([python, "-m", "model_signing", "verify", *map(str, how), "--signature", signature, folder],
                          capture_output=True, text=True, timeout=120)
    return done.returncode == 0, done.stdout + done.stderr


def results(service):
    """Runs a job with one file and one with external data; yields the folders of their results,
    with the signature and the bill of materials beside them."""
    for name, output in [("one", "never"), ("data", "always")]:
        there = service.state.parent / name
        job = service.succeeded(service.submit_glyphs(spec={"evaluate": False, "output": {"external_data": output}}))
        write_result(service, job, there / "m")
        for what in ("signature", "bom"):
            answer = service.get(f"/v1/jobs/{job['id']}/{what}")
            assert answer.status_code == 200, answer.text
            (there / what).write_bytes(answer.content)
        yield there


def test_model_signing_verifies_by_the_key(python, tmp_path):
    private, public = make_key(tmp_path)
    _, other = make_key(tmp_path, "other")
    service = Service(tmp_path, QDQD_SIGNING_KEY=str(private)).start()
    try:
        for there in results(service):
            ok, said = verifies(python, there / "m", there / "signature", "key", "--public_key", public)
            assert ok, said
            assert not verifies(python, there / "m", there / "signature", "key", "--public_key", other)[0]
            (there / "m" / "more").write_text("x")
            assert not verifies(python, there / "m", there / "signature", "key", "--public_key", public)[0]
            (there / "m" / "more").unlink()
            changed = bytearray(as_bytes(there / "m" / "model.onnx"))
            changed[len(changed) // 2] ^= 1
            (there / "m" / "model.onnx").write_bytes(changed)
            assert not verifies(python, there / "m", there / "signature", "key", "--public_key", public)[0]
            done = subprocess.run([python, "-c", BOM, there / "bom"], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            broken = json.loads((there / "bom").read_text())
            broken["components"][0]["hashes"][0]["alg"] = "none"
            (there / "bom").write_text(json.dumps(broken))
            done = subprocess.run([python, "-c", BOM, there / "bom"], capture_output=True, text=True, timeout=120)
            assert done.returncode == 1, "the schema is not looked at"
    finally:
        service.stop()


def test_model_signing_verifies_by_certificates(python, tmp_path):
    """The key's certificate is of an authority that the verifier knows."""
    private, _ = make_key(tmp_path)
    openssl(tmp_path, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            "ca.pem", "-out", "root.pem", "-subj", "/CN=root", "-days", "2")
    openssl(tmp_path, "req", "-new", "-key", private, "-out", "request", "-subj", "/CN=signer")
    (tmp_path / "extensions").write_text("keyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n")
    openssl(tmp_path, "x509", "-req", "-in", "request", "-CA", "root.pem", "-CAkey", "ca.pem", "-days", "1",
            "-extfile", "extensions", "-out", "chain.pem")
    service = Service(tmp_path, QDQD_SIGNING_KEY=str(private),
                      QDQD_SIGNING_CERTIFICATE=str(tmp_path / "chain.pem")).start()
    try:
        for there in results(service):
            ok, said = verifies(python, there / "m", there / "signature", "certificate", "--certificate_chain",
                                tmp_path / "root.pem")
            assert ok, said
    finally:
        service.stop()


def test_a_result_of_a_daemon_with_postgresql_is_reproduced(database, tmp_path):  # noqa: F811
    """The statement of one daemon, whose record is in PostgreSQL, is done again by the command and by
    another daemon."""
    private, public = make_key(tmp_path)
    one = Service(tmp_path / "one", QDQD_STORE_URL=database.url, QDQD_SIGNING_KEY=str(private))
    two = Service(tmp_path / "two")
    try:
        one.start()
        job = one.succeeded(one.submit_glyphs())
        data = one.result(job["id"])
        statement = tmp_path / "provenance.json"
        statement.write_bytes(one.get(f"/v1/jobs/{job['id']}/provenance").content)
        subprocess.run([INSTALLED / "bin" / "qdq", "reproduce", statement, "--key", public, "--model",
                        DATA / "glyph_resnet.onnx", "--calibration", FEW_SAMPLES, "-o", tmp_path / "again.onnx",
                        "--threads=1"], check=True, timeout=120)
        assert as_bytes(tmp_path / "again.onnx") == data
        two.start()
        payload = json.loads(base64.b64decode(json.loads(statement.read_text())["payload"]))
        spec = payload["predicate"]["buildDefinition"]["externalParameters"]["spec"]
        assert two.result(two.succeeded(two.submit_glyphs(spec=spec))["id"]) == data
    finally:
        one.stop()
        two.stop()
