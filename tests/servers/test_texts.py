# SPDX-License-Identifier: Apache-2.0
"""Texts that strangers chose: cut at every byte, of all planes of Unicode, with controls and with
bytes that are not UTF-8. No text holds a lane, and SQLite and PostgreSQL keep the same one."""

import io
import json
import sqlite3
import subprocess
import time

import numpy as np
import onnx
import pytest

from database import Server
from far import Far
from onnx import TensorProto, helper, numpy_helper
from service import INSTALLED, Service

CHARACTERS = ["é", "한", "\U0001f600", "\U0010ffff", "\u0085", "\ufeff"]
CONTROLS = "".join(chr(c) for c in range(1, 32)) + "\x7f"
DAMAGED = (b"\xff" * 40, b"\xe2\x82" * 20, b"\xed\xa0\x80" + b"c" * 37, CONTROLS.encode() + b"d" * 8)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("postgresql"))
    yield one
    one.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def daemon(request, tmp_path):
    environment = {"QDQD_WORKERS_COUNT": "2"}
    if request.param == "postgresql":
        server = request.getfixturevalue("server")
        server.empty()
        environment["QDQD_STORE_URL"] = server.url
    one = Service(tmp_path, **environment).start()
    yield one
    one.stop()


def net(name):
    """Returns a network whose input, layer and output have that name."""
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", [name, "w"], [name + ".y"], name)], "g",
        [value(name, TensorProto.FLOAT, ["n", 4])],
        [value(name + ".y", TensorProto.FLOAT, ["n", 4])], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                             ir_version=8).SerializeToString()


def damaged(model, name, by):
    """Puts bytes of the same number, which are not UTF-8, in the place of the name's characters."""
    return model.replace(name.encode(), by)


def data(name):
    """Returns samples in an array of that name."""
    file = io.BytesIO()
    np.savez(file, **{name: np.random.default_rng(1).normal(0, 1, [6, 4]).astype(np.float32)})
    return file.getvalue()


def ends(daemon, *jobs):
    """Waits until the jobs have ended, which takes no time where no lane is held."""
    return [daemon.get(f"/v1/jobs/{job}?wait=20").json() for job in jobs]


