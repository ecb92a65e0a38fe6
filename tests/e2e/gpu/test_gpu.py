# SPDX-License-Identifier: Apache-2.0
"""GPUs: jobs that wait for one, and jobs whose GPU is missing, lost or short of memory.
The device is the host, through the emulator of tests/cuda, whose failures are set in the
environment."""

import os
import subprocess
import sys

import pytest

import nets
from service import DATA, INSTALLED, ROOT, eventually, kill_process

pytestmark = pytest.mark.long
SHORT = {"calibration": {"max_samples": 2}, "evaluate": False}
ONE = {"calibration": {"max_samples": 6, "batch": 4, "method": "minmax"},
       "evaluate": {"samples": 4}}
NAME = "cuda:0 emulated on the host"


@pytest.fixture(scope="session")
def module(tmp_path_factory):
    """Returns the emulator's CUDA module: the one that make check has built, or a new
    one."""
    built = os.environ.get("QDQ_CUDA_EMULATED")
    if built:
        return built
    made = tmp_path_factory.mktemp("cuda") / "emulated.so"
    subprocess.run([ROOT / "tests/cuda/emulator/build.sh", made], check=True)
    return made


@pytest.fixture
def gpu(service, module, monkeypatch):
    """Starts a daemon with one GPU that has these failures, as in gpu(lost=5,
    workers_count=2)."""
    def make(numbers="0", **settings):
        for key in ("driver", "devices", "lost", "most", "faked", "gathered", "bytes", "once"):
            if key in settings:
                monkeypatch.setenv(f"EMULATED_CUDA_{key.upper()}",
                                   str(settings.pop(key)))
        one = service(gpu_devices=numbers, gpu_module=module, **settings)
        devices(one)  # waits until the daemon has probed the GPUs
        return one
    return make


def devices(one):
    """Returns the GPUs in /version once they are known."""
    told = eventually(lambda: one.get("/version").json()["devices"])
    return told[1:]


def warnings(report, code):
    return [w["detail"] for w in report["warnings"] if w["code"] == code]


# --- no GPU -------------------------------------------------------------------------


def test_without_a_gpu(daemon):
    job = daemon.ended(daemon.submit_glyphs(spec={**SHORT, "device": "cuda"}))
    assert job["state"] == "failed"
    assert job["error"]["code"] == "no_device"
    assert (job["error"]["status"], job["error"]["retryable"]) == (422, False)
    job = daemon.submit_glyphs(spec={**SHORT, "device": "auto"})
    daemon.succeeded(job)
    report = daemon.report(job)
    assert report["device"] == "cpu"
    assert "device_fallback" not in [w["code"] for w in report["warnings"]]


def test_one_that_cannot_be_used(service):
    """With `auto`, a job whose CUDA module cannot be loaded runs on the CPU, and a
    warning names the module."""
    one = service(gpu_devices="0", gpu_module="/nowhere.so")
    job = one.submit_glyphs(spec={**SHORT, "device": "auto"})
    one.succeeded(job)
    report = one.report(job)
    assert report["device"] == "cpu"
    (warning,) = warnings(report, "device_fallback")
    assert "/nowhere.so" in warning


@pytest.mark.parametrize("mishap, code, says", [
    ({"driver": 0}, "no_driver", "no NVIDIA driver is installed; one for CUDA 13"),
    ({"driver": 12040}, "old_driver", "the NVIDIA driver knows CUDA 12.4 at most"),
    ({"devices": 0}, "no_device", "no CUDA device can be used: there is none"),
    ({"numbers": 3}, "no_device", "there is no CUDA device 3; 1 is here"),
])
def test_why_there_is_none(gpu, mishap, code, says):
    """A job that requires the device fails with the reason; one with `auto` runs on the
    CPU and warns of it."""
    one = gpu(**mishap)
    job = one.ended(one.submit_glyphs(spec={**SHORT, "device": "cuda"}))
    assert job["state"] == "failed"
    assert (job["error"]["code"], job["error"]["status"]) == (code, 422)
    assert says in job["error"]["detail"] and not job["error"]["retryable"]
    assert job["attempts"] == 1
    job = one.submit_glyphs(spec={**SHORT, "device": "auto"})
    assert one.succeeded(job)["attempts"] == 1
    report = one.report(job)
    assert report["device"] == "cpu"
    (warning,) = warnings(report, "device_fallback")
    assert says in warning


