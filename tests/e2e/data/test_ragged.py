# SPDX-License-Identifier: Apache-2.0
"""Samples of different lengths: each runs in its own shape, and the figures are those that numpy
and onnxruntime find over all of them."""

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import numpy_helper

import judge
from test_data import RAGGED as SETS
from test_data import TEXT, Quantized, findings, npz, range_of, sets, tarred, text_feed

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "clients" / "python"))
import qdqd  # noqa: E402
import qdqd._data  # noqa: E402

RANDOM = np.random.default_rng(29)
SPEC = {"calibration": {"method": "minmax", "batch": 8}, "evaluate": True}
LENGTHS = [5, 2, 9, 1, 3, 3, 7, 4, 11, 6, 2, 8]
FEEDS = [text_feed(1, n) for n in LENGTHS]


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def shard(feeds, pack, batch):
    """Returns a tar archive of samples, with or without a batch axis of one."""
    files = {}
    for i, feed in enumerate(feeds):
        arrays = feed if batch else {name: array[0] for name, array in feed.items()}
        if pack == "npz":
            files[f"train/{i:05}.npz"] = npz(**arrays)
        else:
            for name, array in arrays.items():
                files[f"train/{i:05}.{name}.npy"] = npy(array)
        files[f"train/{i:05}.json"] = b"{}"
    return tarred(files)


def table_of(feeds, **options):
    """Returns a Parquet file with a list in each row."""
    columns = {name: pa.array([feed[name][0].tolist() for feed in feeds])
               for name in ("ids", "mask")}
    columns["x"] = pa.array([feed["x"][0].tolist() for feed in feeds], pa.list_(pa.list_(pa.float32())))
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Returns the result of the same samples as ONNX's test data."""
    done = Quantized(tmp_path_factory.mktemp("sets"), TEXT, sets(FEEDS), **SPEC)
    assert done.ok, done.said
    return done


FORMS = {
    "npy": lambda: shard(FEEDS, "npy", False),
    "npy with a batch": lambda: shard(FEEDS, "npy", True),
    "npz": lambda: shard(FEEDS, "npz", False),
    "npz with a batch": lambda: shard(FEEDS, "npz", True),
    "packed": lambda: gzip.compress(shard(FEEDS, "npz", False)),
    "parquet": lambda: table_of(FEEDS),
    "small parquet": lambda: table_of(FEEDS, row_group_size=5, data_page_size=32, write_batch_size=2),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_sample_has_its_own_length(tmp_path, expected, form):
    done = Quantized(tmp_path, TEXT, FORMS[form](), **SPEC)
    assert done.range("m") == range_of(TEXT, "m", FEEDS)
    assert done.report["calibration"]["samples"] == len(FEEDS)
    assert findings(done) == findings(expected)
    assert done.graph == expected.graph


@pytest.mark.parametrize("form", ["npy", "npz", "parquet"])
def test_figures_are_those_of_onnxruntime(tmp_path, form):
    """The signal-to-noise ratio is that of all elements of all samples, each run in its shape."""
    done = Quantized(tmp_path, TEXT, FORMS[form](), **SPEC)
    assert done.ok, done.said
    float_model = judge.session(TEXT.SerializeToString())
    integer_model = judge.session(done.bytes, integers=False)
    signal = noise = 0.0
    for feed in FEEDS:
        y = float_model.run(None, feed)[0].astype(np.float64)
        signal += np.sum(y * y)
        noise += np.sum((integer_model.run(None, feed)[0] - y) ** 2)
    assert done.report["evaluation"]["outputs"][0]["sqnr_db"] == pytest.approx(
        10 * np.log10(signal / noise), abs=0.05)


@pytest.mark.parametrize("more", [
    {"weights": {"rounding": "gptq"}}, {"weights": {"rounding": "reconstruct"}}, {"bias_correction": True},
    {"smooth": True}, {"calibration": {"method": "entropy"}}, {"calibration": {"method": "mse"}},
    {"calibration": {"method": "percentile", "max_samples": 7}},
    {"target": "onnxruntime", "recipe": "best"}, {"target": "onnxruntime"}, {"evaluate": {"samples": 3}}], ids=str)
def test_what_reads_samples_again(tmp_path, more):
    """Methods that need more than a range, and read the samples several times, find what they find
    in the test data."""
    spec = {**SPEC, **more}
    one = Quantized(tmp_path, TEXT, table_of(FEEDS), **spec)
    other = Quantized(tmp_path, TEXT, sets(FEEDS), **spec)
    assert findings(one) == findings(other)
    assert one.graph == other.graph


@pytest.mark.parametrize("pack", ["npy", "npz"])
def test_samples_of_one_length_are_an_array(tmp_path, pack):
    """Where lengths do not differ, samples run in batches, as those of an .npz file."""
    feeds = [text_feed(1, 5) for _ in range(6)]
    whole = npz(**{name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]})
    one = Quantized(tmp_path, TEXT, shard(feeds, pack, False), **SPEC)
    other = Quantized(tmp_path, TEXT, whole, **SPEC)
    assert findings(one) == findings(other)
    assert one.graph == other.graph


