# SPDX-License-Identifier: Apache-2.0
"""Rules Q16 and Q18 of the target qnn, by the files: each layer of integers has one width, and GELUs and
LayerNormalizations of several nodes are one operator."""

import json
import random
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import DATA, INSTALLED

QDQ = INSTALLED / "bin" / "qdq"
NETS = ("glyph_vit", "glyph_se", "glyph_mobilenet", "glyph_resnet")
FEW = {"target": "qnn", "recipe": "none", "calibration": {"max_samples": 16}, "evaluate": False,
       "weights": {"rounding": "nearest"}, "bias_correction": False}
WIDTHS = {TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16, TensorProto.INT32: 32}
PAIR = ("QuantizeLinear", "DequantizeLinear")


def quantize(folder, model, spec, data=DATA / "calib_256.npz"):
    out, report = folder / "out.onnx", folder / "report.json"
    (folder / "spec.json").write_text(json.dumps(spec))
    done = subprocess.run([QDQ, "quantize", model, "--calibration", data, "--spec", folder / "spec.json", "-o", out,
                           "--report", report], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out, json.loads(report.read_text())


class Result:
    """The widths of the activations that nodes read and make."""

    def __init__(self, path):
        self.graph = onnx.load(path).graph
        self.types = {i.name: i.data_type for i in self.graph.initializer}
        self.makers = {o: n for n in self.graph.node for o in n.output}
        self.readers = {}
        for node in self.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def is_stored(self, name):
        return name in self.types or (name in self.makers and all(map(self.is_stored, self.makers[name].input)))

    def width(self, pair):
        """Returns the bits of a node's integers; a type may stand in an attribute of the QuantizeLinear."""
        if len(pair.input) > 2:
            return WIDTHS[self.types[pair.input[2]]]
        quantizing = pair if pair.op_type == "QuantizeLinear" else self.makers[pair.input[0]]
        return WIDTHS[helper.get_node_attr_value(quantizing, "output_dtype")]

    def behind(self, node):
        """Returns the node behind which the output of a kernel has its pair."""
        readers = self.readers.get(node.output[0], [])
        following = readers[0] if len(readers) == 1 else None
        if following is None or following.op_type not in ("Add", "Relu", "Clip"):
            return node
        others = [i for i in following.input[:2] if i != node.output[0]]
        is_bias = following.op_type != "Add" or (node.op_type == "MatMul" and all(i in self.types for i in others))
        return self.behind(following) if is_bias else node

    def kernels(self):
        """Yields nodes between pairs, with the widths of what they read and make."""
        for node in self.graph.node:
            read = {i: self.width(self.makers[name]) for i, name in enumerate(node.input) if name in self.makers and
                    self.makers[name].op_type == "DequantizeLinear" and not self.is_stored(name)}
            made = [self.width(r) for r in self.readers.get(self.behind(node).output[0], ())
                    if r.op_type == "QuantizeLinear"]
            if node.op_type not in PAIR and read and made:
                yield node, read, made


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("seed", range(3))
def test_each_kernel_has_one_width(tmp_path, net, seed):
    plan = json.loads(subprocess.run([QDQ, "plan", DATA / f"{net}.onnx", "--target", "qnn", "--json"],
                                     capture_output=True, text=True, check=True).stdout)
    names = [row["name"] for row in plan["layers"] if row["quantized_inputs"]]
    chosen = random.Random(seed).sample(names, max(1, len(names) * (seed + 1) // 6))
    narrow = seed == 1  # 16 bits for all, and 8 for those
    entry = {"name": chosen, "activations": {"dtype": "uint8" if narrow else "uint16"}}
    spec = {**FEW, "layers": [entry], "activations": {"dtype": "uint16" if narrow else "uint8"}}
    out, report = quantize(tmp_path, DATA / f"{net}.onnx", spec)
    onnx.checker.check_model(onnx.load(out), full_check=True)
    result = Result(out)
    seen = set()
    for node, read, made in result.kernels():
        is_product = node.op_type == "MatMul"
        widths = {width for i, width in read.items() if not (is_product and i == 1)} | set(made)
        assert len(widths) == 1, node.name
        assert not is_product or read.get(1, 8) == 8, node.name
        seen |= widths
    assert seen == {8, 16}
    converted = [row for row in report["tensors"] if "converted" in row]
    both = [n for n in result.graph.node if n.op_type == "QuantizeLinear" and n.input[0] in result.makers and
            result.makers[n.input[0]].op_type == "DequantizeLinear"]
    assert len(converted) == len(both) > 0
    assert all({row["dtype"], row["converted"]["dtype"]} == {"uint8", "uint16"} for row in converted)
    pairs = [n for n in result.graph.node if n.op_type == "DequantizeLinear" and
             result.types.get(n.input[0]) != TensorProto.INT32]
    assert len(pairs) == report["summary"]["qdq_pairs"]
    assert any("Q16" in row["rules"] for row in report["layers"])


def test_a_report_is_read_as_ranges(tmp_path):
    entry = {"name": ["Conv_2"], "activations": {"dtype": "uint16"}}
    spec = {**FEW, "layers": [entry]}
    first, report = quantize(tmp_path, DATA / "glyph_resnet.onnx", spec)
    assert any("converted" in row for row in report["tensors"])
    given = {"ranges": report["tensors"]}
    bytes_ = first.read_bytes()
    again, _ = quantize(tmp_path, DATA / "glyph_resnet.onnx", {**spec, "calibration": given})
    one, two = (onnx.load_from_string(b).graph for b in (bytes_, again.read_bytes()))
    assert one.SerializeToString(deterministic=True) == two.SerializeToString(deterministic=True)


def test_a_sigmoid_of_16_bits_has_its_one_scale(tmp_path):
    """Its output is converted to 8 bits: the scale of 16 bits is the one that the HTP has."""
    entry = {"name": ["@" + gate_input()], "activations": {"dtype": "uint16"}}
    _, report = quantize(tmp_path, DATA / "glyph_se.onnx", {**FEW, "layers": [entry]})
    scales = {row["converted"]["scale"] for row in report["tensors"] if row["method"] == "operator" and
              "converted" in row}
    assert scales == {1 / 65536}


def gate_input():
    """Returns what a Sigmoid of glyph_se alone reads, so that the product behind it has 8 bits."""
    graph = onnx.load(DATA / "glyph_se.onnx").graph
    read = [name for node in graph.node for name in node.input]
    return next(n.input[0] for n in graph.node if n.op_type == "Sigmoid" and read.count(n.input[0]) == 1)


def test_frozen_specs_keep_their_bytes(tmp_path):
    """One of an earlier version states none of the rules, and has them off."""
    entry = {"name": ["Mul_2"], "activations": {"dtype": "uint16"}}
    off = {f"Q{n}": False for n in range(16, 25)}
    out, report = quantize(tmp_path, DATA / "glyph_vit.onnx", {**FEW, "layers": [entry], "rules": off})
    wanted = onnx.load(out).graph.SerializeToString(deterministic=True)
    spec = {**report["spec"], "weights": FEW["weights"], "bias_correction": False}
    spec["calibration"]["ranges"] = {row["name"]: [row["min"], row["max"]] for row in report["tensors"]}
    for rule in [*off, "P7", "P8"]:  # an earlier version knows nothing younger either
        del spec["rules"][rule]
    again, _ = quantize(tmp_path, DATA / "glyph_vit.onnx", spec)
    assert onnx.load(again).graph.SerializeToString(deterministic=True) == wanted


# --- one operator in the place of several nodes -----------------------------------------

NORM = """<ir_version: 8, opset_import: ["": %d]> g (float[1,4,16] x) => (float[1,4,16] y) {
    m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) %s v = ReduceMean <axes = [-1]> (s)
    e = Add (v, epsilon) r = Sqrt (e) n = Div (%s, r) f = Mul (n, factor) [norm] z = Add (f, bias)
    [half] h = Div (z, root) t = Erf (h) o = Add (t, one) p = Mul (z, o) [gelu] y = Mul (p, point) }"""
FORMS = {"pow": ("s = Pow (d, two)", "d"), "mul": ("s = Mul (d, d)", "d"),
         "twice": ("d2 = Sub (x, m) s = Pow (d2, two)", "d")}


def spelled_out(form, opset=13):
    rng = np.random.default_rng(5)
    model = onnx.parser.parse_model(NORM % (opset, *FORMS[form]))
    constants = {"two": 2, "epsilon": 1e-3, "root": np.sqrt(2), "one": 1, "point": 0.5,
                 "factor": rng.normal(size=16) + 1, "bias": rng.normal(size=16)}
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(np.float32(value), name)
                                   for name, value in constants.items() if name in used)
    return model


def prepared(folder, model, **spec):
    data = np.random.default_rng(6).normal(size=(32, 1, 4, 16)).astype(np.float32)
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "d.npz", x=data)
    out, report = quantize(folder, folder / "m.onnx", {**FEW, "evaluate": {"samples": 8}, **spec}, folder / "d.npz")
    return [n.op_type for n in onnx.load(out).graph.node if n.op_type not in PAIR], report


@pytest.mark.parametrize("form", FORMS)
def test_several_nodes_become_one_operator(tmp_path, form):
    ops, report = prepared(tmp_path, spelled_out(form))
    assert ops == ["LayerNormalization", "Gelu"]
    assert report["evaluation"]["outputs"][0]["sqnr_db"] > 30
    layers = {row["name"]: row for row in report["layers"]}
    assert set(layers) == {"norm", "gelu"}, "by the names of the last nodes"
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx", providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.zeros((1, 4, 16), np.float32)})[0].shape == (1, 4, 16)


def test_epsilon_stays(tmp_path):
    prepared(tmp_path, spelled_out("pow"))
    node = next(n for n in onnx.load(tmp_path / "out.onnx").graph.node if n.op_type == "LayerNormalization")
    assert helper.get_node_attr_value(node, "epsilon") == pytest.approx(1e-3)


@pytest.mark.parametrize("spec", [{"rules": {"Q18": False}}, {"layers": [{"name": ["half"]}, {"name": ["norm"]}]}])
def test_what_is_off_or_named_stays(tmp_path, spec):
    ops, _ = prepared(tmp_path, spelled_out("pow"), **spec)
    assert "Erf" in ops and "Gelu" not in ops
    assert ("LayerNormalization" in ops) == ("layers" in spec)


def test_what_others_read_stays(tmp_path):
    model = spelled_out("pow")
    model.graph.output.append(helper.make_tensor_value_info("d", TensorProto.FLOAT, [1, 4, 16]))
    model.graph.output.append(helper.make_tensor_value_info("o", TensorProto.FLOAT, [1, 4, 16]))
    ops, _ = prepared(tmp_path, model)
    assert "LayerNormalization" not in ops and "Gelu" not in ops and "Erf" in ops


def test_other_axes_stay(tmp_path):
    model = spelled_out("pow")
    for node in model.graph.node:
        if node.op_type == "ReduceMean":
            node.attribute[0].ints[:] = [1]
    ops, _ = prepared(tmp_path, model)
    assert "LayerNormalization" not in ops and "ReduceMean" in ops
