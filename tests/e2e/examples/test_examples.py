# SPDX-License-Identifier: Apache-2.0
"""The examples of examples/ that need nothing but a shell and Python. tests/pipelines has the
others."""

import http.server
import json
import re
import shutil
import subprocess
import threading
import urllib.parse
from pathlib import Path

import pytest
import yaml

import access
import pipelines
from far import Far
from pipelines import EXAMPLES, MISSED, execute
from service import ROOT, Service, eventually

WITH_TESTS = {"shell", "make", "github-action", "gitlab-ci", "argo", "kfp", "airflow", "pytorch"}
COMMIT = "0123456789abcdef"
CLIENT = ROOT / "clients" / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return pipelines.build_wheel(tmp_path_factory.mktemp("wheel"))


class Forge(http.server.ThreadingHTTPServer):
    """Receives comments in the place of a forge: `seen` has path, headers and body of each."""

    def __init__(self):
        self.seen = []
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):  # noqa: N802 # the name is that of http.server
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.server.seen.append((self.path, dict(self.headers), body))
            self.send_response(201)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")


@pytest.fixture
def forge():
    with Forge() as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def run_shell(folder, url, *place, **values):
    return execute(folder, [EXAMPLES / "shell" / "pipeline.sh", "net.onnx", "net.npz",
                            "spec.json", "int8.onnx", *place], QDQD_URL=url, **values)


def run_make(folder, url):
    done = execute(folder, ["make", "-f", EXAMPLES / "make" / "Makefile"], QDQD_URL=url,
                   PYTHONPATH=CLIENT)
    if done.returncode == 0:
        # Nothing is out of date now.
        again = execute(folder, ["make", "-f", EXAMPLES / "make" / "Makefile"],
                        QDQD_URL="http://127.0.0.1:9", PYTHONPATH=CLIENT)
        assert again.returncode == 0, again.stdout
        (folder / "net.int8.onnx").rename(folder / "int8.onnx")
    return done


# --- GitHub ------------------------------------------------------------------------------


class Runner:
    """Runs the steps of a composite action as GitHub's runner does."""

    def __init__(self, folder, inputs, event):
        self.folder, self.action = folder, EXAMPLES / "github-action"
        self.described = yaml.safe_load((self.action / "action.yml").read_text())
        self.known = {f"github.{name}": value for name, value in event.items()}
        for name, one in self.described["inputs"].items():
            assert name in inputs or "default" in one, name
            self.known[f"inputs.{name}"] = inputs.get(name, one.get("default"))
        assert set(inputs) <= set(self.described["inputs"])
        self.summary = folder / "summary"
        self.values = {"GITHUB_ACTION_PATH": self.action, "RUNNER_TEMP": folder,
                       "GITHUB_STEP_SUMMARY": self.summary, "GITHUB_SHA": COMMIT,
                       "GITHUB_OUTPUT": folder / "output", "GITHUB_REPOSITORY": "acme/net"}

    def expand(self, text):
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: str(self.known[found[1]]), text)

    def is_wanted(self, step, failed):
        """Evaluates the step's condition, of the operators that the action uses."""
        (text,) = re.findall(r"^\$\{\{ (.*) \}\}$", step.get("if", "${{ success() }}"))
        text = text.replace("&&", "and").replace("success()", str(not failed))
        text = re.sub(r"\b(?:inputs|github)\.[\w.-]+", lambda n: repr(self.known[n[0]]), text)
        return eval(text.replace("always()", "True"), {})  # noqa: S307 # this project's text

    def run(self, **values):
        done = None
        for step in self.described["runs"]["steps"]:
            if not self.is_wanted(step, done is not None and done.returncode != 0):
                continue
            assert step["shell"] == "bash"
            script = self.folder / "step.sh"
            script.write_text(self.expand(step["run"]))
            variables = {name: self.expand(text) for name, text in step["env"].items()}
            ended = execute(self.folder, ["bash", "--noprofile", "--norc", "-eo", "pipefail",
                                          script], **self.values, **variables, **values)
            if done is None or done.returncode == 0:
                done = ended
            for line in (self.folder / "output").read_text().splitlines():
                name, _, value = line.partition("=")
                self.known[f"steps.{step['id']}.outputs.{name}"] = value
            (self.folder / "output").write_text("")
        for one in self.described["outputs"].values():
            assert Path(self.expand(one["value"])).is_file()
        return done


