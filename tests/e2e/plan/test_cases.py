# SPDX-License-Identifier: Apache-2.0
"""Insertion cases: the library's, a user's, an operator's, and hostile ones."""

import json
import os
import re
import subprocess
import time

import pytest

import judge
from nets import block_net, samples
from service import INSTALLED, ROOT, Service, eventually, kill_process, problem
from test_qdq import last_line, qdq

LIBRARY = {"resnet_v1", "resnet_v2", "mobilenet", "efficientnet", "inception",
           "residual", "maxpool", "batchnorm", "attention"}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    made = Service(tmp_path_factory.mktemp("cases")).start()
    made.net = made.upload("models", block_net())
    yield made
    made.stop()


def plan(one, **spec):
    answer = one.post("/v1/plan", json={"model": one.net, "spec": spec})
    assert answer.status_code == 200, answer.text
    return answer.json()


def row(document, name):
    (layer,) = [x for x in document["layers"] if x["name"] == name]
    return layer["quantized_inputs"], layer["reason"]


def mine(lua, name="mine"):
    return {"cases": [{"name": name, "lua": lua}]}


# --- the library's and a user's own --------------------------------------------------------


def test_library_is_listed(one):
    answer = one.get("/v1/cases")
    assert answer.status_code == 200
    cases = {x["name"]: x for x in answer.json()["cases"]}
    assert set(cases) == LIBRARY
    for case in cases.values():
        assert case["source"] == "library"
        assert len(case["info"]) > 20 and case["info"].isprintable()
    assert list(cases) == sorted(cases)


def test_residual(one):
    document = plan(one, cases=["residual"])
    assert row(document, "block/add") == ([1], "case:residual")
    assert [w for w in document["warnings"]
            if w["code"] == "residual_without_case"] == []
    without = plan(one)
    assert row(without, "block/add") == ([], "off by default")
    (warning,) = [w for w in without["warnings"]
                  if w["code"] == "residual_without_case"]
    assert "residual" in warning["detail"] and warning["node"] == "block/add"


@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_library_cases_run_under_their_names(one, name):
    """A library case gives the same plan by its name as when its script is sent."""
    lua = (ROOT / "engine" / "plan" / "cases" / f"{name}.lua").read_text()
    by_name, by_text = plan(one, cases=[name]), plan(one, **mine(lua, name))
    assert by_name == by_text
    answer = one.quantize(block_net(), samples(), spec={"cases": [name]})
    assert answer.status_code == 200, answer.text
    judge.load(answer.content)


def test_unknown_case(one):
    answer = one.post("/v1/plan", json={
        "model": one.net, "spec": {"cases": ["residual", "residuals"]}})
    document = problem(answer, 422, "invalid_spec")
    assert document["errors"][0]["pointer"] == "/cases/1"
    assert "residuals" in document["detail"] and '"residual"' in document["detail"]


def test_user_beats_a_case_and_a_case_beats_a_class(one):
    entry = {"name": "block/add", "quantization_index": [0]}
    document = plan(one, layers=[entry], cases=["residual"])
    assert row(document, "block/add") == ([0], "layers[0]")
    document = plan(one, layers=[{"class": "Add"}], cases=["residual"])
    assert row(document, "block/add") == ([1], "case:residual")


def test_partial_with_a_case_alone(one):
    document = plan(one, mode="partial", cases=["residual"])
    assert [x["name"] for x in document["layers"] if x["quantized_inputs"]] == [
        "block/add"]


@pytest.mark.parametrize("lua", ["return {}", "return nil", ""])
def test_partial_with_a_case_that_names_nothing(one, lua):
    spec = mine(f"return {{ case = function() {lua} end }}")
    assert [x for x in plan(one, **spec)["layers"] if x["reason"] == "case:mine"] == []
    answer = one.post("/v1/plan", json={
        "model": one.net, "spec": {"mode": "partial", **spec}})
    document = problem(answer, 422, "invalid_spec")
    assert document["errors"][0]["pointer"] == "/mode"


