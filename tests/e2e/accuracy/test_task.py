# SPDX-License-Identifier: Apache-2.0
"""The user's own task: labels, or a metric that is an ONNX graph. The figures are those that
NumPy computes of onnxruntime's outputs."""

import collections
import io
import json
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from service import CALIBRATION, DATA, FEW_SAMPLES, QUANTIZE, ROOT, from_bench, problem

sys.path.insert(0, str(ROOT / "clients" / "python"))
import qdqd  # noqa: E402

real = from_bench("real")
SAMPLES = 200


def labelled():
    images, labels = judge.test_images()
    return images[:SAMPLES], labels[:SAMPLES].astype(np.int64)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def good_data():
    images, labels = labelled()
    return npz(input=images, labels=labels)


def value(name, dtype, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


ANSWERS = [value("numerator", TensorProto.FLOAT, []), value("denominator", TensorProto.FLOAT, [])]


def graph(nodes, inputs, weights=(), opset=17, imports=()):
    model = helper.make_model(helper.make_graph(nodes, "metric", inputs, ANSWERS, list(weights)),
                              opset_imports=[helper.make_opsetid("", opset), *imports],
                              ir_version=8)
    return model.SerializeToString()


LOGITS = value("logits", TensorProto.FLOAT, None)
LABELS = value("labels", TensorProto.INT64, None)


def cross_entropy():
    """The sum of the negative logarithms of the right classes' probabilities, over the number of
    samples."""
    node = helper.make_node
    return graph([
        node("LogSoftmax", ["logits"], ["logs"], axis=1),
        node("Unsqueeze", ["labels", "one"], ["index"]),
        node("GatherElements", ["logs", "index"], ["right"], axis=1),
        node("ReduceSum", ["right"], ["sum"], keepdims=0),
        node("Neg", ["sum"], ["numerator"]),
        node("Size", ["labels"], ["size"]),
        node("Cast", ["size"], ["denominator"], to=TensorProto.FLOAT)],
        [LOGITS, LABELS], [numpy_helper.from_array(np.array([1], np.int64), "one")])


def entropy_by_numpy(logits, labels):
    logits = logits.astype(np.float64)
    logits -= logits.max(1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    return float(-logs[np.arange(len(labels)), labels].mean())


class Done:
    """A run of the command with data to judge by."""

    def __init__(self, folder, spec, metric=None, model="glyph_resnet", data=None,
                 timeout=300):
        paths = {name: folder / name for name in ("e", "m", "s.json", "o.onnx", "r.json")}
        paths["e"].write_bytes(good_data() if data is None else data)
        if metric is not None:
            paths["m"].write_bytes(metric)
            spec = {**spec, "task": {"kind": "metric", "model": str(paths["m"]),
                                     **spec.get("task", {})}}
        paths["s.json"].write_text(json.dumps(spec))
        done = subprocess.run(
            [*QUANTIZE, DATA / f"{model}.onnx", "--spec", paths["s.json"], "--calibration",
             FEW_SAMPLES, "--evaluation", paths["e"], "-o", paths["o.onnx"], "--report",
             paths["r.json"]], capture_output=True, text=True, timeout=timeout)
        self.code, self.said = done.returncode, done.stderr
        self.left = sorted(path.name for path in folder.iterdir())
        self.report = json.loads(paths["r.json"].read_text()) if "r.json" in self.left else None
        self.task = self.report and self.report["evaluation"]["task"]
        self.result = paths["o.onnx"]


def outputs(model):
    """The model as the target tensorrt is judged, by the literal arithmetic, sample by sample."""
    images, _ = labelled()
    return judge.run(str(model), {"input": images}, batch=1, integers=False)


CLASSES = {"task": {"kind": "classification"}}


@pytest.mark.parametrize("name", ["glyph_resnet", "glyph_mobilenet", "glyph_vit"])
def test_classification_equals_numpy(tmp_path, name):
    done = Done(tmp_path, CLASSES, model=name)
    _, labels = labelled()
    assert done.task["float"] == pytest.approx(
        np.mean(outputs(DATA / f"{name}.onnx").argmax(1) == labels), abs=1e-6)
    assert done.task["quantized"] == pytest.approx(
        np.mean(outputs(done.result).argmax(1) == labels), abs=1e-6)
    assert done.task["drop"] == pytest.approx(done.task["float"] - done.task["quantized"])
    low, high = done.task["interval"]
    assert low <= done.task["drop"] <= high
    assert done.task["samples"] == SAMPLES and done.task["runtime"]["name"] == "onnxruntime"


def four_digits(values):
    return [float(f"{value:.4g}") for value in values]


def test_what_a_result_confuses_equals_numpy(tmp_path):
    """The rows to which both models give other classes, and the points of the drawing."""
    done = Done(tmp_path, {**CLASSES, "weights": {"dtype": "int4"}, "evaluate": {"samples": 64}},
                model="glyph_mobilenet")
    _, labels = labelled()
    real, made = outputs(DATA / "glyph_mobilenet.onnx"), outputs(done.result)
    answers = list(zip(labels.tolist(), real.argmax(1).tolist(), made.argmax(1).tolist()))
    changed = collections.Counter(row for row in answers if row[1] != row[2])
    assert done.task["rows"] == len(labels) and changed
    assert done.task["changed"] == sum(changed.values())
    told = {(row["label"], row["float"], row["quantized"]): row["rows"] for row in done.task["confusions"]}
    wanted = sorted(changed.items(), key=lambda item: (-item[1], item[0]))[:20]
    assert list(told.items()) == wanted
    points = done.report["evaluation"]["outputs"][0]["points"]
    assert 40 <= len(points) <= 120
    elements = set(zip(four_digits(real.ravel()), four_digits(made.ravel())))
    near = sum(tuple(point) in elements for point in points)
    assert near >= 0.9 * len(points), "other batches may round the last digit otherwise"


@pytest.mark.parametrize("once", [False, True])
def test_metric_equals_numpy(tmp_path, once):
    done = Done(tmp_path, {"task": {"once": once}}, cross_entropy())
    _, labels = labelled()
    for member, model in (("float", DATA / "glyph_resnet.onnx"), ("quantized", done.result)):
        wanted = entropy_by_numpy(outputs(model), labels)
        assert done.task[member] == pytest.approx(wanted, abs=1e-6 * max(1, abs(wanted)))
    low, high = done.task["interval"]
    assert low < done.task["drop"] < high
    if once:
        assert [low, high] == pytest.approx(interval_by_groups(
            [entropies(outputs(model), labels) for model in (DATA / "glyph_resnet.onnx", done.result)],
            done.task["drop"]), abs=1e-6)


def entropies(logits, labels):
    return [entropy_by_numpy(logits[i:i + 1], labels[i:i + 1]) for i in range(len(labels))]


def interval_by_groups(figures, drop, groups=20):
    """The jackknife by groups of samples that xorshift64* deals out."""
    state, mask, dealt = 0x9e3779b97f4a7c15, 2**64 - 1, [i % groups for i in range(len(figures[0]))]
    for i in range(len(dealt), 1, -1):
        state ^= state >> 12
        state ^= state << 25 & mask
        state ^= state >> 27
        k = (state * 0x2545f4914f6cdd1d & mask) >> 32
        k = k * i >> 32
        dealt[i - 1], dealt[k] = dealt[k], dealt[i - 1]
    left = [np.array(dealt) != group for group in range(groups)]
    drops = np.array([np.mean(np.array(figures[0])[rows]) - np.mean(np.array(figures[1])[rows]) for rows in left])
    half = 2.093 * np.sqrt((groups - 1) / groups * np.sum((drops - drops.mean()) ** 2))
    return [drop - half, drop + half]


def only_all():
    """A metric that takes the samples of the test and no other number of them."""
    node = helper.make_node
    return graph([
        node("Reshape", ["labels", "shape"], ["rows"]),
        node("Cast", ["rows"], ["floats"], to=TensorProto.FLOAT),
        node("ReduceSum", ["floats"], ["numerator"], keepdims=0),
        node("ReduceSum", ["logits"], ["sum"], keepdims=0),
        node("Mul", ["sum", "zero"], ["nothing"]),
        node("Exp", ["nothing"], ["denominator"])],
        [LOGITS, LABELS], [numpy_helper.from_array(np.array([SAMPLES // 2, 2], np.int64), "shape"),
                           numpy_helper.from_array(np.array(0, np.float32), "zero")])


def test_no_interval_of_a_metric_that_is_called_once(tmp_path):
    """A metric that fails without a part of the samples, and too few of them."""
    images, labels = labelled()
    for name, metric, n in (("all", only_all(), SAMPLES), ("few", cross_entropy(), 19)):
        (tmp_path / name).mkdir()
        done = Done(tmp_path / name, {"task": {"once": True}}, metric,
                    data=npz(input=images[:n], labels=labels[:n]))
        assert done.code == 0, done.said
        assert done.task["interval"] is None and done.task["samples"] == n


def agreement(output):
    """Twice what both say to be there, over what each says (F1), of an output above 0.5."""
    node = helper.make_node
    return graph([
        node("Greater", [output, "half"], ["found"]),
        node("And", ["found", "labels"], ["both"]),
        *(node("Cast", [name], [name + "_f"], to=TensorProto.FLOAT)
          for name in ("found", "labels", "both")),
        *(node("ReduceSum", [name + "_f"], [name + "_n"], keepdims=0)
          for name in ("found", "labels", "both")),
        node("Add", ["both_n", "both_n"], ["numerator"]),
        node("Add", ["found_n", "labels_n"], ["denominator"])],
        [value(output, TensorProto.FLOAT), value("labels", TensorProto.BOOL)],
        [numpy_helper.from_array(np.array(0.5, np.float32), "half")])


@pytest.mark.parametrize("name", ["silero_vad", "basic_pitch"])
def test_metric_of_other_peoples_models(tmp_path, name):
    """Models with a state, of several outputs, and with a large one: the labels are made."""
    model, calibration, test, _ = real.load(name, None)
    test = test[:8]
    session = judge.session(str(model))
    outputs_of = [session.run(None, feed)[0] for feed in test]
    labels = np.random.default_rng(4).random((len(test), *outputs_of[0].shape[1:])) < 0.3
    for path, feeds, more in (("c.npz", calibration[:8], {}), ("e.npz", test, {"labels": labels})):
        np.savez(tmp_path / path, **{k: np.stack([f[k] for f in feeds]) for k in feeds[0]}, **more)
    (tmp_path / "m").write_bytes(agreement(session.get_outputs()[0].name))
    (tmp_path / "s.json").write_text(json.dumps(
        {"task": {"kind": "metric", "model": str(tmp_path / "m")}}))
    subprocess.run([*QUANTIZE, model, "--spec", tmp_path / "s.json", "--calibration",
                    tmp_path / "c.npz", "--evaluation", tmp_path / "e.npz", "-o",
                    tmp_path / "o.onnx", "--report", tmp_path / "r.json"], check=True, timeout=300)
    task = json.loads((tmp_path / "r.json").read_text())["evaluation"]["task"]
    found = np.stack([one[0] for one in outputs_of]) > 0.5
    both, each = np.sum(found & labels), np.sum(found) + np.sum(labels)
    assert task["float"] == pytest.approx(2 * both / each, abs=1e-6)


def test_same_bytes_again(tmp_path):
    runs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        runs.append(Done(tmp_path / name, CLASSES))
    assert runs[0].task == runs[1].task
    assert runs[0].result.read_bytes() == runs[1].result.read_bytes()


def test_gate(tmp_path):
    done = Done(tmp_path, {**CLASSES, "accept": {"max_task_drop": 0.05}})
    gate, = done.report["gates"]
    assert gate["name"] == "max_task_drop" and gate["met"]
    done = Done(tmp_path, {**CLASSES, "accept": {"max_task_drop": -0.5}})
    assert done.code != 0 and "max_task_drop" in done.said


def test_the_task_is_a_goal_of_a_recipe(tmp_path):
    """Weights of 2 bits ruin the model, whose last layer would stay in float by rule C26, those of 8 do
    not."""
    spec = {**CLASSES, "target": "onnxruntime", "activations": "none", "rules": {"C26": False},
            "weights": {"dtype": "int4", "granularity": {"block": 32}}}
    done = Done(tmp_path, {**spec, "recipe": {"formats": ["int2", "int8"], "max_task_drop": 0.02}})
    steps = done.report["recipe"]
    kept, = (step for step in steps if step["kept"])
    assert kept["task_drop"] == pytest.approx(done.task["drop"]) and done.task["drop"] <= 0.02
    smaller = [step for step in steps if step["size_ratio"] < kept["size_ratio"]]
    assert smaller and all(step["task_drop"] is None or step["task_drop"] > 0.02
                           for step in smaller)
    assert "recipe_goal_missed" not in {w["code"] for w in done.report["warnings"]}


def test_a_goal_of_a_recipe_that_no_choice_reaches(tmp_path):
    done = Done(tmp_path, {**CLASSES, "target": "onnxruntime", "activations": "none",
                           "recipe": {"formats": ["int8"], "max_task_drop": -0.5}})
    missed, = (w for w in done.report["warnings"] if w["code"] == "recipe_goal_missed")
    assert "max_task_drop -0.5 is missed" in missed["detail"]
    assert done.report["summary"]["verdict"] == "poor"
    assert all(step["sqnr_db"] > 20 for step in done.report["recipe"])  # and not below the goal


@pytest.mark.parametrize("target", ["tensorrt", "openvino"])
def test_the_task_is_a_goal_of_a_search(tmp_path, target):
    """All in integers this network loses several points on all targets."""
    done = Done(tmp_path, {**CLASSES, "target": target, "search": {"max_task_drop": 0.0}},
                model="glyph_resnet_skewed")
    found = done.report["search"]
    assert found["met"] and found["task_drop"] <= 0
    assert done.task["drop"] == pytest.approx(found["task_drop"])


@pytest.mark.parametrize("question", ["recipe", "search"])
def test_a_goal_without_a_task(tmp_path, question):
    done = Done(tmp_path, {"target": "onnxruntime", question: {"max_task_drop": 0.01}})
    assert done.code != 0 and f"/{question}/max_task_drop" in done.said


def test_float_model_at_chance(tmp_path):
    """Images in another range, and labels that count from one: nothing is quantized."""
    images, labels = labelled()
    for data in (npz(input=images * 255, labels=labels),
                 npz(input=images, labels=(labels + 1) % 45)):
        done = Done(tmp_path, CLASSES, data=data)
        assert done.code != 0 and "float_at_chance" in done.said
        assert "o.onnx" not in done.left


def foreign():
    return graph([helper.make_node("Gelu", ["logits"], ["numerator"], domain="com.microsoft"),
                  helper.make_node("ReduceMax", ["logits"], ["denominator"], keepdims=0)],
                 [LOGITS], imports=[helper.make_opsetid("com.microsoft", 1)])


def many_nodes():
    chain = [helper.make_node("Identity", [f"x{i}"], [f"x{i + 1}"]) for i in range(2001)]
    return graph([helper.make_node("ReduceMax", ["logits"], ["x0"], keepdims=0), *chain,
                  helper.make_node("Identity", ["x2001"], ["numerator"]),
                  helper.make_node("Identity", ["x2001"], ["denominator"])], [LOGITS])


def external():
    model = onnx.load_model_from_string(cross_entropy())
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="passwd")
    return model.SerializeToString()


def not_a_number():
    return graph([helper.make_node("Identity", ["logits"], ["numerator"]),
                  helper.make_node("ReduceMax", ["logits"], ["denominator"], keepdims=0)], [LOGITS])


def other_input():
    return graph([helper.make_node("ReduceMax", ["scores"], ["numerator"], keepdims=0),
                  helper.make_node("ReduceMax", ["scores"], ["denominator"], keepdims=0)],
                 [value("scores", TensorProto.FLOAT, None)])


WRONG = {
    "foreign operator": (foreign, "not one of ONNX's own"),
    "too many nodes": (many_nodes, "more than 2000 nodes"),
    "external data": (external, "external_missing"),
    "no number": (not_a_number, "something else than one finite number"),
    "unknown input": (other_input, "'scores'"),
    "no model": (lambda: b"GIF89a" * 10, "invalid_model"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_metric(tmp_path, what):
    make, text = WRONG[what]
    done = Done(tmp_path, {}, make())
    assert done.code != 0 and text in done.said, done.said
    assert "o.onnx" not in done.left


def endless():
    """A loop that goes round 2^62 times."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]),
         helper.make_node("Add", ["x", "x"], ["y"])], "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
         value("x", TensorProto.FLOAT, [])],
        [value("on", TensorProto.BOOL, []), value("y", TensorProto.FLOAT, [])])
    return graph([helper.make_node("ReduceMax", ["logits"], ["first"], keepdims=0),
                  helper.make_node("Loop", ["times", "yes", "first"], ["numerator"], body=body),
                  helper.make_node("Identity", ["first"], ["denominator"])], [LOGITS],
                 [numpy_helper.from_array(np.array(2 ** 62, np.int64), "times"),
                  numpy_helper.from_array(np.array(True), "yes")])


def hungry():
    """Makes a terabyte."""
    return graph([helper.make_node("ConstantOfShape", ["shape"], ["all"]),
                  helper.make_node("ReduceMax", ["logits"], ["first"], keepdims=0),
                  helper.make_node("Add", ["all", "first"], ["sums"]),
                  helper.make_node("ReduceSum", ["sums"], ["numerator"], keepdims=0),
                  helper.make_node("Identity", ["first"], ["denominator"])], [LOGITS],
                 [numpy_helper.from_array(np.array([1 << 14, 1 << 14, 1 << 10], np.int64), "shape")])


def test_hungry_metric(tmp_path):
    done = Done(tmp_path, {}, hungry())
    assert done.code != 0 and "the metric" in done.said, done.said
    assert "o.onnx" not in done.left


def test_endless_metric(tmp_path):
    """The command ends after a minute, and leaves no file behind."""
    began = time.monotonic()
    done = Done(tmp_path, {}, endless())
    assert done.code != 0 and "the metric takes longer than it may" in done.said
    assert 55 < time.monotonic() - began < 120
    assert done.left == ["e", "m", "s.json"]


# --- the service -----------------------------------------------------------------------

def test_job(daemon):
    """A job names its data to judge by and its metric; its figures are the command's."""
    data = daemon.upload("datasets", good_data())
    metric = daemon.upload("models", cross_entropy())
    job = daemon.submit_glyphs(evaluation=data, spec={"task": {"kind": "metric", "model": metric}})
    document = daemon.succeeded(job)
    assert document["evaluation"] == data
    task = daemon.report(job)["evaluation"]["task"]
    wanted = entropy_by_numpy(outputs(DATA / "glyph_resnet.onnx"), labelled()[1])
    assert task["float"] == pytest.approx(wanted, abs=1e-6)
    # Other data is another job, and not answered by the first.
    images, labels = labelled()
    other = daemon.upload("datasets", npz(input=images[:100], labels=labels[:100]))
    again = daemon.submit_glyphs(evaluation=other,
                                 spec={"task": {"kind": "metric", "model": metric}})
    assert daemon.succeeded(again)["cached_from"] is None
    assert daemon.report(again)["evaluation"]["task"]["samples"] == 100
    same = daemon.submit_glyphs(evaluation=data,
                                spec={"task": {"kind": "metric", "model": metric}})
    assert daemon.succeeded(same)["cached_from"] == job


def test_form(daemon):
    parts = {"model": ("m", (DATA / "glyph_resnet.onnx").read_bytes()),
             "calibration": ("c", CALIBRATION.read_bytes()),
             "evaluation": ("e", good_data()),
             "spec": (None, json.dumps(CLASSES), "application/json")}
    answer = daemon.post("/v1/jobs", files=parts)
    assert answer.status_code == 202, answer.text
    job = answer.json()["id"]
    assert daemon.succeeded(job)["evaluation"].startswith("sha256:")
    assert daemon.report(job)["evaluation"]["task"]["float"] > 0.9


def test_documents_name_the_runtime(daemon):
    """The page and the Markdown of a report have the figures of the task and what ran it."""
    data = daemon.upload("datasets", good_data())
    job = daemon.submit_glyphs(evaluation=data, spec=CLASSES)
    daemon.succeeded(job)
    task = daemon.report(job)["evaluation"]["task"]
    for media, title in (("text/html", "<h3>The task</h3>"), ("text/markdown", "## The task")):
        text = daemon.get(f"/v1/jobs/{job}/report", headers={"Accept": media}).text
        assert title in text
        assert "by the literal arithmetic of the pairs" in text.lower()
        assert f"onnxruntime {task['runtime']['version']} on {task['processor']}" in text
        assert str(task["float"]) in text


def test_python_client(daemon):
    client = qdqd.Client(daemon.url)
    images, labels = labelled()
    result = client.quantize(DATA / "glyph_resnet.onnx", FEW_SAMPLES, CLASSES,
                             evaluation={"input": images, "labels": labels})
    assert client.report(result.job["id"])["evaluation"]["task"]["samples"] == SAMPLES


def test_command_through_a_service(daemon, tmp_path):
    (tmp_path / "e.npz").write_bytes(good_data())
    (tmp_path / "m.onnx").write_bytes(cross_entropy())
    (tmp_path / "s.json").write_text(json.dumps(
        {"task": {"kind": "metric", "model": str(tmp_path / "m.onnx")}}))
    subprocess.run([QUANTIZE[0], "--url", daemon.url, "quantize", DATA / "glyph_resnet.onnx",
                    "--calibration", FEW_SAMPLES, "--evaluation", tmp_path / "e.npz", "--spec",
                    tmp_path / "s.json", "-o", tmp_path / "o.onnx", "--report",
                    tmp_path / "r.json"], check=True, timeout=120)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["evaluation"]["task"]["samples"] == SAMPLES
    assert report["spec"]["task"]["model"].startswith("sha256:")


def test_missing_inputs(daemon):
    none = "sha256:" + "0" * 64
    model = daemon.upload("models", DATA / "glyph_resnet.onnx")
    for members, where in (({"evaluation": none}, "/evaluation"),
                           ({"spec": {"task": {"kind": "metric", "model": none}}}, "/task/model"),
                           ({"spec": {"task": {"kind": "metric", "model": "m.onnx"}}},
                            "/task/model")):
        answer = daemon.post("/v1/jobs", json={"model": model, **members})
        document = problem(answer, 404, "not_found")
        assert document["errors"][0]["pointer"] == where


def test_used_inputs_stay(service):
    """Data and metric of a job that runs are not deleted."""
    daemon = service()
    data = daemon.upload("datasets", good_data())
    metric = daemon.upload("models", endless())
    job = daemon.submit_glyphs(evaluation=data, spec={"task": {"kind": "metric", "model": metric}})
    daemon.running(job)
    assert daemon.request("DELETE", f"/v1/datasets/{data}").status_code == 409
    assert daemon.request("DELETE", f"/v1/models/{metric}").status_code == 409
    daemon.request("DELETE", f"/v1/jobs/{job}")


def test_endless_metric_ends_its_worker_alone(service):
    """The metric's worker ends; a job beside it, and the next one, succeed."""
    daemon = service()
    data = daemon.upload("datasets", good_data())
    metric = daemon.upload("models", endless())
    job = daemon.submit_glyphs(evaluation=data, spec={"task": {"kind": "metric", "model": metric}})
    beside = daemon.submit_glyphs("glyph_mobilenet")
    document = daemon.ended(job)
    assert document["state"] == "failed"
    assert document["error"]["code"] == "limit_exceeded"
    assert "the metric takes longer than it may" in document["error"]["detail"]
    daemon.succeeded(beside)
    daemon.succeeded(daemon.submit_glyphs("glyph_se"))


def test_hungry_metric_in_a_worker(daemon):
    data = daemon.upload("datasets", good_data())
    metric = daemon.upload("models", hungry())
    job = daemon.submit_glyphs(evaluation=data, spec={"task": {"kind": "metric", "model": metric}})
    document = daemon.ended(job)
    assert document["state"] == "failed", document
    daemon.succeeded(daemon.submit_glyphs("glyph_mobilenet"))
