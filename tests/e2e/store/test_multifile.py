# SPDX-License-Identifier: Apache-2.0
"""Models of several files: sent as parts or named by digest, and downloaded as one tar.
"""

import hashlib
import io
import json
import os
import tarfile
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import judge
import nets
from service import eventually, problem

pytestmark = pytest.mark.long
SHORT = {"calibration": {"random_samples": 2}}


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def identity(files):
    """Returns the text whose digest is the id, as the contract defines it."""
    rows = sorted(({"digest": digest(data), "path": path, "size": len(data)}
                   for path, data in files), key=lambda row: row["path"].encode())
    return digest(json.dumps({"files": rows}, separators=(",", ":"), sort_keys=True,
                             ensure_ascii=False).encode())


def external_net(locations=("weights.bin",), seed=0):
    """Returns a model (a chain of products, each with its weight in a file of its own)
    and the bytes of the files."""
    rng = np.random.default_rng(seed)
    files, nodes, weights, x = {}, [], [], "x"
    for i, location in enumerate(locations):
        data = rng.standard_normal((32, 32)).astype(np.float32).tobytes()
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[32, 32],
                             data_location=TensorProto.EXTERNAL)
        at = len(files.get(location, b""))
        files[location] = files.get(location, b"") + data
        for key, value in (("location", location), ("offset", at), ("length", len(data))):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [x, f"w{i}"], [f"y{i}"], name=f"mm{i}"))
        x = f"y{i}"
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", 32])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8)
    return model.SerializeToString(), files


def parts(model, files, name="net.onnx"):
    """Returns a form: the model's part, and one for each (name, bytes)."""
    return [("model", (name, model))] + [("external", pair) for pair in files]


def send(one, model, files, path="/v1/models", more=(), name="net.onnx", **options):
    files = files.items() if isinstance(files, dict) else files
    return one.post(path, files=parts(model, files, name) + list(more), **options)


def put(one, data):
    answer = one.request("PUT", f"/v1/blobs/{digest(data)}", data=data)
    assert answer.status_code in (200, 201)
    return digest(data)


def unpacked(answer, folder):
    """Unpacks the tar of an answer into the folder, and returns its names."""
    assert answer.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        members = tar.getmembers()
        tar.extractall(folder)
    return [m.name for m in members]


def test_parts(daemon, tmp_path):
    locations = ("b/w.bin", "a.bin", "b/w.bin", "b/c/ü.bin")
    model, files = external_net(locations)
    answer = send(daemon, model, files)
    assert answer.status_code == 201, answer.text
    stored = answer.json()
    everything = [("net.onnx", model), *files.items()]
    assert stored["id"] == identity(everything)
    assert answer.headers["Location"] == "/v1/models/" + stored["id"]
    assert stored["size"] == sum(len(data) for _, data in everything)
    assert stored["files"] == [{"path": path, "digest": digest(data), "size": len(data)}
                               for path, data in everything]
    again = send(daemon, model, files)
    assert again.status_code == 200
    assert again.json()["created_at"] == stored["created_at"]
    got = daemon.get("/v1/models/" + stored["id"])
    assert got.headers["Content-Length"] == str(len(got.content))
    assert got.headers["ETag"] == f'"{stored["id"]}"'
    assert got.headers["Content-Disposition"].endswith('.tar"')
    assert unpacked(got, tmp_path) == ["net.onnx", *files]
    for path, data in everything:
        assert (tmp_path / path).read_bytes() == data
    onnxruntime.InferenceSession(tmp_path / "net.onnx")
    info = daemon.get(f"/v1/models/{stored['id']}/info").json()
    assert info["ops"] == [{"op": "MatMul", "count": 4}]
    assert info["classes"]["Dense"]["quantized"] == 4


def test_head_range_and_tags_of_the_tar(daemon):
    stored = send(daemon, *external_net(seed=1)).json()
    path = "/v1/models/" + stored["id"]
    whole = daemon.get(path)
    head = daemon.request("HEAD", path)
    assert head.status_code == 200 and not head.content
    assert head.headers["Content-Length"] == str(len(whole.content))
    size = len(whole.content)
    for first, last in ((0, 9), (500, 530), (size - 1030, size - 1), (1000, 5000)):
        part = daemon.get(path, headers={"Range": f"bytes={first}-{last}"})
        assert part.status_code == 206
        assert part.content == whole.content[first:last + 1]
        assert part.headers["Content-Range"] == f"bytes {first}-{last}/{size}"
    problem(daemon.get(path, headers={"Range": f"bytes={size}-"}), 416,
            "range_not_satisfiable")
    assert daemon.get(path, headers={"If-None-Match": head.headers["ETag"]}
                      ).status_code == 304