ENTRIES = """\
return {
    info = "the pools",
    case = function(model, spec)
        return {
            { class = "MaxPooling2D" },
            { name = { "pool/both", "pool/mean" }, quantization_index = { 0 } },
            { match = "head/f*", quantize_weight = false },
        }
    end,
}
"""


def test_a_case_of_ones_own(one):
    document = plan(one, **mine(ENTRIES))
    for name in ("pool/max", "pool/both", "pool/mean", "head/fc"):
        assert row(document, name) == ([0], "case:mine")
    assert row(document, "stem/conv") == ([0], "default")
    spec = mine(ENTRIES)
    answer = one.quantize(block_net(), samples(), spec=spec)
    assert answer.status_code == 200, answer.text
    report = one.report(answer.headers["Location"].rsplit("/", 1)[1])
    assert report["layers"] == document["layers"]
    assert report["spec"]["cases"] == spec["cases"]
    table = judge.Pairs(judge.load(answer.content)).table()
    assert table["pool/both"] == ([0], []) and table["head/fc"] == ([0], [])


def test_later_cases_win(one):
    other = ENTRIES.replace("{ 0 }", "{ 1 }").replace('"pool/mean"', '"pool/both"')
    spec = {"cases": [{"name": "a", "lua": ENTRIES}, {"name": "b", "lua": other}]}
    assert row(plan(one, **spec), "pool/both") == ([1], "case:b")
    spec["cases"].reverse()
    assert row(plan(one, **spec), "pool/both") == ([0], "case:a")


# --- hostile scripts -----------------------------------------------------------------------


def script(body):
    """Returns a case whose function has this body from line 4 on."""
    return f"\nreturn {{\n info = '', case = function(model, spec)\n{body}\nend }}"


