# SPDX-License-Identifier: Apache-2.0
"""Parquet files as pyarrow writes them: numbers, lists and images, with the same result as from an
.npz file or an archive of images."""

import io
import json
import resource
import subprocess

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import INSTALLED, QUANTIZE
from test_data import TEXT, Quantized, findings, npz, text_feed
from test_images import expected as as_pillow
from test_images import net as image_net
from test_images import pictures, samples_of, tar_of

RANDOM = np.random.default_rng(31)
QDQ = INSTALLED / "bin" / "qdq"
N = 2500  # rows, so that columns have several batches
SPEC = {"calibration": {"method": "minmax", "batch": 64}, "evaluate": {"samples": 64}}


def parquet(columns, **options):
    file = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), file, **options)
    return file.getvalue()


def lists(array):
    """Returns lists in each other, one for each row."""
    flat = pa.array(array.ravel())
    for size in array.shape[:0:-1]:
        flat = pa.FixedSizeListArray.from_arrays(flat, int(size))
    kind = pa.from_numpy_dtype(array.dtype)
    for _ in array.shape[1:]:
        kind = pa.list_(kind)
    return flat.cast(kind)


def net_of(dtype, shape):
    """y = cast(x) w over the flattened sample."""
    weight = np.random.default_rng(5).standard_normal((int(np.prod(shape)), 2)).astype(np.float32)
    return helper.make_model(helper.make_graph(
        [helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT),
         helper.make_node("Flatten", ["c"], ["f"]),
         helper.make_node("MatMul", ["f", "w"], ["y"], "dense")], "net",
        [helper.make_tensor_value_info("x", dtype, ["n", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(weight, "w")]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = (RANDOM.standard_normal((N, 6)) * 3).astype(np.float32)
# Some values repeat, so that dictionaries pay.
X[::3] = X[0]


@pytest.fixture(scope="module")
def from_npz(tmp_path_factory):
    return Quantized(tmp_path_factory.mktemp("npz"), net_of(TensorProto.FLOAT, [6]), npz(x=X), **SPEC)


OPTIONS = {
    "snappy": {},
    "no codec": {"compression": "none"},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "version 2": {"data_page_version": "2.0"},
    "version 2, no codec": {"data_page_version": "2.0", "compression": "none"},
    "version 2, zstd": {"data_page_version": "2.0", "compression": "zstd"},
    "no dictionary": {"use_dictionary": False},
    "small dictionary": {"dictionary_pagesize_limit": 1024, "write_batch_size": 100},
    "split": {"use_dictionary": False, "use_byte_stream_split": True},
    "small groups": {"row_group_size": 7},
    "small pages": {"data_page_size": 100, "write_batch_size": 10},
    "one page": {"data_page_size": 1 << 30},
    "checksums": {"write_page_checksum": True},
    "checksums, version 2": {"write_page_checksum": True, "data_page_version": "2.0"},
    "old format": {"version": "1.0"},
    "old lists": {"use_compliant_nested_type": False},
    "page index": {"write_page_index": True, "row_group_size": 400},
}


@pytest.mark.parametrize("form", ["list", "fixed list"])
@pytest.mark.parametrize("options", OPTIONS)
def test_lists_are_as_good_as_arrays(tmp_path, from_npz, options, form):
    column = lists(X) if form == "list" else pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 6)
    done = Quantized(tmp_path, net_of(TensorProto.FLOAT, [6]),
                     parquet({"x": column}, **OPTIONS[options]), **SPEC)
    assert findings(done) == findings(from_npz)
    assert done.graph == from_npz.graph


DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32",
          "uint16", "uint8", "bool"]


@pytest.mark.parametrize("options", [
    {}, {"use_dictionary": False}, {"data_page_version": "2.0", "use_dictionary": False},
    {"column_encoding": "DELTA_BINARY_PACKED", "use_dictionary": False},
    {"column_encoding": "BYTE_STREAM_SPLIT", "use_dictionary": False, "row_group_size": 100}],
    ids=["dictionary", "plain", "version 2", "deltas", "split"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_each_type(tmp_path, dtype, options):
    """A column of one number for each row feeds an input of one element for each sample."""
    encoding = options.get("column_encoding", "")
    kinds = {"DELTA_BINARY_PACKED": "iu", "BYTE_STREAM_SPLIT": "iuf"}.get(encoding, "iufb")
    if np.dtype(dtype).kind not in kinds:
        options = {"row_group_size": 100}
    elif encoding:
        options = {**options, "column_encoding": {"x": encoding}}
    x = (RANDOM.standard_normal(N) * 100).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        x[:4] = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    model = net_of(helper.np_dtype_to_tensor_dtype(x.dtype), [1])
    one = Quantized(tmp_path, model, parquet({"x": x}, **options), **SPEC)
    other = Quantized(tmp_path, model, npz(x=x[:, None]), **SPEC)
    assert findings(one) == findings(other)
    assert one.graph == other.graph


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("shape", [[3, 5], [2, 3, 4], [1, 1, 7]])
def test_tensors(tmp_path, shape, nested):
    """Lists in each other have the sample's shape; a flat list gets it from the input."""
    x = RANDOM.standard_normal((40, *shape)).astype(np.float32)
    model = net_of(TensorProto.FLOAT, shape)
    data = parquet({"other name": lists(x if nested else x.reshape(40, -1))}, row_group_size=16)
    one = Quantized(tmp_path, model, data, **SPEC)
    other = Quantized(tmp_path, model, npz(x=x), **SPEC)
    assert findings(one) == findings(other)
    assert one.graph == other.graph


@pytest.mark.parametrize("options", [{}, {"row_group_size": 3}, {"data_page_version": "2.0"}])
def test_columns_of_several_inputs(tmp_path, options):
    """Columns are taken by name, whatever their order, beside others that nobody needs."""
    feed = text_feed(9, 5)
    columns = {"note": ["text"] * 9, **{name: lists(feed[name]) for name in ("x", "mask", "ids")},
               "bbox": [[1.5] * i for i in range(9)], "spans": [[1] * (i + 1) for i in range(9)],
               "when": pa.array([0] * 9, pa.timestamp("s")),
               "struct": [{"a": 1, "b": 2.5}] * 9, "nothing": pa.nulls(9)}
    one = Quantized(tmp_path, TEXT, parquet(columns, **options), **SPEC)
    other = Quantized(tmp_path, TEXT, npz(**feed), **SPEC)
    assert findings(one) == findings(other)
    assert one.graph == other.graph


def features(*types):
    """Returns a table of one column for each feature, and the same as an array."""
    values = (RANDOM.standard_normal((N, len(types))) * 3).astype(np.float32)
    columns = {f"f{i}": values[:, i].astype(kind) for i, kind in enumerate(types)}
    return columns, np.stack([column.astype(np.float64) for column in columns.values()], axis=1)


@pytest.mark.parametrize("options", [{}, {"row_group_size": 100}, {"data_page_version": "2.0"}])
@pytest.mark.parametrize("types", [["float32"] * 6, ["float64", "int64", "bool", "float32", "uint8", "int32"]],
                         ids=["one type", "several types"])
def test_a_column_for_each_feature(tmp_path, types, options):
    """The columns are the features in their order; evaluation passes over rows of all of them."""
    columns, array = features(*types)
    if len(set(types)) == 1:
        array = array.astype(types[0])
    columns["label"] = RANDOM.integers(0, 2, N)
    spec = {"calibration": {"method": "minmax", "max_samples": 900}, "evaluate": {"samples": 300}}
    model = net_of(TensorProto.FLOAT, [6])
    one = Quantized(tmp_path, model, parquet(columns, **options), **spec)
    other = Quantized(tmp_path, model, npz(x=array), **spec)
    assert findings(one) == findings(other)
    assert one.graph == other.graph
    assert {row["code"] for row in one.report["warnings"]} == {
        "array_ignored", *(row["code"] for row in other.report["warnings"])}


def test_columns_that_are_no_features(tmp_path):
    columns, _ = features(*["float32"] * 7)
    (tmp_path / "m.onnx").write_bytes(net_of(TensorProto.FLOAT, [6]).SerializeToString())
    for said, change in [("has 7 columns of numbers", {}),
                         ("has 5 columns of numbers", {"f5": ["text"] * N, "f6": ["text"] * N}),
                         ("row 3 is null", {"f6": ["text"] * N, "f2": pa.array(
                             [None if i == 3 else 1.0 for i in range(N)], pa.float32())})]:
        (tmp_path / "d.parquet").write_bytes(parquet({**columns, **change}))
        done = subprocess.run([*QUANTIZE, "m.onnx", "--calibration", "d.parquet", "-o", "o.onnx"],
                              cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and said in done.stderr, done.stderr


def test_columns_for_a_model_of_several_inputs(tmp_path):
    """No number of columns would do, so the error asks for none."""
    columns, _ = features(*["float32"] * 6)
    model = net_of(TensorProto.FLOAT, [6])
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 3]))
    model.graph.node.append(helper.make_node("Identity", ["z"], ["same"]))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "d.parquet").write_bytes(parquet(columns))
    done = subprocess.run([*QUANTIZE, "m.onnx", "--calibration", "d.parquet", "-o", "o.onnx"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "has no array of that name (but 'f0' and others)" in done.stderr, done.stderr


def test_some_of_the_samples(tmp_path):
    """Evaluation begins behind the calibration samples, which passes over whole row groups."""
    spec = {"calibration": {"method": "minmax", "max_samples": 900}, "evaluate": {"samples": 300}}
    model = net_of(TensorProto.FLOAT, [6])
    for options in ({"row_group_size": 100}, {"row_group_size": 1000}, {}):
        one = Quantized(tmp_path, model, parquet({"x": lists(X)}, **options), **spec)
        other = Quantized(tmp_path, model, npz(x=X), **spec)
        assert findings(one) == findings(other)


def labels_by(model, name, samples):
    """Returns the classes that the model chooses, of which one in four is made wrong."""
    chosen = judge.session(model.SerializeToString()).run(None, {name: samples})[0].argmax(1)
    return [int(c) if i % 4 else 1 - int(c > 0) for i, c in enumerate(chosen)]


def test_pandas_index_and_label(tmp_path):
    """The index of pandas is no data, and `label` is the array of labels."""
    model = net_of(TensorProto.FLOAT, [6])
    labels = labels_by(model, "x", X[:40])
    table = pa.table({"features": lists(X[:40]), "label": labels, "__index_level_0__": np.arange(40)})
    spec = {**SPEC, "task": {"kind": "classification"}}
    one = Quantized(tmp_path, model, parquet(table), **spec)
    other = Quantized(tmp_path, model, npz(x=X[:40], labels=labels), **spec)
    assert one.report["evaluation"]["task"] == other.report["evaluation"]["task"]
    assert one.graph == other.graph


# --- images -----------------------------------------------------------------------------

ROW = {"scale": 1 / 255, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25], "resize": "bicubic"}


@pytest.mark.parametrize("options", [
    {}, {"compression": "zstd", "row_group_size": 10}, {"use_dictionary": False, "compression": "none"},
    {"data_page_version": "2.0", "row_group_size": 7, "data_page_size": 3000, "write_batch_size": 2},
    {"column_encoding": "DELTA_LENGTH_BYTE_ARRAY", "use_dictionary": False, "compression": "gzip"}])
@pytest.mark.parametrize("form", ["struct", "binary", "large binary"])
def test_images_are_as_good_as_files(tmp_path, form, options):
    """Images as the library `datasets` writes them, and as plain bytes."""
    files = pictures(40)
    data = list(files.values())
    if form == "struct":
        column = pa.array([{"bytes": one, "path": name} for name, one in files.items()],
                          pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        if "column_encoding" in options:
            options = {**options, "column_encoding": {"image.bytes": options["column_encoding"]}}
    else:
        column = pa.array(data, pa.binary() if form == "binary" else pa.large_binary())
        if "column_encoding" in options:
            options = {**options, "column_encoding": {"image": options["column_encoding"]}}
    labels = [i % 5 for i in range(40)]
    (tmp_path / "d.parquet").write_bytes(parquet({"image": column, "label": labels}, **options))
    tar_of(tmp_path / "d.tar", files)
    model = image_net(tmp_path / "m.onnx")
    one, told = samples_of(tmp_path, tmp_path / "d.parquet", model, ROW)
    other, _ = samples_of(tmp_path, tmp_path / "d.tar", model, ROW)
    assert np.array_equal(one, other)
    assert np.allclose(one, [as_pillow(data[i], ROW) for i in range(40)], atol=0.01)
    assert told["samples"] == 40


def test_images_with_labels_are_judged(tmp_path):
    """The task of labels is that of the same images as a shard of WebDataset."""
    files = pictures(24)
    model = onnx.load(image_net(tmp_path / "m.onnx"))
    samples = np.stack([as_pillow(one, ROW) for one in files.values()])
    # without the mean of all, so that not one class is chosen always
    mean = judge.session(model.SerializeToString()).run(None, {"image": samples})[0].mean(0)
    model.graph.initializer.append(numpy_helper.from_array(mean.reshape(1, 8), "mean"))
    model.graph.node.extend([helper.make_node("Flatten", ["y"], ["flat"]),
                             helper.make_node("Sub", ["flat", "mean"], ["classes"])])
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["n", 8]))
    onnx.save(model, tmp_path / "m.onnx")
    labels = labels_by(model, "image", samples)
    shard = dict(files)
    for name, label in zip(files, labels):
        shard[name.split(".")[0] + ".cls"] = str(label).encode()
    (tmp_path / "d.parquet").write_bytes(parquet(
        {"image": [{"bytes": one, "path": None} for one in files.values()], "label": labels},
        row_group_size=5))
    tar_of(tmp_path / "d.tar", shard)
    (tmp_path / "s.json").write_text(json.dumps(
        {"preprocess": {"image": ROW}, "task": {"kind": "classification"}}))
    reports = []
    for name in ("d.parquet", "d.tar"):
        done = subprocess.run(
            [*QUANTIZE, tmp_path / "m.onnx", "--calibration", tmp_path / name, "--evaluation",
             tmp_path / name, "--spec", tmp_path / "s.json", "-o", tmp_path / (name + ".onnx"),
             "--report", tmp_path / "r.json"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        reports.append(json.loads((tmp_path / "r.json").read_text())["evaluation"])
    assert reports[0] == reports[1]
    assert onnx.load(tmp_path / "d.parquet.onnx").graph == onnx.load(tmp_path / "d.tar.onnx").graph


# --- errors ------------------------------------------------------------------------------

def numbers_with(change):
    values = X[:30, 0].tolist()
    change(values)
    return pa.array(values)


TWICE = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([5.0, 6.0])], ["x", "y", "x"])
TWO_LABELS = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([0, 1]), pa.array([1, 0])],
                                  ["x", "y", "label", "label"])