@pytest.mark.parametrize("mishap, cuda, says", [
    ({}, None, [None]),
    ({"numbers": "0,3"}, None, [None, "there is no CUDA device 3; 1 is here"]),
    ({"driver": 0}, "no NVIDIA driver", ["no NVIDIA driver"]),
    ({"devices": 0}, "there is none", ["there is none"]),
])
def test_version_names_them_and_says_why_not(gpu, mishap, cuda, says):
    one = gpu(**mishap)
    why = one.get("/version").json()["backends"][2]["problem"]
    assert cuda in why if cuda else why is None
    told = devices(one)
    numbers = mishap.get("numbers", "0").split(",")
    for device, number, wanted in zip(told, numbers, says, strict=True):
        assert device["device"] == f"cuda:{number}"
        assert wanted in device["problem"] if wanted else device["problem"] is None
    assert told[0]["name"] == (None if cuda else NAME.removeprefix("cuda:0 "))


# --- one GPU ------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_a_job_runs_there(gpu, device):
    """A job on the GPU gives the same result as one on the CPU."""
    one = gpu()
    there = one.submit_glyphs(spec={**ONE, "device": device})
    here = one.submit_glyphs(spec={**ONE, "device": "cpu"})
    assert one.succeeded(there)["attempts"] == 1
    one.succeeded(here)
    a, b = one.report(there), one.report(here)
    assert (a["device"], b["device"]) == (NAME, "cpu")
    assert a["tensors"] == b["tensors"]
    assert a["evaluation"]["outputs"] == b["evaluation"]["outputs"]


ROUNDED = {**ONE, "weights": {"rounding": "gptq"}, "bias_correction": True}


@pytest.mark.parametrize("more", [{}, {"calibration": {**ONE["calibration"],
                                                       "on_nonfinite": "skip_sample"}}])
def test_moments_of_matrices_are_those_of_the_cpu(gpu, more):
    """The rows of matrices are the same on both, and so are the integers of the weights.
    Where samples may be skipped, inputs of layers are brought to the host."""
    one = gpu()
    there = one.submit_glyphs("glyph_vit", spec={**ROUNDED, **more, "device": "cuda"})
    here = one.submit_glyphs("glyph_vit", spec={**ROUNDED, **more, "device": "cpu"})
    one.succeeded(there)
    one.succeeded(here)
    a, b = one.report(there), one.report(here)
    assert (a["device"], b["device"]) == (NAME, "cpu")
    assert a["evaluation"]["outputs"] == b["evaluation"]["outputs"]


def test_moments_of_convolutions(gpu):
    """The CPU takes other patches of an image, all of them, than the GPU; both round as
    well as each other, and better than to the nearest integers."""
    one = gpu()
    calibration = {**ONE["calibration"], "max_samples": 2}
    specs = {name: {**spec, "calibration": calibration, "evaluate": {"samples": 32},
                    "weights": {"dtype": "int4",
                                "rounding": "gptq" if "gptq" in name else "nearest"}}
        for name, spec in (("gptq there", {**ROUNDED, "device": "cuda"}),
                           ("gptq here", {**ROUNDED, "device": "cpu"}),
                           ("nearest", {**ONE, "device": "cpu"}))}
    jobs = {name: one.submit_glyphs(spec=spec) for name, spec in specs.items()}
    for job in jobs.values():
        one.succeeded(job)
    sqnr = {name: one.report(job)["evaluation"]["outputs"][0]["sqnr_db"]
            for name, job in jobs.items()}
    assert abs(sqnr["gptq there"] - sqnr["gptq here"]) < 1
    assert sqnr["gptq there"] > sqnr["nearest"] + 3


def test_what_ifs_see_rounded_weights_there(gpu):
    one = gpu()
    spec = {**ROUNDED, "evaluate": False, "sensitivity": {"samples": 2}}
    there = one.submit_glyphs("glyph_vit", spec={**spec, "device": "cuda"})
    here = one.submit_glyphs("glyph_vit", spec={**spec, "device": "cpu"})
    one.succeeded(there)
    one.succeeded(here)
    assert one.report(there)["sensitivity"] == one.report(here)["sensitivity"]


def test_a_cage_that_is_required(gpu):
    """The module is loaded before the worker enters its cage."""
    one = gpu(workers_cage="require")
    job = one.submit_glyphs(spec={**SHORT, "device": "cuda"})
    one.succeeded(job)
    assert one.report(job)["device"] == NAME


