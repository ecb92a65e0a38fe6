# SPDX-License-Identifier: Apache-2.0
"""Work that exceeds its time limit is ended, and the daemon continues with the next. Without its
limit the work would take ten minutes, and nobody waits here for so long."""

import time

import pytest

from service import DATA, FEW_SAMPLES, eventually, problem

RESNET = DATA / "glyph_resnet.onnx"


def fails_in_time(one, job, setting):
    document = one.ended(job)
    assert document["state"] == "failed"
    error = document["error"]
    assert error["code"] == "limit_exceeded" and error["status"] == 422
    assert setting in error["detail"]
    problem(one.get(f"/v1/jobs/{job}/model"), 409, "failed")
    return error["detail"]


def test_a_job_that_hangs_before_it_calibrates(held, service):
    one = service(**held, workers_short_timeout=5)
    job = one.submit_glyphs()
    (worker,) = one.running(job)
    assert "5 s" in fails_in_time(one, job, "workers.short_timeout")
    eventually(lambda: worker not in one.workers())
    # The lane runs the next job in a new process.
    again = one.submit_glyphs()
    (other,) = one.running(again)
    assert other != worker
    fails_in_time(one, again, "workers.short_timeout")


def test_the_stage_that_hangs_is_told(service):
    one = service(test_worker_pause_ms=6000, workers_short_timeout=10)
    job = one.submit_glyphs()
    assert "load" in fails_in_time(one, job, "workers.short_timeout")


def test_one_shot_that_hangs(held, service):
    one = service(**held, workers_short_timeout=1)
    document = problem(one.quantize(RESNET, FEW_SAMPLES), 422, "limit_exceeded")
    assert "workers.short_timeout" in document["detail"]


@pytest.mark.alone
def test_calibration_has_all_the_time_of_the_job(service):
    """The limit for short work ends with the start of calibration, before which four or
    five of the sixteen pauses come."""
    one = service(test_worker_pause_ms=700, workers_short_timeout=6)
    begin = time.monotonic()
    one.succeeded(one.submit_glyphs())
    assert time.monotonic() - begin > 6


@pytest.mark.alone
def test_smoothing_has_all_the_time_of_the_job(service):
    """Smoothing runs the model before the layers are planned."""
    one = service(workers_short_timeout=2)
    model = one.upload("models", DATA / "glyph_vit.onnx")
    for samples in (5000, 10000, 20000):
        job = one.submit(model=model, spec={"smooth": {}, "evaluate": False,
                                            "calibration": {"random_samples": samples}})
        one.succeeded(job)
        if one.report(job)["timings"]["smooth"] > 2.2:
            return
    pytest.fail("smoothing takes less time than short work may")


def test_the_time_of_a_whole_job(service):
    one = service(test_worker_pause_ms=700, workers_job_timeout=4)
    assert "stage" in fails_in_time(one, one.submit_glyphs(), "workers.job_timeout")


def test_no_time_for_the_job_is_less_than_for_planning(held, service):
    one = service(**held, workers_job_timeout=1)
    fails_in_time(one, one.submit_glyphs(), "workers.job_timeout")
    one = service(test_worker_pause_ms=10, workers_job_timeout=0)
    one.succeeded(one.submit_glyphs())
