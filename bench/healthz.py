# SPDX-License-Identifier: Apache-2.0
"""Measures GET /healthz of qdqd and of a bare libmicrohttpd server, in turns, with wrk.

    build/venv/bin/python bench/healthz.py [--rounds N] [--seconds N] [--connections N]

Needs wrk (Debian's package) and what tools/build installs. The two servers take turns,
and each is first in every other round. Each round gives a ratio, because other work on
the machine slows both."""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from service import Service  # noqa: E402


def rate(url, seconds, connections):
    """Returns the answers in a second, which all have status 200."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url],
                          capture_output=True, text=True, check=True)
    assert "Non-2xx" not in done.stdout and "Socket errors" not in done.stdout, done.stdout
    return float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16)
    args = parser.parse_args()
    assert shutil.which("wrk"), "wrk is missing: apt-get install wrk"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "hello"
        subprocess.run(["cc", "-O2", "-o", program, ROOT / "bench" / "healthz.c",
                        "-lmicrohttpd"], check=True)
        bare = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True)
        bare_url = f"http://127.0.0.1:{int(bare.stdout.readline())}/healthz"
        service = Service(Path(folder)).start()
        rates = {"bare": [], "qdqd": []}
        turns = [("bare", bare_url), ("qdqd", service.url + "/healthz")]
        for _ in range(args.rounds):
            turns.reverse()
            for name, url in turns:
                rates[name].append(rate(url, args.seconds, args.connections))
        service.stop()
        bare.stdin.close()
        bare.wait()
    for name, values in rates.items():
        print(f"{name}: {statistics.median(values):.0f} requests/s "
              f"({min(values):.0f} to {max(values):.0f})")
    ratios = sorted(qdqd / one for qdqd, one in zip(rates["qdqd"], rates["bare"]))
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"qdqd / bare: {middle:.3f}, half of the rounds from {low:.3f} to {high:.3f}, "
          f"all from {ratios[0]:.3f} to {ratios[-1]:.3f}")


if __name__ == "__main__":
    main()
