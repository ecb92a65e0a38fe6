#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# MLX reads a GGUF file up to the first tensor of a type that it does not know, and gives what it has, without a word.
#
# Seen with mlx and mlx-cpu 0.32.4, gguf 0.19.0, x86-64.
#
# mlx.core.load gives the tensors of a GGUF file by name. Newer types of GGUF, as MXFP4 and the ternary ones, are
# unknown to it. There is no error: the tensor and all that stand behind it in the file are missing, those of float32
# included. A file that begins with such a tensor has none. Types that were there earlier are taken, or refused with
# an error, as Q5_0 is. A bfloat16 tensor is read as float16, whose largest number is 65504: larger ones become
# infinity, and those below 0.00000003 zero.
#
# Output (file of a, b, c and d, where b has the type and the others are float32):
#
#   Q4_0: a b c d
#   Q4_K: a b c d
#   MXFP4: a
#   TQ1_0: a
#   TQ2_0: a
#   MXFP4 first: nothing
#   bfloat16 1e+05 and 1e-09: inf and 0, type float16
set -euo pipefail
if [ "$(uname -m)" != x86_64 ]; then
    echo "This processor is not x86-64."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    "mlx[cpu]==0.32.4" gguf==0.19.0 numpy==2.4.6 || exit 2
cd "$folder"
venv/bin/python - 2> messages <<'EOF'
import sys

import gguf
import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType as kinds

rng = np.random.default_rng(0)
weight = rng.normal(size=(4, 256)).astype(np.float32)
weight[0, :2] = 1e5, 1e-9


def stored(kind):
    """Returns the bytes of a tensor; those of Q4_K, which the package only reads, are random."""
    if kind == kinds.Q4_K:
        return rng.integers(0, 60, (4, gguf.GGML_QUANT_SIZES[kind][1])).astype(np.uint8)
    return gguf.quantize(weight, kind)


def load(*types):
    """Returns what MLX reads of a file, and the names that are in it."""
    writer = gguf.GGUFWriter("weights.gguf", "llama")
    for name, kind in zip("abcd", types):
        writer.add_tensor(name, stored(kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert [tensor.name for tensor in gguf.GGUFReader("weights.gguf").tensors] == list("abcd")[:len(types)]
    return mx.load("weights.gguf")


def names(tensors):
    return " ".join(sorted({name.split(".")[0] for name in tensors})) or "nothing"


changed = []
for kind, expected in ((kinds.Q4_0, "a b c d"), (kinds.Q4_K, "a b c d"), (kinds.MXFP4, "a"), (kinds.TQ1_0, "a"),
                       (kinds.TQ2_0, "a")):
    found = names(load(kinds.F32, kind, kinds.F32, kinds.F32))
    print(f"{kind.name}: {found}")
    if found != expected:
        changed.append(kind.name)
found = names(load(kinds.MXFP4, kinds.F32))
print(f"MXFP4 first: {found}")
read = load(kinds.BF16)["a"]
first, second = np.array(read.astype(mx.float32))[0, :2]
print(f"bfloat16 1e+05 and 1e-09: {first:g} and {second:g}, type {str(read.dtype).split('.')[-1]}")
if changed or found != "nothing" or np.isfinite(first):
    sys.exit(f"changed: {changed}, {found}, {first}")
EOF
