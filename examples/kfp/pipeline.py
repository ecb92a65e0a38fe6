# SPDX-License-Identifier: Apache-2.0
"""A component of Kubeflow Pipelines that quantizes a model, and a pipeline of it alone.

    python3 pipeline.py pipeline.yaml
"""

import os
import sys

from kfp import compiler, dsl

# The address of the client's wheel, which pip installs in the component's container.
CLIENT = os.environ.get("QDQD_CLIENT", "https://wheels.example/qdqd-0.13.0-py3-none-any.whl")


@dsl.component(base_image="python:3.12", packages_to_install=[CLIENT])
def quantize(model: dsl.Input[dsl.Model], calibration: dsl.Input[dsl.Dataset], spec: dict,
             url: str, int8: dsl.Output[dsl.Model], report: dsl.Output[dsl.Markdown],
             metrics: dsl.Output[dsl.Metrics]):
    """Quantizes a model. Fails when it misses a bound of the spec's `accept`."""
    import sys

    import qdqd

    try:
        result = qdqd.quantize(model.path, calibration.path, spec, url=url, timeout=3600)
    except qdqd.Error as error:
        if isinstance(error, qdqd.AccuracyError):
            print(error.markdown(), flush=True)
        sys.exit(f"qdqd: {error}")
    result.save(int8.path)
    with open(report.path, "w", encoding="utf-8") as file:
        file.write(result.markdown())
    for output in result.report["evaluation"]["outputs"]:
        for name in ("sqnr_db", "cosine", "top1_agreement"):
            if output[name] is not None:
                metrics.log_metric(f"{output['name']}.{name}", output[name])


@dsl.pipeline(name="qdqd-quantize")
def pipeline(model: str, calibration: str, spec: dict, url: str):
    """Quantizes a model whose files lie in the object store."""
    float_model = dsl.importer(artifact_uri=model, artifact_class=dsl.Model)
    data = dsl.importer(artifact_uri=calibration, artifact_class=dsl.Dataset)
    # Not with set_retry(): the client itself waits for a busy service, and a missed bound would
    # be missed again.
    quantize(model=float_model.output, calibration=data.output, spec=spec, url=url)


if __name__ == "__main__":
    compiler.Compiler().compile(pipeline, sys.argv[1])
