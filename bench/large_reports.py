# SPDX-License-Identifier: Apache-2.0
"""large_reports.py [SECONDS]: what a tenant notices of four others that ask for large reports.

Each of the four has jobs of models of up to 2 MB whose reports are as large as a model makes them:
one long name that a thousand edges have, names of control characters, as many edges, and as many
layers as there is room for. For 300 s its two clients ask for these reports as JSON, pages, Markdown
and comparisons. Printed are the size of each report, the daemon's largest private memory, and the
times of /healthz, of a page and of a list, of the fifth. Exits with 1 when a report has over 32 MB,
memory passed 256 MiB, /healthz took over 50 ms or a page over a second."""

import contextlib
import http.client
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import jobs as small
from common import machine, table
from hostile import JSON, RAW, token

MOST_REPORT, MOST_MEMORY, MOST_HEALTHZ, MOST_PAGE = 32_000_000, 256, 0.05, 1.0
SPEC = {"mode": "partial", "evaluate": False, "recipe": "none", "layers": [{"match": "l1"}],
        "on_unmatched": "warn", "calibration": {"ranges": [{"name": "0", "min": -1, "max": 1}]}}


# --- the models -----------------------------------------------------------------------

def net(nodes, weights=()):
    value = helper.make_tensor_value_info
    return helper.make_model(
        helper.make_graph(nodes, "net", [value("x", TensorProto.FLOAT, [1, 4])],
                          [value("y", TensorProto.FLOAT, [1, 4])], list(weights)),
        ir_version=8, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString()


def long_names(nodes=3, inputs=600, letters=60_000, letter="n"):
    """Nodes with long names that read many others: each edge repeats such a name."""
    made = [helper.make_node("Relu", ["x"], [f"r{i}"], f"r{i}") for i in range(inputs)]
    made += [helper.make_node("Sum", [f"r{i}" for i in range(inputs)], [f"s{i}"],
                              letter * (letters - i)) for i in range(nodes)]
    return net(made + [helper.make_node("Sum", [f"s{i}" for i in range(nodes)], ["y"], "y")])


def controls():
    """Names whose text of JSON is six times as long."""
    return long_names(30, 1000, 60_000, "\x01")


def many_edges(edges=450_000):
    """Nodes that read one tensor as often as they can."""
    made = [helper.make_node("Relu", ["x"], ["a"], "a")]
    per = edges // 100
    made += [helper.make_node("Sum", ["a"] * per, [f"s{i}"], f"s{i}") for i in range(99)]
    return net(made + [helper.make_node("Sum", [f"s{i}" for i in range(99)], ["y"], "y")])


def many_layers(layers=60_000):
    """As many layers as 2 MB have room for."""
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    made = [helper.make_node("MatMul", [f"{i - 1:x}" if i else "x", "w"], [f"{i:x}"], f"l{i:x}")
            for i in range(layers)]
    made.append(helper.make_node("Relu", [f"{layers - 1:x}"], ["y"], "y"))
    return net(made, [weight])


def page_sized():
    """A report that is just small enough for a page."""
    return many_layers(17_500)


MODELS = {"long names": long_names, "controls": controls, "many edges": many_edges,
          "many layers": many_layers, "as large as a page may be": page_sized}


# --- the tenants ------------------------------------------------------------------------

class Client:
    def __init__(self, port, secret):
        self.port, self.secret = port, secret

    def ask(self, method, path, body=None, kind=RAW, accept=JSON):
        """Returns the status, the number of bytes and the first of them."""
        one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            one.request(method, path, body, {"Authorization": f"Bearer {self.secret}",
                                             "Content-Type": kind, "Accept": accept})
            answer = one.getresponse()
            first = answer.read(1 << 16)
            size = len(first)
            while more := answer.read(1 << 20):
                size += len(more)
            return answer.status, size, first
        finally:
            one.close()

    def job(self, model, **spec):
        _, _, stored = self.ask("POST", "/v1/models", model)
        body = {"model": json.loads(stored)["id"], "spec": {**SPEC, **spec}}
        status, _, job = self.ask("POST", "/v1/jobs?wait=60", json.dumps(body).encode(), JSON)
        job = json.loads(job)
        if status not in (200, 202) or job["state"] != "succeeded":
            sys.exit(f"a job did not succeed: {job}")
        return job["id"]


def attack(port, secret, pairs, seed, until, done):
    """Asks for reports of jobs until then, and puts what was answered. It makes room for others, as
    if it were on another machine."""
    os.nice(10)
    client, dice, found = Client(port, secret), random.Random(seed), {}
    while time.monotonic() < until:
        one, other = dice.choice(pairs)
        path, accept = dice.choice([
            ("report", JSON), ("report?histograms=1", JSON), ("report", "text/html"),
            ("report", "text/markdown"), (f"compare?with={other}", JSON),
            (f"compare?with={other}", "text/html")])
        try:
            status, _, _ = client.ask("GET", f"/v1/jobs/{one}/{path}", accept=accept)
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        name = f"{path.split('?')[0]} {accept.split('/')[1]} {status}"
        found[name] = found.get(name, 0) + 1
    done.put(found)


def notice(port, secret, path, accept, pause, until, times):
    """Asks for one page again and again, and puts the times, and what was not answered. It does not
    wait for a processor longer than it has to."""
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    client, found, lost = Client(port, secret), [], []
    while time.monotonic() < until:
        begin = time.monotonic()
        status, _, first = client.ask("GET", path, accept=accept)
        found.append(time.monotonic() - begin)
        if status != 200:
            lost.append((status, first[:200]))
        time.sleep(pause)
    times.put((path, accept, found, lost))


def private_mib(pid):
    return int(Path(f"/proc/{pid}/status").read_text().split("RssAnon:")[1].split()[0]) / 1024


def prepare(port, tokens, models=MODELS):
    """Runs two jobs of each model as each of the four, and one as the fifth tenant. Returns the sizes
    of the reports, the pairs of jobs by tenant, and the job of the fifth."""
    sizes, pairs = {}, {}
    for name in tokens:
        client = Client(port, tokens[name])
        for kind, make in models.items() if name != "e" else ():
            model = make()
            pair = [client.job(model), client.job(model, device="cpu")]
            pairs.setdefault(name, []).append(pair)
            sizes[kind] = client.ask("GET", f"/v1/jobs/{pair[0]}/report")[1]
    return sizes, pairs, Client(port, tokens["e"]).job(small.small_model(1))


def load(port, pid, tokens, pairs, own, seconds, clients=2):
    """Returns the largest private memory, the times of the fifth tenant by path with what it was not
    answered, and what the others were answered; with no clients they ask for nothing."""
    until = time.monotonic() + seconds
    done, times = multiprocessing.Queue(), multiprocessing.Queue()
    seen = [("/healthz", JSON, 0.05), (f"/v1/jobs/{own}/report", "text/html", 0.2),
            ("/v1/jobs", JSON, 0.2), ("/ui", "text/html", 0.2)]
    work = [multiprocessing.Process(target=attack, args=(
        port, tokens[name], pairs[name], f"{name}{n}", until, done))
        for name in tokens if name != "e" for n in range(clients)]
    watch = [multiprocessing.Process(target=notice, args=(
        port, tokens["e"], *row, until, times)) for row in seen]
    for one in work + watch:
        one.start()
    memory = 0
    while time.monotonic() < until:
        memory = max(memory, private_mib(pid))
        time.sleep(0.003)
    answers, noticed = {}, [times.get() for _ in watch]
    for _ in work:
        for name, n in done.get().items():
            answers[name] = answers.get(name, 0) + n
    for one in work + watch:
        one.join()
    return memory, noticed, answers


def main(seconds=300):
    with tempfile.TemporaryDirectory() as folder:
        tokens = {name: token(folder, name) for name in "abcde"}
        daemon = small.Daemon(folder)
        place = daemon.port, daemon.process.pid, tokens
        sizes, *jobs = prepare(daemon.port, tokens)
        _, alone, _ = load(*place, *jobs, float(seconds) / 10, clients=0)
        memory, noticed, answers = load(*place, *jobs, float(seconds))
        daemon.stop()
    machine()
    table("Reports", ["model", "bytes of the model", "bytes of the report"],
          [[kind, len(MODELS[kind]()), size] for kind, size in sizes.items()])
    for title, rows in (("alone", alone), (f"beside four others, {seconds} s", noticed)):
        table(f"A fifth tenant {title}",
              ["path", "form", "requests", "median, ms", "p99", "longest", "not answered"],
              [[path.split("/")[-1], accept.split("/")[1], len(found),
                *(f"{1000 * np.quantile(found, q):.1f}" for q in (.5, .99, 1)), len(lost)]
               for path, accept, found, lost in rows])
    print(f"\nRssAnon, largest: {memory:.0f} MiB\nwhat was answered:", answers)
    for path, _, _, lost in noticed:
        print(*(f"lost: {path}: {row}" for row in lost[:5]), sep="\n")
    ok = (max(sizes.values()) <= MOST_REPORT and memory <= MOST_MEMORY and
          all(not lost and max(found) <= (MOST_HEALTHZ if path == "/healthz" else MOST_PAGE)
              for path, _, found, lost in noticed))
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
