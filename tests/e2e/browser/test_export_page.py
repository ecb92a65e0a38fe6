# SPDX-License-Identifier: Apache-2.0
"""The pages of an export whose biases go through nodes of their own: a residual network of 18 layers
among 1,689 nodes, as PyTorch writes it where parameters are shared."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import QUANTIZE

NODES = 1689
LAYERS = "document.querySelector('#layers table').tBodies[0].rows"


class Export:
    """The nodes and weights of the network, in the order of an export."""

    def __init__(self):
        self.random = np.random.default_rng(3)
        self.carriers, self.nodes, self.weights = [], [], []

    def weight(self, name, *shape):
        scale = np.sqrt(2 / max(np.prod(shape[1:]), 1))
        self.weights.append(numpy_helper.from_array(
            self.random.normal(0, scale, shape).astype(np.float32), name))
        return name

    def carry(self, name):
        """Adds a node that gives a constant another name."""
        number = len(self.carriers)
        self.carriers.append(helper.make_node("Identity", [name], [f"carried_{number}"],
                                              f"Identity_{number}"))
        return f"carried_{number}"

    def add(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"{name}.y"], name, **attributes))
        return f"{name}.y"

    def conv(self, x, channels, out, kernel, stride, name):
        bias = self.carry(self.weight(f"{name}.bias", out))
        weight = self.weight(f"{name}.weight", out, channels, kernel, kernel)
        return self.add("Conv", [x, weight, bias], f"/{name}/Conv", strides=[stride] * 2,
                        pads=[kernel // 2] * 4)

    def block(self, x, channels, out, stride, name):
        y = self.add("Relu", [self.conv(x, channels, out, 3, stride, f"{name}.conv1")],
                     f"/{name}/relu/Relu")
        y = self.conv(y, out, out, 3, 1, f"{name}.conv2")
        if stride > 1:
            x = self.conv(x, channels, out, 1, stride, f"{name}.downsample")
        return self.add("Relu", [self.add("Add", [y, x], f"/{name}/Add")], f"/{name}/relu_1/Relu")


def export():
    net = Export()
    x = net.add("Relu", [net.conv("image", 3, 8, 7, 2, "conv1")], "/relu/Relu")
    x = net.add("MaxPool", [x], "/maxpool/MaxPool", kernel_shape=[3, 3], strides=[2, 2],
                pads=[1, 1, 1, 1])
    channels = 8
    for stage, out in enumerate((8, 16, 32, 64), 1):
        for i in range(2):
            x = net.block(x, channels, out, 2 if out > channels else 1, f"layer{stage}.{i}")
            channels = out
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x], "/avgpool/GlobalAveragePool")],
                "/Flatten")
    net.add("Gemm", [x, net.weight("fc.weight", 10, channels), net.weight("fc.bias", 10)],
            "/fc/Gemm", transB=1)
    while len(net.carriers) + len(net.nodes) < NODES:
        net.carry("conv1.bias")
    graph = helper.make_graph(
        net.carriers + net.nodes, "main_graph",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 32, 32])],
        [helper.make_tensor_value_info("/fc/Gemm.y", TensorProto.FLOAT, ["N", 10])], net.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    onnx.save(export(), folder / "net.onnx")
    np.savez(folder / "data.npz", image=np.random.default_rng(5).normal(
        0, 1, (64, 3, 32, 32)).astype(np.float32))
    spec = {"target": "onnxruntime", "recipe": "none", "profile": {"runs": 5}, "sensitivity": {}}
    (folder / "spec.json").write_text(json.dumps(spec))
    subprocess.run([*QUANTIZE, "net.onnx", "--calibration", "data.npz", "--spec", "spec.json", "-o",
                    "int8.onnx", "--html", "page.html", "--report", "report.json"], cwd=folder,
                   check=True, capture_output=True, timeout=120)
    return folder


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_report(browser, folder, width, scheme):
    browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900,
                     deviceScaleFactor=1, mobile=False)
    browser.devtools("Emulation.setEmulatedMedia", media="",
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
    try:
        browser.get((folder / "page.html").as_uri())
        assert browser.run("return document.documentElement.scrollWidth") <= width
        rows = browser.run(f"return Array.from({LAYERS}, row => row.cells[1].textContent)")
        assert rows[0] == "/conv1/Conv" and not any("Identity" in row for row in rows)
        left_out = NODES - len(rows)
        assert f"{left_out} nodes that compute constants alone are left out." in browser.run(
            "return document.querySelector('#layers').textContent")
        assert browser.run("return document.querySelector('svg.graph').width.baseVal.value") < 1200
        assert browser.run("return document.querySelectorAll('svg.graph g').length") == len(rows)
    finally:
        browser.devtools("Emulation.clearDeviceMetricsOverride")
        browser.devtools("Emulation.setEmulatedMedia", media="", features=[])


def test_loss_and_time_stand_beside_each_other(browser, folder):
    report = json.loads((folder / "report.json").read_text())
    browser.get((folder / "page.html").as_uri())
    heads = browser.run("return Array.from(document.querySelectorAll('#layers th'),"
                        " head => head.textContent)")
    at = [heads.index(name) for name in ("SQNR (dB)", "float (ms)", "quantized (ms)")]
    cells = browser.run(f"return Array.from({LAYERS}, row => [row.cells[2].textContent,"
                        " arguments[0].map(at => parseFloat(row.cells[at].textContent))])", at)
    convolutions = [figures for op, figures in cells if op == "Conv"]
    assert any(None not in figures for figures in convolutions), "a layer has all three"
    # All time of convolutions that the profile names stands at layers that are convolutions.
    for model, place in (("float", 1), ("quantized", 2)):
        told = sum(node["ms"] for node in report["profile"]["nodes"]
                   if node["model"] == model and "Conv" in node["op"])
        assert sum(figures[place] or 0 for figures in convolutions) == pytest.approx(told, rel=0.01)


def test_what_is_drawn(browser, folder):
    """Sensitivity by the figure that it ranks, bars of times on one scale, stages once."""
    report = json.loads((folder / "report.json").read_text())
    browser.get((folder / "page.html").as_uri())
    drawn = browser.run("return Array.from(document.querySelectorAll('#sensitivity circle title'),"
                        " title => title.textContent)")
    assert drawn[0] == (f"{report['sensitivity'][0]['name']}: "
                        f"{report['sensitivity'][0]['sqnr_db_alone']:.4g}")
    times = browser.run("return Array.from(document.querySelectorAll("
                        "'[aria-label=\"Time by operator\"] .b'), cell => [parseFloat("
                        "cell.textContent), cell.querySelector('rect').width.baseVal.value])")
    longest = max(time for time, _ in times)
    for time, width in times:
        assert width == pytest.approx(100 * time / longest, rel=0.01, abs=0.01)
    assert browser.run("return document.querySelectorAll('#stages, #timings').length") == 1


def test_the_programs_can_be_copied(browser, folder):
    texts = [row["text"] for row in json.loads((folder / "report.json").read_text())["deploy"]]
    browser.get((folder / "page.html").as_uri())
    shown = browser.run("return Array.from(document.querySelectorAll('#deploy pre'),"
                        " text => text.textContent)")
    assert shown == texts and "\n" in shown[0]
