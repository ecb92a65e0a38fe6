# SPDX-License-Identifier: Apache-2.0
"""The Python package with an engine beside it, as tools/wheel makes it: quantize() without a
service, and the command qdq by its entry point."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from service import INSTALLED

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "tests/data/glyph_resnet.onnx"
SPEC = {"target": "onnxruntime", "recipe": "none"}


@pytest.fixture
def package(tmp_path):
    """A folder for PYTHONPATH. ONNX Runtime is the one of the Python that runs the tests."""
    shutil.copytree(ROOT / "clients/python/qdqd", tmp_path / "site/qdqd")
    engine = tmp_path / "site/qdqd/_engine"
    (engine / "bin").mkdir(parents=True)
    (engine / "bin/qdq").symlink_to(INSTALLED / "bin/qdq")
    (engine / "lib").symlink_to(INSTALLED / "lib")
    images = np.load(ROOT / "tests/data/test_1000.npz")["images"][:32] / np.float32(255)
    np.save(tmp_path / "data.npy", images.reshape(-1, 1, *images.shape[-2:]).astype(np.float32))
    return tmp_path


def run(folder, program, **environment):
    names = ("QDQD_URL", "QDQD_ENGINE_RUNTIME", "QDQD_ENGINE_OPENVINO")
    kept = {k: v for k, v in os.environ.items() if k not in names}
    return subprocess.run([sys.executable, "-c", program], cwd=folder, text=True,
                          capture_output=True,
                          env={**kept, "PYTHONPATH": str(folder / "site"), **environment})


PROGRAM = f"""
import json, numpy, qdqd
data = numpy.load("data.npy")
spec = json.loads('{json.dumps(SPEC)}')
"""


def test_the_same_bytes_as_the_command_from_every_form(package):
    (package / "spec.json").write_text(json.dumps(SPEC))
    subprocess.run([INSTALLED / "bin/qdq", "quantize", MODEL, "--spec", package / "spec.json",
                    "--calibration", package / "data.npy", "-o", package / "command.onnx"],
                   check=True, capture_output=True)
    done = run(package, PROGRAM + f"""
given = (data, "data.npy", {{"input": data}}, (sample for sample in data), open("data.npy", "rb").read())
models = ("{MODEL}", open("{MODEL}", "rb").read(), __import__("onnx").load("{MODEL}"))
made = [qdqd.quantize("{MODEL}", one, spec) for one in given]
made += [qdqd.quantize(one, data, spec) for one in models]
for i, result in enumerate(made):
    result.save(f"{{i}}.onnx")
print(made[0].verdict, made[0].summary["quantized_layers"], made[0], "<table>" in made[0]._repr_html_(),
      "<html" in made[0].html())
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in ("good", "fair") and done.stdout.rstrip().endswith("True True")
    whole = (package / "command.onnx").read_bytes()
    bodies = [(package / f"{i}.onnx").read_bytes() for i in range(8)]
    assert bodies[0] == bodies[1] == bodies[4] or len({len(b) for b in bodies}) <= 2
    import onnx
    for body in bodies:
        one, other = onnx.load_from_string(body), onnx.load_from_string(whole)
        assert one.graph == other.graph  # metadata has the digest of the data as it was sent


def test_errors_and_files_that_are_there(package):
    done = run(package, PROGRAM + f"""
for words in (("missing.onnx",), ("{MODEL}", None, {{"target": "no"}}), (17,), ("{MODEL}", data[:0])):
    try:
        qdqd.quantize(*words)
    except qdqd.Error as error:
        print(type(error).__name__, error)
open("there.onnx", "w").write("something else")
result = qdqd.quantize("{MODEL}", data, spec)
try:
    result.save("there.onnx")
except qdqd.FileError as error:
    print("kept", open("there.onnx").read())
result.save("there.onnx", force=True)
try:
    qdqd.quantize("{MODEL}", data, {{**spec, "accept": {{"min_sqnr_db": 99}}}})
except qdqd.ProblemError as error:
    print(error.code)
""")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "missing.onnx" in lines[0]
    assert lines[1].startswith("ProblemError invalid_spec")
    assert lines[2].startswith("UsageError") and lines[3].split()[0].endswith("Error")
    assert lines[4] == "kept something else" and lines[5] == "accuracy"


def test_a_service_that_is_named_is_asked(package, daemon):
    done = run(package, PROGRAM + f"""
print(qdqd.quantize("{MODEL}", data, spec))
""", QDQD_URL=daemon.url)
    assert done.returncode == 0, done.stderr
    assert "qdqd.Result " in done.stdout


def test_the_entry_point_is_the_command(package):
    done = run(package, "import sys; sys.argv[1:] = ['info', '" + str(MODEL) + "']; "
               "import qdqd._local; qdqd._local.main()")
    assert done.returncode == 0, done.stderr
    assert "Conv" in done.stdout
    shutil.rmtree(package / "site/qdqd/_engine")
    done = run(package, "import qdqd._local; qdqd._local.main()")
    assert done.returncode == 1 and "tools/wheel" in done.stderr
