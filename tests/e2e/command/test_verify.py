# SPDX-License-Identifier: Apache-2.0
"""The commands verify and reproduce: with what a service has signed, offline."""

import base64
import json
import random
import shutil
import subprocess

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
import numpy as np

from lineage import make_key, write_result
from service import DATA, FEW_SAMPLES, INSTALLED, Service, as_bytes

QDQ = INSTALLED / "bin" / "qdq"
MODEL = DATA / "glyph_resnet.onnx"
FLIPS = 1000


def qdq(*words, status=0):
    done = subprocess.run([QDQ, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done
    return done


def refused(*words, said):
    error = qdq(*words, status=1).stderr
    assert said in error, error
    return error


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A daemon that signs; its public key, and the files of a job: the result in the folder
    `result`, the bundle, the provenance."""
    folder = tmp_path_factory.mktemp("signed")
    private, public = make_key(folder)
    service = Service(folder, QDQD_SIGNING_KEY=str(private)).start()
    try:
        job = service.submit_glyphs(spec={"weights": {"rounding": "gptq"}, "evaluate": False})
        write_result(service, service.succeeded(job), folder / "result")
        for what in ("signature", "provenance"):
            (folder / what).write_bytes(service.get(f"/v1/jobs/{job}/{what}").content)
        large = external_job(service, folder)
    finally:
        service.stop()
    return type("Signed", (), {"folder": folder, "public": public, "result": folder / "result",
                               "bundle": folder / "signature", "provenance": folder / "provenance",
                               "large": large})


def external_job(service, folder):
    """Quantizes a model with external data; its files are in a folder of their own."""
    there = folder / "external"
    there.mkdir()
    weight = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="m")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, there / "net.onnx", save_as_external_data=True, location="net.bin", size_threshold=0)
    answer = service.post("/v1/jobs", files=[
        ("model", ("net.onnx", as_bytes(there / "net.onnx"))),
        ("external", ("net.bin", as_bytes(there / "net.bin"))),
        ("spec", (None, json.dumps({"calibration": {"random_samples": 8}, "output": {"external_data": "always"},
                                    "evaluate": False})))])
    assert answer.status_code == 202, answer.text
    job = service.succeeded(answer.json()["id"])
    assert write_result(service, job, there / "result") == ["model.onnx", "model.onnx.data"]
    for what in ("signature", "provenance"):
        (there / what).write_bytes(service.get(f"/v1/jobs/{job['id']}/{what}").content)
    return there


# --- verify ------------------------------------------------------------------------------

def verify(signed, *words):
    return ["verify", *words, "--key", signed.public]


def test_a_folder_and_a_file_are_verified(signed, tmp_path):
    done = qdq(*verify(signed, signed.result, "--signature", signed.bundle))
    assert done.stdout.startswith("signed: model.onnx sha256:")
    for signature in (signed.bundle, signed.provenance):
        qdq(*verify(signed, signed.result / "model.onnx", "--signature", signature))
    # the model by another name, and the signature where it is looked for
    shutil.copy(signed.result / "model.onnx", tmp_path / "net.int8.onnx")
    shutil.copy(signed.bundle, tmp_path / "model.sig")
    qdq(*verify(signed, tmp_path / "net.int8.onnx"))
    refused(*verify(signed, tmp_path), said="not among the files that are signed")
    (tmp_path / "net.int8.onnx").rename(tmp_path / "model.onnx")
    qdq(*verify(signed, tmp_path))
    qdq(*verify(signed, f"{tmp_path}/"))


def test_external_data_is_verified(signed):
    there = signed.large
    done = qdq(*verify(signed, there / "result", "--signature", there / "signature"))
    assert done.stdout.count("signed: ") == 2
    qdq(*verify(signed, there / "result" / "model.onnx", "--signature", there / "signature"))


def test_what_is_refused(signed, tmp_path):
    other, public = make_key(tmp_path)
    (tmp_path / "m").mkdir()
    copy = shutil.copy(signed.result / "model.onnx", tmp_path / "m")
    arguments = [tmp_path / "m", "--signature", signed.bundle]
    refused("verify", *arguments, said="--key")
    refused("verify", *arguments, "--key", public, said="another key")
    refused("verify", *arguments, "--key", other, said="P-256")
    both = tmp_path / "both.pem"
    both.write_bytes(public.read_bytes() + signed.public.read_bytes())
    qdq("verify", *arguments, "--key", both)
    both.write_bytes(public.read_bytes() + other.read_bytes())
    refused("verify", *arguments, "--key", both, said="both.pem: this is no public key in PEM on the curve P-256")
    both.write_bytes(public.read_bytes() + b"-----BEGIN PUBLIC KEY-----\nbroken\n")
    refused("verify", *arguments, "--key", both, said="P-256")
    refused("verify", *arguments, "--key", tmp_path / "none", said="none")
    refused(*verify(signed, tmp_path / "m"), said="model.sig")
    refused(*verify(signed, tmp_path / "m", "--signature", signed.public), said="token")
    (tmp_path / "m" / "link").symlink_to(copy)
    refused(*verify(signed, *arguments), said="no regular file")
    (tmp_path / "m" / "link").unlink()
    (tmp_path / "m" / "deep").mkdir()
    (tmp_path / "m" / "deep" / "model.onnx").write_bytes(b"x")
    refused(*verify(signed, *arguments), said="deep/model.onnx is not among")
    shutil.rmtree(tmp_path / "m" / "deep")
    (tmp_path / "m" / "model.onnx").unlink()
    refused(*verify(signed, *arguments), said="model.onnx")


def flipped(data, bit):
    data = bytearray(data)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def test_every_flipped_bit_is_refused(signed, tmp_path):
    """A thousand bits: of the model, of its data, of the decoded statement and of the decoded
    signature."""
    rng = random.Random(5)
    there = signed.large
    bundle = json.loads((there / "signature").read_text())
    envelope = bundle["dsseEnvelope"]
    parts = {"model.onnx": (there / "result" / "model.onnx").read_bytes(),
             "model.onnx.data": (there / "result" / "model.onnx.data").read_bytes(),
             "payload": base64.b64decode(envelope["payload"]),
             "sig": base64.b64decode(envelope["signatures"][0]["sig"])}
    shutil.copytree(there / "result", tmp_path / "m")
    signature = tmp_path / "signature"
    qdq(*verify(signed, tmp_path / "m", "--signature", there / "signature"))
    for i in range(FLIPS):
        name = list(parts)[i % 4]
        changed = flipped(parts[name], rng.randrange(8 * len(parts[name])))
        copy = json.loads(json.dumps(bundle))
        if name == "payload":
            copy["dsseEnvelope"]["payload"] = base64.b64encode(changed).decode()
        elif name == "sig":
            copy["dsseEnvelope"]["signatures"][0]["sig"] = base64.b64encode(changed).decode()
        else:
            (tmp_path / "m" / name).write_bytes(changed)
        signature.write_text(json.dumps(copy))
        error = qdq(*verify(signed, tmp_path / "m", "--signature", signature), status=1).stderr
        assert error.startswith("qdq: "), error
        if name in ("model.onnx", "model.onnx.data"):
            (tmp_path / "m" / name).write_bytes(parts[name])
    signature.write_text(json.dumps(bundle))
    qdq(*verify(signed, tmp_path / "m", "--signature", signature))


# --- reproduce ---------------------------------------------------------------------------

def reproduce(signed, out, **other):
    options = {"model": MODEL, "calibration": FEW_SAMPLES, "o": out, **other}
    words = [word for name, value in options.items() if value is not None
             for word in (f"--{name}" if len(name) > 1 else f"-{name}", value)]
    return ["reproduce", other.pop("statement", signed.provenance), *words, "--threads", 1]


def test_a_result_of_a_service_is_reproduced(signed, tmp_path):
    """With calibration data, which the rounding needs; from the signed statement and from the
    statement alone."""
    qdq(*reproduce(signed, tmp_path / "again.onnx"), "--key", signed.public)
    assert (tmp_path / "again.onnx").read_bytes() == (signed.result / "model.onnx").read_bytes()
    envelope = json.loads(signed.provenance.read_text())
    plain = tmp_path / "plain.json"
    plain.write_bytes(base64.b64decode(envelope["payload"]))
    qdq("reproduce", plain, *reproduce(signed, tmp_path / "plain.onnx")[2:])
    assert (tmp_path / "plain.onnx").read_bytes() == (signed.result / "model.onnx").read_bytes()
    refused("reproduce", plain, *reproduce(signed, tmp_path / "x.onnx")[2:], "--key", signed.public,
            said="no signature")


def test_a_result_with_external_data_is_reproduced(signed, tmp_path):
    there = signed.large
    words = ["reproduce", there / "provenance", "--model", there / "net.onnx", "--key", signed.public]
    refused(*words, "-o", tmp_path / "other.onnx", said="model.onnx")
    qdq(*words, "-o", tmp_path / "model.onnx")
    for name in ("model.onnx", "model.onnx.data"):
        assert (tmp_path / name).read_bytes() == (there / "result" / name).read_bytes()


def test_other_inputs_are_named(signed, tmp_path):
    out = tmp_path / "x.onnx"
    refused(*reproduce(signed, out, model=None), said="--model")
    refused(*reproduce(signed, out, calibration=None), said="--calibration")
    refused(*reproduce(signed, None), said="-o")
    refused(*reproduce(signed, out, model=DATA / "glyph_se.onnx"), said="--model")
    refused(*reproduce(signed, out, calibration=DATA / "calib_256.npz"), said="--calibration")
    refused(*reproduce(signed, out, evaluation=FEW_SAMPLES), said="no evaluation")
    refused("reproduce", signed.bundle, *reproduce(signed, out)[2:], said="provenance")
    assert not out.exists()


def changed_statement(signed, tmp_path, change):
    statement = json.loads(base64.b64decode(json.loads(signed.provenance.read_text())["payload"]))
    change(statement["predicate"], statement)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(statement))
    return path


def set_engine(predicate, statement):
    predicate["runDetails"]["builder"]["version"]["qdqd"] = "0.0.1"


def set_runtime(predicate, statement):
    predicate["buildDefinition"]["resolvedDependencies"][-1]["annotations"]["version"] = "1.0.0"


def set_result(predicate, statement):
    statement["subject"][0]["digest"]["sha256"] = 64 * "0"


def set_spec(predicate, statement):
    predicate["buildDefinition"]["externalParameters"]["spec"]["weights"]["rounding"] = "nearest"


@pytest.mark.parametrize("change, said", [
    (set_engine, "version 0.0.1"), (set_runtime, "ONNX Runtime 1.0.0"), (set_result, "not reproduced"),
    (set_spec, "not reproduced")])
def test_another_statement_is_not_reproduced(signed, tmp_path, change, said):
    """The result is not written where its bytes are others."""
    path = changed_statement(signed, tmp_path, change)
    refused("reproduce", path, *reproduce(signed, tmp_path / "x.onnx")[2:], said=said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["changed.json"]