@pytest.mark.parametrize("form", ["parquet", "npy"])
def test_texts_of_several_lengths(tmp_path, form):
    """Ids of tokens alone are enough: masks follow from each sample's own length."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        lm (int64[n, seq] input_ids, int64[n, seq] attention_mask) => (float[n, seq, 3] logits) {
            e = Gather (table, input_ids)  c = Cast <to = 1> (attention_mask)
            u = Unsqueeze (c, axes)  s = Mul (e, u)  logits = MatMul (s, w) }""")
    random = np.random.default_rng(3)
    for name, value in {"table": random.standard_normal((50, 4)).astype(np.float32),
                        "axes": np.int64([2]),
                        "w": random.standard_normal((4, 3)).astype(np.float32)}.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    texts = [random.integers(0, 50, n) for n in LENGTHS]
    if form == "parquet":
        file = io.BytesIO()
        pq.write_table(pa.table({"input_ids": [text.tolist() for text in texts],
                                 "text": ["a"] * len(texts)}), file)
        data = file.getvalue()
    else:
        data = tarred({f"{i:04}.npy": npy(text) for i, text in enumerate(texts)})
    done = Quantized(tmp_path, model, data, **SPEC)
    feeds = [{"input_ids": text[None], "attention_mask": np.ones((1, len(text)), np.int64)}
             for text in texts]
    assert done.range("s") == range_of(model, "s", feeds)
    assert done.report["calibration"]["samples"] == len(texts)


def sum_net():
    """y = mean over time of x w, for a model of one input."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        sum (float[n, time, 4] x) => (float[n, 3] y) {
            h = MatMul (x, w)  y = ReduceMean <axes = [1], keepdims = 0> (h) }""")
    model.graph.initializer.append(numpy_helper.from_array(
        np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32), "w"))
    return model


def test_an_array_without_a_name_feeds_the_only_input(tmp_path):
    arrays = [RANDOM.standard_normal((n, 4)).astype(np.float32) for n in LENGTHS]
    data = tarred({f"{i:04}.npy": npy(array) for i, array in enumerate(arrays)})
    done = Quantized(tmp_path, sum_net(), data, **SPEC)
    low, high = min(a.min() for a in arrays), max(a.max() for a in arrays)
    assert done.range("x") == (low, high)


@pytest.mark.parametrize("change, dtype", [(np.asfortranarray, "<f4"), (np.ascontiguousarray, ">f4")])
def test_other_orders(tmp_path, change, dtype):
    arrays = [RANDOM.standard_normal((n, 4)).astype(np.float32) for n in LENGTHS]
    plain = tarred({f"{i:04}.npy": npy(array) for i, array in enumerate(arrays)})
    moved = tarred({f"{i:04}.npy": npy(change(array).astype(dtype)) for i, array in enumerate(arrays)})
    one, other = (Quantized(tmp_path, sum_net(), data, **SPEC) for data in (moved, plain))
    assert findings(one) == findings(other)


def test_labels_beside_ragged_samples(tmp_path):
    """The top-1 score of the float model is that of numpy."""
    arrays = [RANDOM.standard_normal((n, 4)).astype(np.float32) for n in LENGTHS]
    session = judge.session(sum_net().SerializeToString())
    chosen = [int(session.run(None, {"x": array[None]})[0].argmax()) for array in arrays]
    labels = [c if i % 3 else (c + 1) % 3 for i, c in enumerate(chosen)]
    files = {}
    for i, array in enumerate(arrays):
        files[f"{i:04}.npy"] = npy(array)
        files[f"{i:04}.cls"] = str(labels[i]).encode()
    done = Quantized(tmp_path, sum_net(), tarred(files), task={"kind": "classification"}, **SPEC)
    assert done.ok, done.said
    right = sum(a == b for a, b in zip(chosen, labels))
    assert done.report["evaluation"]["task"]["float"] == pytest.approx(right / len(labels))