# name: script, the line that the error names (0: some line, None: none), other words
HOSTILE = {
    "endless loop": (script("while true do end"), 4, "instructions"),
    "endless loop inside pcall": (
        script("while true do pcall(function() while true do end end) end"), 4),
    "endless loop in an error handler": (
        script("xpcall(error, function() while true do end end)"), 4),
    "endless loop when loaded": ("\nwhile true do end", 2),
    "endless calls": (script("local function f() return f() end\nf()"), 0),
    "recursion": (script("local function f() return 1 + f() end\nf()"), 0),
    "recursion inside pcall": (
        script("local function f() pcall(f) return f() end\nf()"), 0),
    "endless coroutines": (
        script("while true do coroutine.wrap(function() while true do "
               "coroutine.yield() end end)() end"), 4),
    "__gc that loops": (
        script("setmetatable({}, { __gc = function() while true do end end })\n"
               "local t for i = 1, 1e6 do t = { i } end\nreturn {}"), 4),
    "__close that loops": (
        script("local x <close> = setmetatable({}, { __close = function() "
               "while true do end end })\nreturn {}"), 4),
    "__index that loops": (
        script("local t = setmetatable({}, { __index = function() while true do end "
               "end })\nreturn t"), 4),
    "pattern that explodes": (
        script("return string.match(string.rep('a', 3e4), string.rep('.-', 9) .. 'b')"),
        4, "match"),
    "substitution without end": (
        script("while true do (('x'):rep(6e4)):gsub('.', 'x') end"), 4, "gsub"),
    "table.move over 2^40": (script("table.move({}, 1, 1 << 40, 2)"), 4),
    "table.move over 2^40 inside pcall": (
        script("while true do pcall(table.move, {}, 1, 1 << 40, 2) end"), 4),
    "table.concat over 2^40": (script("table.concat({}, '', 1, 1 << 40)"), 4),
    "table.unpack over 2^30": (script("return table.unpack({}, 1, 1 << 30)"), 4),
    "table.sort without end": (
        script("local t = {} for i = 1, 1e4 do t[i] = i end\n"
               "while true do table.sort(t, function(a, b) return a < b end) end"), 5),
    "memory bomb": (
        script("local t = {}\nwhile true do t[#t + 1] = { t } end"), 5),
    "memory bomb of text": (script("local s = 'x'\nwhile true do s = s .. s end"), 5,
                            "memory"),
    "memory bomb inside pcall": (
        script("local t = {}\nwhile true do pcall(function() for i = 1, 1e9 do "
               "t[#t + 1] = { i } end end) end"), 5),
    "string.rep of 1 GB": (script("return string.rep('x', 1 << 30)"), 4),
    "string.rep of 1 GB inside pcall": (
        script("while true do pcall(string.rep, 'x', 1 << 30) end"), 4),
    "string.format": (script("return string.format('%099999999d', 1)"), 4),
    "a pattern that explodes": (
        script("return string.find(('a'):rep(6e4), ('a-'):rep(99) .. 'b')"), 4,
        "pattern"),
    "os.execute": (script("os.execute('touch /tmp/qdqd_was_here')"), 4, "os"),
    "io.open": (script("io.open('/etc/passwd')"), 4, "io"),
    "require": (script("require('os')"), 4, "require"),
    "dofile": (script("dofile('/etc/passwd')"), 4, "dofile"),
    "load": (script("load('while true do end')()"), 4, "load"),
    "debug": (script("debug.sethook()"), 4, "debug"),
    "collectgarbage": (script("collectgarbage('stop')"), 4, "collectgarbage"),
    "bytecode": ("\x1bLua" + "T" * 40, None),
    "syntax": ("return {\n  info = 'x',\n  case = = 3 }", 3),
    "error in case": (script("error('no such luck')"), 4, "no such luck"),
    "error of another type": (script("error({})"), 0, "table"),
    "error without a value": (script("error()"), 0, "nil"),
    "a very long error": (script("error(string.rep('long ', 1e4))"), 4, "long"),
    "lines in an error": (script("error('a\\nb\\27[2J')"), 4),
    "calls nil": (script("local x\nx()"), 5),
    "wrong return type": (script("return 5"), 3, "number", "list"),
    "wrong return type, text": (script("return 'Add'"), 3, "string", "list"),
    "entry that is none": (script("return { 'Add' }"), 3, "entry 1"),
    "entry with an unknown member": (
        script("return { { class = 'Add', index = { 0 } } }"), 3, "entry 1",
        "'index'"),
    "entry without a selector": (script("return { {} }"), 3, "entry 1"),
    "entry with a wrong type": (
        script("return { { class = 'Add', quantize_input = 'no' } }"), 3, "entry 1",
        "'quantize_input'"),
    "entry with an empty index": (
        script("return { { class = 'Add' }, { class = 'Add', quantization_index = {} } }"
               ), 3, "entry 2", "'quantization_index'"),
    "entries without end": (
        script("local t = {} for i = 1, 1e7 do t[i] = { class = 'Add' } end return t"),
        4),
    "an entry that holds itself": (
        script("local t = {} t.name = t return { t }"), 3, "entry 1", "'name'"),
    "returns nothing": ("local x = 1", None, "nothing"),
    "no function": ("return { info = 'x', case = 5 }", None, "'case'", "number"),
    "a model that is changed": (script("model.nodes = nil"), 4, "model"),
}


def check_error(document, name):
    _, line, *words = HOSTILE[name]
    detail = document["detail"]
    assert document["code"] == "case_failed" and document["status"] == 422
    assert document["errors"] == [{"pointer": "/cases/0", "detail": detail}]
    at = "" if line is None else r", line \d+" if line == 0 else f", line {line}"
    assert re.match(f"case 'mine'{at}: ", detail), detail
    for word in words:
        assert word in detail
    assert detail.isprintable() and len(detail) < 512


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(one, name):
    """A hostile script gets a clear error soon, and the same processes answer the next
    request."""
    body = {"model": one.net, "calibration": one.upload("datasets", samples())}
    good, bad = {"evaluate": False}, mine(HOSTILE[name][0])
    plan(one)
    one.succeeded(one.submit(spec=good, **body))
    before = sorted(one.workers())
    assert len(before) == 2  # one process for plans, one for jobs
    begin = time.monotonic()
    answer = one.post("/v1/plan", json={"model": one.net, "spec": bad})
    check_error(problem(answer, 422, "case_failed"), name)
    document = one.ended(one.submit(spec=bad, **body))
    assert document["state"] == "failed"
    check_error(document["error"], name)
    assert time.monotonic() - begin < 100
    assert row(plan(one, cases=["residual"]), "block/add")[0] == [1]
    one.succeeded(one.submit(spec=good, **body))
    assert sorted(one.workers()) == before
    assert not os.path.exists("/tmp/qdqd_was_here")


