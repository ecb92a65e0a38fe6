#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of numpy and safetensors lose bfloat16 and float8, or hold what their own reader refuses.
#
# Seen with numpy 2.4.6, ml_dtypes 0.6.0 and safetensors 0.8.0 (safetensors.numpy).
#
# Arrays of bfloat16, float8 and 4 bits are numpy arrays with the types of ml_dtypes, and numpy.savez
# takes them without a message. Read again, bfloat16 is raw bytes of the type V2, and the others are V1: the
# numbers are there, but nothing says what they are, and a test for "float16 or float32" fails on them.
# A float8e5m2 array is written, too, and cannot be read at all: its header says "<f1", of which numpy
# knows nothing. safetensors.numpy.save writes bfloat16 and float8 with their right names, and
# safetensors.numpy.load of the same bytes raises a KeyError. Samples and weights in these types are safe
# as float32, or as integers of their bits.
#
# Output:
#
#   bfloat16: numpy.load |V2, safetensors.numpy.load KeyError 'BF16'
#   float8_e4m3fn: numpy.load |V1, safetensors.numpy.load KeyError 'F8_E4M3'
#   float8_e5m2: numpy.load ValueError, safetensors.numpy.load KeyError 'F8_E5M2'
#   int4: numpy.load |V1, safetensors.numpy.save SafetensorError
#   float16: numpy.load float16, safetensors.numpy.load float16
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    numpy==2.4.6 ml_dtypes==0.6.0 safetensors==0.8.0 || exit 2
cd "$folder"
venv/bin/python - <<'EOF'
import io
import sys

import ml_dtypes
import numpy as np
import safetensors.numpy


def read_numpy(array):
    file = io.BytesIO()
    np.savez(file, a=array)
    file.seek(0)
    try:
        return "numpy.load " + str(np.load(file)["a"].dtype)
    except ValueError as error:
        return f"numpy.load {type(error).__name__}"


def read_safetensors(array):
    try:
        text = safetensors.numpy.save({"a": array})
    except safetensors.SafetensorError as error:
        return f"safetensors.numpy.save {type(error).__name__}"
    try:
        return "safetensors.numpy.load " + str(safetensors.numpy.load(text)["a"].dtype)
    except KeyError as error:
        return f"safetensors.numpy.load KeyError {error}"


EXPECTED = {
    "bfloat16": ("|V2", "KeyError 'BF16'"),
    "float8_e4m3fn": ("|V1", "KeyError 'F8_E4M3'"),
    "float8_e5m2": ("ValueError", "KeyError 'F8_E5M2'"),
    "int4": ("|V1", "SafetensorError"),
    "float16": ("float16", "float16"),
}
changed = []
for name, ends in EXPECTED.items():
    array = np.array([1, -2, 3], np.float32).astype(getattr(ml_dtypes, name, name))
    seen = read_numpy(array), read_safetensors(array)
    print(f"{name}: {seen[0]}, {seen[1]}")
    if not all(text.endswith(end) for text, end in zip(seen, ends)):
        changed.append(name)
if changed:
    sys.exit(f"changed: {changed}")
EOF
