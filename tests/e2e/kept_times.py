# SPDX-License-Identifier: Apache-2.0
"""The times by which the default of target onnxruntime is chosen, as the command keeps them
(engine/stages/attempt/kept_times.h)."""


def kept_file(cache):
    """Returns the only file in a cache folder."""
    path, = (cache / "qdq/times").iterdir()
    return path


def hash_of(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def write(path, lines):
    text = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(text + f"sum {hash_of(text):016x}\n".encode())


def rows(path):
    lines = path.read_text().split("\n")[:-2]
    begin = lines.index("") + 1
    return lines[:begin], lines[begin:]


def rewrite(path, integers, rules):
    """Writes the times of these two, of which a choice is measured twice, and no times of kernels, so
    that there is nothing else to choose from."""
    head, body = rows(path)
    first, second = [line.split()[1] for line in body if line.startswith("ratio ")][:2]
    traces = [line.split()[1] for line in body if line.startswith("trace ")]
    write(path, [*head, f"ratio {first} {integers}", f"ratio {first} {integers}", f"ratio {second} {rules}",
                 *(f"trace {key} 0" for key in traces)])


def make_all_alike(path, ratio):
    """Writes that each placement that was measured takes that part of the float model's time, and
    that nothing is known of single kernels."""
    head, body = rows(path)
    new = [f"ratio {line.split()[1]} {ratio}" for line in body if line.startswith("ratio ")]
    write(path, [*head, *new, *new, *(f"trace {line.split()[1]} 0" for line in body if line.startswith("trace "))])