def test_hostile_at_the_command_line(tmp_path):
    model, spec = tmp_path / "net.onnx", tmp_path / "spec.json"
    model.write_bytes(block_net())
    spec.write_text(json.dumps(mine(HOSTILE["endless loop inside pcall"][0])))
    done = qdq("plan", model, "--spec", spec)
    assert done.returncode == 1
    assert last_line(done).startswith("qdq: case_failed: case 'mine', line 4: ")


# --- an operator's folder ------------------------------------------------------------------

HOUSE = """\
return {
    info = "what this house does with pools",
    case = function(model, spec)
        return { { name = "pool/max" } }
    end,
    layer_support = { { class = "GlobalMaxPool", kind = "non_weighted" } },
}
"""
BROKEN = "return {\n  info = 'x',\n  case = = 3 }\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "cases.d"
    made.mkdir()
    (made / "house.lua").write_text(HOUSE)
    (made / "notes.txt").write_text("not a script (")
    return made


def test_operator(folder, service):
    one = service(engine_cases=folder)
    one.net = one.upload("models", block_net())
    cases = {x["name"]: x for x in one.get("/v1/cases").json()["cases"]}
    assert set(cases) == LIBRARY | {"house"}
    assert cases["house"] == {"name": "house", "info": "what this house does with pools",
                              "source": "operator"}
    (layer,) = [x for x in one.get("/v1/layers").json()["layers"]
                if x["source"] == "operator"]
    assert (layer["class"], layer["op"], layer["kind"], layer["quantize_input"]) == (
        "GlobalMaxPool", "GlobalMaxPool", "non_weighted", True)
    # The row applies to every plan, the case to specs that name it.
    assert row(plan(one), "head/max") == ([0], "default")
    assert row(plan(one), "pool/max") == ([], "off by default")
    answer = one.quantize(block_net(), samples(), spec={"cases": ["house"]})
    assert answer.status_code == 200, answer.text
    table = judge.Pairs(judge.load(answer.content)).table()
    assert table["pool/max"] == ([0], []) and table["head/max"] == ([0], [])


def test_operator_replaces_a_case(folder, service):
    (folder / "residual.lua").write_text(
        HOUSE.replace("pool/max", "block/add").replace("GlobalMaxPool", "Elu"))
    one = service(engine_cases=folder)
    one.net = one.upload("models", block_net())
    sources = {x["name"]: x["source"] for x in one.get("/v1/cases").json()["cases"]}
    assert sources["residual"] == "operator" and sources["maxpool"] == "library"
    assert row(plan(one, cases=["residual"]), "block/add") == ([0, 1], "case:residual")


@pytest.mark.parametrize("support", [False, True])
def test_installed_example(tmp_path, service, support):
    """The installed example works as it is, and with its commented half enabled."""
    (example,) = (INSTALLED / "etc" / "qdqd" / "cases.d").glob("*.example")
    assert example.name == "first_and_last.lua.example"
    lua = example.read_text()
    if support:
        head, tail = lua.split("    -- layer_support")
        lua = head + ("-- layer_support" + tail).replace("--", "")
    (tmp_path / "first_and_last.lua").write_text(lua)
    one = service(engine_cases=tmp_path)
    one.net = one.upload("models", block_net())
    document = plan(one, cases=["first_and_last"])
    assert row(document, "stem/conv") == ([], "case:first_and_last")
    assert row(document, "head/fc") == ([], "case:first_and_last")
    assert row(document, "block/conv1") == ([0], "default")
    document = plan(one, cases=["first_and_last"], layers=[{"name": "head/fc"}])
    assert row(document, "head/fc") == ([0], "layers[0]")
    classes = [x["class"] for x in one.get("/v1/layers").json()["layers"]]
    assert ("GlobalMaxPool" in classes) == support


