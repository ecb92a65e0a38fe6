# SPDX-License-Identifier: Apache-2.0
"""Calibration data in all its forms, against what numpy and onnxruntime make of it."""

import gzip
import io
import json
import re
import struct
import subprocess
import tarfile
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import contract
import judge
from service import QUANTIZE, problem

RANDOM = np.random.default_rng(11)
METHODS = contract.range_methods()


def text_net(n="n", seq="seq"):
    """Three inputs of three types; `m` is what its MatMul takes in."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        text (int64[{n}, {seq}] ids, bool[{n}, {seq}] mask, float[{n}, {seq}, 4] x)
             => (float[{n}, {seq}, 3] y) {{
            e = Gather (table, ids)  s = Add (e, x)  b = Unsqueeze (mask, axes)
            m = Where (b, s, zero)  y = MatMul (m, w) }}""")
    for name, value in {"table": RANDOM.standard_normal((9, 4)).astype(np.float32),
                        "axes": np.int64([2]), "zero": np.float32(0),
                        "w": RANDOM.standard_normal((4, 3)).astype(np.float32)}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    onnx.checker.check_model(model, full_check=True)
    return model


def text_feed(*lead):
    """Inputs of the net with these sizes of n and seq (and samples before them)."""
    return {"ids": RANDOM.integers(0, 9, lead), "mask": RANDOM.random(lead) > 0.3,
            "x": RANDOM.standard_normal((*lead, 4)).astype(np.float32)}


TEXT = text_net()


