# SPDX-License-Identifier: Apache-2.0
"""A publication in a registry has the signature, the provenance and the bill of materials of its model
beside it, and PyPI's model-signing verifies what was pulled from there."""

import base64
import hashlib
import json
import re
import shutil
import signal
import subprocess

import onnx
import pytest
import requests

import registry
from lineage import make_key
from service import DATA, FEW_SAMPLES, Service, eventually, problem
from test_s3 import CREDENTIALS as S3_CREDENTIALS, curl

LINEAGE = {"model.sig", "provenance.json", "bom.json"}
REPORTS = {"report.json", "report.html", "spec.json"}
# The ref of a publication, and what a pull of it has beside the model.
PLACES = {"oci": ("signed:{}", LINEAGE | REPORTS), "s3": ("signed/{}/", LINEAGE | REPORTS),
          "mlflow": ("models:/signed-{}", LINEAGE | {"MLmodel"})}
TYPES = {"application/vnd.qdqd.report.v1+json", "application/vnd.dev.sigstore.bundle.v0.3+json",
         "application/vnd.in-toto+json", "application/vnd.cyclonedx+json"}


@pytest.fixture(scope="module")
def python():
    return registry.program("model_signing")


@pytest.fixture(scope="module", params=PLACES)
def far(request, tmp_path_factory):
    """A registry of each kind: its kind, URL and credentials."""
    folder = tmp_path_factory.mktemp(request.param)
    path = {"oci": "/v2/", "s3": "/", "mlflow": "/health"}[request.param]
    with registry.running(request.param, folder, path) as url:
        if request.param == "s3":
            curl("--request", "PUT", f"{url}/models")
            yield "s3", f"{url}/models", S3_CREDENTIALS
        else:
            yield request.param, url, "basic test:test-secret" if request.param == "oci" else None


def start(folder, far, **settings):
    """Starts a daemon with that registry as the remote prod."""
    folder.mkdir(exist_ok=True)
    remote = registry.Remote(folder, *far)
    service = Service(folder, **settings)
    service.arguments = ["--config", remote.config]
    service.remote = remote
    return service.start()


@pytest.fixture(scope="module")
def signing(far, tmp_path_factory):
    folder = tmp_path_factory.mktemp("signing")
    private, public = make_key(folder)
    service = start(folder, far, QDQD_SIGNING_KEY=str(private))
    service.kind, service.public = far[0], public
    service.model = service.upload("models", (DATA / "glyph_resnet.onnx").read_bytes())
    service.samples = service.upload("datasets", FEW_SAMPLES.read_bytes())
    yield service
    service.stop()


def publish(service, ref, external="never", **members):
    """Runs a job that publishes its result, and returns the job and the delivery."""
    answer = service.post("/v1/jobs", json={
        "model": service.model, "calibration": service.samples,
        "spec": {"evaluate": False, "output": {"external_data": external}},
        "publish": [{"remote": "prod", "ref": ref, **members}]})
    assert answer.status_code == 202, answer.text
    job = service.succeeded(answer.json()["id"])

    def ended():
        found = service.get(f"/v1/jobs/{job['id']}/deliveries").json()["deliveries"]
        return found if all(one["state"] != "pending" for one in found) else None
    [delivery] = eventually(ended, seconds=60)
    return job, delivery


def verifies(python, folder, signature, public):
    return subprocess.run([python, "-m", "model_signing", "verify", "key", folder, "--public_key", public,
                           "--signature", signature], capture_output=True, text=True, timeout=120).returncode == 0


