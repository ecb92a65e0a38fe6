# SPDX-License-Identifier: Apache-2.0
"""float16 models: pairs have float16 scales from opset 19 on, and there are none before.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import judge
from test_data import METHODS, Quantized, npz

RANDOM = np.random.default_rng(23)
WEIGHTS = {"w": RANDOM.standard_normal((4, 3, 3, 3)) * 0.3, "b": RANDOM.standard_normal(4),
           "v": RANDOM.standard_normal((5, 4)) * 0.5}
X = RANDOM.standard_normal((24, 3, 8, 8)).astype(np.float16)
SEEN, REST = {"x": X[:16]}, {"x": X[16:]}
MINMAX = {"method": "minmax", "max_samples": 16}


def parsed(text, **weights):
    model = onnx.parser.parse_model(text)
    for name, value in weights.items():
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(value, np.float16), name))
    onnx.checker.check_model(model, full_check=True)
    return model


def net(opset=19, size=8):
    return parsed(f"""
        <ir_version: 9, opset_import: ["": {opset}]>
        half (float16[n, 3, {size}, {size}] x) => (float16[n, 5] y) {{
            [conv] c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
            r = Relu (c)  g = GlobalMaxPool (r)  f = Flatten (g)
            [fc] y = Gemm <transB = 1> (f, v) }}""", **WEIGHTS)


def dense(weight):
    """Returns a model that only computes y = x w."""
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 19]>
        dense (float16[n, 6] x) => (float16[n, 2] y) { [fc] y = MatMul (x, w) }""")
    model.graph.initializer.append(weight)
    onnx.checker.check_model(model, full_check=True)
    return model


def scale_of(amax):
    """Returns the float16 nearest to amax / 127, rounded by numpy from a float64."""
    return np.float16(np.float64(amax) / 127)


def steps(x, scale):
    """Returns the integers that QuantizeLinear makes of x."""
    return np.clip(np.rint(x.astype(np.float32) / np.float32(scale)), -128, 127)


def scales_of(model):
    """Returns every scale in the model, by the first input of its QuantizeLinear or
    DequantizeLinear."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return {node.input[0]: constants[node.input[1]] for node in model.graph.node
            if node.op_type in ("QuantizeLinear", "DequantizeLinear")}


def output_of(data, tensor, feed):
    model = onnx.load_model_from_string(data)
    if tensor not in {value.name for value in model.graph.output}:
        model.graph.output.append(onnx.ValueInfoProto(name=tensor))
    session = judge.session(model.SerializeToString(), False)
    return session.run([tensor], feed)[0].astype(np.float64)


def made(done, weight):
    """Returns the layer's weight input, as onnxruntime computes it."""
    model = onnx.load_model_from_string(done.bytes)
    output = f"{weight}_DequantizeLinear_Output"
    model.graph.output.append(onnx.ValueInfoProto(name=output))
    return judge.session(model.SerializeToString(), False).run([output], REST)[0]


# --- pairs -------------------------------------------------------------------------------

@pytest.mark.parametrize("opset", [19, 21])
def test_pairs_have_scales_of_float16(tmp_path, opset):
    source = net(opset)
    done = Quantized(tmp_path, source, npz(**SEEN), calibration=MINMAX)
    assert done.ok, done.said
    scales = scales_of(judge.load(done.bytes))
    ranges = judge.observed_ranges(source.SerializeToString(), SEEN, ["x", "f"])
    for name, (low, high) in ranges.items():
        assert done.range(name) == (np.float32(low), np.float32(high))
        assert scales[name].dtype == np.float16
        assert scales[name] == scale_of(max(abs(low), abs(high)))
        assert done.tensors[name]["scale"] == float(scales[name])
    for name in "wv":
        amax = np.abs(np.float16(WEIGHTS[name])).reshape(len(WEIGHTS[name]), -1).max(axis=1)
        assert scales[name].dtype == np.float16
        assert list(scales[name]) == [scale_of(a) for a in amax]
    judge.run(done.bytes, REST)