def plain_net(batch="n"):
    """y = x w: the one activation is x itself."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        plain (float[{batch}, 6] x) => (float[{batch}, 2] y) {{ y = MatMul (x, w) }}""")
    weight = RANDOM.standard_normal((6, 2)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def sets(samples, named=True, proto=numpy_helper.from_array, suffix="", extra=None):
    """ONNX's test data: a zip of one folder a sample."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/model.onnx", b"anything")
        for i, feed in reversed(list(enumerate(samples))):
            for k, (name, value) in enumerate(feed.items()):
                tensor = proto(value, name if named else "")
                archive.writestr(f"net/test_data_set_{i}/input_{k}.pb{suffix}",
                                 tensor.SerializeToString())
            archive.writestr(f"net/test_data_set_{i}/output_0.pb", b"anything")
        for name, data in (extra or {}).items():
            archive.writestr(name, data)
    return file.getvalue()


def tarred(files, form=tarfile.PAX_FORMAT, **members):
    """Returns a tar of these files, made by Python's tarfile."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data or b"")
            for member, value in members.items():
                setattr(info, member, value)
            archive.addfile(info, io.BytesIO(data or b""))
    return file.getvalue()


def unzipped(data):
    """Returns the files of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Quantized:
    """The result of a run of `qdq quantize`."""

    def __init__(self, folder, model, data=None, **spec):
        paths = {name: folder / name for name in ("m.onnx", "d", "s.json", "o", "r")}
        paths["m.onnx"].write_bytes(model.SerializeToString())
        paths["s.json"].write_text(json.dumps(spec))
        command = [*QUANTIZE, paths["m.onnx"], "--spec",
                   paths["s.json"], "-o", paths["o"], "--report", paths["r"]]
        if data is not None:
            paths["d"].write_bytes(data)
            command += ["--calibration", paths["d"]]
            if "task" in spec:
                command += ["--evaluation", paths["d"]]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)
        self.said = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        self.ok = done.returncode == 0
        if self.ok:
            self.report = json.loads(paths["r"].read_text())
            self.tensors = {t["name"]: t for t in self.report["tensors"]}
            self.warnings = {w["code"]: w for w in self.report["warnings"]}
            self.bytes = paths["o"].read_bytes()
            # without the metadata, which have the digest of the data
            self.graph = onnx.load_from_string(self.bytes).graph.SerializeToString()

    def range(self, name):
        assert self.ok, self.said
        return np.float32(self.tensors[name]["min"]), np.float32(self.tensors[name]["max"])


def range_of(model, tensor, feeds):
    """Returns the exact range of a tensor over these runs, by onnxruntime."""
    looked = onnx.ModelProto()
    looked.CopyFrom(model)
    looked.graph.output.append(onnx.helper.make_tensor_value_info(
        tensor, TensorProto.FLOAT, None))
    session = judge.session(looked.SerializeToString())
    values = [session.run([tensor], feed)[0] for feed in feeds]
    return min(v.min() for v in values), max(v.max() for v in values)


# --- arrays ------------------------------------------------------------------------------

@pytest.mark.parametrize("batch", [1, 3, 64])
def test_inputs_of_three_types(tmp_path, batch):
    feed = text_feed(7, 5)
    done = Quantized(tmp_path, TEXT, npz(**feed),
                     calibration={"method": "minmax", "batch": batch})
    assert done.range("m") == range_of(TEXT, "m", [feed])
    assert done.report["calibration"]["samples"] == 7


def test_samples_with_an_axis_of_their_own(tmp_path):
    feed = text_feed(6, 2, 5)
    runs = [{name: value[i] for name, value in feed.items()} for i in range(6)]
    done = Quantized(tmp_path, TEXT, npz(**feed), calibration={"method": "minmax"})
    assert done.range("m") == range_of(TEXT, "m", runs)
    assert done.tensors["m"]["samples"] == 6


def test_a_batch_that_dims_fix(tmp_path):
    feed = text_feed(8, 5)
    done = Quantized(tmp_path, TEXT, npz(**feed),
                     calibration={"method": "minmax", "dims": {"n": 4, "seq": 5}})
    assert done.range("m") == range_of(TEXT, "m", [feed])
    assert done.report["spec"]["calibration"]["dims"] == {"n": 4, "seq": 5}


def test_data_is_held_against_dims(tmp_path):
    done = Quantized(tmp_path, TEXT, npz(**text_feed(4, 5)),
                     calibration={"dims": {"seq": 6}})
    assert "calibration_mismatch" in done.said and "'ids' wants int64 [?,6]" in done.said


@pytest.mark.shares_daemon
@pytest.mark.parametrize("where", ["plan", "quantize"])
def test_unknown_symbol(daemon, where):
    """A spec that sizes a symbol which no input has is refused; `/` in its name is
    escaped in the pointer."""
    model = daemon.upload("models", TEXT.SerializeToString())
    data = daemon.upload("datasets", npz(**text_feed(4, 5)))
    spec = {"calibration": {"dims": {"se/q": 5}}}
    body = {"model": model, "calibration": data, "spec": spec}
    if where == "plan":
        document = problem(daemon.post("/v1/plan", json=body), 422, "unmatched")
    else:
        document = daemon.ended(daemon.submit(**body))["error"]
        assert document["code"] == "unmatched"
    assert document["errors"][0]["pointer"] == "/calibration/dims/se~1q"
    assert "did you mean 'seq'" in document["detail"]
    spec["on_unmatched"] = "warn"
    answer = daemon.post("/v1/plan", json=body)
    assert answer.status_code == 200
    assert "/calibration/dims/se~1q" in answer.text


# --- ONNX's test data --------------------------------------------------------------------

RAGGED = [text_feed(1 + i % 3, 2 + i) for i in range(12)]


def listed(value, name):
    """Returns tensors whose elements are in the field of their type instead of in raw
    bytes."""
    kind = numpy_helper.from_array(value).data_type
    return onnx.helper.make_tensor(name, kind, value.shape, value.flatten().tolist())


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("proto", [numpy_helper.from_array, listed])
def test_ragged_samples(tmp_path, named, proto):
    done = Quantized(tmp_path, TEXT, sets(RAGGED, named, proto),
                     calibration={"method": "minmax", "batch": 8}, evaluate=True)
    assert done.range("m") == range_of(TEXT, "m", RAGGED)
    assert done.report["calibration"]["samples"] == 12
    assert done.report["evaluation"]["outputs"][0]["sqnr_db"] > 10


def test_some_of_ragged_samples(tmp_path):
    """Sets are read in the order of their numbers: 10 comes after 9."""
    done = Quantized(tmp_path, TEXT, sets(RAGGED), evaluate={"samples": 2},
                     calibration={"method": "minmax", "max_samples": 10})
    assert done.range("m") == range_of(TEXT, "m", RAGGED[:10])
    assert done.report["evaluation"]["samples"] == 2


FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT,
         "pax": tarfile.PAX_FORMAT}


@pytest.fixture(scope="module")
def zipped(tmp_path_factory):
    """Returns the samples as a zip archive of test data sets."""
    done = Quantized(tmp_path_factory.mktemp("zip"), TEXT, sets(RAGGED), **TAR_SPEC)
    assert done.ok, done.said
    return done


TAR_SPEC = {"calibration": {"method": "entropy"}, "evaluate": True}


def findings(done):
    """Returns everything that a report says about the samples."""
    assert done.ok, done.said
    return [done.report[member] for member in ("tensors", "weights", "evaluation")]


@pytest.mark.parametrize("packing", ["plain", "gzip"])
@pytest.mark.parametrize("form", FORMS)
def test_tar_is_as_good_as_zip(tmp_path, zipped, form, packing):
    """A tar gives the same result although its sets are in reverse order, in folders with
    long names."""
    folder = "a folder of a ünusual name/" + ("x" * 90 if form == "ustar" else "x" * 300)
    data = tarred({f"{folder}/{name}": content
                   for name, content in unzipped(sets(RAGGED)).items()}, FORMS[form])
    done = Quantized(tmp_path, TEXT, gzip.compress(data) if packing == "gzip" else data,
                     **TAR_SPEC)
    assert findings(done) == findings(zipped)
    assert done.report["calibration"]["samples"] == 12


@pytest.mark.parametrize("form", FORMS)
def test_tar_is_as_good_as_npz(tmp_path, form):
    feed = text_feed(6, 2, 5)
    samples = [{name: value[i] for name, value in feed.items()} for i in range(6)]
    data = tarred(unzipped(sets(samples)), FORMS[form])
    assert findings(Quantized(tmp_path, TEXT, data, **TAR_SPEC)) == \
        findings(Quantized(tmp_path, TEXT, npz(**feed), **TAR_SPEC))


def test_tar_made_by_tar(tmp_path, zipped):
    """An archive that GNU tar made in the usual way is read: a folder, packed from
    inside, with gzip."""
    with zipfile.ZipFile(io.BytesIO(sets(RAGGED))) as archive:
        archive.extractall(tmp_path / "in")
    subprocess.run(["tar", "-C", tmp_path / "in", "-czf", tmp_path / "t.tgz", "."],
                   check=True)
    done = Quantized(tmp_path, TEXT, (tmp_path / "t.tgz").read_bytes(), **TAR_SPEC)
    assert findings(done) == findings(zipped)


def test_nothing_is_left_of_unpacking(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    data = gzip.compress(tarred(unzipped(sets(RAGGED))))
    assert Quantized(tmp_path, TEXT, data).ok
    assert not list((tmp_path / "scratch").iterdir())
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    done = Quantized(tmp_path, TEXT, data)
    assert done.said.startswith("qdq: io: no file to unpack"), done.said


def test_tar_that_claims_too_much(daemon):
    """An archive that would unpack beyond the limit is refused by its header alone."""
    header = tarfile.TarInfo(SET)
    header.size = 9 << 30
    data = gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    answer = daemon.post("/v1/datasets", data=data,
                         headers={"Content-Type": "application/octet-stream"})
    document = problem(answer, 422, "limit_exceeded")
    assert f"unpacks to more than {8 << 30} bytes" in document["detail"]
    assert daemon.stored_files() == []


@pytest.mark.shares_daemon
@pytest.mark.parametrize("packing", ["zip", "tar", "tar.gz"])
def test_test_data_is_described(daemon, packing):
    pack = {"zip": lambda data: data, "tar": lambda data: tarred(unzipped(data)),
            "tar.gz": lambda data: gzip.compress(tarred(unzipped(data)))}[packing]
    answer = daemon.post("/v1/datasets", data=pack(sets(RAGGED)),
                         headers={"Content-Type": "application/octet-stream"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["samples"] == 12
    assert answer.json()["inputs"] == [
        {"name": "ids", "dtype": "int64", "shape": [12, None, None]},
        {"name": "mask", "dtype": "bool", "shape": [12, None, None]},
        {"name": "x", "dtype": "float32", "shape": [12, None, None, 4]}]
    unnamed = daemon.upload("datasets", pack(sets(RAGGED[:1], named=False)))
    inputs = daemon.get(f"/v1/datasets/{unnamed}").json()["inputs"]
    assert [(i["name"], i["shape"]) for i in inputs] == [
        ("input_0", [1, 1, 2]), ("input_1", [1, 1, 2]), ("input_2", [1, 1, 2, 4])]


def test_sample_that_does_not_fit_is_named(tmp_path):
    wrong = [*RAGGED, {**text_feed(1, 2), "x": np.zeros((1, 2, 5), np.float32)}]
    done = Quantized(tmp_path, TEXT, sets(wrong))
    assert "calibration_mismatch: input 'x'" in done.said and "sample 12" in done.said


def test_the_rank_of_a_set_is_said_without_the_axis_of_sets(tmp_path):
    text = text_feed(1, 2)
    done = Quantized(tmp_path, TEXT, sets([{**text, "x": text["x"][0]}] * 3))
    assert "calibration_mismatch: input 'x'" in done.said
    given = ",".join(str(n) for n in text["x"][0].shape)
    assert f"the sets have float32 [{given}]: the rank differs" in done.said


X = np.arange(6, dtype=np.float32).reshape(1, 6)


def tensor(**members):
    return onnx.TensorProto(**{"dims": [1, 6], "data_type": TensorProto.FLOAT, **members})


def one_set(proto):
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    return sets([], extra={"test_data_set_0/input_0.pb": data})


GOOD = tensor(name="x", raw_data=X.tobytes())
SET = "test_data_set_0/input_0.pb"
PACKED = gzip.compress(tarred({SET: GOOD.SerializeToString()}))
BROKEN = {
    "no proto": (one_set(b"\xff" * 40), "input_0.pb"),
    "cut short": (one_set(GOOD.SerializeToString()[:-1]), "beyond its end"),
    "a group": (one_set(b"\x0b"), "wire type 3"),
    "too few elements": (one_set(tensor(raw_data=X.tobytes()[:-4])), "5 elements"),
    "half an element": (one_set(tensor(raw_data=X.tobytes()[:-2])), "5 elements"),
    "no elements": (one_set(tensor()), "no elements"),
    "an empty axis": (one_set(tensor(dims=[0, 6], raw_data=b"1234")),
                      "1 elements are there, and its shape has 0"),
    "a negative axis": (one_set(tensor(dims=[-1], raw_data=b"")), "negative"),
    "a huge shape": (one_set(tensor(dims=[1 << 40, 1 << 40], raw_data=b"1")), "too large"),
    "many axes": (one_set(tensor(dims=[1] * 64, raw_data=X.tobytes()[:4])), "63 axes"),
    "two forms": (one_set(tensor(raw_data=X.tobytes(), float_data=X[0])), "form"),
    "another list": (one_set(tensor(int64_data=[1] * 6)), "form"),
    "strings": (one_set(tensor(data_type=TensorProto.STRING, string_data=[b"a"] * 6)),
                "strings"),
    "bfloat16": (one_set(tensor(data_type=TensorProto.BFLOAT16, raw_data=bytes(12))),
                 "bfloat16"),
    "no type": (one_set(tensor(data_type=0, raw_data=X.tobytes())), "unknown"),
    "external": (one_set(tensor(data_location=TensorProto.EXTERNAL, external_data=[
        onnx.StringStringEntryProto(key="location", value="/etc/passwd")])),
        "another file"),
    "a missing input": (sets([text_feed(1, 2), {"ids": np.int64([[1]])}]), "set"),
    "other inputs": (sets([{"x": X}], extra={
        "test_data_set_1/input_1.pb": GOOD.SerializeToString()}), "other inputs"),
    "the same input": (sets([{"x": X}], extra={
        "test_data_set_0/input_0.pb": GOOD.SerializeToString()}), "twice"),
    "the same name": (sets([{"x": X}], extra={
        "net/test_data_set_0/input_1.pb": GOOD.SerializeToString()}), "twice"),
    "another name": (sets([{"x": X}, {"z": X}]), "called 'z'"),
    "another type": (sets([{"x": X}, {"x": X.astype(np.float64)}]), "float64"),
    "another rank": (sets([{"x": X}, {"x": X[0]}]), "of 1 axes"),
    "arrays, too": (sets([{"x": X}], extra={"x.npy": b""}), ".npy"),
    "tar of nothing": (bytes(257) + b"ustar" + bytes(900), "tar archive is damaged"),
    "tar of an empty array": (tarred({"a/x.npy": b""}), "array 'a/x.npy': truncated"),
    "tar without sets": (tarred({"a/x.txt": b""}), "without test_data_set_N/input_M.pb"),
    "tar that is cut": (tarred({SET: GOOD.SerializeToString()})[:1024], "mark of its end"),
    "tar of half a file": (tarred({"a": b"a", SET: bytes(5000)})[:4096], SET),
    "tar of a tensor cut": (tarred({SET: GOOD.SerializeToString()[:-1]}), "beyond its end"),
    "tar with a bad sum": (tarred({SET: b"a"}).replace(b"test_", b"best_"), "at byte 0"),
    "absolute": (tarred({"/" + SET: GOOD.SerializeToString()}), "begins with '/'"),
    "climbing": (tarred({"a/../" + SET: GOOD.SerializeToString()}), "holds '..'"),
    "climbing in a zip": (sets([], extra={"../" + SET: GOOD.SerializeToString()}), "'..'"),
    "symbolic link": (tarred({SET: None}, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
                      "is a link"),
    "hard link": (tarred({SET: None}, type=tarfile.LNKTYPE, linkname="a"), "is a link"),
    "sparse file": (tarred({SET: b"1\n0\n4\n".ljust(512, b"\0") + b"data"}, pax_headers={
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": SET,
        "GNU.sparse.realsize": "9000"}), "sparse"),
    "gzip of nothing": (gzip.compress(b""), "empty at byte 20"),
    "gzip of no tar": (gzip.compress(npz(x=X)), "Unrecognized archive format"),
    "gzip of noise": (b"\x1f\x8b\x08" + bytes(60), "gzip file is"),
    "gzip that is cut": (PACKED[:-4], f"cut short at byte {len(PACKED) - 4}"),
    "gzip with a bad sum": (PACKED[:-8] + bytes(4) + PACKED[-4:], "incorrect data check"),
    "gzip with a bad size": (PACKED[:-4] + bytes(4), "incorrect length check"),
}


def test_broken_test_data(daemon):
    for what, (data, text) in BROKEN.items():
        answer = daemon.post("/v1/datasets", data=data,
                             headers={"Content-Type": "application/octet-stream"})
        document = problem(answer, 400, "invalid_dataset")
        assert text in document["detail"], (what, document)
    assert daemon.stored_files() == []


def test_number_that_does_not_fit(tmp_path):
    proto = tensor(name="x", data_type=TensorProto.INT8, int32_data=[1, 2, 3, 4, 5, 300])
    done = Quantized(tmp_path, plain_net(), one_set(proto), calibration={"cast": True})
    assert "300 does not fit in int8" in done.said


# --- random samples ----------------------------------------------------------------------

MASK = (1 << 64) - 1


def splitmix(name, n):
    """Yields the numbers of the documented generator, computed with Python's integers."""
    seed = 0xcbf29ce484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001b3 & MASK
    for i in range(1, n + 1):
        x = seed + i * 0x9e3779b97f4a7c15 & MASK
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
        x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
        yield x ^ x >> 31


def random_feed(n, seq):
    ids = [x % 9 for x in splitmix("ids", n * seq)]
    mask = [x >> 63 for x in splitmix("mask", n * seq)]
    x = [-2 + (x >> 40) / 2 ** 24 * 4 for x in splitmix("x", n * seq * 4)]  # exact
    return {"ids": np.int64(ids).reshape(n, seq), "mask": np.bool_(mask).reshape(n, seq),
            "x": np.float32(x).reshape(n, seq, 4)}


WANTED = {"method": "minmax", "random_samples": 10, "dims": {"seq": 7},
          "random": {"ids": [0, 8], "x": [-2, 2]}}


@pytest.mark.parametrize("batch", [1, 4])
def test_random_samples(tmp_path, batch):
    done = Quantized(tmp_path, TEXT, calibration={**WANTED, "batch": batch})
    assert done.range("m") == range_of(TEXT, "m", [random_feed(10, 7)])
    assert "10 random samples" in done.warnings["random_samples"]["detail"]
    assert done.report["evaluation"] is None
    assert done.report["calibration"] == {"id": None, "samples": 10, "reused": 0,
                                          "inferences": 10 if batch == 1 else 3}
    again = Quantized(tmp_path, TEXT, **done.report["spec"])
    assert again.bytes == done.bytes or batch > 1  # the digest of the spec is in it


def test_random_samples_are_evaluated_when_asked(tmp_path):
    done = Quantized(tmp_path, TEXT, calibration=WANTED, evaluate=True)
    assert done.report["evaluation"]["samples"] == 10
    assert done.report["evaluation"]["outputs"][0]["sqnr_db"] > 10


@pytest.mark.parametrize("batch,made", [("n", 5), (4, 8)])
def test_random_batches(tmp_path, batch, made):
    net = plain_net(batch)
    done = Quantized(tmp_path, net, calibration={"method": "minmax",
                                                 "random_samples": 5})
    values = np.float32([(x >> 40) / 2 ** 24 for x in splitmix("x", made * 6)])
    assert done.range("x") == (values.min(), values.max())
    assert done.report["calibration"]["samples"] == made


NO_SAMPLES = {
    "no size": ({"dims": {}}, "invalid_spec", "input 'ids'", "axis 1 is 'seq'"),
    "no range": ({"random": {}}, "invalid_spec", "input 'ids' is int64",
                 "(/calibration/random)"),
    "no such input": ({"random": {"ids": [0, 8], "idx": [0, 1]}}, "unmatched",
                      "did you mean 'ids'", "(/calibration/random/idx)"),
    "fractions": ({"random": {"ids": [0, 0.5]}}, "invalid_spec", "integers",
                  "(/calibration/random/ids)"),
    "too large": ({"random": {"ids": [0, 8], "x": [0, 1e39]}}, "invalid_spec",
                  "'x' is float32", "(/calibration/random/x)"),
    "bool": ({"random": {"ids": [0, 8], "mask": [0, 1]}}, "invalid_spec", "bool",
             "(/calibration/random/mask)"),
}


@pytest.mark.parametrize("name", NO_SAMPLES)
def test_random_samples_that_cannot_be_made(tmp_path, name):
    change, *texts = NO_SAMPLES[name]
    done = Quantized(tmp_path, TEXT, calibration={**WANTED, **change})
    assert not done.ok and all(text in done.said for text in texts), done.said


def test_random_samples_beside_data(tmp_path):
    done = Quantized(tmp_path, TEXT, npz(**text_feed(4, 5)), calibration=WANTED)
    assert "invalid_spec" in done.said
    assert "(/calibration/random_samples)" in done.said


def test_no_data_at_all(tmp_path):
    done = Quantized(tmp_path, TEXT)
    assert "no_calibration: tensor 'm'" in done.said


# --- NaN and infinity --------------------------------------------------------------------

def images(n=20):
    return RANDOM.standard_normal((n, 6)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_skipped_samples_leave_no_trace(tmp_path, method, batch):
    net, good = plain_net(), images()
    bad, places = good, [0, 7, 8, 23]
    for i, value in zip(places, [np.nan, np.inf, -np.inf, np.nan]):
        row = np.full((1, 6), 1e6, np.float32)
        row[0, 3] = value
        bad = np.insert(bad, i, row, axis=0)
    calibration = {"method": method, "batch": batch, "on_nonfinite": "skip_sample"}
    done = Quantized(tmp_path, net, npz(x=bad), calibration=calibration, evaluate=False)
    assert done.ok, done.said
    told = done.warnings["sample_skipped"]["detail"]
    assert "4 of 24 samples" in told and told.endswith(": 0, 7, 8, 23")
    assert done.report["calibration"]["samples"] == 20
    clean = Quantized(tmp_path, net, npz(x=good), calibration=calibration, evaluate=False)
    assert "sample_skipped" not in clean.warnings
    for member in ("min", "max", "scale"):
        assert done.tensors["x"][member] == clean.tensors["x"][member]


def test_fixed_batch_is_skipped_whole(tmp_path):
    data = images()
    data[6, 2] = np.nan
    done = Quantized(tmp_path, plain_net(4), npz(x=data), evaluate=False,
                     calibration={"method": "minmax", "on_nonfinite": "skip_sample"})
    rest = np.delete(data, range(4, 8), axis=0)
    assert done.range("x") == (rest.min(), rest.max())
    told = done.warnings["sample_skipped"]["detail"]
    assert "4 of 20 samples" in told and told.endswith(": 4 to 7")


def test_many_skipped_samples_are_counted(tmp_path):
    data = images(40)
    data[10:30] = np.inf
    done = Quantized(tmp_path, plain_net(), npz(x=data), evaluate=False,
                     calibration={"batch": 7, "on_nonfinite": "skip_sample"})
    told = done.warnings["sample_skipped"]["detail"]
    assert "20 of 40" in told and told.endswith("10, 11, 12, 13, 14, 15, 16, 17 and others")


def test_no_sample_left(tmp_path):
    done = Quantized(tmp_path, plain_net(), npz(x=images() * np.nan),
                     calibration={"batch": 8, "on_nonfinite": "skip_sample"})
    assert done.said.startswith("qdq: nonfinite:") and "every one of 20" in done.said


@pytest.mark.parametrize("batch", [1, 8])
def test_sample_and_tensor_are_named(tmp_path, batch):
    data = images()
    data[13, 1] = np.nan
    done = Quantized(tmp_path, plain_net(), npz(x=data), calibration={"batch": batch})
    assert "nonfinite: tensor 'x'" in done.said and "in sample 13" in done.said
    assert all(f"calibration.{way}" in done.said for way in ("ranges", "on_nonfinite"))


# --- ranges from TensorRT ----------------------------------------------------------------

def test_calibration_cache(tmp_path):
    scale = np.float32(0.0123)
    digits = struct.pack(">f", scale).hex()
    cache = f"TRT-8601-EntropyCalibration2\nx: {digits}\n"
    done = Quantized(tmp_path, plain_net(), calibration={"ranges": cache})
    assert np.float32(done.tensors["x"]["scale"]) == scale
    assert done.tensors["x"]["method"] == "given"
    cache += "(Unnamed Layer* 3): 3c010a14\n"
    done = Quantized(tmp_path, plain_net(), calibration={"ranges": cache})
    assert "unmatched" in done.said
    done = Quantized(tmp_path, plain_net(), calibration={"ranges": cache},
                     on_unmatched="warn")
    assert "unmatched" in done.warnings


SCALAR = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[n,4] x, int64 rate) => (float[n,4] y) <float[4,4] w = {
        1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> {
        f = Cast <to = 1> (rate)  m = Mul (x, f)  [fc] y = MatMul (m, w) }
    """)


def test_a_scalar_is_given_as_the_message_says(tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
    said = Quantized(tmp_path, SCALAR, npz(x=x)).said
    assert "'rate'" in said and "an array of rank 1 with one value for each sample" in said
    done = Quantized(tmp_path, SCALAR, npz(x=x, rate=np.array([1, 2, 3], np.int64)),
                     calibration={"method": "minmax"})
    assert done.range("m") == (0, 33)


GROWS = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[B,S,4] x, float[B,T,4] past) => (float[B,U,4] y) <float[4,4] w = {
        1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> {
        [key] k = MatMul (x, w)
        [cache] y = Concat <axis = 1> (past, k) }
    """)


def past_in_sets(past):
    return [{"x": x, "past": p} for x, p in zip(np.ones((4, 1, 2, 4), np.float32), past)]


@pytest.mark.parametrize("data", [
    npz(x=np.ones((4, 2, 4), np.float32), past=np.zeros((4, 0, 4), np.float32)),
    sets(past_in_sets([np.zeros((1, 0, 4), np.float32)] * 4))], ids=["npz", "sets"])
def test_an_input_without_elements(tmp_path, data):
    """A decoder begins with an empty past. The layer that reads it has no range and stays in
    float."""
    done = Quantized(tmp_path, GROWS, data, target="onnxruntime", recipe="none")
    reasons = {x["name"]: x["reason"] for x in done.report["layers"]}
    assert reasons == {"key": "default", "cache": "not observed"}
    told = [w for w in done.report["warnings"] if w["code"] == "not_observed"]
    assert [w["node"] for w in told] == ["cache"]
    assert "an input without elements" in told[0]["detail"]


def test_sets_of_which_some_have_no_elements(tmp_path):
    """The first and the third step have no past; the range is that of the others."""
    past = [np.full((1, n, 4), n, np.float32) for n in (0, 2, 0, 3)]
    done = Quantized(tmp_path, GROWS, sets(past_in_sets(past)), target="onnxruntime",
                     recipe="none", calibration={"method": "minmax"})
    assert done.range("past") == (2, 3)


NEVER = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (bool c, float[1,4] x) => (float[1,4] y) <float[4,4] w = {
        1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> {
        [top] h = MatMul (x, w)
        [choose] y = If (c) <
            then_branch = yes () => (float[1,4] a) { a = Identity (h) },
            else_branch = no () => (float[1,4] b) {
                b0 = Neg (h)  [one] b1 = MatMul (b0, w)  [two] b2 = MatMul (b1, w)
                [three] b = MatMul (b2, w) }> }
    """)


def test_layers_that_no_sample_reaches_are_counted(tmp_path):
    done = Quantized(tmp_path, NEVER, npz(
        x=np.ones((2, 1, 4), np.float32), c=np.array([True, True])))
    told = [w for w in done.report["warnings"] if w["code"] == "not_observed"]
    left = [x["name"] for x in done.report["layers"] if x["reason"] == "not observed"]
    assert len(left) == 3 and [w["node"] for w in told] == left[:1]
    assert "3 layers" in told[0]["detail"]


def test_outputs_in_float64_are_judged(tmp_path):
    """The figures are those of the same model in float32."""
    model = onnx.ModelProto()
    model.CopyFrom(plain_net())
    data = npz(x=RANDOM.standard_normal((16, 6)).astype(np.float32))
    said = [Quantized(tmp_path, model, data).report["evaluation"]["outputs"]]
    model.graph.node[0].output[0] = "y32"
    model.graph.node.append(onnx.helper.make_node("Cast", ["y32"], ["y"],
                                                  to=TensorProto.DOUBLE))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    said.append(Quantized(tmp_path, model, data).report["evaluation"]["outputs"])
    assert said[1][0]["sqnr_db"] == pytest.approx(said[0][0]["sqnr_db"])
    searched = Quantized(tmp_path, model, data, search={"min_sqnr_db": 60})
    assert searched.report["search"]["met"] is True
