# SPDX-License-Identifier: Apache-2.0
"""Broken input is refused with a problem document that names the mistake. It leaves no
temporary file, no stored bytes, and a healthy daemon."""

import io
import json
import socket

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from service import DATA, FEW_SAMPLES, Service, eventually, problem

RESNET = (DATA / "glyph_resnet.onnx").read_bytes()
IMAGES = np.load(FEW_SAMPLES)["input"][:8]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One daemon for the whole table, because a broken request must not harm the next
    one."""
    one = Service(tmp_path_factory.mktemp("broken"), QDQD_HTTP_MAX_BODY="8M").start()
    yield one
    one.stop()


@pytest.fixture
def victim(shared):
    """The shared daemon. After the test it must be healthy and store the same files as
    before."""
    pid = shared.process.pid
    before = shared.stored_files()
    shared.may_store = False
    yield shared
    assert shared.process.pid == pid and shared.process.poll() is None
    assert shared.get("/healthz").status_code == 200
    assert shared.get("/readyz").status_code == 200
    # The daemon removes them after it has answered.
    eventually(lambda: shared.temporary_files() == [])
    if not shared.may_store:
        assert shared.stored_files() == before


# --- bytes -------------------------------------------------------------------------------


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def nested_graphs(depth):
    """Returns a model whose graphs are nested in attributes of nodes."""
    parts, size = [], 0
    for _ in range(depth):
        for tag in (b"\x32", b"\x2a", b"\x0a"):  # attribute.g, node.attribute, graph.node
            parts.append(tag + varint(size))
            size += len(parts[-1])
    parts.append(b"\x3a" + varint(size))  # model.graph
    return b"\x08\x08" + b"".join(reversed(parts))


def model_bytes(**changes):
    """Returns a small valid model, or the model after these changes made it invalid."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1, 2, 3, 4])
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "mm")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])], [weight])
    for name, value in changes.items():
        if name == "initializer_dims":
            graph.initializer[0].dims[:] = value
        elif name == "node_input":
            graph.node[0].input[:] = value
        elif name == "external":
            graph.initializer[0].ClearField("float_data")
            graph.initializer[0].data_location = TensorProto.EXTERNAL
            entry = graph.initializer[0].external_data.add()
            entry.key, entry.value = "location", value
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                             ir_version=8).SerializeToString()


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy(array, **options):
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


PICKLED = npy(np.array([{"a": 1}, None], dtype=object), allow_pickle=True)

