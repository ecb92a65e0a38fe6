# SPDX-License-Identifier: Apache-2.0
"""The report as a page, in Chromium: it is read with and without script, and asks for nothing."""

import json

import onnx
import pytest

import nets
from service import Service

HOSTILE = "<script>alert(1)</script>"


def hostile_net():
    """Returns nets.block_net() with a layer that is called like a script."""
    model = onnx.load_from_string(nets.block_net())
    model.graph.name = "</title><img src=x onerror=alert(2)>"
    model.graph.node[0].name = HOSTILE
    model.graph.node[1].name = "\"'><b>bold</b>&amp;"
    return model.SerializeToString()


@pytest.fixture(scope="module")
def page(common, tmp_path_factory):
    """Makes the page of a job's report as the daemon sends it."""
    # One daemon serves all tests that share one.
    if not common:
        common.append(Service(tmp_path_factory.mktemp("common")).start())
    daemon = common[0]
    job = daemon.submit(model=daemon.upload("models", hostile_net()),
                        calibration=daemon.upload("datasets", nets.samples()),
                        spec={"sensitivity": {}})
    daemon.succeeded(job)
    return f"{daemon.url}/v1/jobs/{job}/report", daemon.report(job)


LAYERS = "document.querySelector('#layers table').tBodies[0].rows"


def column(browser, at):
    return browser.run(f"return Array.from({LAYERS}).filter(row => !row.hidden)"
                       ".map(row => row.cells[arguments[0]].textContent)", at)


def test_it_is_shown(browser, page):
    """Names are text, the console is clean, and nothing but the page is asked for."""
    url, report = page
    browser.console(), browser.requested()
    browser.get(url)
    assert browser.run("return document.contentType") == "text/html"
    assert browser.requested() == [url], "a browser asks for text/html and for nothing else"
    assert column(browser, 1) == [row["name"] for row in report["layers"]]
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.querySelectorAll('img, b, a').length") == 0
    assert report["model"]["name"] in browser.run("return document.title")
    assert browser.console() == []


def test_a_table_is_sorted_and_filtered(browser, page):
    url, report = page
    browser.get(url)
    names = sorted((row["name"] for row in report["layers"]), key=str.lower)
    press = "document.querySelectorAll('#layers th button')[1].click()"
    browser.run(press)
    assert column(browser, 1) == names
    browser.run(press)
    assert column(browser, 1) == names[::-1]
    assert browser.run("return document.querySelector('#layers [aria-sort]').ariaSort") == "descending"
    browser.type("#layers input", "ALERT(1")
    assert column(browser, 1) == [HOSTILE]
    assert browser.console() == []


def test_without_script_it_says_the_same(browser, page):
    url, _ = page
    browser.get(url)
    said = browser.run("return Array.from(document.querySelectorAll('td, dd, p'),"
                       " e => e.textContent)")
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.get(url)
        plain = browser.devtools("Runtime.evaluate", returnByValue=True, expression=
                                 "JSON.stringify(Array.from(document.querySelectorAll("
                                 "'td, dd, p'), e => e.textContent))")["result"]["value"]
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    assert json.loads(plain) == said


@pytest.mark.parametrize("scheme, media", [("light", ""), ("dark", ""), ("dark", "print")])
def test_it_can_be_read(browser, page, scheme, media):
    """Every text has the contrast of WCAG 2, level AA: 4.5 to 1."""
    browser.devtools("Emulation.setEmulatedMedia", media=media,
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.get(page[0])
    contrasts = browser.contrasts()
    assert browser.violations() == []
    assert len(contrasts) > 50
    assert [row for row in contrasts if row[0] < 4.5] == []
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    is_dark = scheme == "dark" and not media
    assert (background != "rgb(255, 255, 255)") == is_dark
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])


def test_parts_have_names(browser, page):
    """Regions, drawings and fields have a name for those who listen; ids are unique and headings
    leave no level out."""
    browser.get(page[0])
    nameless = browser.run(
        "return Array.from(document.querySelectorAll('[role], input, button'), e => e)"
        ".filter(e => !(e.ariaLabel || e.textContent || e.labels?.length)).length")
    assert nameless == 0
    ids = browser.run("return Array.from(document.querySelectorAll('[id]'), e => e.id)")
    assert len(ids) == len(set(ids)) > 5
    levels = browser.run("return Array.from(document.querySelectorAll('h1,h2,h3'), e => +e.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))
    hidden = browser.run("return Array.from(document.querySelectorAll('svg'))"
                         ".filter(e => e.ariaHidden !== 'true' && !e.ariaLabel).length")
    assert hidden == 0