def test_integers_behind_dequantize_alone(tmp_path):
    done = Quantized(tmp_path, net(), npz(**SEEN), calibration=MINMAX,
                     weights={"storage": "dq"})
    assert done.ok, done.said
    model = judge.load(done.bytes)
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    assert not {"w", "v"} & set(constants)
    for name in "wv":
        value = np.float16(WEIGHTS[name])
        scale = constants[f"{name}_scale"].reshape(-1, *[1] * (value.ndim - 1))
        assert constants[f"{name}_scale"].dtype == np.float16
        assert np.array_equal(constants[f"{name}_quantized"], steps(value, scale))
    paired = Quantized(tmp_path, net(), npz(**SEEN), calibration=MINMAX)
    assert all(np.array_equal(made(done, name), made(paired, name)) for name in "wv")


@pytest.mark.parametrize("granularity", ["tensor", "channel"])
def test_arithmetic_is_numpys(tmp_path, granularity):
    x = RANDOM.standard_normal((40, 6)).astype(np.float16)
    w = RANDOM.standard_normal((6, 2)).astype(np.float16)
    done = Quantized(tmp_path, dense(numpy_helper.from_array(w, "w")), npz(x=x),
                     calibration={"method": "minmax"}, weights={"granularity": granularity})
    assert done.ok, done.said
    judge.load(done.bytes)
    x_scale = scale_of(np.abs(x).max())
    w_scale = np.float16(np.abs(w).max(axis=None if granularity == "tensor" else 0)
                         .astype(np.float64) / 127)
    x_back = np.float16(steps(x, x_scale) * np.float32(x_scale))
    w_back = np.float16(steps(w, w_scale) * np.float32(w_scale))
    expected = x_back.astype(np.float64) @ w_back.astype(np.float64)
    assert np.allclose(judge.run(done.bytes, {"x": x}), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(tmp_path, method):
    """The ranges equal those of float32 data with the same values."""
    x = RANDOM.standard_normal((40, 6)).astype(np.float16)
    w = numpy_helper.from_array(np.float16(RANDOM.standard_normal((6, 2))), "w")
    wide = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 19]>
        dense (float[n, 6] x) => (float[n, 2] y) { [fc] y = MatMul (x, w) }""")
    wide.graph.initializer.append(
        numpy_helper.from_array(numpy_helper.to_array(w).astype(np.float32), "w"))
    spec = {"calibration": {"method": method, "batch": 7}}
    half = Quantized(tmp_path, dense(w), npz(x=x), **spec)
    full = Quantized(tmp_path, wide, npz(x=x.astype(np.float32)), **spec)
    assert half.range("x") == full.range("x")


def test_scales_stay_normal(tmp_path):
    w = numpy_helper.from_array(np.full((6, 2), 2e-6, np.float16), "w")
    x = np.full((4, 6), 1e-6, np.float16)
    done = Quantized(tmp_path, dense(w), npz(x=x), calibration={"method": "minmax"})
    assert done.ok, done.said
    assert {float(s) for scale in scales_of(judge.load(done.bytes)).values()
            for s in np.ravel(scale)} == {2.0 ** -14}
    done = Quantized(tmp_path, dense(w), calibration={"ranges": {"x": [-1e30, 1]}})
    assert done.ok, done.said
    assert float(scales_of(judge.load(done.bytes))["x"]) == 65504


def test_weight_in_a_form_that_is_not_read(tmp_path):
    """float16 bits in a list of integers, which make_tensor() writes."""
    w = onnx.helper.make_tensor("w", TensorProto.FLOAT16, [6, 2], [0.5] * 12)
    if w.raw_data:
        w = TensorProto(name="w", data_type=TensorProto.FLOAT16, dims=[6, 2],
                        int32_data=[0x3800] * 12)
    done = Quantized(tmp_path, dense(w), npz(x=np.ones((4, 6), np.float16)))
    assert done.ok, done.said
    (layer,) = done.report["layers"]
    assert layer["reason"] == "weight is kept in a form that is not read"


# --- before opset 19 ---------------------------------------------------------------------

def test_older_opsets_leave_float16_alone(tmp_path):
    done = Quantized(tmp_path, net(17), npz(**SEEN), calibration=MINMAX, opset="keep")
    assert done.ok, done.said
    reasons = {row["name"]: row["reason"] for row in done.report["layers"]}
    assert reasons["conv"] == reasons["fc"] == "float16 needs opset 19"
    assert done.report["summary"]["qdq_pairs"] == 0
    warning = done.warnings["opset_float16"]
    assert warning["node"] == "conv" and "2 layers" in warning["detail"]
    assert np.array_equal(judge.run(done.bytes, REST),
                          judge.run(net(17).SerializeToString(), REST))


@pytest.mark.parametrize("opset,quantized", [(17, ["full"]), (19, ["full", "half"])])
def test_what_is_float32_is_quantized_nonetheless(tmp_path, opset, quantized):
    """The float32 layers of a float16 model are quantized, also where the float16 ones
    cannot be."""
    text = f"""
        <ir_version: 9, opset_import: ["": {opset}]>
        mixed (float[n, 4] x) => (float16[n, 5] y) {{
            [full] a = MatMul (x, u)  h = Cast <to = 10> (a)
            [half] y = Gemm <transB = 1> (h, v) }}"""
    model = onnx.parser.parse_model(text)
    u = RANDOM.standard_normal((4, 4)).astype(np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(u, "u"),
                                    numpy_helper.from_array(np.float16(WEIGHTS["v"]), "v")])
    x = RANDOM.standard_normal((30, 4)).astype(np.float32)
    done = Quantized(tmp_path, model, npz(x=x), opset="keep")
    assert done.ok, done.said
    assert [row["name"] for row in done.report["layers"] if row["weight_quantized"]] \
        == quantized
    types = {name: scale.dtype for name, scale in scales_of(judge.load(done.bytes)).items()}
    assert types["x"] == types["u"] == np.float32
    if "half" in quantized:
        assert types["h"] == types["v"] == np.float16


# --- the optimizations of onnxruntime ------------------------------------------------------

def biased(scale):
    """Returns a model whose bias has integers beyond float16 in the runtime, if it is large: its
    scale is the product of those of activation and weight."""
    return parsed("""
        <ir_version: 9, opset_import: ["": 19]>
        biased (float16[n, 16] x) => (float16[n, 16] y) {
            [fc] a = Gemm (x, w, b)  [next] y = MatMul (a, v) }""",
                  w=RANDOM.standard_normal((16, 16)) * 0.05, b=RANDOM.standard_normal(16) * scale,
                  v=RANDOM.standard_normal((16, 16)) * 0.05)


@pytest.mark.parametrize("target", ["onnxruntime", "tensorrt"])
@pytest.mark.parametrize("scale, sound", [(0.01, True), (50, False)])
def test_a_result_that_the_optimizations_break_is_refused(tmp_path, target, scale, sound):
    x = (RANDOM.standard_normal((48, 16)) * 0.1).astype(np.float16)
    model = biased(scale)
    spec = {"target": target, "recipe": "none", "weights": {"storage": "dq"}}
    made = Quantized(tmp_path, model, npz(x=x), evaluate=False, **spec)
    assert made.ok, made.said
    real = judge.run(model.SerializeToString(), {"x": x})
    figures = [judge.sqnr_db(real, judge.run(made.bytes, {"x": x}, optimized=optimized))
               for optimized in (True, False)]
    assert figures[1] > 25 and (figures[0] > 25) == sound
    done = Quantized(tmp_path, model, npz(x=x), **spec)
    assert done.ok == sound, done.said
    if not sound:
        assert "optimizations break this result" in done.said
        assert f"{figures[0]:.1f} dB in a plain session" in done.said


# --- data and metrics --------------------------------------------------------------------

def test_evaluation(tmp_path):
    done = Quantized(tmp_path, net(), npz(x=X), calibration=MINMAX, evaluate={"samples": 8})
    assert done.ok, done.said
    real = judge.run(net().SerializeToString(), REST)
    quantized = judge.run(done.bytes, REST)
    (figures,) = done.report["evaluation"]["outputs"]
    assert done.report["evaluation"]["samples"] == 8
    assert figures["sqnr_db"] == pytest.approx(judge.sqnr_db(real, quantized), abs=0.2)
    assert figures["max_abs_error"] == pytest.approx(np.abs(real - quantized).max(),
                                                     abs=4e-3)
    assert figures["top1_agreement"] == np.mean(real.argmax(1) == quantized.argmax(1))


def test_layers_are_compared(tmp_path):
    """Each layer's figure agrees with onnxruntime, which runs both models with all layers
    as outputs."""
    source = net(size=80)
    feed = {"x": RANDOM.standard_normal((8, 3, 80, 80)).astype(np.float16)}
    done = Quantized(tmp_path, source, npz(**feed), calibration={"method": "minmax"})
    assert done.ok, done.said
    assert "layers_not_compared" not in done.warnings
    figures = {row["name"]: row["sqnr_db"] for row in done.report["evaluation"]["layers"]}
    for layer, tensor in (("conv", "c"), ("fc", "y")):
        real, quantized = (output_of(data, tensor, feed)
                           for data in (source.SerializeToString(), done.bytes))
        assert figures[layer] == pytest.approx(judge.sqnr_db(real, quantized), abs=0.5)


def test_gates(daemon):
    model = daemon.upload("models", net().SerializeToString())
    data = daemon.upload("datasets", npz(x=X))
    for least, state in ((10, "succeeded"), (90, "failed")):
        job = daemon.ended(daemon.submit(model=model, calibration=data, spec={
            "accept": {"min_sqnr_db": least}, "calibration": MINMAX}))
        assert job["state"] == state, job
        if state == "failed":
            assert job["error"]["code"] == "accuracy"


def test_sensitivity(tmp_path):
    """A layer's cost equals that of a model in which only this layer is quantized."""
    done = Quantized(tmp_path, net(), npz(x=X), calibration=MINMAX, sensitivity={"samples": 24})
    assert done.ok, done.said
    alone = {row["name"]: row["sqnr_db_alone"] for row in done.report["sensitivity"]}
    assert set(alone) == {"conv", "fc"}
    for name, figure in alone.items():
        one = Quantized(tmp_path, net(), npz(x=X), calibration=MINMAX, mode="partial",
                        layers=[{"name": name}])
        assert one.ok, one.said
        (figures,) = one.report["evaluation"]["outputs"]
        assert figure == pytest.approx(figures["sqnr_db"], abs=0.5)


def test_float32_data_is_refused(daemon):
    model = daemon.upload("models", net().SerializeToString())
    data = daemon.upload("datasets", npz(x=X.astype(np.float32)))
    job = daemon.ended(daemon.submit(model=model, calibration=data))
    assert job["error"]["code"] == "calibration_mismatch"
    assert "'x' wants float16" in job["error"]["detail"]


def test_infinity_is_named(tmp_path):
    x = X.copy()
    x[5, 0, 0, 0] = np.inf
    done = Quantized(tmp_path, net(), npz(x=x), calibration={"batch": 4})
    assert "nonfinite: tensor 'x'" in done.said and "sample 5" in done.said
    done = Quantized(tmp_path, net(), npz(x=x), evaluate=False, calibration={
        "method": "minmax", "batch": 4, "on_nonfinite": "skip_sample"})
    rest = np.delete(x, 5, axis=0)
    assert done.range("x") == (rest.min(), rest.max())
