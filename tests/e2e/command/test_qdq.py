# SPDX-License-Identifier: Apache-2.0
"""The qdq command: the same engine without the daemon."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import judge
from service import DATA, FEW_SAMPLES, INSTALLED

RESNET = DATA / "glyph_resnet.onnx"


def qdq(*arguments, cwd=None):
    return subprocess.run([INSTALLED / "bin" / "qdq", *map(str, arguments)], cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)


def last_line(done):
    return done.stderr.strip().splitlines()[-1]


def test_quantize(tmp_path, daemon):
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", out,
               "--report", report, "--threads", 2)
    assert done.returncode == 0, done.stderr
    judge.load(out.read_bytes())
    document = json.loads(report.read_text())
    assert document["summary"]["size_after"] == out.stat().st_size
    # The daemon's engine is the same one.
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    ours, theirs = (judge.Pairs(judge.load(data))
                    for data in (out.read_bytes(), daemon.result(job)))
    assert ours.table() == theirs.table()
    for tensor in ours.tensors():
        np.testing.assert_array_equal(ours.scale(tensor), theirs.scale(tensor))


def test_quantize_default_name(tmp_path):
    shutil.copy(RESNET, tmp_path / "net.onnx")
    done = qdq("quantize", "net.onnx", "--calibration", FEW_SAMPLES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.int8.onnx", "net.onnx"]
    judge.load((tmp_path / "net.int8.onnx").read_bytes())


def test_quantize_with_spec(tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text('{"calibration": {"max_samples": 3}, "evaluate": false}')
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "--spec", spec,
               "-o", out, "--report", report)
    assert done.returncode == 0, done.stderr
    document = json.loads(report.read_text())
    assert {t["samples"] for t in document["tensors"]} == {3}
    assert document["evaluation"] is None


def test_no_progress_bar_without_a_terminal(tmp_path):
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", tmp_path / "o")
    assert done.returncode == 0
    assert "\r" not in done.stderr and "\x1b" not in done.stderr + done.stdout


def test_plan(daemon):
    done = qdq("plan", RESNET, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert set(plan) == {"summary", "layers", "warnings"}
    model = daemon.upload("models", RESNET)
    assert plan == daemon.post("/v1/plan", json={"model": model}).json()
    text = qdq("plan", RESNET)
    assert text.returncode == 0 and "Conv_0" in text.stdout


def test_plan_table():
    """Layers with a decision have a row each; all others are counted."""
    plan = json.loads(qdq("plan", RESNET, "--json").stdout)
    idle = {"off by default": {}}
    for layer in plan["layers"]:
        if layer["reason"] in idle:
            counts = idle[layer["reason"]]
            counts[layer["class"]] = counts.get(layer["class"], 0) + 1
    shown = [x for x in plan["layers"] if x["reason"] not in idle]
    counted = ["off by default: " + ", ".join(
        f"{n} {cls}" for cls, n in idle["off by default"].items())]
    assert "5 Add" in counted[0]

    def table(*options):
        done = qdq("plan", RESNET, *options)
        assert done.returncode == 0, done.stderr
        rows, rest = done.stdout.split("\n\n")
        head, *rows = [re.split("  +", row) for row in rows.splitlines()]
        assert head == ["LAYER", "CLASS", "INPUTS", "WEIGHT", "REASON"]
        *rest, last = rest.splitlines()
        summary = plan["summary"]
        assert last.startswith(f"{summary['quantized_layers']} of {summary['layers']} ")
        return rows, rest

    def row(layer):
        weight = (f"per channel, axis {layer['weight_axis']}"
                  if layer["weight_quantized"] else "-")
        inputs = ",".join(map(str, layer["quantized_inputs"])) or "-"
        return [layer["name"], layer["class"], inputs, weight, layer["reason"]]

    assert table() == ([row(x) for x in shown], counted)
    assert table("--all") == ([row(x) for x in plan["layers"]], [])


def test_info(daemon):
    done = qdq("info", RESNET, "--json")
    assert done.returncode == 0, done.stderr
    info = json.loads(done.stdout)
    assert info["opset"] == 13
    model = daemon.upload("models", RESNET)
    assert info == daemon.get(f"/v1/models/{model}/info").json()
    text = qdq("info", RESNET)
    assert text.returncode == 0 and "Conv" in text.stdout


@pytest.mark.parametrize("arguments", [
    [], ["nonsense"], ["quantize"], ["plan"], ["info"],
    ["quantize", RESNET, "--no-such-option"],
    ["quantize", RESNET, "--calibration"],
    ["quantize", RESNET, "--calibration", FEW_SAMPLES, "--threads", "many"],
    ["plan", RESNET, "extra"], ["info", RESNET, "--all"], ["plan", RESNET, "--cases"],
])
def test_wrong_usage(arguments):
    done = qdq(*arguments)
    assert done.returncode == 2
    assert last_line(done)
    assert done.stdout == ""


def test_failures_are_told_on_the_last_line(tmp_path):
    """The last line on standard error gives the reason of a failure."""
    text = tmp_path / "letter.onnx"
    text.write_text("Dear aunt,\n" * 30)
    spec = tmp_path / "spec.json"
    spec.write_text('{"modus": 1}')
    other = tmp_path / "other.npz"
    np.savez(other, images=np.zeros((4, 1, 32, 32), np.float32))
    out = tmp_path / "out.onnx"
    for arguments, word in [
        (["quantize", tmp_path / "nobody.onnx"], "nobody.onnx"),
        (["quantize", text, "--calibration", FEW_SAMPLES], "ONNX"),
        (["quantize", RESNET], "calibration"),
        (["quantize", RESNET, "--calibration", other], "input"),
        (["quantize", RESNET, "--calibration", FEW_SAMPLES, "--spec", spec], "modus"),
        (["plan", text, "--json"], "ONNX"),
        (["info", text], "ONNX"),
        (["plan", RESNET, "--cases", tmp_path / "nowhere"], "nowhere"),
    ]:
        if arguments[0] == "quantize":
            arguments += ["-o", out]
        done = qdq(*arguments)
        assert done.returncode == 1, (arguments, done.stderr)
        assert word in last_line(done), last_line(done)
        assert not out.exists()
        assert [p for p in tmp_path.iterdir() if ".tmp" in p.name] == []


def test_failure_leaves_an_old_result_alone(tmp_path):
    out = tmp_path / "out.onnx"
    out.write_bytes(b"of yesterday")
    assert qdq("quantize", RESNET, "-o", out).returncode == 1
    assert out.read_bytes() == b"of yesterday"


def test_plan_columns_stay_apart(tmp_path):
    """Two spaces stand behind a name, also where it is longer than its column."""
    model = judge.load(RESNET.read_bytes())
    node = next(n for n in model.graph.node if n.op_type == "Conv")
    node.name = "block/" * 20 + "conv"
    (tmp_path / "long.onnx").write_bytes(model.SerializeToString())
    done = qdq("plan", "long.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = next(row for row in done.stdout.splitlines() if row.startswith("block/"))
    assert re.split(r"  +", line)[:3] == [node.name, "Conv2D", "0"]
