# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization in training mode, whose running mean ONNX Runtime writes over the mean
that it is computed from: the figures are those of both models alone, with each one's state."""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import INSTALLED

QDQ = INSTALLED / "bin" / "qdq"
CHANNELS = 8
SAMPLES = np.random.default_rng(31).normal(size=(16, 3, 8, 8)).astype(np.float32)


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def net(opset, are_outputs):
    """Returns a network whose running mean and variance are outputs, or are used inside it."""
    random = np.random.default_rng(32)
    weights = {"w": random.normal(0, .2, (CHANNELS, 3, 3, 3)),
               "last": random.normal(0, .2, (32, CHANNELS, 1, 1)),
               "offset": np.full(CHANNELS, 10), "bias": np.zeros(CHANNELS),
               "scale": 1 + random.normal(0, .1, CHANNELS),
               "mean": random.normal(0, .1, CHANNELS), "var": 1 + random.random(CHANNELS)}
    initializers = [numpy_helper.from_array(v.astype(np.float32), k)
                    for k, v in weights.items()]
    initializers.append(numpy_helper.from_array(np.array([1, CHANNELS, 1, 1]), "shape"))
    nodes = [helper.make_node("Conv", ["x", "w", "offset"], ["conv"], "conv", pads=[1] * 4),
             helper.make_node("BatchNormalization", ["conv", "scale", "bias", "mean", "var"],
                              ["norm", "running_mean", "running_var"], "norm",
                              training_mode=1, momentum=.9)]
    outputs = [value("y", ["n", 32, 8, 8])]
    if are_outputs:
        outputs += [value("running_mean", [CHANNELS]), value("running_var", [CHANNELS])]
    else:
        nodes += [helper.make_node("Reshape", ["running_mean", "shape"], ["by_channel"]),
                  helper.make_node("Add", ["norm", "by_channel"], ["sum"])]
    nodes.append(helper.make_node("Conv", ["norm" if are_outputs else "sum", "last"], ["y"],
                                  "last"))
    graph = helper.make_graph(nodes, "net", [value("x", ["n", 3, 8, 8])], outputs,
                              initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=8)


def quantize(folder, model, threads=1, **spec):
    onnx.save(model, folder / "float.onnx")
    np.savez(folder / "samples.npz", x=SAMPLES)
    (folder / "spec.json").write_text(json.dumps(spec))
    subprocess.run([QDQ, "quantize", folder / "float.onnx", "--calibration",
                    folder / "samples.npz", "--spec", folder / "spec.json", "-o",
                    folder / "int8.onnx", "--report", folder / "report.json", "--threads",
                    str(threads)], check=True, capture_output=True)
    return json.loads((folder / "report.json").read_text())


def outputs_of(path):
    """Returns the outputs of one session for all samples, one after the other."""
    session = onnxruntime.InferenceSession(path)
    runs = [session.run(None, {"x": sample[None]}) for sample in SAMPLES]
    return {output.name: np.concatenate([run[i].ravel() for run in runs])
            for i, output in enumerate(session.get_outputs())}


def sqnr(signal, other):
    noise = np.square(signal.astype(np.float64) - other).sum()
    return 10 * np.log10(np.square(signal.astype(np.float64)).sum() / noise)


@pytest.mark.parametrize("target", ["tensorrt", "onnxruntime"])
@pytest.mark.parametrize("are_outputs", [True, False], ids=["outputs", "used inside"])
@pytest.mark.parametrize("opset", [14, 15])
def test_figures_are_those_of_both_models_alone(tmp_path, opset, are_outputs, target):
    report = quantize(tmp_path, net(opset, are_outputs), target=target,
                      **({"layers": [{"class": "Conv2D"}]} if target != "tensorrt" else {}))
    signal, result = outputs_of(tmp_path / "float.onnx"), outputs_of(tmp_path / "int8.onnx")
    evaluation = report["evaluation"]
    for figures in (evaluation["outputs"], (evaluation["deployed"] or {}).get("outputs", [])):
        for output in figures:
            expected = sqnr(signal[output["name"]], result[output["name"]])
            assert output["sqnr_db"] == pytest.approx(expected, abs=.05), output["name"]
    warnings = {one["code"]: one["detail"] for one in report["warnings"]}
    assert "training mode" in warnings["layers_not_compared"]
    assert evaluation["layers"] == []


def test_threads_do_not_change_the_ranges(tmp_path):
    """Samples side by side would give each session a state of its own: the running mean, which
    grows to 10, comes half as far."""
    model = net(15, are_outputs=False)
    results = []
    for threads in (1, 2):
        quantize(tmp_path, model, threads)
        results.append((tmp_path / "int8.onnx").read_bytes())
    assert results[0] == results[1]
