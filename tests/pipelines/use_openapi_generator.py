# SPDX-License-Identifier: Apache-2.0
"""A user of the client that openapi-generator generates; see test_generated.py.

    use_openapi_generator.py URL
"""

import json
import sys
import uuid
from pathlib import Path

import urllib3
from made_by_openapi_generator import (ApiClient, ApiException, Configuration, DatasetsApi,
                                       JobRequest, JobsApi, ModelsApi, Problem)

BYTES = "application/octet-stream"


def again(call, *arguments, **named):
    """Repeats a request whose connection is lost. Ends the program at an error."""
    for rest in (2, 1, 0):
        try:
            return call(*arguments, **named)
        except ApiException as error:
            problem = Problem.from_json(error.body)
            sys.exit(f"{problem.code.value}: {problem.detail}")
        except urllib3.exceptions.HTTPError:
            if not rest:
                raise


client = ApiClient(Configuration(host=sys.argv[1], retries=urllib3.Retry(0)))
client.set_default_header("Connection", "close")  # the test's proxy looks at first requests
jobs = JobsApi(client)
# Without its content type the generated client would say that the bytes are JSON.
model = again(ModelsApi(client).store_model, Path("net.onnx").read_bytes(), _content_type=BYTES).id
data = again(DatasetsApi(client).store_dataset, Path("net.npz").read_bytes(), _content_type=BYTES).id

try:
    jobs.plan(JobRequest.from_dict({"model": model, "spec": {"layers": [{"name": "no such layer"}]}}))
    sys.exit("a wrong spec was planned")
except ApiException as refused:
    problem = Problem.from_json(refused.body)
    assert refused.status == 422 and problem.code.value == "unmatched"
    assert problem.errors[0].pointer == "/layers/0/name" and problem.retryable is False
try:
    jobs.get_job("j" + "0" * 32)
    sys.exit("there is a job that nobody made")
except ApiException as missing:
    assert missing.status == 404

asked = JobRequest.from_dict({"model": model, "calibration": data, "labels": {"by": "generated"},
                              "spec": json.loads(Path("spec.json").read_text())})
planned = again(jobs.plan, asked)
assert planned.summary.qdq_pairs > 0 and planned.layers[0].reason
job = again(jobs.create_job, asked, idempotency_key=str(uuid.uuid4()))
while job.state.value in ("queued", "running"):
    job = again(jobs.get_job, job.id, wait=30)
report = again(jobs.get_job_report, job.id)
assert report.calibration.samples == 6 and report.evaluation.outputs[0].name == "logits"
assert [gate.met for gate in report.gates] == [job.state.value == "succeeded"]
if job.state.value != "succeeded":
    sys.exit(f"{job.error.code.value}: {job.error.detail}")
assert job.labels == {"by": "generated"}
assert job.result.summary.verdict and job.ended_at >= job.created_at
Path("int8.onnx").write_bytes(again(jobs.get_job_model, job.id))
print(f"{job.result.summary.quantized_layers} layers, verdict {job.result.summary.verdict}")
