# SPDX-License-Identifier: Apache-2.0
"""The default of target onnxruntime goes by times that are measured and kept.

No test goes by how fast a result is here: those that are about the choice write the times that it
is made by (engine/stages/attempt/kept_times.h)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from kept_times import kept_file, rewrite, rows, write
from service import CALIBRATION, DATA, QUANTIZE

MODEL = DATA / "glyph_resnet.onnx"


def quantize(folder, model=MODEL, data=CALIBRATION, cache="cache", **spec):
    """Returns the report and the model."""
    (folder / "spec.json").write_text(json.dumps({"target": "onnxruntime", **spec}))
    command = [*QUANTIZE, model, "--spec", "spec.json", "-o", "out.onnx", "--report", "report.json"]
    done = subprocess.run([*command, *(["--calibration", data] if data else [])], cwd=folder,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder / cache)},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "report.json").read_text()), (folder / "out.onnx").read_bytes()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with the times of a job, its report and its result."""
    folder = tmp_path_factory.mktemp("measured")
    report, result = quantize(folder)
    return kept_file(folder / "cache"), report, result


@pytest.fixture
def kept(tmp_path, measured):
    """The file of times in the cache folder of this test."""
    path, _, _ = measured
    folder = tmp_path / "cache/qdq/times"
    folder.mkdir(parents=True)
    (folder / path.name).write_bytes(path.read_bytes())
    return folder / path.name


def chosen(report):
    one, = (step for step in report["recipe"] if step["kept"])
    return one["step"]


def test_the_same_times_give_the_same_bytes(tmp_path, kept, measured):
    _, first, result = measured
    before = kept.read_bytes()
    report, again = quantize(tmp_path)
    assert (first["costs"], report["costs"]) == ("measured", "kept")
    assert again == result and report["recipe"] == first["recipe"]
    assert kept.read_bytes() == before


@pytest.mark.parametrize("integers, rules, wanted", [
    (0.5, 0.6, "integers"),
    (0.6, 0.5, "rules"),
    (0.5, 0.505, "rules"),  # as fast, and more accurate
    (0.99, 0.985, "unquantized"),
    (1.5, 0.97, "rules"),
])
def test_the_choice_goes_by_the_times(tmp_path, kept, integers, rules, wanted):
    rewrite(kept, integers, rules)
    report, _ = quantize(tmp_path)
    assert report["recipe"][0]["latency_ratio"] == integers
    assert report["recipe"][1]["latency_ratio"] == rules
    assert report["costs"] == "kept" and chosen(report) == wanted
    assert (report["summary"]["verdict"] is None) == (wanted == "unquantized")


def test_integers_that_are_only_slower_are_told_as_such(tmp_path, kept):
    rewrite(kept, 1.5, 1.2)
    report, _ = quantize(tmp_path)
    assert chosen(report) == "unquantized"
    [said] = [w["detail"] for w in report["warnings"] if w["code"] == "nothing_to_quantize"]
    assert "is not faster" in said and "goal" not in said


@pytest.mark.parametrize("integers, rules, wanted", [
    (0.5, 0.505, "rules"),  # 1 % of time is noise, and what is left in float more accurate
    (0.5, 0.6, "integers"),
])
def test_accuracy_counts_where_no_placement_is_fast_enough(tmp_path, kept, integers, rules, wanted):
    rewrite(kept, integers, rules)
    report, _ = quantize(tmp_path, recipe={"max_latency_ratio": 0.01})
    db = {step["step"]: step["sqnr_db"] for step in report["recipe"]}
    assert db["rules"] > db["integers"] + 1 and db["integers"] > 25
    assert db["start"] == pytest.approx(db[wanted], abs=.01)