REFUSED = {
    "null": ({"x": numbers_with(lambda v: v.__setitem__(17, None))}, {}, "column 'x' at byte",
             "row 17 is null"),
    "null later": ({"x": numbers_with(lambda v: v.__setitem__(29, None))}, {"row_group_size": 4},
                   "row 29 is null"),
    "null list": ({"x": pa.array([[1.0, 2.0], None, [3.0, 4.0]])}, {}, "row 1 holds a null or an empty"),
    "null element": ({"x": pa.array([[1.0, 2.0], [1.0, None]])}, {}, "row 1 holds a null"),
    "empty list": ({"x": pa.array([[1.0], [2.0], []])}, {}, "row 2 holds a null or an empty list"),
    "no tensor": ({"x": pa.array([[[1.0], [2.0]], [[1.0, 2.0], [1.0]]])}, {},
                  "row 1 holds lists of different lengths in one list"),
    "text": ({"x": ["a", "b"]}, {}, "no column of the Parquet file holds", "column 'x': text"),
    "text beside": ({"x": ["a", "b"], "y": [1.0, 2.0], "z": [1.0, 2.0]}, {},
                    "the column of that name cannot be used: text"),
    "times": ({"x": pa.array([1, 2], pa.timestamp("us")), "y": [1.0, 2.0], "z": [1, 2]}, {},
              "cannot be used: dates or times"),
    "decimal": ({"x": pa.array([1, 2], pa.decimal128(5)), "y": [1.0, 2.0], "z": [1, 2]}, {},
                "cannot be used: decimal numbers; cast them to float32"),
    "map": ({"x": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "y": [1.0], "z": [2]}, {},
            "cannot be used: it is a struct or a map"),
    "bytes": ({"x": pa.array([b"abc", b"def"])}, {}, "bytes that are no PNG or JPEG images"),
    "brotli": ({"x": [1.0, 2.0]}, {"compression": "brotli"}, "packed with BROTLI, which is not read"),
    "lz4": ({"x": [1.0, 2.0]}, {"compression": "lz4"}, "packed with LZ4_RAW, which is not read"),
    "no rows": ({"x": pa.array([], pa.float32())}, {}, "has no rows"),
    "one name for two": (TWICE, {}, "two columns with the name 'x'"),
    "two columns of labels": (TWO_LABELS, {}, "two columns with the name 'label'"),
    "no name": ({"a": [1.0], "b": [2.0]}, {}, "the data has no array of that name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path, case):
    columns, options, *said = REFUSED[case]
    done = Quantized(tmp_path, net_of(TensorProto.DOUBLE, [1]), parquet(columns, **options))
    assert not done.ok
    for text in said:
        assert text in done.said, done.said


def test_image_that_is_missing(tmp_path):
    column = pa.array([{"bytes": None if i == 3 else one, "path": name}
                       for i, (name, one) in enumerate(pictures(6).items())])
    (tmp_path / "d").write_bytes(parquet({"image": column}))
    done = subprocess.run([QDQ, "data", tmp_path / "d"], capture_output=True, text=True)
    assert done.returncode == 1 and "row 3 has no image (null)" in done.stderr


def test_encryption_is_refused(tmp_path):
    data = bytearray(parquet({"x": [1.0, 2.0]}))
    data[:4] = data[-4:] = b"PARE"
    done = Quantized(tmp_path, net_of(TensorProto.DOUBLE, [1]), bytes(data))
    assert "the Parquet file is encrypted" in done.said


@pytest.mark.parametrize("at, said", [(-4, "does not end in PAR1"), (40, "does not end in PAR1")])
def test_files_that_are_cut_short(tmp_path, at, said):
    done = Quantized(tmp_path, net_of(TensorProto.DOUBLE, [1]), parquet({"x": [1.0, 2.0]})[:at])
    assert not done.ok and said in done.said, done.said


def test_a_damaged_page_is_found(tmp_path):
    """A byte of a page that has a checksum is changed."""
    data = bytearray(parquet({"x": X[:, 0]}, write_page_checksum=True, compression="none",
                             use_dictionary=False))
    data[2000] ^= 1
    done = Quantized(tmp_path, net_of(TensorProto.FLOAT, [1]), bytes(data))
    assert "column 'x' at byte" in done.said and "its checksum is wrong" in done.said


def test_memory_is_bounded(tmp_path):
    """A file of 400 MB is calibrated in far less memory than it has."""
    rows = RANDOM.standard_normal((64, 25, 256)).astype(np.float32)
    schema = pa.schema([("x", pa.list_(pa.float32()))])
    with pq.ParquetWriter(tmp_path / "d", schema, compression="none", use_dictionary=False) as out:
        for _ in range(250):
            out.write_table(pa.table({"x": lists(rows.reshape(64, -1))}, schema=schema))
    assert (tmp_path / "d").stat().st_size > 400e6
    (tmp_path / "m").write_bytes(net_of(TensorProto.FLOAT, [25, 256]).SerializeToString())
    done = subprocess.run(
        [QDQ, "data", tmp_path / "d", "--model", tmp_path / "m"], capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20)))
    assert done.returncode == 0, done.stderr
    assert "16000" in done.stdout


