# SPDX-License-Identifier: Apache-2.0
"""The page at /ui, in Chromium: what a user does with it, and what happens to it meanwhile."""

import base64
import contextlib
import json
from pathlib import Path

import onnx
import pytest
import requests

import access
import nets
import webdriver
from service import eventually

HOSTILE = "<script>alert(1)</script>"
SPEC = "document.querySelector('#spec')"
ERRORS = "document.querySelector('#spec-errors').textContent"
SUMMARY = "document.querySelector('#plan-summary')?.textContent"
STATE = "document.querySelector('#job-state .state')?.textContent"


def hostile_net():
    """Returns nets.block_net() with a layer and a graph that are called like scripts."""
    model = onnx.load_from_string(nets.block_net())
    model.graph.name = "</title><img src=x onerror=alert(2)>"
    model.graph.node[0].name = HOSTILE
    return model.SerializeToString()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Makes the files that a user has: paths by name."""
    folder = tmp_path_factory.mktemp("files")
    contents = {"hostile.onnx": hostile_net(), "block.onnx": nets.block_net(),
                "samples.npz": nets.samples(), "broken.onnx": b"no model", "notes.txt": b"x"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


@contextlib.contextmanager
def visit(browser, daemon):
    """Opens the page in the browser. At the end, nothing but the daemon was asked, and the console
    has nothing but the statuses of answers that the page shows to the user."""
    browser.console(), browser.requested()
    browser.get(f"{daemon.url}/ui")
    yield browser
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])
    foreign = [url for url in browser.requested()
               if not url.startswith((daemon.url, "data:", "about:", "blob:"))]
    assert foreign == []
    assert [row for row in browser.console() if "the server responded with" not in row and
            "net::ERR_" not in row] == []
    browser.get("about:blank")


@pytest.fixture
def page(browser, daemon):
    with visit(browser, daemon) as shown:
        yield shown


def go(page, view):
    page.run("location.hash = arguments[0]", f"#/{view}")


def put_spec(page, text):
    page.run(f"{SPEC}.value = arguments[0]; {SPEC}.dispatchEvent(new Event('input'))", text)


def give(page, *paths):
    """Chooses files, and waits until the page has said something about each."""
    page.until("document.querySelector('#files')")
    page.type("#files", "\n".join(map(str, paths)))
    return page.until("(() => { const rows = [...document.querySelectorAll('#uploads li')];"
                      " return rows.length >= arguments[0] && !document.querySelector("
                      "'#uploads progress') && rows.map(row => row.textContent); })()",
                      len(paths))


def choose_target(page, name):
    page.run("const t = document.querySelector('#target'); t.value = arguments[0];"
             " t.dispatchEvent(new Event('change'))", name)


def start(page, files, spec):
    """Gives a model and data, writes the spec and runs the job; returns its id."""
    go(page, "new")
    give(page, files / "hostile.onnx", files / "samples.npz")
    put_spec(page, json.dumps(spec))
    page.until(SUMMARY)
    page.click("#view button.main")
    page.until("location.hash.startsWith('#/job/')")
    return page.run("return location.hash").split("/")[-1]


def test_a_job_from_its_files_to_its_report(browser, service, slow, files):
    daemon = service(**slow)
    with visit(browser, daemon) as page:
        follow_a_job(page, daemon, files)


def follow_a_job(page, daemon, files):
    job = start(page, files, {"sensitivity": {}})
    seen = set()

    def is_over():
        seen.add(page.run("return document.querySelector('#job-state small')?.textContent"))
        return page.run(f"return {STATE}") == "succeeded"

    eventually(is_over)
    assert any(seen), "its progress is live"
    document = daemon.job(job)
    assert document["spec"] == {"sensitivity": {}}
    assert document["labels"] == {"name": "hostile.onnx", "data": "samples.npz"}
    page.until("document.querySelector('iframe')")
    assert page.run("return document.querySelector('iframe').sandbox.value") == "allow-scripts"
    frame = page.find("iframe")
    page.call("POST", "/frame", {"id": {webdriver.ELEMENT: frame}})
    try:
        rows = page.until("document.querySelectorAll('#layers th button').length && "
                          "[...document.querySelectorAll('#layers tbody tr')]"
                          ".map(row => row.cells[1].textContent)")
        assert rows[0] == HOSTILE, "the report's own script runs, and a name is a text"
        assert page.run("return document.querySelectorAll('img').length") == 0
        assert page.run("try { return parent.document.title } catch { return null }") is None
    finally:
        page.call("POST", "/frame", {"id": None})


@contextlib.contextmanager
def slow_network(page):
    page.devtools("Network.enable")
    page.devtools("Network.emulateNetworkConditions", offline=False, latency=700,
                  downloadThroughput=-1, uploadThroughput=-1)
    yield
    page.devtools("Network.emulateNetworkConditions", offline=False, latency=0,
                  downloadThroughput=-1, uploadThroughput=-1)


RUN = "document.querySelector('#view button.main')"


@pytest.mark.shares_daemon
def test_run_waits_for_the_files(page, daemon, files):
    go(page, "new")
    give(page, files / "block.onnx")
    with slow_network(page):
        page.type("#files", str(files / "samples.npz"))
        page.click("#view button.main")
        assert page.run(f"return {RUN}.disabled")
        page.until("location.hash.startsWith('#/job/')")
    job = page.run("return location.hash").split("/")[-1]
    assert daemon.job(job)["labels"]["data"] == "samples.npz"
    # A file that is refused meanwhile leaves the job to the user.
    go(page, "new")
    give(page, files / "block.onnx")
    (files / "late.npz").write_bytes(b"no data")
    with slow_network(page):
        page.type("#files", str(files / "late.npz"))
        page.click("#view button.main")
        assert page.run(f"return {RUN}.disabled")
        page.until(f"document.querySelector('#uploads .wrong') && !{RUN}.disabled")
    assert page.run("return location.hash") == "#/new"


def test_a_job_for_openvino(browser, service, files):
    openvino = pytest.importorskip("openvino")
    [library] = (Path(openvino.__file__).parent / "libs").glob("libopenvino_c.so.*")
    daemon = service(engine_openvino=library)
    with visit(browser, daemon) as page:
        go(page, "new")
        give(page, files / "block.onnx", files / "samples.npz")
        choose_target(page, "openvino")
        page.until(SUMMARY)
        page.click("#view button.main")
        page.until("location.hash.startsWith('#/job/')")
        job = page.run("return location.hash").split("/")[-1]
        page.until(f"{STATE} === 'succeeded'")
        page.until("document.querySelector('iframe')")
        frame = page.find("iframe")
        page.call("POST", "/frame", {"id": {webdriver.ELEMENT: frame}})
        try:
            page.until("document.body.textContent.includes(arguments[0])",
                       f"openvino {openvino.get_version()}")
        finally:
            page.call("POST", "/frame", {"id": None})
    assert daemon.job(job)["spec"]["target"] == "openvino"
    assert daemon.report(job)["evaluation"]["deployed"]["runtime"]["name"] == "openvino"


@pytest.mark.shares_daemon
def test_it_shows_the_plan_and_errors_while_one_types(page, files):
    go(page, "new")
    assert "is stored" in give(page, files / "block.onnx")[0]
    assert "Q/DQ pairs" in page.until(SUMMARY)
    page.run(f"{SPEC}.value = ''")
    page.type("#spec", '{"mode": "partial", "layers": [{"name": "stem/cnv"}]}')
    page.until(f"{ERRORS}.includes('stem/cnv')")
    assert page.run(f"return {ERRORS}").startswith("Line 1, column 33 ")
    assert page.run("return document.querySelector('mark').textContent") == '"name": "stem/cnv"'
    page.click("#spec-errors button")
    assert page.run(f"return {SPEC}.value.slice({SPEC}.selectionStart, {SPEC}.selectionEnd)") == \
        '"name": "stem/cnv"'
    put_spec(page, '{"mode": "partial", "layers": [{"name": "stem/conv"}]}')
    page.until(f"{SUMMARY}.startsWith('1 of 12 layers')")
    assert page.run(f"return {ERRORS}") == ""
    choose_target(page, "onnxruntime")
    assert json.loads(page.run(f"return {SPEC}.value"))["target"] == "onnxruntime"


def drop(page, content, name):
    """Drops a file onto the page."""
    page.run("""
        const [text, name] = arguments, data = new DataTransfer();
        const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
        data.items.add(new File([bytes], name));
        const zone = document.querySelector(".drop");
        for (const type of ["dragover", "drop"])
          zone.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        """, base64.b64encode(content).decode(), name)


@pytest.mark.shares_daemon
def test_files_are_dropped(page, daemon, files):
    """The plan of a dropped model appears, and is marked where the spec has a mistake."""
    go(page, "new")
    page.until("document.querySelector('#files')")
    drop(page, (files / "block.onnx").read_bytes(), "dropped.onnx")
    page.until("/dropped.onnx +is stored/.test(document.querySelector('#uploads').textContent)")
    page.until(f"{SUMMARY}?.endsWith('Q/DQ pairs.')")
    for spec in ("{", '{"mod": 1}'):
        put_spec(page, spec)
        page.until(f"{SUMMARY}.endsWith('from before the mistake.')")
        put_spec(page, "{}")
        page.until(f"{SUMMARY}.endsWith('Q/DQ pairs.')")


# A spec with a mistake, and where it is.
MISTAKES = [
    ("{", 1, 2, "a member's name"), ('{"a" 1}', 1, 6, "a colon"), ("[1 2]", 1, 4, "a comma or ]"),
    ('{\n"a": 1,\n}', 3, 1, "a member's name"), ('{"a": 01}', 1, 7, "a value"),
    ("{'a': 1}", 1, 2, "a value"), ('{"a": "\t"}', 1, 7, "a value"), ("{} x", 1, 4, "a value"),
    ("{} {}", 1, 4, "nothing more"), ('{"a": tru}', 1, 7, "a value"), ('{"a": }', 1, 7, "a value"),
    ('{"a": "\\x"}', 1, 7, "a value"), ("[1,,2]", 1, 4, "a value"), ('{"ä": ]', 1, 7, "a value"),
]


@pytest.mark.shares_daemon
def test_it_finds_the_place_of_a_mistake(page):
    go(page, "new")
    page.until(SPEC)
    for text, line, column, wanted in MISTAKES:
        put_spec(page, text)
        said = page.run(f"return {ERRORS}")
        assert said.startswith(f"Line {line}, column {column} Expected {wanted}"), (text, said)
    for text in ("", "{}", ' {"a": [1, -2.5e3, null, {"b~/": "\\u00e4\\""}]} \n'):
        put_spec(page, text)
        assert page.run(f"return {ERRORS}") == "", text


@pytest.mark.shares_daemon
def test_a_wrong_file_is_refused(page, files):
    go(page, "new")
    said = give(page, files / "broken.onnx", files / "samples.npz")
    assert "is stored" in said[0] and "samples.npz" in said[0]
    assert "broken.onnx" in said[1] and "is stored" not in said[1] and len(said[1]) > 20
    said = give(page, files / "notes.txt")
    assert said[-1].startswith("notes.txt: neither a model")
    assert page.run("return document.querySelector('#model').value") == ""


def test_a_job_is_cancelled_and_run_again(browser, service, held, files):
    daemon = service(**held)
    with visit(browser, daemon) as page:
        cancel_a_job(page, daemon, files)


def cancel_a_job(page, daemon, files):
    job = start(page, files, {"sensitivity": {}, "calibration": {"method": "minmax"}})
    page.until(f"{STATE} === 'running'")
    page.run("[...document.querySelectorAll('.actions button')]"
             ".find(b => b.textContent === 'Cancel').click()")
    page.until(f"{STATE} === 'cancelled'")
    assert daemon.job(job)["state"] == "cancelled"
    page.click("a.button")
    page.until(f"{SPEC} && {SPEC}.value.includes('minmax')")
    put_spec(page, page.run(f"return {SPEC}.value").replace("minmax", "entropy"))
    page.until(SUMMARY)
    page.click("#view button.main")
    page.until("location.hash.startsWith('#/job/') && location.hash !== arguments[0]",
               f"#/job/{job}")
    again = page.run("return location.hash").split("/")[-1]
    document = daemon.job(again)
    assert document["spec"]["calibration"] == {"method": "entropy"}
    assert document["labels"] == {"name": "hostile.onnx", "data": "samples.npz"}
    daemon.post(f"/v1/jobs/{again}/cancel")
    page.until(f"{STATE} === 'cancelled'")


# Names that would run, turn the text behind them, cover other rows, or take all the width.
STRANGE = ["<img src=x onerror='window.ran = 1'>", "\u202egpj.tac", "\u2067\u05e9\u05dc\u05d5\u05dd",
           "e" + 90 * "\u0301", "\u001b[31mred", "\ufeff\u2028", "&lt;b&gt;", 160 * "W",
           "</script><script>window.ran = 1</script>"]


def strange_net():
    """Returns nets.block_net() with strange names of layers, one of 5,000 characters."""
    model = onnx.load_from_string(nets.block_net())
    model.graph.name = "".join(STRANGE)
    for node, name in zip(model.graph.node, [*STRANGE, 5000 * "L"]):
        node.name = name
    return model.SerializeToString()


def check_layout(page, view, there):
    """Shows a view and checks that nothing in it is wider than the window, that no name is higher
    than six lines, and that no name has run."""
    go(page, view)
    page.until("document.querySelector(arguments[0])", there)
    wide = page.run("return [...document.querySelectorAll('#view *')].filter(e => !e.closest('.scroll,"
                    " .editor') && e.getBoundingClientRect().right > innerWidth)"
                    ".map(e => e.outerHTML.slice(0, 100))")
    assert wide == [], view
    names = page.run("return [...document.querySelectorAll('.name')].map(e =>"
                     " [e.textContent, e.title, e.getBoundingClientRect().height])")
    assert names and all(text == title and height < 220 for text, title, height in names), view
    assert page.run("return document.querySelectorAll('img').length || window.ran") in (0, None)


@pytest.mark.parametrize("width", [1100, 390])
def test_names_of_strangers(browser, service, width):
    """Names are texts that neither run nor turn, cover or push away what stands beside them."""
    daemon = service()
    names = {"model": daemon.upload("models", strange_net()),
             "calibration": daemon.upload("datasets", nets.samples())}
    jobs = [daemon.submit(**names, labels={"name": name, "data": name}) for name in STRANGE]
    for job in jobs:
        daemon.succeeded(job)
    daemon.ended(daemon.submit(**names, spec={"layers": [{"name": "\u202e" + 100 * "N"}]}))
    with visit(browser, daemon) as page:
        page.devtools("Emulation.setDeviceMetricsOverride", width=width, height=1400,
                      deviceScaleFactor=1, mobile=False)
        try:
            look_at_names(page, jobs, width)
        finally:
            page.devtools("Emulation.clearDeviceMetricsOverride")


def look_at_names(page, jobs, width):
    check_layout(page, "jobs", "#view tbody tr")
    page.until("document.querySelectorAll('#view tbody tr').length === arguments[0]", len(jobs) + 1)
    table = page.run("return document.querySelector('#view table').getBoundingClientRect().width")
    assert table < max(width, 700), "no name pushes the states away"
    assert page.run("return [...document.querySelectorAll('#view .name')].map(e => e.textContent)"
                    )[1:] == STRANGE[::-1]
    said = page.run("return document.querySelector('#view .outcome').textContent")
    assert "\ufffdNNN" in said and "\u202e" not in said
    for job in (jobs[1], jobs[7]):
        check_layout(page, f"job/{job}", "iframe")
    options = page.until("(o => o.length > 1 && o.map(e => e.textContent))"
                         "([...document.querySelectorAll('.actions option')])")
    assert "\u202e" not in "".join(options) and max(map(len, options)) < 150
    check_layout(page, f"new/{jobs[0]}", "#plan-summary")
    assert page.run("return [...document.querySelectorAll('#plan td:first-child')]"
                    ".map(e => e.textContent)")[:len(STRANGE)] == STRANGE
    check_layout(page, "files", "#view tbody tr")
    page.run("document.querySelector('td button').click()")
    page.until("document.querySelector('td:nth-child(3) .name')")
    check_layout(page, "files", "#view tbody tr")


@pytest.mark.shares_daemon
def test_an_address_may_be_a_strangers(page):
    """An address that names no view, or another thing than an id, is that of the jobs, and asks the
    daemon for nothing else."""
    for address in ("%", "__proto__", "constructor", "job/%00", "job/..%2Fcases", "job/../cases",
                    "job/", "compare/a/?", "job/<img src=x onerror='window.ran = 1'>"):
        go(page, "reference")
        page.until("document.querySelector('#view td')")
        page.requested()
        go(page, address)
        page.until("document.querySelector('#view #counts:not(:empty)')")
        assert page.run("return document.title") == "Jobs – qdqd", address
        assert not [url for url in page.requested() if "/v1/jobs?" not in url], address


@pytest.mark.shares_daemon
def test_jobs_that_rest_are_not_drawn_again(page, daemon):
    """The page asks for the list every few seconds; rows that are as before stay."""
    job = daemon.submit(model=daemon.upload("models", nets.block_net()),
                        calibration=daemon.upload("datasets", nets.samples()))
    daemon.succeeded(job)
    go(page, "jobs")
    row = "document.querySelector(`a[href='#/job/${arguments[0]}']`)?.closest('tr')"
    page.until(f"{row}?.textContent.includes('succeeded')", job)
    page.run(f"window.changes = 0; new MutationObserver((list) => {{ changes += list.length; }})"
             f".observe({row}, {{childList: true, subtree: true, characterData: true}})", job)
    page.requested()
    asked = []
    eventually(lambda: asked.extend(page.requested()) or len(asked) >= 3)
    assert page.run("return changes") == 0


@pytest.mark.shares_daemon
def test_a_long_name_is_cut_between_characters(page, daemon, files):
    """The label with the name of a file has 200 characters, and no half of one."""
    name = 199 * "a" + "\U0001f600.onnx"
    go(page, "new")
    page.until("document.querySelector('#files')")
    drop(page, nets.block_net(), name)
    page.until(SUMMARY)
    give(page, files / "samples.npz")
    page.click("#view button.main")
    page.until("location.hash.startsWith('#/job/')")
    job = page.run("return location.hash").split("/")[-1]
    assert daemon.job(job)["labels"]["name"] == name[:200]


@pytest.mark.shares_daemon
def test_the_list_is_live_and_two_jobs_are_compared(page, daemon, files):
    names = {"model": daemon.upload("models", hostile_net()),
             "calibration": daemon.upload("datasets", nets.samples())}
    first = daemon.submit(**names, spec={}, labels={"name": HOSTILE})
    go(page, "jobs")
    page.until("document.querySelector(`a[href='#/job/${arguments[0]}']`)?.textContent === "
               "arguments[1]", first, HOSTILE)
    second = daemon.submit(**names, spec={"target": "onnxruntime",
                                          "calibration": {"method": "minmax"}})
    row = "document.querySelector(`a[href='#/job/${arguments[0]}']`)?.closest('tr')"
    for job, target in (first, "default"), (second, "onnxruntime"):
        page.until(f"{row}?.textContent.includes('succeeded')", job)
        assert page.run(f"return [...{row}.cells].slice(1, 3).map(e => e.lastChild.textContent)",
                        job) == [job[:12], target]
        page.run(f"{row}.querySelector('input').click()", job)
    page.run("[...document.querySelectorAll('button')]"
             ".find(b => b.textContent === 'Compare').click()")
    page.until("document.querySelectorAll('iframe').length === 2")
    assert page.run("return location.hash") == f"#/compare/{first}/{second}"
    picture, differences = page.run("return [...document.querySelectorAll('iframe')].map(e => e.srcdoc)")
    assert "/calibration/method" in differences
    assert all(id[:12] in picture for id in (first, second)) and "<circle" in picture
    assert page.violations() == []
    go(page, f"job/{first}")
    page.until("document.querySelector('iframe')?.srcdoc")
    assert page.violations() == []
    for view in ("files", "reference"):
        go(page, view)
        page.until("document.querySelectorAll('#view tbody tr').length > 1")
    assert {"float8e4m3fn", "residual", "not_found", "DepthwiseConv2D"} <= set(page.run(
        "return [...document.querySelectorAll('#view td:first-child')].map(e => e.textContent)"))


def test_a_long_queue_hides_no_running_job(browser, service, held):
    """The list begins with the newest 50 jobs; the one that runs is the oldest."""
    daemon = service(**held)
    names = {"model": daemon.upload("models", hostile_net()),
             "calibration": daemon.upload("datasets", nets.samples())}
    first = daemon.submit(**names, fresh=True)
    daemon.running(first)
    for _ in range(60):
        daemon.submit(**names, fresh=True)
    with visit(browser, daemon) as page:
        go(page, "jobs")
        text = page.until("document.querySelector('#counts')?.textContent")
        assert text.startswith("1 running, 50 or more queued."), text
        assert "newest 50" in text
        row = "document.querySelector(`a[href='#/job/${arguments[0]}']`)?.closest('tr')"
        page.until(f"{row}?.textContent.includes('running')", first)
        assert page.run("return document.querySelectorAll('#view tbody tr').length") == 51
        page.run("[...document.querySelectorAll('button')]"
                 ".find(b => b.textContent === 'Older jobs').click()")
        page.until("document.querySelectorAll('#view tbody tr').length === 61")
        page.until("document.querySelector('#counts').textContent === '1 running, 60 queued.'")
    for job in daemon.get("/v1/jobs?limit=500").json()["jobs"]:
        daemon.post(f"/v1/jobs/{job['id']}/cancel")


@pytest.mark.shares_daemon
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_and_listened_to(page, daemon, scheme):
    """Every text has the contrast of WCAG 2, level AA; what can be used has a name; axe finds
    nothing."""
    page.devtools("Emulation.setEmulatedMedia", media="",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
    for view, there in (("jobs", "#counts:not(:empty)"), ("new", "#target option + option"),
                        ("files", "h3"), ("reference", "td")):
        go(page, view)
        page.until("document.querySelector(arguments[0])", f"#view {there}")
        assert [row for row in page.contrasts() if row[0] < 4.5] == []
        nameless = page.run(
            "return [...document.querySelectorAll('[role], input, select, textarea, button, a,"
            " progress')].filter(e => !(e.ariaLabel || e.textContent || e.labels?.length ||"
            " e.id === 'notice')).map(e => e.outerHTML)")
        assert nameless == []
        assert page.violations() == []
        assert page.run("return document.querySelector('nav [aria-current]').hash") == f"#/{view}"
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    page.devtools("Emulation.setDeviceMetricsOverride", width=390, height=800,
                  deviceScaleFactor=1, mobile=True)
    try:
        for view in ("jobs", "new", "files", "reference"):
            go(page, view)
            page.until("document.querySelector('#view h2')")
            assert page.run("return document.documentElement.scrollWidth") <= 390, view
    finally:
        page.devtools("Emulation.clearDeviceMetricsOverride")


def test_a_token_is_asked_for_and_may_expire(browser, service, files):
    one = service()
    old = access.add(one.state, "old")
    with visit(browser, one):
        expire_a_token(browser, one, old, files)


def expire_a_token(browser, one, old, files):
    browser.until("document.querySelector('#sign-in').open")
    assert browser.run("return document.querySelector('#view td')") is None
    browser.type("#token", old + "\n")
    browser.until("document.querySelector('#counts')?.textContent")
    go(browser, "new")
    browser.until(SPEC)
    put_spec(browser, '{"mode": "full"}')
    new = access.add(one.state, "new")
    assert access.command(one.state, "revoke", "old").returncode == 0
    browser.type("#files", str(files / "block.onnx"))
    browser.until("document.querySelector('#sign-in').open")
    assert "expired" in browser.run("return document.querySelector('#sign-in-reason').textContent")
    browser.type("#token", new + "\n")
    browser.until("document.querySelector('#uploads').textContent.includes('is stored')")
    assert browser.run(f"return {SPEC}.value") == '{"mode": "full"}'
    kept = browser.run("return JSON.stringify([localStorage, sessionStorage, document.cookie])")
    assert kept == '[{},{},""]'


def test_the_daemon_is_restarted_under_the_page(browser, service):
    one = service()
    job = one.submit(model=one.upload("models", nets.block_net()),
                     calibration=one.upload("datasets", nets.samples()))
    one.succeeded(job)
    with visit(browser, one):
        restart(browser, one)


def restart(browser, one):
    row = "document.querySelector('#view tbody tr')?.textContent"
    browser.until(f"{row}?.includes('succeeded')")
    one.stop()
    browser.until("!document.querySelector('#notice').hidden && "
                  "document.querySelector('#notice').textContent.includes('does not answer')")
    one.arguments = ["--listen", one.url.removeprefix("http://")]
    one.start()
    browser.until("document.querySelector('#notice').hidden")
    assert "succeeded" in browser.run(f"return {row}")


def test_the_root_leads_to_the_page(browser, daemon):
    answer = requests.get(daemon.url + "/", allow_redirects=False, timeout=60)
    assert answer.status_code == 302 and answer.headers["Location"] == "/ui"
    browser.get(daemon.url)
    assert browser.run("return location.pathname") == "/ui"


def test_the_page_is_switched_off(service):
    one = service(http_ui="off")
    assert one.get("/ui").status_code == one.get("/").status_code == 404
    assert one.get("/v1/jobs").status_code == 200


def test_the_page_needs_no_token(service):
    one = service()
    access.add(one.state, "some")
    answer = one.get("/ui")
    assert answer.status_code == 200 and answer.headers["Cache-Control"] == "no-cache"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'; connect-src 'self';" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert requests.get(one.url + "/v1/jobs", timeout=60).status_code == 401
