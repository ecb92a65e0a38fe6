# SPDX-License-Identifier: Apache-2.0
"""Texts as data of a language model: ids of tokens are made of them on this machine, by the engine
of a wheel or by the package `tokenizers`."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from array import array
from pathlib import Path
from typing import Any

from . import _local
from ._errors import UsageError

ROW = 512
MOST = 16 << 20


def is_text(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike)) and Path(given).suffix.lower() == ".txt"


def write_ids(text: Path, model: Any, to: Path) -> None:
    """Writes the ids of a text to an .npy file [samples, 512] or fewer, by the tokenizer.json beside the
    model."""
    if not isinstance(model, (str, os.PathLike)) or not os.path.exists(model):
        raise UsageError(f"{text} is a text, of which the tokenizer.json beside the model makes ids "
                         "of tokens: give the model by its path, or ids")
    if _local.is_there():
        _local.write_ids(text, Path(model), to)
        return
    place = Path(model) if os.path.isdir(model) else Path(model).parent
    file = place / "tokenizer.json"
    if not file.exists():
        raise UsageError(f"{text} is a text, and {file}, by which ids of tokens are made of it, is "
                         "not there")
    data = text.read_bytes()
    if len(data) > MOST:
        raise UsageError(f"{text}: has more than {MOST} bytes; qdq data {text} --model {model} -o "
                         "ids.npy makes ids of parts of it")
    _write(_encode(file, data, text), _length(place), to)


def _encode(file: Path, data: bytes, text: Path) -> Any:
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError:
        raise UsageError(f"{text} is a text, and ids are made by the package tokenizers, which is not "
                         f"installed, or by qdq data {text} --model MODEL -o ids.npy") from None
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    try:
        return tokenizer.encode(data.decode()).ids
    except UnicodeDecodeError as error:
        raise UsageError(f"{text}: is not UTF-8 at byte {error.start}") from None


def _length(place: Path) -> int:
    """Returns how many ids a sample has: fewer than usual where the model takes no more."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        most = json.loads((place / "genai_config.json").read_text())["model"]["context_length"]
        if isinstance(most, int) and 0 < most < ROW:
            return most
    return ROW


def _write(ids: Any, most: int, to: Path) -> None:
    length = min(most, len(ids))
    rows = len(ids) // length if length else 0
    if rows == 0:
        raise UsageError("the text has no token")
    values = array("q", ids[:rows * length])
    if sys.byteorder == "big":
        values.byteswap()
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows}, {length}), }}"
    to.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + values.tobytes())
