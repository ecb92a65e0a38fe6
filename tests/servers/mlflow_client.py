# SPDX-License-Identifier: Apache-2.0
"""MLflow's own client, for test_mlflow.py. It runs in the Python of the server.

    mlflow_client.py register MODEL NAME ALIAS
    mlflow_client.py load REF SAMPLES      # prints the outputs and the version as JSON
    mlflow_client.py webhook URL SECRET    # for new versions; prints what MLflow's test of it says
"""

import json
import sys

import mlflow
import numpy
import onnx
import onnxruntime


def register(model, name, alias):
    with mlflow.start_run():
        logged = mlflow.onnx.log_model(onnx.load(model), name="model",
                                       registered_model_name=name)
    mlflow.MlflowClient().set_registered_model_alias(name, alias,
                                                     logged.registered_model_version)


def load(ref, samples):
    model = mlflow.onnx.load_model(ref)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feed = {session.get_inputs()[0].name: numpy.load(samples)}
    by_flavour = mlflow.pyfunc.load_model(ref).predict(numpy.load(samples))
    client = mlflow.MlflowClient()
    name, alias = ref.removeprefix("models:/").split("@")
    version = client.get_model_version_by_alias(name, alias)
    run = client.get_run(version.run_id)
    print(json.dumps({
        "output": session.run(None, feed)[0].tolist(),
        "by_flavour": next(iter(by_flavour.values())).tolist(),
        "version": version.version, "tags": version.tags, "status": run.info.status,
        "metrics": run.data.metrics,
        "inputs": [one.model_id for one in run.inputs.model_inputs],
        "outputs": [one.model_id for one in run.outputs.model_outputs],
        "source": version.source,
        "artifacts": sorted(one.path for one in client.list_artifacts(version.run_id))}))


def webhook(url, secret):
    client = mlflow.MlflowClient()
    made = client.create_webhook(name="qdqd", url=url, events=["model_version.created"],
                                 secret=secret)
    tested = client.test_webhook(made.webhook_id)
    print(json.dumps({"success": tested.success, "status": tested.response_status,
                      "body": tested.response_body}))


{"register": register, "load": load, "webhook": webhook}[sys.argv[1]](*sys.argv[2:])
