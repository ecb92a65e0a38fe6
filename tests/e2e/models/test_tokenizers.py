# SPDX-License-Identifier: Apache-2.0
"""Ids of tokens that are made of texts: those of Hugging Face's library, for tokenizers of many
kinds, and the same model of a text as of its ids."""

import hashlib
import json
import shutil
import subprocess

import numpy as np
import pytest

import decoders
import pipelines
from service import QUANTIZE, ROOT
from test_python import qdqd

PROGRAM = ROOT / "tests" / "pipelines" / "encode_texts.py"
NAMES = ["gpt2", "roberta", "llama3", "qwen", "gpt4o", "smollm", "llama2", "gemma", "words", "clip",
         "first", "always", "bert", "bert_cased", "bert_accents", "pieces"]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    """The folder of tokenizers, texts and their ids by the library."""
    folder = tmp_path_factory.mktemp("tokenizers")
    done = subprocess.run([pipelines.python_with("tokenizers"), PROGRAM, folder],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return decoders.folder(tmp_path_factory.mktemp("decoder") / "float")


def ids_of(model, text, out):
    done = subprocess.run([QUANTIZE[0], "data", text, "--model", model, "-o", out], capture_output=True,
                          text=True, timeout=120)
    return np.load(out).ravel() if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_library(encoded, model, tmp_path, name):
    shutil.copy(encoded / name / "tokenizer.json", model)
    wanted = json.loads((encoded / name / "ids.json").read_text())
    assert len(wanted["long.txt"]) > 10000 and len(wanted) > 50
    for file, ids in wanted.items():
        found = ids_of(model, encoded / name / file, tmp_path / f"{file}.npy")
        if not ids:
            assert "has no token" in found
            continue
        # The last ids that fill no sample are left out.
        n = len(ids) if len(ids) < decoders.LONGEST else len(ids) // decoders.LONGEST * decoders.LONGEST
        assert list(found) == ids[:n], file


def small_tokenizer(model):
    """A tokenizer whose ids the small decoder has: those of bytes of ASCII."""
    state = {"version": "1.0", "added_tokens": [], "normalizer": None,
             "pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"\s?\S+|\s+"},
                               "behavior": "Isolated", "invert": False},
             "post_processor": None, "decoder": None,
             "model": {"type": "BPE", "vocab": {chr(c): c for c in range(1, 128)}, "merges": []}}
    state["model"]["vocab"]["th"] = 128
    state["model"]["merges"].append("t h")
    (model / "tokenizer.json").write_text(json.dumps(state))
    return state


def quantize(source, out, *words):
    done = subprocess.run([*QUANTIZE, source, "-o", out, *words], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return (out / "model.onnx").read_bytes()


def write_texts(folder):
    text = "that the moth is in the path of a bath, then the north.\n" * 400
    (folder / "text.txt").write_text(text)
    (folder / "held.txt").write_text(text[7000:9000].upper())
    ids = list(text.replace("th", chr(128)))
    rows = [ord(c) for c in ids][:len(ids) // decoders.LONGEST * decoders.LONGEST]
    np.save(folder / "ids.npy", np.array(rows, np.int64).reshape(-1, decoders.LONGEST))


def test_a_text_gives_the_model_of_its_ids(tmp_path):
    source = decoders.folder(tmp_path / "float")
    small_tokenizer(source)
    write_texts(tmp_path)
    a = quantize(source, tmp_path / "a", "--calibration", tmp_path / "text.txt", "--evaluation",
                 tmp_path / "held.txt", "--report", tmp_path / "a.json")
    b = quantize(source, tmp_path / "b", "--calibration", tmp_path / "ids.npy", "--report",
                 tmp_path / "b.json")
    assert a == b
    first, second = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert first["calibration"]["id"] == second["calibration"]["id"]
    assert first["evaluation"]["outputs"][0]["kl"] > 0


def test_what_is_missing_or_unknown_is_said(tmp_path):
    source = decoders.folder(tmp_path / "float")
    state = small_tokenizer(source)
    (tmp_path / "text.txt").write_text("the text")

    def fails(**members):
        (source / "tokenizer.json").write_text(json.dumps({**state, **members}))
        return ids_of(source, tmp_path / "text.txt", tmp_path / "ids.npy")

    for members, words in [
            ({"model": {"type": "Unigram", "vocab": []}}, ["/model/type", "Unigram"]),
            ({"normalizer": {"type": "Precompiled"}}, ["/normalizer/type", "Precompiled"]),
            ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Other"}]}},
             ["/pre_tokenizer/pretokenizers/0/type", "Other"]),
            ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[a-z&&[^b]]"},
                                "behavior": "Isolated", "invert": False}},
             ["/pre_tokenizer", "intersection"])]:
        text = fails(**members)
        assert all(word in text for word in words), text
        assert "give the ids as .npy: python3 -c" in text and "tokenizers.Tokenizer" in text
    (source / "tokenizer.json").unlink()
    text = ids_of(source, tmp_path / "text.txt", tmp_path / "ids.npy")
    assert "tokenizer.json" in text and "is not there" in text
    small_tokenizer(source)
    (tmp_path / "text.txt").write_bytes(b"a text \xff")
    assert "not UTF-8 at byte 7" in ids_of(source, tmp_path / "text.txt", tmp_path / "ids.npy")
    done = subprocess.run([QUANTIZE[0], "data", tmp_path / "text.txt"], capture_output=True, text=True)
    assert done.returncode != 0 and "name the model" in done.stderr


