# SPDX-License-Identifier: Apache-2.0
"""Every command and sub-command has a help page, and the manual pages have its options."""

import re
import subprocess

import pytest

from service import INSTALLED, ROOT

READS = {"quantize": "MODEL", "plan": "MODEL", "compare": "MODEL|REPORT...", "info": "MODEL",
         "data": "DATA", "report": "REPORT",
         "jobs": "", "cancel": "JOB",
         "pull": "REMOTE:REF", "push": "REMOTE:REF FILE...", "ls": "REMOTE:REF",
         "verify": "FILE|FOLDER", "reproduce": "STATEMENT"}
COMMANDS = {("qdq", name): f"usage: qdq {name} {file}".rstrip() + " [" for name, file in READS.items()}
PAGES = {**COMMANDS, ("qdqd",): "Usage: qdqd [OPTION]...",
         ("qdqd", "token"): "Usage: qdqd token add NAME ["}
# An option's line on a page: its letter, name and argument, and where its text begins.
OPTION = re.compile(r"  (?:-(\w), )?--([\w-]+)(?: ([A-Z]+))?(?: +(\S.*))?")


def page_of(program, *words):
    """Returns the help page of the command words, as its paragraphs."""
    folder = "bin" if program == "qdq" else "sbin"
    done = subprocess.run([INSTALLED / folder / program, *words], capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split("\n\n")


def options_of(*command):
    """Returns the options on a command's page: {name: (letter, argument)}."""
    lines = page_of(*command, "--help")[2].splitlines()
    rows = [OPTION.fullmatch(line) for line in lines if line.startswith("  -")]
    assert all(rows), lines
    return {row[2]: (row[1], row[3]) for row in rows}


def section_of(page, name):
    """Returns a section of a manual page, without mdoc's escapes."""
    text = (ROOT / "man" / page).read_text()
    return re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh|\Z)", text, re.M | re.S)[1].replace("\\-", "-")


def listed_in(section):
    """Returns the options that a section lists, in the form of options_of()."""
    listed = re.findall(r"^\.It Fl (?:(\w) , Fl )?-([\w-]+)(?: Ar (\w+))?$", section, re.M)
    assert len(listed) == len(re.findall(r"^\.It Fl", section, re.M))
    return {name: (letter or None, argument or None) for letter, name, argument in listed}


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_every_command_has_a_page(command):
    page = page_of(*command, "--help")
    assert page[0].startswith(PAGES[command])
    assert re.fullmatch(r"[A-Z][^.]+\.(\s[A-Z][^.]+\.)*", page[1])
    assert options_of(*command)["help"] == ("h", None)
    assert page == page_of(*command, "-h") == page_of(*command, "word", "--help")
    assert not [line for line in "\n".join(page[:3]).splitlines() if len(line) > 80]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_usage_has_the_options(command):
    usage, sentence, _ = page_of(*command, "--help")
    named = dict(re.findall(r"\[-(-?[\w-]+)(?: ([A-Z]+))?\]", usage))
    options = options_of(*command)
    del options["help"]
    assert named == {letter or f"-{name}": argument or ""
                     for name, (letter, argument) in options.items()}
    assert sentence in page_of("qdq", "--help")[1]


def test_the_manual_page_of_qdq_has_the_options():
    synopsis = {}
    for block in section_of("qdq.1", "SYNOPSIS").split(".Nm\n")[1:]:
        name, *lines = block.splitlines()
        rows = [re.fullmatch(r"\.Op Fl (\S+)(?: Ar (\w+))?", line) for line in lines]
        assert all(rows), lines
        command, file = re.fullmatch(r"\.Cm (\w+)(?: Ar (.+))?", name).groups("")
        assert READS[command] == file.replace(" ...", "...")
        synopsis["qdq", command] = {
            (row[1], row[2]) for row in rows}
    assert synopsis == {
        command: {(letter or f"-{name}", argument)
                  for name, (letter, argument) in options_of(*command).items()
                  if name != "help"} for command in COMMANDS}
    every = {name: row for command in reversed(COMMANDS)
             for name, row in options_of(*command).items()}
    del every["help"]
    assert listed_in(section_of("qdq.1", "OPTIONS")) == every


def test_the_manual_page_of_qdqd_has_the_options():
    assert listed_in(section_of("qdqd.8", "OPTIONS")) == options_of("qdqd")
    assert listed_in(section_of("qdqd.8", "ACCESS TOKENS")) == options_of("qdqd", "token")
