# SPDX-License-Identifier: Apache-2.0
"""A client of the quantization service qdqd. It needs the standard library alone.

    import qdqd

    result = qdqd.quantize("net.onnx", "calibration.npz", {"accept": {"min_sqnr_db": 20}})
    result.save("net.int8.onnx")

The service is that of QDQD_URL (http://127.0.0.1:8383 without it), and the access token is
the text of the file QDQD_TOKEN_FILE. `python -m qdqd --help` describes the command for a step
of a pipeline.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import email.utils
import hashlib
import http.client
import io
import json
import logging
import os
import random
import selectors
import ssl
import sys
import tarfile
import tempfile
import time
import urllib.parse
import uuid
import zipfile
from pathlib import Path
from typing import (IO, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, TypeVar, Union)

__all__ = ["AccuracyError", "Client", "Error", "ProblemError", "Progress", "Result",
           "StillRunningError", "UnavailableError", "UsageError", "quantize"]
__version__ = "0.1.0"

_log = logging.getLogger("qdqd")
_sleep = time.sleep
_T = TypeVar("_T")
PathLike = Union[str, "os.PathLike[str]"]
# A path, the bytes of a file, the id of a stored file, or an object of the package onnx.
Model = Union[PathLike, bytes, Any]
# A path, bytes, an id, an array, a dict of arrays, or an iterable of samples.
Calibration = Union[PathLike, bytes, Any]
Spec = Union[PathLike, Mapping[str, Any]]

_CHUNK = 1 << 18
_LOST = (OSError, http.client.HTTPException)
_ENDED = ("succeeded", "failed", "cancelled")
# Seconds: for one answer, for the first contact with a service, for one wait for a job.
_ANSWER, _FIRST_CONTACT, _WAIT = 60.0, 10.0, 30
_CUT = "the connection was lost within an answer"


class Progress(NamedTuple):
    """The state of a call: bytes in the stages `upload` and `download`, the job's own
    counts in all others. `total` is 0 and `eta_s` None when they are not known."""

    stage: str
    done: int
    total: int
    eta_s: Optional[int] = None


OnProgress = Callable[[Progress], None]


class Error(Exception):
    """The base of all errors of this module."""


class UsageError(Error):
    """The arguments cannot be sent: a file is missing, or samples do not fit the model."""


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


class AccuracyError(ProblemError):
    """The quantized model missed a bound of the spec's `accept`. `report` is the report."""

    def __init__(self, client: Client, job: Mapping[str, Any]) -> None:
        super().__init__(job["error"], job)
        self._client = client
        self.report: Dict[str, Any] = client.report(job["id"])

    def markdown(self) -> str:
        """Returns the report for people, for example as the comment of a merge request."""
        return self._client.report_text(str((self.job or {})["id"]), "text/markdown")


class Result:
    """A job that succeeded."""

    def __init__(self, client: Client, job: Mapping[str, Any]) -> None:
        self._client = client
        self._report: Optional[Dict[str, Any]] = None
        self.job = dict(job)
        self.id: str = job["id"]
        self.summary: Dict[str, Any] = job["result"]["summary"]
        self.verdict: Optional[str] = self.summary.get("verdict")

    def __repr__(self) -> str:
        return f"<qdqd.Result {self.id}, verdict {self.verdict}>"

    @property
    def report(self) -> Dict[str, Any]:
        """The report, which is fetched at the first use."""
        if self._report is None:
            self._report = self._client.report(self.id)
        return self._report

    def markdown(self) -> str:
        """Returns the report for people, for example as the comment of a merge request."""
        return self._client.report_text(self.id, "text/markdown")

    def spec(self) -> Dict[str, Any]:
        """Returns the frozen spec, which makes the same bytes again without data."""
        return dict(self._client.json("GET", f"/v1/jobs/{self.id}/spec"))

    @property
    def model(self) -> bytes:
        """The model's bytes; a tar where the model has a data file."""
        file = io.BytesIO()
        self._client.download(self, file)
        return file.getvalue()

    def save(self, path: PathLike, progress: Optional[OnProgress] = None) -> List[Path]:
        """Writes the model to `path`, and a data file beside it under the name that the
        model gives it. Returns the paths. A file appears when it is complete."""
        target = Path(path)
        files = self.job["result"]["files"]
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".qdqd") as folder:
            whole = Path(folder, "download")
            with open(whole, "w+b") as file:
                self._client.download(self, file, progress)
                if not files:
                    _check_digest(file, self.job["result"]["model"])
            if not files:
                os.replace(whole, target)
                return [target]
            made = []
            with tarfile.open(whole) as tar:
                for i, row in enumerate(files):
                    to = target if i == 0 else target.parent / Path(row["path"]).name
                    one = Path(folder, str(i))
                    with open(one, "w+b") as file:
                        _copy(tar.extractfile(row["path"]), file)
                        _check_digest(file, row["digest"])
                    made.append((one, to))
            for one, to in made:
                os.replace(one, to)
            return [to for _, to in made]


