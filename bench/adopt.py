# SPDX-License-Identifier: Apache-2.0
"""adopt.py FOLDER [ROUNDS]: one task by qdq and its peers, in lines and seconds, from nothing: 1,000 photos
in folders by class and a model of ONNX are there, and a model of int8 with its SQNR is wanted.

Each has a Python of its own in FOLDER, into which pip installs what its users install; one that is
there already is used again, and its installation is not timed. All calibrate on every eighth photo.
qdq makes results for two targets in its one command, and judges each as its runtime runs it; the
peers' programs, in adopt/, make one and compare it with float on 125 other photos. The time of a
program includes its imports, and is the least of ROUNDS (3)."""

import os
import resource
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from common import ROOT, machine, table

PROGRAMS = Path(__file__).parent / "adopt"
SCALE = 'preprocess={"input":{"scale":0.00392156862745098}}'
# Each row has a name, what pip installs, the files that a user writes, and the commands behind that.
PEERS = [
    ("quantize_static", ["onnxruntime", "onnx", "pillow", "sympy"], ["quantize_static_photos.py"],
     [["python", "quantize_static_photos.py"]]),
    ("nncf", ["nncf", "openvino", "onnx", "pillow", "onnxruntime"], ["nncf_photos.py"],
     [["python", "nncf_photos.py"]]),
    ("olive", ["olive-ai", "onnxruntime", "pillow", "requests"],
     ["olive.json", "olive_data.py", "olive_judge.py"],
     [["olive", "run", "--config", "olive.json"], ["python", "olive_judge.py"]]),
]


def png(pixels):
    """Returns a file of gray pixels."""
    def chunk(name, data):
        return (len(data).to_bytes(4, "big") + name + data
                + zlib.crc32(name + data).to_bytes(4, "big"))
    height, width = pixels.shape
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def make_inputs(folder):
    """Writes what the user has. qdq calibrates on a folder of its own, which is a part of the photos."""
    data = np.load(ROOT / "tests" / "data" / "test_1000.npz")
    paths = []
    for i, (image, label) in enumerate(zip(data["images"], data["labels"])):
        paths.append(folder / "photos" / f"{label:02}" / f"{i:04}.png")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_bytes(png(image[0]))
    for path in sorted(paths)[::8]:
        part = folder / "eighth" / path.relative_to(folder / "photos")
        part.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, part)
    shutil.copy(ROOT / "tests" / "data" / "glyph_resnet.onnx", folder / "net.onnx")


def install(folder, name, packages):
    """Returns the seconds of pip, or None where the Python is there already."""
    if (folder / name).exists():
        return None
    subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
    begun = time.monotonic()
    subprocess.run([folder / name / "bin" / "pip", "install", "--quiet", *packages], check=True)
    return time.monotonic() - begun


def seconds_of(folder, name, commands, rounds):
    """Returns the least seconds and seconds of processors that the commands take without anything that
    an earlier run has kept, and the lines that the last of them prints."""
    least, text = [float("inf")] * 2, ""
    for _ in range(rounds):
        for kept in ("olive", "cache", "kept"):
            shutil.rmtree(folder / "work" / kept, ignore_errors=True)
        begun, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        for program, *words in commands:
            done = subprocess.run([folder / name / "bin" / program, *words], cwd=folder / "work",
                                  env={**os.environ, "XDG_CACHE_HOME": str(folder / "work" / "kept")},
                                  capture_output=True, text=True, check=True)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = (time.monotonic() - begun,
                now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
        least, text = [min(pair) for pair in zip(least, took)], done.stdout
    return least, text


def main(folder, rounds=3):
    folder = Path(folder).resolve()
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    make_inputs(work)
    for path in PROGRAMS.iterdir():
        shutil.copy(path, work)
    (wheel,) = (ROOT / "build").glob("qdqd-*-manylinux*.whl")
    qdq = ("qdqd", [f"{wheel}[onnxruntime]", "openvino"], [],
           [["qdq", "compare", "net.onnx", "--targets", "onnxruntime,openvino", "--calibration", "eighth",
             "--set", SCALE]])
    rows = []
    for name, packages, files, commands in [qdq, *PEERS]:
        installed = install(folder, name, packages)
        size = sum(path.lstat().st_size for path in (folder / name).resolve().rglob("*"))
        least, text = seconds_of(folder, name, commands, int(rounds))
        lines = sum(1 for one in files for line in (PROGRAMS / one).read_text().splitlines()
                    if line and not line.startswith("#"))
        rows.append([name, 1 + len(commands), lines, "" if installed is None else f"{installed:.0f}",
                     f"{size / 1e6:.0f}", *(f"{one:.1f}" for one in least)])
        print(f"{name}:", *text.strip().splitlines()[-3:], sep="\n  ")
    machine()
    table("One task, from nothing",
          ["", "commands", "lines to write", "pip install (s)", "installed (MB)", "the work (s)",
           "of processors (s)"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