@pytest.mark.parametrize("external", ["never", "always"])
def test_what_was_pulled_verifies(signing, python, tmp_path, external):
    ref, beside = PLACES[signing.kind]
    job, delivery = publish(signing, ref.format(external), external)
    assert delivery["state"] == "delivered", delivery
    pulled = tmp_path / "pulled"
    signing.remote("pull", "prod:" + delivery["location"], "-o", pulled)
    weights = {"model.onnx"} | ({"model.onnx.data"} if external == "always" else set())
    files = registry.files_below(pulled)
    assert weights | beside <= set(files)
    model = tmp_path / "model"
    model.mkdir()
    for name in weights:
        shutil.copy(pulled / name, model / name)
    assert verifies(python, model, pulled / "model.sig", signing.public)
    done = subprocess.run([registry.QDQ, "verify", pulled / "model.onnx", "--key", signing.public],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    statement = json.loads(base64.b64decode(json.loads(files["provenance.json"])["payload"]))
    assert {row["name"]: row["digest"]["sha256"] for row in statement["subject"]} == \
        {name: hashlib.sha256(files[name]).hexdigest() for name in weights}
    assert statement["predicate"]["runDetails"]["metadata"]["invocationId"] == job["id"]
    assert json.loads(files["bom.json"])["bomFormat"] == "CycloneDX"
    changed = bytearray((model / "model.onnx").read_bytes())
    changed[-1] ^= 1
    (model / "model.onnx").write_bytes(changed)
    assert not verifies(python, model, pulled / "model.sig", signing.public)


def test_the_version_names_the_key(signing, far):
    ref, _ = PLACES[signing.kind]
    _, delivery = publish(signing, ref.format("named"))
    hint = hashlib.sha256(signing.public.read_bytes()).hexdigest()
    if signing.kind == "mlflow":
        name, version = delivery["location"].split("/")[1:]
        found = requests.get(f"{far[1]}/api/2.0/mlflow/model-versions/get", timeout=20,
                             params={"name": name, "version": version}).json()
        tags = {tag["key"]: tag["value"] for tag in found["model_version"]["tags"]}
        assert tags["qdqd.signed_by"] == hint
    elif signing.kind == "oci":
        repo, digest = delivery["location"].split("@")
        headers = {"Accept": "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"}

        def get(name):
            return requests.get(f"{far[1]}/v2/{repo}/manifests/{name}", timeout=20, headers=headers,
                                auth=("test", "test-secret")).json()

        assert get(digest)["annotations"]["qdqd.signed_by"] == hint
        listed = requests.get(f"{far[1]}/v2/{repo}/referrers/{digest}", timeout=20, auth=("test", "test-secret"))
        index = listed.json() if listed.status_code == 200 else get(digest.replace(":", "-"))
        assert {entry["artifactType"] for entry in index["manifests"]} == TYPES
    else:
        head = curl("--head", f"{far[1]}/signed/named/model.onnx").decode().lower()
        assert f"x-amz-meta-qdqd.signed_by: {hint}" in head


def test_only_what_is_asked_for(signing, tmp_path):
    ref, _ = PLACES[signing.kind]
    _, delivery = publish(signing, ref.format("few"), what=["model", "signature"])
    signing.remote("pull", "prod:" + delivery["location"], "-o", tmp_path / "few")
    names = set(registry.files_below(tmp_path / "few"))
    assert {"model.onnx", "model.sig"} <= names and not names & (LINEAGE - {"model.sig"} | REPORTS)


def test_a_service_without_a_key(far, tmp_path):
    """It publishes its statement unsigned, and refuses a signature that is asked for by name."""
    service = start(tmp_path / "unsigned", far)
    try:
        service.model = service.upload("models", (DATA / "glyph_resnet.onnx").read_bytes())
        service.samples = service.upload("datasets", FEW_SAMPLES.read_bytes())
        ref, beside = PLACES[far[0]]
        _, delivery = publish(service, ref.format("unsigned"))
        service.remote("pull", "prod:" + delivery["location"], "-o", tmp_path / "pulled")
        files = registry.files_below(tmp_path / "pulled")
        assert beside - {"model.sig"} <= set(files) and "model.sig" not in files
        assert json.loads(files["provenance.json"])["_type"].startswith("https://in-toto.io/Statement")
        refused = service.post("/v1/jobs", json={
            "model": service.model, "calibration": service.samples,
            "publish": [{"remote": "prod", "ref": ref.format("no"), "what": ["model", "signature"]}]})
        assert problem(refused, 422, "unsupported")["detail"].count("signing.key") == 1
    finally:
        service.stop()


# --- models that have to be signed ------------------------------------------------------


@pytest.fixture(scope="module")
def demanding(far, tmp_path_factory):
    """A daemon that takes signed models alone from the remote prod, and for its tenant from nowhere else."""
    folder = tmp_path_factory.mktemp("demanding")
    private, public = make_key(folder)
    _, second = make_key(folder, "second")
    (folder / "signers.pem").write_bytes(second.read_bytes() + public.read_bytes())
    service = Service(folder, QDQD_TENANTS_SIGNED_MODELS="-")
    remote = registry.Remote(folder, *far)
    remote.config.write_text(remote.config.read_text() + f"signers = {folder}/signers.pem\n")
    service.arguments = ["--config", remote.config]
    service.remote, service.kind, service.private, service.folder = remote, far[0], private, folder
    service.start()
    service.samples = service.upload("datasets", FEW_SAMPLES.read_bytes())
    yield service
    service.stop()


def push_signed(service, python, name, private, spoil=False):
    """Signs a float model as others do, pushes both, and returns the ref."""
    there = service.folder / name
    (there / "m").mkdir(parents=True)
    model = there / "m" / "model.onnx"
    shutil.copy(DATA / "glyph_resnet.onnx", model)
    if private:
        subprocess.run([python, "-m", "model_signing", "sign", "key", there / "m", "--private_key", private,
                        "--signature", there / "model.sig"], check=True, capture_output=True, timeout=120)
    if spoil:
        changed = onnx.load(model)
        changed.producer_name = "somebody else"
        onnx.save(changed, model)
    ref = PLACES[service.kind][0].format(name)
    location = service.remote("push", "prod:" + ref, model, *([there / "model.sig"] if private else []))
    return location.strip().removeprefix("prod:")


def submit(service, ref):
    answer = service.post("/v1/jobs", json={"model": {"remote": "prod", "ref": ref}, "calibration": service.samples,
                                            "spec": {"evaluate": False}})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def outcome(service, ref):
    return service.ended(submit(service, ref))


def configured(service, text):
    """Gives the daemon another file of remotes, and waits until it goes by that."""
    service.remote.config.write_text(text)
    before = service.log.read_text().count("event=reloaded")
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: service.log.read_text().count("event=reloaded") > before)