def quantize(model: Model, calibration: Calibration = None, spec: Optional[Spec] = None, *,
             url: Optional[str] = None, token: Optional[str] = None,
             patience: float = 300.0, **options: Any) -> Result:
    """Quantizes a model; see Client.quantize() for the arguments and the errors."""
    return Client(url, token, patience=patience).quantize(model, calibration, spec, **options)


class Client:
    """Speaks to one service. `patience` is the number of seconds for which a request pauses
    between its tries, all in all, when the service is busy or the connection is lost."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *,
                 token_file: Optional[PathLike] = None, patience: float = 300.0,
                 ca_file: Optional[PathLike] = None) -> None:
        text = url or os.environ.get("QDQD_URL") or "http://127.0.0.1:8383"
        self._url = urllib.parse.urlsplit(text if "://" in text else "http://" + text)
        try:
            port = self._url.port
        except ValueError as error:
            raise UsageError(f"{text}: {error}") from None
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise UsageError(f"{text}: a URL has the form http://HOST:PORT or https://HOST")
        self._port = port
        self._token = token
        self._token_file = token_file or os.environ.get("QDQD_TOKEN_FILE")
        self._patience = patience
        self._ca_file = ca_file
        self._is_reached = False

    # --- one request -----------------------------------------------------------------

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        host = self._url.hostname or ""
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, self._port, timeout=timeout)
        context = ssl.create_default_context(
            cafile=None if self._ca_file is None else os.fspath(self._ca_file))
        return http.client.HTTPSConnection(host, self._port, timeout=timeout,
                                           context=context)

    def _headers(self) -> Dict[str, str]:
        """Returns the headers of every request. The token's file is read each time, so
        that a token may be replaced while a job runs."""
        headers = {"User-Agent": f"qdqd-python/{__version__}", "Connection": "close"}
        token = self._token
        if token is None and self._token_file:
            try:
                token = Path(self._token_file).read_text().strip()
            except OSError as error:
                raise UsageError(f"the token: {error}") from None
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    @contextlib.contextmanager
    def _ask(self, method: str, path: str, headers: Mapping[str, str],
             body: Optional[_Source], timeout: float,
             progress: Optional[OnProgress]) -> Iterator[http.client.HTTPResponse]:
        connection = self._connect(timeout)
        try:
            connection.putrequest(method, self._url.path.rstrip("/") + path,
                                  skip_accept_encoding=True)
            for name, value in {**self._headers(), **headers}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(body.size))
            connection.endheaders()
            if body is not None:
                try:
                    _send(connection, body, progress)
                except OSError:
                    # The service may have answered before the end of the body, and closed.
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        yield connection.getresponse()
                        return
                    raise
            yield connection.getresponse()
        finally:
            connection.close()

    def call(self, method: str, path: str, receive: Callable[[http.client.HTTPResponse], _T],
             *, headers: Optional[Mapping[str, str]] = None, body: Optional[_Source] = None,
             timeout: float = _ANSWER, progress: Optional[OnProgress] = None,
             more_headers: Callable[[], Mapping[str, str]] = dict) -> _T:
        """Makes a request and returns what `receive` makes of the answer. Tries again after
        a lost connection, and as the service says when it is busy; raises ProblemError for
        all other answers with an error."""
        paused, tries = 0.0, 0
        while True:
            cause: Exception
            pause = min(0.25 * 2 ** tries, 8.0) * random.uniform(0.5, 1.0)
            try:
                with self._ask(method, path, {**(headers or {}), **more_headers()}, body,
                               timeout, progress) as answer:
                    self._is_reached = True
                    if method != "HEAD" and answer.length is None and not answer.chunked:
                        raise ConnectionError(_CUT)  # a head without its end
                    if answer.status < 400:
                        return receive(answer)
                    cause = _problem(answer)
                    if not _may_pass(cause):
                        raise cause
                    pause = max(pause, _retry_after(answer.getheader("Retry-After")))
            except ssl.SSLCertVerificationError as error:
                raise UsageError(f"{self._url.netloc}: {error}") from error
            except _LOST as error:
                cause = error
            limit = self._patience if self._is_reached else min(_FIRST_CONTACT,
                                                                self._patience)
            if paused + pause > limit:
                raise UnavailableError(f"{self._url.netloc}: {_words(cause)}") from cause
            _log.warning("%s %s: %s; next try in %.1f s", method, path, _words(cause), pause)
            _sleep(pause)
            paused += pause
            tries += 1

    def json(self, method: str, path: str, document: Optional[str] = None,
             **options: Any) -> Any:
        """Makes a request with a JSON text, or without a body, and returns the answer."""
        if document is not None:
            options["body"] = _Source.of_bytes(document.encode())
            options["headers"] = {"Content-Type": "application/json",
                                  **options.get("headers", {})}
        return self.call(method, path, _read_json, **options)

    # --- models and data ---------------------------------------------------------------

    def _is_stored(self, kind: str, digest: str) -> bool:
        """Returns false after an error, too: the answer to HEAD does not describe it, and
        the answer to the upload does."""
        try:
            self.call("HEAD", f"/v1/{kind}/{digest}", _read_all)
        except ProblemError:
            return False
        return True

    def _store(self, kind: str, source: _Source, progress: Optional[OnProgress]) -> str:
        """Stores bytes unless they are there. Returns their id."""
        if not self._is_stored(kind, source.digest):
            method, path = "POST", f"/v1/{kind}"
            if kind == "blobs":
                method, path = "PUT", f"/v1/blobs/{source.digest}"
            self.call(method, path, _read_all, body=source, progress=progress,
                      headers={"Content-Type": "application/octet-stream",
                               "Repr-Digest": source.repr_digest})
        return source.digest

    def store_model(self, model: Model, external: Sequence[PathLike] = (),
                    progress: Optional[OnProgress] = None) -> str:
        """Stores a model, and the files with its data, unless they are there. Returns its
        id. Without `external`, the file `MODEL.data` is sent if the model needs it and it
        lies beside it."""
        if _is_id(model):
            return str(model)
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        source = _Source.of(model, "the model")
        beside = Path(f"{source.path}.data") if source.path else None
        if not external:
            try:
                return self._store("models", source, progress)
            except ProblemError as problem:
                if problem.code != "external_missing" or not (beside and beside.is_file()):
                    raise
            external = [beside]
        files = [(source.path.name if source.path else "model.onnx", source)]
        for path in external:
            one = _Source.of(path, "a file with the model's data")
            name = Path(path)
            if source.path:
                with contextlib.suppress(ValueError):
                    name = Path(path).resolve().relative_to(source.path.parent.resolve())
            files.append((name.name if name.is_absolute() else name.as_posix(), one))
        rows = [{"path": name, "digest": self._store("blobs", one, progress)}
                for name, one in files]
        return str(self.json("POST", "/v1/models", json.dumps({"files": rows}))["id"])

    def store_calibration(self, calibration: Calibration, model: str,
                          progress: Optional[OnProgress] = None) -> str:
        """Stores calibration data unless it is there. Returns its id. `model` is the id of
        the stored model, whose inputs say whether a sample has a batch axis."""
        if _is_id(calibration):
            return str(calibration)
        if isinstance(calibration, (str, os.PathLike, bytes, bytearray)):
            source = _Source.of(calibration, "the calibration data")
            return self._store("datasets", source, progress)
        with tempfile.TemporaryDirectory(prefix="qdqd") as folder:
            path = Path(folder, "calibration")
            if isinstance(calibration, Mapping):
                columns = {str(name): _Column.of(name, array, Path(folder, str(i)))
                           for i, (name, array) in enumerate(calibration.items())}
            elif _is_array(calibration):
                columns = {"": _Column.of("the array", calibration, Path(folder, "0"))}
            else:
                info = self.json("GET", f"/v1/models/{model}/info")
                columns = _collect(calibration, info["inputs"], Path(folder))
            _write_arrays(columns, path)
            return self._store("datasets", _Source.of(path, "data"), progress)

    # --- jobs --------------------------------------------------------------------------

    def submit(self, model: str, calibration: Optional[str] = None,
               spec: Optional[Spec] = None, *, labels: Optional[Mapping[str, str]] = None,
               priority: Optional[int] = None, fresh: bool = False) -> Dict[str, Any]:
        """Queues a job for stored files and returns it. A request whose answer is lost does
        not make a second job."""
        members = {"model": model, "calibration": calibration, "labels": labels,
                   "priority": priority, "fresh": fresh or None}
        text = json.dumps({name: value for name, value in members.items()
                           if value is not None})
        if spec is not None:
            text = f'{text[:-1]}, "spec": {_spec_text(spec)}}}'
        return dict(self.json("POST", "/v1/jobs", text,
                              headers={"Idempotency-Key": str(uuid.uuid4())}))

    def wait(self, job: str, timeout: Optional[float] = None,
             progress: Optional[OnProgress] = None) -> Dict[str, Any]:
        """Waits for the end of a job and returns it."""
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            seconds = 1 if progress else _WAIT
            if timeout is not None:
                seconds = max(0, min(seconds, int(began + timeout - asked + 0.999)))
            found = self.json("GET", f"/v1/jobs/{job}?wait={seconds}",
                              timeout=seconds + _ANSWER)
            if found["state"] in _ENDED:
                return dict(found)
            if progress:
                progress(Progress(**found["progress"]) if found["progress"] else
                         Progress(found["state"], 0, 0))
            now = time.monotonic()
            if timeout is not None and now - began >= timeout:
                raise StillRunningError(job, timeout)
            if now - asked < min(seconds, 0.2):
                _sleep(0.2)

    def quantize(self, model: Model, calibration: Calibration = None,
                 spec: Optional[Spec] = None, *, external: Sequence[PathLike] = (),
                 labels: Optional[Mapping[str, str]] = None, priority: Optional[int] = None,
                 fresh: bool = False, timeout: Optional[float] = None,
                 progress: Optional[OnProgress] = None) -> Result:
        """Quantizes a model and returns the result.

        The model is a path, bytes, an onnx.ModelProto, or the id of a stored model. The
        calibration data is a path or the bytes of a file (.npz, .npy, ONNX's test data), an
        id, an array, a dict of arrays with the samples along axis 0, or an iterable of
        samples: each an array, or a dict of arrays, with or without a batch axis. The spec is
        a dict or the path of a JSON file. Only files that the service lacks are sent.

        Raises AccuracyError when the model missed a bound of `accept`, ProblemError when the
        service refused something or the job failed, StillRunningError after `timeout`
        seconds of waiting for the job, and UnavailableError when the service cannot be
        reached or stays busy.
        """
        model_id = self.store_model(model, external, progress)
        data_id = None
        if calibration is not None:
            data_id = self.store_calibration(calibration, model_id, progress)
        job = self.submit(model_id, data_id, spec, labels=labels, priority=priority,
                          fresh=fresh)
        return self.result(self.wait(job["id"], timeout, progress))

    def result(self, job: Mapping[str, Any]) -> Result:
        """Returns the result of a job that has ended, or raises the job's error."""
        if job["state"] == "succeeded":
            return Result(self, job)
        if job["error"] and job["error"]["code"] == "accuracy":
            raise AccuracyError(self, job)
        raise ProblemError(job["error"] or {"code": job["state"], "status": 409,
                                            "detail": f"job {job['id']}: {job['state']}"},
                           job)

    def cancel(self, job: str) -> None:
        """Cancels a job."""
        self.call("POST", f"/v1/jobs/{job}/cancel", _read_all)

    def report(self, job: str) -> Dict[str, Any]:
        """Returns a job's report."""
        return dict(self.json("GET", f"/v1/jobs/{job}/report",
                              headers={"Accept": "application/json"}))

    def report_text(self, job: str, media_type: str) -> str:
        """Returns a job's report as `text/markdown` or `text/html`."""
        return self.call("GET", f"/v1/jobs/{job}/report", _read_all,
                         headers={"Accept": media_type}).decode()

    def download(self, result: Result, file: IO[bytes],
                 progress: Optional[OnProgress] = None) -> None:
        """Writes a result's model to a file. A lost connection is resumed, not repeated."""
        tag = ""

        def more_headers() -> Mapping[str, str]:
            return {"Range": f"bytes={file.tell()}-", "If-Range": tag} if file.tell() else {}

        def receive(answer: http.client.HTTPResponse) -> None:
            nonlocal tag
            tag = answer.getheader("ETag") or ""
            if answer.status != 206:
                file.seek(0)
                file.truncate()
            left = int(answer.getheader("Content-Length") or 0)
            total = file.tell() + left
            if not result.job["result"]["files"] and total != result.job["result"]["size"]:
                raise ConnectionError(_CUT)
            while left:
                data = answer.read(min(left, _CHUNK))
                if not data:
                    raise ConnectionError(_CUT)
                file.write(data)
                left -= len(data)
                if progress:
                    progress(Progress("download", file.tell(), total))

        self.call("GET", f"/v1/jobs/{result.id}/model", receive, more_headers=more_headers)


# --- what is sent ------------------------------------------------------------------------


class _Source:
    """Bytes to send, from memory or a file, with their digest."""

    def __init__(self, data: Optional[bytes], path: Optional[Path]) -> None:
        self.path = path
        self._data = data
        hash_ = hashlib.sha256()
        self.size = 0
        with self.open() as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                hash_.update(chunk)
                self.size += len(chunk)
        self.digest = "sha256:" + hash_.hexdigest()
        encoded = base64.b64encode(hash_.digest()).decode()
        self.repr_digest = f"sha-256=:{encoded}:"

    @classmethod
    def of_bytes(cls, data: bytes) -> _Source:
        return cls(data, None)

    @classmethod
    def of(cls, given: Any, name: str) -> _Source:
        """Returns the source of a path or of bytes."""
        if isinstance(given, (bytes, bytearray, memoryview)):
            return cls(bytes(given), None)
        if not isinstance(given, (str, os.PathLike)):
            raise UsageError(f"{name}: a {type(given).__name__} is neither a path nor bytes")
        try:
            return cls(None, Path(given))
        except OSError as error:
            raise UsageError(f"{name}: {error}") from None

    def open(self) -> IO[bytes]:
        return io.BytesIO(self._data or b"") if self.path is None else open(self.path, "rb")


def _is_id(given: Any) -> bool:
    return isinstance(given, str) and given.startswith("sha256:") and len(given) == 71


def _spec_text(spec: Spec) -> str:
    """Returns the spec as JSON. The text of a file is sent as it is, so that the service
    finds members that stand twice."""
    try:
        if isinstance(spec, Mapping):
            return json.dumps(spec, allow_nan=False)
        text = Path(spec).read_text(encoding="utf-8")
        json.loads(text)
        return text
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(f"the spec: {error}") from None


def _send(connection: http.client.HTTPConnection, body: _Source,
          progress: Optional[OnProgress]) -> None:
    """Sends the body, unless an answer comes before its end."""
    plain = connection.sock if not isinstance(connection.sock, ssl.SSLSocket) else None
    sent = 0
    with body.open() as file, selectors.DefaultSelector() as early:
        if plain is not None:
            early.register(plain, selectors.EVENT_READ)
        while sent < body.size and not (plain is not None and early.select(0)):
            data = file.read(min(_CHUNK, body.size - sent))
            if not data:
                raise UsageError(f"{body.path}: became shorter while it was sent")
            connection.send(data)
            sent += len(data)
            if progress and body.size >= _CHUNK:
                progress(Progress("upload", sent, body.size))


# --- arrays ------------------------------------------------------------------------------


def _is_array(given: Any) -> bool:
    return hasattr(given, "__array__") or hasattr(given, "__array_interface__")


class _Column:
    """The samples of one input, in a file, of which memory holds one at a time."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.rows = 0
        self.dtype = ""
        self.shape: Tuple[int, ...] = ()
        self._file = open(path, "wb")

    @classmethod
    def of(cls, name: str, array: Any, path: Path) -> _Column:
        """Returns the column of an array with the samples along axis 0."""
        column = cls(name, path)
        column.add(array, None)
        return column

    def add(self, array: Any, shape: Optional[Sequence[Any]]) -> None:
        """Appends what is one sample or a batch by the shape of the model's input: an array
        of one axis less is a sample, and so is one of a fixed batch. Without a shape it is a
        batch."""
        import numpy

        found = numpy.asarray(array)
        if found.dtype.kind not in "biuf":
            raise UsageError(f"{self.name}: arrays of {found.dtype} cannot be sent")
        rank = found.ndim if shape is None else len(shape)
        if found.ndim not in (rank, rank - 1) or (shape is None and rank == 0):
            raise UsageError(f"{self.name} has {found.ndim} axes; wanted are "
                             f"{max(rank, 1)}, the first for the batch")
        if shape is not None and (found.ndim < rank or rank == 0 or
                                  (shape[0] != 1 and found.shape[0] == shape[0])):
            found = found[None]
        if self.rows and (found.shape[1:], found.dtype.str) != (self.shape, self.dtype):
            raise UsageError(f"{self.name} is {found.dtype}{list(found.shape[1:])}, and "
                             f"{list(self.shape)} of {self.dtype} before; ONNX's test data "
                             "in an archive can have samples of several sizes")
        self.shape, self.dtype = tuple(found.shape[1:]), found.dtype.str
        self.rows += found.shape[0]
        if found.size:
            self._file.write(numpy.ascontiguousarray(found).data.cast("B"))

    def write(self, out: IO[bytes]) -> None:
        """Writes the column as an .npy file."""
        self._file.close()
        head = repr({"descr": self.dtype, "fortran_order": False,
                     "shape": (self.rows, *self.shape)})
        head += " " * (63 - (len(head) + 10) % 64) + "\n"
        out.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        with open(self.path, "rb") as file:
            _copy(file, out)


def _collect(samples: Iterable[Any], inputs: Sequence[Mapping[str, Any]],
             folder: Path) -> Dict[str, _Column]:
    """Writes samples to columns, one for each input of the model."""
    shapes: Dict[str, Optional[List[Any]]] = {one["name"]: one["shape"] for one in inputs}
    columns: Dict[str, _Column] = {}
    try:
        numbered = enumerate(samples)
    except TypeError:
        raise UsageError(f"the calibration data: a {type(samples).__name__} is neither a "
                         "path, bytes, an array, a dict of arrays nor samples") from None
    for i, sample in numbered:
        if not isinstance(sample, Mapping):
            if len(shapes) != 1 or not _is_array(sample):
                raise UsageError(f"sample {i}: is a {type(sample).__name__}; wanted is a dict "
                                 f"of arrays for {', '.join(shapes)}")
            sample = {next(iter(shapes)): sample}
        if i == 0:
            columns = {name: _Column(name, folder / str(j)) for j, name in enumerate(sample)}
        if set(sample) != set(columns):
            raise UsageError(f"sample {i}: has {sorted(sample)}, and sample 0 has "
                             f"{sorted(columns)}")
        for name, array in sample.items():
            try:
                columns[name].add(array, shapes.get(name))
            except UsageError as error:
                raise UsageError(f"sample {i}: {error}") from None
    if not columns:
        raise UsageError("the calibration data: there are no samples")
    return columns


def _write_arrays(columns: Mapping[str, _Column], path: Path) -> None:
    """Writes an .npz file, or an .npy file for one array without a name. Equal arrays make
    equal bytes, so that the service recognizes them."""
    if list(columns) == [""]:
        with open(path, "wb") as file:
            columns[""].write(file)
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, column in columns.items():
            is_large = column.path.stat().st_size > 1 << 30
            row = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(row, "w", force_zip64=is_large) as out:
                column.write(out)


# --- answers -----------------------------------------------------------------------------


def _read_all(answer: http.client.HTTPResponse) -> bytes:
    return answer.read()


def _read_json(answer: http.client.HTTPResponse) -> Any:
    """Returns the document of an answer, which is incomplete when it cannot be read."""
    try:
        return json.loads(answer.read())
    except ValueError:
        raise ConnectionError(_CUT) from None


def _problem(answer: http.client.HTTPResponse) -> ProblemError:
    """Returns the error of an answer; a proxy's page counts as `http_STATUS`."""
    document: Any = None
    with contextlib.suppress(ValueError):
        document = json.loads(answer.read(1 << 20) or b"null")
    if not isinstance(document, dict) or "code" not in document:
        document = {"code": f"http_{answer.status}", "detail": f"{answer.reason}"}
    return ProblemError({**document, "status": answer.status})


def _may_pass(problem: ProblemError) -> bool:
    """Returns whether to try again: where the service, or a proxy before it, is busy."""
    return problem.status in (429, 502, 503, 504) or (
        problem.status == 500 and problem.retryable)


def _retry_after(value: Optional[str]) -> float:
    """Returns the seconds of a header Retry-After, which is a number or a date."""
    if not value:
        return 0.0
    if value.strip().isdigit():
        return float(value)
    date = email.utils.parsedate_tz(value)
    return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else 0.0


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _copy(source: Optional[IO[bytes]], out: IO[bytes]) -> None:
    while source is not None:
        data = source.read(_CHUNK)
        if not data:
            break
        out.write(data)


def _check_digest(file: IO[bytes], digest: str) -> None:
    file.seek(0)
    hash_ = hashlib.sha256()
    for chunk in iter(lambda: file.read(_CHUNK), b""):
        hash_.update(chunk)
    if digest != "sha256:" + hash_.hexdigest():
        raise Error(f"the download is damaged: it is not {digest}")


# --- the command -------------------------------------------------------------------------

_EXITS = """\
The status is 0 when the model is written; 1 when it missed a bound of the spec's accept (its
reports are written); 2 for wrong usage; 3 when the service refused something or the job failed;
4 when the service could not be reached or stayed busy, or the job did not end in time: the same
command may succeed later. The last line on standard error has the reason."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m qdqd", description="Quantizes an ONNX model by the service qdqd.",
        epilog=_EXITS, allow_abbrev=False)
    add = parser.add_argument
    add("model", help="the ONNX file, or the id of a stored model")
    add("-c", "--calibration", metavar="FILE", help=".npz, .npy, or ONNX's test data")
    add("-s", "--spec", metavar="FILE", help="the spec, as JSON")
    add("-o", "--output", metavar="FILE", help="the quantized model")
    add("-e", "--external", metavar="FILE", action="append", default=[],
        help="a file with the model's data; repeatable")
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
            print(f"qdqd: {progress.stage}", file=sys.stderr, flush=True)

    def write_reports(job: str) -> None:
        for path, media_type in ((words.report, "application/json"),
                                 (words.markdown, "text/markdown"),
                                 (words.html, "text/html")):
            if path:
                Path(path).write_text(client.report_text(job, media_type), encoding="utf-8")

    client = Client(words.url, token_file=words.token_file, patience=words.patience)
    try:
        result = client.quantize(words.model, words.calibration, words.spec,
                                 external=words.external, labels=labels,
                                 priority=words.priority, fresh=words.fresh,
                                 timeout=words.timeout, progress=on_progress)
    except AccuracyError as error:
        write_reports(str((error.job or {})["id"]))
        raise
    write_reports(result.id)
    if words.output:
        result.save(words.output, on_progress)
    facts = result.summary
    print(f"{words.output or result.id}: {facts['quantized_layers']} of {facts['layers']} "
          f"layers, {facts['size_before']} to {facts['size_after']} bytes, "
          f"verdict {result.verdict or 'none'}")


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


if __name__ == "__main__":
    sys.exit(main())