def test_base_names_are_enough(daemon):
    """Base names are enough, because curl sends no more of a path."""
    model, files = external_net(("deep/down/a.bin", "b.bin"))
    sent = [(path.split("/")[-1], data) for path, data in files.items()]
    answer = send(daemon, model, sent[::-1])
    assert answer.status_code == 201, answer.text
    assert [f["path"] for f in answer.json()["files"]] == ["net.onnx", "b.bin",
                                                           "deep/down/a.bin"]
    assert answer.json()["id"] == identity([("net.onnx", model), *files.items()])


def test_names_of_the_model(daemon):
    for name, wanted in (("some/where/m.onnx", "m.onnx"), ("..", "model.onnx"),
                         (None, "model.onnx"), ("a\tb", "model.onnx")):
        model, files = external_net(seed=2)
        sent = [("model", (name, model))] + [("external", f) for f in files.items()]
        answer = daemon.post("/v1/models", files=sent)
        assert answer.status_code in (200, 201), answer.text
        assert answer.json()["files"][0]["path"] == wanted


def test_a_single_file_needs_no_name(daemon):
    model, files = external_net(("x/only.bin",), seed=3)
    (data,) = files.values()
    answer = daemon.post("/v1/models", files=[("model", (None, model)),
                                              ("external", (None, data))])
    assert answer.status_code == 201, answer.text
    assert answer.json()["files"][1]["path"] == "x/only.bin"
    model, files = external_net(("a.bin", "b.bin"), seed=3)
    sent = [("model", (None, model))] + [("external", (None, d)) for d in files.values()]
    problem(daemon.post("/v1/models", files=sent), 422, "external_ambiguous")


def test_what_does_not_fit_is_named(daemon):
    """Files that are missing, ambiguous, unused or too short are refused by name."""
    model, files = external_net(("a/w.bin", "b/w.bin"), seed=4)
    a, b = files.values()
    before = daemon.stored_files()
    missing = problem(send(daemon, model, [("a/w.bin", a)]), 422, "external_missing")
    assert "b/w.bin" in missing["detail"]
    problem(send(daemon, model, [("w.bin", a), ("b/w.bin", b), ("w.bin", b)]), 422,
            "external_ambiguous")
    problem(send(daemon, model, [("x/w.bin", a), ("y/w.bin", b)]), 422,
            "external_ambiguous")
    unused = problem(send(daemon, model, [*files.items(), ("notes.txt", b"n")]), 422,
                     "external_unused")
    assert "notes.txt" in unused["detail"]
    short = problem(send(daemon, model, [("a/w.bin", a), ("b/w.bin", b[:-1])]), 400,
                    "invalid_model")
    assert "b/w.bin" in short["detail"]
    problem(send(daemon, model, [("a/w.bin", a), ("b/w.bin", b"")]), 400, "empty_body")
    problem(daemon.post("/v1/models", files=[("external", ("a/w.bin", a))]), 400,
            "missing_part")
    own = external_net(("net.onnx",), seed=4)
    problem(send(daemon, *own), 422, "external_ambiguous")
    assert daemon.stored_files() == before and daemon.temporary_files() == []


def test_as_many_files_as_there_may_be(daemon, tmp_path):
    model, files = external_net([f"{i:03}.bin" for i in range(128)], seed=5)
    answer = send(daemon, model, files)
    assert answer.status_code == 201, answer.text
    assert len(unpacked(daemon.get(answer.headers["Location"]), tmp_path)) == 129
    plan = daemon.post("/v1/plan", json={"model": answer.json()["id"]})
    assert plan.json()["summary"]["quantized_layers"] == 128
    model, files = external_net([f"{i:03}.bin" for i in range(129)], seed=5)
    document = problem(send(daemon, model, files), 422, "limit_exceeded")
    assert document["errors"][0]["pointer"] == "/external"