def failing(daemon):
    """Submits jobs that fail with an error that names an input: first names that are UTF-8."""
    other = daemon.upload("datasets", data("other"))
    jobs = []
    for shift in range(4):
        for character in CHARACTERS:
            name = "a" * shift + character * (520 // len(character.encode()))
            jobs.append(daemon.submit(model=daemon.upload("models", net(name)),
                                      calibration=other))
    name = "b" * 40
    for by in DAMAGED:
        model = damaged(net(name), name, by)
        jobs.append(daemon.submit(model=daemon.upload("models", model), calibration=other))
    return jobs


seen = {}


def same(kind, found):
    """The other record has the same."""
    assert found == seen.setdefault(kind, found)


def without_ids(error):
    return {name: value for name, value in error.items() if name != "instance"}


def test_errors(daemon):
    began = time.monotonic()
    errors = [without_ids(job["error"]) for job in ends(daemon, *failing(daemon))]
    assert [error["code"] for error in errors] == ["calibration_mismatch"] * len(errors)
    whole = json.dumps(errors[:-len(DAMAGED)], ensure_ascii=False)
    assert "\ufffd" not in whole and "..." in whole
    daemon.succeeded(daemon.submit_glyphs())  # no lane is held
    assert time.monotonic() - began < 60
    same("errors", errors)
    assert "store_failed" not in daemon.log.read_text()


def test_missed_gates_labels_and_warnings(daemon):
    """A gate of an output with any name is missed as `accuracy`, and labels hold any text."""
    jobs = []
    for name in [character * (240 // len(character.encode())) for character in CHARACTERS]:
        jobs.append(daemon.submit(
            model=daemon.upload("models", net(name)), labels={name[:20]: name[:60]},
            calibration=daemon.upload("datasets", data(name)),
            spec={"accept": {"min_sqnr_db": 900}, "on_unmatched": "warn", "cases": [{"name": "absent", "lua": f"""
                return {{case = function() return {{{{name = "nothing {name}"}}}} end}}"""}]}))
    ended = ends(daemon, *jobs)
    assert [job["error"]["code"] for job in ended] == ["accuracy"] * len(jobs)
    reports = [daemon.get(f"/v1/jobs/{job['id']}/report").json() for job in ended]
    assert all(report["warnings"] for report in reports)
    found = [(without_ids(job["error"]), job["labels"]) for job in ended]
    assert "\ufffd" not in json.dumps([found, reports], ensure_ascii=False)
    same("gates", (found, [report["warnings"] for report in reports]))
    listed = daemon.get("/v1/jobs", params={"label": f"{CHARACTERS[0] * 20}:{CHARACTERS[0] * 60}"})
    assert listed.status_code in (200, 400)
    daemon.succeeded(daemon.submit_glyphs())


def refuse(daemon, request):
    """Makes the database refuse the texts of errors, but for one of the daemon's own."""
    if "QDQD_STORE_URL" in daemon.environment:
        request.getfixturevalue("server").sql(
            'ALTER TABLE "qdqd".jobs ADD CHECK (error_detail LIKE \'the job failed%\')')
        return
    with sqlite3.connect(daemon.state / "qdqd.sqlite3") as database:
        database.execute(
            "CREATE TRIGGER refuses BEFORE UPDATE ON jobs WHEN new.error_detail NOT LIKE"
            " 'the job failed%' BEGIN SELECT raise(ABORT, 'refused'); END")


def test_a_refused_text_ends_the_job(daemon, request):
    """A statement that the database refuses for its values is not sent again and again."""
    refuse(daemon, request)
    jobs = failing(daemon)[:3]
    ended = ends(daemon, *jobs)
    assert [job["state"] for job in ended] == ["failed"] * 3
    for job in ended:
        assert job["error"]["code"] == "calibration_mismatch"
        assert "refuses the text" in job["error"]["detail"]
    daemon.succeeded(daemon.submit_glyphs())
    assert daemon.log.read_text().count("store_failed") <= 4 * len(CHARACTERS) + len(DAMAGED)


@pytest.fixture
def far():
    """A registry whose model lacks its data, which an error names by the name of a tensor."""
    model = onnx.load_model_from_string(net("x"))
    weight = model.graph.initializer[0]
    weight.name = model.graph.node[0].input[1] = "a" + "é" * 130
    weight.data_location = TensorProto.EXTERNAL
    weight.ClearField("raw_data")
    weight.external_data.add(key="location", value="gone.bin")
    one = Far(model.SerializeToString())
    yield one
    one.close()


@pytest.mark.parametrize("refuses", [False, True])
def test_a_failing_fetch_is_not_repeated(daemon, far, request, tmp_path, refuses):
    """Its bytes come once, also where the database refuses the text of the error."""
    (tmp_path / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\n")
    daemon.stop()
    daemon.arguments = ["--config", tmp_path / "qdqd.conf"]
    daemon.start()
    if refuses:
        refuse(daemon, request)
    job = daemon.post("/v1/jobs", json={"model": "prod:models:/glyph@champion"}).json()["id"]
    ended, = ends(daemon, job)
    assert ended["state"] == "failed" and ended["error"]["code"] == "external_missing", ended
    assert ("refuses the text" in ended["error"]["detail"]) == refuses
    time.sleep(2)
    assert sum(path.endswith("model.onnx") for path in far.paths()) == 1


def test_a_record_of_an_earlier_version(server, tmp_path):
    """Bytes that are not UTF-8 do not keep a record from PostgreSQL."""
    server.empty()
    one = Service(tmp_path).start()
    job = one.submit(model=one.upload("models", net("x")),
                     calibration=one.upload("datasets", data("y")))
    ends(one, job)
    one.stop()
    with sqlite3.connect(one.state / "qdqd.sqlite3") as database:
        database.execute("UPDATE jobs SET error_detail = CAST(x'C3A920C3202DFF' AS TEXT)")
    subprocess.run([INSTALLED / "sbin" / "qdqd", "--state-dir", one.state, "--migrate-to", server.url],
                   env={}, check=True, capture_output=True, timeout=60)
    assert server.sql('SELECT error_detail FROM "qdqd".jobs') == "é \ufffd -\ufffd"
