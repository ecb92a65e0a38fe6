# SPDX-License-Identifier: Apache-2.0
"""The page of a job with several targets: a row for each, the picture, and what a row leads to."""

import json

import pytest

import webdriver
from test_page import STATE, files, go, start, visit  # noqa: F401

SPEC = {"targets": ["tensorrt", "onnxruntime"], "recipe": "none", "accept": {"max_size_ratio": 0.99}}
ROWS = "[...document.querySelectorAll('#targets tbody tr')].map(row => [...row.cells].map(c => c.textContent))"


@pytest.mark.shares_daemon
def test_a_job_with_several_targets(browser, daemon, files):  # noqa: F811
    with visit(browser, daemon) as page:
        job = start(page, files, SPEC)
        page.until(f"['succeeded', 'failed'].includes({STATE}) && document.querySelector('iframe')")
        rows = page.until(f"({ROWS}).length === 2 && {ROWS}")
        results = daemon.get(f"/v1/jobs/{job}/compare").json()["results"]
        document = daemon.job(job)
        for row, one, figures in zip(rows, document["targets"], results):
            assert row[0] == one["target"] == figures["target"]
            assert row[1].startswith(one["state"]) and row[2] == (one["verdict"] or "")
            assert row[3] == f"{figures['sqnr_db']:.1f}" and row[4] == "–"
            assert row[5] == "" and row[6] == f"{figures['size_ratio']:.2f}"
            assert ("Save model" in row[7]) == (one["state"] == "succeeded")
        frame = page.find("iframe")
        page.call("POST", "/frame", {"id": {webdriver.ELEMENT: frame}})
        try:
            assert page.until("document.querySelectorAll('circle').length") == 2
            # A point leads to its row.
            page.run("document.querySelectorAll('svg a')[1].dispatchEvent(new MouseEvent('click', "
                     "{bubbles: true, cancelable: true}))")
            page.until("document.querySelector('tr.pointed')?.cells[0].textContent === 'onnxruntime'")
        finally:
            page.call("POST", "/frame", {"id": None})
        # A row leads to the report of its target.
        page.run("document.querySelector('#targets a').click()")
        page.until(f"location.hash === '#/job/' + arguments[0] && document.querySelector('iframe')",
                   document["targets"][0]["job"])
        # The list has one row, with both targets, and not one to compare with another.
        go(page, "jobs")
        text = page.until("[...document.querySelectorAll('tbody tr')].filter(row => row.innerHTML"
                          ".includes(arguments[0])).map(row => row.cells[2].textContent)[0]", job)
        assert text == "tensorrt, onnxruntime"
        assert page.run("return document.body.innerHTML").find(document["targets"][0]["job"]) < 0
        # To run it again takes its spec with it, whose plan is that of the first target.
        go(page, f"new/{job}")
        page.until("document.querySelector('#plan-summary')")
        assert json.loads(page.run("return document.querySelector('#spec').value")) == SPEC