def test_names_that_a_tar_says_in_its_own_way(daemon, tmp_path):
    locations = ("é" * 60 + ".bin", "d/" * 60 + "w.bin", "n" * 200)
    model, files = external_net(locations, seed=6)
    answer = send(daemon, model, files)
    assert answer.status_code == 201, answer.text
    assert unpacked(daemon.get(answer.headers["Location"]), tmp_path) == [
        "net.onnx", *files]
    onnxruntime.InferenceSession(tmp_path / "net.onnx")


# --- by digest ----------------------------------------------------------------------------

def listed(one, rows):
    return one.post("/v1/models", json={"files": [
        {"path": path, "digest": name} for path, name in rows]})


def test_named_by_digest(daemon):
    model, files = external_net(("a.bin", "b.bin"), seed=7)
    rows = [("net.onnx", put(daemon, model))]
    rows += [(path, put(daemon, data)) for path, data in files.items()]
    answer = listed(daemon, rows)
    assert answer.status_code == 201, answer.text
    assert answer.json()["id"] == identity([("net.onnx", model), *files.items()])
    assert send(daemon, model, files).status_code == 200


def test_one_file_named_by_digest(daemon):
    data = nets.block_net()
    answer = listed(daemon, [("any.onnx", put(daemon, data))])
    assert answer.status_code in (200, 201), answer.text
    assert answer.json()["id"] == digest(data)
    assert daemon.get(answer.headers["Location"]).content == data


def test_ids_in_a_form(daemon):
    """The changed file is sent, and the others are named by their ids."""
    model, files = external_net(("a.bin", "b.bin"), seed=8)
    a, b = files.values()
    sent = [("model", ("net.onnx", model)), ("external", ("a.bin", put(daemon, a))),
            ("external", ("b.bin", b))]
    answer = daemon.post("/v1/models", files=sent)
    assert answer.status_code == 201, answer.text
    assert answer.json()["id"] == identity([("net.onnx", model), *files.items()])
    sent[1] = ("external", ("a.bin", "sha256:" + "0" * 64))
    problem(daemon.post("/v1/models", files=sent), 404, "not_found")


BAD_LISTS = {
    "no object": ([], 400, "bad_request"),
    "nothing": ({}, 400, "missing_part"),
    "empty": ({"files": []}, 400, "missing_part"),
    "text": ({"files": "x"}, 400, "bad_request"),
    "more": ({"files": [], "x": 1}, 400, "bad_request"),
    "no digest": ({"files": [{"path": "m"}]}, 400, "bad_request"),
    "third member": ({"files": [{"path": "m", "digest": "d", "x": 1}]}, 400, "bad_request"),
    "number": ({"files": [{"path": 1, "digest": "d"}]}, 400, "bad_request"),
    "folder": ({"files": [{"path": "a/m", "digest": "d"}]}, 400, "bad_request"),
    "unknown": ({"files": [{"path": "m", "digest": "sha256:" + "0" * 64}]}, 404,
                "not_found"),
    "no id": ({"files": [{"path": "m", "digest": "../x"}]}, 404, "not_found"),
    "twice": ({"files": [{"path": "m", "digest": "d"}] * 2}, 400, "bad_request"),
    "many": ({"files": [{"path": f"m{i}", "digest": "d"} for i in range(130)]}, 422,
             "limit_exceeded"),
}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("name", BAD_LISTS)
def test_bad_lists(daemon, name):
    body, status, code = BAD_LISTS[name]
    problem(daemon.post("/v1/models", json=body), status, code)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("path", ["../w", "/w", "a/../w", "a//..", "", ".", "a/", "a\\b",
                                  "a\nb", "x" * 1025])
def test_bad_paths(daemon, path):
    rows = [("m.onnx", "sha256:" + "0" * 64), (path, "sha256:" + "0" * 64)]
    document = problem(listed(daemon, rows), 400, "bad_request")
    assert document["errors"][0]["pointer"] == "/files/1/path"


def test_no_json(daemon):
    answer = daemon.post("/v1/models", data=b"{", headers={
        "Content-Type": "application/json"})
    problem(answer, 400, "invalid_json")


# --- jobs ---------------------------------------------------------------------------------