def run_github(folder, url, event=None, **inputs):
    runner = Runner(folder, {"url": url, "model": "net.onnx", "calibration": "net.npz",
                             "spec": "spec.json", **inputs}, event or {"event_name": "push"})
    (folder / "output").write_text("")
    values = {"GITHUB_API_URL": inputs.pop("api")} if "api" in inputs else {}
    done = runner.run(**values)
    assert "cosine" in runner.summary.read_text()
    return done


# --- GitLab ------------------------------------------------------------------------------


def run_gitlab(folder, url, wheel, **values):
    """Runs the job as GitLab's runner does: the script in one shell, what comes after it in
    another, whatever became of the first."""
    (job,) = yaml.safe_load((EXAMPLES / "gitlab-ci" / "quantize.yml").read_text()).values()
    variables = {**job["variables"], "CALIBRATION": "net.npz", "QDQD_URL": url,
                 "QDQD_CLIENT": wheel, "CI_PROJECT_DIR": folder, "CI_COMMIT_SHA": COMMIT, **values}
    shell = ["bash", "-eo", "pipefail", "-c"]
    done = execute(folder, [*shell, "\n".join(job["before_script"] + job["script"])], **variables)
    after = execute(folder, [*shell, "\n".join(job["after_script"])], **variables)
    assert after.returncode == 0, after.stdout
    for path in job["artifacts"]["paths"]:
        found = folder / path.replace("$OUTPUT", job["variables"]["OUTPUT"])
        assert found.exists() == (done.returncode == 0 or found.suffix == ".md")
    return done


# --- Argo --------------------------------------------------------------------------------


def run_argo(folder, url, wheel):
    """Runs the template's script with /tmp being the folder, and its parameters put in."""
    whole = yaml.safe_load((EXAMPLES / "argo" / "workflow-template.yaml").read_text())
    (template,) = whole["spec"]["templates"]
    given = {"inputs.parameters.url": url, "inputs.parameters.client": str(wheel),
             "workflow.name": "quantize-x7k2p"}

    def put_in(text):
        text = re.sub(r"\{\{(.*?)\}\}", lambda found: given[found[1]], text)
        return text.replace("/tmp/", f"{folder}/")

    for one in template["inputs"]["artifacts"]:
        kept = {"model": "net.onnx", "calibration": "net.npz", "spec": "spec.json"}[one["name"]]
        if Path(put_in(one["path"])) != folder / kept:
            shutil.copy(folder / kept, put_in(one["path"]))
    script = template["script"]
    (folder / "script").write_text(put_in(script["source"]))
    variables = {row["name"]: re.sub(r"\{\{(.*?)\}\}", lambda found: given[found[1]], row["value"])
                 for row in script["env"]}
    done = execute(folder, [*script["command"], folder / "script"], **variables)
    for one in template["outputs"]["artifacts"]:
        assert Path(put_in(one["path"])).exists() or done.returncode
    return done


# --- the tests ---------------------------------------------------------------------------

LIGHT = ["shell", "make", "github-action", "gitlab-ci", "argo"]


@pytest.fixture
def run(request, wheel):
    """The function that runs the example of this name in a folder, with a service."""
    return {"shell": run_shell, "make": run_make, "github-action": run_github,
            "gitlab-ci": lambda *words, **more: run_gitlab(*words, wheel, **more),
            "argo": lambda *words: run_argo(*words, wheel)}[request.param]


@pytest.mark.shares_daemon
@pytest.mark.parametrize("run", LIGHT, indirect=True)
def test_lost_connections(run, daemon, tmp_path):
    pipelines.survives(run, daemon, tmp_path)


@pytest.mark.shares_daemon
@pytest.mark.parametrize("run, name", [(name, name) for name in LIGHT], indirect=["run"])
def test_a_missed_bound(run, name, daemon, tmp_path, record_property):
    lines = pipelines.misses(run, daemon, tmp_path).stdout.splitlines()
    if name == "make":
        record_property("version", version("make", "--version"))
        assert re.match(r"make: \*\*\* .*Error 1$", lines.pop()), lines
    assert MISSED in lines[-1]


