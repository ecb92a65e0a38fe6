# SPDX-License-Identifier: Apache-2.0
"""mutate.py PROGRAM [N [FOLDER]]: feeds N mutated files, 10,000 by default, to a fuzz target.

PROGRAM is fuzz_dataset or fuzz_image, as tools/fuzz builds them with the sanitizers. The seeds are the
corpus of the target and files that are made here, one of each form that data has. A file gets one to
eight changes: bits, bytes, numbers at the ends of their types, pieces that are removed, doubled, moved
or taken from another seed, and a cut. The same N gives the same files. Where a group of files ends a
program, each of them is fed by itself, and those that end it are left in FOLDER."""

import csv
import gzip
import io
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np

GROUP = 50  # files that one process reads
SECONDS = 20  # for a file
ENDS = [0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
        0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff]


# --- seeds -----------------------------------------------------------------------------

def pictures():
    """Returns files of pictures by name; none where Pillow is missing."""
    try:
        from PIL import Image
    except ImportError:
        return {}
    draw = np.random.default_rng(4)
    files = {}
    for n, (form, mode, options) in enumerate([
            ("PNG", "RGB", {}), ("PNG", "P", {}), ("PNG", "RGBA", {}), ("PNG", "1", {}),
            ("JPEG", "RGB", {}), ("JPEG", "L", {}), ("JPEG", "RGB", {"progressive": True})]):
        image = Image.fromarray(draw.integers(0, 256, (9, 14, 3), np.uint8)).convert(mode)
        file = io.BytesIO()
        image.save(file, form, **options)
        files[f"{'ab'[n % 2]}/{n}.{'png' if form == 'PNG' else 'jpg'}"] = file.getvalue()
    return files


def tar_of(files):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def zip_of(files, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(save, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def safetensors(array):
    head = json.dumps({"x": {"dtype": "F32", "shape": list(array.shape),
                             "data_offsets": [0, array.nbytes]}}).encode()
    return struct.pack("<Q", len(head)) + head + array.tobytes()


def made():
    """Returns seeds by name."""
    array = np.random.default_rng(3).normal(0, 1, (6, 3, 5, 6)).astype(np.float32)
    arrays = {"x": array, "n": np.arange(6), "labels": np.arange(6) % 3}
    shards = {f"{n:06}.{part}": data for n in range(3)
              for part, data in (("x.npy", npy(array[n])), ("cls", b"1"))}
    text = io.StringIO()
    csv.writer(text).writerows([["a", "b"], [1, 2.5], [3, 4]])
    seeds = {
        "csv": text.getvalue().encode(), "json": json.dumps({"x": [1, 2]}).encode(),
        "npy": npy(array), "npy_fortran": npy(np.asfortranarray(array)),
        "npz": npz(np.savez, **arrays), "npz_deflated": npz(np.savez_compressed, **arrays),
        "safetensors": safetensors(array), "shard.tar": tar_of(shards), "shard.zip": zip_of(shards)}
    images = pictures()
    if images:
        seeds |= {"images.tar": tar_of(images), "images.zip": zip_of(images),
                  "images_stored.zip": zip_of(images, zipfile.ZIP_STORED)}
    for name in ("shard.tar", "images.tar", "npy"):
        if name in seeds:
            seeds[f"{name}.gz"] = gzip.compress(seeds[name], mtime=0)
    for name, data in images.items():
        seeds[name.replace("/", "_")] = data
    return seeds


def seeds_of(target):
    corpus = Path(__file__).parent / "corpus" / target
    seeds = {path.name: path.read_bytes() for path in sorted(corpus.iterdir())}
    new = made()
    if target == "image":
        new = {name: data for name, data in new.items() if name.endswith((".png", ".jpg"))}
    # A mark in front has the target mend the sums of a changed tar.
    seeds |= new | {f"mended_{name}": b"TARS" + data for name, data in new.items() if name.endswith(".tar")}
    return [seeds[name] for name in sorted(seeds)]


# --- mutations -------------------------------------------------------------------------

def change(data, other, draw):
    """Changes the bytes once."""
    if not data:
        return bytearray(other)
    at = draw.randrange(len(data))
    size = min(len(data) - at, draw.choice((1, 2, 4, 8, 16, 64, 512)))
    kind = draw.randrange(9)
    if kind == 0:
        data[at] ^= 1 << draw.randrange(8)
    elif kind == 1:
        data[at] = draw.randrange(256)
    elif kind == 2:
        number = draw.choice(ENDS).to_bytes(8, draw.choice(("little", "big")))
        width = draw.choice((1, 2, 4, 8))
        data[at:at + width] = number[:width]
    elif kind == 3:
        del data[at:at + size]
    elif kind == 4:
        data[at:at] = data[at:at + size]
    elif kind == 5:
        to = draw.randrange(len(data))
        data[to:to + size] = data[at:at + size]
    elif kind == 6:
        from_ = draw.randrange(max(1, len(other)))
        data[at:at + size] = other[from_:from_ + size]
    elif kind == 7:
        digits = [i for i in range(at, min(len(data), at + 4096)) if 48 <= data[i] < 58]
        if digits:
            data[draw.choice(digits)] = draw.choice(b"0123456789-.,e")
    elif draw.randrange(4) == 0:
        del data[at:]
    return data


def mutated(seeds, n):
    draw = random.Random(n)
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(1, 8)):
        data = change(data, draw.choice(seeds), draw)
    return bytes(data)


# --- running ---------------------------------------------------------------------------

def run(program, files):
    """Runs the program. Returns whether it ended well, what it said, and its peak memory in bytes."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
                   "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([program, *map(str, files)], stdout=said, stderr=said,
                                   stdin=subprocess.DEVNULL, env=environment,
                                   preexec_fn=lambda: resource.setrlimit(
                                       resource.RLIMIT_CPU, (SECONDS * len(files),) * 2))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode == 0, said.read().decode(errors="replace"), usage.ru_maxrss << 10


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve()
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    kept = Path(sys.argv[3] if len(sys.argv) > 3 else "mutated")
    seeds = seeds_of(program.name.removeprefix("fuzz_"))
    peak, failed = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, n, GROUP):
            files = []
            for i in range(first, min(n, first + GROUP)):
                files.append(Path(folder) / f"{i:06}")
                files[-1].write_bytes(mutated(seeds, i))
            good, _, used = run(program, files)
            peak = max(peak, used)
            for file in files if not good else []:
                good, said, _ = run(program, [file])
                if not good:
                    kept.mkdir(parents=True, exist_ok=True)
                    (kept / file.name).write_bytes(file.read_bytes())
                    failed.append(file.name)
                    print(f"{file.name}: {said[-3000:]}")
            for file in files:
                file.unlink()
    print(f"{n} files from {len(seeds)} seeds: {len(failed)} ended the program, "
          f"{peak >> 20} MiB at most")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
