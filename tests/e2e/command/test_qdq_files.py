# SPDX-License-Identifier: Apache-2.0
"""The command qdq leaves other files alone, whatever happens, and its own output whole.
"""

import json
import os
import signal
import subprocess

import onnx
import pytest
from onnx import TensorProto, helper

import judge
from service import DATA, FEW_SAMPLES, INSTALLED, eventually
from test_qdq import last_line

RESNET = DATA / "glyph_resnet.onnx"
QDQ = INSTALLED / "bin" / "qdq"


def qdq(*arguments, cwd, **environment):
    return subprocess.run([QDQ, *map(str, arguments)], cwd=cwd, timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, **environment})


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path, number):
    process = subprocess.Popen(
        [QDQ, "quantize", DATA / "glyph_vit.onnx", "--calibration", FEW_SAMPLES,
         "-o", "out.onnx", "--report", "report.json"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    found = eventually(lambda: names(tmp_path), every=0.001)
    assert all(".tmp" in name for name in found)
    process.send_signal(number)
    assert process.wait(60) == -number
    assert names(tmp_path) == []


def test_ranges_need_no_runtime(tmp_path):
    """The ranges of a report, given in a spec, make the same Q/DQ pairs without ONNX
    Runtime; a stage that has to run the model says that the runtime is missing."""
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", "a.onnx",
               "--report", "report.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    spec = {"calibration": {"ranges": report["tensors"]}, "evaluate": False}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    nowhere = {"QDQD_ENGINE_RUNTIME": "/nonexistent/libonnxruntime.so"}
    done = qdq("quantize", RESNET, "--spec", "spec.json", "-o", "b.onnx", cwd=tmp_path,
               **nowhere)
    assert done.returncode == 0, done.stderr
    a, b = (judge.load((tmp_path / name).read_bytes()) for name in ("a.onnx", "b.onnx"))
    assert a.graph == b.graph
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", "c.onnx",
               cwd=tmp_path, **nowhere)
    assert done.returncode == 1
    assert "runtime_missing" in last_line(done)
    assert "/nonexistent/libonnxruntime.so" in last_line(done)


def test_outputs_that_cannot_be(tmp_path):
    (tmp_path / "net.onnx").write_bytes(RESNET.read_bytes())
    (tmp_path / "folder").mkdir()
    before = names(tmp_path)
    for arguments in (["-o", "net.onnx"], ["-o", "folder"], ["-o", "no/where.onnx"],
                      ["-o", "/dev/null"], ["-o", "o.onnx", "--report", "folder"]):
        done = qdq("quantize", "net.onnx", "--calibration", FEW_SAMPLES, *arguments,
                   cwd=tmp_path)
        assert done.returncode == 1, arguments
        assert arguments[-1] in last_line(done)
        assert names(tmp_path) == before
    assert (tmp_path / "net.onnx").read_bytes() == RESNET.read_bytes()


@pytest.mark.parametrize("place", ["r.json", "sub/../r.json", "link"])
def test_a_page_is_not_written_over_its_report(tmp_path, place):
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("r.json")
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", "o", "--report", "r.json",
               cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before = (tmp_path / "r.json").read_bytes()
    done = qdq("report", "r.json", "-o", place, cwd=tmp_path)
    assert done.returncode == 1 and "the report itself" in last_line(done)
    assert (tmp_path / "r.json").read_bytes() == before and (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("options,place,why", [
    (["-o", "a", "--report", "a"], "a", "two files"),
    (["-o", "a", "--html", "sub/../a"], "sub/../a", "two files"),
    (["-o", "a", "--report", "b", "--html", "b"], "b", "two files"),
    (["-o", "a", "--report", "m.onnx"], "m.onnx", "the model itself"),
    (["-o", "d.npz"], "d.npz", "is read"), (["-o", "a", "--html", "s.json"], "s.json", "is read")])
def test_no_file_is_written_over_another_one(tmp_path, options, place, why):
    (tmp_path / "sub").mkdir()
    for name, data in (("m.onnx", RESNET), ("d.npz", FEW_SAMPLES)):
        (tmp_path / name).write_bytes(data.read_bytes())
    (tmp_path / "s.json").write_text("{}")
    before = {name: (tmp_path / name).read_bytes() for name in ("m.onnx", "d.npz", "s.json")}
    done = qdq("quantize", "m.onnx", "--calibration", "d.npz", "--spec", "s.json", *options,
               cwd=tmp_path)
    assert done.returncode == 1
    assert place in last_line(done) and why in last_line(done)
    assert names(tmp_path) == [*sorted(before), "sub"]
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_closed_standard_files_get_no_place_of_their_own(tmp_path):
    """A file that is opened where standard output was closed would get what is printed."""
    command = f"""exec {QDQ} quantize {RESNET} --calibration {FEW_SAMPLES} -o out.onnx"""
    plain = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True)
    assert plain.returncode == 0
    expected = (tmp_path / "out.onnx").read_bytes()
    (tmp_path / "out.onnx").unlink()
    closed = subprocess.run(["sh", "-c", command + " <&- >&- 2>&-"], cwd=tmp_path)
    assert closed.returncode == 1  # as the summary could not be printed
    assert names(tmp_path) == ["out.onnx"]
    assert (tmp_path / "out.onnx").read_bytes() == expected


def test_a_file_beyond_the_limit_of_the_shell(tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 100; exec {QDQ} quantize {RESNET} --calibration {FEW_SAMPLES} "
         "-o out.onnx"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "File too large" in last_line(done)
    assert names(tmp_path) == []


def test_inputs_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        for arguments in (["info", path],
                          ["quantize", RESNET, "-o", "o", "--calibration", path]):
            done = qdq(*arguments, cwd=tmp_path)
            assert done.returncode == 1
            # a folder may hold images, or a decoder
            said = ("not a regular file" if path != tmp_path else
                    "hold images" if arguments[0] == "quantize" else "without genai_config.json")
            assert said in last_line(done)
    for path in (tmp_path, "/dev/zero"):
        done = qdq("plan", RESNET, "--spec", path, cwd=tmp_path)
        assert done.returncode == 1
        assert str(path) in last_line(done)


def test_a_spec_comes_through_a_pipe(tmp_path):
    spec = '{"mode": "partial", "layers": [{"class": "Dense"}]}'
    done = subprocess.run([QDQ, "plan", RESNET, "--json", "--spec", "-"], input=spec,
                          capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["summary"]["quantized_layers"] == 1
    done = subprocess.run(["bash", "-c", f"{QDQ} plan {RESNET} --json --spec "
                           f"<(echo '{spec}')"], capture_output=True, text=True,
                          timeout=60)
    assert json.loads(done.stdout)["summary"]["quantized_layers"] == 1


def test_permissions_follow_the_umask(tmp_path):
    done = subprocess.run(
        ["sh", "-c", 'umask 027 && exec "$@"', "sh", QDQ, "quantize", RESNET,
         "--calibration", FEW_SAMPLES, "-o", "out.onnx", "--report", "report.json"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name in ("out.onnx", "report.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("command", [["plan", "--json"], ["plan", "--all"], ["info"]])
def test_standard_output_that_is_full(command):
    """A write error is reported whether the buffer fills before the end or only then."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([QDQ, *command, RESNET], stdout=full,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, timeout=120)
    assert done.returncode == 1
    assert "standard output" in last_line(done)


def test_names_cannot_steer_the_terminal(tmp_path):
    """Control characters in a model's names do not reach a terminal, and do not break the
    JSON."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "evil\x1b[2J\rname")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g\x07", [value("x", TensorProto.FLOAT, ["b\x1b", 2])],
        [value("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("w", TensorProto.FLOAT, [2, 1], [1, 2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    onnx.save(model, tmp_path / "m.onnx")
    for command in ("plan", "info"):
        done = qdq(command, "m.onnx", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not set("\x1b\x07\r") & set(done.stdout + done.stderr)
        as_json = qdq(command, "m.onnx", "--json", cwd=tmp_path)
        assert not set("\x1b\x07\r") & set(as_json.stdout)
        json.loads(as_json.stdout)
    layers = json.loads(qdq("plan", "m.onnx", "--json", cwd=tmp_path).stdout)["layers"]
    assert layers[0]["name"] == "evil\x1b[2J\rname"


def test_nothing_is_written_at_home(tmp_path):
    """ONNX Runtime's wheel would store an identifier of the machine there, if its
    telemetry were on."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    unset = {k: v for k, v in os.environ.items()
             if not k.startswith(("ORT_", "XDG_")) and k != "HOME"}
    done = subprocess.run([QDQ, "quantize", RESNET, "--calibration", FEW_SAMPLES,
                           "-o", "out.onnx"], cwd=here, env={**unset, "HOME": str(home)},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert names(here) == ["out.onnx"]
    assert {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_dir()} <= {
        ".cache", ".cache/qdq", ".cache/qdq/digests", ".cache/qdq/observations", ".cache/qdq/times"}


def test_evaluation_that_was_asked_for_needs_data(tmp_path):
    done = qdq("quantize", RESNET, "--calibration", FEW_SAMPLES, "-o", "a.onnx",
               "--report", "report.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    spec = {"calibration": {"ranges": report["tensors"]}, "evaluate": True}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    done = qdq("quantize", RESNET, "--spec", "spec.json", "-o", "b.onnx", cwd=tmp_path)
    assert done.returncode == 1
    assert "no_calibration" in last_line(done) and "leave evaluate" in last_line(done)
