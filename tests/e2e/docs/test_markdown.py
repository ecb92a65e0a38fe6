# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown, read by a third-party Markdown parser."""

import onnx
import pytest
from markdown_it import MarkdownIt

import nets
from service import problem


def hostile_names():
    """Returns nets.block_net() with names that have a meaning in Markdown."""
    model = onnx.load_from_string(nets.block_net())
    for node, name in zip(model.graph.node, [
            "a|b|c", "`code` ``", "two\nlines\r\n| x | y |", "*bold* __init__ ~~x~~",
            "<script>alert(1)</script>", "[link](http://x.example) ![i](j)", "\\|\\",
            "&lt;&#124;", "# head", "conv_1/quant_x", "  spaces  ", "\u0001\u007f", "ä€"]):
        node.name = name
    return model.SerializeToString()


def tables(text):
    """Returns {heading: rows of cells as a reader sees them}, and the types of all other
    tokens."""
    found, heading, kinds = {}, None, set()
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    for i, token in enumerate(tokens):
        kinds.add(token.type)
        if token.type == "heading_open":
            heading = tokens[i + 1].content
            found[heading] = []
        elif token.type == "tr_open":
            found[heading].append([])
        elif token.type in ("td_open", "th_open"):
            children = tokens[i + 1].children
            kinds.update(child.type for child in children)
            found[heading][-1].append("".join(child.content for child in children))
    return found, kinds


def one_line(text):
    """Returns a name as it should be shown; a table's cell loses the spaces at its ends.
    """
    return "".join(" " if c < " " or c == "\x7f" else c for c in text).strip()


@pytest.fixture
def job(daemon):
    job = daemon.submit(model=daemon.upload("models", hostile_names()),
                        calibration=daemon.upload("datasets", nets.samples()),
                        spec={"layers": [{"class": "MaxPool"}]})
    daemon.succeeded(job)
    return job


def get(daemon, job, accept):
    return daemon.get(f"/v1/jobs/{job}/report", headers={"Accept": accept})


def test_it_says_what_the_json_says(daemon, job):
    """The Markdown report has the same facts as the JSON."""
    report = daemon.report(job)
    answer = get(daemon, job, "text/markdown")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    found, kinds = tables(answer.text)
    assert kinds <= {
        "heading_open", "heading_close", "inline", "text", "paragraph_open",
        "paragraph_close", "bullet_list_open", "bullet_list_close", "list_item_open",
        "list_item_close", "table_open", "table_close", "thead_open", "thead_close",
        "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close", "td_open",
        "td_close", "text_special", "code_block"}, "a name became something else"
    assert {"Summary", "Outputs", "Tensors", "Weights", "Timings"} <= set(found)
    assert found["Summary"][1] == [str(report["summary"][name]) for name in (
        "layers", "quantized_layers", "qdq_pairs", "size_before", "size_after", "verdict",
        "judged_by")]
    for title, member, key in [("Tensors", "tensors", "name"), ("Weights", "weights", "layer"),
                               ("Weights", "weights", "name")]:
        column = {"name": 0, "layer": 1}[key]
        assert [row[column] for row in found[title][1:]] == [
            one_line(row[key]) for row in report[member]]
    for row, tensor in zip(found["Tensors"][1:], report["tensors"]):
        for cell, key in zip(row[1:3] + row[4:5], ("min", "max", "scale")):
            assert float(cell) == pytest.approx(tensor[key], rel=1e-5)
    for row, output in zip(found["Outputs"][1:], report["evaluation"]["outputs"]):
        assert float(row[1]) == pytest.approx(output["sqnr_db"], rel=1e-5)
    worst = sorted((r["sqnr_db"] for r in report["evaluation"].get("layers", [])
                    if r["sqnr_db"] is not None))[:10]
    assert [float(row[1]) for row in found.get("Worst layers", [[]])[1:]
            if row[1] != "-"] == pytest.approx(worst, rel=1e-5)
    assert [row[0] for row in found["Timings"][1:]] == list(report["timings"])
    assert [row[0] for row in found["Stages"][1:]] == [
        stage["name"] for stage in report["stages"]]


def test_negotiation(daemon, job):
    for accept, kind in [
            ("*/*", "application/json"), ("text/*", "text/markdown; charset=utf-8"),
            ("text/markdown;q=0.5, application/json;q=0.8", "application/json"),
            ("text/html;q=0.8, text/markdown;q=0.9, */*;q=0.1", "text/markdown; charset=utf-8"),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
             "text/html; charset=utf-8")]:
        answer = get(daemon, job, accept)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == kind, accept
        assert answer.headers["Vary"] == "Accept"
    for accept in ("text/plain", "application/json;q=0", "image/*"):
        answer = get(daemon, job, accept)
        problem(answer, 406, "not_acceptable")
        assert answer.headers["Vary"] == "Accept"
    head = daemon.request("HEAD", f"/v1/jobs/{job}/report",
                          headers={"Accept": "text/markdown"})
    assert head.status_code == 200
    assert head.headers["Content-Length"] == str(len(get(daemon, job, "text/markdown").content))
