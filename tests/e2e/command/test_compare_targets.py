# SPDX-License-Identifier: Apache-2.0
"""qdq compare: a model for several targets, and reports, in one table and one page."""

import json
import subprocess
from html.parser import HTMLParser

import pytest

import judge
from service import DATA, FEW_SAMPLES, INSTALLED

RESNET = DATA / "glyph_resnet.onnx"
WORDS = ["--calibration", FEW_SAMPLES, "--recipe", "none"]


def qdq(*words, cwd):
    return subprocess.run([INSTALLED / "bin" / "qdq", *map(str, words)], cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


class Circles(HTMLParser):
    """Counts the points of the pictures."""

    def __init__(self, text):
        super().__init__()
        self.count = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.count += tag == "circle"


def rows(done):
    """The rows of the table by their first word."""
    return {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:]}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("far", [False, True], ids=["here", "service"])
def test_a_model_for_two_targets(daemon, tmp_path, far):
    before = ["--url", daemon.url] if far else []
    done = qdq(*before, "compare", RESNET, "--targets", "tensorrt,onnxruntime", *WORDS, "-o",
               "r.onnx", "--html", "r.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "r.html", "r.onnxruntime.json", "r.onnxruntime.onnx", "r.tensorrt.json",
        "r.tensorrt.onnx"]
    table = rows(done)
    assert list(table) == ["tensorrt", "onnxruntime"]
    for target, row in table.items():
        report = json.loads((tmp_path / f"r.{target}.json").read_text())
        summary, evaluation = report["summary"], report["evaluation"]
        judged = evaluation["deployed"] or evaluation
        assert report["spec"]["target"] == target
        judge.load((tmp_path / f"r.{target}.onnx").read_bytes())
        assert row[1:4] == [str(summary["quantized_layers"]), "of", str(summary["layers"])]
        assert row[4] == f"{summary['size_after'] / summary['size_before']:.3f}"
        assert row[5] == f"{judged['outputs'][0]['sqnr_db']:.2f}"
    # Nothing was timed, so that only the picture of sizes has points.
    page = (tmp_path / "r.html").read_text()
    assert Circles(page).count == 2 and "No result has both figures." in page
    # The same reports, by their files.
    again = qdq("compare", "r.tensorrt.json", "r.onnxruntime.json", cwd=tmp_path)
    assert [row[1:] for row in rows(again).values()] == [row[1:] for row in table.values()]


def test_the_frontiers_of_all_targets(tmp_path):
    """They are in one picture; a target that measures none has its result there."""
    done = qdq("compare", RESNET, "--targets", "qnn,onnxruntime", "--calibration", FEW_SAMPLES,
               "--set", "frontier=true", "--set", "profile={}", "-o", "r.onnx", "--html", "r.html",
               cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "qnn: no frontier for it" in done.stderr
    report = json.loads((tmp_path / "r.onnxruntime.json").read_text())
    drawn = [point for point in report["frontier"] if point["sqnr_db"] is not None]
    page = (tmp_path / "r.html").read_text()
    results = 1 if report["summary"]["verdict"] is None else 2
    assert drawn and Circles(page).count == 2 * len(drawn) + results + (results - 1)
    runtime = report["profile"]["runtime"]
    assert f"onnxruntime, {runtime['name']} {runtime['version']}</text>" in page
    assert "<code>qnn</code> has no latency: the latency was not measured" in page


def test_a_target_that_fails(tmp_path):
    done = qdq("compare", RESNET, "--targets", "tensorrt,nowhere", *WORDS, "-o", "r.onnx",
               cwd=tmp_path)
    assert done.returncode == 1
    assert 'not "nowhere" (/target)' in done.stderr and "no result for target nowhere" in done.stderr
    assert rows(done)["nowhere"] == ["nowhere", "failed"] and rows(done)["tensorrt"][2] == "of"


def test_why_all_targets_failed(tmp_path):
    done = qdq("compare", RESNET, "--targets", "tensorrt,onnxruntime", "--set",
               'cases=["nowhere"]', "-o", "r.onnx", "--html", "r.html", cwd=tmp_path)
    assert done.returncode == 1
    page = (tmp_path / "r.html").read_text()
    assert page.count("invalid_spec") == 2 and page.count("nowhere") >= 2
    assert "Accuracy against" not in page


def test_a_frontier_that_no_target_measures(tmp_path):
    words = ["--calibration", FEW_SAMPLES, "--set", "frontier=true", "--recipe", "none",
             "-o", "r.onnx"]
    done = qdq("compare", RESNET, "--targets", "tensorrt,qnn", *words, cwd=tmp_path)
    one = qdq("quantize", RESNET, "--target", "qnn", *words, cwd=tmp_path)
    assert done.returncode == one.returncode == 1
    assert done.stderr == one.stderr and "/frontier" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words, said", [
    (["a.json"], "a comparison needs two reports"),
    (["a.json", "a.json"], "a.json: not a report"),
    (["none.json", "a.json"], "none.json"),
    (["m.onnx", "--targets", ""], "--targets is empty"),
    (["m.onnx", "--targets", "tensorrt,tensorrt"], "tensorrt stands there twice"),
    (["m.onnx", "--targets", "../x"], '"../x" is no target'),
    (["m.onnx", "--targets", "tensorrt,,openvino"], '"" is no target'),
    (["m.onnx", "n.onnx", "--targets", "tensorrt"], '"n.onnx" follows it'),
])
def test_what_is_refused(tmp_path, words, said):
    (tmp_path / "a.json").write_text("{}")
    done = qdq("compare", *words, cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
