# SPDX-License-Identifier: Apache-2.0
"""Jobs are compared: what differs between two, and the results of several, as JSON and as a page."""

import html.parser

import onnx
import pytest

import nets
from service import problem

HOSTILE = "<script>alert(1)</script>"
pytestmark = pytest.mark.shares_daemon


def run(daemon, **spec):
    model = onnx.load_from_string(nets.block_net())
    model.graph.node[0].name = HOSTILE
    job = daemon.submit(model=daemon.upload("models", model.SerializeToString()),
                        calibration=daemon.upload("datasets", nets.samples()), spec=spec)
    daemon.succeeded(job)
    return job


def compare(daemon, first, second, **headers):
    return daemon.get(f"/v1/jobs/{first}/compare?with={second}", headers=headers)


def test_it_has_the_differences_of_the_reports(daemon):
    """Every difference of the two reports is there, and nothing else."""
    off = {"name": HOSTILE, "quantize_input": False, "quantize_weight": False}
    jobs = [run(daemon), run(daemon, layers=[off], calibration={"method": "minmax"})]
    reports = [daemon.report(job) for job in jobs]
    answer = compare(daemon, *jobs)
    assert answer.status_code == 200 and answer.headers["Vary"] == "Accept"
    found = answer.json()
    assert [job["id"] for job in found["jobs"]] == jobs
    assert found["summary"] == {
        name: [report["summary"][name] for report in reports]
        for name in ("verdict", "quantized_layers", "qdq_pairs", "size_before", "size_after")}
    assert {row["pointer"] for row in found["spec"]} == {"/layers", "/calibration/method"}
    method = next(row for row in found["spec"] if row["pointer"] == "/calibration/method")
    assert method["value"] == ["mse", "minmax"]
    [output] = found["outputs"]
    assert output["sqnr_db"] == [report["evaluation"]["outputs"][0]["sqnr_db"]
                                 for report in reports]
    [layer] = found["layers"]
    assert layer["name"] == HOSTILE
    assert layer["weight_quantized"] == [True, False]
    assert layer["reason"] == ["default", "layers[0]"]
    sides = [{row["name"]: row for row in report["tensors"]} for report in reports]
    keys = ("min", "max", "dtype", "scale", "zero_point", "method")
    names = {name for side in sides for name in side if any(
        sides[0].get(name, {}).get(key) != sides[1].get(name, {}).get(key) for key in keys)}
    assert {row["name"] for row in found["tensors"]} == names and names
    for row in found["tensors"]:
        for key in keys:
            assert row[key] == [side.get(row["name"], {}).get(key) for side in sides]
    # The other way round everything is swapped.
    back = compare(daemon, *jobs[::-1]).json()
    assert back["summary"]["qdq_pairs"] == found["summary"]["qdq_pairs"][::-1]
    assert back["layers"][0]["weight_quantized"] == [False, True]


def test_a_job_does_not_differ_from_itself(daemon):
    job = run(daemon)
    found = compare(daemon, job, job).json()
    assert found["spec"] == found["layers"] == found["tensors"] == []
    assert all(a == b for a, b in found["summary"].values())


def test_the_page(daemon):
    """The page has the same rows, names are text, and its policy is that of reports."""
    jobs = run(daemon), run(daemon, layers=[
        {"name": HOSTILE, "quantize_input": False, "quantize_weight": False}])
    answer = compare(daemon, *jobs, Accept="text/html")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    texts, tags = [], []
    parser = html.parser.HTMLParser()
    parser.handle_data = texts.append
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.feed(answer.text)
    assert HOSTILE in texts and tags.count("script") == 1
    assert {"Jobs", "Summary", "Outputs", "Spec", "Layers with other pairs"} <= set(texts)
    assert "default → layers[0]" in "".join(texts)


def test_what_cannot_be_compared(daemon):
    job = run(daemon)
    problem(daemon.get(f"/v1/jobs/{job}/compare"), 400, "bad_request")
    problem(compare(daemon, job, "x" * 500), 400, "bad_request")
    problem(compare(daemon, job, "j" + "0" * 32), 404, "not_found")
    problem(compare(daemon, "j" + "0" * 32, job), 404, "not_found")
    problem(compare(daemon, job, job, Accept="text/markdown"), 406, "not_acceptable")
    failed = daemon.submit(model=daemon.upload("models", nets.block_net()),
                           spec={"layers": [{"name": "nobody", "quantize_input": True}]})
    assert daemon.ended(failed)["state"] == "failed"
    problem(compare(daemon, job, failed), 409, "failed")


def test_any_jobs_in_one_table(daemon):
    """Each job has a row with its own figures, one of several targets a row for each of them; a job that
    failed stands with its error, and a job is there once."""
    jobs = [run(daemon), run(daemon, calibration={"method": "minmax"})]
    several = daemon.submit_glyphs(spec={"targets": ["tensorrt", "onnxruntime"], "recipe": "none"},
                                   labels={"name": "é" * 200})
    targets = [row["job"] for row in daemon.succeeded(several)["targets"]]
    failed = daemon.submit_glyphs(spec={"accept": {"min_sqnr_db": 150}}, labels={"name": HOSTILE})
    broken = daemon.submit_glyphs(spec={"layers": [{"name": "nowhere"}]})
    assert daemon.ended(failed)["error"]["code"] == "accuracy"
    error = daemon.ended(broken)["error"]
    listed = ",".join([*jobs, several, failed, broken])
    found = compare(daemon, jobs[0], listed).json()
    assert [row["job"] for row in found["results"]] == [*jobs, *targets, failed]
    assert [(row["job"], row["code"], row["detail"]) for row in found["failed"]][1:] == [
        (broken, error["code"], error["detail"])]
    assert found["failed"][0]["job"] == failed and found["failed"][0]["code"] == "accuracy"
    for row in found["results"]:
        report = daemon.report(row["job"])
        judged = report["evaluation"]["deployed"] or report["evaluation"]
        assert row["sqnr_db"] == judged["outputs"][0]["sqnr_db"]
        assert row["target"] == report["spec"]["target"] and row["name"].endswith(row["job"][:12])
    assert found["results"][-1]["name"] == f"{HOSTILE} {failed[:12]}"
    assert [row["name"] for row in found["results"][2:4]] == [f"{'é' * 200} {job[:12]}" for job in targets]
    assert [row["job"] for row in compare(daemon, jobs[0], f"{jobs[1]},{jobs[0]}").json()["results"]] == jobs
    page = compare(daemon, jobs[0], listed, Accept="text/html")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert HOSTILE not in page.text and page.text.count("<circle") == 5


def test_lists_that_name_no_jobs(daemon):
    job = run(daemon)
    for wrong in (",", f"{job},", f",{job}", f"{job},,{job}", f"{job}," + "x" * 500):
        assert "byte " in problem(compare(daemon, job, wrong), 400, "bad_request")["detail"]
    problem(compare(daemon, job, f"{job},j" + "0" * 32), 404, "not_found")
    problem(compare(daemon, "j" + "0" * 32, f"{job},{job}"), 404, "not_found")
