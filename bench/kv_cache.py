# SPDX-License-Identifier: Apache-2.0
"""kv_cache.py FOLDER IDS.npy FILE…: what a decoder loses by a cache of integers.

FOLDER has a float model of ONNX Runtime GenAI's builder, IDS.npy ids [samples, length] that
calibration did not read, and each FILE scales that output.kv_cache had written. Prints the mean
Kullback-Leibler divergence of the next token from that of the float model, in nats, as ONNX
Runtime's GroupQueryAttention computes it with such a cache: for samples at once, and where their
second half reads the first one from the cache."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from common import machine, table


def with_cache(model, file, size):
    """Gives the attention of a float model, with heads of that size, a cache of integers."""
    bits = {128: 8, 8: 4}[file["qmax"]]
    rows = {layer: i for i, layer in enumerate(file["layer_ids"])}
    for node in model.graph.node:
        if node.op_type != "GroupQueryAttention":
            continue
        layer = int(node.input[3].split(".")[1])
        names = [f"{kind}.{layer}" for kind in ("k_scales", "v_scales")]
        scales = [np.float32(file["scales"][name.split(".")[0]][rows[layer]]) for name in names]
        model.graph.initializer.extend(map(numpy_helper.from_array, scales, names))
        node.input.extend([""] * (12 - len(node.input)) + names)
        form = "PER_TENSOR" if scales[0].size == 1 else "PER_CHANNEL"
        node.attribute.extend([helper.make_attribute("kv_cache_bit_width", bits),
                               helper.make_attribute("k_quant_type", form),
                               helper.make_attribute("v_quant_type", form)])
    for value in [*model.graph.input, *model.graph.output]:
        if value.name.startswith(("past", "present")):
            kind = value.type.tensor_type
            kind.elem_type = TensorProto.INT8 if bits == 8 else TensorProto.UINT8
            if bits == 4:
                kind.shape.dim[3].dim_value = size // 2
    return model


class Decoder:
    def __init__(self, path, size):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options)
        self.size = size

    def run(self, ids, past=None):
        """Returns the logits, and the caches by the names of inputs."""
        feeds = {"input_ids": ids[None]}
        for value in self.session.get_inputs():
            if value.name.startswith("past"):
                kind = {"tensor(float)": np.float32, "tensor(int8)": np.int8,
                        "tensor(uint8)": np.uint8}[value.type]
                size = self.size // 2 if kind == np.uint8 else self.size
                feeds[value.name] = past[value.name] if past else np.zeros(
                    (1, value.shape[1], 0, size), kind)
        before = next(iter(past.values())).shape[2] if past else 0
        feeds["attention_mask"] = np.ones((1, before + len(ids)), np.int64)
        names = [value.name for value in self.session.get_outputs()]
        outputs = dict(zip(names, self.session.run(None, feeds)))
        logits = outputs.pop("logits")[0].astype(np.float64)
        return logits, {name.replace("present", "past_key_values"): x
                        for name, x in outputs.items()}


def logarithms(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def divergence(float_logits, logits):
    f, q = logarithms(float_logits), logarithms(logits)
    return (np.exp(f) * (f - q)).sum(-1).mean()


def main(folder, ids, *files):
    config = json.loads((Path(folder) / "genai_config.json").read_text())["model"]["decoder"]
    source = Path(folder) / config["filename"]
    samples, half = np.load(ids), np.load(ids).shape[1] // 2
    plain = Decoder(source, config["head_size"])
    wanted = [plain.run(row)[0] for row in samples]
    rows = []
    for file in files:
        with tempfile.TemporaryDirectory() as work:
            model = with_cache(onnx.load(source), json.loads(Path(file).read_text()),
                               config["head_size"])
            onnx.save(model, Path(work) / "model.onnx", save_as_external_data=True,
                      location="data", size_threshold=1024)
            decoder = Decoder(Path(work) / "model.onnx", config["head_size"])
            at_once, behind = [], []
            for row, logits in zip(samples, wanted):
                at_once.append(divergence(logits, decoder.run(row)[0]))
                _, past = decoder.run(row[:half])
                behind.append(divergence(logits[half:], decoder.run(row[half:], past)[0]))
        rows.append([file, f"{np.mean(at_once):.5f}", f"{np.mean(behind):.5f}"])
    machine()
    table("divergence by a cache of integers", ["scales", "at once", "behind a cache"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
