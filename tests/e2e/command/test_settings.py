# SPDX-License-Identifier: Apache-2.0
"""Settings: their values and sources, and the effect of SIGHUP after the file changed."""

import os
import re
import signal
import subprocess

import pytest

from service import INSTALLED, Service, eventually, problem

QDQD = INSTALLED / "sbin" / "qdqd"


def run(*words, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("QDQD_")}
    return subprocess.run([QDQD, *words], env={**env, **environment}, capture_output=True,
                          text=True, timeout=60)


@pytest.fixture
def configured(tmp_path):
    """Starts a daemon with a configuration file; also returns the function that writes
    the file."""
    one = Service(tmp_path / "configured")
    file = tmp_path / "qdqd.conf"
    one.arguments = ["--config", file]

    def reload(text, event):
        before = one.log.read_text().count(f"event={event} ")
        file.write_text(text)
        one.process.send_signal(signal.SIGHUP)
        eventually(lambda: one.log.read_text().count(f"event={event} ") > before)

    file.write_text("[queue]\nmax = 100\n")
    one.start()
    yield one, reload
    one.stop()


def test_print(tmp_path):
    file = tmp_path / "qdqd.conf"
    file.write_text("[queue]\nmax = 12\n")
    done = run("--check-config", "--print", "--config", file, "--workers", "3",
               QDQD_HTTP_MAX_BODY="2G")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"queue.max = 12  # {file}:2" in lines
    assert "workers.count = 3  # command line" in lines
    assert "http.max_body = 2G  # QDQD_HTTP_MAX_BODY" in lines
    assert "http.timeout = 60  # default" in lines
    keys = [line.split(" = ")[0] for line in lines]
    helped = re.findall(r"^  ([a-z_]+\.[a-z_]+) \(", run("--help").stdout, re.M)
    assert keys == helped and len(set(keys)) == len(keys) > 30


def test_print_is_for_checking():
    done = run("--print")
    assert done.returncode == 2 and "--check-config" in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1", "unix:"])
def test_check_refuses_an_address(address):
    done = run("--check-config", "--listen", address)
    assert done.returncode == 2 and "http.listen: not HOST:PORT" in done.stderr


def test_unknown_variables_are_named():
    """Such a variable may be a typing error, or one that a container's platform makes."""
    done = run("--check-config", QDQD_HTTP_LISTN="127.0.0.1:1", QDQD_SERVICE_HOST="10.0.0.1")
    assert done.returncode == 0
    assert done.stderr == "qdqd: QDQD_HTTP_LISTN: no setting has this variable, so it is " \
                          "ignored\n"


def test_installed_file_and_page():
    """Both are generated from the table: every key is there, and every line is valid."""
    conf = INSTALLED / "etc" / "qdqd.conf"
    done = run("--check-config", "--config", conf)
    assert done.returncode == 0, done.stderr
    text = conf.read_text()
    for section, key in re.findall(r"^  ([a-z_]+)\.([a-z_]+) \(", run("--help").stdout, re.M):
        assert re.search(rf"^\[{section}\]$", text, re.M)
        assert re.search(rf"^#{key} =", text, re.M)


def test_reload(configured):
    daemon, reload = configured
    reload("[queue]\nmax = 100\n[http]\nmax_body = 1K\n[workers]\ncount = 2\n", "reloaded")
    log = daemon.log.read_text()
    assert "event=setting_changed key=http.max_body" in log
    assert "event=setting_needs_restart key=workers.count" in log
    assert "key=queue.max" not in log
    problem(daemon.post("/v1/models", data=b"x" * 2000,
                        headers={"Content-Type": "application/octet-stream"}),
            413, "too_large")
    reload("", "reloaded")
    answer = daemon.post("/v1/models", data=b"x" * 2000,
                         headers={"Content-Type": "application/octet-stream"})
    problem(answer, 400, "invalid_model")


def test_reload_of_a_bad_file(configured):
    daemon, reload = configured
    reload("[http]\nmax_body = 1K\n[queue]\nmax = none\n", "reload_failed")
    assert "queue.max" in daemon.log.read_text()
    answer = daemon.post("/v1/models", data=b"x" * 2000,
                         headers={"Content-Type": "application/octet-stream"})
    problem(answer, 400, "invalid_model")
