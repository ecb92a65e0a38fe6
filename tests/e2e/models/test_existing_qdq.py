# SPDX-License-Identifier: Apache-2.0
"""Models that already have Q/DQ pairs: they are refused, kept and completed, or removed.
"""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import judge
from service import QUANTIZE

R = np.random.default_rng(5)
X = R.normal(0, 1, (4, 3, 8, 8)).astype(np.float32)
W = {"w": R.normal(0, 0.4, (4, 3, 3, 3)).astype(np.float32),
     "v": R.normal(0, 0.4, (4, 4, 3, 3)).astype(np.float32)}
RANGES = {"x": [-4, 4], "c": [-6, 6], "r": [0, 6]}


def net(body, **constants):
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[4,3,8,8] x) => '
        f"(float[4,4,8,8] y) {{ {body} }}")
    for name, array in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    onnx.checker.check_model(model, full_check=True)
    return model


def qdq(tmp_path, model, existing, command="quantize", **spec):
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    source.write_bytes(model.SerializeToString())
    (tmp_path / "spec.json").write_text(json.dumps({
        "existing_qdq": existing, "on_unmatched": "warn",
        "calibration": {"ranges": RANGES}, **spec}))
    end = ["-o", out, "--report", tmp_path / "report.json"]
    done = subprocess.run([*QUANTIZE, source, "--spec",
                           tmp_path / "spec.json", *end], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        return None, None, done.stderr
    made = onnx.load(out)
    onnx.checker.check_model(made, full_check=True)
    return made, json.loads((tmp_path / "report.json").read_text()), done.stdout


def run(model):
    return judge.session(model.SerializeToString(),
                         optimized=False).run(None, {"x": X})


def reasons(report):
    return {row["name"]: row["reason"] for row in report["layers"]}


def warnings(report):
    return {row["code"]: row for row in report["warnings"]}


CONV = "kernel_shape = [3,3], pads = [1,1,1,1]"
FLOAT = f"[one] c = Conv <{CONV}> (x, w)  r = Relu (c)  [two] y = Conv <{CONV}> (r, v)"
SCALES = {"s": np.float32(0.03), "z": np.int8(0), "t": np.float32(0.05),
          "ws": np.abs(W["w"]).max(axis=(1, 2, 3)) / np.float32(127),
          "wz": np.zeros(4, np.int8)}
# Like a fine-tuned model: pairs at the first layer's edges and at the second's input.
QAT = f"""
    [xq] xq = QuantizeLinear (x, s, z)  [xd] xd = DequantizeLinear (xq, s, z)
    [wq] wq = QuantizeLinear <axis = 0> (w, ws, wz)
    [wd] wd = DequantizeLinear <axis = 0> (wq, ws, wz)
    [one] c = Conv <{CONV}> (xd, wd)  r = Relu (c)
    [rq] rq = QuantizeLinear (r, t, z)  [rd] rd = DequantizeLinear (rq, t, z)
    [two] y = Conv <{CONV}> (rd, v)"""


def qat():
    return net(QAT, **W, **SCALES)


def test_by_default_it_is_refused(tmp_path):
    _, _, said = qdq(tmp_path, qat(), "error")
    assert "existing_qdq" in said and "node 'xq' is a QuantizeLinear" in said


# --- keep -----------------------------------------------------------------------------

def test_kept_pairs_stay_as_they_are_and_layers_are_completed(tmp_path):
    model = qat()
    made, report, _ = qdq(tmp_path, model, "keep")
    old = {n.name: n for n in model.graph.node}
    new = {n.name: n for n in made.graph.node}
    for name in ("xq", "xd", "wq", "wd", "rq", "rd", "one"):
        assert new[name] == old[name]
    constants = {t.name: t for t in made.graph.initializer}
    for tensor in model.graph.initializer:
        assert constants[tensor.name] == tensor
    assert len(made.graph.node) == len(model.graph.node) + 2
    assert report["summary"]["qdq_pairs"] == 1  # the second layer's weight
    assert reasons(report)["one"] == "default; pairs already: 0, 1"
    assert reasons(report)["two"] == "default; pairs already: 0"
    assert new["two"].input[0] == "rd" and new["two"].input[1] != "v"
    assert judge.sqnr_db(run(model)[0], run(made)[0]) > 25


def test_an_edge_is_not_quantized_twice_behind_what_passes_on(tmp_path):
    body = f"""
        xq = QuantizeLinear (x, s, z)  xd = DequantizeLinear (xq, s, z)
        i = Identity (xd)  p = Transpose <perm = [0,1,3,2]> (i)
        [one] y = Conv <{CONV}> (p, w)"""
    made, report, _ = qdq(tmp_path, net(body, **W, **SCALES), "keep")
    assert reasons(report)["one"] == "default; pairs already: 0"
    assert sum(n.op_type == "QuantizeLinear" for n in made.graph.node) == 2


def test_a_half_quantized_layer_is_named(tmp_path):
    body = f"""
        xq = QuantizeLinear (x, s, z)  xd = DequantizeLinear (xq, s, z)
        m = Mul (w, k)  k2 = ReduceMax <keepdims = 1> (x)  m2 = Mul (m, k2)
        [one] y = Conv <{CONV}> (xd, m2)"""
    made, report, _ = qdq(tmp_path, net(body, k=np.float32(2), **W, **SCALES), "keep")
    assert "pairs already: 0" in reasons(report)["one"]
    assert "one" in json.dumps(warnings(report)["half_quantized"])


def test_integer_operators_pass_where_pairs_are_kept_and_are_named_else(tmp_path):
    body = f"""
        u, us, uz = DynamicQuantizeLinear (x)
        a = ConvInteger <{CONV}> (u, wi, uz, z)  f = Cast <to = 1> (a)
        c = Mul (f, us)  [two] y = Conv <{CONV}> (c, v)"""
    model = net(body, wi=R.integers(-90, 90, (4, 3, 3, 3)).astype(np.int8), v=W["v"],
                z=np.int8(0))
    for existing in ("error", "strip"):
        _, _, said = qdq(tmp_path, model, existing)
        assert "QOperator model" in said and "DynamicQuantizeLinear" in said
    made, report, _ = qdq(tmp_path, model, "keep",
                          calibration={"ranges": {"c": [-2000, 2000]}})
    assert warnings(report)["integer_operators"]["node"] is not None
    ops = [n.op_type for n in made.graph.node]
    assert "ConvInteger" in ops and ops.count("QuantizeLinear") == 2


# --- strip ----------------------------------------------------------------------------

def alone(tmp_path, model):
    """Returns the model after its pairs were removed, with nothing quantized afterwards.
    """
    return qdq(tmp_path, model, "strip", mode="partial", evaluate=False,
               layers=[{"name": "none of these"}])


def test_stripped_it_is_the_float_model(tmp_path):
    made, _, _ = alone(tmp_path, qat())
    assert [n.op_type for n in made.graph.node] == ["Conv", "Relu", "Conv"]
    assert {t.name for t in made.graph.initializer} == {"w", "v"}
    assert np.array_equal(run(made)[0], run(net(FLOAT, **W))[0])


def test_stripped_it_is_quantized_like_the_float_model(tmp_path):
    made, report, _ = qdq(tmp_path, qat(), "strip")
    real, _, _ = qdq(tmp_path, net(FLOAT, **W), "error")
    assert report["summary"]["qdq_pairs"] == 4
    assert np.array_equal(run(made)[0], run(real)[0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int16])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_stored_integers_become_the_floats_that_they_stand_for(tmp_path, dtype, axis):
    if dtype == np.int16 and axis is not None:
        return
    low, high = np.iinfo(np.int8 if dtype == np.int8 else np.uint8).min, 127
    integers = R.integers(low, high, (4, 3, 3, 3)).astype(dtype)
    n = 1 if axis is None else integers.shape[axis]
    shape = () if axis is None else (n,)
    scale = R.uniform(0.01, 0.1, shape).astype(np.float32)
    zero = (np.zeros if dtype == np.int32 else np.ones)(shape, dtype)
    say = "" if axis is None else f"<axis = {axis}>"
    opset = 21 if dtype == np.int16 else 13
    body = f"wd = DequantizeLinear {say} (wi, ws, wz)  [one] y = Conv <{CONV}> (x, wd)"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": {opset}]> g (float[4,3,8,8] x) => '
        f"(float[4,4,8,8] y) {{ {body} }}")
    for name, array in (("wi", integers), ("ws", scale), ("wz", zero)):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    made, _, _ = alone(tmp_path, model)
    (weight,) = made.graph.initializer
    wide = [1] * 4
    if axis is not None:
        wide[axis] = n
    expected = ((integers.astype(np.int64) - zero.reshape(wide))
                .astype(np.float32) * scale.reshape(wide))
    assert np.array_equal(numpy_helper.to_array(weight), expected)
    assert np.array_equal(run(made)[0], run(model)[0])
    _, report, _ = qdq(tmp_path, model, "strip")
    assert report["summary"]["qdq_pairs"] == 2


