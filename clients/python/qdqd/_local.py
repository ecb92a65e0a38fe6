# SPDX-License-Identifier: Apache-2.0
"""The engine that a wheel brings along (tools/wheel): the command qdq, its library and what these
need, in the folder `_engine`. A package without that folder is a client alone."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Sequence, Union

from . import _images
from ._data import Column, Source, collect, copy, is_array, write_arrays
from ._errors import Error, ProblemError, UnavailableError, UsageError
from ._files import Batch

PathLike = Union[str, "os.PathLike[str]"]
_ENGINE = Path(__file__).parent / "_engine"


def is_there() -> bool:
    return (_ENGINE / "bin" / "qdq").exists()


def _library(package: str, folder: str, pattern: str) -> Optional[str]:
    """Returns the path of a library in an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    for place in (found.submodule_search_locations or []) if found else []:
        for path in sorted(Path(place, folder).glob(pattern)):
            return str(path)
    return None


def environment() -> Dict[str, str]:
    """Returns the environment of the command: libraries of the wheel, ONNX Runtime's of the package
    onnxruntime, and OpenVINO's of the package openvino, unless variables name others."""
    found = dict(os.environ)
    path = str(_ENGINE / "lib")
    found["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (path, found.get("LD_LIBRARY_PATH"))))
    found.setdefault("QDQD_ENGINE_CASES", "")
    for variable, package, folder, pattern in (
            ("QDQD_ENGINE_RUNTIME", "onnxruntime", "capi", "libonnxruntime.so*"),
            ("QDQD_ENGINE_OPENVINO", "openvino", "libs", "libopenvino_c.so*")):
        if variable not in found:
            found[variable] = _library(package, folder, pattern) or ""
    return found


def main() -> NoReturn:
    """The command qdq."""
    if not is_there():
        sys.exit("qdq: this package is the client alone; tools/wheel makes one with the engine")
    binary = str(_ENGINE / "bin" / "qdq")
    os.execve(binary, ["qdq", *sys.argv[1:]], environment())


def _run(words: Sequence[PathLike]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(_ENGINE / "bin" / "qdq"), *map(os.fspath, words)],
                          env=environment(), stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, check=False)


class LocalResult:
    """A model that this machine quantized. Its files are kept until the object is gone."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str], report: Mapping[str, Any],
                 inputs: Sequence[Path]) -> None:
        self._folder = folder
        self._inputs = list(inputs)
        self.report: Dict[str, Any] = dict(report)
        self.summary: Dict[str, Any] = self.report["summary"]
        self.verdict: Optional[str] = self.summary.get("verdict")
        self.judged_by: Optional[str] = self.summary.get("judged_by")

    def __repr__(self) -> str:
        return f"<qdqd.LocalResult, verdict {self.verdict}>"

    def _repr_html_(self) -> str:
        """The figures as a table, for a notebook."""
        outputs = self.report["evaluation"]["outputs"] if self.report["evaluation"] else []
        deployed = (self.report["evaluation"] or {}).get("deployed")
        rows = [("verdict", self.verdict or "none"), ("judged by", self.judged_by or "nothing"),
                ("size", f"{self.summary['size_before']:,} to {self.summary['size_after']:,} bytes"),
                ("layers", f"{self.summary['quantized_layers']} of {self.summary['layers']}")]
        for output in (deployed["outputs"] if deployed else outputs):
            value = output["sqnr_db"]
            rows.append((output["name"], "no error" if value is None else f"{value:.2f} dB"))
        cells = "".join(f"<tr><th>{html.escape(str(a))}</th><td>{html.escape(str(b))}</td></tr>"
                        for a, b in rows)
        return f"<table>{cells}</table>"

    @property
    def files(self) -> List[Path]:
        """The paths of the model and, where it has one, of its data file."""
        folder = Path(self._folder.name)
        return [folder / "model.onnx",
                *(p for p in sorted(folder.iterdir()) if p.name == "model.onnx.data")]

    @property
    def model(self) -> bytes:
        """The model's bytes, without those of a data file."""
        return self.files[0].read_bytes()

    def html(self) -> str:
        """Returns the report as a page."""
        with tempfile.TemporaryDirectory(prefix="qdqd") as name:
            page, report = Path(name, "report.html"), Path(name, "report.json")
            report.write_text(json.dumps(self.report))
            done = _run(["report", report, "-o", page])
            if done.returncode:
                raise Error(done.stderr.strip())
            return page.read_text()

    def save(self, path: PathLike, *, force: bool = False) -> List[Path]:
        """Writes the model to `path`, and a data file beside it as `model.onnx.data`, whose name is in
        the model. Files that differ are overwritten by `force` alone, inputs never."""
        target = Path(path)
        with Batch(self._inputs, force) as batch:
            for i, source in enumerate(self.files):
                place = target if i == 0 else target.parent / source.name
                digest = Source.of(source, "the model").digest
                with open(source, "rb") as data, batch.open(batch.add(place, digest)) as out:
                    copy(data, out)
            return batch.publish()


