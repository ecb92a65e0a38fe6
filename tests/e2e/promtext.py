# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus' text format 0.0.4 and checks the rules that promtool checks."""

import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'^({NAME})(?:\{{(.*)\}})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)')
UNITS = ("seconds", "bytes", "jobs", "connections", "info", "ready", "nodes")
PARTS = ("_bucket", "_sum", "_count")


class Family:
    def __init__(self, name):
        self.name, self.help, self.type = name, None, None
        self.samples = {}  # (suffix, labels as a sorted tuple) -> value

    def value(self, suffix="", **labels):
        return self.samples.get((suffix, tuple(sorted(labels.items()))), 0)

    def total(self, **labels):
        """Returns the sum of all samples with these labels."""
        return sum(v for (suffix, have), v in self.samples.items()
                   if suffix in ("", "_count") and labels.items() <= dict(have).items())


def read_labels(text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, f"no labels: {text}"
        assert match[1] not in labels, f"label twice: {text}"
        labels[match[1]] = match[2]
        at = match.end()
    return tuple(sorted(labels.items()))


def read(text):
    """Returns the metric families by name."""
    assert text.endswith("\n")
    families, current = {}, None
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            if word == "HELP":
                assert name not in families, f"{name} stands there twice"
                current = families[name] = Family(name)
                current.help = rest
            else:
                assert word == "TYPE" and name == current.name and not current.type
                assert not current.samples, f"{name}: TYPE behind its samples"
                current.type = rest
            continue
        match = SAMPLE.match(line)
        assert match, f"no sample: {line}"
        name, labels, value = match[1], read_labels(match[2] or ""), float(match[3])
        suffix = name.removeprefix(current.name)
        assert name.startswith(current.name), f"{name} stands among {current.name}"
        assert (suffix, labels) not in current.samples, f"twice: {line}"
        current.samples[suffix, labels] = value
    for family in families.values():
        check(family)
    return families


def check(family):
    name = family.name
    assert re.fullmatch(r"qdqd_[a-z_]+", name), name
    assert family.help and family.help[-1] == ".", f"{name}: no help"
    assert family.type in ("counter", "gauge", "histogram"), f"{name}: {family.type}"
    assert name.endswith("_total") == (family.type == "counter"), f"{name}: its suffix"
    assert not name.endswith(PARTS), f"{name}: a suffix of histograms"
    base = name.removesuffix("_total").split("_")
    if family.type != "counter":
        assert base[-1] in UNITS, f"{name}: its unit"
    for word in ("milliseconds", "ms", "kb", "mb", "gauge", "counter", "histogram"):
        assert word not in base, f"{name}: {word}"
    suffixes = {suffix for suffix, _ in family.samples}
    assert suffixes <= (set(PARTS) if family.type == "histogram" else {""}), suffixes
    assert len({tuple(k for k, _ in labels if k != "le") for _, labels in family.samples}) <= 1
    for (_, labels), value in family.samples.items():
        assert math.isfinite(value), f"{name}: {value}"
        assert value >= 0 or family.type == "gauge"
        if family.type != "histogram":
            assert "le" not in dict(labels)
    if family.type == "histogram":
        check_histogram(family)


def check_histogram(family):
    series = {tuple(p for p in labels if p[0] != "le") for _, labels in family.samples}
    for labels in series:
        buckets = sorted((float(dict(have)["le"]), value)
                         for (suffix, have), value in family.samples.items()
                         if suffix == "_bucket" and
                         tuple(p for p in have if p[0] != "le") == labels)
        counts = [n for _, n in buckets]
        assert counts == sorted(counts), f"{family.name}: not cumulative"
        assert buckets[-1][0] == math.inf
        assert counts[-1] == family.samples["_count", labels]
        assert ("_sum", labels) in family.samples
