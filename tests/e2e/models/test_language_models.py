# SPDX-License-Identifier: Apache-2.0
"""Decoders as ONNX Runtime GenAI's builder writes them: ids alone are data, every MatMul is rounded
by the moments of what it reads, and the logits are judged as those of a language model."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import decoders
from service import QUANTIZE

ALONE = {"target": "onnxruntime", "activations": "none",
         "weights": {"dtype": "uint4", "granularity": {"block": 32}, "rounding": "gptq"}}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The model, ids to calibrate by and others to judge by."""
    path = tmp_path_factory.mktemp("decoder")
    onnx.save(decoders.decoder(), path / "model.onnx")
    np.save(path / "ids.npy", decoders.ids(40, 40))
    np.save(path / "held.npy", decoders.ids(20, 40, seed=9))
    return path


def quantize(folder, small, spec=ALONE, ids="ids.npy", fails=False):
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, small / "model.onnx", "--spec", folder / "spec.json", "--calibration",
         small / ids, "--evaluation", small / "held.npy", "-o", folder / "out.onnx",
         "--report", folder / "report.json"], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else json.loads((folder / "report.json").read_text())


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def figures(small, result, rows):
    """The divergence and the cross entropies as numpy computes them."""
    a, b = (onnxruntime.InferenceSession(path) for path in (small / "model.onnx", result))
    kl, nats, tokens = [], [0, 0], 0
    for row in rows:
        f, q = (np.float64(s.run(["logits"], decoders.inputs_of(row))[0][0]) for s in (a, b))
        p, r = softmax(f), softmax(q)
        kl += list((p * (np.log(p) - np.log(r))).sum(-1))
        at = np.arange(len(row) - 1), row[1:]
        nats[0] -= np.log(p[at]).sum()
        nats[1] -= np.log(r[at]).sum()
        tokens += len(row) - 1
    return np.mean(kl), nats[0] / tokens, nats[1] / tokens


def codes(report):
    return [warning["code"] for warning in report["warnings"]]


def test_no_weight_is_rounded_to_nearest(tmp_path, small):
    report = quantize(tmp_path, small)
    assert len(report["weights"]) == 2 * 7 + 1
    assert "rounded_to_nearest" not in codes(report) and "inputs_filled" in codes(report)


def test_the_figures_of_the_logits_are_numpys(tmp_path, small):
    report = quantize(tmp_path, small)
    logits, *caches = report["evaluation"]["deployed"]["outputs"]
    kl, float_nats, nats = figures(small, tmp_path / "out.onnx", np.load(small / "held.npy"))
    assert logits["kl"] == pytest.approx(kl, rel=2e-3)
    assert logits["nats_per_token"] == pytest.approx(nats, rel=1e-3)
    assert logits["float_nats_per_token"] == pytest.approx(float_nats, rel=1e-4)
    assert len(caches) == 4 and all(o["kl"] is None for o in caches)


def test_a_gate_of_the_divergence_is_met_or_missed(tmp_path, small):
    kl = quantize(tmp_path, small)["evaluation"]["deployed"]["outputs"][0]["kl"]
    report = quantize(tmp_path, small, {**ALONE, "accept": {"max_kl": 1.1 * kl}})
    assert [gate["met"] for gate in report["gates"]] == [True]
    error = quantize(tmp_path, small, {**ALONE, "accept": {"max_kl": 0.9 * kl}}, fails=True)
    assert "kl" in error


def test_the_verdict_goes_by_the_logits_alone(tmp_path, small):
    """In 8 bits the caches have less than 25 dB where the logits are as good as in float."""
    eight = {**ALONE, "weights": {"dtype": "int8"}}
    report = quantize(tmp_path, small, eight)
    logits = report["evaluation"]["deployed"]["outputs"][0]
    assert logits["kl"] < 0.03 and report["summary"]["verdict"] == "good"