BROKEN_MODELS = {
    "one byte": RESNET[:1],
    "version only": RESNET[:2],
    "cut in the first tenth": RESNET[:len(RESNET) // 10],
    "cut in the middle": RESNET[:len(RESNET) // 2],
    "last byte missing": RESNET[:-1],
    "text": b"This is a letter to my aunt, and not a model.\n" * 20,
    "html": b"<!doctype html><title>502 Bad Gateway</title>",
    "zeros": bytes(4096),
    "all ones": b"\xff" * 4096,
    "numpy file": npy(IMAGES),
    "graphs nested 200 deep": nested_graphs(200),
    "graphs nested 50,000 deep": nested_graphs(50000),
    "weight shorter than its shape": model_bytes(initializer_dims=[2, 3]),
    "weight of negative size": model_bytes(initializer_dims=[-2, 2]),
    "weight of absurd size": model_bytes(initializer_dims=[1 << 40, 1 << 40]),
}

BROKEN_DATASETS = {
    "text": b"input,1,2,3\n" * 20,
    "cut npz": npz(input=IMAGES)[:1000],
    "npz without its directory": npz(input=IMAGES)[:-30],
    "cut npy": npy(IMAGES)[:-1],
    "npy header only": npy(IMAGES)[:64],
    "pickled npy": PICKLED,
    "pickled npz": npz(input=np.array([{"a": 1}], dtype=object)),
    "empty npz": npz(),
    "different sample counts": npz(input=IMAGES, other=IMAGES[:3]),
    "a model": RESNET,
}


@pytest.mark.parametrize("name", BROKEN_MODELS)
def test_broken_model(victim, name):
    """The model is refused as an upload, and with the same code by POST /v1/quantize."""
    body = BROKEN_MODELS[name]
    answer = victim.post("/v1/models", data=body,
                         headers={"Content-Type": "application/octet-stream"})
    code = answer.json()["code"]
    assert code in ("invalid_model", "limit_exceeded")
    problem(answer, {"invalid_model": 400, "limit_exceeded": 422}[code], code)
    again = victim.quantize(body, npz(input=IMAGES))
    problem(again, answer.status_code, code)
    # The request's calibration data was valid; it may be kept or not.
    victim.may_store = True


@pytest.mark.parametrize("name", BROKEN_MODELS)
def test_broken_model_is_not_stored(victim, name):
    victim.post("/v1/models", data=BROKEN_MODELS[name],
                headers={"Content-Type": "application/octet-stream"})


@pytest.mark.parametrize("name", BROKEN_DATASETS)
def test_broken_dataset(victim, name):
    body = BROKEN_DATASETS[name]
    answer = victim.post("/v1/datasets", data=body,
                         headers={"Content-Type": "application/octet-stream"})
    document = problem(answer, 400, "invalid_dataset")
    if "pickled" in name:
        assert "pickle" in document["detail"].lower() or "object" in document["detail"]


def test_missing_external_data_is_named(victim):
    answer = victim.post("/v1/models", data=model_bytes(external="weights.bin"),
                         headers={"Content-Type": "application/octet-stream"})
    document = problem(answer, 422, "external_missing")
    assert "weights.bin" in json.dumps(document)


def test_external_data_never_leaves_the_upload(victim):
    answer = victim.post("/v1/models", data=model_bytes(external="/etc/passwd"),
                         headers={"Content-Type": "application/octet-stream"})
    assert answer.status_code in (400, 422), answer.text


# --- specs -------------------------------------------------------------------------------

SPECS = [
    ({"mod": "full"}, 422, "invalid_spec", "/mod"),
    ({"calibration": {"metod": "minmax"}}, 422, "invalid_spec", "/calibration/metod"),
    ({"mode": 7}, 422, "invalid_spec", "/mode"),
    ({"mode": "whole"}, 422, "invalid_spec", "/mode"),
    ({"calibration": {"max_samples": -1}}, 422, "invalid_spec",
     "/calibration/max_samples"),
    ({"calibration": {"batch": 0}}, 422, "invalid_spec", "/calibration/batch"),
    ({"calibration": {"ranges": {"input": [1, 0]}}}, 422, "invalid_spec",
     "/calibration/ranges/input"),
    ('{"mode":"full","mode":"full"}', None, "invalid_spec", None),
    ('{"mode":', 400, "invalid_json", None),
    ("[1, 2]", None, None, None),
    ('{"evaluate": 1e400}', None, None, None),
    ({"weights": {"dtype": "int5"}}, 422, "invalid_spec", "/weights/dtype"),
    ({"weights": {"granularity": {"block": 1}}}, 422, "invalid_spec",
     "/weights/granularity/block"),
    ({"rules": {"T1": False}}, 422, "unsupported", "/rules/T1"),
    ({"equalize": 1}, 422, "invalid_spec", "/equalize"),
]


@pytest.mark.parametrize("spec, status, code, pointer", SPECS)
def test_broken_spec(victim, spec, status, code, pointer):
    victim.may_store = True
    answer = victim.quantize(RESNET, npz(input=IMAGES), spec)
    assert 400 <= answer.status_code < 500
    document = problem(answer, status or answer.status_code,
                       code or answer.json()["code"])
    if pointer:
        assert document["errors"][0]["pointer"].startswith(pointer)


def test_unknown_member_is_named_in_a_json_job(victim):
    victim.may_store = True
    model = victim.upload("models", RESNET)
    answer = victim.post("/v1/jobs", json={"model": model, "spec": {"modus": "full"}})
    document = problem(answer, 422, "invalid_spec")
    assert document["errors"][0]["pointer"].endswith("/modus")
    assert "modus" in document["detail"]


# --- data that does not fit the model ------------------------------------------------------

MISFITS = {
    "input lacking": npz(images=IMAGES),
    "rank too low": npz(input=IMAGES[:, 0, 0]),
    "rank too high": npz(input=IMAGES[None, None]),
    "wrong size": npz(input=IMAGES[:, :, :16]),
    "wrong type": npz(input=np.zeros(IMAGES.shape, np.complex64)),
    "lossy integers": npz(input=np.zeros(IMAGES.shape, np.int64)),
    "text": npz(input=np.full(IMAGES.shape, "a")),
}


@pytest.mark.parametrize("name", MISFITS)
def test_misfit_names_the_input(victim, name):
    victim.may_store = True
    answer = victim.quantize(RESNET, MISFITS[name])
    code = answer.json().get("code")
    if code == "invalid_dataset":  # not a type of ONNX: refused for any model
        assert name in ("wrong type", "text")
        document = problem(answer, 400, "invalid_dataset")
    else:
        document = problem(answer, 422, "calibration_mismatch")
    assert "input" in document["detail"]
    assert "input" in [value for error in document["errors"]
                       for key, value in error.items() if key != "detail"]


def test_missing_input_of_two_is_named(victim):
    victim.may_store = True
    node = helper.make_node("Add", ["left", "right"], ["y"], "add")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4])
             for n in ("left", "right", "y")]
    mm = helper.make_node("MatMul", ["y", "w"], ["z"], "mm")
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 1], [1, 2, 3, 4])
    out = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 1])
    graph = helper.make_graph([node, mm], "g", infos[:2], [out], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                              ir_version=8)
    onnx.checker.check_model(model)
    rows = np.ones((5, 4), np.float32)
    answer = victim.quantize(model.SerializeToString(), npz(left=rows))
    document = problem(answer, 422, "calibration_mismatch")
    assert document["errors"][0]["input"] == "right"
    answer = victim.quantize(model.SerializeToString(), npz(left=rows, right=rows))
    assert answer.status_code == 200, answer.text


