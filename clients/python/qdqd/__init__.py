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

import contextlib
import email.utils
import http.client
import io
import json
import logging
import os
import random
import selectors
import ssl
import tarfile
import tempfile
import time
import urllib.parse
import uuid
from pathlib import Path
from typing import (IO, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, TypeVar, Union)

from . import _images, _local, _texts
from ._data import CHUNK, Column, Source, collect, copy, is_array, write_arrays
from ._errors import (Error, FileError, ProblemError, StillRunningError, UnavailableError,
                      UsageError, printable)
from ._files import Batch, named, plain_name
from ._local import LocalResult

__all__ = ["AccuracyError", "Client", "Error", "FileError", "LocalResult", "ProblemError", "Progress",
           "Result", "Results", "StillRunningError", "UnavailableError", "UsageError", "quantize"]
__version__ = "0.13.0"

_log = logging.getLogger("qdqd")
_sleep = time.sleep
_T = TypeVar("_T")
PathLike = Union[str, "os.PathLike[str]"]
# A path, the bytes of a file, the id of a stored file, or an object of the package onnx.
Model = Union[PathLike, bytes, Any]
# A path, bytes, an id, an array, a dict of arrays, or an iterable of samples.
Calibration = Union[PathLike, bytes, Any]
Spec = Union[PathLike, Mapping[str, Any]]

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

    def __init__(self, client: Client, job: Mapping[str, Any],
                 inputs: Sequence[Path] = ()) -> None:
        """`inputs` are the files that the job was made of, which save() does not overwrite."""
        self._client = client
        self._inputs = list(inputs)
        self._report: Optional[Dict[str, Any]] = None
        self.job = dict(job)
        self.id: str = job["id"]
        self.summary: Dict[str, Any] = job["result"]["summary"]
        self.verdict: Optional[str] = self.summary.get("verdict")
        self.judged_by: Optional[str] = self.summary.get("judged_by")

    def __repr__(self) -> str:
        return f"<qdqd.Result {printable(self.id)}, verdict {printable(self.verdict)}>"

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

    def signature(self) -> Dict[str, Any]:
        """Returns the signature of the result's files, a bundle of OpenSSF Model Signing. A service
        without a key has none, and the error is not_found."""
        return dict(self._client.json("GET", f"/v1/jobs/{self.id}/signature"))

    def provenance(self) -> Dict[str, Any]:
        """Returns what the result was made of: an in-toto statement, in a signed envelope where the
        service has a key."""
        return dict(self._client.json("GET", f"/v1/jobs/{self.id}/provenance"))

    def bom(self) -> Dict[str, Any]:
        """Returns the bill of materials (CycloneDX)."""
        return dict(self._client.json("GET", f"/v1/jobs/{self.id}/bom"))

    @property
    def model(self) -> bytes:
        """The model's bytes; a tar where the model has a data file."""
        file = io.BytesIO()
        self._client.download(self, file)
        return file.getvalue()

    def save(self, path: PathLike, progress: Optional[OnProgress] = None, *,
             force: bool = False) -> List[Path]:
        """Writes the model to `path`, and a data file beside it under the name that the
        model gives it. Returns the paths. All files appear when they are complete, or none.

        Raises FileError where other bytes are already, unless they may be replaced
        (`force`), and where a file would take the place of an input of the job."""
        with Batch(self._inputs, force) as batch:
            self._write(batch, Path(path), progress)
            return batch.publish()

    def _write(self, batch: Batch, target: Path, progress: Optional[OnProgress]) -> None:
        """Adds the files of the model to the batch and downloads them."""
        rows = self.job["result"]["files"]
        if not rows:
            with batch.open(batch.add(target, self.job["result"]["model"])) as file:
                self._client.download(self, file, progress)
            return
        files = [batch.add(target, rows[0]["digest"])]
        files += [batch.add(target.parent / plain_name(row["path"]), row["digest"])
                  for row in rows[1:]]
        with named(target), tempfile.TemporaryFile(dir=target.parent) as whole:
            self._client.download(self, whole, progress)
            whole.seek(0)
            try:
                with tarfile.open(fileobj=whole, mode="r:") as tar:
                    for index, row in zip(files, rows):
                        with batch.open(index) as file:
                            copy(tar.extractfile(row["path"]), file)
            except (KeyError, tarfile.TarError) as error:
                raise Error(f"the download is damaged: {error}") from None


