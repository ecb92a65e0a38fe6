# SPDX-License-Identifier: Apache-2.0
"""Access tokens of a daemon under test, and clients that use them."""

import copy
import os
import subprocess

import requests

from service import INSTALLED


# Settings of `qdqd token` for a state folder, where the tokens are not in it (on_postgresql.py).
ELSEWHERE = {}


def command(state, *words):
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "token", *words, "--state-dir", state],
                          env={**os.environ, **ELSEWHERE.get(state, {})},
                          capture_output=True, text=True, timeout=60)


def add(state, name, *options):
    """Adds a token and returns it."""
    done = command(state, "add", name, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def client(service, token=None, **headers):
    """Returns a client of the same service that sends a token."""
    one = copy.copy(service)
    one.http = requests.Session()
    one.http.trust_env = False
    one.http.headers.update(headers)
    if token:
        one.http.headers["Authorization"] = f"Bearer {token}"
    return one


def tenant(service, name, *options, **headers):
    """Returns a client with a token of a tenant."""
    return client(service, add(service.state, f"token-{name}", "--tenant", name, *options),
                  **headers)
