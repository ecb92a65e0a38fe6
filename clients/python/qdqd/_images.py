# SPDX-License-Identifier: Apache-2.0
"""Images as people have them: folders of files and pictures of Pillow become a tar archive."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Tuple

from ._errors import UsageError

ENDINGS = (".jpg", ".jpeg", ".png", ".cls")


def is_picture(given: Any) -> bool:
    """Returns whether it is a picture of Pillow, which the client does not import."""
    return hasattr(given, "save") and hasattr(given, "getbands")


def files_of(folder: Path) -> Iterator[Tuple[str, bytes]]:
    """Yields names and bytes of the images of a folder and of its folders, one level down."""
    found = [path for pattern in ("*", "*/*") for path in folder.glob(pattern)
             if path.suffix.lower() in ENDINGS and path.is_file() and
             not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not found:
        raise UsageError(f"{folder}: neither the folder nor its folders hold images (.jpg, .jpeg "
                         "or .png); docs/reference/data.md says what data may be")
    for path in sorted(found, key=lambda path: os.fsencode(path.relative_to(folder).as_posix())):
        yield path.relative_to(folder).as_posix(), path.read_bytes()


def pictures_of(pictures: Iterable[Any]) -> Iterator[Tuple[str, bytes]]:
    """Yields names and PNG files of pictures, without loss."""
    for i, picture in enumerate(pictures):
        if not is_picture(picture):
            raise UsageError(f"sample {i}: is a {type(picture).__name__}, and sample 0 is a "
                             "picture of Pillow")
        if picture.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            raise UsageError(f"sample {i}: its mode is {picture.mode}; convert(\"RGB\") makes a "
                             "picture that can be sent")
        data = io.BytesIO()
        picture.save(data, "PNG")
        yield f"{i:08}.png", data.getvalue()


def write_tar(files: Iterable[Tuple[str, bytes]], path: Path) -> None:
    """Writes a tar archive; equal files make equal bytes."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in files:
            row = tarfile.TarInfo(name)
            row.size = len(data)
            archive.addfile(row, io.BytesIO(data))
