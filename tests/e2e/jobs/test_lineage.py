# SPDX-License-Identifier: Apache-2.0
"""A result has a signature, a provenance and a bill of materials, which prove where it came from."""

import hashlib
import os
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lineage import BUNDLE, ENVELOPE, STATEMENT, make_key, opened, sha256
from service import DATA, FEW_SAMPLES, INSTALLED, VERSION, Service, problem

MODEL = (DATA / "glyph_resnet.onnx").read_bytes()


@pytest.fixture(scope="module")
def signing(tmp_path_factory):
    """A daemon with a key, and a job of it that has succeeded."""
    folder = tmp_path_factory.mktemp("signing")
    private, public = make_key(folder)
    service = Service(folder, QDQD_SIGNING_KEY=str(private), QDQD_WORKERS_CAGE="require").start()
    service.private, service.public, service.folder = private, public, folder
    service.done = service.submit_glyphs()
    service.succeeded(service.done)
    yield service
    service.stop()


def statement_of(service):
    answer = service.get(f"/v1/jobs/{service.done}/provenance")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, ENVELOPE)
    return opened(answer.json(), service.public, service.folder)


def test_the_signature_is_of_the_files(signing):
    answer = signing.get(f"/v1/jobs/{signing.done}/signature")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, BUNDLE)
    bundle = answer.json()
    assert bundle["verificationMaterial"]["publicKey"]["hint"] == \
        hashlib.sha256(signing.public.read_bytes()).hexdigest()
    statement = opened(bundle["dsseEnvelope"], signing.public, signing.folder)
    digest = sha256(signing.result(signing.done))["sha256"]
    assert statement["predicate"]["resources"] == [
        {"name": "model.onnx", "algorithm": "sha256", "digest": digest}]
    assert statement["subject"] == [{"name": "model", "digest": sha256(bytes.fromhex(digest))}]


def test_the_provenance_says_what_went_in(signing):
    statement = statement_of(signing)
    job, report = signing.job(signing.done), signing.get(f"/v1/jobs/{signing.done}/report?histograms=1").content
    spec = signing.get(f"/v1/jobs/{signing.done}/spec")
    assert statement["subject"] == [{"name": "model.onnx", "digest": sha256(signing.result(signing.done))}]
    build = statement["predicate"]["buildDefinition"]
    assert build["externalParameters"] == {"spec": spec.json()}
    inputs = {row["name"]: row for row in build["resolvedDependencies"]}
    assert inputs["model"] == {"name": "model", "digest": sha256(MODEL), "annotations": {
        "id": "sha256:" + sha256(MODEL)["sha256"]}}
    assert inputs["calibration"] == {"name": "calibration", "digest": sha256(FEW_SAMPLES.read_bytes())}
    made = job["result"]["summary"]["made_by"]
    assert inputs["runtime"]["annotations"] == {"name": "ONNX Runtime", "version": made["runtime"]}
    assert set(inputs) == {"model", "calibration", "runtime"}
    run = statement["predicate"]["runDetails"]
    assert run["builder"]["version"] == {"qdqd": VERSION, "build": made["build"]}
    assert len(made["build"]) >= 32
    assert run["metadata"] == {"invocationId": signing.done, "startedOn": job["started_at"],
                               "finishedOn": job["ended_at"]}
    left = {row["name"]: row["digest"] for row in run["byproducts"]}
    assert left["spec"] == sha256(spec.content)
    assert left["report"] == sha256(report)


def test_a_job_that_is_answered_by_another(signing):
    """Its times are not those of the work."""
    again = signing.submit_glyphs()
    assert signing.succeeded(again)["cached_from"] == signing.done
    answer = signing.get(f"/v1/jobs/{again}/provenance")
    statement = opened(answer.json(), signing.public, signing.folder)
    assert statement["predicate"]["runDetails"]["metadata"] == {"invocationId": again}
    assert statement["subject"] == statement_of(signing)["subject"]