# --- lost ---------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 30])
@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_it_is_lost_once(gpu, tmp_path, device, at):
    """When the GPU is lost, the job runs once more in another worker, which finds it
    working."""
    once = tmp_path / "once"
    one = gpu(lost=at, once=once)
    once.touch()
    before = len(one.log.read_text())
    job = one.submit_glyphs(spec={**SHORT, "device": device})
    assert one.succeeded(job)["attempts"] == 2
    assert one.report(job)["device"] == NAME
    assert not once.exists()
    log = one.log.read_text()[before:]
    assert log.count("worker_ended") == 1 and "worker_died" not in log
    assert log.count("job_requeued") == 1
    assert one.get("/readyz").status_code == 200


def test_it_is_lost_again(gpu):
    """A job that loses its GPU twice fails, and later jobs run."""
    one = gpu(lost=3)
    job = one.ended(one.submit_glyphs(spec={**SHORT, "device": "cuda"}))
    assert job["state"] == "failed" and job["attempts"] == 2
    assert job["error"]["code"] == "device_lost"
    assert (job["error"]["status"], job["error"]["retryable"]) == (503, True)
    assert "fell off the bus" in job["error"]["detail"]
    other = one.submit_glyphs(spec={**SHORT, "device": "cpu"})
    assert one.succeeded(other)["attempts"] == 1


def test_it_is_lost_in_a_what_if(gpu, tmp_path):
    """The GPU is lost late, after calibration."""
    once = tmp_path / "once"
    one = gpu(lost=100, once=once)
    once.touch()
    job = one.submit_glyphs(spec={**SHORT, "device": "cuda", "sensitivity": {"samples": 2}})
    assert one.succeeded(job)["attempts"] == 2
    report = one.report(job)
    assert report["device"] == NAME and report["sensitivity"]


def test_a_job_that_was_not_to_be_tried_again(gpu):
    one = gpu(lost=3, workers_attempts=1)
    job = one.ended(one.submit_glyphs(spec={**SHORT, "device": "cuda"}))
    assert job["error"]["code"] == "device_lost" and job["attempts"] == 1


# --- too little memory --------------------------------------------------------------


def test_a_batch_that_does_not_fit(gpu):
    one = gpu(most=70_000)
    there = one.submit_glyphs("glyph_mobilenet", spec={**ONE, "device": "cuda"})
    assert one.succeeded(there)["attempts"] == 1
    halved = warnings(one.report(there), "batch_halved")
    assert len(halved) == 1 and "4 samples at once; 2 were run instead" in halved[0]
    smaller = {**ONE, "calibration": {**ONE["calibration"], "batch": 2}, "device": "cpu"}
    here = one.submit_glyphs("glyph_mobilenet", spec=smaller)
    one.succeeded(here)
    assert one.report(there)["tensors"] == one.report(here)["tensors"]


def test_rows_for_moments_that_do_not_fit(gpu):
    """The daemon forgets the rows of a batch that did not fit."""
    one = gpu(most=30_000)
    calibration = {**ONE["calibration"], "max_samples": 4}
    spec = {**ROUNDED, "calibration": calibration, "device": "cuda"}
    there = one.submit_glyphs(spec=spec)
    assert one.succeeded(there)["attempts"] == 1
    halved = warnings(one.report(there), "batch_halved")
    assert len(halved) == 1 and "2 were run instead" in halved[0]
    smaller = {**spec, "calibration": {**calibration, "batch": 2}}
    fits = one.submit_glyphs(spec=smaller, fresh=True)
    one.succeeded(fits)
    assert warnings(one.report(fits), "batch_halved") == []
    a, b = one.report(there)["evaluation"], one.report(fits)["evaluation"]
    assert a["outputs"] == b["outputs"]


def test_a_batch_that_does_not_fit_in_a_what_if(gpu):
    """The float model fits; the model with fake quantization does not, so the batch is
    halved."""
    one = gpu(faked=40_000)
    spec = {**ONE, "sensitivity": {"samples": 4}, "evaluate": False}
    there = one.submit_glyphs("glyph_mobilenet", spec={**spec, "device": "cuda"})
    one.succeeded(there)
    halved = warnings(one.report(there), "batch_halved")
    assert len(halved) in (1, 2) and "were run instead" in halved[0]
    batch = 4 >> len(halved)
    smaller = {**spec, "calibration": {**spec["calibration"], "batch": batch},
               "device": "cuda"}
    fits = one.submit_glyphs("glyph_mobilenet", spec=smaller)
    one.succeeded(fits)
    assert warnings(one.report(fits), "batch_halved") == []
    assert one.report(there)["sensitivity"] == one.report(fits)["sensitivity"]