def test_jobs_of_several_files(daemon, tmp_path):
    """The job gives the same result as for one file with the same weights."""
    model, files = external_net(("a.bin", "b/c.bin"), seed=9)
    for path, data in {"m.onnx": model, **files}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    whole = onnx.load(tmp_path / "m.onnx").SerializeToString()
    ranges = {"x": [-4, 4], "y0": [-25, 25]}
    spec = {"calibration": {"ranges": ranges}, "evaluate": False}
    stored = send(daemon, model, files).json()["id"]
    job = daemon.submit(model=stored, spec=spec)
    ended = daemon.succeeded(job)
    assert ended["model"] == stored
    several = daemon.get(f"/v1/jobs/{job}/report").json()
    job_of_one = daemon.submit(model=daemon.upload("models", whole), spec=spec)
    daemon.succeeded(job_of_one)
    one = daemon.report(job_of_one)
    for member in ("layers", "tensors", "weights"):
        assert several[member] == one[member]
    assert several["model"]["id"] == stored
    x = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
    # Node by node: kernels of processors without VNNI add products of integers in 16 bits.
    quantized = judge.session(daemon.result(job), optimized=False).run(None, {"x": x})[0]
    exact = onnxruntime.InferenceSession(whole).run(None, {"x": x})[0]
    assert np.abs(quantized - exact).max() < 0.1 * np.abs(exact).max()


def test_parts_of_a_job_and_its_plan(daemon):
    model, files = external_net(("a.bin", "b.bin"), seed=10)
    spec = [("spec", (None, json.dumps(SHORT)))]
    before = daemon.stored_files()
    plan = send(daemon, model, files, "/v1/plan", spec)
    assert plan.status_code == 200, plan.text
    assert plan.json()["summary"]["quantized_layers"] == 2
    assert daemon.stored_files() == before
    answer = send(daemon, model, files, "/v1/jobs", spec)
    assert answer.status_code == 202, answer.text
    assert answer.json()["model"] == identity([("net.onnx", model), *files.items()])
    first = daemon.succeeded(answer.json()["id"])
    shot = send(daemon, model, files, "/v1/quantize", spec)
    assert shot.status_code == 200, shot.text
    again = daemon.job(shot.headers["Location"].split("/")[-1])
    assert again["cached_from"] == first["id"]
    problem(send(daemon, model, list(files.items())[:1], "/v1/jobs", spec), 422,
            "external_missing")


def test_the_same_key(daemon):
    model, files = external_net(("a.bin", "b.bin"), seed=11)
    spec = [("spec", (None, json.dumps(SHORT)))]
    key = {"Idempotency-Key": os.urandom(8).hex()}
    first = send(daemon, model, files, "/v1/jobs", spec, headers=key).json()["id"]
    turned = list(files.items())[::-1]
    assert send(daemon, model, turned, "/v1/jobs", spec, headers=key).json()["id"] == first
    by_id = daemon.post("/v1/jobs", headers=key, json={
        "model": identity([("net.onnx", model), *files.items()]), "spec": SHORT})
    assert by_id.json()["id"] == first
    others = {path: data[::-1] for path, data in files.items()}
    problem(send(daemon, model, others, "/v1/jobs", spec, headers=key), 422,
            "idempotency_mismatch")


# --- deletion and retention ---------------------------------------------------------------

def test_delete(service):
    one = service()
    model, files = external_net(("a.bin", "b.bin"))
    stored = send(one, model, files).json()["id"]
    other, _ = external_net(("a.bin",))
    shared = send(one, other, {"a.bin": files["a.bin"]})
    assert shared.status_code == 201, shared.text
    blob = put(one, files["b.bin"])
    assert one.request("DELETE", f"/v1/models/{stored}").status_code == 204
    problem(one.get(f"/v1/models/{stored}"), 404, "not_found")
    assert sorted(one.stored_files()) == sorted(
        digest(d)[7:] for d in (other, files["a.bin"], files["b.bin"]))
    assert one.request("DELETE", f"/v1/blobs/{blob}").status_code == 204
    assert one.request("DELETE", shared.headers["Location"]).status_code == 204
    assert one.stored_files() == []