def test_nonfinite_is_named(victim):
    victim.may_store = True
    bad = IMAGES.copy()
    bad[5, 0, 3, 3] = np.nan
    document = problem(victim.quantize(RESNET, npz(input=bad)), 422, "nonfinite")
    assert "5" in json.dumps(document)


def test_no_calibration(victim):
    victim.may_store = True
    problem(victim.quantize(RESNET), 422, "no_calibration")
    model = victim.upload("models", RESNET)
    answer = victim.post("/v1/jobs?wait=60", json={"model": model})
    if answer.status_code == 200:
        assert answer.json()["state"] == "failed"
        assert answer.json()["error"]["code"] == "no_calibration"
    else:
        problem(answer, 422, "no_calibration")


def test_the_runtime_does_not_know_the_opset(victim):
    """ONNX Runtime's own reason, without the place in its source."""
    victim.may_store = True
    model = onnx.load_from_string(model_bytes())
    model.opset_import[0].version = 900
    rows = np.ones((8, 2), np.float32)
    document = problem(victim.quantize(model.SerializeToString(), npz(x=rows)), 422,
                       "run_failed")
    assert document["detail"].startswith(
        "ONNX Runtime cannot load the model: ONNX Runtime only *guarantees*")
    assert "_src/" not in document["detail"] and document["detail"][-1] not in ". "


def test_float64_is_cast_with_a_warning(victim):
    victim.may_store = True
    answer = victim.quantize(RESNET, npz(input=IMAGES.astype(np.float64)))
    assert answer.status_code == 200, answer.text
    report = victim.report(answer.headers["Location"].rsplit("/", 1)[1])
    assert "float64" in json.dumps(report["warnings"])


# --- requests ----------------------------------------------------------------------------

MODEL = ("m.onnx", RESNET, "application/octet-stream")


@pytest.mark.parametrize("path", ["/v1/models", "/v1/datasets", "/v1/jobs", "/v1/plan",
                                  "/v1/quantize"])
def test_empty_body(victim, path):
    answer = victim.post(path)
    assert answer.status_code in (400, 415)
    problem(answer, answer.status_code, answer.json()["code"])
    problem(victim.post(path, data=b"", headers={
        "Content-Type": "application/octet-stream" if path in (
            "/v1/models", "/v1/datasets") else "application/json"}), 400, "empty_body")


@pytest.mark.parametrize("path", ["/v1/models", "/v1/datasets", "/v1/quantize"])
def test_body_over_the_limit(victim, path):
    big = bytes(9 << 20)
    if path == "/v1/quantize":
        answer = victim.post(path, files={"model": ("m", big)})
    else:
        answer = victim.post(path, data=big)
    problem(answer, 413, "too_large")


