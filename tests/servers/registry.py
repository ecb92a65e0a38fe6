# SPDX-License-Identifier: Apache-2.0
"""Starts the real servers of tests/servers, and runs qdq with a remote on them."""

import os
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from service import INSTALLED

HERE = Path(__file__).parent
QDQ = INSTALLED / "bin" / "qdq"
PORTS = 8  # that a server may use, from its own on


def free_port():
    """Returns the first of some ports in a row that nobody listens at."""
    while True:
        first = random.randrange(20000, 30000)
        try:
            for port in range(first, first + PORTS):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


def program(name):
    """Returns what the script of a server prints, and skips the test where there is none."""
    done = subprocess.run([HERE / name], capture_output=True, text=True, timeout=900)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def answers(url):
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def running(name, folder, path="/", **environment):
    """Runs a server in a folder and returns its URL."""
    program(name)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([HERE / name, folder, str(port)], stdout=log, stderr=log,
                                   env={**os.environ, **environment},
                                   start_new_session=True)
        try:
            for _ in range(600):
                assert process.poll() is None, (folder / "server.log").read_text()
                if answers(url + path):
                    break
                time.sleep(0.1)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its state is of no use
            process.wait(30)


class Remote:
    """qdq with one remote, called prod."""

    def __init__(self, folder, kind, url, credentials=None):
        self.folder, self.config = folder, folder / "remotes.conf"
        text = f"[remote prod]\nkind = {kind}\nurl = {url}\nallow_private = true\n"
        if credentials:
            secret = folder / "prod.cred"
            secret.write_text(credentials)
            secret.chmod(0o600)
            text += f"credentials = {secret}\n"
        self.config.write_text(text)

    def __call__(self, command, *words, expect=0):
        done = subprocess.run([QDQ, command, *map(str, words), "--config", self.config],
                              cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == expect, done
        return done.stderr if expect else done.stdout


def kill_at_some_moment(remote, words, seconds):
    """Begins a command and kills it, unless it has ended by then."""
    process = subprocess.Popen([QDQ, *map(str, words), "--config", remote.config],
                               cwd=remote.folder, stdout=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in Path(folder).rglob("*") if path.is_file()}