def test_samples_end_at_the_first_negative_id(tmp_path, small):
    """Rows of several lengths give what their beginnings give one by one."""
    rows = decoders.ids(20, 40, seed=9)
    lengths = 5 + np.arange(20)
    for row, n in zip(rows, lengths):
        row[n:] = -1
    np.save(small / "ragged.npy", rows)
    (tmp_path / "spec.json").write_text(json.dumps(ALONE))
    done = subprocess.run(
        [*QUANTIZE, small / "model.onnx", "--spec", tmp_path / "spec.json", "--calibration",
         small / "ids.npy", "--evaluation", small / "ragged.npy", "-o", tmp_path / "out.onnx",
         "--report", tmp_path / "report.json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    logits = json.loads((tmp_path / "report.json").read_text())[
        "evaluation"]["deployed"]["outputs"][0]
    kl, _, nats = figures(small, tmp_path / "out.onnx",
                          [row[:n] for row, n in zip(rows, lengths)])
    assert logits["kl"] == pytest.approx(kl, rel=2e-3)
    assert logits["nats_per_token"] == pytest.approx(nats, rel=1e-3)


def behind_a_past(small, rows, n):
    """The ids behind the first n of rows, and the caches that the float model makes of those."""
    session = onnxruntime.InferenceSession(small / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    data = {"input_ids": rows[:, n:]}
    for row in rows:
        made = dict(zip(names, session.run(None, decoders.inputs_of(row[:n]))))
        for name, value in made.items():
            if name != "logits":
                data.setdefault(name.replace("present", "past_key_values"), []).append(value)
    return {name: np.concatenate(list(array)) if name != "input_ids" else array
            for name, array in data.items()}


def cross_entropies(small, result, data, mask):
    """Divergence and nats of the float model and of the result behind the past of each sample."""
    sessions = [onnxruntime.InferenceSession(path) for path in (small / "model.onnx", result)]
    kl, nats = [], []
    for i, ids in enumerate(data["input_ids"]):
        feed = {name: array[i:i + 1] for name, array in data.items()}
        f, q = (softmax(np.float64(s.run(["logits"], {**feed, "attention_mask": mask})[0][0]))
                for s in sessions)
        kl.append((f * (np.log(f) - np.log(q))).sum(-1).mean())
        nats.append(-np.log(q[np.arange(len(ids) - 1), ids[1:]]).mean())
    return np.mean(kl), np.mean(nats)


@pytest.mark.parametrize("has_mask", [False, True])
def test_ids_behind_a_past_are_data(tmp_path, small, has_mask):
    """A mask without an array has ones for the positions of the given caches, too."""
    mask = np.ones((1, 40), np.int64)
    for name, seed in ("ids", 2), ("held", 9):
        data = behind_a_past(small, decoders.ids(20, 40, seed=seed), 25)
        masks = {"attention_mask": mask.repeat(20, 0)} if has_mask else {}
        np.savez(tmp_path / f"{name}.npz", **data, **masks)
    (tmp_path / "spec.json").write_text(json.dumps({**ALONE, "output": {"kv_cache": "int8_per_tensor"}}))
    done = subprocess.run(
        [*QUANTIZE, small / "model.onnx", "--spec", "spec.json", "--calibration", "ids.npz",
         "--evaluation", "held.npz", "-o", "out.onnx", "--report", "report.json"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    kl, nats = cross_entropies(small, tmp_path / "out.onnx", data, mask)
    logits = report["evaluation"]["deployed"]["outputs"][0]
    assert logits["kl"] == pytest.approx(kl, rel=2e-3)
    assert logits["nats_per_token"] == pytest.approx(nats, rel=1e-3)
    said = [w["detail"] for w in report["warnings"] if w["code"] == "inputs_filled"]
    assert said == [] if has_mask else "positions from 25, behind the given past" in said[0]
    assert len(report["kv_cache"]["scales"]["k_scales"]) == decoders.LAYERS


def test_a_negative_id_inside_a_sample_is_an_error(tmp_path, small):
    rows = decoders.ids(4, 8)
    rows[2, 3] = -1
    np.save(small / "hole.npy", rows)
    error = quantize(tmp_path, small, ids="hole.npy", fails=True)
    assert "sample 2" in error and "negative" in error


def test_few_rows_are_said(tmp_path, small):
    np.save(small / "few.npy", decoders.ids(1, 40))
    assert "few_rows" in codes(quantize(tmp_path, small, ids="few.npy"))
    assert "few_rows" not in codes(quantize(tmp_path, small))


def test_arrays_of_all_inputs_give_the_same_bytes(tmp_path, small):
    rows = np.load(small / "ids.npy")
    every = [decoders.inputs_of(row) for row in rows]
    np.savez(small / "all.npz", **{
        name: np.concatenate([one[name] for one in every]) for name in every[0]})
    quantize(tmp_path, small)
    by_ids = (tmp_path / "out.onnx").read_bytes()
    report = quantize(tmp_path, small, ids="all.npz")
    assert codes(report).count("inputs_filled") <= 1  # of the data to judge by
    one, other = onnx.load_from_string(by_ids), onnx.load(tmp_path / "out.onnx")
    assert one.graph == other.graph


def head(dtype, block):
    return {"name": "@logits", "weights": {"dtype": dtype, "granularity": {"block": block}}}


def form(folder, small, decoder, dtype="uint8", block=32):
    """The result with a head of that format, and its figures."""
    report = quantize(folder, small, {**ALONE, "recipe": "none", "layers": [head(dtype, block)],
                                      "output": {"decoder": decoder}})
    return (onnx.load(folder / "out.onnx"),
            report["evaluation"]["deployed"]["outputs"][0]["kl"], report)


@pytest.mark.parametrize("decoder, products", [("dq", 1), ("matmulnbits", 15)])
def test_the_embeddings_share_the_integers_of_the_head(tmp_path, small, decoder, products):
    _, apart, _ = form(tmp_path, small, "none")
    model, kl, report = form(tmp_path, small, decoder)
    assert "float" not in {onnx.TensorProto.DataType.Name(c.data_type).lower()
                           for c in model.graph.initializer
                           if c.dims == [decoders.VOCABULARY, decoders.HIDDEN]}
    assert sum(n.op_type == "MatMulNBits" for n in model.graph.node) == products
    assert not any(n.op_type == "Gather" and "model.embed_tokens.weight" in n.input
                   for n in model.graph.node)
    assert kl == pytest.approx(apart, rel=0.1)
    assert report["evaluation"]["kernels"]["floats"] == [] if "kernels" in report[
        "evaluation"] else report["kernels"]["floats"] == []


def test_rows_may_be_counted_from_the_end(tmp_path, small):
    """A table has two axes, so that the axis -2 of the Gather is the first one."""
    (tmp_path / "other").mkdir()
    model = onnx.load(small / "model.onnx")
    [gather] = [n for n in model.graph.node if "model.embed_tokens.weight" in n.input and n.op_type == "Gather"]
    gather.attribute.append(helper.make_attribute("axis", -2))
    onnx.save(model, tmp_path / "other" / "model.onnx")
    for name in ("ids.npy", "held.npy"):
        (tmp_path / "other" / name).write_bytes((small / name).read_bytes())
    made, _, _ = form(tmp_path, tmp_path / "other", "matmulnbits")
    assert not any(n.op_type == "Gather" and "model.embed_tokens.weight" in n.input for n in made.graph.node)


def numbers_of(packed, bits, n):
    """Numbers of 4 bits lie two in a byte, the first one in its lower bits."""
    both = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    return np.float32(both[..., :n] if bits == 4 else packed)


def zeros_of(stored, bits, n):
    """The zero points of rows of n blocks, where there may be none."""
    return numbers_of(stored[0], bits, n)[..., None] if stored else np.float32(1 << (bits - 1))


@pytest.mark.parametrize("dtype, block", [("uint8", 32), ("uint4", 32), ("uint4", 64),
                                          ("int4", 16), ("int8", 64)])
def test_rows_of_the_shared_table_are_those_of_the_head(tmp_path, small, dtype, block):
    """The embeddings read the numbers that the head multiplies by, to the last bit."""
    model, _, report = form(tmp_path, small, "matmulnbits", dtype, block)
    bits, blocks = int(dtype[-1]), decoders.HIDDEN // block
    product = next(n for n in model.graph.node if n.output[0] == "logits")
    values = {c.name: onnx.numpy_helper.to_array(c) for c in model.graph.initializer}
    q, scale, *zero = (values[name] for name in product.input[1:])
    table = ((numbers_of(q, bits, block) - zeros_of(zero, bits, blocks)) *
             scale[..., None]).reshape(decoders.VOCABULARY, -1)
    model.graph.output.append(onnx.helper.make_tensor_value_info("embedded", 1, None))
    row = decoders.ids(1, 40)[0]
    got = onnxruntime.InferenceSession(model.SerializeToString()).run(
        ["embedded"], decoders.inputs_of(row))[0]
    assert np.array_equal(got[0], table[row])
    floats = [c for c in model.graph.initializer
              if c.data_type == onnx.TensorProto.FLOAT and decoders.VOCABULARY in c.dims]
    assert [c.name for c in floats] == [product.input[2]]  # the scales alone
    kl = figures(small, tmp_path / "out.onnx", decoders.ids(20, 40, seed=9))[0]
    assert report["evaluation"]["deployed"]["outputs"][0]["kl"] == pytest.approx(kl, rel=0.02)


@pytest.mark.parametrize("dtype", ["uint4", "int4", "uint8", "int8"])
@pytest.mark.parametrize("data", [[], ["--calibration", "ids.npy"]], ids=["no_data", "data"])
def test_weights_rounded_to_nearest_have_the_form(tmp_path, small, dtype, data):
    """Rule C24: the numbers are those of the pairs, and the table is stored once."""
    made = {}
    for decoder in ("none", "matmulnbits"):
        (tmp_path / "spec.json").write_text(json.dumps(
            {**ALONE, "recipe": "none", "evaluate": False, "output": {"decoder": decoder},
             "weights": {"dtype": dtype, "granularity": {"block": 32}, "rounding": "nearest"}}))
        subprocess.run([*QUANTIZE, "model.onnx", "--spec", tmp_path / "spec.json", *data,
                        "-o", tmp_path / f"{decoder}.onnx"], cwd=small, check=True, timeout=120)
        made[decoder] = onnx.load(tmp_path / f"{decoder}.onnx")
    values = {form: {c.name: onnx.numpy_helper.to_array(c) for c in model.graph.initializer}
              for form, model in made.items()}
    products = [n for n in made["matmulnbits"].graph.node if n.op_type == "MatMulNBits"]
    pairs = [n for n in made["none"].graph.node if n.op_type == "DequantizeLinear"]
    assert len(products) == len(pairs) == 15
    for pair in pairs:
        q, scale, *zero = (values["none"][name].astype(np.float32) for name in pair.input)
        assert bool(zero) == dtype.startswith("u"), "by rule P6 those that are 0 are left out"
        wanted = (q - (zero[0].repeat(32, 0)[:len(q)] if zero else 0)) * scale.repeat(32, 0)[:len(q)]
        product = next(n for n in products if n.input[1] == pair.input[0])
        q, scale, *zero = (values["matmulnbits"][name] for name in product.input[1:])
        assert bool(zero) == dtype.startswith("u"), "by rule C35 middles are left out"
        bits, n = int(dtype[-1]), scale.shape[1]
        got = ((numbers_of(q, bits, 32) - zeros_of(zero, bits, n)) *
               scale[..., None]).reshape(len(q), -1)
        assert np.array_equal(got.T[:len(wanted)], wanted)
    assert not any(c.data_type == onnx.TensorProto.FLOAT and
                   list(c.dims) == [decoders.VOCABULARY, decoders.HIDDEN]
                   for c in made["matmulnbits"].graph.initializer)


@pytest.mark.parametrize("dtype", ["int4", "int8"])
def test_middles_are_left_out_and_stay_in_what_was_frozen_before(tmp_path, small, dtype):
    """Rule C35: the logits are the same, those of the shared table included."""
    spec = {**ALONE, "recipe": "none", "evaluate": False, "output": {"decoder": "matmulnbits"},
            "weights": {"dtype": dtype, "granularity": {"block": 32}}}
    made = {}
    for name in ("new", "old"):
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        subprocess.run([*QUANTIZE, "model.onnx", "--spec", tmp_path / "spec.json", "-o",
                        tmp_path / f"{name}.onnx", "--report", tmp_path / "report.json"],
                       cwd=small, check=True, timeout=120)
        made[name] = onnx.load(tmp_path / f"{name}.onnx")
        if name == "new":  # a version without the rule stated all others
            spec = json.loads((tmp_path / "report.json").read_text())["spec"]
            assert spec["rules"].pop("C35") is True
    inputs = {name: {len(n.input) for n in model.graph.node if n.op_type == "MatMulNBits"}
              for name, model in made.items()}
    assert inputs == {"new": {3}, "old": {4}}
    logits = [onnxruntime.InferenceSession(tmp_path / f"{name}.onnx").run(
        ["logits"], decoders.inputs_of(decoders.ids(1, 12)[0]))[0] for name in made]
    assert np.array_equal(*logits)


def test_the_form_is_refused_for_other_targets(tmp_path, small):
    error = quantize(tmp_path, small, {"target": "openvino", "activations": "none",
                                       "output": {"decoder": "dq"}}, fails=True)
    assert "unsupported" in error and "/output/decoder" in error


def run(*command):
    return subprocess.run([*QUANTIZE, *command], capture_output=True, text=True, timeout=120)


def test_a_folder_gives_a_folder(tmp_path, small):
    source = decoders.folder(tmp_path / "float")
    done = run(source, "--calibration", small / "ids.npy", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names - {"model.onnx.data"} == {"model.onnx", "genai_config.json",
                                           "tokenizer.json", "tokenizer_config.json"}
    before, after = (json.loads((path / "genai_config.json").read_text())
                     for path in (source, tmp_path / "out"))
    assert after["model"]["decoder"].pop("filename") == "model.onnx"
    assert before["model"]["decoder"].pop("filename") == "decoder.onnx" and after == before
    kl, _, _ = figures(small, tmp_path / "out" / "model.onnx", np.load(small / "held.npy"))
    assert kl < 0.4


def test_errors_of_folders_say_what_to_do(tmp_path, small):
    source = decoders.folder(tmp_path / "float")
    ids = ("--calibration", small / "ids.npy")
    (tmp_path / "text.txt").write_text("words")
    done = run(source, "--calibration", tmp_path / "text.txt", "-o", tmp_path / "out")
    assert done.returncode != 0 and "ids.npy" in done.stderr and "tokenizers" in done.stderr
    done = run(source, *ids, "-o", source)
    assert done.returncode != 0 and "is read" in done.stderr
    config = json.loads((source / "genai_config.json").read_text())
    config["model"]["decoder"]["filename"] = "../decoder.onnx"
    (source / "genai_config.json").write_text(json.dumps(config))
    done = run(source, *ids, "-o", tmp_path / "out")
    assert done.returncode != 0 and "/model/decoder/filename" in done.stderr
    (source / "genai_config.json").unlink()
    done = run(source, *ids, "-o", tmp_path / "out")
    assert done.returncode != 0 and "genai_config.json" in done.stderr


AWQ = {**ALONE, "smooth": "awq", "weights": {"dtype": "uint4", "granularity": {"block": 64}}}


def test_awq_takes_its_divisors_into_norms_gates_and_values(tmp_path, small):
    """Nothing is added to the graph, and the error is less than without."""
    plain = quantize(tmp_path, small, {**AWQ, "smooth": False})
    nodes = [(n.op_type, list(n.input)) for n in onnx.load(tmp_path / "out.onnx").graph.node]
    report = quantize(tmp_path, small, AWQ)
    model = onnx.load(tmp_path / "out.onnx")
    assert [(n.op_type, list(n.input)) for n in model.graph.node] == nodes
    rows = {row["tensor"]: row for row in report["smoothing"]}
    smoothed = {name for name, row in rows.items() if row["reason"] == "smoothed"}
    layer = "model.layers.1"
    assert {f"{layer}.input_layernorm/out", f"{layer}.mlp.product"} <= {
        name.replace("mlp/", "mlp.") for name in rows}
    assert len(smoothed) >= 4 and all(rows[name]["channels"] > 0 for name in smoothed)
    assert not any(row["inserted"] for row in rows.values())
    assert rows["model.layers.2.final_norm_layernorm/out"]["channels"] == 0
    assert report["spec"]["smooth"] == "awq" and report["spec"]["recipe"] == "none"
    a, b = (r["evaluation"]["outputs"][0]["kl"] for r in (plain, report))
    assert b < 0.9 * a, (a, b)


def test_awq_computes_the_same_function(tmp_path, small):
    """In 8 bits nothing but the divisors changes: heads of a group share those of their values."""
    report = quantize(tmp_path, small, {**AWQ, "weights": {"dtype": "uint8", "granularity":
                                                           {"block": 16}}})
    names = {row["tensor"] for row in report["smoothing"] if row["channels"]}
    logits = report["evaluation"]["outputs"][0]
    assert any("context" in name for name in names) and logits["kl"] < 0.004


@pytest.mark.parametrize("more, member", [({"activations": {"dtype": "int8"}}, "/smooth"),
                                          ({"recipe": "auto"}, "/recipe"),
                                          ({"smooth": "gptq"}, "/smooth")])
def test_awq_is_refused_where_it_is_not_for_weights_alone(tmp_path, small, more, member):
    assert member[1:] in quantize(tmp_path, small, {**AWQ, **more}, fails=True)


# --- scales of caches ---------------------------------------------------------------


def caches_of(path, rows):
    """The largest magnitudes of keys and values by layer, head and element; those of keys are the
    lengths of the vectors that positions turn."""
    session = onnxruntime.InferenceSession(path)
    names = [o.name for o in session.get_outputs() if o.name.startswith("present")]
    largest = {name: 0 for name in names}
    for row in rows:
        for name, x in zip(names, session.run(names, decoders.inputs_of(row))):
            x = np.abs(x[0])
            if name.endswith("key"):
                a, b = np.split(x, 2, axis=-1)
                x = np.concatenate([np.sqrt(a * a + b * b)] * 2, axis=-1)
            largest[name] = np.maximum(largest[name], x.max(axis=1).ravel())
    return [[largest[f"present.{i}.{kind}"] for i in range(decoders.LAYERS)]
            for kind in ("key", "value")]


@pytest.mark.parametrize("kind,qmax", [("int8_per_channel", 128), ("int8_per_tensor", 128),
                                       ("int4_per_channel", 8), ("int4_per_tensor", 8)])
def test_scales_of_caches_are_the_largest_magnitudes(tmp_path, small, kind, qmax):
    nearest = {**ALONE, "weights": {**ALONE["weights"], "rounding": "nearest"},
               "output": {"kv_cache": kind}}
    report = quantize(tmp_path, small, nearest, ids="held.npy")
    got = report["kv_cache"]
    assert json.loads((tmp_path / "out.kv_scales.json").read_text()) == got
    assert got["qmax"] == qmax and got["layer_ids"] == list(range(decoders.LAYERS))
    for name, want in zip(("k_scales", "v_scales"),
                          caches_of(small / "model.onnx", np.load(small / "held.npy"))):
        if kind.endswith("tensor"):
            want = [[layer.max()] for layer in want]
        np.testing.assert_allclose(got["scales"][name], np.array(want) / qmax, rtol=1e-5)


def scales_by(path, small, chosen):
    spec = {**ALONE, "weights": {**ALONE["weights"], "rounding": "nearest"},
            "output": {"kv_cache": chosen}}
    return quantize(path, small, spec)


def test_the_whole_percentile_is_the_largest_magnitude(tmp_path, small):
    """But for float16, in which rows are kept."""
    largest = scales_by(tmp_path, small, "int8_per_channel")["kv_cache"]["scales"]
    whole = scales_by(tmp_path, small, {"method": "percentile", "percentile": 100})
    for name, scales in largest.items():
        np.testing.assert_allclose(whole["kv_cache"]["scales"][name], scales, rtol=5e-4)


@pytest.mark.parametrize("method, scheme", [
    ("percentile", "int8_per_channel"), ("percentile", "int4_per_tensor"),
    ("mse", "int4_per_channel"), ("mse", "int4_per_tensor")])
def test_a_method_cuts_the_largest_magnitudes_off(tmp_path, small, method, scheme):
    largest = scales_by(tmp_path, small, scheme)["kv_cache"]
    report = scales_by(tmp_path, small, {"scheme": scheme, "method": method})
    assert report["spec"]["output"]["kv_cache"]["method"] == method
    got = report["kv_cache"]
    assert got["qmax"] == largest["qmax"]
    for name, scales in largest["scales"].items():
        share = np.array(got["scales"][name]) / np.array(scales)
        assert share.max() < 1.0005 and share.min() > 0.199 and share.min() < 0.999


@pytest.mark.parametrize("chosen, said", [
    ({"method": "entropy"}, "/output/kv_cache/method"),
    ({"scheme": "int8"}, "/output/kv_cache/scheme"),
    ({"percentile": 99}, "/output/kv_cache/percentile"),
    ({"method": "mse", "percentile": 99}, "/output/kv_cache/percentile"),
    ({"method": "percentile", "percentile": 0}, "/output/kv_cache/percentile"),
    ({"bits": 8}, "/output/kv_cache/bits")])
def test_wrong_members_of_scales_of_caches_are_refused(tmp_path, small, chosen, said):
    assert said in quantize(tmp_path, small, {**ALONE, "output": {"kv_cache": chosen}},
                            fails=True)


@pytest.mark.parametrize("names, layers", [
    ({i: (f"keys_{3 * i + 2}_out", f"values_{3 * i + 2}_out") for i in range(2)}, [2, 5]),
    ({i: (f"cache/{'ab'[i]}/k", f"cache/{'ab'[i]}/v") for i in range(2)}, [0, 1])])
def test_caches_are_found_by_the_attention_that_makes_them(tmp_path, small, names, layers):
    """Layers have the numbers in the names, where these have one each."""
    model = onnx.load(small / "model.onnx")
    new = {f"present.{i}.{kind}": to for i, pair in names.items()
           for kind, to in zip(("key", "value"), pair)}
    for node in model.graph.node:
        node.output[:] = [new.get(name, name) for name in node.output]
    for output in model.graph.output:
        output.name = new.get(output.name, output.name)
    (tmp_path / "renamed").mkdir()
    onnx.save(model, tmp_path / "renamed" / "model.onnx")
    for name in ("ids.npy", "held.npy"):
        np.save(tmp_path / "renamed" / name, np.load(small / name))
    chosen = {"scheme": "int8_per_channel", "method": "mse"}
    want = scales_by(tmp_path, small, chosen)["kv_cache"]
    got = scales_by(tmp_path, tmp_path / "renamed", chosen)["kv_cache"]
    assert got["layer_ids"] == layers and got["scales"] == want["scales"]


def in_float16(model):
    for i, constant in enumerate(model.graph.initializer):
        if constant.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(constant).astype(np.float16)
            model.graph.initializer[i].CopyFrom(
                onnx.numpy_helper.from_array(array, constant.name))
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return model


def test_caches_of_float16_have_scales(tmp_path, small):
    (tmp_path / "half").mkdir()
    onnx.save(in_float16(onnx.load(small / "model.onnx")), tmp_path / "half" / "model.onnx")
    for name in ("ids.npy", "held.npy"):
        np.save(tmp_path / "half" / name, np.load(small / name))
    got = scales_by(tmp_path, tmp_path / "half", "int8_per_channel")["kv_cache"]["scales"]
    want = scales_by(tmp_path, small, "int8_per_channel")["kv_cache"]["scales"]
    for name, scales in want.items():
        np.testing.assert_allclose(got[name], scales, rtol=0.02)


def test_scales_of_caches_of_a_job(daemon, tmp_path, small):
    """A service gives the scales of the command, whose file GenAI's builder takes."""
    spec = {**ALONE, "output": {"kv_cache": {"scheme": "int8_per_tensor",
                                             "method": "percentile", "percentile": 99}}}
    want = quantize(tmp_path, small, spec)
    job = daemon.submit(model=daemon.upload("models", small / "model.onnx"),
                        calibration=daemon.upload("datasets", small / "ids.npy"),
                        evaluation=daemon.upload("datasets", small / "held.npy"), spec=spec)
    daemon.succeeded(job)
    report = daemon.report(job)
    assert report["kv_cache"] == want["kv_cache"]
    assert report["kv_cache"] == json.loads((tmp_path / "out.kv_scales.json").read_text())
    assert report["spec"]["output"]["kv_cache"] == spec["output"]["kv_cache"]
    assert daemon.result(job) == (tmp_path / "out.onnx").read_bytes()
    logits = report["evaluation"]["deployed"]["outputs"][0]
    assert logits["kl"] == want["evaluation"]["deployed"]["outputs"][0]["kl"]


def test_scales_of_caches_are_those_of_the_smoothed_model(tmp_path, small):
    smooth = {**ALONE, "smooth": "awq", "output": {"kv_cache": "int8_per_channel"}}
    report = quantize(tmp_path, small, smooth, ids="held.npy")
    rows = np.load(small / "held.npy")
    plain, written = (np.array(caches_of(path, rows)[1])
                      for path in (small / "model.onnx", tmp_path / "out.onnx"))
    got = np.array(report["kv_cache"]["scales"]["v_scales"]) * 128
    assert np.abs(np.log(got / written)).max() < np.abs(np.log(got / plain)).max()
    np.testing.assert_allclose(got, written, rtol=0.5)


def test_a_model_without_caches_has_no_scales_of_them(tmp_path, small):
    model = onnx.load(small / "model.onnx")
    del model.graph.output[1:]
    onnx.save(model, tmp_path / "model.onnx")
    for name in ("ids.npy", "held.npy"):
        np.save(tmp_path / name, np.load(small / name))
    said = quantize(tmp_path, tmp_path, {**ALONE, "output": {"kv_cache": "int4_per_tensor"}},
                    fails=True)
    assert "/output/kv_cache" in said and "present.N.key" in said
    assert not (tmp_path / "out.kv_scales.json").exists()


def outputs_of_a_decoder(path, factor=1.0, layer="0", loud=False):
    """A decoder that reads no caches, and hands them on: [batch, heads, positions, size]."""
    rng = np.random.default_rng(3)
    table, w = (rng.normal(size=shape).astype(np.float32) for shape in ((64, 32), (32, 32)))
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["x"], "embed"),
             helper.make_node("MatMul", ["x", "w"], ["y"], "layer"),
             helper.make_node("MatMul", ["y", "head"], ["logits"], "head")]
    made = []
    for kind in ("key", "value"):
        nodes += [helper.make_node("Reshape", ["y", "heads"], [f"{kind}_4"]),
                  helper.make_node("Transpose", [f"{kind}_4"], [f"{kind}_t"], perm=[0, 2, 1, 3]),
                  helper.make_node("Mul", [f"{kind}_t", "factor"], [f"present.{layer}.{kind}"])]
        made.append(helper.make_tensor_value_info(f"present.{layer}.{kind}", 1, ["B", 4, "S", 8]))
    if loud:  # what no pair computes well
        nodes[-1] = helper.make_node("Sub", ["value_t", "value_r"], [f"present.{layer}.value"])
        nodes.insert(-1, helper.make_node("Round", ["value_t"], ["value_r"]))
    constants = {"table": table, "w": w, "head": rng.normal(size=(32, 64)).astype(np.float32),
                 "heads": np.array([0, 0, 4, 8]), "factor": np.float32(factor)}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("input_ids", 7, ["B", "S"])],
        [helper.make_tensor_value_info("logits", 1, ["B", "S", 64]), *made],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])
    path.mkdir()
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]),
              path / "model.onnx")
    for name in ("ids.npy", "held.npy"):
        np.save(path / name, rng.integers(0, 64, (16, 12)))
    return path


