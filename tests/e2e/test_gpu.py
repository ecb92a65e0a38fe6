# SPDX-License-Identifier: Apache-2.0
"""GPUs that are configured and not there: what waits for one, and what becomes of it."""

SHORT = {"calibration": {"max_samples": 2}, "evaluate": False}


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
    one = service(gpu_devices="0", gpu_module="/nowhere.so")
    job = one.submit_glyphs(spec={**SHORT, "device": "auto"})
    one.succeeded(job)
    report = one.report(job)
    assert report["device"] == "cpu"
    (warning,) = [w for w in report["warnings"] if w["code"] == "device_fallback"]
    assert "/nowhere.so" in warning["detail"]


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
