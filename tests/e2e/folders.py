# SPDX-License-Identifier: Apache-2.0
"""Snapshots of folders, which tests compare."""

import os
import stat


def snapshot(folder):
    """Returns {path: (kind, bytes or target of a link)} of all that is below a folder."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(place, name)
            mode = os.lstat(path).st_mode
            kind = stat.S_IFMT(mode)
            content = None
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = file.read()
            elif stat.S_ISLNK(mode):
                content = os.readlink(path)
            found[os.path.relpath(path, folder)] = (kind, content)
    return found
