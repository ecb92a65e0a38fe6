# SPDX-License-Identifier: Apache-2.0
"""The data that the client sends: files, bytes, and arrays that it writes as files first."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._errors import UsageError
from ._images import write_tar

CHUNK = 1 << 18


class Source:
    """Bytes to send, from memory or a file, with their digest."""

    def __init__(self, data: Optional[bytes], path: Optional[Path]) -> None:
        self.path = path
        self._data = data
        hash_ = hashlib.sha256()
        self.size = 0
        with self.open() as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                hash_.update(chunk)
                self.size += len(chunk)
        self.digest = "sha256:" + hash_.hexdigest()
        encoded = base64.b64encode(hash_.digest()).decode()
        self.repr_digest = f"sha-256=:{encoded}:"

    @classmethod
    def of_bytes(cls, data: bytes) -> Source:
        return cls(data, None)

    @classmethod
    def of(cls, given: Any, name: str) -> Source:
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


def is_array(given: Any) -> bool:
    return hasattr(given, "__array__") or hasattr(given, "__array_interface__")


class Column:
    """The samples of one input, in a file, of which memory holds one at a time."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.rows = 0
        self.dtype = ""
        self.shape: Tuple[int, ...] = ()
        self.differs = False
        self._sizes: List[Tuple[int, Tuple[int, ...]]] = []  # rows of one shape, and the shape
        self._rank: Optional[int] = None  # of the input; None: unknown
        self._file = open(path, "wb")

    @classmethod
    def of(cls, name: str, array: Any, path: Path) -> Column:
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
        if self.rows and (found.ndim - 1, found.dtype.str) != (len(self.shape), self.dtype):
            raise UsageError(f"{self.name} is {found.dtype}{list(found.shape[1:])}, and "
                             f"{list(self.shape)} of {self.dtype} before: samples may differ "
                             "in their sizes, but not in their type or number of axes")
        if self.rows and found.shape[1:] != self.shape:
            axes = list(shape or [])[-len(self.shape):]
            if any(isinstance(axis, int) and axis != size
                   for axis, size in zip(axes, found.shape[1:])):
                raise UsageError(f"{self.name} is {found.dtype}{list(found.shape[1:])}, and "
                                 f"{list(self.shape)} before; the model takes {shape}")
            self.differs = True
        if not self._sizes or found.shape[1:] != self._sizes[-1][1]:
            self._sizes.append((0, tuple(found.shape[1:])))
        self._sizes[-1] = (self._sizes[-1][0] + found.shape[0], self._sizes[-1][1])
        self._rank = None if shape is None else rank
        self.shape, self.dtype = tuple(found.shape[1:]), found.dtype.str
        self.rows += found.shape[0]
        if found.size:
            self._file.write(numpy.ascontiguousarray(found).data.cast("B"))

    def _head(self, shape: Sequence[int]) -> bytes:
        """Returns what stands before the elements in an .npy file."""
        head = repr({"descr": self.dtype, "fortran_order": False, "shape": tuple(shape)})
        head += " " * (63 - (len(head) + 10) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()

    def write(self, out: IO[bytes]) -> None:
        """Writes the column as an .npy file."""
        self._file.close()
        out.write(self._head((self.rows, *self.shape)))
        with open(self.path, "rb") as file:
            copy(file, out)

    def samples(self) -> Iterator[bytes]:
        """Yields each row as an .npy file. A row is what one run takes: it has the axes of the
        input, the first of which is a batch of one where the row itself has none."""
        self._file.close()
        item = int(self.dtype[2:])
        with open(self.path, "rb") as file:
            for rows, shape in self._sizes:
                whole = shape if self._rank in (None, len(shape)) else (1, *shape)
                for _ in range(rows):
                    yield self._head(whole) + file.read(item * math.prod(shape))


def collect(samples: Iterable[Any], inputs: Sequence[Mapping[str, Any]],
             folder: Path) -> Dict[str, Column]:
    """Writes samples to columns, one for each input of the model."""
    shapes: Dict[str, Optional[List[Any]]] = {one["name"]: one["shape"] for one in inputs}
    columns: Dict[str, Column] = {}
    try:
        numbered = enumerate(samples)
    except TypeError:
        raise UsageError(f"the calibration data: a {type(samples).__name__} is neither a "
                         "path, bytes, an array, a dict of arrays nor samples") from None
    for i, sample in numbered:
        if isinstance(sample, (list, tuple)) and len(sample) == 2 and len(shapes) == 1 and \
                is_array(sample[0]) and is_array(sample[1]):
            sample = {next(iter(shapes)): sample[0], "labels": sample[1]}
        if not isinstance(sample, Mapping):
            if len(shapes) != 1 or not is_array(sample):
                raise UsageError(f"sample {i}: is a {type(sample).__name__}; wanted is a dict "
                                 f"of arrays for {', '.join(shapes)}")
            sample = {next(iter(shapes)): sample}
        if i == 0:
            columns = {name: Column(name, folder / str(j)) for j, name in enumerate(sample)}
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


def _sample_files(columns: Mapping[str, Column]) -> Iterator[Tuple[str, bytes]]:
    """Yields an .npz file for each sample."""
    rows = {name: column.rows for name, column in columns.items()}
    if len(set(rows.values())) > 1:
        raise UsageError(f"the inputs have different numbers of samples: {rows}")
    for i, arrays in enumerate(zip(*(column.samples() for column in columns.values()))):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in zip(columns, arrays):
                archive.writestr(zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0)), array)
        yield f"{i:08}.npz", file.getvalue()


def write_arrays(columns: Mapping[str, Column], path: Path) -> None:
    """Writes an .npz file, or an .npy file for one array without a name; where samples differ in
    their sizes, a tar archive with an .npz file for each. Equal arrays make equal bytes, so that
    the service recognizes them."""
    if any(column.differs for column in columns.values()):
        write_tar(_sample_files(columns), path)
        return
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


def copy(source: Optional[IO[bytes]], out: IO[bytes]) -> None:
    while source is not None:
        data = source.read(CHUNK)
        if not data:
            break
        out.write(data)
