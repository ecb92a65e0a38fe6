# SPDX-License-Identifier: Apache-2.0
"""Reports of models that make them as large as they can, and what other tenants notice of them."""

import pytest

import access
from service import Service, from_bench, problem

pytestmark = pytest.mark.long
large = from_bench("large_reports")


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("large")).start()
    yield service
    service.stop()


def get(one, path, **options):
    """Asks without the contract: to hold 32 MB against it takes half a minute, and other tests hold
    documents of the same form."""
    return one.http.get(one.url + path, timeout=120, **options)


@pytest.mark.parametrize("kind", large.MODELS)
def test_a_report_has_a_bound(one, kind):
    """It has at most 32 MB, and its graph whatever the names are."""
    model = large.MODELS[kind]()
    assert len(model) <= 2_000_000
    job = one.submit(model=one.upload("models", model), spec=large.SPEC)
    one.succeeded(job)
    answer = get(one, f"/v1/jobs/{job}/report")
    assert answer.status_code == 200
    assert len(answer.content) <= large.MOST_REPORT
    report = answer.json()
    graph = report["graph"]
    assert len(graph["edges"]) == (report.get("edges_omitted") or len(report["edges"]))
    assert max(max(edge[:2]) for edge in graph["edges"]) < len(graph["nodes"])
    for edge, names in zip(graph["edges"], report["edges"]):
        assert [graph["nodes"][edge[0]], graph["nodes"][edge[1]], graph["tensors"][edge[2]]] == names
    page = get(one, f"/v1/jobs/{job}/report", headers={"Accept": "text/html"})
    if len(answer.content) > 4 << 20:
        problem(page, 413, "too_large")
    else:
        assert page.status_code == 200 and "too large for a drawing" in page.text
    # The form with histograms, which the job has not, goes through a file.
    whole = get(one, f"/v1/jobs/{job}/report?histograms=1")
    assert whole.content == b'{"histograms":null,' + answer.content[1:]
    assert whole.headers["ETag"] != answer.headers["ETag"]


def test_what_another_tenant_notices(tmp_path):
    """bench/large_reports.py does so for longer, and on a quiet machine with narrower bounds."""
    one = Service(tmp_path).start()
    try:
        tokens = {name: access.add(one.state, name, "--tenant", name) for name in "abcde"}
        port = int(one.url.rsplit(":", 1)[1])
        kinds = {kind: large.MODELS[kind] for kind in ("many edges", "controls")}
        sizes, *jobs = large.prepare(port, tokens, kinds)
        memory, noticed, _ = large.load(port, one.process.pid, tokens, *jobs, 3)
    finally:
        one.stop()
    assert max(sizes.values()) <= large.MOST_REPORT
    assert memory <= large.MOST_MEMORY
    for path, _, times, lost in noticed:
        assert not lost and sorted(times)[len(times) // 2] < 0.25 and max(times) < 5, path
