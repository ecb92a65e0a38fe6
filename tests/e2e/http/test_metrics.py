# SPDX-License-Identifier: Apache-2.0
"""GET /metrics follows Prometheus' rules, tells the truth, and is closed to tenants."""

import os
import re
import signal

import pytest
import yaml

import access
import promtext
from service import DATA, ROOT, eventually, kill_process, problem

RULES = ROOT / "etc" / "qdqd.alerts.yml"


def metrics(client):
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return promtext.read(answer.text)


def table():
    """Returns the names of all metrics in the daemon's source files."""
    row = re.compile(r'^METRIC\(\s*\w+,\s*[A-Z]+,\s*"([a-z_]+)"', re.M)
    return sorted(name for file in (ROOT / "daemon").rglob("*.c")
                  for name in row.findall(file.read_text()))


def test_every_metric_by_the_rules(daemon):
    daemon.get("/version")
    first = metrics(daemon)
    assert list(first) == table() and len(first) > 20
    assert first["qdqd_build_info"].samples
    assert first["qdqd_ready"].value() == 1
    second = metrics(daemon)
    for name, family in first.items():
        if family.type == "counter":
            for key, value in family.samples.items():
                assert second[name].samples[key] >= value


@pytest.mark.parametrize("line", [
    "a_total 1\n", "# HELP qdqd_x Help.\n# TYPE qdqd_x counter\nqdqd_x 1\n",
    "# HELP qdqd_x_total Help.\n# TYPE qdqd_x_total counter\nqdqd_x_total 1\nqdqd_x_total 2\n",
    "# HELP qdqd_x_ms Help.\n# TYPE qdqd_x_ms gauge\nqdqd_x_ms 1\n",
    "# HELP qdqd_x_seconds Help.\n# TYPE qdqd_x_seconds histogram\n"
    'qdqd_x_seconds_bucket{le="1"} 2\nqdqd_x_seconds_bucket{le="+Inf"} 1\n'
    "qdqd_x_seconds_sum 1\nqdqd_x_seconds_count 1\n",
])
def test_the_checker_checks(line):
    with pytest.raises((AssertionError, AttributeError)):
        promtext.read(line)


def test_requests_and_bytes(daemon):
    before = metrics(daemon)
    model = (DATA / "glyph_resnet.onnx").read_bytes()
    daemon.upload("models", model)
    problem(daemon.get("/v1/jobs/none"), 404, "not_found")
    problem(daemon.get("/v1/nothing"), 404, "not_found")

    def grown(name, **labels):
        return metrics(daemon)[name].total(**labels) - before[name].total(**labels)

    requests = "qdqd_http_requests_total"
    eventually(lambda: grown(requests, route="none") == 1)
    assert grown(requests, route="/v1/models", method="POST", status="201") == 1
    assert grown(requests, route="/v1/jobs/{id}", status="404") == 1
    assert grown("qdqd_http_request_seconds", route="/v1/models") == 1
    assert grown("qdqd_http_received_bytes_total") == len(model)
    assert grown("qdqd_http_sent_bytes_total") > 100
    assert metrics(daemon)["qdqd_http_connections"].value() >= 1


def test_jobs(daemon):
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    again = daemon.submit_glyphs()
    daemon.succeeded(again)
    # Another range method for the same model and data uses the observations.
    other = daemon.submit_glyphs(spec={"calibration": {"method": "minmax"}})
    daemon.ended(other)
    seen = metrics(daemon)
    ended = seen["qdqd_jobs_ended_total"]
    assert ended.value(state="succeeded") == 2
    assert seen["qdqd_jobs"].value(state="succeeded") == 3
    assert seen["qdqd_jobs_submitted_total"].value(how="answered") == 1
    assert seen["qdqd_jobs_submitted_total"].value(how="queued") == 2
    assert seen["qdqd_observations_total"].value(result="miss") == 1
    assert seen["qdqd_observations_total"].value(result="hit") == 1
    assert seen["qdqd_job_run_seconds"].value("_count") == 2
    stages = seen["qdqd_stage_seconds"]
    assert stages.value("_count", stage="calibrate") >= 1
    total = sum(v for (suffix, _), v in stages.samples.items() if suffix == "_sum")
    assert 0 < total <= seen["qdqd_job_run_seconds"].value("_sum") + 0.1
    assert seen["qdqd_workers_started_total"].value() >= 2
    stored = seen["qdqd_disk_bytes"]
    assert stored.value(kind="model") == (DATA / "glyph_resnet.onnx").stat().st_size
    assert stored.value(kind="result") > 0 and stored.value(kind="observations") > 0
    assert stored.value(kind="record") > 3 * 1024
    assert seen["qdqd_disk_used_bytes"].value() == stored.value(kind="record") + sum(
        p.stat().st_size for p in (daemon.state / "blobs").rglob("*") if p.is_file())
    assert seen["qdqd_disk_free_bytes"].value() > 0


def test_failures_and_the_queue(service, held):
    daemon = service(storage_max_bytes="1G", **held)
    job = daemon.submit_glyphs()
    worker = daemon.running(job)[0]
    waits = daemon.submit_glyphs(fresh=True)
    eventually(lambda: metrics(daemon)["qdqd_queue_oldest_seconds"].value() > 0)
    seen = metrics(daemon)
    assert seen["qdqd_queue_jobs"].value() == 1
    assert seen["qdqd_jobs"].value(state="running") == 1
    assert seen["qdqd_disk_budget_bytes"].value() == 1 << 30
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: metrics(daemon)["qdqd_jobs_requeued_total"].value() == 1)
    assert metrics(daemon)["qdqd_workers_died_total"].value() >= 1
    daemon.post(f"/v1/jobs/{waits}/cancel")
    assert metrics(daemon)["qdqd_jobs_ended_total"].value(state="cancelled") == 1
    eventually(lambda: daemon.busy_workers() and daemon.busy_workers()[0] != worker)
    kill_process(daemon.busy_workers()[0])
    daemon.ended(job)
    assert metrics(daemon)["qdqd_job_errors_total"].value(code="worker_died") == 1


def test_who_may(daemon):
    """Tenants may not read metrics, because the sums are of all tenants."""
    reader = access.client(daemon, access.add(daemon.state, "r", "--scope", "read"))
    problem(reader.get("/metrics"), 403, "forbidden")
    tenant = access.tenant(daemon, "a")
    problem(tenant.get("/metrics"), 403, "forbidden")
    problem(daemon.get("/metrics"), 401, "unauthorized")
    watcher = access.client(daemon, access.add(daemon.state, "w", "--scope", "metrics"))
    tenant.upload("models", DATA / "glyph_resnet.onnx")
    assert metrics(watcher)["qdqd_disk_bytes"].value(kind="model") > 0
    problem(watcher.get("/v1/jobs"), 403, "forbidden")
    problem(watcher.post("/v1/jobs", json={}), 403, "forbidden")
    text = watcher.get("/metrics").text
    assert "tenant" not in text.replace("over all tenants", "").replace("each tenant", "")


def test_alerts_name_metrics_that_exist():
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"]
             for rule in group["rules"]]
    assert len(rules) >= 8
    names = set(table())
    manual = (ROOT / "docs" / "operate" / "operations.md").read_text()
    for rule in rules:
        used = set(re.findall(r"\bqdqd_[a-z_]+", rule["expr"]))
        assert used, rule
        for name in used:
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert base in names or name in names, f"{rule['alert']}: {name}"
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert f"| `{rule['alert']}` |" in manual, f"{rule['alert']} is not in the manual"