def version(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n")[0]


def test_the_shell_script_publishes(forge_of_models, tmp_path, record_property):
    """The model goes to a registry when it meets the bounds, and only then."""
    record_property("version", version("curl", "--version").split(" (")[0])
    record_property("version", version("jq", "--version"))
    daemon, far = forge_of_models
    pipelines.prepare(tmp_path, "published", {})
    done = run_shell(tmp_path, daemon.url, "prod:models:/net-int8")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "published: models:/net-int8/1"
    assert (tmp_path / "int8.onnx").read_bytes() in far.files.values()
    before = len(far.seen)
    pipelines.prepare(tmp_path, "published", {"accept": {"min_cosine": 1}})
    assert run_shell(tmp_path, daemon.url, "prod:models:/net-int8").returncode == 1
    assert len(far.seen) == before
    done = run_shell(tmp_path, daemon.url, "nobody:models:/net-int8")
    assert done.returncode == 3 and "remote_unknown" in done.stdout.splitlines()[-1]


@pytest.fixture
def forge_of_models(tmp_path):
    far = Far(b"", MLmodel=b"flavors: {}\n")
    (tmp_path / "qdqd.conf").write_text(
        f"[remote prod]\nkind = mlflow\nurl = {far.url}\nallow_private = true\n")
    one = Service(tmp_path / "service")
    one.arguments = ["--config", tmp_path / "qdqd.conf"]
    one.start()
    yield one, far
    one.stop()
    far.close()


def test_errors_of_the_shell_script(service, tmp_path):
    daemon = service()
    pipelines.prepare(tmp_path, "refused", {"mod": "full"})
    done = run_shell(tmp_path, daemon.url)
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1].startswith("pipeline.sh: invalid_spec: ")
    assert execute(tmp_path, [EXAMPLES / "shell" / "pipeline.sh"]).returncode == 2
    pipelines.prepare(tmp_path, "tokens", {})
    (tmp_path / "token").write_text(access.add(daemon.state, "ci"))
    eventually(lambda: daemon.get("/v1/targets").status_code == 401)
    refused = run_shell(tmp_path, daemon.url)
    assert refused.returncode == 3 and "unauthorized" in refused.stdout.splitlines()[-1]
    done = run_shell(tmp_path, daemon.url, QDQD_TOKEN_FILE=tmp_path / "token")
    assert done.returncode == 0, done.stdout
    done = run_github(tmp_path, daemon.url, token=(tmp_path / "token").read_text())
    assert done.returncode == 0 and not (tmp_path / "qdqd-token").exists()


@pytest.mark.shares_daemon
@pytest.mark.parametrize("spec, status", [({}, 0), ({"accept": {"min_cosine": 1}}, 1)])
def test_comments(daemon, forge, wheel, tmp_path, spec, status):
    """A merge request gets the report as a comment, whether the model met the bounds or not."""
    pipelines.prepare(tmp_path, "comments", spec)
    (tmp_path / "comments").write_text("a-token\n")
    done = run_gitlab(tmp_path, daemon.url, wheel, CI_API_V4_URL=forge.url, CI_PROJECT_ID="7",
                      CI_MERGE_REQUEST_IID="8", COMMENT_TOKEN_FILE=tmp_path / "comments")
    assert done.returncode == status
    report = (tmp_path / "report.md").read_text()
    event = {"event_name": "pull_request", "event.number": 9}
    runner = Runner(tmp_path, {"url": daemon.url, "model": "net.onnx", "calibration": "net.npz",
                               "spec": "spec.json", "comment-token": "b-token"}, event)
    (tmp_path / "output").write_text("")
    assert runner.run(GITHUB_API_URL=forge.url).returncode == status
    (lab, lab_headers, lab_body), (hub, hub_headers, hub_body) = forge.seen
    assert lab == "/projects/7/merge_requests/8/notes"
    assert lab_headers["PRIVATE-TOKEN"] == "a-token"
    assert urllib.parse.parse_qs(lab_body) == {"body": [report]}
    assert hub == "/repos/acme/net/issues/9/comments"
    assert hub_headers["Authorization"] == "Bearer b-token"
    assert json.loads(hub_body)["body"] == (tmp_path / "qdqd-report.md").read_text()[:60000]


def test_each_example_has_a_test_and_a_readme():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == WITH_TESTS
    listed = re.findall(r"^\| \[(\S+)\]", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert set(listed) == folders
    for folder in folders:
        lines = (EXAMPLES / folder / "README.md").read_text().splitlines()
        assert len(lines) <= 13, folder