class Results:
    """A job with several targets that has ended. `results` has those of the targets that succeeded,
    `errors` the errors of the others; `results["TARGET"]` is either, returned or raised."""

    def __init__(self, client: Client, job: Mapping[str, Any],
                 inputs: Sequence[Path] = ()) -> None:
        self._client = client
        self.job = dict(job)
        self.id: str = job["id"]
        self.results: Dict[str, Result] = {}
        self.errors: Dict[str, ProblemError] = {}
        for row in job["targets"]:
            try:
                one = client.result(client.json("GET", f"/v1/jobs/{row['job']}"), inputs)
                assert isinstance(one, Result)
                self.results[row["target"]] = one
            except ProblemError as error:
                self.errors[row["target"]] = error

    def __repr__(self) -> str:
        return (f"<qdqd.Results {printable(self.id)}, {len(self.results)} of "
                f"{len(self.results) + len(self.errors)} targets>")

    def __getitem__(self, target: str) -> Result:
        if target in self.errors:
            raise self.errors[target]
        return self.results[target]

    def comparison(self) -> List[Dict[str, Any]]:
        """Returns a row of figures for each target that has a report."""
        found = self._client.json("GET", f"/v1/jobs/{self.id}/compare",
                                  headers={"Accept": "application/json"})
        return list(found["results"])

    def html(self) -> str:
        """Returns the comparison as a page."""
        return self._client.call("GET", f"/v1/jobs/{self.id}/compare", _read_all,
                                 headers={"Accept": "text/html"}).decode()

    def save(self, folder: PathLike, progress: Optional[OnProgress] = None, *,
             force: bool = False) -> List[Path]:
        """Writes each model to `FOLDER/TARGET/model.onnx`, with its data file beside it, as
        Result.save() does. Returns the paths."""
        paths: List[Path] = []
        for target, result in self.results.items():
            place = Path(folder) / plain_name(target)
            with named(place):
                place.mkdir(parents=True, exist_ok=True)
            paths += result.save(place / "model.onnx", progress, force=force)
        return paths


def quantize(model: Model, calibration: Calibration = None, spec: Optional[Spec] = None, *,
             url: Optional[str] = None, token: Optional[str] = None,
             patience: float = 300.0, **options: Any) -> Union[Result, Results, LocalResult]:
    """Quantizes a model; see Client.quantize() for the arguments and the errors. Without `url` and
    QDQD_URL, a package with the engine (tools/wheel) does so on this machine, and takes `evaluation`
    and `threads` as options."""
    if url is None and not os.environ.get("QDQD_URL") and _local.is_there():
        return _local.quantize(model, calibration, spec, **options)
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
             body: Optional[Source], timeout: float,
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
             *, headers: Optional[Mapping[str, str]] = None, body: Optional[Source] = None,
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
            options["body"] = Source.of_bytes(document.encode())
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

    def _store(self, kind: str, source: Source, progress: Optional[OnProgress]) -> str:
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
        source = Source.of(model, "the model")
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
            one = Source.of(path, "a file with the model's data")
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
        if isinstance(calibration, (str, os.PathLike)) and os.path.isdir(calibration):
            return self._store_files(_images.files_of(Path(calibration)), progress)
        if isinstance(calibration, (list, tuple)) and calibration and \
                _images.is_picture(calibration[0]):
            return self._store_files(_images.pictures_of(calibration), progress)
        if isinstance(calibration, (str, os.PathLike, bytes, bytearray)):
            source = Source.of(calibration, "the calibration data")
            return self._store("datasets", source, progress)
        with tempfile.TemporaryDirectory(prefix="qdqd") as folder:
            path = Path(folder, "calibration")
            if isinstance(calibration, Mapping):
                columns = {str(name): Column.of(name, array, Path(folder, str(i)))
                           for i, (name, array) in enumerate(calibration.items())}
            elif is_array(calibration):
                columns = {"": Column.of("the array", calibration, Path(folder, "0"))}
            else:
                info = self.json("GET", f"/v1/models/{model}/info")
                columns = collect(calibration, info["inputs"], Path(folder))
            write_arrays(columns, path)
            return self._store("datasets", Source.of(path, "data"), progress)

    def _store_data(self, given: Calibration, model: Model, model_id: str,
                    progress: Optional[OnProgress]) -> str:
        """Stores data as store_calibration() does, and of a text the ids of its tokens."""
        if not _texts.is_text(given):
            return self.store_calibration(given, model_id, progress)
        with tempfile.TemporaryDirectory(prefix="qdqd") as folder:
            path = Path(folder, "ids.npy")
            _texts.write_ids(Path(given), model, path)
            return self.store_calibration(path, model_id, progress)

    def _store_files(self, files: Iterable[Tuple[str, bytes]],
                     progress: Optional[OnProgress]) -> str:
        with tempfile.TemporaryDirectory(prefix="qdqd") as folder:
            path = Path(folder, "images.tar")
            _images.write_tar(files, path)
            return self._store("datasets", Source.of(path, "the images"), progress)

    # --- jobs --------------------------------------------------------------------------

    def submit(self, model: str, calibration: Optional[str] = None,
               spec: Optional[Spec] = None, *, labels: Optional[Mapping[str, str]] = None,
               priority: Optional[int] = None, fresh: bool = False,
               evaluation: Optional[str] = None) -> Dict[str, Any]:
        """Queues a job for stored files and returns it. A request whose answer is lost does
        not make a second job."""
        members = {"model": model, "calibration": calibration, "labels": labels,
                   "priority": priority, "fresh": fresh or None, "evaluation": evaluation}
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
                 progress: Optional[OnProgress] = None,
                 evaluation: Calibration = None) -> Union[Result, Results]:
        """Quantizes a model and returns the result; a spec with several `targets` gives Results,
        also where some of them failed.

        The model is a path, bytes, an onnx.ModelProto, or the id of a stored model. The
        calibration data is a path or the bytes of a file (.npz, .npy, .parquet, .safetensors, an
        archive of images, of samples or of ONNX's test data), the path of a folder of images, that of
        a text (.txt) for a language model with its tokenizer.json beside it, a list of pictures of
        Pillow, an id, an array, a dict of arrays with the samples along axis 0,
        or an iterable of samples: each an array, or a dict of arrays, with or without a batch axis,
        whose sizes may differ from sample to sample where the model's axes are open. The spec is
        a dict or the path of a JSON file. Only files that the service lacks are sent.

        `evaluation` is data to judge the result by, in the same forms but for samples: its
        arrays beside the model's inputs, as `labels`, are for the spec's task. The metric of a task
        is the id that store_model() returned for it.

        Raises AccuracyError when the model missed a bound of `accept`, ProblemError when the
        service refused something or the job failed, StillRunningError after `timeout`
        seconds of waiting for the job, and UnavailableError when the service cannot be
        reached or stays busy.
        """
        inputs = _paths(model, calibration, spec, external, evaluation)
        model_id = self.store_model(model, external, progress)
        data_id = None
        if calibration is not None:
            data_id = self._store_data(calibration, model, model_id, progress)
        judged_by = None
        if evaluation is not None:
            judged_by = self._store_data(evaluation, model, model_id, progress)
        job = self.submit(model_id, data_id, spec, labels=_with_name(labels, model), priority=priority,
                          fresh=fresh, evaluation=judged_by)
        return self.result(self.wait(job["id"], timeout, progress), inputs)

    def result(self, job: Mapping[str, Any],
               inputs: Sequence[Path] = ()) -> Union[Result, Results]:
        """Returns the result of a job that has ended, or raises the job's error. `inputs` are
        files that the result is not to overwrite."""
        if job.get("targets") and job["state"] != "cancelled":
            return Results(self, job, inputs)
        if job["state"] == "succeeded":
            return Result(self, job, inputs)
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
                data = answer.read(min(left, CHUNK))
                if not data:
                    raise ConnectionError(_CUT)
                _write(file, data)
                left -= len(data)
                if progress:
                    progress(Progress("download", file.tell(), total))

        self.call("GET", f"/v1/jobs/{result.id}/model", receive, more_headers=more_headers)


