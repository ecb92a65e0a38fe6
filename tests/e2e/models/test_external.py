# SPDX-License-Identifier: Apache-2.0
"""External data in models and results: which files, which bytes, what is refused, and
that it does not change the result. onnx and onnxruntime check the files by their paths.
"""

import hashlib
import json
import os
from functools import lru_cache

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_qdq import last_line
from test_qdq_files import names, qdq

LIMIT = 1024  # bytes; smaller tensors stay in a result's model file


def tensor(name, *shape, seed=0):
    random = np.random.default_rng(seed + len(name))
    return numpy_helper.from_array(random.normal(0, 0.5, shape).astype(np.float32), name)


def value(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def body(name, seed):
    """Returns a branch whose weight is an initializer of its own."""
    node = helper.make_node("MatMul", ["hidden", f"{name}.w"], [f"{name}.y"], f"{name}.mm")
    return helper.make_graph([node], name, [], [value(f"{name}.y", "n", 64)],
                             [tensor(f"{name}.w", 64, 64, seed=seed)])


@lru_cache
def net():
    """Returns a network with weights in every place: initializers, a Constant, branches
    of an If; some are integers."""
    order = np.random.default_rng(1).integers(0, 64, 200)
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Constant", [], ["c"], "constant",
                         value=tensor("c.value", 128, 64)),
        helper.make_node("MatMul", ["b", "c"], ["hidden"], "second"),
        helper.make_node("If", ["yes"], ["chosen"], "if", then_branch=body("then", 3),
                         else_branch=body("else", 4)),
        helper.make_node("Gather", ["chosen", "order"], ["longer"], "gather", axis=1),
        helper.make_node("MatMul", ["longer", "w2"], ["d"], "third"),
        helper.make_node("Add", ["d", "bias"], ["y"], "add"),
    ]
    weights = [tensor("w1", 64, 128), numpy_helper.from_array(order, "order"),
               tensor("w2", 200, 10), tensor("bias", 10),
               numpy_helper.from_array(np.array(True), "yes")]
    model = helper.make_model(
        helper.make_graph(nodes, "net", [value("x", "n", 64)], [value("y", "n", 10)],
                          weights),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def tensors(graph):
    """Returns every tensor of a graph and of its nested graphs, by name."""
    found = {t.name: t for t in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                found[attribute.t.name] = attribute.t
            if attribute.type == onnx.AttributeProto.GRAPH:
                found.update(tensors(attribute.g))
    return found


def place(t, location, offset=None, length=None):
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    del t.external_data[:]
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            t.external_data.add(key=key, value=str(text))


def externalize(folder, file_of, gap=0, lengths=True, model=None):
    """Writes the network to `folder`, with each tensor in the file that file_of(name)
    returns (None: in the model)."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model or net())
    folder.mkdir(exist_ok=True)
    for name, t in tensors(copy.graph).items():
        if file_of(name) is None:
            continue
        path = folder / file_of(name)
        path.parent.mkdir(exist_ok=True)
        data = numpy_helper.to_array(t).tobytes()
        with open(path, "ab") as file:
            file.write(b"\xa5" * gap)
            at = file.tell()
            file.write(data)
        place(t, file_of(name), at, len(data) if lengths else None)
    onnx.save(copy, folder / "net.onnx")
    return folder / "net.onnx"


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "samples.npz"
    np.savez(path, x=np.random.default_rng(2).normal(0, 1, (24, 64)).astype(np.float32))
    return path


def quantize(model, samples, folder, *arguments, **spec):
    """Returns the result's path and the report."""
    (folder / "spec.json").write_text(json.dumps(spec))
    done = qdq("quantize", model, "--spec", "spec.json", "--calibration", samples, "-o",
               "out.onnx", "--report", "report.json", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out.onnx", json.loads((folder / "report.json").read_text())


def refusal(model, folder, *arguments):
    before = names(folder)
    done = qdq("quantize", model, "-o", "out.onnx", *arguments, cwd=folder)
    assert done.returncode == 1, done.stdout
    assert names(folder) == before
    return last_line(done)


def outputs(path, samples):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.load(samples)["x"]})[0]


@pytest.fixture(scope="module")
def inline(tmp_path_factory, samples):
    folder = tmp_path_factory.mktemp("inline")
    onnx.save(net(), folder / "net.onnx")
    return quantize(folder / "net.onnx", samples, folder)


def figures(report):
    return {k: report[k] for k in ("tensors", "weights", "evaluation", "layers")}


LAYOUTS = {
    "one file": dict(file_of=lambda name: "weights.bin"),
    "one file each": dict(file_of=lambda name: f"{name}.bin"),
    "in folders": dict(file_of=lambda name: f"parts/{name[0]}.bin"),
    "no multiple of 4": dict(file_of=lambda name: "weights.bin", gap=3),
    "without lengths": dict(file_of=lambda name: "weights.bin", gap=1, lengths=False),
    "large ones only": dict(file_of=lambda name: {"w1": "a", "then.w": "b"}.get(name)),
    "integers and constant": dict(
        file_of=lambda name: "i.bin" if name in ("order", "c.value", "yes") else None),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("output", ["auto", "always"])
def test_it_makes_no_difference(tmp_path, samples, inline, layout, output):
    """The result is the same whether the model's data is external or not."""
    model = externalize(tmp_path / "model", **LAYOUTS[layout])
    onnx.checker.check_model(model)
    path, report = quantize(model, samples, tmp_path, output={"external_data": output})
    onnx.checker.check_model(path, full_check=True)
    ours, theirs = onnx.load(path), onnx.load(inline[0])
    assert [n.name for n in ours.graph.node] == [n.name for n in theirs.graph.node]
    other = tensors(theirs.graph)
    for name, t in tensors(ours.graph).items():
        assert numpy_helper.to_array(t).tobytes() == numpy_helper.to_array(
            other[name]).tobytes(), name
    np.testing.assert_array_equal(outputs(path, samples), outputs(inline[0], samples))
    assert figures(report) == figures(inline[1])
    sizes = [p.stat().st_size for p in (tmp_path / "model").rglob("*") if p.is_file()]
    assert report["summary"]["size_before"] == sum(sizes)
    data = tmp_path / "out.onnx.data"
    assert data.exists() == (output == "always")
    assert report["external_bytes"] == (data.stat().st_size if data.exists() else 0)
    assert report["summary"]["size_after"] == (path.stat().st_size
                                               + report["external_bytes"])


@pytest.mark.parametrize("storage", ["qdq", "dq"])
def test_layout_of_a_result(tmp_path, samples, storage):
    model = externalize(tmp_path / "model", lambda name: "weights.bin")
    path, report = quantize(model, samples, tmp_path, output={"external_data": "always"},
                            weights={"storage": storage})
    loaded = onnx.load(path, load_external_data=False)
    end = 0
    external = set()
    for name, t in tensors(loaded.graph).items():
        size = int(np.prod(t.dims)) * np.dtype(
            helper.tensor_dtype_to_np_dtype(t.data_type)).itemsize
        assert (t.data_location == TensorProto.EXTERNAL) == (size >= LIMIT), name
        if size < LIMIT:
            continue
        entries = {e.key: e.value for e in t.external_data}
        assert entries["location"] == "out.onnx.data"
        assert int(entries["length"]) == size
        assert int(entries["offset"]) % 64 == 0
        end = max(end, int(entries["offset"]) + size)
        external.add(name)
    assert {"c.value", "then.w", "order"} <= external or storage == "dq"
    assert end == report["external_bytes"] == (tmp_path / "out.onnx.data").stat().st_size
    outputs(path, samples)


def test_large_tensors_begin_at_pages(tmp_path):
    weights = [tensor("small", 16, 32), tensor("w", 32, 16384), tensor("v", 16384, 16)]
    nodes = [helper.make_node("MatMul", [["x", "a", "b"][i], w.name], [["a", "b", "y"][i]],
                              w.name + ".mm") for i, w in enumerate(weights)]
    model = helper.make_model(
        helper.make_graph(nodes, "wide", [value("x", "n", 16)], [value("y", "n", 16)],
                          weights),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", x=np.ones((2, 16), np.float32))
    path, _ = quantize(tmp_path / "net.onnx", tmp_path / "data.npz", tmp_path,
                       output={"external_data": "always"})
    offsets = {t.name: int(t.external_data[1].value) for t in
               onnx.load(path, load_external_data=False).graph.initializer
               if t.data_location == TensorProto.EXTERNAL}
    assert offsets["small"] == 0
    assert offsets["w"] == 4096 and offsets["v"] % 4096 == 0


def test_shared_and_overlapping(tmp_path, samples):
    """Two tensors with the same bytes are stored once in a result; tensors may also
    overlap."""
    model = onnx.ModelProto()
    model.CopyFrom(net())
    found = tensors(model.graph)
    data = np.random.default_rng(5).normal(0, 0.5, 64 * 65).astype(np.float32)
    (tmp_path / "w.bin").write_bytes(data.tobytes())
    place(found["then.w"], "w.bin", 0, 64 * 64 * 4)
    place(found["else.w"], "w.bin", 0)
    found["c.value"].dims[:] = [64, 64]
    found["w1"].dims[:] = [64, 64]
    place(found["c.value"], "./w.bin", 0)
    place(found["w1"], "w.bin", 64 * 4)
    onnx.save(model, tmp_path / "net.onnx")
    path, report = quantize(tmp_path / "net.onnx", samples, tmp_path,
                            output={"external_data": "always"})
    got = {k: numpy_helper.to_array(t).ravel()
           for k, t in tensors(onnx.load(path).graph).items()}
    for name in ("then.w", "else.w", "c.value"):
        np.testing.assert_array_equal(got[name], data[:64 * 64])
    np.testing.assert_array_equal(got["w1"], data[64:])
    assert report["external_bytes"] < 3 * 64 * 64 * 4
    outputs(path, samples)


def test_large_weights_in_every_place(tmp_path):
    """The calibrated ranges behind a Constant and a branch agree with onnxruntime's."""
    def branch(name, seed):
        node = helper.make_node("MatMul", ["hidden", f"{name}.w"], [f"{name}.y"], name)
        return helper.make_graph([node], name, [], [value(f"{name}.y", "n", 512)],
                                 [tensor(f"{name}.w", 512, 512, seed=seed)])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor("held", 512, 512)),
        helper.make_node("MatMul", ["x", "c"], ["hidden"], "first"),
        helper.make_node("If", ["yes"], ["z"], "if", then_branch=branch("then", 1),
                         else_branch=branch("else", 2)),
        helper.make_node("MatMul", ["z", "w"], ["y"], "last"),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "net", [value("x", "n", 512)],
                          [value("y", "n", 4), value("z", "n", 512)],
                          [tensor("w", 512, 4), numpy_helper.from_array(np.array(True),
                                                                        "yes")]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    # onnxruntime itself cannot read an external condition.
    path = externalize(tmp_path / "model", lambda name: None if name == "yes" else "w.bin",
                       gap=1, model=model)
    data = np.random.default_rng(3).normal(0, 1, (8, 512)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=data)
    out, report = quantize(path, tmp_path / "data.npz", tmp_path,
                           calibration={"method": "minmax"},
                           output={"external_data": "always"})
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    _, z = session.run(None, {"x": data})
    (row,) = [row for row in report["tensors"] if row["name"] == "z"]
    np.testing.assert_allclose([row["min"], row["max"]], [z.min(), z.max()], rtol=1e-4)
    assert report["evaluation"]["layers"]
    onnx.checker.check_model(out, full_check=True)
    onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])


