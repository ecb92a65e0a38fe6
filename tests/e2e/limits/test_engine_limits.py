# SPDX-License-Identifier: Apache-2.0
"""Each limit of section `limits`: exceeding it by one is refused, reaching it is not, and
the daemon is healthy afterwards."""

import gzip
import io
import tarfile

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from service import cpu_seconds, problem

RAW = {"Content-Type": "application/octet-stream"}
SPEC = {"calibration": {"ranges": {"x": [-1, 1], "y0": [-1, 1]}}, "evaluate": False}


def model(nodes, shape=(1, 4), initializers=(), functions=(), opset=17):
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in initializers])
    domains = [helper.make_opsetid("", opset)]
    if functions:
        domains.append(helper.make_opsetid("local", 1))
    return helper.make_model(graph, ir_version=8, opset_imports=domains,
                             functions=functions).SerializeToString()


def chain(n):
    names = ["x", *(f"t{i}" for i in range(n - 1)), "y"]
    return [helper.make_node("Relu", [a], [b], f"relu{i}")
            for i, (a, b) in enumerate(zip(names, names[1:]))]


def chained(n):
    return model(chain(n))


def nested(n):
    """Returns `n` nested graphs: an If in an If."""
    def body(left, out):
        if left == 1:
            nodes = [helper.make_node("Identity", ["x"], [out], f"last{out}")]
        else:
            nodes = [helper.make_node("If", ["c"], [out], f"if{out}",
                                      then_branch=body(left - 1, out + "t"),
                                      else_branch=body(1, out + "e"))]
        return helper.make_graph(nodes, "body" + out, [], [
            helper.make_tensor_value_info(out, TensorProto.FLOAT, None)])
    top = body(n, "y")
    return model(top.node, initializers=[("c", np.array(True))])


def ranked(n):
    return model(chain(1), shape=(1,) * n)


def ranked_weight(n):
    return model([helper.make_node("Add", ["x", "w"], ["y"], "add")],
                 initializers=[("w", np.ones((1,) * n, np.float32))])


def weighing(n):
    return model([helper.make_node("Gemm", ["x", "w"], ["y"], "dense")], shape=(1, 1),
                 initializers=[("w", np.ones((1, n // 4), np.float32))])


def constant(n):
    """Returns the same model with the tensor in a Constant node."""
    value = numpy_helper.from_array(np.ones((1, n // 4), np.float32))
    return model([helper.make_node("Constant", [], ["w"], "c", value=value),
                  helper.make_node("Gemm", ["x", "w"], ["y"], "dense")], shape=(1, 1))


@pytest.mark.parametrize("limit, most, over, make", [
    ("graph_nodes", 10, 11, chained), ("graph_depth", 3, 4, nested),
    ("tensor_rank", 5, 6, ranked), ("tensor_rank", 5, 6, ranked_weight),
    ("tensor_bytes", 4000, 4004, weighing), ("tensor_bytes", 4000, 4004, constant)])
def test_models(service, limit, most, over, make):
    one = service(**{f"limits_{limit}": most})
    kept = one.post("/v1/models", data=make(most), headers=RAW)
    assert kept.status_code == 201, kept.text
    for path in ("/v1/models", "/v1/quantize"):
        answer = (one.post(path, data=make(over), headers=RAW) if path == "/v1/models"
                  else one.post(path, files={"model": make(over)}))
        told = problem(answer, 422, "limit_exceeded")
        assert f"limits.{limit} ({most})" in told["detail"], told
        assert str(over) in told["detail"]
    assert len(one.stored_files()) == 1
    assert one.get("/healthz").status_code == 200
    assert one.post("/v1/models", data=make(most), headers=RAW).status_code == 200


def test_functions_count_where_they_are_called(service):
    """A model of two nodes that call functions of ten nodes each counts as twenty nodes.
    """
    def function(name):
        inner = [helper.make_node("MatMul", [a, a], [b]) for a, b in zip(
            ["i", *(f"t{k}" for k in range(9))], [*(f"t{k}" for k in range(9)), "o"])]
        return helper.make_function("local", name, ["i"], ["o"], inner,
                                    [helper.make_opsetid("", 17)])
    calls = [helper.make_node("f", ["x"], ["y0"], "f", domain="local"),
             helper.make_node("g", ["y0"], ["y"], "g", domain="local")]
    data = model(calls, functions=[function("f"), function("g")])
    one = service(limits_graph_nodes=19)
    stored = one.post("/v1/models", data=data, headers=RAW).json()["id"]
    told = problem(one.post("/v1/plan", json={"model": stored, "spec": SPEC}), 422,
                   "limit_exceeded")
    assert "limits.graph_nodes (19)" in told["detail"]
    job = one.ended(one.submit(model=stored, spec=SPEC))
    assert (job["state"], job["error"]["code"]) == ("failed", "limit_exceeded")


def test_a_limit_that_was_lowered(service, tmp_path):
    """A stored model that exceeds the new limit is refused when it is used, and can still
    be downloaded."""
    one = service(limits_graph_nodes=11)
    stored = one.post("/v1/models", data=chained(11), headers=RAW).json()["id"]
    one.stop()
    one.environment["QDQD_LIMITS_GRAPH_NODES"] = "10"
    one.start()
    job = one.ended(one.submit(model=stored, spec=SPEC))
    assert (job["state"], job["error"]["code"]) == ("failed", "limit_exceeded")
    assert one.get(f"/v1/models/{stored}").content == chained(11)


def packed(size):
    """Returns calibration data of this many bytes as a .tar.gz."""
    values = numpy_helper.from_array(np.zeros(size // 4, np.float32), "x")
    data = values.SerializeToString()
    with io.BytesIO() as out:
        with tarfile.open(fileobj=out, mode="w") as tar:
            entry = tarfile.TarInfo("test_data_set_0/input_0.pb")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        return gzip.compress(out.getvalue())


def test_archives(service):
    one = service(limits_archive_bytes="100K")
    told = problem(one.post("/v1/datasets", data=packed(200 << 10), headers=RAW), 422,
                   "limit_exceeded")
    assert "limits.archive_bytes" in told["detail"]
    assert one.stored_files() == []
    kept = one.post("/v1/datasets", data=packed(64 << 10), headers=RAW)
    assert kept.status_code == 201, kept.text


def test_a_node_with_very_many_inputs(daemon):
    """Planning takes time in proportion to the number of inputs."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "fc"),
             helper.make_node("Sum", ["a"] * 200_000, ["y"], "sum")]
    net = model(nodes, initializers=[("w", np.eye(4, dtype=np.float32))])
    spec = {"cases": ["residual"]}
    answer = daemon.post("/v1/plan", json={"model": daemon.upload("models", net), "spec": spec})
    assert answer.status_code == 200, answer.text
    assert sum(cpu_seconds(worker) for worker in daemon.workers()) < 10
    (row,) = [x for x in answer.json()["layers"] if x["name"] == "sum"]
    assert row["reason"] == "case:residual" and len(row["quantized_inputs"]) > 199_000
