# SPDX-License-Identifier: Apache-2.0
"""Calibrate once: tensors that were observed for a model and its data are not observed
again, and the result is the same to the last byte."""

import io
import json
import shutil
import subprocess
import time
from functools import lru_cache

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import contract
import nets
from service import CALIBRATION, DATA, INSTALLED, QUANTIZE, eventually

pytestmark = pytest.mark.long
METHODS = contract.range_methods()
ADDS = {"layers": [{"class": "Add"}]}
CONVS = {"mode": "partial", "layers": [{"class": "Conv2D"}]}
SIZE = [4]
FEW = 32
DENSE = {"mode": "partial", "layers": [{"class": "Dense"}]}


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def noise(n=6, seed=8):
    return np.random.default_rng(seed).normal(0, 1, [n, *nets.SHAPE]).astype(np.float32)


@lru_cache
def few_glyphs():
    """The first images of the calibration set."""
    with np.load(CALIBRATION) as arrays:
        return npz(**{name: array[:FEW] for name, array in arrays.items()})


def command(folder, model, data, spec, *more):
    """Runs `qdq quantize` and returns the result and its report."""
    folder.mkdir(exist_ok=True)
    for name, content in (("m.onnx", model), ("d.npz", data)):
        (folder / name).write_bytes(content)
    (folder / "s.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [*QUANTIZE, "m.onnx", "--spec", "s.json", "--calibration", "d.npz", "-o",
         "o.onnx", "--report", "r.json", *more],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return (folder / "o.onnx").read_bytes(), json.loads((folder / "r.json").read_text())


class Jobs:
    """Jobs of one model and one dataset, and the results of the same jobs without earlier
    observations."""

    def __init__(self, daemon, folder, model=nets.block_net, data=nets.samples):
        self.daemon, self.folder = daemon, folder
        self.files = model(), data()
        self.upload()

    def upload(self):
        self.model = self.daemon.upload("models", self.files[0])
        self.data = self.daemon.upload("datasets", self.files[1])

    def run(self, fresh=False, **spec):
        """The report, and the model's bytes with it. The job is gone then: the next one
        would have its result."""
        job = self.daemon.submit(model=self.model, calibration=self.data, spec=spec,
                                 fresh=fresh)
        self.daemon.succeeded(job)
        report = self.daemon.report(job)
        report["bytes"] = self.daemon.result(job)
        assert self.daemon.request("DELETE", f"/v1/jobs/{job}").status_code == 204
        return report

    def alone(self, **spec):
        data, report = command(self.folder, *self.files, spec)
        report["bytes"] = data
        return report


def glyphs(daemon, folder, model="glyph_resnet"):
    return Jobs(daemon, folder, (DATA / f"{model}.onnx").read_bytes,
                few_glyphs)


def counted(report):
    return report["calibration"]["inferences"], report["calibration"]["reused"]


def ranges(report):
    return {t["name"]: (t["min"], t["max"]) for t in report["tensors"]}


def same(report, fresh):
    """Expects equal reports, apart from times."""
    counts = ("inferences", "reused")
    for one in (report, fresh):
        # The daemon and the command are two programs, each with an id of its build.
        one["summary"] = {k: v for k, v in one["summary"].items() if k != "made_by"}
        one["compared"] = {k: v for k, v in one["calibration"].items() if k not in counts}
    for member in ("bytes", "compared", "tensors", "weights", "warnings", "evaluation",
                   "equalization", "summary", "spec"):
        assert report[member] == fresh[member], member


@pytest.mark.parametrize("model", ["glyph_resnet", "glyph_se"])
def test_another_method_takes_no_inference(daemon, tmp_path, model):
    jobs = glyphs(daemon, tmp_path, model)
    first = jobs.run(evaluate=False)
    assert counted(first) == (FEW, 0)
    for method in METHODS:
        spec = {"calibration": {"method": method}, "evaluate": False}
        report = jobs.run(**spec)
        assert counted(report) == (0, len(report["tensors"]))
        assert report["calibration"]["samples"] == FEW
        assert {t["samples"] for t in report["tensors"]} == {FEW}
        same(report, jobs.alone(**spec))
        print(f"{model}: {first['timings']['calibrate'] * 1000:.0f} ms, then "
              f"{report['timings']['calibrate'] * 1000:.1f} ms ({method})")


