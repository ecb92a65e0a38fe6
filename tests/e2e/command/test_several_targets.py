# SPDX-License-Identifier: Apache-2.0
"""qdq quantize with several targets: each result is the one of a run for its target alone."""

import json
import subprocess

import pytest

from service import DATA, FEW_SAMPLES, INSTALLED

RESNET = DATA / "glyph_resnet.onnx"
WORDS = ["--calibration", FEW_SAMPLES, "--recipe", "none"]
TARGETS = ["tensorrt", "onnxruntime", "openvino", "qnn"]


def qdq(*words, cwd, text=None):
    return subprocess.run([INSTALLED / "bin" / "qdq", *map(str, words)], cwd=cwd, input=text,
                          capture_output=True, text=True, timeout=300)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def without_times(report):
    """The parts of a report that are the same in each run."""
    return {name: report[name] for name in ("spec", "layers", "gates", "edges")}


def test_the_bytes_are_those_of_single_runs(tmp_path):
    """With external data, whose name in the model is that of its own file."""
    words = [*WORDS, "--set", "output.external_data=always"]
    done = qdq("quantize", RESNET, "--set", f"targets={json.dumps(TARGETS)}", *words, "-o",
               "r.onnx", "--report", "r.json", "--html", "r.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names_in(tmp_path) == sorted(
        ["r.html", *(f"r.{target}.{end}" for target in TARGETS
                     for end in ("onnx", "onnx.data", "json", "html"))])
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == TARGETS
    page = (tmp_path / "r.html").read_text()
    assert page.count("<circle") == len(TARGETS)
    for target in TARGETS:
        alone = tmp_path / target
        alone.mkdir()
        one = qdq("quantize", RESNET, "--target", target, *words, "-o", f"r.{target}.onnx",
                  "--report", f"r.{target}.json", cwd=alone)
        assert one.returncode == 0, one.stderr
        for end in ("onnx", "onnx.data"):
            assert ((tmp_path / f"r.{target}.{end}").read_bytes()
                    == (alone / f"r.{target}.{end}").read_bytes()), (target, end)
        reports = [json.loads((folder / f"r.{target}.json").read_text())
                   for folder in (tmp_path, alone)]
        assert without_times(reports[0]) == without_times(reports[1])
        assert reports[0]["spec"]["target"] == target and "targets" not in reports[0]["spec"]
        # The frozen spec gives the same bytes again.
        (alone / "frozen.json").write_text(json.dumps(reports[0]["spec"]))
        again = qdq("quantize", RESNET, "--spec", "frozen.json", "--calibration", FEW_SAMPLES, "-o",
                    f"r.{target}.onnx", cwd=alone)
        assert again.returncode == 0, again.stderr
        assert ((tmp_path / f"r.{target}.onnx.data").read_bytes()
                == (alone / f"r.{target}.onnx.data").read_bytes())


@pytest.mark.shares_daemon
@pytest.mark.parametrize("far", [False, True], ids=["here", "service"])
def test_ways_to_name_them(daemon, tmp_path, far):
    before = ["--url", daemon.url] if far else []
    made = []
    for name, words, text in (
            ("list", ["--target", "tensorrt,onnxruntime"], None),
            ("file", ["--spec", "-"], json.dumps({"targets": ["tensorrt", "onnxruntime"]})),
            ("both", ["--spec", "-", "--target", "tensorrt,onnxruntime"],
             json.dumps({"targets": ["tensorrt", "onnxruntime"]}))):
        folder = tmp_path / name
        folder.mkdir()
        done = qdq(*before, "quantize", RESNET, *WORDS, *words, "-o", "r", cwd=folder, text=text)
        assert done.returncode == 0, done.stderr
        assert names_in(folder) == ["r.onnxruntime.onnx", "r.tensorrt.onnx"]
        made.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert made[0] == made[1] == made[2]


def test_a_target_that_misses_its_gate(tmp_path):
    """The others have their results, and the one that missed has its report."""
    done = qdq("quantize", RESNET, *WORDS, "--target", "tensorrt,onnxruntime", "--accept",
               "max_size_ratio=0.5", "-o", "r.onnx", "--report", "r.json", "--html", "r.html",
               cwd=tmp_path)
    reports = {target: json.loads((tmp_path / f"r.{target}.json").read_text())
               for target in ("tensorrt", "onnxruntime")}
    missed = {target for target, report in reports.items()
              if not all(gate["met"] for gate in report["gates"])}
    assert missed == {"tensorrt"}, {target: report["gates"] for target, report in reports.items()}
    assert done.returncode == 1
    assert "accuracy: " in done.stderr and "no result for target tensorrt" in done.stderr
    assert names_in(tmp_path) == ["r.html", "r.onnxruntime.html", "r.onnxruntime.json",
                                  "r.onnxruntime.onnx", "r.tensorrt.html", "r.tensorrt.json"]
    assert (tmp_path / "r.html").read_text().count("<circle") == 2


@pytest.mark.parametrize("words, said", [
    (["--set", 'targets=["qnn"]', "--target", "qnn"], "both target and targets"),
    (["--target", "tensorrt,openvin"], 'did you mean "openvino"? (/targets/1)'),
    (["--target", "tensorrt,tensorrt"], "as targets[0] is: name each target once (/targets/1)"),
    (["--target", "tensorrt,"], 'not "" (/targets/1)'),
    (["--target", 'tensorrt,"'], "--target: the value is neither JSON nor a word"),
    (["--set", "targets=[]"], "targets is empty"),
    (["--set", "targets=tensorrt"], "an array of names, not a string"),
    (["--target", "qnn,openvino", "--set", "host=v73"], "with target openvino: the target"),
    (["--target", "tensorrt,qnn", "--html", "m.tensorrt.onnx"], "named for two files"),
    (["--target", "tensorrt,qnn", "--html", "m.onnx"], "the model itself"),
])
def test_what_is_refused(tmp_path, words, said):
    (tmp_path / "m.onnx").write_bytes(RESNET.read_bytes())
    done = qdq("quantize", "m.onnx", *words, "-o", "m.onnx", cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert names_in(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_commands_of_one_target(tmp_path, command):
    words = ["--targets", "qnn"] if command == "compare" else []
    done = qdq(command, RESNET, "--set", 'targets=["tensorrt","qnn"]', *words, cwd=tmp_path)
    assert done.returncode == 1
    assert ("both target and targets" if words else "qdq quantize take several") in done.stderr
