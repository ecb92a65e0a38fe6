# SPDX-License-Identifier: Apache-2.0
"""A user of the client that openapi-python-client generates; see test_generated.py.

    use_openapi_python_client.py URL
"""

import json
import sys
import uuid
from io import BytesIO
from pathlib import Path

import httpx
from made_by_openapi_python_client import Client
from made_by_openapi_python_client.api.datasets import store_dataset
from made_by_openapi_python_client.api.jobs import (create_job, get_job, get_job_model,
                                                    get_job_report, plan)
from made_by_openapi_python_client.api.models import store_model
from made_by_openapi_python_client.models import JobRequest, Problem
from made_by_openapi_python_client.types import File


def again(call, **arguments):
    """Repeats a request whose connection is lost. Ends the program at an error."""
    for rest in (2, 1, 0):
        try:
            # A file that was sent has been read to its end.
            made = {name: make() if callable(make) else make for name, make in arguments.items()}
            found = call.sync(client=client, **made)
            break
        except httpx.TransportError:
            if not rest:
                raise
    if isinstance(found, Problem):
        sys.exit(f"{found.code.value}: {found.detail}")
    return found


# The test's proxy looks at the first request of each connection.
client = Client(base_url=sys.argv[1], timeout=90, raise_on_unexpected_status=True,
                headers={"Connection": "close"})
model = again(store_model, body=lambda: File(BytesIO(Path("net.onnx").read_bytes()))).id
data = again(store_dataset, body=lambda: File(BytesIO(Path("net.npz").read_bytes()))).id

refused = plan.sync(client=client, body=JobRequest.from_dict(
    {"model": model, "spec": {"layers": [{"name": "no such layer"}]}}))
assert isinstance(refused, Problem) and refused.code.value == "unmatched"
assert refused.errors[0].pointer == "/layers/0/name" and refused.retryable is False
missing = get_job.sync("j" + "0" * 32, client=client)
assert isinstance(missing, Problem) and missing.status == 404

asked = JobRequest.from_dict({"model": model, "calibration": data, "labels": {"by": "generated"},
                              "spec": json.loads(Path("spec.json").read_text())})
planned = again(plan, body=asked)
assert planned.summary.qdq_pairs > 0 and planned.layers[0].reason
job = again(create_job, body=asked, idempotency_key=str(uuid.uuid4()))
while job.state.value in ("queued", "running"):
    job = again(get_job, id=job.id, wait=30)
report = again(get_job_report, id=job.id)
assert report.calibration.samples == 6 and report.evaluation.outputs[0].name == "logits"
assert [gate.met for gate in report.gates] == [job.state.value == "succeeded"]
if job.state.value != "succeeded":
    sys.exit(f"{job.error.code.value}: {job.error.detail}")
assert job.labels.additional_properties == {"by": "generated"}
assert job.result.summary.verdict and job.ended_at >= job.created_at
Path("int8.onnx").write_bytes(again(get_job_model, id=job.id).payload.read())
print(f"{job.result.summary.quantized_layers} layers, verdict {job.result.summary.verdict.value}")