def test_a_signed_model_is_taken(demanding, python):
    job = outcome(demanding, push_signed(demanding, python, "good", demanding.private))
    assert job["state"] == "succeeded", job
    again = outcome(demanding, job["source"]["model"]["resolved"])  # its files are there, its signature is checked
    assert again["state"] == "succeeded", again


@pytest.mark.parametrize("name, said", [("unsigned", "has no signature"), ("spoiled", "is not of the file"),
                                        ("stranger", "signature")])
def test_another_one_is_refused(demanding, python, name, said):
    private = {"unsigned": None, "spoiled": demanding.private}.get(name) if name != "stranger" else \
        make_key(demanding.folder, "stranger")[0]
    job = outcome(demanding, push_signed(demanding, python, name, private, spoil=name == "spoiled"))
    assert job["state"] == "failed" and job["error"]["code"] == "signature_invalid", job
    assert said in job["error"]["detail"]


def test_a_provenance_is_no_signature(demanding, python, tmp_path):
    """A service whose key is trusted signs statements about any model that it made something of."""
    service = Service(tmp_path, QDQD_SIGNING_KEY=str(demanding.private)).start()
    try:
        job = service.succeeded(service.submit_glyphs(spec={"evaluate": False}))
        (tmp_path / "model.onnx").write_bytes(service.result(job["id"]))
        (tmp_path / "model.sig").write_bytes(service.get(f"/v1/jobs/{job['id']}/provenance").content)
    finally:
        service.stop()
    location = demanding.remote("push", "prod:" + PLACES[demanding.kind][0].format("made"), tmp_path / "model.onnx",
                                tmp_path / "model.sig")
    job = outcome(demanding, location.strip().removeprefix("prod:"))
    assert job["error"]["code"] == "signature_invalid" and "provenance" in job["error"]["detail"], job


def test_a_model_of_no_such_remote_is_refused(demanding):
    model = demanding.upload("models", (DATA / "glyph_resnet.onnx").read_bytes())
    refused = problem(demanding.post("/v1/jobs", json={"model": model, "calibration": demanding.samples}),
                      403, "forbidden")
    assert "signers" in refused["detail"]


def test_a_remote_that_loses_its_signers_while_a_job_waits(demanding, python):
    ref = push_signed(demanding, python, "waits", demanding.private)
    whole = demanding.remote.config.read_text()
    try:
        configured(demanding, re.sub(r"(?m)^(url = http://127.0.0.1):\d+", r"\1:9", whole))
        job = submit(demanding, ref)
        eventually(lambda: "remote_unavailable" in demanding.log.read_text())
        assert demanding.job(job)["state"] == "queued"
        configured(demanding, re.sub(r"(?m)^signers = .*\n", "", whole))
        ended = demanding.ended(job)
        assert ended["state"] == "failed" and ended["error"]["code"] == "forbidden", ended
        assert "no signers any more" in ended["error"]["detail"]
    finally:
        configured(demanding, whole)