def test_a_model_that_was_removed_since(signing):
    """It is named by its id, of which nobody knows any more whether it is the digest of one file."""
    before = statement_of(signing)
    model = before["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    assert signing.request("DELETE", f"/v1/models/{model['annotations']['id']}").status_code == 204
    try:
        after = statement_of(signing)["predicate"]["buildDefinition"]["resolvedDependencies"]
        assert after[0] == {"name": "model", "uri": "urn:qdqd:model:" + model["annotations"]["id"],
                            "annotations": model["annotations"]}
        assert after[1:] == before["predicate"]["buildDefinition"]["resolvedDependencies"][1:]
        bom = signing.get(f"/v1/jobs/{signing.done}/bom").json()
        assert bom["components"][0] == {"type": "machine-learning-model", "bom-ref": "source", "name": "model"}
    finally:
        signing.upload("models", MODEL)
    assert statement_of(signing) == before


def test_the_bill_of_materials(signing):
    answer = signing.get(f"/v1/jobs/{signing.done}/bom")
    assert answer.headers["Content-Type"] == "application/vnd.cyclonedx+json; version=1.6"
    bom = answer.json()
    result = bom["metadata"]["component"]
    assert result["hashes"] == [{"alg": "SHA-256", "content": sha256(signing.result(signing.done))["sha256"]}]
    (ancestor,) = result["pedigree"]["ancestors"]
    assert ancestor["hashes"][0]["content"] == sha256(MODEL)["sha256"]
    refs = [row["bom-ref"] for row in bom["components"]]
    assert refs == ["source", "calibration", "runtime"]
    assert bom["dependencies"] == [{"ref": "result", "dependsOn": refs}]
    assert result["modelCard"]["modelParameters"]["datasets"] == [{"ref": "calibration"}]


@pytest.mark.parametrize("what", ["signature", "provenance", "bom"])
def test_a_job_without_a_result_has_none(signing, what):
    problem(signing.get(f"/v1/jobs/none/{what}"), 404, "not_found")
    failed = signing.submit_glyphs(spec={"accept": {"min_sqnr_db": 1000}})
    assert signing.ended(failed)["state"] == "failed"
    problem(signing.get(f"/v1/jobs/{failed}/{what}"), 409, "accuracy")


def test_many_ask_at_once(signing):
    """More than processes sign at the same time."""
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: signing.get(f"/v1/jobs/{signing.done}/signature"), range(48)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 48


def test_a_new_key_signs_from_then_on(signing):
    """The file is read for each signature, in the process that signs alone."""
    folder = signing.folder
    other, public = make_key(folder, "other")
    old = signing.private.read_bytes()
    try:
        os.replace(other, signing.private)
        bundle = signing.get(f"/v1/jobs/{signing.done}/signature").json()
        assert opened(bundle["dsseEnvelope"], public, folder)
        signing.private.chmod(0o644)
        refused = problem(signing.get(f"/v1/jobs/{signing.done}/signature"), 503, "unavailable")
        assert "0600" in refused["detail"]
        signing.private.chmod(0o600)
        signing.private.write_text("no key")
        refused = problem(signing.get(f"/v1/jobs/{signing.done}/signature"), 503, "unavailable")
        assert "P-256" in refused["detail"]
    finally:
        signing.private.write_bytes(old)
    statement_of(signing)


def secret_of(private):
    """Returns the 32 bytes of a private key."""
    text = subprocess.run(["openssl", "ec", "-in", private, "-text", "-noout"], check=True,
                          capture_output=True, text=True).stdout
    digits = text.split("priv:")[1].split("pub:")[0]
    return bytes.fromhex("".join(digits.replace(":", "").split()).zfill(64)[-64:])


def memory_of(pid):
    """Returns all readable memory of a process."""
    found = b""
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights = line.split()[:2]
            begin, end = (int(part, 16) for part in place.split("-"))
            if "r" in rights and "w" in rights:
                try:
                    memory.seek(begin)
                    found += memory.read(end - begin)
                except OSError:
                    pass
    return found


def test_the_key_is_in_no_memory_that_stays(signing):
    """Neither its PEM nor its bytes are in the daemon or in a worker, and none has its file open."""
    statement_of(signing)
    pem = signing.private.read_bytes().splitlines()[1]
    secret = secret_of(signing.private)
    assert signing.workers()
    for pid in [signing.process.pid, *signing.workers()]:
        memory = memory_of(pid)
        assert str(signing.private).encode() in memory or pid != signing.process.pid  # it was read
        assert pem not in memory and secret not in memory and secret[::-1] not in memory
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            assert os.path.realpath(fd) != str(signing.private)
    log = signing.log.read_text()
    assert log.count("signer_started") == log.count("signer_ended") > 0 and "cage_lacking" not in log


def test_the_process_that_signs_is_in_a_cage(signing):
    """It is looked at while it signs."""
    seen = {}

    def look():
        for task in Path(f"/proc/{signing.process.pid}/task").iterdir():
            try:
                for pid in (task / "children").read_text().split():
                    if b"--signer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        status = Path(f"/proc/{pid}/status").read_text()
                        seen[pid] = max(seen.get(pid, "0"), status.split("Seccomp:\t")[1][0])
            except (FileNotFoundError, ProcessLookupError):
                pass

    asking = threading.Thread(target=lambda: [statement_of(signing) for _ in range(5)])
    asking.start()
    while asking.is_alive():
        look()
    asking.join()
    assert seen and "2" in seen.values()


def test_a_daemon_without_a_key(tmp_path):
    """It says where a result came from without a signature, and signs nothing."""
    service = Service(tmp_path).start()
    try:
        job = service.submit_glyphs()
        service.succeeded(job)
        answer = service.get(f"/v1/jobs/{job}/provenance")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, STATEMENT)
        assert answer.json()["subject"][0]["digest"] == sha256(service.result(job))
        refused = problem(service.get(f"/v1/jobs/{job}/signature"), 404, "not_found")
        assert "signing.key" in refused["detail"]
        assert "signer" not in service.log.read_text()
    finally:
        service.stop()


