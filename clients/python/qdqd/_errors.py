# SPDX-License-Identifier: Apache-2.0
"""The errors of the client. Programs use them as members of qdqd."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional


def printable(text: object) -> str:
    """Returns a text that came from elsewhere as a terminal may get it: in one line, without
    control characters, escape sequences and characters that change the direction."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


class Error(Exception):
    """The base of all errors of qdqd. The text of each is printable; members such as
    `detail` are as they came."""

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(Error):
    """The arguments cannot be sent: a file is missing, or samples do not fit the model."""


class FileError(UsageError):
    """A file is not written: its place is taken or is that of an input, or the disk is
    full. Files that were there before are unchanged."""


class UnavailableError(Error):
    """The service could not be reached, or asked to come back later, for too long."""


class StillRunningError(Error):
    """The job had not ended when the time was over. It goes on; `job` is its id."""

    def __init__(self, job: str, seconds: float) -> None:
        super().__init__(f"job {job} has not ended after {seconds:g} s and goes on")
        self.job = job


class ProblemError(Error):
    """The service refused a request, or a job failed. `document` is the problem document."""

    def __init__(self, document: Mapping[str, Any],
                 job: Optional[Mapping[str, Any]] = None) -> None:
        self.document = dict(document)
        self.job = job
        self.code = str(document.get("code", "unknown"))
        self.status = int(document.get("status", 0))
        self.detail = str(document.get("detail") or document.get("title") or self.code)
        self.retryable = bool(document.get("retryable", False))
        # The documents of proxies do not say where; those of the service do.
        self.errors: List[Dict[str, Any]] = list(document.get("errors", []))
        super().__init__(f"{self.code}: {self.detail}")