@pytest.mark.parametrize("mishap", [{"most": 100}, {"bytes": 10_000}, {"faked": 100}])
def test_one_sample_that_does_not_fit(gpu, mishap):
    one = gpu(**mishap)
    spec = {**ONE, "device": "cuda", "sensitivity": {"samples": 2}}
    job = one.ended(one.submit_glyphs(spec=spec))
    assert job["state"] == "failed" and job["attempts"] == 1
    assert job["error"]["code"] == "device_memory"
    assert (job["error"]["status"], job["error"]["retryable"]) == (503, True)


# --- sharing the GPU ----------------------------------------------------------------


def test_jobs_wait_for_it_and_others_go_on(service):
    one = service(gpu_devices="0", gpu_module="/nowhere.so", workers_count=2,
                  test_worker_pause_ms=500)
    first = one.submit_glyphs(spec=SHORT)
    one.running(first)
    waits = one.submit_glyphs(spec={"calibration": {"max_samples": 3}, "evaluate": False})
    goes = one.submit_glyphs(spec={**SHORT, "device": "cpu"})
    one.running(goes)
    assert one.job(waits)["state"] == "queued"
    assert one.job(waits)["queue"]["waiting_for"] == "gpu"
    for job in (first, waits, goes):
        one.succeeded(job)


def test_a_form_without_a_spec_holds_nobody_up(service):
    """A form may have no spec: its job waits for the GPU like any other with
    data, and the jobs behind it run."""
    one = service(gpu_devices="0", gpu_module="/nowhere.so", workers_count=2,
                  test_worker_pause_ms=500)
    first = one.submit_glyphs(spec=SHORT)
    one.running(first)
    answer = one.post("/v1/jobs", files={
        "model": (None, one.job(first)["model"]),
        "calibration": (None, one.job(first)["calibration"])})
    assert answer.status_code == 202, answer.text
    assert answer.json()["spec"] is None
    goes = one.submit_glyphs(spec={**SHORT, "device": "cpu"})
    one.running(goes)
    waits = answer.json()["id"]
    assert one.job(waits)["queue"]["waiting_for"] == "gpu"
    for job in (first, waits, goes):
        one.succeeded(job)


SEARCH = {"calibration": {"max_samples": 2, "method": "minmax"}, "evaluate": False,
          "device": "cuda", "search": {"min_sqnr_db": 60, "max_float_layers": 6,
                                       "samples": 2}}


def in_search(one, job):
    progress = one.job(job)["progress"]
    return progress and progress["stage"] == "search" and progress["done"] > 0


def test_a_long_search_lends_it(gpu):
    """A short job that comes later ends before the search, and the search gives the same
    result."""
    one = gpu(workers_count=2)
    alone = one.submit_glyphs("glyph_se", spec=SEARCH)
    one.succeeded(alone)
    search = one.submit_glyphs("glyph_se", spec=SEARCH, fresh=True)
    eventually(lambda: in_search(one, search))
    short = one.submit_glyphs(spec={**SHORT, "device": "cuda"})
    one.succeeded(short)
    during = one.job(search)
    assert during["state"] == "running", "the search has ended first"
    assert one.succeeded(search)["attempts"] == 1
    log = one.log.read_text()
    assert f"gpu_lent job={search} gpu=0" in log
    assert f"gpu_regained job={search} gpu=0" in log
    a, b = one.report(alone), one.report(search)
    assert a["search"] == b["search"] and a["tensors"] == b["tensors"]
    assert a["what_ifs"] == b["what_ifs"]
    assert one.result(alone) == one.result(search)


def lend(one):
    """Starts two searches, of which the first lends its GPU to the second. Returns both,
    and the worker of the first."""
    search = one.submit_glyphs("glyph_se", spec=SEARCH)
    (worker,) = one.running(search)
    eventually(lambda: in_search(one, search))
    other = one.submit_glyphs("glyph_se", spec={**SEARCH, "search": {
        **SEARCH["search"], "max_float_layers": 5}})
    eventually(lambda: one.job(search)["queue"])
    return search, other, worker


def test_two_searches_take_turns(gpu):
    """Neither search waits for the end of the other; the one that waits says so."""
    one = gpu(workers_count=2)
    first, second, _ = lend(one)
    waiting = eventually(lambda: one.job(first)["queue"] or one.job(second)["queue"])
    assert waiting == {"position": None, "waiting_for": "gpu"}
    one.succeeded(first)
    one.succeeded(second)
    assert f"gpu_lent job={second}" in one.log.read_text()


