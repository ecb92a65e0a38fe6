# SPDX-License-Identifier: Apache-2.0
"""Chromium, driven through the WebDriver protocol of Debian's chromedriver."""

import base64
import importlib.resources
import json
import re
import shutil
import subprocess
import tempfile

import pytest
import requests

from service import eventually

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-extensions", "--no-proxy-server",
             "--window-size=1100,1400"]

# Returns the contrast of each text with its background, and the text.
CONTRASTS = """
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => {
    v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const back = (element) => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
return Array.from(document.querySelectorAll("h1, h2, p, dt, dd, small, th, td, code, a, button, label, li"), (e) => {
  const [low, high] = [light(getComputedStyle(e).color), light(back(e))].sort((a, b) => a - b);
  return [(high + 0.05) / (low + 0.05), e.textContent];
});
"""


class Browser:
    """One browser with one window."""

    def __init__(self):
        programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
        if not all(programs):
            pytest.skip("chromium and chromedriver are not here: apt install chromium-driver")
        self.folder = tempfile.TemporaryDirectory(prefix="qdqd-chromium")
        self.driver = subprocess.Popen([programs[1], "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            found = re.search(r"successfully on port (\d+)", line)
            if found:
                break
        self.url = f"http://127.0.0.1:{found[1]}/session"
        self.http = requests.Session()
        self.http.trust_env = False
        answer = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"binary": programs[0], "args": [
                *ARGUMENTS, f"--user-data-dir={self.folder.name}"]}}}})
        self.url += "/" + answer["sessionId"]

    def close(self):
        self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.folder.cleanup()

    def call(self, method, path, body=None):
        answer = self.http.request(method, self.url + path, json=body, timeout=60)
        value = answer.json()["value"]
        assert answer.status_code == 200, value
        return value

    def get(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *args):
        """Runs a script in the page and returns its value; an element is its id."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def devtools(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def find(self, selector):
        return self.call("POST", "/element",
                         {"using": "css selector", "value": selector})[ELEMENT]

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def click(self, selector):
        """Presses an element as a user does: it has to be visible and not covered."""
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def contrasts(self):
        """Returns the contrast of each visible text with its background, and the text."""
        return self.run(CONTRASTS)

    def violations(self):
        """Returns what axe finds wrong for people who cannot see or use a mouse: id, impact, and
        the elements."""
        source = importlib.resources.files("axe_core_python") / "axe.min.js"
        self.run(source.read_text() + """;
            window.found = null;
            axe.run(document, {resultTypes: ["violations"], iframes: false}).then(({violations}) => {
              window.found = {rows: violations.map((row) =>
                [row.id, row.impact, row.nodes.map((node) => node.html)])};
            }, (error) => { window.found = {rows: [String(error)]}; });""")
        return self.until("window.found")["rows"]

    def until(self, expression, *args):
        """Waits until an expression of JavaScript is true, and returns its value."""
        try:
            return eventually(lambda: self.run(f"return {expression}", *args))
        except AssertionError:
            print(self.run("return document.body.innerText"))
            raise

    def console(self):
        """Returns what the console has got since the last call."""
        return [row["message"] for row in self.call("POST", "/se/log", {"type": "browser"})]

    def requested(self):
        """Returns the addresses that pages requested since the last call. The browser's own pages,
        such as that of a new tab, may still be loading: they do not count."""
        rows = self.call("POST", "/se/log", {"type": "performance"})
        events = [json.loads(row["message"])["message"] for row in rows]
        return [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"
                and not event["params"]["documentURL"].startswith("chrome")]

    def picture(self):
        """Returns a picture of the window as PNG."""
        return base64.b64decode(self.call("GET", "/screenshot"))
