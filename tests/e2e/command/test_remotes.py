# SPDX-License-Identifier: Apache-2.0
"""The operator's remotes and hooks: where they are read, who sees them, and what SIGHUP changes."""

import signal
import subprocess

import pytest

import access
from service import INSTALLED, Service, eventually

QDQD = INSTALLED / "sbin" / "qdqd"


def names(client):
    answer = client.get("/v1/remotes")
    assert answer.status_code == 200, answer.text
    return [(one["name"], one["kind"]) for one in answer.json()["remotes"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("remotes")


@pytest.fixture(scope="module")
def daemon(folder):
    secret = folder / "prod.cred"
    secret.write_text("bearer very-secret\n")
    secret.chmod(0o600)
    (folder / "remotes.d").mkdir()
    (folder / "qdqd.conf").write_text(
        "[queue]\nmax = 7\n"
        f"[remote prod]\nkind = mlflow ; a registry\nurl = http://127.0.0.1:5000\n"
        f"credentials = {secret}\nallow_private = true\n")
    (folder / "remotes.d" / "more.conf").write_text(
        "[remote acme]\nkind = s3\nurl = https://s3.example/bucket/models\ntenants = acme\n"
        "[remote ours]\nkind = oci\nurl = https://registry.example\nscopes = admin\n"
        f"[hook glyph]\nremote = prod\nsecret = {secret}\nmodels = glyph*\n"
        "publish = models:/{name}-int8@challenger\n")
    one = Service(folder)
    one.arguments = ["--config", folder / "qdqd.conf"]
    one.start()
    yield one
    one.stop()


def reload(daemon, event):
    before = daemon.log.read_text().count(f"event={event} ")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: daemon.log.read_text().count(f"event={event} ") > before)


def test_print_shows_all_and_no_secret(daemon, folder):
    done = subprocess.run([QDQD, "--check-config", "--print", "--config", folder / "qdqd.conf"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"remote.prod.url = http://127.0.0.1:5000  # {folder}/qdqd.conf:3" in lines
    assert "remote.prod.timeout = 60  # default" in lines
    assert f"remote.acme.tenants = acme  # {folder}/remotes.d/more.conf:1" in lines
    assert f"hook.glyph.models = glyph*  # {folder}/remotes.d/more.conf:9" in lines
    assert "hook.glyph.poll = 0  # default" in lines
    assert not any(line.startswith("remote.prod.events") for line in lines)
    assert "very-secret" not in done.stdout


def test_tokens_of_a_configuration_with_remotes(daemon, folder):
    """The command reads the same file. It does not need the remotes' secrets."""
    done = subprocess.run([QDQD, "token", "list", "--config", folder / "qdqd.conf",
                           "--state-dir", daemon.state], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_mistake_is_told_with_its_line(folder, tmp_path):
    (tmp_path / "qdqd.conf").write_text("\n[remote a]\nkind = mlflow\nurl = h\n")
    done = subprocess.run([QDQD, "--check-config", "--config", tmp_path / "qdqd.conf"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{tmp_path}/qdqd.conf:2: [remote a] url: " in done.stderr


def test_all_or_nothing_on_sighup(daemon, folder):
    before = names(daemon)
    assert before == [("prod", "mlflow"), ("ours", "oci")]
    extra = folder / "remotes.d" / "extra.conf"
    extra.write_text("[remote extra]\nkind = oci\nurl = https://h\n[remote prod]\n")
    reload(daemon, "reload_failed")
    assert "extra.conf:4: [remote prod]" in daemon.log.read_text()
    assert names(daemon) == before
    extra.write_text("[remote extra]\nkind = oci\nurl = https://h\n")
    reload(daemon, "reloaded")
    assert ("extra", "oci") in names(daemon)
    extra.unlink()
    reload(daemon, "reloaded")
    assert names(daemon) == before
    assert "very-secret" not in daemon.log.read_text()


def test_a_token_sees_what_it_may_use(daemon):
    admin = access.client(daemon, access.add(daemon.state, "root", "--scope", "admin"))
    acme = access.tenant(daemon, "acme")
    other = access.tenant(daemon, "initech")
    reader = access.client(daemon, access.add(daemon.state, "reader", "--scope", "read"))
    assert names(admin) == [("prod", "mlflow"), ("ours", "oci")]
    assert names(acme) == [("prod", "mlflow"), ("acme", "s3")]
    assert names(other) == [("prod", "mlflow")]
    assert names(reader) == []
    named = access.client(daemon, admin.http.headers["Authorization"].split()[1],
                          **{"Qdqd-Tenant": "acme"})
    assert names(named) == [("prod", "mlflow"), ("acme", "s3"), ("ours", "oci")]