def test_a_lender_is_cancelled(gpu):
    """The other job keeps the GPU that it borrowed, and the GPU is free after it."""
    one = gpu(workers_count=2)
    search, other, _ = lend(one)
    answer = one.post(f"/v1/jobs/{search}/cancel")
    assert answer.status_code == 202
    assert one.ended(search)["state"] == "cancelled"
    one.succeeded(other)
    last = one.submit_glyphs(spec={**SHORT, "device": "cuda"})
    one.succeeded(last)
    assert one.report(last)["device"] == NAME


def test_a_lender_dies(gpu):
    """The job that lent the GPU starts again in its turn; the other one continues."""
    one = gpu(workers_count=2)
    search, other, worker = lend(one)
    kill_process(worker)
    assert one.succeeded(search)["attempts"] == 2
    assert one.succeeded(other)["attempts"] == 1
    assert one.report(search)["device"] == one.report(other)["device"] == NAME


def test_the_daemon_stops_meanwhile(gpu):
    one = gpu(workers_count=2, workers_drain_timeout=0)
    search, other, _ = lend(one)
    one.stop()
    one.start()
    for job in (search, other):
        assert one.succeeded(job)["attempts"] == 2
        assert one.report(job)["device"] == NAME


def test_nobody_is_idle_to_take_it(gpu):
    """With one lane a waiting job needs the lane, not the GPU, so the GPU is not lent."""
    one = gpu(workers_count=1)
    search = one.submit_glyphs("glyph_se", spec=SEARCH)
    eventually(lambda: in_search(one, search))
    short = one.submit_glyphs(spec={**SHORT, "device": "cuda"})
    one.succeeded(search)
    one.succeeded(short)
    assert "gpu_lent" not in one.log.read_text()


# --- programs for machines with a GPU -----------------------------------------------


PROGRAMS = {"QDQ": str(INSTALLED / "bin" / "qdq"),
            "QDQD": str(INSTALLED / "sbin" / "qdqd")}


def run_script(script, *arguments, **environment):
    env = {**os.environ, **PROGRAMS, **environment}
    return subprocess.run([sys.executable, ROOT / script, *arguments], env=env,
                          capture_output=True, text=True)


def test_jobs_there_beside_the_cpu(module):
    model = DATA / "glyph_resnet.onnx"
    run = run_script("tests/cuda/quantize.py", "--emulated", model,
                     QDQD_GPU_MODULE=str(module))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "13 ranges, the largest difference is 0.0e+00" in run.stdout
    run = run_script("tests/cuda/quantize.py", model, QDQD_GPU_MODULE=str(module))
    assert run.returncode == 1, "the emulator is no device"
    run = run_script("tests/cuda/quantize.py", model, QDQD_GPU_MODULE="/nowhere.so")
    assert run.returncode == 1 and "no_device" in run.stdout


def test_a_daemon_there(module):
    run = run_script("tests/cuda/serve.py", "--emulated", QDQD_GPU_MODULE=str(module))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "a search lent it" in run.stdout and "another one had" in run.stdout


def test_the_bench(module, tmp_path):
    """With a small network, because the emulator is slow."""
    arguments = ("1", "--emulated", tmp_path / "m.onnx", tmp_path / "d.npz")
    arguments[2].write_bytes(nets.block_net())
    arguments[3].write_bytes(nets.samples())
    run = run_script("bench/gpu.py", *arguments, QDQD_GPU_MODULE=str(module))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "calibration of plain inference" in run.stdout
    run = run_script("bench/gpu.py", *arguments, QDQD_GPU_MODULE="/nowhere.so")
    assert run.returncode == 1 and "no_device" in run.stderr


def test_the_programs_of_the_kernels_compile_alone():
    """tools/check-gpu compiles them from the engine's files that it names, without
    ./configure and without libcheck."""
    run = subprocess.run([ROOT / "tools" / "check-gpu", "programs"], capture_output=True,
                         text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("step", ["quantize", "serve", "bench-jobs"])
def test_who_asks_for_a_check_gets_one_or_an_error(step):
    """tools/check-gpu fails here, because the Python has an ONNX Runtime for the CPU
    alone."""
    env = {**os.environ, **PROGRAMS, "QDQ_GPU_PYTHON": sys.executable}
    run = subprocess.run([ROOT / "tools" / "check-gpu", step], env=env,
                         capture_output=True, text=True)
    assert run.returncode == 1
    assert "has no CUDA provider" in run.stderr and "nothing failed" not in run.stderr