def test_a_layer_that_is_slow_in_integers_stays_in_float(tmp_path, kept):
    """The times of kernels say that one Conv takes nearly all of the time in integers. The placement
    that follows is measured, and chosen when its time is written to be short."""
    head, body = rows(kept)
    ratios, at = [line.split()[1] for line in body if line.startswith("ratio ")], []
    traces = [i for i, line in enumerate(body) if line.startswith("trace ")]
    convs = [line.split()[-1] for line in body[traces[1]:] if " QLinearConv " in line]
    slow = convs[len(convs) // 2]
    for trace, ms in zip(traces, ("1", "0.01")):
        part = body[trace:trace + 1 + int(body[trace].split()[2])]
        at += [part[0]] + [" ".join([*line.split()[:2], "100" if line.split()[-1] == slow and ms != "1" else ms,
                                     *line.split()[3:]]) for line in part[1:]]
    given = [f"ratio {ratios[0]} 0.9", f"ratio {ratios[0]} 0.9", f"ratio {ratios[1]} 0.95"]
    write(kept, [*head, *given, *at])
    first, _ = quantize(tmp_path)
    assert first["costs"] == "measured"
    cut = next(step for step in first["recipe"] if step["step"] == "cut")
    head, body = rows(kept)
    new = [line.split()[1] for line in body if line.startswith("ratio ") and line.split()[1] not in ratios[:2]]
    write(kept, [*head, *given, *(f"ratio {new[0]} 0.1" for _ in range(2)), *at])
    report, _ = quantize(tmp_path)
    assert chosen(report) == "cut"
    names = [name for entry in cut["spec"]["layers"] for name in entry["name"]]
    left = {layer["name"] for layer in report["layers"] if not layer["quantized_inputs"]}
    assert names and set(names) <= left
    assert any(slow.startswith(name) or name in slow for name in names)


@pytest.mark.parametrize("integers, rules, wanted", [(0.3, 0.9, "rules"), (0.3, 0.99, "unquantized")])
def test_what_is_too_noisy_is_not_chosen(tmp_path, integers, rules, wanted):
    """All in integers, the net with squeeze-and-excitation has less than 25 dB."""
    quantize(tmp_path, DATA / "glyph_se.onnx")
    rewrite(kept_file(tmp_path / "cache"), integers, rules)
    report, _ = quantize(tmp_path, DATA / "glyph_se.onnx")
    assert report["recipe"][0]["sqnr_db"] < 25 <= report["recipe"][1]["sqnr_db"]
    assert report["costs"] == "kept" and chosen(report) == wanted


@pytest.mark.parametrize("damage", [
    lambda text: b"",
    lambda text: text[:len(text) // 2],
    lambda text: text[:-1],
    lambda text: text.replace(b"ratio ", b"ratio X", 1),
    lambda text: text[:100] + bytes([text[100] ^ 1]) + text[101:],
    lambda text: bytes(range(256)) * 64,
    lambda text: b"\0" * (9 << 20),
], ids=["empty", "half", "cut", "key", "bit", "noise", "large"])
def test_a_damaged_file_counts_as_empty(tmp_path, kept, damage):
    kept.write_bytes(damage(kept.read_bytes()))
    report, _ = quantize(tmp_path)
    assert report["costs"] == "measured"
    assert quantize(tmp_path)[0]["costs"] == "kept"


@pytest.mark.parametrize("line", [
    "ratio 0123456789abcdef nan", "ratio 0123456789abcdef -1", "ratio 0123456789abcdef 0",
    "ratio 0123456789abcde 1", "ratio 0123456789abcdef 1 2", "ratio", "time 0123456789abcdef 1",
    "trace 0123456789abcdef 1e300", "trace 0123456789abcdef 2.5", "trace 0123456789abcdef 100001",
    "kernel 0 1 1 Conv a", "trace 0123456789abcdef 1\nkernel 9 1 1 Conv a",
    "trace 0123456789abcdef 1\nkernel 0 1 1 Conv %0G", "trace 0123456789abcdef 1\nkernel 0 1 1 Conv %00",
    "trace 0123456789abcdef 1\nkernel 0 1 1 Conv",
    "numbers 0123456789abcdef 60001", "numbers 0123456789abcdef 1\n1 2", "numbers 0123456789abcdef 1\n",
    "numbers 0123456789abcdef 1.5\n1", "words 0123456789abcdef 1\n%0G", "words 0123456789abcdef 1001",
])
def test_rows_in_another_form_make_the_file_count_as_empty(tmp_path, kept, line):
    head, body = rows(kept)
    write(kept, [*head, line, *body])
    assert quantize(tmp_path)[0]["costs"] == "measured"


def test_times_of_another_processor_are_not_used(tmp_path, kept):
    head, body = rows(kept)
    write(kept, ["processor another one" if line.startswith("processor ") else line for line in head] + body)
    assert quantize(tmp_path)[0]["costs"] == "measured"


def test_the_folder_is_bounded(tmp_path, kept):
    for i in range(300):
        (kept.parent / f"{i:064x}").write_bytes(b"")
        os.utime(kept.parent / f"{i:064x}", (i, i))
    kept.write_bytes(b"")
    assert quantize(tmp_path)[0]["costs"] == "measured"
    left = {path.name for path in kept.parent.iterdir()}
    assert len(left) == 200 and kept.name in left and f"{299:064x}" in left and f"{0:064x}" not in left


def test_a_folder_that_cannot_be_made_is_no_failure(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    report, _ = quantize(tmp_path, cache="file")
    assert report["costs"] == "measured"


def test_the_rules_decide_where_nothing_can_be_measured(tmp_path):
    other = "avx2" if "avx512_vnni" in Path("/proc/cpuinfo").read_text() else "vnni"
    for spec, data in (({"host": other}, CALIBRATION), ({"calibration": {"random_samples": 4}}, None)):
        report, first = quantize(tmp_path, data=data, **spec)
        assert report["costs"] == "estimated"
        assert quantize(tmp_path, data=data, **spec)[1] == first
    for path in (tmp_path / "cache/qdq/times").iterdir():
        assert not [line for line in rows(path)[1] if line.startswith(("ratio ", "trace "))]


@pytest.mark.parametrize("spec", [{"recipe": "none"}, {"weights": {"dtype": "int4"}, "activations": "none"},
                                  {"activations": {"dtype": "int16"}}, {"target": "tensorrt"}])
def test_what_does_not_go_by_times_says_nothing_of_them(tmp_path, spec):
    assert quantize(tmp_path, **spec)[0]["costs"] is None


def test_a_service_keeps_times(daemon):
    model, data = (daemon.upload(kind, path) for kind, path in (("models", MODEL), ("datasets", CALIBRATION)))
    reports, results = [], []
    for fresh in (False, False, True):
        job = daemon.submit(model=model, calibration=data, spec={"target": "onnxruntime"}, fresh=fresh)
        daemon.succeeded(job)
        reports.append(daemon.report(job))
        results.append(daemon.result(job))
    assert [report["costs"] for report in reports] == ["measured", "kept", "measured"]
    assert results[0] == results[1] and reports[0]["recipe"] == reports[1]["recipe"]


def test_a_frozen_spec_has_the_placement(tmp_path, daemon):
    model, data = (daemon.upload(kind, path) for kind, path in (("models", MODEL), ("datasets", CALIBRATION)))
    job = daemon.submit(model=model, calibration=data, spec={"target": "onnxruntime"})
    daemon.succeeded(job)
    frozen = daemon.get(f"/v1/jobs/{job}/spec").json()
    assert frozen["recipe"] == "none"
    again = daemon.submit(model=model, spec=frozen)
    daemon.succeeded(again)
    assert daemon.result(again) == daemon.result(job) and daemon.report(again)["costs"] is None
