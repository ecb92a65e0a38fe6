#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long stored files take as files, and in a bucket on the same machine, by turns.

    build/venv/bin/python bench/blobs.py [ROUNDS]

Prints medians in ms: an upload of 1 MiB and of 64 MiB, a small job with given ranges, and a
download of 1 MiB whose bytes have to be fetched. The server is that of tests/servers/s3.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "servers")]

from bucket import Bucket  # noqa: E402
from service import DATA, FEW_SAMPLES, Service  # noqa: E402


def timed(do):
    begin = time.monotonic()
    do()
    return 1000 * (time.monotonic() - begin)




def measure(one, times):
    model = (DATA / "glyph_resnet.onnx").read_bytes()
    for name, size in (("1 MiB", 1 << 20), ("64 MiB", 64 << 20)):
        # Bytes behind the end of a model's message are a new model with a new digest.
        data = model + b"\xa2\x06" + varint(size) + os.urandom(size)
        times.setdefault(f"upload of {name}", []).append(
            timed(lambda d=data: one.upload("models", d)))
    job = {}

    def run():
        job["id"] = one.submit(model=one.upload("models", model),
                               calibration=one.upload("datasets", FEW_SAMPLES), fresh=True)
        one.succeeded(job["id"])
    times.setdefault("job", []).append(timed(run))
    for path in (one.state / "blobs").rglob("*"):
        if path.is_file() and one.drops:
            path.unlink()
    times.setdefault("download", []).append(timed(lambda: one.result(job["id"])))


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        for name in ("s3", "files", "bucket"):
            (Path(folder) / name).mkdir()
        bucket = Bucket(Path(folder) / "s3").start()
        files, far = Service(Path(folder) / "files"), Service(Path(folder) / "bucket",
                                                              **bucket.settings("bench"))
        files.drops, far.drops = False, True
        times = {"files": {}, "bucket": {}}
        try:
            for one in (files, far):
                one.start()
            for _ in range(rounds):
                measure(files, times["files"])
                measure(far, times["bucket"])
        finally:
            files.process.kill()
            far.process.kill()
            bucket.stop()
    print(f"load {os.getloadavg()[0]:.1f}, {rounds} rounds, ms: files, bucket")
    for row in times["files"]:
        print(f"{row:20} {statistics.median(times['files'][row]):8.1f} "
              f"{statistics.median(times['bucket'][row]):8.1f}")


if __name__ == "__main__":
    main()