def beside(location):
    """Returns a model whose weight is the first bytes of the file of that name."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4],
                         data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", 0), ("length", 16)):
        weight.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"], "mul")], location,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])], [weight])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17)]).SerializeToString()


def test_each_the_data_of_the_other(service):
    """Either file can be the model and the other its data, with the same id for both. So
    only one of the two can be stored at a time; the other is a conflict."""
    one = service()
    a, b = beside("b.onnx"), beside("a.onnx")
    first = send(one, a, {"b.onnx": b}, name="a.onnx")
    assert first.status_code == 201, first.text
    again = send(one, a, {"b.onnx": b}, name="a.onnx")
    assert again.status_code == 200
    spec = ("spec", (None, json.dumps({"activations": "none"})))
    for path, more in (("/v1/models", ()), ("/v1/jobs", [spec]), ("/v1/quantize", [spec])):
        told = problem(send(one, b, {"a.onnx": a}, path=path, name="b.onnx", more=more),
                       409, "model_conflict")
        assert "a.onnx as the model" in told["detail"]
    assert [file["path"] for file in again.json()["files"]] == ["a.onnx", "b.onnx"]
    assert len(one.stored_files()) == 2
    one.request("DELETE", first.headers["Location"])
    second = send(one, b, {"a.onnx": a}, name="b.onnx")
    assert (second.status_code, second.json()["id"]) == (201, first.json()["id"])
    assert [file["path"] for file in second.json()["files"]] == ["b.onnx", "a.onnx"]


def test_what_a_live_job_needs(held, service):
    """A model that an unfinished job needs cannot be deleted, and its files stay when
    their blobs are deleted."""
    one = service(**held)
    model, files = external_net(("a.bin", "b.bin"))
    rows = [("net.onnx", put(one, model)), *((p, put(one, d)) for p, d in files.items())]
    stored = listed(one, rows).json()["id"]
    job = one.submit(model=stored, spec=SHORT)
    one.stop()  # the job goes back to the queue
    one.start(QDQD_RETENTION_FILES="1")
    one.running(job)
    problem(one.request("DELETE", f"/v1/models/{stored}"), 409, "in_use")
    for data in files.values():
        one.request("DELETE", f"/v1/blobs/{digest(data)}")
    other = put(one, b"used by no model")
    eventually(lambda: one.request("HEAD", f"/v1/blobs/{other}").status_code == 404)
    assert one.get(f"/v1/models/{stored}").status_code == 200
    eventually(lambda: len(one.stored_files()) == 3)  # the file goes after its row
    one.post(f"/v1/jobs/{job}/cancel")
    eventually(lambda: one.stored_files() == [])
    assert one.get(f"/v1/models/{stored}").status_code == 404


def test_a_model_renews_its_blobs(service):
    one = service(retention_files=5)
    model, files = external_net()
    rows = [("net.onnx", put(one, model)), *((p, put(one, d)) for p, d in files.items())]
    other = put(one, b"used by no model")

    def is_renewed_until_the_other_goes():
        assert listed(one, rows).status_code in (200, 201)
        return one.request("HEAD", f"/v1/blobs/{other}").status_code == 404

    eventually(is_renewed_until_the_other_goes, every=0.1)
    assert one.request("HEAD", f"/v1/blobs/{rows[1][1]}").status_code == 200
    eventually(lambda: one.stored_files() == [])


def test_restart_and_kill(service):
    one = service()
    model, files = external_net(("a.bin", "b.bin"))
    stored = send(one, model, files).json()
    before = one.get("/v1/models/" + stored["id"]).content
    blobs = one.stored_files()
    one.kill()
    one.start()
    assert one.stored_files() == blobs
    assert one.get("/v1/models/" + stored["id"]).content == before
    job = one.submit(model=stored["id"], spec=SHORT)
    one.succeeded(job)


def test_the_same_at_once(daemon):
    model, files = external_net(("a.bin", "b.bin"), seed=12)
    answers = []

    def work():
        answers.append(send(daemon, model, files).status_code)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 200, 200, 201]
    assert daemon.temporary_files() == []


# --- results ------------------------------------------------------------------------------

ALWAYS = dict(SHORT, output={"external_data": "always"}, evaluate=False)
RESULT = ["model.onnx", "model.onnx.data"]


def check_result(answer, folder):
    """Expects a tar with a model that runs where it is unpacked; returns its files by
    name."""
    assert answer.status_code == 200, answer.text
    assert unpacked(answer, folder) == RESULT
    onnx.checker.check_model(str(folder / RESULT[0]))
    session = onnxruntime.InferenceSession(folder / RESULT[0])
    y = session.run(None, {"x": np.ones((2, 32), np.float32)})[0]
    assert np.isfinite(y).all()
    return [(name, (folder / name).read_bytes()) for name in RESULT]


def test_a_result_of_two_files(daemon, tmp_path):
    model, files = external_net(("a.bin", "b.bin"), seed=20)
    stored = send(daemon, model, files).json()["id"]
    job = daemon.submit(model=stored, spec=ALWAYS)
    result = daemon.succeeded(job)["result"]
    got = daemon.get(f"/v1/jobs/{job}/model")
    made = check_result(got, tmp_path)
    assert result["model"] == identity(made)
    assert result["size"] == sum(len(data) for _, data in made)
    assert result["files"] == [{"path": path, "digest": digest(data), "size": len(data)}
                               for path, data in made]
    assert got.headers["Content-Disposition"].endswith('.tar"')
    path = "/v1/models/" + result["model"]
    assert daemon.get(path).content == got.content
    assert daemon.get(path, headers={"Range": "bytes=-600"}).content == got.content[-600:]
    assert daemon.get(path + "/info").json()["ops"]
    listing = daemon.get("/v1/jobs?limit=1").json()["jobs"][0]
    assert listing["result"] == result


def test_one_shot_of_two_files(daemon, tmp_path):
    model, files = external_net(("a.bin",), seed=21)
    spec = [("spec", (None, json.dumps(ALWAYS)))]
    answer = send(daemon, model, files, "/v1/quantize", spec)
    check_result(answer, tmp_path)
    again = send(daemon, model, files, "/v1/quantize", spec)
    assert again.content == answer.content
    job = daemon.job(again.headers["Location"].split("/")[-1])
    assert job["cached_from"] and len(job["result"]["files"]) == 2


def test_a_result_goes_with_its_job(service):
    one = service()
    model, files = external_net(("a.bin",))
    stored = send(one, model, files).json()["id"]
    spec = dict(ALWAYS, calibration={"ranges": {"x": [-3, 3]}})
    job = one.submit(model=stored, spec=spec)
    result = one.succeeded(job)["result"]
    twin = one.submit(model=stored, spec=spec)
    assert one.job(twin)["result"] == result
    assert one.request("DELETE", f"/v1/jobs/{job}").status_code == 204
    assert one.get("/v1/models/" + result["model"]).status_code == 200
    one.stop()
    one.start()
    assert one.get(f"/v1/jobs/{twin}/model").status_code == 200
    assert one.request("DELETE", f"/v1/jobs/{twin}").status_code == 204
    assert one.get("/v1/models/" + result["model"]).status_code == 404
    assert sorted(one.stored_files()) == sorted(
        digest(d)[7:] for d in (model, *files.values()))


def test_a_refused_result_of_two_files(daemon, tmp_path):
    model, files = external_net(("a.bin",), seed=22)
    stored = send(daemon, model, files).json()["id"]
    spec = dict(ALWAYS, evaluate=True, accept={"min_cosine": 1})
    document = daemon.ended(daemon.submit(model=stored, spec=spec))
    assert document["error"]["code"] == "accuracy"
    check_result(daemon.get("/v1/models/" + document["error"]["model"]), tmp_path)


def test_a_result_as_a_model(daemon):
    """A result's id can be used like any other model's."""
    model, files = external_net(("a.bin",), seed=23)
    result = daemon.succeeded(daemon.submit(model=send(daemon, model, files).json()["id"],
                                            spec=ALWAYS))["result"]
    plan = daemon.post("/v1/plan", json={"model": result["model"]})
    problem(plan, 422, "existing_qdq")


def test_backup(service, tmp_path):
    import subprocess
    from service import INSTALLED
    one = service()
    model, files = external_net(("a.bin", "b.bin"))
    stored = send(one, model, files).json()["id"]
    blob = put(one, b"some other bytes")
    job = one.submit(model=stored, spec=ALWAYS)
    one.succeeded(job)
    wanted = [one.get(path).content for path in (
        f"/v1/models/{stored}", f"/v1/jobs/{job}/model", f"/v1/blobs/{blob}")]
    copy = tmp_path / "copy"
    qdqd = [INSTALLED / "sbin" / "qdqd", "--state-dir"]
    subprocess.run([*qdqd, one.state, "--backup", copy], check=True)
    one.stop()
    two = service()
    two.stop()
    two.state = tmp_path / "restored"
    subprocess.run([*qdqd, two.state, "--restore", copy], check=True)
    two.start()
    assert [two.get(path).content for path in (
        f"/v1/models/{stored}", f"/v1/jobs/{job}/model", f"/v1/blobs/{blob}")] == wanted