@pytest.mark.parametrize("method", ["minmax", "mse"])
def test_huge_caches_are_finite(tmp_path, method):
    """The squares of their elements are beyond float32."""
    path = outputs_of_a_decoder(tmp_path / "net", 1e30)
    report = quantize(tmp_path, path, {
        **ALONE, "output": {"kv_cache": {"scheme": "int8_per_channel", "method": method}}})
    scales = np.array(report["kv_cache"]["scales"]["k_scales"])
    assert np.isfinite(scales).all() and (scales > 1e28).all() and (scales < 1e31).all()


def test_a_layer_with_twenty_digits_is_no_layer(tmp_path):
    path = outputs_of_a_decoder(tmp_path / "net", layer="99999999999999999999")
    assert "no caches" in quantize(tmp_path, path, {**ALONE, "output": {"kv_cache": "int8_per_channel"}},
                                   fails=True)


def test_caches_of_a_decoder_without_a_past_are_out_of_the_verdict(tmp_path):
    path = outputs_of_a_decoder(tmp_path / "net", loud=True)
    report = quantize(tmp_path, path, {"target": "onnxruntime", "recipe": "none"})
    figures = {row["name"]: row["sqnr_db"] for row in report["evaluation"]["outputs"]}
    assert figures["present.0.value"] < 15 < 25 < figures["logits"]
    assert report["summary"]["verdict"] in ("good", "fair")
