# SPDX-License-Identifier: Apache-2.0
"""The files that the client writes: all of them or none, and none over an input."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import IO, Callable, Iterator, List, NamedTuple, Optional, Sequence

from ._data import CHUNK, copy
from ._errors import Error, FileError


class _Row(NamedTuple):
    path: Path  # the file's name at the end
    temporary: Path  # its bytes until then, in a hidden folder beside it
    digest: Optional[str]  # None: the file takes the place of another file
    is_stream: bool  # it is a pipe or a device, which gets the bytes at the end


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Makes errors of the system FileErrors, so that a full disk is no lost connection."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def digest_of(file: IO[bytes]) -> str:
    """Returns the digest of a whole file."""
    file.seek(0)
    hash_ = hashlib.sha256()
    for chunk in iter(lambda: file.read(CHUNK), b""):
        hash_.update(chunk)
    return "sha256:" + hash_.hexdigest()


def plain_name(name: object) -> str:
    """Returns the name of a data file that the service gives. It is one part of a path, and
    neither hidden nor a name that other systems read as a path."""
    text = name if isinstance(name, str) else ""
    if not text or text[0] == "." or any(c in "/\\:" or not c.isprintable() for c in text):
        raise FileError(f"the service names the model's data file {str(name)!r}, which is "
                        "no plain file name")
    return text


def check_places(paths: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Raises FileError where two of the paths are one, or one is that of an input, by
    whatever spelling or link, or has no folder."""
    for i, path in enumerate(paths):
        if not path.parent.is_dir():
            raise FileError(f"{path}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise FileError(f"{path}: is a folder")
        if any(_is_same(path, other) for other in paths[:i]):
            raise FileError(f"{path} is named for two files that are written")
        if any(_is_same(path, other) for other in inputs):
            raise FileError(f"{path} is an input, so it is not overwritten")


def _is_same(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    with contextlib.suppress(OSError):
        return os.path.samefile(one, other)
    return False


def _is_stream(path: Path) -> bool:
    """Returns whether the path is a pipe, a device, or an open file (/dev/stdout)."""
    is_open = os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    return path.exists() and (is_open or not path.is_file())


class Batch:
    """Files that get their names together, when all of them are complete. `with` removes
    what did not get its name."""

    def __init__(self, inputs: Sequence[Path], force: bool = False) -> None:
        self._inputs = inputs
        self._force = force
        self._rows: List[_Row] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, path: Path, digest: Optional[str] = None) -> int:
        """Adds a file and returns its index. With its digest, other bytes that are there
        already raise FileError unless the batch is forced; without, they are replaced, where
        the path is a link, those of its target."""
        check_places([row.path for row in self._rows] + [path], self._inputs)
        is_stream = _is_stream(path)
        if is_stream and digest is not None:
            raise FileError(f"{path}: is not a regular file, so it is not overwritten")
        if digest is None and not is_stream:
            path = Path(os.path.realpath(path))
        with named(path):
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(
                dir=None if is_stream else path.parent, prefix=".qdqd"))
        row = _Row(path, Path(folder, "file"), digest, is_stream)
        self._check(row)
        self._rows.append(row)
        return len(self._rows) - 1

    @contextlib.contextmanager
    def open(self, index: int) -> Iterator[IO[bytes]]:
        """Opens a file of the batch, which is empty. Its bytes are on the disk, and are
        those of its digest, when the block ends."""
        row = self._rows[index]
        with named(row.path), open(row.temporary, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if row.digest is not None and digest_of(file) != row.digest:
                raise Error(f"the download is damaged: it is not {row.digest}")

    def publish(self) -> List[Path]:
        """Gives the files their names, the first one last, and returns these in the order
        in which they were added. After an error what was there before is there again."""
        undo: List[Callable[[], None]] = []
        try:
            for row in self._rows[1:] + self._rows[:1]:
                with named(row.path):
                    self._publish(row, undo)
        except BaseException:
            for step in reversed(undo):
                with contextlib.suppress(OSError):
                    step()
            raise
        return [row.path for row in self._rows]

    def _publish(self, row: _Row, undo: List[Callable[[], None]]) -> None:
        if row.is_stream:
            with open(row.temporary, "rb") as file, open(row.path, "wb") as stream:
                copy(file, stream)
            return
        try:
            # A link is refused where a file is, whoever makes that file, and when.
            os.link(row.temporary, row.path)
            undo.append(lambda: os.unlink(row.path))
            return
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not os.path.lexists(row.path):
                undo.append(lambda: os.unlink(row.path))
                os.replace(row.temporary, row.path)
                return
        if self._check(row):
            return
        before = row.temporary.with_name("before")
        with contextlib.suppress(OSError):
            os.link(row.path, before, follow_symlinks=False)
            undo.append(lambda: os.replace(before, row.path))
        os.replace(row.temporary, row.path)

    def _check(self, row: _Row) -> bool:
        """Returns whether the file is there with its bytes. Raises FileError where other
        bytes are, which are to stay."""
        if row.digest is None or not os.path.lexists(row.path):
            return False
        # Neither a pipe nor a device is read, and a link has to be one to the same bytes.
        if row.path.is_file():
            with named(row.path), open(row.path, "rb") as file:
                if digest_of(file) == row.digest:
                    return True
        if not self._force:
            raise FileError(f"{row.path} is there with other bytes, so it is not "
                            "overwritten; choose another folder or name, or force it")
        return False
