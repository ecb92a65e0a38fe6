#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runner that doubles its inputs, or misbehaves in the way that its argument names."""

import ctypes
import json
import mmap
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

WAY = sys.argv[1]
LIBC = ctypes.CDLL(None, use_errno=True)


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


# --- what the walls refuse --------------------------------------------------------------


def call(number, *arguments):
    if LIBC.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def may_fork():
    if os.fork() == 0:
        os._exit(0)


def code_of_memory():
    mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def datagrams():
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)


FORBIDDEN = {
    "read a file of the system's owner": lambda: open("/etc/shadow", "rb").read(1),
    "list the root": lambda: os.listdir("/"),
    "list the folder above": lambda: os.listdir(".."),
    "read another process": lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
    "write a file elsewhere": lambda: open("/tmp/runner-wrote", "w"),
    "write beside its program": lambda: open(pathlib.Path(__file__).parent / "wrote", "w"),
    "make a folder above": lambda: os.mkdir("../made"),
    "move its file away": lambda: (open("own", "w"), os.rename("own", "/tmp/runner-moved")),
    "link to a file": lambda: os.symlink("/etc/passwd", "link"),
    "make a pipe with a name": lambda: os.mkfifo("pipe"),
    "open a socket of IPv4": lambda: socket.socket(socket.AF_INET),
    "open a socket of IPv6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "open a socket of the machine": lambda: socket.socket(socket.AF_UNIX),
    "open a socket of the kernel": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "make a pair of datagram sockets": datagrams,
    "fork": may_fork,
    "start a program": lambda: subprocess.run(["/bin/true"], check=True),
    "leave its session": os.setsid,
    "leave its group": lambda: os.setpgid(0, 0),
    "signal its parent": lambda: os.kill(os.getppid(), 0),
    "signal all processes": lambda: os.kill(-1, 0),
    "outlive its parent": lambda: LIBC.prctl(1, 0) and 1 / 0,
    "change the rights of a file": lambda: (open("mode", "w"), os.chmod("mode", 0o777)),
    "change the times of a file": lambda: (open("time", "w"), os.utime("time", (0, 0))),
    "limit another process": lambda: __import__("resource").prlimit(os.getppid(), 7),
    "make memory of a file": lambda: os.memfd_create("memory"),
    "share memory without a name": lambda: mmap.mmap(-1, 4096),
    "make memory code": code_of_memory,
    "trace its parent": lambda: call(101, 0x4206, os.getppid(), 0, 0) if os.uname().machine == "x86_64" else 1 / 0,
    "use io_uring": lambda: call(425, 1, 0),
    "make a namespace": lambda: call(272, 0x10000000) if os.uname().machine == "x86_64" else 1 / 0,
    "see descriptors beside its own": lambda: [os.fstat(fd) for fd in range(3, 64)][0],
    "see an environment": lambda: os.environ["RUNNER_TEST_SECRET"],
}


def allowed():
    """Returns the names of what should be forbidden and is not."""
    found = []
    for name, action in FORBIDDEN.items():
        try:
            action()
        except (OSError, KeyError, ZeroDivisionError, subprocess.SubprocessError):
            continue
        found.append(name)
    return "; ".join(found) or "none"


# --- ways to misbehave ------------------------------------------------------------------


def outlive():
    """Starts processes that would outlive this one, and returns their numbers."""
    pids = []
    for _ in range(3):
        read, write = os.pipe()
        if os.fork() == 0:
            for number in range(1, 32):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            if os.fork() == 0:
                os.write(write, struct.pack("i", os.getpid()))
                os.close(1)
                time.sleep(600)
            os._exit(0)
        pids.append(struct.unpack("i", os.read(read, 4))[0])
    return " ".join(map(str, pids))


def fill_disk():
    for i in range(64):
        pathlib.Path(f"file-{i}").write_bytes(bytes(1 << 20))
    time.sleep(600)


def fill_disk_without_names():
    kept = []
    for i in range(64):
        kept.append(open("file", "wb"))
        os.remove("file")
        kept[-1].write(bytes(1 << 20))
        kept[-1].flush()
    time.sleep(600)


def dig():
    for _ in range(100):
        os.mkdir("deeper")
        os.chdir("deeper")
    time.sleep(600)