# --- what is sent ------------------------------------------------------------------------


def _is_id(given: Any) -> bool:
    return isinstance(given, str) and given.startswith("sha256:") and len(given) == 71


def _with_name(labels: Optional[Mapping[str, str]], model: Model) -> Optional[Mapping[str, str]]:
    """Returns the labels with the name of the model's file, by which pages and lists call the job."""
    if not isinstance(model, (str, os.PathLike)) or _is_id(model):
        return labels
    return {"name": Path(model).name, **(labels or {})}


def _paths(model: Model, calibration: Calibration, spec: Optional[Spec],
           external: Sequence[PathLike], evaluation: Optional[Calibration] = None) -> List[Path]:
    """Returns the files among the inputs of a job, with the data file that store_model()
    may have found beside the model."""
    given = [one for one in (model, calibration, spec, evaluation, *external)
             if isinstance(one, (str, os.PathLike)) and not _is_id(one)]
    beside = [f"{os.fspath(one)}.data" for one in given[:1] if one is model]
    return [Path(os.path.abspath(one)) for one in (*given, *beside)]


def _spec_text(spec: Spec) -> str:
    """Returns the spec as JSON. The text of a file is sent as it is, so that the service
    finds members that stand twice."""
    try:
        if isinstance(spec, Mapping):
            return json.dumps(spec, allow_nan=False)
        text = Path(spec).read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(f"the spec: {error}") from None
    try:
        json.loads(text)
    except ValueError as error:
        raise UsageError(f"the spec: invalid_json: {error}") from None
    return text


def _send(connection: http.client.HTTPConnection, body: Source,
          progress: Optional[OnProgress]) -> None:
    """Sends the body, unless an answer comes before its end."""
    plain = connection.sock if not isinstance(connection.sock, ssl.SSLSocket) else None
    sent = 0
    with body.open() as file, selectors.DefaultSelector() as early:
        if plain is not None:
            early.register(plain, selectors.EVENT_READ)
        while sent < body.size and not (plain is not None and early.select(0)):
            data = file.read(min(CHUNK, body.size - sent))
            if not data:
                raise UsageError(f"{body.path}: became shorter while it was sent")
            connection.send(data)
            sent += len(data)
            if progress and body.size >= CHUNK:
                progress(Progress("upload", sent, body.size))


def _write(file: IO[bytes], data: bytes) -> None:
    """Writes to a file. A full disk is an error of its own: the connection is not lost."""
    try:
        file.write(data)
        file.flush()
    except OSError as error:
        raise FileError(f"the model cannot be written: {error.strerror or error}") from error


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
    return printable(error) or type(error).__name__