# --- the service -------------------------------------------------------------------------

@pytest.mark.shares_daemon
def test_the_service_takes_columns(daemon):
    """As an uploaded dataset of a job, and as a part of a form."""
    model = net_of(TensorProto.FLOAT, [6])
    data = parquet({"x": lists(X[:64]), "text": ["a"] * 64})
    stored = daemon.get(f"/v1/datasets/{daemon.upload('datasets', data)}").json()
    assert stored["samples"] == 64
    assert stored["inputs"] == [{"name": "x", "dtype": "float32", "shape": [64, 6]}]
    ids = [daemon.upload("models", model.SerializeToString()), daemon.upload("datasets", data)]
    job = daemon.ended(daemon.submit(model=ids[0], calibration=ids[1], evaluation=ids[1]))
    assert job["state"] == "succeeded", job
    answer = daemon.post("/v1/quantize", files={
        "model": ("m", model.SerializeToString()), "calibration": ("d.parquet", data)})
    assert answer.status_code == 200, answer.text
    for codec in ("none", "gzip", "zstd"):
        daemon.upload("datasets", parquet({"x": lists(X[:64])}, compression=codec))
    bad = daemon.post("/v1/datasets", data=data[:-4],
                      headers={"Content-Type": "application/octet-stream"})
    assert bad.status_code == 400 and "does not end in PAR1" in bad.json()["detail"]
