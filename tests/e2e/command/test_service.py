# SPDX-License-Identifier: Apache-2.0
"""qdq --url: the command as a client of a daemon. Checks the requests that it sends, the files
that it writes, and how it continues after lost connections."""

import hashlib
import json
import os
import re
import subprocess
from urllib.parse import urlsplit

import onnx
import pytest

import access
import judge
import nets
from cutting_proxy import CuttingProxy
from service import DATA, FEW_SAMPLES, INSTALLED, QUANTIZE, Service
from terminal import run_on_terminal
from test_multifile import external_net
from test_qdq import last_line
from test_tls import end, listening, make_certificate, start

QDQ = INSTALLED / "bin" / "qdq"
RESNET = DATA / "glyph_resnet.onnx"
GLYPHS = [RESNET, "--calibration", FEW_SAMPLES]
GATED = '{"accept": {"min_sqnr_db": 99}}'
# Needs no data.
WEIGHTS = {"mode": "partial", "layers": [{"class": "Dense", "quantize_input": False}],
           "evaluate": False}
BUSY = (b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
        b"Connection: close\r\n\r\n")


def clean(**environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")}
    return {**env, **environment}


def qdq(url, *words, cwd=None, **environment):
    before = ["--url", url] if url is not None else []
    return subprocess.run([QDQ, *before, *map(str, words)], cwd=cwd, text=True, timeout=40,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          env=clean(**environment))


def begin(url, *words, cwd):
    """Begins `qdq quantize` and returns the process and its job's id."""
    process = subprocess.Popen([QDQ, "--url", url, "quantize", *map(str, words)], cwd=cwd,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=clean())
    job = re.fullmatch(r"qdq: job (\w+)\n", process.stderr.readline())[1]
    return process, job


def names(folder):
    return sorted(p.name for p in folder.iterdir())


# --- the same work, elsewhere --------------------------------------------------------------


@pytest.mark.shares_daemon
def test_the_result_is_that_of_the_command(daemon, tmp_path):
    far = qdq(daemon.url, "quantize", *GLYPHS, "-o", "far.onnx", "--report", "far.json", "--html",
              "far.html", cwd=tmp_path)
    assert far.returncode == 0, far.stderr
    near = subprocess.run([*QUANTIZE, *GLYPHS, "-o", "near.onnx", "--report", "near.json"],
                          cwd=tmp_path, text=True, capture_output=True, env=clean())
    assert near.returncode == 0, near.stderr
    assert names(tmp_path) == ["far.html", "far.json", "far.onnx", "near.json", "near.onnx"]
    judge.load((tmp_path / "far.onnx").read_bytes())
    assert (tmp_path / "far.onnx").read_bytes() == (tmp_path / "near.onnx").read_bytes()
    # The summary is the same except for the file's name and the time.
    ours, theirs = ([re.sub(r"in [\d.]+ s$|\b(far|near)\.onnx", "", line)
                     for line in done.stdout.splitlines()] for done in (far, near))
    assert far.stdout.startswith("far.onnx\n")
    assert ours == theirs and any(line.startswith("  verdict: fair, by the") for line in ours)
    assert ours[-2] == "  how to run it with tensorrt:"
    warnings = [line for line in far.stderr.splitlines() if "warning" in line]
    assert warnings == near.stderr.splitlines()
    far, near = (json.loads((tmp_path / name).read_text()) for name in ("far.json", "near.json"))
    # The engine is the same, in two programs.
    assert far["summary"]["made_by"].pop("build") != near["summary"]["made_by"].pop("build")
    assert far["evaluation"] == near["evaluation"] and far["summary"] == near["summary"]
    page = (tmp_path / "far.html").read_text()
    assert page.startswith("<!doctype html>") and "<h2" in page


@pytest.mark.shares_daemon
@pytest.mark.parametrize("words", [["plan"], ["plan", "--all"], ["plan", "--json"], ["info"],
                                   ["info", "--json"]], ids=" ".join)
def test_plan_and_info_print_the_same(daemon, words):
    far, near = (qdq(url, *words, RESNET) for url in (daemon.url, None))
    assert far.returncode == near.returncode == 0, far.stderr
    assert far.stderr == near.stderr
    if words[-1] == "--json":
        assert json.loads(far.stdout) == json.loads(near.stdout)
    elif words[0] == "info":
        assert far.stdout == near.stdout
    else:
        *far, last = far.stdout.splitlines()
        *near, other = near.stdout.splitlines()
        assert far == near
        # The document does not count activations and weights apart.
        pairs = re.fullmatch(r"(.*): (\d+) activations and (\d+) weights get a Q/DQ pair", other)
        assert last == f"{pairs[1]} with {int(pairs[2]) + int(pairs[3])} Q/DQ pairs"


@pytest.mark.shares_daemon
def test_ids_in_the_place_of_files(daemon, tmp_path):
    model = daemon.upload("models", RESNET)
    data = daemon.upload("datasets", FEW_SAMPLES)
    done = qdq(daemon.url, "quantize", model, "--calibration", data, "-o", "o.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of 32 layers" in qdq(daemon.url, "plan", model).stdout
    done = qdq(daemon.url, "info", "sha256:" + 64 * "0")
    assert done.returncode == 1 and "qdq: not_found: " in last_line(done)


def test_jobs_cancel_and_report(service, tmp_path, held):
    daemon = service(**held)
    (tmp_path / "one.onnx").write_bytes(nets.block_net())
    (tmp_path / "x.npz").write_bytes(nets.samples())
    process, job = begin(daemon.url, "one.onnx", "--calibration", "x.npz", cwd=tmp_path)
    daemon.running(job)
    head, row = qdq(daemon.url, "jobs").stdout.splitlines()
    assert head.split() == ["JOB", "STATE", "QUEUED", "PROGRESS", "NAME"]
    assert row.split()[:2] == [job, "running"] and row.split()[-1] == "one.onnx"
    for words, found in ((["--state", "running"], True), (["--state", "failed"], False),
                         (["--label", "name:one.onnx"], True), (["--label", "name:a&b"], False),
                         (["--all"], True)):
        done = qdq(daemon.url, "jobs", *words)
        assert done.returncode == 0 and (job in done.stdout) == found, words
    assert json.loads(qdq(daemon.url, "jobs", "--json").stdout)["jobs"][0]["id"] == job
    done = qdq(daemon.url, "report", job, cwd=tmp_path)
    assert done.returncode == 1 and "not_finished" in last_line(done)
    done = qdq(daemon.url, "cancel", job)
    assert done.returncode == 0 and done.stdout.startswith(job), done.stderr
    # The command that waits for the job fails with it.
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert told.splitlines()[-1].startswith("qdq: cancelled: ")
    # Cancelling may be repeated, but a job that has succeeded stays as it is.
    assert qdq(daemon.url, "cancel", job).stdout == f"{job} cancelled\n"
    done = daemon.submit(model=daemon.upload("models", nets.block_net()), spec=WEIGHTS)
    daemon.kill()
    daemon.environment = {}
    daemon.start()
    daemon.succeeded(done)
    done = qdq(daemon.url, "cancel", done)
    assert done.returncode == 1 and "qdq: ended: " in last_line(done)
    assert names(tmp_path) == ["one.onnx", "qdqd0", "x.npz"]


def test_all_pages_of_jobs(service):
    daemon = service()
    model = daemon.upload("models", nets.block_net())
    made = {daemon.submit(model=model, spec=WEIGHTS, labels={"n": str(i)}) for i in range(52)}

    def listed(*words):
        done = qdq(daemon.url, "jobs", *words)
        return [line.split()[0] for line in done.stdout.splitlines() if line.startswith("j")]

    assert len(listed()) == 50
    assert sorted(listed("--all")) == sorted(made)


@pytest.mark.shares_daemon
def test_reports_of_a_job(daemon, tmp_path):
    job = daemon.submit_glyphs()
    daemon.succeeded(job)
    for words, name, begin_ in (([], f"{job}.html", "<!doctype html>"),
                                (["-o", "r.md"], "r.md", "# "), (["-o", "r.json"], "r.json", "{")):
        done = qdq(daemon.url, "report", job, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, name + "\n"), done.stderr
        assert (tmp_path / name).read_text().startswith(begin_)
    # A file of that name is a report on the disk.
    done = qdq(daemon.url, "report", "r.json", "-o", "page.html", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "page.html").read_text().startswith("<!doctype")
    done = qdq(None, "report", "r.json", "-o", "again.md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.md").read_text() == (tmp_path / "r.md").read_text()
    for wrong in ("j0", "../../version", "a b"):
        done = qdq(daemon.url, "report", wrong, "-o", "no.html", cwd=tmp_path)
        assert done.returncode == 1
    assert not (tmp_path / "no.html").exists()


# --- uploads -------------------------------------------------------------------------------


def test_a_file_is_sent_once(service, tmp_path):
    daemon = service()
    (tmp_path / "net.onnx").write_bytes(nets.block_net())
    (tmp_path / "x.npz").write_bytes(nets.samples())
    words = ["net.onnx", "--calibration", "x.npz", "-o", "o.onnx"]
    sent = []
    with CuttingProxy(daemon.url, [], is_closing=True) as proxy:
        for command in (["quantize", *words], ["quantize", *words], ["plan", "net.onnx"]):
            done = qdq(proxy.url, *command, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            sent.append([r for r in proxy.requests if r.startswith("POST")])
            proxy.requests.clear()
    assert sent == [["POST /v1/models", "POST /v1/datasets", "POST /v1/jobs"], ["POST /v1/jobs"],
                    ["POST /v1/plan"]]


def test_the_weights_of_a_changed_model_are_not_sent_again(service, tmp_path):
    daemon = service()
    model, files = external_net(("a/w.bin", "b/w.bin"))
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    other = onnx.load_from_string(model)
    other.producer_name = "another"
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(WEIGHTS))
    puts = []
    for data in (model, other.SerializeToString(), model):
        (tmp_path / "net.onnx").write_bytes(data)
        done = qdq(daemon.url, "quantize", "net.onnx", "--spec", spec, "-o", "o.onnx", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        puts.append(daemon.log.read_text().count("method=PUT"))
    assert puts == [3, 4, 4]


def test_a_result_with_a_data_file(service, tmp_path):
    daemon = service()
    spec = tmp_path / "spec.json"
    spec.write_text('{"output": {"external_data": "always"}}')
    words = ["quantize", *GLYPHS, "--spec", spec, "-o", "made/o.onnx"]
    (tmp_path / "made").mkdir()
    done = qdq(daemon.url, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "made") == ["model.onnx.data", "o.onnx"]
    onnx.checker.check_model(tmp_path / "made" / "o.onnx")
    assert qdq(daemon.url, *words, cwd=tmp_path).returncode == 0
    # The data of another model is not overwritten.
    (tmp_path / "made" / "model.onnx.data").write_bytes(b"of another")
    done = qdq(daemon.url, *words, cwd=tmp_path)
    assert done.returncode == 1 and "model.onnx.data" in last_line(done)
    assert (tmp_path / "made" / "model.onnx.data").read_bytes() == b"of another"
    assert names(tmp_path / "made") == ["model.onnx.data", "o.onnx"]


@pytest.mark.parametrize("name", ["a/b", "../x", ".hidden", "", "a\\b", "a\x1b[2Jb"])
def test_names_of_a_service(service, tmp_path, name):
    """A data file is written under a plain name alone, and nothing else is written then."""
    daemon = service()
    (tmp_path / "spec.json").write_text('{"output": {"external_data": "always"}}')
    (tmp_path / "made").mkdir()
    words = ["quantize", *GLYPHS, "--spec", "spec.json", "-o", "made/o.onnx", "--report", "made/r"]
    assert qdq(daemon.url, *words, cwd=tmp_path).returncode == 0
    [job] = daemon.get("/v1/jobs").json()["jobs"]
    document = daemon.job(job["id"])
    document["result"]["files"][1]["path"] = name
    answer = ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
              f"event: end\nid: 9\ndata: {json.dumps(document)}\n\n").encode()
    for one in (tmp_path / "made").iterdir():
        one.unlink()
    with CuttingProxy(daemon.url, [("GET */events*", "answer", answer)], is_closing=True) as proxy:
        done = qdq(proxy.url, *words, cwd=tmp_path)
        assert proxy.plans == []
    assert done.returncode == 1 and "no plain file name" in last_line(done), done.stderr
    assert names(tmp_path / "made") == [] and "\x1b" not in done.stderr


def test_texts_of_a_service_on_the_terminal(service, tmp_path):
    """Escape sequences of eight bits and characters that turn a line around, in the label that
    another user gave a job, and in the names of a model."""
    daemon = service()
    evil = "a\u009b31mb\u202ec"
    net = onnx.load_from_string(nets.block_net())
    net.graph.name = evil
    model = daemon.upload("models", net.SerializeToString())
    daemon.submit(model=model, labels={"name": evil}, spec={"activations": "none"})
    (tmp_path / "m.onnx").write_bytes(net.SerializeToString())
    for words in (["jobs"], ["info", model], ["info", "m.onnx"], ["info", "m.onnx", "--url", ""]):
        shown = qdq(daemon.url, *words, cwd=tmp_path)
        assert shown.returncode == 0 and "a?31mb?c" in shown.stdout, shown
        printed = qdq(daemon.url, *words, "--json", cwd=tmp_path)
        assert "a\\u009b31mb\\u202ec" in printed.stdout, printed
        assert evil in json.dumps(json.loads(printed.stdout), ensure_ascii=False)


def test_outputs_in_the_place_of_the_model_and_its_data(service, tmp_path):
    daemon = service()
    model, files = external_net(("w.data",), seed=4)
    (tmp_path / "net.onnx").write_bytes(model)
    (tmp_path / "w.data").write_bytes(files["w.data"])
    (tmp_path / "link").symlink_to("w.data")
    for words in (["-o", "link"], ["-o", "w.data"], ["--report", "./w.data"], ["--html", "link"],
                  ["--report", "net.onnx"]):
        done = qdq(daemon.url, "quantize", "net.onnx", *words, cwd=tmp_path)
        assert done.returncode == 1 and "so it is not overwritten" in last_line(done), done.stderr
    assert (tmp_path / "net.onnx").read_bytes() == model
    assert (tmp_path / "w.data").read_bytes() == files["w.data"]


def test_a_report_in_the_place_of_the_data_file(service, tmp_path):
    daemon = service()
    (tmp_path / "spec.json").write_text('{"output": {"external_data": "always"}}')
    for words in (["-o", "o.onnx", "--report", "model.onnx.data"], ["-o", "model.onnx.data"]):
        done = qdq(daemon.url, "quantize", *GLYPHS, "--spec", "spec.json", *words, cwd=tmp_path)
        assert done.returncode == 1 and "two files that are written" in last_line(done)
    assert names(tmp_path) == ["spec.json"] or names(tmp_path) == ["qdqd0", "spec.json"]


# --- refusals ------------------------------------------------------------------------------


def test_a_missed_gate(service, tmp_path):
    daemon = service()
    (tmp_path / "spec.json").write_text(GATED)
    words = [*GLYPHS, "--spec", "spec.json", "-o", "o.onnx", "--report", "r.json", "--html", "r.html"]
    far = qdq(daemon.url, "quantize", *words, cwd=tmp_path)
    assert far.returncode == 1
    assert not (tmp_path / "o.onnx").exists()
    report = json.loads((tmp_path / "r.json").read_text())
    assert [gate["met"] for gate in report["gates"]] == [False]
    assert (tmp_path / "r.html").exists()
    near = subprocess.run([*QUANTIZE, *words], cwd=tmp_path, text=True, capture_output=True)
    assert near.returncode == 1
    assert last_line(far) == last_line(near)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("spec, code", [
    ('{"mod": 1}', "invalid_spec"), ('{"mode": 1', "invalid_json"), ("[]", "invalid_spec"),
    ('{"layers": [{"name": "nobody"}]}', "unmatched"), ('{"mode": "full", "mode": "full"}', "")])
def test_a_refused_job(daemon, tmp_path, spec, code):
    (tmp_path / "spec.json").write_text(spec)
    for command in (["plan", RESNET], ["quantize", *GLYPHS, "-o", "o.onnx"]):
        done = qdq(daemon.url, *command, "--spec", "spec.json", cwd=tmp_path)
        assert done.returncode == 1
        assert last_line(done).startswith(f"qdq: {code}"), last_line(done)
        assert "/spec/" not in last_line(done)
    assert names(tmp_path) == ["spec.json"]


@pytest.mark.shares_daemon
def test_files_that_the_service_refuses(daemon, tmp_path):
    (tmp_path / "letter.onnx").write_text("Dear aunt,\n" * 30)
    for words in (["info", "letter.onnx"], ["quantize", RESNET, "-o", "o.onnx"],
                  ["quantize", RESNET, "--calibration", "letter.onnx", "-o", "o.onnx"]):
        far, near = (qdq(url, *words, cwd=tmp_path) for url in (daemon.url, None))
        assert far.returncode == near.returncode == 1
        assert last_line(far).split(":")[1] == last_line(near).split(":")[1]
    assert names(tmp_path) == ["letter.onnx"]


def test_the_token(service, tmp_path):
    daemon = service()
    good, wrong, empty = (tmp_path / name for name in ("good", "wrong", "empty"))
    good.write_text(access.add(daemon.state, "one") + "\n")
    wrong.write_text("not-a-token\n")
    empty.write_text("\n")
    for words, environment, code in (
            ([], {}, "unauthorized"), (["--token-file", wrong], {}, "unauthorized"),
            (["--token-file", tmp_path / "nowhere"], {}, "io"), (["--token-file", empty], {}, "io"),
            ([], {"QDQD_TOKEN_FILE": str(wrong)}, "unauthorized")):
        for command in (["jobs"], ["plan", RESNET], ["cancel", "j1"]):
            done = qdq(daemon.url, *words, *command, **environment)
            assert done.returncode == 1
            assert last_line(done).startswith(f"qdq: {code}: "), last_line(done)
            assert "not-a-token" not in done.stderr
    assert qdq(daemon.url, "--token-file", good, "jobs").returncode == 0
    done = qdq(None, "plan", RESNET, QDQD_URL=daemon.url, QDQD_TOKEN_FILE=str(good))
    assert done.returncode == 0 and "Q/DQ pairs" in done.stdout, done.stderr
    daemon.http.headers["Authorization"] = f"Bearer {good.read_text().strip()}"


def test_a_service_that_is_not_there(tmp_path):
    done = qdq("http://127.0.0.1:1", "plan", RESNET)
    assert done.returncode == 1
    assert last_line(done).startswith("qdq: remote_unavailable: http://127.0.0.1:1: ")
    for url in ("ftp://127.0.0.1", "127.0.0.1:8383", "http://", "http://a:b@h", "unix:relative"):
        done = qdq(url, "jobs")
        assert done.returncode == 1 and "the URL of the service" in last_line(done), url
    done = qdq("http://127.0.0.1:1", "quantize", *GLYPHS, "-o", tmp_path / "o.onnx")
    assert done.returncode == 1 and names(tmp_path) == []


@pytest.mark.parametrize("words", [
    ["jobs"], ["cancel", "j1"], ["--url", "http://h", "cancel"], ["--url", "http://h", "jobs", "x"],
    ["--url", "http://h"], ["--url"], ["--url", "http://h", "ls", "prod:x"],
    ["--url", "http://h", "plan", RESNET, "--cases", "d"],
    ["--url", "http://h", "quantize", *GLYPHS, "--threads", "2"],
    ["--url", "http://h", "quantize", *GLYPHS, "--observations", "f"],
    ["--url", "http://h", "jobs", "--patience", "long"]])
def test_wrong_usage(words):
    done = qdq(None, *words)
    assert done.returncode == 2 and done.stdout == "" and last_line(done), done


def test_an_empty_url_is_none(tmp_path):
    near = qdq("", "plan", RESNET, QDQD_URL="http://127.0.0.1:1")
    assert near.returncode == 0 and "activations and" in near.stdout


# --- connections ---------------------------------------------------------------------------


def test_lost_connections(service, tmp_path):
    """An upload, the answer to the submission, the events and the download are cut off; one job
    is made and its result is whole."""
    daemon = service(test_worker_pause_ms=400)
    plans = [("POST /v1/models", "answer", BUSY), ("POST /v1/datasets", "up", 100_000),
             ("POST /v1/jobs", "down", 0), ("GET /v1/jobs/*/events", "down", 700),
             ("GET /v1/jobs/*/model", "down", 300_000)]
    with CuttingProxy(daemon.url, plans, is_closing=True) as proxy:
        done = qdq(proxy.url, "quantize", *GLYPHS, "-o", "o.onnx", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert proxy.plans == []
    assert done.stderr.count("trying again after: ") == len(plans), done.stderr
    job, = daemon.get("/v1/jobs").json()["jobs"]
    assert job["result"]["model"] == "sha256:" + hashlib.sha256(
        (tmp_path / "o.onnx").read_bytes()).hexdigest()


def test_a_daemon_that_is_killed_meanwhile(service, tmp_path, slow):
    daemon = service(**slow)
    with CuttingProxy(daemon.url, []) as proxy:
        process, job = begin(proxy.url, *GLYPHS, "-o", "o.onnx", cwd=tmp_path)
        daemon.running(job)
        daemon.kill()
        daemon.start()
        proxy._to = urlsplit(daemon.url)
        _, told = process.communicate(timeout=40)
    assert process.returncode == 0, told
    assert told.count("trying again after: ") == 1, told
    assert daemon.log.read_text().count(f"event=job_started job={job} ") == 2
    judge.load((tmp_path / "o.onnx").read_bytes())


def test_a_daemon_that_does_not_come_back(service, tmp_path, held):
    daemon = service(**held)
    process, job = begin(daemon.url, *GLYPHS, "-o", "o.onnx", "--patience", "1", cwd=tmp_path)
    daemon.running(job)
    daemon.kill()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    lines = told.splitlines()
    assert lines[-1].startswith("qdq: remote_unavailable: ")
    assert lines[-2].startswith(f"qdq: job {job} goes on")
    assert names(tmp_path) == ["qdqd0"]


def test_the_bar(service, tmp_path):
    daemon = service(test_worker_pause_ms=250)
    text = run_on_terminal([QDQ, "--url", daemon.url, "quantize", *GLYPHS, "-o", "o.onnx"],
                           tmp_path, clean(), 40)
    assert re.search(r"upload    \[#* *\] [\d.]+/1\.3 MB", text), text
    # The daemon tells the progress twice a second, so that short stages are not all seen.
    assert len(set(re.findall(r"\r\x1b\[K(plan|calibrate|quantize|write|evaluate|kernels)", text))) > 1


# --- sockets and TLS -----------------------------------------------------------------------


def test_a_unix_socket(tmp_path):
    path = tmp_path / "socket"
    one = start("--listen", f"unix:{path}", "--state-dir", tmp_path / "state")
    try:
        listening(one)
        done = qdq(f"unix:{path}", "quantize", *GLYPHS, "-o", "o.onnx", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        judge.load((tmp_path / "o.onnx").read_bytes())
    finally:
        end(one)
    done = qdq(f"unix:{path}", "jobs")
    assert done.returncode == 1 and "remote_unavailable" in last_line(done)


def test_tls(service, tmp_path, monkeypatch):
    cert, key = make_certificate(tmp_path, "first")
    other, _ = make_certificate(tmp_path, "other")
    plain = Service.get

    def get(self, path, **options):
        self.url = self.url.replace("http://", "https://")
        self.http.verify = str(cert)
        return plain(self, path, **options)

    monkeypatch.setattr(Service, "get", get)
    daemon = service(http_tls_cert=cert, http_tls_key=key)
    assert qdq(daemon.url, "--ca-file", cert, "jobs").returncode == 0
    assert qdq(daemon.url, "jobs", QDQD_CA_FILE=str(cert)).returncode == 0
    for words, code in (([], "remote_denied"), (["--ca-file", other], "remote_denied"),
                        (["--ca-file", tmp_path / "nowhere"], "io")):
        done = qdq(daemon.url, *words, "jobs")
        assert done.returncode == 1 and last_line(done).startswith(f"qdq: {code}: "), done.stderr


def test_as_many_outputs_as_there_are(tmp_path):
    """All outputs at once, and none of them is left when the work fails."""
    words = ["-o", "o.onnx", "--report", "r.json", "--html", "r.html", "--observations", "obs"]
    done = qdq(None, "quantize", *GLYPHS, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path) == ["o.onnx", "obs", "r.html", "r.json"]
    done = qdq(None, "quantize", RESNET, *words, cwd=tmp_path)
    assert done.returncode == 1
    assert names(tmp_path) == ["o.onnx", "obs", "r.html", "r.json"]
