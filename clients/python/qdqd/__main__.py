# SPDX-License-Identifier: Apache-2.0
"""The command `python -m qdqd`, a step of a pipeline: quantizes one model."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import List, Optional, Sequence

from . import (AccuracyError, Client, Error, Progress, Results, StillRunningError, UnavailableError,
               UsageError, __version__, _paths)
from ._errors import printable
from ._files import Batch, check_places

_EXITS = """\
The status is 0 when the model is written; 1 when it missed a bound of the spec's accept (its
reports are written); 2 for wrong usage, or a file that cannot be read or written; 3 when the service refused something or the job failed;
4 when the service could not be reached or stayed busy, or the job did not end in time: the same
command may succeed later. The last line on standard error has the reason."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m qdqd", description="Quantizes an ONNX model by the service qdqd.",
        epilog=_EXITS, allow_abbrev=False)
    add = parser.add_argument
    add("model", help="the ONNX file, or the id of a stored model")
    add("-c", "--calibration", metavar="FILE", help=".npz, .npy, .parquet, .safetensors or an archive")
    add("-s", "--spec", metavar="FILE", help="the spec, as JSON")
    add("-o", "--output", metavar="FILE", help="the quantized model")
    add("-e", "--external", metavar="FILE", action="append", default=[],
        help="a file with the model's data; repeatable")
    add("--force", action="store_true",
        help="replace another model, or its data file, that is there already")
    add("--report", metavar="FILE", help="the report as JSON")
    add("--markdown", metavar="FILE", help="the report for a merge request")
    add("--html", metavar="FILE", help="the report as a page")
    add("--label", metavar="KEY=VALUE", action="append", default=[],
        help="a label of the job; repeatable")
    add("--priority", type=int, help="jobs with a higher number run first")
    add("--fresh", action="store_true", help="run, even if an equal job ran before")
    add("--url", help="the service (default: QDQD_URL, or http://127.0.0.1:8383)")
    add("--token-file", metavar="FILE", help="the access token (default: QDQD_TOKEN_FILE)")
    add("--timeout", type=float, metavar="SECONDS", help="the longest wait for the job")
    add("--patience", type=float, default=300.0, metavar="SECONDS",
        help="the longest pause, all in all, of a request to a busy service (300)")
    add("-q", "--quiet", action="store_true", help="no lines about progress")
    add("--version", action="version", version=f"qdqd {__version__}")
    return parser


def _run(words: argparse.Namespace) -> None:
    """Quantizes, and writes the files that were asked for, with a missed bound the reports."""
    labels = dict(text.partition("=")[::2] for text in words.label) or None
    stages: List[str] = []

    def on_progress(progress: Progress) -> None:
        if not words.quiet and progress.stage not in stages:
            stages.append(progress.stage)
            print(f"qdqd: {printable(progress.stage)}", file=sys.stderr, flush=True)

    reports = [(Path(path), media_type) for path, media_type in (
        (words.report, "application/json"), (words.markdown, "text/markdown"),
        (words.html, "text/html")) if path]
    inputs = _paths(words.model, words.calibration, words.spec, words.external)
    # A wrong path does not waste the work of the service.
    check_places([path for path, _ in reports] +
                 ([Path(words.output)] if words.output else []), inputs)

    def write_reports(batch: Batch, job: str) -> None:
        for path, media_type in reports:
            with batch.open(batch.add(path)) as file:
                file.write(client.report_text(job, media_type).encode())

    client = Client(words.url, token_file=words.token_file, patience=words.patience)
    try:
        result = client.quantize(words.model, words.calibration, words.spec,
                                 external=words.external, labels=labels,
                                 priority=words.priority, fresh=words.fresh,
                                 timeout=words.timeout, progress=on_progress)
    except AccuracyError as error:
        with Batch(inputs) as batch:
            write_reports(batch, str((error.job or {})["id"]))
            batch.publish()
        raise
    if isinstance(result, Results):
        raise UsageError(f"job {result.id} has several targets, whose results this command does not "
                         "write; qdq quantize does")
    with Batch(inputs, words.force) as batch:
        if words.output:
            result._write(batch, Path(words.output), on_progress)
        write_reports(batch, result.id)
        batch.publish()
    facts = result.summary
    print(printable(
        f"{words.output or result.id}: {facts['quantized_layers']} of {facts['layers']} "
        f"layers, {facts['size_before']} to {facts['size_after']} bytes, "
        f"verdict {result.verdict or 'none'}"))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command and returns its exit status."""
    words = _arguments().parse_args(arguments)
    try:
        _run(words)
        return 0
    except Error as error:
        print(f"qdqd: {error}", file=sys.stderr, flush=True)
        if isinstance(error, AccuracyError):
            return 1
        if isinstance(error, (UnavailableError, StillRunningError)):
            return 4
        return 2 if isinstance(error, UsageError) else 3
    except OSError as error:
        print(f"qdqd: {error}", file=sys.stderr, flush=True)
        return 2
    except KeyboardInterrupt:
        print("qdqd: interrupted; a job that was queued goes on", file=sys.stderr)
        return 130


def _stop(*_: object) -> None:
    """Ends the command as Ctrl-C does, which removes the files that are not complete."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main())