def test_parts_of_a_long_text_are_read(tmp_path):
    source = decoders.folder(tmp_path / "float")
    small_tokenizer(source)
    line = "the path of a moth in the north\n"
    (tmp_path / "text.txt").write_text(line * (40_000_000 // len(line)))
    ids = ids_of(source, tmp_path / "text.txt", tmp_path / "ids.npy")
    assert 10_000_000 < len(ids) < 16_777_216
    part = [ord(c) for c in line.replace("th", chr(128))]
    assert list(ids[:len(part)]) == part


CLIENT = """
import sys
import qdqd
model, text, held, url = sys.argv[1:]
result = qdqd.Client(url).quantize(model, text, {"target": "onnxruntime", "activations": "none",
                                                 "weights": {"dtype": "uint4", "granularity":
                                                             {"block": 32}, "rounding": "gptq"}},
                                   evaluation=held)
print(result.report["calibration"]["id"])
"""


def test_a_service_gets_the_ids(daemon, tmp_path):
    """By the command and by the Python client, whose Python has the library."""
    source = decoders.folder(tmp_path / "float")
    small_tokenizer(source)
    write_texts(tmp_path)
    wanted = "sha256:" + hashlib.sha256((tmp_path / "ids.npy").read_bytes()).hexdigest()
    done = subprocess.run([*QUANTIZE[:2], source / "decoder.onnx", "--url", daemon.url, "--calibration",
                           tmp_path / "text.txt", "--evaluation", tmp_path / "held.txt", "-o",
                           tmp_path / "model.onnx", "--report", tmp_path / "report.json"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["calibration"]["id"] == wanted
    done = subprocess.run(
        [pipelines.python_with("tokenizers"), "-c", CLIENT, source / "decoder.onnx",
         tmp_path / "text.txt", tmp_path / "held.txt", daemon.url], capture_output=True, text=True,
        timeout=300, env=pipelines.environment(PYTHONPATH=ROOT / "clients" / "python"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == wanted


def test_a_client_without_the_library_says_so(tmp_path):
    source = decoders.folder(tmp_path / "float")
    small_tokenizer(source)
    (tmp_path / "text.txt").write_text("the text")
    with pytest.raises(qdqd.UsageError, match="tokenizers, which is not installed"):
        qdqd._texts.write_ids(tmp_path / "text.txt", source / "decoder.onnx", tmp_path / "ids.npy")
    (source / "tokenizer.json").unlink()
    with pytest.raises(qdqd.UsageError, match="tokenizer.json, by which"):
        qdqd._texts.write_ids(tmp_path / "text.txt", source / "decoder.onnx", tmp_path / "ids.npy")