def test_another_placement_takes_no_inference(daemon, tmp_path):
    jobs = glyphs(daemon, tmp_path)
    jobs.run(evaluate=False)
    for spec in (CONVS, DENSE, {"weights": {"granularity": "tensor"}},
                 {**CONVS, "calibration": {"method": "entropy"},
                  "weights": {"storage": "dq", "method": "mse"}}):
        report = jobs.run(**spec)
        assert counted(report) == (0, len(report["tensors"]))
        same(report, jobs.alone(**spec))


@pytest.mark.parametrize("first", METHODS)
def test_whatever_method_came_first(daemon, tmp_path, first):
    """The observations of any method serve all others."""
    jobs = Jobs(daemon, tmp_path)
    calibration = {"method": first, "batch": 4}
    assert counted(jobs.run(calibration=calibration)) == (2, 0)
    for method in METHODS:
        spec = {"calibration": {**calibration, "method": method}}
        report = jobs.run(**spec)
        assert counted(report) == (0, len(report["tensors"]))
        same(report, jobs.alone(**spec))


def test_only_what_was_never_observed(daemon, tmp_path):
    """A job with pairs on further tensors observes these tensors alone."""
    jobs = glyphs(daemon, tmp_path)
    minmax = {"calibration": {"method": "minmax"}, "evaluate": False}
    before = jobs.run(**minmax)
    more = jobs.run(**minmax, **ADDS)
    assert counted(more) == (FEW, len(before["tensors"]))
    assert len(more["tensors"]) > len(before["tensors"])
    assert ranges(more).items() >= ranges(before).items()
    # The runtime fuses tensors that are not observed, which changes their rounding. So
    # the result equals that of a job alone except for the last bits.
    alone = ranges(jobs.alone(**minmax, **ADDS))
    assert set(alone) == set(ranges(more))
    for name, found in ranges(more).items():
        np.testing.assert_allclose(found, alone[name], rtol=1e-5, err_msg=name)
    again = jobs.run(**minmax, **ADDS)
    assert counted(again) == (0, len(more["tensors"]))
    assert again["bytes"] == more["bytes"]
    assert jobs.run(**minmax)["bytes"] == before["bytes"]
    print(f"{more['timings']['calibrate']:.3f} s for the Adds, then "
          f"{again['timings']['calibrate'] * 1000:.1f} ms")


def test_a_fresh_job_takes_nothing(daemon, tmp_path):
    jobs = glyphs(daemon, tmp_path)
    minmax = {"calibration": {"method": "minmax"}, "evaluate": False}
    jobs.run(**minmax, **ADDS)
    fresh = jobs.run(fresh=True, **minmax)
    assert counted(fresh) == (FEW, 0)
    same(fresh, jobs.alone(**minmax))
    # The new observations replace the old ones.
    assert counted(jobs.run(**minmax)) == (0, len(fresh["tensors"]))
    assert counted(jobs.run(**minmax, **ADDS)) == (FEW, len(fresh["tensors"]))
    for value, inferences in (("true", FEW), ("false", 0)):
        answer = daemon.post("/v1/quantize", files={
            "model": (None, jobs.model), "calibration": (None, jobs.data),
            "spec": (None, json.dumps(minmax)), "fresh": (None, value)})
        assert answer.status_code == 200, answer.text
        job = answer.headers["Location"].rsplit("/", 1)[1]
        assert counted(daemon.report(job))[0] == inferences
        assert daemon.request("DELETE", f"/v1/jobs/{job}").status_code == 204


def test_ranges_that_are_given_are_not_observed(daemon, tmp_path):
    jobs = Jobs(daemon, tmp_path)
    given = jobs.run(calibration={"ranges": {"x": [-1, 1]}})
    assert counted(given) == (6, 0)
    report = jobs.run()
    assert counted(report) == (6, len(report["tensors"]) - 1)
    assert counted(jobs.run(calibration={"ranges": {"x": [-1, 1]}})) == (
        0, len(report["tensors"]) - 1)
    frozen = jobs.run(calibration={"ranges": report["tensors"]})
    assert counted(frozen) == (0, 0)


