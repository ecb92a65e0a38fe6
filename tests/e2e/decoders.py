# SPDX-License-Identifier: Apache-2.0
"""A small decoder in the form in which ONNX Runtime GenAI's builder writes one: grouped attention
with a cache, normalizations that take the sum along, a head that shares the embedding's weight.
Nothing in it declares types or shapes of values."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD, INNER, VOCABULARY, LONGEST = 2, 64, 4, 2, 16, 96, 160, 64
MICROSOFT = "com.microsoft"


class _Graph:
    def __init__(self, seed):
        self.nodes, self.constants = [], []
        self.random = np.random.default_rng(seed)

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"/{outputs[0]}/{op}",
                                           domain=domain, **attributes))
        return outputs[0]

    def matmul(self, x, name, k, n):
        weight = self.random.standard_t(4, (k, n)) / np.sqrt(2 * k)
        self.constant(f"{name}.weight", weight.astype(np.float32))
        return self.node("MatMul", [x, f"{name}.weight"], [f"{name}/out"])

    def scale(self, name):
        """A normalization's factors, a few of them large, as in trained decoders."""
        factors = self.random.lognormal(0, 0.8, HIDDEN)
        return self.constant(name, factors.astype(np.float32))


def _lengths(g):
    """Grouped attention reads of the mask the last position and the length of all."""
    g.constant("one", np.array([1], np.int64))
    g.constant("second", np.array(1, np.int64))
    g.node("ReduceSum", ["attention_mask", "one"], ["mask/sum"])
    g.node("Sub", ["mask/sum", "one"], ["mask/last"])
    g.node("Cast", ["mask/last"], ["seqlens_k"], to=TensorProto.INT32)
    g.node("Shape", ["attention_mask"], ["mask/shape"])
    g.node("Gather", ["mask/shape", "second"], ["mask/length"], axis=0)
    g.node("Cast", ["mask/length"], ["total_length"], to=TensorProto.INT32)


def _rotary(g):
    angles = np.outer(np.arange(LONGEST), 100.0 ** (-np.arange(HEAD // 2) / (HEAD // 2)))
    g.constant("cos_cache", np.cos(angles).astype(np.float32))
    g.constant("sin_cache", np.sin(angles).astype(np.float32))


def _attention(g, i, x):
    name = f"model.layers.{i}.attn"
    q = g.matmul(x, f"{name}.q_proj", HIDDEN, HEADS * HEAD)
    k = g.matmul(x, f"{name}.k_proj", HIDDEN, KV_HEADS * HEAD)
    v = g.matmul(x, f"{name}.v_proj", HIDDEN, KV_HEADS * HEAD)
    g.node("GroupQueryAttention",
           [q, k, v, f"past_key_values.{i}.key", f"past_key_values.{i}.value", "seqlens_k",
            "total_length", "cos_cache", "sin_cache"],
           [f"{name}/context", f"present.{i}.key", f"present.{i}.value"], MICROSOFT,
           num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1, scale=HEAD ** -0.5)
    return g.matmul(f"{name}/context", f"{name}.o_proj", HEADS * HEAD, HIDDEN)


def _mlp(g, i, x):
    name = f"model.layers.{i}.mlp"
    gate = g.matmul(x, f"{name}.gate_proj", HIDDEN, INNER)
    up = g.matmul(x, f"{name}.up_proj", HIDDEN, INNER)
    g.node("Sigmoid", [gate], [f"{name}/sigmoid"])
    g.node("Mul", [gate, f"{name}/sigmoid"], [f"{name}/silu"])
    g.node("Mul", [f"{name}/silu", up], [f"{name}/product"])
    return g.matmul(f"{name}/product", f"{name}.down_proj", INNER, HIDDEN)


def _add_and_norm(g, name, x, skip):
    """Returns the norm of a sum, and the sum."""
    g.scale(f"{name}.weight")
    g.node("SkipSimplifiedLayerNormalization", [x, skip, f"{name}.weight"],
           [f"{name}/out", "", "", f"{name}/sum"], MICROSOFT, epsilon=1e-5)
    return f"{name}/out", f"{name}/sum"


def decoder(seed=1):
    """Returns the model."""
    g = _Graph(seed)
    embedding = g.random.standard_normal((VOCABULARY, HIDDEN)) / 4
    g.constant("model.embed_tokens.weight", embedding.astype(np.float32))
    _lengths(g)
    _rotary(g)
    total = g.node("Gather", ["model.embed_tokens.weight", "input_ids"], ["embedded"])
    g.scale("model.layers.0.input_layernorm.weight")
    x = g.node("SimplifiedLayerNormalization",
               [total, "model.layers.0.input_layernorm.weight"],
               ["model.layers.0.input_layernorm/out"], axis=-1, epsilon=1e-5, stash_type=1)
    for i in range(LAYERS):
        after = _attention(g, i, x)
        x, total = _add_and_norm(g, f"model.layers.{i}.post_attention_layernorm", total, after)
        after = _mlp(g, i, x)
        last = i + 1 == LAYERS
        name = f"model.layers.{i + 1}." + ("final_norm_layernorm" if last else
                                           "input_layernorm")
        x, total = _add_and_norm(g, name, total, after)
    g.node("Transpose", ["model.embed_tokens.weight"], ["head.weight"], perm=[1, 0])
    g.node("MatMul", [x, "head.weight"], ["logits"])
    return _model(g)


def _model(g):
    def past(name, length):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT,
                                             ["batch_size", KV_HEADS, length, HEAD])

    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64,
                                            ["batch_size", "sequence_length"]),
              helper.make_tensor_value_info("attention_mask", TensorProto.INT64,
                                            ["batch_size", "total_sequence_length"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT,
                                             ["batch_size", "sequence_length", VOCABULARY])]
    for i in range(LAYERS):
        for kind in ("key", "value"):
            inputs.append(past(f"past_key_values.{i}.{kind}", "past_sequence_length"))
            outputs.append(past(f"present.{i}.{kind}", "total_sequence_length"))
    graph = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)])


def ids(n, length, seed=2):
    """Tokens of n samples, which repeat themselves as texts do."""
    random = np.random.default_rng(seed)
    return random.zipf(1.3, (n, length)).clip(max=VOCABULARY).astype(np.int64) - 1


def inputs_of(row):
    """The inputs for one sample without a past."""
    row = np.asarray(row, np.int64)[None]
    empty = np.zeros((1, KV_HEADS, 0, HEAD), np.float32)
    pasts = {f"past_key_values.{i}.{kind}": empty for i in range(LAYERS)
             for kind in ("key", "value")}
    return {"input_ids": row, "attention_mask": np.ones_like(row), **pasts}


def folder(path, model=None):
    """Writes the folder that GenAI opens, with external data and files of a tokenizer."""
    path.mkdir()
    onnx.save(model or decoder(), path / "decoder.onnx", save_as_external_data=True,
              location="decoder.onnx.data", size_threshold=0)
    config = {"model": {
        "type": "llama", "vocab_size": VOCABULARY, "context_length": LONGEST,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2,
        "decoder": {"filename": "decoder.onnx", "head_size": HEAD, "hidden_size": HIDDEN,
                    "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
                    "num_hidden_layers": LAYERS,
                    "session_options": {"log_id": "onnxruntime-genai",
                                        "provider_options": []}}},
        "search": {"max_length": LONGEST}}
    (path / "genai_config.json").write_text(json.dumps(config, indent=4))
    (path / "tokenizer.json").write_text('{"version": "1.0"}')
    (path / "tokenizer_config.json").write_text("{}")
    return path