def test_outputs_keep_their_names_and_chains_go_whole(tmp_path):
    body = f"""
        a = QuantizeLinear (x, s, z)  b = DequantizeLinear (a, s, z)
        c2 = QuantizeLinear (b, t, z)  d = DequantizeLinear (c2, t, z)
        [one] c = Conv <{CONV}> (d, w)
        e = QuantizeLinear (c, t, z)  y = DequantizeLinear (e, t, z)"""
    made, report, _ = alone(tmp_path, net(body, **W, **SCALES))
    assert [n.op_type for n in made.graph.node] == ["Conv", "Identity"]
    assert made.graph.output[0].name == "y" and made.graph.node[0].input[0] == "x"
    assert "qdq_left" not in warnings(report)


def test_pairs_in_branches_go_too(tmp_path):
    branch = """{name} () => (float[4,4,8,8] {name}) {{
        {name}q = QuantizeLinear ({of}, s, z)  {name} = DequantizeLinear ({name}q, s, z) }}"""
    then, other = branch.format(name="p", of="c"), branch.format(name="q", of="r")
    body = f"""[one] c = Conv <{CONV}> (x, w)  r = Relu (c)
        yes = Constant <value = bool {{1}}> ()
        y = If (yes) < then_branch = {then}, else_branch = {other} >"""
    model = net(body, **W, **SCALES)
    made, _, _ = alone(tmp_path, model)
    assert "QuantizeLinear" not in str(made)
    assert np.array_equal(run(made)[0], run(net(
        f"[one] y = Conv <{CONV}> (x, w)", **W))[0])