def test_body_over_the_limit_is_refused_before_it_is_sent(victim):
    """With Expect: 100-continue the refusal comes at once."""
    host, port = victim.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as one:
        one.sendall(b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 999999999999\r\nExpect: 100-continue\r\n\r\n")
        assert b" 413 " in one.recv(4096).split(b"\r\n")[0]


def test_a_stream_over_the_limit(victim):
    """A body without Content-Length is counted while it arrives."""
    def chunks():
        for _ in range(9):
            yield bytes(1 << 20)
    try:
        answer = victim.post("/v1/models", data=chunks())
    except OSError:
        return  # the daemon may close the connection early; `victim` checks the rest
    problem(answer, 413, "too_large")


@pytest.mark.parametrize("body, status, code", [
    ("{", 400, "invalid_json"),
    ("nonsense", 400, "invalid_json"),
    ("[]", 400, "bad_request"),
    ("{}", 400, "missing_part"),
    ('{"model": 7}', 400, "bad_request"),
    ('{"model": "sha256:00", "modell": "x"}', 400, "bad_request"),
    ('{"model": "sha256:' + "0" * 64 + '"}', 404, "not_found"),
])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/plan"])
def test_bad_job_json(victim, path, body, status, code):
    answer = victim.post(path, data=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (status, 422)
    problem(answer, answer.status_code, code)


def test_unknown_ids_in_a_form(victim):
    unknown = "sha256:" + "0" * 64
    answer = victim.post("/v1/jobs", files={"model": (None, unknown)})
    document = problem(answer, 404, "not_found")
    assert unknown in document["detail"] or "model" in json.dumps(document)


def test_unknown_part_is_named(victim):
    victim.may_store = True
    answer = victim.post("/v1/quantize", files={"model": MODEL, "modle": (None, "x")})
    assert 400 <= answer.status_code < 500
    document = problem(answer, answer.status_code, answer.json()["code"])
    assert "modle" in json.dumps(document)


def test_model_part_is_needed(victim):
    victim.may_store = True
    answer = victim.post("/v1/quantize",
                         files={"calibration": ("c", npz(input=IMAGES))})
    document = problem(answer, 400, "missing_part")
    assert "model" in document["detail"]


def test_labels_are_texts(victim):
    victim.may_store = True
    answer = victim.post("/v1/jobs", files={"model": MODEL,
                                            "labels": (None, '{"a": 1}')})
    assert 400 <= answer.status_code < 500
    problem(answer, answer.status_code, answer.json()["code"])


def test_boundary_of_one_character(victim):
    """The parser of forms refuses a boundary of one character; two are enough."""
    body = '--{0}\r\nContent-Disposition: form-data; name="model"\r\n\r\nx\r\n--{0}--\r\n'
    for boundary, wanted in (("b", "bad_request"), ("bb", "invalid_model")):
        answer = victim.post("/v1/models", data=body.format(boundary), headers={
            "Content-Type": f"multipart/form-data; boundary={boundary}"})
        told = problem(answer, 400, wanted)
        assert ("two characters" in told["detail"]) == (boundary == "b")


def test_broken_form(victim):
    answer = victim.post("/v1/quantize", data=b"--x\r\nContent-Disposition: form-data",
                         headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status_code == 400
    problem(answer, 400, answer.json()["code"])


@pytest.mark.parametrize("path, kind", [
    ("/v1/jobs", "text/plain"), ("/v1/quantize", "image/png"),
])
def test_wrong_content_type(victim, path, kind):
    answer = victim.post(path, data=b"x", headers={"Content-Type": kind})
    problem(answer, 415, "unsupported_media_type")


def test_two_lengths_are_refused(victim):
    """Two Content-Length headers that differ could smuggle a request past a proxy."""
    host, port = victim.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as one:
        one.sendall(b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde")
        assert b" 400 " in one.recv(4096).split(b"\r\n")[0]


def test_upload_broken_off(victim):
    """The client closes the connection in the middle of its body."""
    host, port = victim.url.removeprefix("http://").split(":")
    for kind in (b"application/octet-stream", b"multipart/form-data; boundary=x"):
        with socket.create_connection((host, int(port)), timeout=60) as one:
            one.sendall(b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: " + kind + b"\r\nContent-Length: 2000000\r\n\r\n"
                        b"--x\r\nContent-Disposition: form-data; name=\"model\"; "
                        b"filename=\"m\"\r\n\r\n" + bytes(500000))
    eventually(lambda: victim.temporary_files() == [])


def test_many_broken_ones_do_not_stop_a_good_one(victim):
    victim.may_store = True
    answer = victim.quantize(RESNET, npz(input=IMAGES))
    assert answer.status_code == 200, answer.text