def break_hello(request):
    about = {"protocol": 1, "name": "fake", "version": "1", "device": "nothing"}
    answer = {"id": request["id"], "result": about}
    if WAY == "garbage":
        print("Hello, I am a library that prints.", flush=True)
    elif WAY == "list":
        print("[1, 2]", flush=True)
    elif WAY == "twice":
        print('{"id": 1, "id": 1, "result": {}}', flush=True)
    elif WAY == "huge_line":
        sys.stdout.write("x" * (17 << 20))
        sys.stdout.flush()
        time.sleep(600)
    elif WAY == "two_lines":
        sys.stdout.write(json.dumps(answer) + "\n{}\n")
        sys.stdout.flush()
    elif WAY == "hang":
        time.sleep(600)
    elif WAY == "exit":
        sys.stderr.write("first\nno such device\n")
        sys.exit(3)
    elif WAY == "log":
        sys.stderr.write("x" * (1 << 20) + "\n\x1b[31mlast\n")
        sys.stderr.flush()
        sys.exit(3)
    elif WAY == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif WAY == "close":
        os.close(1)
        time.sleep(600)
    elif WAY == "fill_disk":
        fill_disk()
    elif WAY == "fill_disk_without_names":
        fill_disk_without_names()
    elif WAY == "dig":
        dig()
    elif WAY in ("unavailable", "model", "memory", "failed", "unknown"):
        say({"id": request["id"], "error": {"kind": WAY, "text": "because\nof this"}})
    elif WAY == "too_much_memory":
        try:
            bytearray(1 << 30)
        except MemoryError:
            say({"id": request["id"], "error": {"kind": "memory", "text": "all of it"}})
    else:
        about.update(
            {
                "protocol": {"protocol": 2},
                "name": {"name": "Fake Runtime"},
                "version": {"version": "x" * 200},
                "device": {"device": "a\nb"},
                "runs": {"runs": 1},
                "plans": {"runs": False},
                "walls": {"version": allowed()[:128] if WAY == "walls" else ""},
                "outlive": {"version": outlive() if WAY == "outlive" else ""},
                "echo": {
                    "version": json.dumps(request["options"], sort_keys=True),
                    "device": " ".join(f"{k}={v}" for k, v in sorted(os.environ.items()))[:128],
                },
            }.get(WAY, {})
        )
        if WAY == "id":
            answer["id"] = 7
        if WAY == "both":
            answer["error"] = {"kind": "model", "text": "no"}
        say(answer)


def double(request):
    outputs = []
    for i, t in enumerate(request["inputs"]):
        data = pathlib.Path(t["file"]).read_bytes()
        values = struct.unpack(f"<{len(data) // 4}f", data)
        pathlib.Path(f"out-{i}").write_bytes(struct.pack(f"<{len(values)}f", *[2 * v for v in values]))
        outputs.append({**t, "file": f"out-{i}"})
    return {"ms": 0.5, "outputs": outputs}


def break_outputs(request):
    result = double(request)
    first = result["outputs"][0]
    changes = {
        "short_file": {"shape": [2, 3]},
        "negative": {"shape": [-1, 4]},
        "overflow": {"shape": [1 << 40, 1 << 40]},
        "large": {"shape": [1 << 20, 1 << 20]},
        "real_shape": {"shape": [2.0, 2.0]},
        "rank": {"shape": [1] * 65},
        "path": {"file": "../../etc/passwd"},
        "hidden": {"file": ".out"},
        "missing_file": {"file": "nothing"},
        "folder_as_file": {"file": "folder"},
        "type": {"type": "float128"},
        "nameless": {"name": None},
    }
    if WAY == "folder_as_file":
        os.mkdir("folder")
    first.update(changes.get(WAY, {}))
    if WAY == "no_list":
        result["outputs"] = {}
    if WAY == "no_time":
        result["ms"] = 0
    if WAY == "no_tensor":
        first.clear()
        first.update({"name": "y", "type": None})
    if WAY == "exit_later":
        sys.exit(0)
    return result


def kernels():
    node = {"name": "Conv_0", "op": "QLinearConv", "device": "d", "computes": "integer", "ms": 0.25}
    changes = {
        "kernel_kind": {"computes": "x"},
        "kernel_time": {"ms": -1},
        "kernel_nodes": {"nodes": "Conv_0"},
        "kernel_names": {"nodes": ["Conv_0", 7]},
        "plans": {"nodes": ["Conv_0", "Relu_0"], "reason": "no such kernel"},
    }
    node.update(changes.get(WAY, {}))
    return {"nodes": {} if WAY == "kernel_list" else [node]}


def main():
    names = []
    for line in sys.stdin:
        request = json.loads(line)
        name = request["request"]
        result = {}
        if name == "hello":
            break_hello(request)
            continue
        if name == "load":
            result = {"precision": "F 32" if WAY == "precision" else "f32"}
        elif name == "outputs":
            names.append(request["inputs"][0]["file"])
            result = break_outputs(request)
            if WAY == "names":
                result["outputs"][0]["name"] = " ".join(names)
                there = sorted(f for f in os.listdir(".") if f.startswith("in-"))
                result["outputs"][0]["name"] += " of " + " ".join(there)
                sys.stderr.write(result["outputs"][0]["name"] + "\n")
        elif name == "latency":
            result = {"ms": [] if WAY == "latency" else [0.125] * request["runs"]}
        elif name == "kernels":
            result = kernels()
        say({"id": request["id"], "result": result})
        if name == "end":
            sys.exit(5 if WAY == "bad_end" else 0)


main()
