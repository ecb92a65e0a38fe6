# SPDX-License-Identifier: Apache-2.0
"""Every operation of api/openapi.yaml, asked by Schemathesis with data that the document
allows and with data that it forbids, in single calls and in chains by its links.

The same requests in every run. A long run by hand, with other requests every time:

    QDQD_SCHEMATHESIS_SECONDS=600 build/venv/bin/python -m pytest -s \
        tests/e2e/http/test_schemathesis.py
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nets
from service import problem

pytestmark = pytest.mark.long
HERE = Path(__file__).resolve().parents[1]
SECONDS = int(os.environ.get("QDQD_SCHEMATHESIS_SECONDS", 0))
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance",
          "response_headers_conformance", "response_schema_conformance",
          "negative_data_rejection", "unsupported_method", "allow_header_conformance",
          "use_after_free", "ensure_resource_availability", "contract_is_kept"]
EXAMPLES, CHAINS = (3, 8) if SECONDS else (2, 4)
# The limits are small, so that requests reach them.
LIMITS = {"queue_max": 16, "http_max_body": "4M",
          "workers_threads": 1, "workers_memory": "2G", "workers_short_timeout": 10,
          "workers_job_timeout": 5}
# Seconds after which a call counts as one that hangs, also a stream of events; one of
# /v1/quantize waits for up to 55.
HANGS = 90
CONFIG = """
hooks = "{hooks}"
request-timeout = {hangs}
continue-on-failure = true
# Schemathesis keeps more sessions open than a daemon has connections.
headers = {{ Connection = "close" }}
[generation]
database = "none"
deterministic = {fixed}
max-examples = {examples}
[phases.stateful.generation]
max-examples = {chains}
[[operations]]
include-name = "PUT /v1/blobs/{{id}}"
# The conditions are checked before the body is there.
checks.negative_data_rejection.expected-statuses = [400, 401, 403, 404, 412, 413, 415, 503, 507]
[[operations]]
include-name = "POST /v1/quantize"
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 504]
# The cases of a spec are those of POST /v1/plan: further rounds of them are left to a long run.
phases.coverage.enabled = {coverage}
[[operations]]
include-name = "POST /v1/jobs"
phases.coverage.enabled = {coverage}
"""


def stored(daemon):
    """Stores a model, data, and a job for each way to end."""
    model = daemon.upload("models", nets.block_net())
    data = daemon.upload("datasets", nets.samples())
    done = daemon.submit(model=model, calibration=data)
    daemon.succeeded(done)
    missed = daemon.submit(model=model, calibration=data,
                           spec={"accept": {"min_cosine": 1}})
    failed = daemon.submit(model=model)
    for job in (missed, failed):
        assert daemon.ended(job)["state"] == "failed"
    data_of_blob = b"some bytes"
    blob = "sha256:" + hashlib.sha256(data_of_blob).hexdigest()
    assert daemon.request("PUT", f"/v1/blobs/{blob}", data=data_of_blob).ok
    return {"url": daemon.url, "models": [model], "datasets": [data], "blobs": [blob],
            "jobs": [done, missed, failed]}


def test_the_daemon_keeps_its_contract(service, tmp_path):
    daemon = service(**LIMITS)
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG.format(hooks=HERE / "schemathesis_hooks.py", hangs=HANGS,
                                    examples=EXAMPLES, chains=CHAINS,
                                    fixed=str(not SECONDS).lower(),
                                    coverage=str(bool(SECONDS)).lower()))
    environment = dict(os.environ, PYTHONPATH=str(HERE),
                       QDQD_SCHEMATHESIS=json.dumps(stored(daemon)))
    command = [Path(sys.executable).with_name("st"), "--config-file", config, "run",
               f"{daemon.url}/openapi.yaml", "--no-color", "--checks", ",".join(CHECKS)]
    command += ["--max-time", str(SECONDS)] if SECONDS else []
    ran = subprocess.run(command, cwd=tmp_path, env=environment, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         timeout=SECONDS + 3000)  # the machine may be busy
    print(ran.stdout)
    assert ran.returncode == 0


FORMS = ["/v1/models", "/v1/datasets", "/v1/plan", "/v1/jobs", "/v1/quantize"]
NAMELESS = ["", "Content-Type: text/plain\r\n", "Content-Disposition: form-data\r\n",
            "Content-Disposition: form-data; name\r\n",
            'Content-Disposition: form-data; filename="x"\r\n',
            'Content-Disposition: form-data; name="\0x"\r\n']


@pytest.mark.shares_daemon
@pytest.mark.parametrize("path", FORMS)
def test_a_part_without_a_name_is_refused(daemon, path):
    for head in NAMELESS:
        answer = daemon.post(path, data=f"--b\r\n{head}\r\ntext\r\n--b--\r\n",
                             headers={"Content-Type": "multipart/form-data; boundary=b"})
        problem(answer, 400, "bad_request")


@pytest.mark.shares_daemon
def test_a_content_type_without_a_body_says_nothing(daemon):
    for path in ("/healthz", "/v1/jobs", "/v1/errors"):
        answer = daemon.get(path, headers={"Content-Type": "multipart/form-data"})
        assert answer.status_code == 200, answer.text


PRIORITIES = {"-9223372036854775808": 202, "9223372036854775807": 202, "0": 202,
              "9223372036854775808": 400, "1.5": 400, "": 400, "7\0": 400}


@pytest.mark.shares_daemon
@pytest.mark.parametrize("priority", PRIORITIES)
def test_the_priority_of_a_form_is_that_of_json(daemon, priority):
    form = {"model": ("m", nets.block_net()), "priority": (None, priority)}
    answer = daemon.post("/v1/jobs", files=form)
    assert answer.status_code == PRIORITIES[priority], answer.text


@pytest.mark.shares_daemon
@pytest.mark.parametrize("part, text", [("spec", "{}\0"), ("labels", "{}\0"),
                                        ("fresh", "true\0")])
def test_a_text_does_not_end_at_a_nul(daemon, part, text):
    form = {"model": ("m", nets.block_net()), part: (None, text)}
    document = problem(daemon.post("/v1/jobs", files=form), 400, "bad_request")
    assert document["errors"][0]["pointer"] == f"/{part}"
