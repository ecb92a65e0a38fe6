# SPDX-License-Identifier: Apache-2.0
"""A command whose standard error is a terminal."""

import os
import pty
import subprocess
import threading

import pytest


def run_on_terminal(command, cwd, env, seconds=120):
    """Runs the command, which has to succeed, and returns what it wrote to the terminal."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal to be had: {error}")
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs,
                               env={**env, "TERM": "xterm"})
    os.close(theirs)
    parts = []

    def read():
        try:
            while part := os.read(ours, 4096):
                parts.append(part)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    assert process.wait(seconds) == 0
    reader.join()
    os.close(ours)
    return b"".join(parts).decode()