def test_a_key_that_a_worker_with_a_gpu_could_read(tmp_path):
    """Such a worker may read what is below /dev, among others."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        private, _ = make_key(Path(folder))
        (tmp_path / "link.pem").symlink_to(private)
        for path in (private, tmp_path / "link.pem"):
            environment = {**os.environ, "QDQD_STATE_DIR": str(tmp_path / "state"), "QDQD_SIGNING_KEY": str(path)}
            for gpus, status in [("", 0), ("0", 2)]:
                done = subprocess.run([INSTALLED / "sbin" / "qdqd", "--check-config"], capture_output=True, text=True,
                                      env={**environment, "QDQD_GPU_DEVICES": gpus}, timeout=60)
                assert done.returncode == status and ("a worker with a GPU" in done.stderr) == bool(status), done


@pytest.mark.parametrize("key, certificate, said", [
    ("missing.pem", "", "signing.key"), ("open.pem", "", "0600"), (".", "", "regular"),
    ("key.pem", "missing.pem", "signing.certificate"), ("", "key.pub.pem", "signing.certificate"),
    ("pkcs11:token=t;object=o?pin-value=4711", "", "pin-source"), ("pkcs11:", "", "names no key"),
    ("pkcs11:token=t;object=o", "missing.pem", "signing.certificate")])
def test_a_configuration_that_cannot_sign(tmp_path, key, certificate, said):
    make_key(tmp_path)
    (tmp_path / "open.pem").write_bytes((tmp_path / "key.pem").read_bytes())
    (tmp_path / "open.pem").chmod(0o640)
    environment = {**os.environ, "QDQD_STATE_DIR": str(tmp_path / "state"),
                   "QDQD_SIGNING_KEY": key if key.startswith("pkcs11:") else key and str(tmp_path / key),
                   "QDQD_SIGNING_CERTIFICATE": certificate and str(tmp_path / certificate)}
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "--check-config"], env=environment, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr and "4711" not in done.stderr, done
