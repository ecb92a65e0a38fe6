# SPDX-License-Identifier: Apache-2.0
"""Keys, signatures and statements, checked by the command openssl and by hand."""

import base64
import hashlib
import io
import json
import subprocess
import tarfile

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
ENVELOPE = "application/vnd.dsse.envelope.v1+json"
STATEMENT = "application/vnd.in-toto+json"


def openssl(folder, *words):
    return subprocess.run(["openssl", *map(str, words)], cwd=folder, check=True, capture_output=True).stdout


def make_key(folder, name="key"):
    """Makes NAME.pem, a private key with mode 0600, and NAME.pub.pem; returns both paths."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private)
    private.chmod(0o600)
    openssl(folder, "ec", "-in", private, "-pubout", "-out", public)
    return private, public


def opened(envelope, public, folder):
    """Returns the statement of an envelope, whose signature openssl verifies."""
    assert envelope["payloadType"] == STATEMENT
    payload = base64.b64decode(envelope["payload"])
    (signature,) = envelope["signatures"]
    (folder / "sig").write_bytes(base64.b64decode(signature["sig"]))
    (folder / "signed").write_bytes(b"DSSEv1 28 %s %d %s" % (STATEMENT.encode(), len(payload), payload))
    assert b"Verified OK" in openssl(folder, "dgst", "-sha256", "-verify", public, "-signature", "sig", "signed")
    return json.loads(payload)


def write_result(service, job, folder):
    """Writes the files of a result into a new folder, and returns their names."""
    folder.mkdir(parents=True)
    data = service.result(job["id"])
    if not job["result"]["files"]:
        (folder / "model.onnx").write_bytes(data)
    else:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                (folder / member.name).write_bytes(tar.extractfile(member).read())
    return sorted(path.name for path in folder.iterdir())


def sha256(data):
    return {"sha256": hashlib.sha256(data).hexdigest()}
