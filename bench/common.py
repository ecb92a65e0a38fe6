# SPDX-License-Identifier: Apache-2.0
"""Shared by the measurements: paths, a process that is measured, a table."""

import json
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = Path(os.environ.get("QDQD_INSTALLED", ROOT / "_install"))
QDQ = Path(os.environ.get("QDQ", INSTALLED / "bin" / "qdq"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "qdqd/bench"
MIB = 1 << 20

# From version 1.29 on, onnxruntime's wheels send telemetry and keep a database for it in
# the home folder. It is off while something is measured.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def anonymous(pid):
    """Returns the kB of RssAnon, private memory, of a process and of those that it has started;
    0 once it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_bytes()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        at = text.index(b"RssAnon:")
        return int(text[at + 8:].split(None, 1)[0]) + sum(map(anonymous, children))
    except (ProcessLookupError, FileNotFoundError, ValueError):
        return 0


def peak_anonymous(pid, stop, result):
    """Samples the memory of a process and of those that it has started, fast."""
    while not stop.is_set():
        result["anon"] = max(result["anon"], anonymous(pid))
        time.sleep(0.0005)


class Measured:
    """One process: its seconds, processor seconds, peak bytes of anonymous memory, that of the
    processes that it starts included, and of its own RSS."""

    def __init__(self, command):
        result, stop = {"anon": 0}, threading.Event()
        start = time.monotonic()
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        sampler = threading.Thread(target=peak_anonymous,
                                   args=(process.pid, stop, result))
        sampler.start()
        outputs = {}
        readers = [threading.Thread(target=lambda n=n: outputs.update(
            {n: getattr(process, n).read()})) for n in ("stdout", "stderr")]
        for reader in readers:
            reader.start()
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        stop.set()
        for thread in [sampler, *readers]:
            thread.join()
        self.anonymous = result["anon"] * 1024
        self.rss = usage.ru_maxrss * 1024
        self.cpu = usage.ru_utime + usage.ru_stime
        self.output = outputs["stdout"].decode()
        if process.returncode != 0:
            sys.exit(f"{command[0]} failed:\n{outputs['stderr'].decode()}")


def best(runs, member):
    return min(getattr(run, member) for run in runs)


def peer(script, *arguments):
    """Runs a function of `peers.py` in a process of its own; it prints its seconds."""
    run = Measured([sys.executable, "-W", "ignore", Path(__file__).parent / "peers.py",
                    script, *arguments])
    run.inner = json.loads(run.output.strip().splitlines()[-1])["seconds"]
    return run


def table(title, head, rows):
    rows = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    print(f"\n{title}\n")
    for n, row in enumerate(rows):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")


def machine():
    import numpy
    import onnx
    import onnxruntime
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.machine())
    print(f"{cpu}, {os.cpu_count()} CPUs; onnxruntime {onnxruntime.__version__}, "
          f"onnx {onnx.__version__}, numpy {numpy.__version__}, Python "
          f"{platform.python_version()}")
