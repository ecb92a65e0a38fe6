# SPDX-License-Identifier: Apache-2.0
"""processors.py CLASS [COMMAND…]: runs a command that finds an older processor than this one.

Integer kernels of onnxruntime add in 32 bits where the processor has VNNI, and else in 16 bits,
which saturate. Tests judge both classes on one machine: processors.c hides instructions from a
process and its children. CLASS is `avx2` (no VNNI, no AVX-512, no AMX) or `avx512` (no VNNI, no
AMX). Linux can do that on processors of Intel; elsewhere the program ends with 77 and a message,
unless this processor is of that class anyway. Without a COMMAND the program ends with 0 if it is,
and else with 1. Tests use the fixture `older_processor`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
CLASSES = ("avx2", "avx512")
VNNI = {"avx512_vnni", "avx_vnni"}


class Unavailable(Exception):
    """This machine cannot show a process an older processor."""


def flags():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


def is_of(name):
    """Returns whether this processor has nothing that the class lacks."""
    lacked = VNNI if name == "avx512" else VNNI | {"avx512f"}
    return "avx2" in flags() and not flags() & lacked


def environment(name, folder):
    """Returns the variables that show a process and its children a processor of the class. The
    library is built in the folder, which nobody else may write to."""
    if name not in CLASSES:
        raise ValueError(f"the classes are {', '.join(CLASSES)}")
    if is_of(name) or os.environ.get("PROCESSOR_CLASS") == name:
        return {}
    if os.uname().machine != "x86_64":
        raise Unavailable("this is no x86 processor")
    library = Path(folder) / "processors.so"
    if not library.exists():
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-Wall", "-Wextra",
                        "-Werror", "-o", library, SOURCE, "-ldl"], check=True)
    made = {"LD_PRELOAD": str(library), "PROCESSOR_CLASS": name}
    probe = subprocess.run(["true"], env={**os.environ, **made}, capture_output=True, text=True)
    if probe.returncode:
        raise Unavailable(probe.stderr.strip())
    return made


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in CLASSES:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    if len(sys.argv) == 2:
        sys.exit(0 if is_of(sys.argv[1]) else 1)
    with tempfile.TemporaryDirectory(prefix="qdqd-processors.") as folder:
        try:
            made = environment(sys.argv[1], folder)
        except Unavailable as why:
            print(why, file=sys.stderr)
            sys.exit(77)
        sys.exit(subprocess.run(sys.argv[2:], env={**os.environ, **made}).returncode)


if __name__ == "__main__":
    main()
