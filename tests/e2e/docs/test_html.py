# SPDX-License-Identifier: Apache-2.0
"""The report as a page of HTML: what the command writes and what the daemon sends."""

import base64
import hashlib
import html.parser
import json
import re
import subprocess

import onnx
import pytest

import nets
from service import CALIBRATION, DATA, INSTALLED, QUANTIZE

VOID = {"meta", "link"}


class Page(html.parser.HTMLParser):
    """The tables of a page, by the id of their section: rows of cells. All elements are closed in
    the order in which they were opened."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.open, self.section, self.elements = {}, [], None, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = dict(attrs)["id"]
            self.tables[self.section] = []
        elif tag == "tr":
            self.tables[self.section].append([])
        elif tag in ("td", "th"):
            self.tables[self.section][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and {"td", "th"} & set(self.open):
            self.tables[self.section][-1][-1] += data


def quantize(folder, model, *options):
    report, page = folder / "report.json", folder / "report.html"
    subprocess.run([*QUANTIZE, model, "--calibration", CALIBRATION, "-o", folder / "out.onnx",
                    "--report", report, "--html", page, *options], check=True, timeout=300)
    return json.loads(report.read_text()), page.read_text()


def test_its_figures_are_those_of_the_json(tmp_path):
    report, text = quantize(tmp_path, DATA / "glyph_resnet.onnx")
    tables = Page(text).tables
    assert [row[1] for row in tables["layers"][1:]] == [row["name"] for row in report["layers"]]
    known = {row["name"]: row["sqnr_db"] for row in report["evaluation"]["layers"]}
    assert len(known) > 10
    for row in tables["layers"][1:]:
        assert (row[4] == "–") == (row[1] not in known)
        if row[1] in known:
            assert float(row[4]) == pytest.approx(known[row[1]], rel=1e-3)
    for row, tensor in zip(tables["ranges"][1:], report["tensors"], strict=True):
        assert row[0] == tensor["name"]
        assert [float(row[i]) for i in (1, 2, 5)] == pytest.approx(
            [tensor[key] for key in ("min", "max", "scale")], rel=1e-5)
    assert "timings" not in tables
    stages = [row[0] for row in tables["stages"][1:]]
    assert [*stages, "total"] == list(report["timings"])
    assert [row[0] for row in tables["warnings"][1:]] == [
        row["code"] for row in report["warnings"]]
    assert all(row[3] for row in tables["warnings"][1:]), "a warning says what to do"


def test_the_graph_is_that_of_the_model(tmp_path):
    """The report's edges are those of the file, and each is drawn."""
    report, text = quantize(tmp_path, DATA / "glyph_resnet.onnx")
    graph = onnx.load(DATA / "glyph_resnet.onnx", load_external_data=False).graph
    makers = {tensor: node.name for node in graph.node for tensor in node.output}
    assert sorted(report["edges"]) == sorted(
        [makers[tensor], node.name, tensor] for node in graph.node for tensor in node.input
        if tensor in makers)
    graph = text[text.index('<section id="graph">'):].split("</section>")[0]
    assert graph.count("<path ") == len(report["edges"]) > 30
    filled = re.findall(r'<g class="both">.*?<title>(\S+) ', graph)
    assert sorted(filled) == sorted(row["name"] for row in report["layers"]
                                    if row["weight_quantized"] and row["quantized_inputs"])
    assert len(re.findall("<g class=", graph)) == report["model"]["nodes"]


def test_the_command_report_makes_the_same_page(tmp_path):
    _, text = quantize(tmp_path, DATA / "glyph_resnet.onnx")
    again = tmp_path / "again.html"
    run = [INSTALLED / "bin" / "qdq", "report", tmp_path / "report.json"]
    subprocess.run([*run, "-o", again], check=True, timeout=60)
    assert again.read_text() == text
    (tmp_path / "report.html").unlink()
    subprocess.run(run, check=True, timeout=60)
    assert (tmp_path / "report.html").read_text() == text


@pytest.mark.parametrize("content", ["", "{", "7", "[]", '{"schema": 1}', "\x00"])
def test_what_is_no_report_is_refused(tmp_path, content):
    wrong, page = tmp_path / "wrong.json", tmp_path / "page.html"
    wrong.write_text(content)
    done = subprocess.run([INSTALLED / "bin" / "qdq", "report", wrong, "-o", page],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"{wrong}: not a report" in done.stderr
    assert not page.exists()


def hashes(text):
    """Returns the hashes of the page's own style and script, as a policy has them."""
    return {kind: "sha256-" + base64.b64encode(hashlib.sha256(re.search(
        f"<{tag}>(.*?)</{tag}>", text, re.S)[1].encode()).digest()).decode()
        for kind, tag in (("style-src", "style"), ("script-src", "script"))}


@pytest.mark.shares_daemon
def test_the_daemon_sends_it_under_a_policy(daemon):
    model = onnx.load_from_string(nets.block_net())
    model.graph.node[0].name = "<script>alert(1)</script>"
    job = daemon.submit(model=daemon.upload("models", model.SerializeToString()),
                        calibration=daemon.upload("datasets", nets.samples()))
    daemon.succeeded(job)
    answer = daemon.get(f"/v1/jobs/{job}/report", headers={"Accept": "text/html"})
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert {kind: rules[kind].strip("'") for kind in ("style-src", "script-src")} == \
        hashes(answer.text)
    page = Page(answer.text)
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": policy}) in page.elements
    assert page.tables["layers"][1][1] == "<script>alert(1)</script>"
    assert [tag for tag, _ in page.elements].count("script") == 1
    for tag, attributes in page.elements:
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "data:,") == "data:,", tag
        assert "src" not in attributes