def test_the_python_client_packs_ragged_samples(tmp_path, expected):
    """A list of arrays of different shapes becomes an archive that gives the same result."""
    inputs = [{"name": "ids", "shape": [None, None]}, {"name": "mask", "shape": [None, None]},
              {"name": "x", "shape": [None, None, 4]}]
    for feeds in (FEEDS, [{name: array[0] for name, array in feed.items()} for feed in FEEDS]):
        (tmp_path / "parts").mkdir(exist_ok=True)
        columns = qdqd._data.collect(feeds, inputs, tmp_path / "parts")
        qdqd._data.write_arrays(columns, tmp_path / "packed")
        done = Quantized(tmp_path, TEXT, (tmp_path / "packed").read_bytes(), **SPEC)
        assert findings(done) == findings(expected)
        assert done.graph == expected.graph


@pytest.mark.shares_daemon
def test_the_python_client_sends_ragged_samples(daemon, expected):
    """A list of dicts of arrays of different lengths goes to the service as it is."""
    result = qdqd.Client(daemon.url).quantize(TEXT, FEEDS, SPEC)
    assert onnx.load_from_string(result.model).graph.SerializeToString() == expected.graph
    assert result.report["calibration"]["samples"] == len(FEEDS)


def test_the_python_client_cuts_batches(tmp_path):
    """Batches that are padded each to a length of their own are cut into samples."""
    batches = [RANDOM.standard_normal((3, n, 4)).astype(np.float32) for n in (4, 6)]
    (tmp_path / "parts").mkdir()
    columns = qdqd._data.collect(batches, [{"name": "x", "shape": [None, None, 4]}], tmp_path / "parts")
    qdqd._data.write_arrays(columns, tmp_path / "packed")
    done = Quantized(tmp_path, sum_net(), (tmp_path / "packed").read_bytes(), **SPEC)
    assert done.report["calibration"]["samples"] == 6
    assert done.range("x") == (min(b.min() for b in batches), max(b.max() for b in batches))


@pytest.mark.parametrize("files, said", [
    ({"0.npy": npy(np.zeros((2, 4), np.float32)), "1.npy": npy(np.zeros((2, 4)))},
     "is float64 of 2 axes, and float32 of 2 in the first sample"),
    ({"0.npy": npy(np.zeros((2, 4), np.float32)), "1.npy": npy(np.zeros(4, np.float32))},
     "is float32 of 1 axes"),
    ({"0.a.npy": npy(np.zeros((2, 4), np.float32)), "1.b.npy": npy(np.zeros((2, 4), np.float32))},
     "it has an array that the first sample has not"),
    ({"0.a.npy": npy(np.zeros(4)), "0.cls": b"1", "1.a.npy": npy(np.zeros(4))},
     "its sample lacks an array of the first one"),
    ({"0.npy": npy(np.zeros((0, 4), np.float32))}, "an array without elements"),
    ({"0.npy": npy(np.zeros((2, 4), np.float32))[:-1]}, "another size than its head says"),
    ({"0.npz": b"PK"}, "is no .npz file"),
    ({"0.npy": npy(np.zeros(4)), "0.cls": b"one"}, "a label is one whole number"),
    ({"0.cls": b"1"}, "with labels and without images or arrays"),
    ({"0.txt": b"1"}, "is a tar archive without images"),
])
def test_shards_that_cannot_be_used(tmp_path, files, said):
    done = Quantized(tmp_path, sum_net(), tarred(files))
    assert not done.ok and said in done.said, done.said


def test_a_sample_that_does_not_fit_is_named(tmp_path):
    arrays = [np.zeros((n, 4 if i < 5 else 3), np.float32) for i, n in enumerate(LENGTHS)]
    done = Quantized(tmp_path, sum_net(), tarred({f"{i:04}.npy": npy(a) for i, a in enumerate(arrays)}))
    assert "calibration_mismatch: input 'x' wants float32 [?,?,4], the samples have" in done.said
    assert "sample 5" in done.said


def test_sets_stay_as_they_are(tmp_path):
    """ONNX's test data is fed unchanged: no batch axis is put in front."""
    done = Quantized(tmp_path, TEXT, sets([{name: array[0] for name, array in feed.items()}
                                           for feed in SETS]))
    assert "calibration_mismatch" in done.said and "the rank differs" in done.said