CHANGES = {
    "max_samples": {"calibration": {"max_samples": 3}},
    "batch": {"calibration": {"batch": 2}},
    "dims": {"calibration": {"dims": {"n": 2}}},
    "on_nonfinite": {"calibration": {"on_nonfinite": "skip_sample"}},
    "equalize": {"equalize": True},
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_observed_otherwise(daemon, tmp_path, name):
    """A spec whose change affects the observed tensors observes anew, and both
    observations are kept."""
    jobs = Jobs(daemon, tmp_path)
    first = jobs.run()
    changed = jobs.run(**CHANGES[name])
    inferences, reused = counted(changed)
    assert inferences > 0 and reused == 0
    same(changed, jobs.alone(**CHANGES[name]))
    for spec, wanted in (({}, first), (CHANGES[name], changed)):
        again = jobs.run(**spec)
        assert counted(again) == (0, len(again["tensors"]))
        same(again, wanted)


def test_samples_that_are_made_up(daemon):
    model = daemon.upload("models", nets.block_net())

    def run(**calibration):
        calibration = {"random_samples": 5, "dims": {"n": 1}, **calibration}
        job = daemon.submit(model=model, spec={"calibration": calibration})
        daemon.succeeded(job)
        found = daemon.report(job), daemon.result(job)
        assert daemon.request("DELETE", f"/v1/jobs/{job}").status_code == 204
        return found

    first, data = run()
    assert counted(first) == (5, 0)
    again, same_data = run()
    assert counted(again) == (0, len(first["tensors"])) and same_data == data
    assert again["warnings"] == first["warnings"]
    assert counted(run(method="entropy")[0])[0] == 0
    for other in ({"random": {"x": [-1, 1]}}, {"random": {"x": [-2, 1]}},
                  {"random_samples": 6}):
        assert counted(run(**other)[0])[0] > 0
        assert counted(run(**other)[0])[0] == 0
    assert daemon.request("DELETE", f"/v1/models/{model}").status_code == 204
    model = daemon.upload("models", nets.block_net())
    assert counted(run()[0]) == (5, 0)


def test_samples_that_are_not_finite(daemon, tmp_path):
    values = noise(8)
    values[3, 0, 0, 0] = np.nan
    values[5, 1, 2, 3] = np.inf
    skip = {"on_nonfinite": "skip_sample"}
    jobs = Jobs(daemon, tmp_path, data=lambda: npz(x=values))
    first = jobs.run(calibration=skip)
    assert counted(first) == (8, 0) and first["calibration"]["samples"] == 6
    for method in METHODS:
        spec = {"calibration": {**skip, "method": method}}
        report = jobs.run(**spec)
        assert counted(report) == (0, len(report["tensors"]))
        assert any(w["code"] == "sample_skipped" and "3, 5" in w["detail"]
                   for w in report["warnings"])
        same(report, jobs.alone(**spec))
    # More tensors could exclude other samples, so all are observed again, or none.
    more = jobs.run(calibration=skip, **ADDS)
    assert counted(more) == (8, 0)
    same(more, jobs.alone(calibration=skip, **ADDS))
    fewer = jobs.run(calibration=skip, **CONVS)
    assert counted(fewer) == (0, len(fewer["tensors"]))
    # As an error it is reported each time.
    for _ in range(2):
        job = daemon.submit(model=jobs.model, calibration=jobs.data, spec={})
        error = daemon.ended(job)["error"]
        assert error["code"] == "nonfinite" and "sample 3" in error["detail"]


def test_warnings_of_the_data_stay(daemon, tmp_path):
    jobs = Jobs(daemon, tmp_path,
                data=lambda: npz(x=noise().astype(np.float64), other=np.ones(6)))
    jobs.run()
    report = jobs.run(calibration={"method": "minmax"})
    assert counted(report)[0] == 0
    codes = [w["code"] for w in report["warnings"]]
    assert {"float64_cast", "array_ignored"} <= set(codes)
    same(report, jobs.alone(calibration={"method": "minmax"}))


def test_evaluation_takes_the_samples_that_it_took(daemon, tmp_path):
    jobs = Jobs(daemon, tmp_path, data=lambda: npz(x=noise(20)))
    spec = {"calibration": {"max_samples": 8}, "evaluate": {"samples": 5}}
    jobs.run(**spec)
    report = jobs.run(**spec)
    assert counted(report)[0] == 0 and report["evaluation"]["samples"] == 5
    same(report, jobs.alone(**spec))


def test_a_restart_keeps_them(daemon, tmp_path):
    jobs = Jobs(daemon, tmp_path)
    jobs.run()
    daemon.kill()
    daemon.start()
    report = jobs.run(calibration={"method": "minmax"})
    assert counted(report) == (0, len(report["tensors"]))


def test_they_go_with_model_and_data(service, tmp_path):
    """Observations are deleted with their model or their dataset."""
    daemon = service(retention_leftovers=1)
    jobs = Jobs(daemon, tmp_path)
    for kind in ("models", "datasets"):
        jobs.run()
        jobs.run(**ADDS)
        ids = {"models": jobs.model, "datasets": jobs.data}
        assert daemon.request("DELETE", f"/v1/{kind}/{ids[kind]}").status_code == 204
        jobs.upload()
        assert counted(jobs.run()) == (6, 0)
        for kind_of, name in ids.items():
            daemon.request("DELETE", f"/v1/{kind_of}/{name}")
        eventually(lambda: daemon.stored_files() == [])
        jobs.upload()


def test_a_blob_that_is_damaged(daemon, tmp_path):
    jobs = Jobs(daemon, tmp_path)
    before = set(daemon.stored_files())
    first = jobs.run()
    paths = [p for p in (daemon.state / "blobs").rglob("*")
             if p.is_file() and p.name not in before
             and p.read_bytes()[:6] == b"QDQOBS"]
    assert len(paths) == 1
    data = bytearray(paths[0].read_bytes())
    data[len(data) // 2] ^= 1
    paths[0].write_bytes(data)
    report = jobs.run()
    assert counted(report) == (6, 0)
    same(report, first)
    assert counted(jobs.run())[0] == 0
    paths[0].unlink()
    assert counted(jobs.run())[0] == 6
    assert "observations_not_kept" in daemon.log.read_text()
    assert counted(jobs.run())[0] == 0


def test_a_refused_model_leaves_them(daemon, tmp_path):
    jobs = Jobs(daemon, tmp_path)
    job = daemon.submit(model=jobs.model, calibration=jobs.data,
                        spec={"accept": {"min_sqnr_db": 200}})
    assert daemon.ended(job)["error"]["code"] == "accuracy"
    assert counted(jobs.run())[0] == 0


@lru_cache
def never_reached():
    """Returns a network whose second layer gets no row from any sample."""
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *SIZE])

    random = np.random.default_rng(5)
    constants = {"w": random.normal(0, 1, [SIZE[0], SIZE[0]]).astype(np.float32),
                 "none": np.array([0]), "zero": np.array([0])}
    nodes = [helper.make_node("Gemm", ["x", "w"], ["a"], "first"),
             helper.make_node("Slice", ["a", "zero", "none", "zero"], ["rows"], "rows"),
             helper.make_node("Gemm", ["rows", "w"], ["b"], "second")]
    graph = helper.make_graph(nodes, "never", [value("x")], [value("a"), value("b")],
                              [numpy_helper.from_array(v, k)
                               for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                              ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def test_a_job_that_failed_leaves_them(daemon, tmp_path):
    """The command's job fails after calibration and leaves its observations; the next one
    observes nothing."""
    jobs = Jobs(daemon, tmp_path, never_reached,
                lambda: npz(x=np.random.default_rng(6).normal(0, 1, [9, *SIZE])
                            .astype(np.float32)))
    path = tmp_path / "o.qdqobs"
    for name, data in zip(("m.onnx", "d.npz"), jobs.files):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "refused.json").write_text(json.dumps({"accept": {"min_sqnr_db": 200}}))
    done = subprocess.run([*QUANTIZE, "m.onnx", "--calibration", "d.npz", "--spec",
                           "refused.json", "--observations", path.name], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1
    assert "qdq: accuracy: " in done.stderr
    data, report = command(tmp_path, *jobs.files, {"evaluate": False},
                           "--observations", path.name)
    assert counted(report) == (0, 2)
    assert [x["reason"] for x in report["layers"]] == ["default", "off by default",
                                                       "not observed"]


def test_a_job_in_which_no_tensor_has_elements(daemon, tmp_path):
    """It fails, and so does the next one, which finds the observations. With the range given
    there is nothing to observe."""
    jobs = Jobs(daemon, tmp_path, never_reached,
                lambda: npz(x=np.random.default_rng(6).normal(0, 1, [9, *SIZE])
                            .astype(np.float32)))
    spec = {"evaluate": False, "mode": "partial", "layers": [{"name": "second"}]}
    errors = [daemon.ended(daemon.submit(model=jobs.model, calibration=jobs.data,
                                         spec=spec))["error"] for _ in range(2)]
    assert errors[0] == errors[1] and errors[0]["code"] == "not_observed"
    assert "'rows' has no elements in any of 9 samples" in errors[0]["detail"]
    spec["calibration"] = {"ranges": {"rows": [-1, 1]}}
    report = jobs.run(**spec)
    assert counted(report) == (0, 0)
    same(report, jobs.alone(**spec))


def has_observations(daemon):
    """Returns whether a stored file has observations."""
    for path in (daemon.state / "blobs").rglob("*"):
        try:
            if path.is_file() and path.read_bytes()[:6] == b"QDQOBS":
                return True
        except FileNotFoundError:
            pass  # it was removed just now
    return False


@pytest.mark.parametrize("most", ["0", "1", "2K"])
def test_too_small_a_cache_keeps_nothing(service, tmp_path, most):
    jobs = Jobs(service(cache_observations=most, retention_leftovers=1), tmp_path)
    for _ in range(2):
        assert counted(jobs.run()) == (6, 0)
    eventually(lambda: not has_observations(jobs.daemon))


def test_the_least_recently_used_goes(service, tmp_path):
    one = service(retention_leftovers=1)
    jobs = Jobs(one, tmp_path)
    jobs.run(calibration={"max_samples": 1})
    (size,) = [p.stat().st_size for p in (one.state / "blobs").rglob("*")
               if p.is_file() and p.read_bytes()[:6] == b"QDQOBS"]
    one.stop()
    one.start(QDQD_CACHE_OBSERVATIONS=str(size * 5 // 2))  # room for two
    for n, inferences in ((2, 2), (1, 0), (3, 3), (1, 0), (2, 2), (3, 3)):
        assert counted(jobs.run(calibration={"max_samples": n}))[0] == inferences
        time.sleep(0.01)  # the clock counts milliseconds
    one.stop()
    one.start(QDQD_CACHE_OBSERVATIONS="0")
    eventually(lambda: not has_observations(one))


# --- the command -------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", [{}, {"batch": 5}])
def test_command(tmp_path, calibration, monkeypatch):
    files = (DATA / "glyph_mobilenet.onnx").read_bytes(), few_glyphs()
    keep = "--observations", "o.qdqobs"
    path, kept = tmp_path / "o.qdqobs", None
    for threads in ("1", "3"):
        for method in METHODS:
            spec = {"calibration": {**calibration, "method": method}, "evaluate": False}
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / method / threads))
            wanted, alone = command(tmp_path, *files, spec, "--threads", threads)
            path.unlink(missing_ok=True)
            made, first = command(tmp_path, *files, spec, "--threads", threads, *keep)
            assert counted(first) == counted(alone)
            assert kept in (None, path.read_bytes()), "it depends on method or threads"
            kept = path.read_bytes()
            again, second = command(tmp_path, *files, spec, "--threads", threads, *keep)
            assert counted(second) == (0, len(second["tensors"]))
            assert wanted == made == again
            assert path.read_bytes() == kept
    assert list(tmp_path.glob("*.tmp*")) == []


def test_command_with_a_file_of_something_else(tmp_path):
    files = nets.block_net(), nets.samples()
    path = tmp_path / "o.qdqobs"
    wanted, _ = command(tmp_path, *files, {})
    # A file of other data, a damaged one and an empty one are replaced.
    command(tmp_path, files[0], npz(x=noise(3)), {}, "--observations", path.name)
    other = path.read_bytes()
    for content in (other, other[:-1], other[:24], other[:6], b""):
        path.write_bytes(content)
        data, report = command(tmp_path, *files, {}, "--observations", path.name)
        assert data == wanted and counted(report) == (6, 0)
        assert counted(command(tmp_path, *files, {}, "--observations", path.name)[1]) == (
            0, len(report["tensors"]))
    # A file of another kind is not overwritten, because it may be needed.
    for content in (b"text", files[0]):
        path.write_bytes(content)
        done = subprocess.run([*QUANTIZE, "m.onnx", "--calibration", "d.npz",
                               "--observations", path.name], cwd=tmp_path,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 1
        assert "holds no observations" in done.stderr.splitlines()[-1]
        assert path.read_bytes() == content


def test_command_and_another_runtime(tmp_path, monkeypatch):
    """Observations made with one version of ONNX Runtime are not used with another, which
    may round differently."""
    files = nets.block_net(), nets.samples()
    keep = "--observations", "o.qdqobs"
    (library,) = (INSTALLED / "lib").rglob("libonnxruntime.so*")
    shutil.copy(library, tmp_path / "libonnxruntime.so")
    assert counted(command(tmp_path, *files, {}, *keep)[1]) == (6, 0)
    assert counted(command(tmp_path, *files, {}, *keep)[1])[0] == 0
    monkeypatch.setenv("QDQD_ENGINE_RUNTIME", str(tmp_path / "libonnxruntime.so"))
    assert counted(command(tmp_path, *files, {}, *keep)[1]) == (6, 0)
