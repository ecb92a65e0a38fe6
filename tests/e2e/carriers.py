# SPDX-License-Identifier: Apache-2.0
"""The processes of a daemon that speak to remotes."""

import os


def carriers(daemon):
    """Returns their process ids."""
    found = []
    for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
        try:
            with open(f"/proc/{daemon.process.pid}/task/{task}/children") as children:
                for pid in children.read().split():
                    with open(f"/proc/{pid}/cmdline", "rb") as words:
                        if b"--carrier" in words.read():
                            found.append(int(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found