def _place(given: Any, name: str, folder: Path) -> Path:
    """Returns the path of a file, which is written where bytes or a ModelProto were given."""
    if hasattr(given, "SerializeToString"):
        given = given.SerializeToString()
    if isinstance(given, (bytes, bytearray, memoryview)):
        (folder / name).write_bytes(bytes(given))
        return folder / name
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    raise UsageError(f"{name}: a {type(given).__name__} is neither a path nor bytes")


def _data(given: Any, model: Path, name: str, folder: Path) -> Path:
    """Returns the path of calibration data, which is written where it was given in memory."""
    if isinstance(given, (list, tuple)) and given and _images.is_picture(given[0]):
        _images.write_tar(_images.pictures_of(given), folder / (name + ".tar"))
        return folder / (name + ".tar")
    if isinstance(given, (str, os.PathLike, bytes, bytearray, memoryview)):
        return _place(given, name, folder)
    parts = folder / (name + "-parts")
    parts.mkdir()
    if isinstance(given, Mapping):
        columns = {str(key): Column.of(str(key), array, parts / str(i))
                   for i, (key, array) in enumerate(given.items())}
    elif is_array(given):
        columns = {"": Column.of("the array", given, parts / "0")}
    else:
        columns = collect(given, _inputs_of(model), parts)
    write_arrays(columns, folder / name)
    return folder / name


def _inputs_of(model: Path) -> Sequence[Mapping[str, Any]]:
    done = _run(["info", model, "--json"])
    if done.returncode:
        raise _error_of(done)
    inputs: Sequence[Mapping[str, Any]] = json.loads(done.stdout)["inputs"]
    return inputs


def write_ids(text: Path, model: Path, to: Path) -> None:
    """Writes the ids of a text to an .npy file."""
    done = _run(["data", text, "--model", model, "-o", to])
    if done.returncode:
        raise _error_of(done)


def has_targets(spec: str) -> bool:
    """Returns whether the text of a spec has several targets."""
    try:
        document = json.loads(spec)
    except ValueError:
        return False
    return isinstance(document, dict) and "targets" in document


def _error_of(done: subprocess.CompletedProcess[str]) -> Error:
    lines = [line for line in done.stderr.splitlines() if not line.startswith("qdq: warning:")]
    text = lines[-1].removeprefix("qdq: ") if lines else f"qdq ended with {done.returncode}"
    code, _, detail = text.partition(": ")
    if done.returncode < 0:
        return UnavailableError(f"the engine ended by signal {-done.returncode}")
    return ProblemError({"code": code, "detail": detail} if detail and " " not in code else
                        {"code": "failed", "detail": text})


def quantize(model: Any, calibration: Any = None, spec: Any = None, *, evaluation: Any = None,
             threads: Optional[int] = None) -> LocalResult:
    """Quantizes a model on this machine, without a service. The arguments are those of
    Client.quantize(); a model with external data is given by its path."""
    kept: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="qdqd")
    with tempfile.TemporaryDirectory(prefix="qdqd") as name:
        folder, made = Path(name), Path(kept.name)
        source = _place(model, "source.onnx", folder)
        report = folder / "report.json"
        words: List[PathLike] = ["quantize", source, "-o", made / "model.onnx", "--report", report]
        if calibration is not None:
            words += ["--calibration", _data(calibration, source, "calibration", folder)]
        if evaluation is not None:
            words += ["--evaluation", _data(evaluation, source, "evaluation", folder)]
        if spec is not None:
            text = json.dumps(spec) if isinstance(spec, Mapping) else Path(spec).read_text()
            if has_targets(text):
                raise UsageError("the spec: several targets are for a service, or for the "
                                 "command qdq; name one as target")
            (folder / "spec.json").write_text(text)
            words += ["--spec", folder / "spec.json"]
        if threads is not None:
            words += ["--threads", str(threads)]
        done = _run(words)
        if done.returncode:
            raise _error_of(done)
        inputs = [Path(one) for one in (model, calibration, spec, evaluation)
                  if isinstance(one, (str, os.PathLike))]
        return LocalResult(kept, json.loads(report.read_text()), inputs)
