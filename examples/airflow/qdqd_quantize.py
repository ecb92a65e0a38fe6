# SPDX-License-Identifier: Apache-2.0
"""A DAG of Airflow 3 that quantizes a model."""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException


@dag(schedule=None, params={
    "model": Param("/data/net.onnx", type="string"),
    "calibration": Param("/data/net.npz", type="string"),
    "spec": Param("/data/spec.json", type="string"),
    "output": Param("/data/net.int8.onnx", type="string")})
def qdqd_quantize():
    # A second try follows when the service was not reached, stayed busy or takes too long. The
    # job that has begun goes on, and the second try gets its result.
    @task(retries=3, retry_delay=timedelta(minutes=2))
    def quantize(params: dict) -> dict:
        import qdqd

        try:
            result = qdqd.quantize(params["model"], params["calibration"], params["spec"],
                                   timeout=3600)
        except qdqd.ProblemError as error:
            if isinstance(error, qdqd.AccuracyError):
                Path(params["output"]).with_suffix(".md").write_text(error.markdown())
            raise AirflowFailException(f"qdqd: {error}") from None
        Path(params["output"]).with_suffix(".md").write_text(result.markdown())
        result.save(params["output"], force=True)  # that of an earlier run
        return {"job": result.id, "verdict": result.verdict}

    quantize()


qdqd_quantize()