def daemon_says(folder, tmp_path, *options):
    env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")}
    done = subprocess.run([INSTALLED / "sbin" / "qdqd", "--listen", "127.0.0.1:0",
                           "--state-dir", tmp_path / "state", *options],
                          env=env | {"QDQD_ENGINE_CASES": str(folder)}, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize("options", [[], ["--check-config"]])
def test_a_broken_script_refuses_the_start(folder, tmp_path, options):
    (folder / "later.lua").write_text(BROKEN)
    status, text = daemon_says(folder, tmp_path, *options)
    assert status == 2
    assert "later.lua, line 3" in text and "listening" not in text
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("lua, word", [
    ("while true do end", "x.lua, line 1"),
    ("return 5", "x.lua"),
    ("return {}", "x.lua"),
    ("return { info = 'a', case = 5 }", "x.lua"),
    ("return { layer_support = { { class = 'A' } } }", "x.lua"),
    ("return { layer_support = { { class = 'A', kind = 'heavy' } } }", "kind"),
    ("os.exit(0)", "x.lua, line 1"),
])
def test_broken_scripts_are_told(folder, tmp_path, lua, word):
    (folder / "x.lua").write_text(lua)
    status, text = daemon_says(folder, tmp_path, "--check-config")
    assert status == 2 and word in text, text


def test_folders(folder, tmp_path):
    assert daemon_says(folder, tmp_path, "--check-config") == (0, "")
    assert daemon_says("", tmp_path, "--check-config") == (0, "")
    assert daemon_says(tmp_path / "none", tmp_path, "--check-config") == (0, "")
    status, text = daemon_says(folder / "house.lua", tmp_path, "--check-config")
    assert status == 2 and "house.lua" in text


def test_a_script_that_breaks_later_costs_who_uses_it(folder, service):
    one = service(engine_cases=folder)
    one.net = one.upload("models", block_net())
    plan(one, cases=["house"])
    (folder / "house.lua").write_text(BROKEN)
    (worker,) = one.workers()
    kill_process(worker)
    eventually(lambda: worker not in one.workers())
    plan(one, cases=["residual"])
    answer = one.post("/v1/plan", json={"model": one.net, "spec": {"cases": ["house"]}})
    document = problem(answer, 422, "case_failed")
    assert re.search(r"'house', line 3", document["detail"])
    assert one.get("/v1/cases").status_code == 200


def test_operator_at_the_command_line(folder, tmp_path):
    model, spec, out = (tmp_path / n for n in ("net.onnx", "spec.json", "out.onnx"))
    data = tmp_path / "data.npz"
    model.write_bytes(block_net())
    data.write_bytes(samples())
    spec.write_text('{"cases": ["house"]}')
    done = qdq("plan", model, "--spec", spec, "--cases", folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^pool/max +MaxPooling2D +0 +- +case:house$", done.stdout, re.M)
    assert re.search(r"^head/max +GlobalMaxPool +0 +- +default$", done.stdout, re.M)
    done = qdq("quantize", model, "--spec", spec, "--calibration", data, "-o", out,
               "--cases", folder)
    assert done.returncode == 0, done.stderr
    assert judge.Pairs(judge.load(out.read_bytes())).table()["pool/max"] == ([0], [])
    done = qdq("plan", model, "--spec", spec, "--cases", "")
    assert done.returncode == 1 and "house" in last_line(done)
    (folder / "later.lua").write_text(BROKEN)
    for command in ("plan", "info"):
        done = qdq(command, model, "--cases", folder)
        assert done.returncode == 1 and "later.lua, line 3" in last_line(done)
