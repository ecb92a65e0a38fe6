# SPDX-License-Identifier: Apache-2.0
"""pictures.py: makes the pictures of docs/start/reading-a-report.md anew, from a real run.

Run it with the Python of the tests (tools/venv) after the build; it needs Chromium."""

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import webdriver  # noqa: E402
from service import CALIBRATION, DATA, QUANTIZE, ROOT  # noqa: E402

FOLDER = ROOT / "docs" / "start" / "images"
SPEC = {"sensitivity": {}, "accept": {"min_sqnr_db": 25}}
WIDTH, SCALE = 1120, 0.7
# A picture, where it begins, and its height.
PICTURES = [("verdict", "h1", 320), ("layers", "#layers h2", 640), ("graph", "#graph h2", 560),
            ("sensitivity", "#sensitivity h2", 540), ("ranges", "#ranges h2", 560)]
TOP = "return document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY"


def main():
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        Path(folder, "spec.json").write_text(json.dumps(SPEC))
        subprocess.run([*QUANTIZE, DATA / "glyph_se.onnx", "--calibration", CALIBRATION, "--spec",
                        Path(folder, "spec.json"), "-o", Path(folder, "o.onnx"), "--html", page],
                       check=True)
        browser = webdriver.Browser()
        try:
            browser.devtools("Emulation.setDeviceMetricsOverride", width=WIDTH, height=1200,
                             deviceScaleFactor=1, mobile=False)
            browser.get(page.as_uri())
            for name, begin, height in PICTURES:
                clip = {"x": 0, "y": browser.run(TOP, begin) - 8, "width": WIDTH, "height": height,
                        "scale": SCALE}
                shot = browser.devtools("Page.captureScreenshot", format="png", clip=clip,
                                        captureBeyondViewport=True)
                (FOLDER / f"report-{name}.png").write_bytes(base64.b64decode(shot["data"]))
        finally:
            browser.close()


if __name__ == "__main__":
    main()