def test_what_is_no_pair_stays_and_is_told(tmp_path):
    """Q/DQ nodes that are not a pair stay, and a warning counts them."""
    body = f"""
        xq = QuantizeLinear (x, s, z)  [lone] xt = Transpose <perm = [0,1,3,2]> (xq)
        xd = DequantizeLinear (xt, s, z)  [one] y = Conv <{CONV}> (xd, w)"""
    model = net(body, **W, **SCALES)
    made, report, _ = alone(tmp_path, model)
    assert warnings(report)["qdq_left"]["detail"].startswith("2 Q/DQ nodes")
    assert np.array_equal(run(made)[0], run(model)[0])
    made, report, _ = qdq(tmp_path, model, "strip")
    assert reasons(report)["one"] == "default; pairs already: 0"


def test_broken_pairs_do_no_harm(tmp_path):
    for body in ("xq = QuantizeLinear (x)  xd = DequantizeLinear (xq, s)  y = Relu (xd)",
                 "xd = DequantizeLinear ()  y = Relu (x)",
                 "xd = DequantizeLinear (s, s, x)  y = Relu (x)"):
        model = parser.parse_model(
            '<ir_version: 8, opset_import: ["": 13]> g (float[4,3,8,8] x) => '
            f"(float[4,3,8,8] y) {{ {body} }}")
        model.graph.initializer.append(numpy_helper.from_array(np.float32(1), "s"))
        for existing in ("keep", "strip"):
            source = tmp_path / "m.onnx"
            source.write_bytes(model.SerializeToString())
            (tmp_path / "s.json").write_text(json.dumps({
                "existing_qdq": existing, "mode": "partial", "evaluate": False,
                "on_unmatched": "warn", "layers": [{"name": "none"}]}))
            done = subprocess.run(
                [*QUANTIZE, source, "--spec",
                 tmp_path / "s.json", "-o", tmp_path / "o.onnx"], capture_output=True,
                check=False)
            assert done.returncode in (0, 1)