# --- refused models -----------------------------------------------------------------------

def entry(**places):
    """Changes the location of tensor w1 in a model whose tensors are all in weights.bin.
    """
    def change(folder):
        model = onnx.load(folder / "net.onnx", load_external_data=False)
        (t,) = [t for t in model.graph.initializer if t.name == "w1"]
        place(t, **{"location": "weights.bin", **places})
        onnx.save(model, folder / "net.onnx")
    return change


def remove(folder):
    (folder / "weights.bin").unlink()


def truncate(folder):
    os.truncate(folder / "weights.bin", 32767)


def replace(make):
    def change(folder):
        (folder / "weights.bin").rename(folder.parent / "elsewhere.bin")
        make(folder / "weights.bin", folder.parent / "elsewhere.bin")
    return change


def link_folder(folder):
    (folder.parent / "other").mkdir()
    (folder / "weights.bin").rename(folder.parent / "other" / "weights.bin")
    (folder / "link").symlink_to(folder.parent / "other")
    model = onnx.load(folder / "net.onnx", load_external_data=False)
    for t in tensors(model.graph).values():
        t.external_data[0].value = "link/weights.bin"
    onnx.save(model, folder / "net.onnx")


REFUSED = {
    "missing": (remove, "external_missing", "'weights.bin'"),
    "empty file": (lambda folder: os.truncate(folder / "weights.bin", 0), "invalid_model",
                   "32768 bytes from byte 0 of 'weights.bin', which has 0"),
    "truncated": (truncate, "invalid_model", "which has 32767"),
    "absolute": (entry(location="/etc/passwd"), "invalid_model", "absolute"),
    "up": (entry(location="../weights.bin"), "invalid_model", "'..'"),
    "up and down": (entry(location="a/../weights.bin"), "invalid_model", "'..'"),
    "backslash": (entry(location="..\\weights.bin"), "invalid_model", "backslash"),
    "no name": (entry(location=""), "invalid_model", "w1"),
    "symbolic link": (replace(lambda a, b: a.symlink_to(b)), "io", "symbolic link"),
    "link beside it": (replace(lambda a, b: (b.rename(a.parent / "b"), a.symlink_to("b"))),
                       "io", "symbolic link"),
    "link of a folder": (link_folder, "io", "symbolic link"),
    "folder": (replace(lambda a, b: a.mkdir()), "io", "not a regular file"),
    "pipe": (replace(lambda a, b: os.mkfifo(a)), "io", "not a regular file"),
    "offset beyond": (entry(offset=10 ** 9), "invalid_model", "which has 0"),
    "offset overflows": (entry(offset=2 ** 64 - 16), "invalid_model", "w1"),
    "offset of 65 bits": (entry(offset=2 ** 64), "invalid_model", "offset"),
    "negative offset": (entry(offset=-4), "invalid_model", "offset"),
    "huge length": (entry(length=2 ** 64 - 1), "invalid_model", "asks for 32768"),
    "short length": (entry(length=4), "invalid_model", "asks for 32768"),
    "long name": (entry(location="\N{GREEK SMALL LETTER ALPHA}" * 5000), "io", ""),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("command", ["quantize", "info"])
def test_refused(tmp_path, case, command):
    folder = tmp_path / "model"
    model = externalize(folder, lambda name: "weights.bin")
    change, code, text = REFUSED[case]
    change(folder)
    if command == "quantize":
        line = refusal(model, tmp_path)
    else:
        done = qdq(command, model, cwd=tmp_path)
        assert done.returncode == 1
        line = last_line(done)
    assert code in line and text in line, line


def test_info_and_plan(tmp_path):
    model = externalize(tmp_path / "model", lambda name: f"{name}.bin")
    done = qdq("info", model, cwd=tmp_path)
    assert done.returncode == 0 and "of external data" in done.stdout, done.stderr
    done = qdq("plan", model, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    total = sum(p.stat().st_size for p in (tmp_path / "model").iterdir())
    assert json.loads(done.stdout)["summary"]["size_before"] == total


# --- results ------------------------------------------------------------------------------

def test_small_tensors_need_no_file(tmp_path):
    model = helper.make_model(
        helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "mm")], "tiny",
                          [value("x", "n", 4)], [value("y", "n", 4)], [tensor("w", 4, 4)]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", x=np.ones((2, 4), np.float32))
    _, report = quantize(tmp_path / "net.onnx", tmp_path / "data.npz", tmp_path,
                         output={"external_data": "always"})
    assert report["external_bytes"] == 0
    assert "out.onnx.data" not in names(tmp_path)


def test_a_result_never_becomes_its_source(tmp_path):
    model = externalize(tmp_path / "model", lambda name: "out.onnx.data")
    done = qdq("quantize", model, "-o", "model/out.onnx", cwd=tmp_path)
    assert done.returncode == 1
    assert "own external data" in last_line(done)
    for options in (["-o", "model/out.onnx.data"],
                    ["-o", "a.onnx", "--report", "model/out.onnx.data"],
                    ["-o", "a.onnx", "--html", "model/out.onnx.data"]):
        done = qdq("quantize", model, *options, cwd=tmp_path)
        assert done.returncode == 1 and "own external data, so it is not" in last_line(done)
    onnx.checker.check_model(model)


def test_a_missed_gate_leaves_no_data(tmp_path, samples):
    model = externalize(tmp_path / "model", lambda name: "weights.bin")
    (tmp_path / "spec.json").write_text(json.dumps(
        {"accept": {"min_sqnr_db": 300}, "output": {"external_data": "always"}}))
    done = qdq("quantize", model, "--spec", "spec.json", "--calibration", samples, "-o",
               "out.onnx", cwd=tmp_path)
    assert done.returncode == 1 and "accuracy" in last_line(done)
    assert names(tmp_path) == ["model", "spec.json"]


def test_more_than_one_file_holds(tmp_path):
    """With `never`, a weight of 2.15 GB (a sparse file) is an error, and no file is left.
    """
    n = 23200
    model = helper.make_model(
        helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "mm")], "huge",
                          [value("x", 1, n)], [value("y", 1, n)],
                          [onnx.TensorProto(name="w", data_type=TensorProto.FLOAT,
                                            dims=[n, n])]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    place(model.graph.initializer[0], "w.bin")
    onnx.save(model, tmp_path / "net.onnx")
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(4 * n * n)
    (tmp_path / "spec.json").write_text(json.dumps(
        {"output": {"external_data": "never"}, "calibration": {"ranges": {"x": [-1, 1]}}}))
    line = refusal(tmp_path / "net.onnx", tmp_path, "--spec", "spec.json")
    assert "invalid_spec" in line and "/output/external_data" in line, line


def test_the_id_is_the_daemons(tmp_path, samples):
    model = externalize(tmp_path / "model", lambda name: f"./parts/{name[0]}.bin")
    _, report = quantize(model, samples, tmp_path)
    files = [{"digest": "sha256:" + hashlib.sha256(p.read_bytes()).hexdigest(),
              "path": p.relative_to(model.parent).as_posix(), "size": p.stat().st_size}
             for p in model.parent.rglob("*") if p.is_file()]
    text = json.dumps({"files": sorted(files, key=lambda f: f["path"])},
                      separators=(",", ":"), sort_keys=True)
    assert report["model"]["id"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_the_same_bytes_again(tmp_path, samples):
    model = externalize(tmp_path / "model", lambda name: f"{name}.bin")
    first, _ = quantize(model, samples, tmp_path, output={"external_data": "always"})
    kept = [p.read_bytes() for p in (first, tmp_path / "out.onnx.data")]
    again, _ = quantize(model, samples, tmp_path, output={"external_data": "always"})
    assert kept == [p.read_bytes() for p in (again, tmp_path / "out.onnx.data")]
