# SPDX-License-Identifier: Apache-2.0
"""The documents are consistent: links lead to a file and to a heading in it, and
sentences follow docs/inside/style.md."""

import functools
import re
from pathlib import Path

import pytest

from service import ROOT, VERSION

PAGES = sorted([*ROOT.glob("*.md"), ROOT / "bench" / "README.md",
                ROOT / "tests" / "data" / "README.md", *(ROOT / "docs").rglob("*.md"),
                ROOT / "clients" / "python" / "README.md",
                ROOT / "deploy" / "kubernetes" / "README.md",
                *(ROOT / "findings").rglob("*.md"),
                *(ROOT / "examples").glob("**/README.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(page):
    """Returns the page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Returns the anchors that GitHub makes of a page's headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE):
        plain = re.sub(r"\]\([^)]*\)", "", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    for link in LINK.findall(text_of(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def mentions():
    """Returns the pages of docs/ that code, tools, settings and the contract name in their
    comments and texts, each with the file that names it."""
    folders = ("api", "bench", "cli", "clients", "daemon", "deploy", "engine", "etc", "examples",
               "judges", "m4", "man", "ondemand", "remote", "runners", "systemd", "tests", "threads", "tools")
    files = [*(path for path in ROOT.iterdir() if path.is_file()),
             *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    for path in files:
        if path.is_file() and path.suffix in ("", ".awk", ".ac", ".am", ".c", ".cu", ".h", ".in",
                                              ".lua", ".m4", ".mk", ".py", ".sh", ".yaml", ".yml",
                                              ".1", ".5", ".8"):
            text = path.read_text(errors="replace")
            for page in re.findall(r"(?<![\w.-])docs/[\w/-]+\.md", text):
                yield page, str(path.relative_to(ROOT))


def test_pages_that_the_code_names_are_there():
    named = list(mentions())
    assert len(named) > 20
    assert not [(page, path) for page, path in named if not (ROOT / page).is_file()]


# A sentence that begins with one of these words has no subject, unless it is a question.
RIDDLE = re.compile(r"(?:^|[.;:!?)] |\| |- )((?:What|Who|Whose|Of)\b(?!-)[^.?!|]*[.?!|]?)")


def sentences(text):
    """Returns paragraphs, table cells and list items, each as one line."""
    for block in re.split(r"\n\s*\n|\n(?=[|#-])", text):
        if not block.startswith("#"):
            yield " ".join(block.split())


# docs/inside/style.md quotes such sentences.
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "style.md"],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_have_a_subject(page):
    riddles = [found for line in sentences(text_of(page)) for found in RIDDLE.findall(line)
               if not found.endswith("?")]
    assert not riddles


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_have_a_head(page):
    """A table begins with its head and a line of dashes: rows behind an empty line are text."""
    lines = [line.strip() for line in text_of(page).splitlines()]
    begins = [i for i, line in enumerate(lines)
              if line.startswith("|") and not (i and lines[i - 1].startswith("|"))]
    assert all(re.fullmatch(r"\|[\s:|-]+", (lines + [""])[i + 1]) for i in begins)


def test_pages_are_listed():
    """README.md links to every page of docs/, and docs/README.md to every folder."""
    listed = set(LINK.findall((ROOT / "README.md").read_text()))
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= {link.partition("#")[0] for link in listed}
    folders = {f"{folder.name}/" for folder in (ROOT / "docs").iterdir() if folder.is_dir()}
    assert folders <= set(LINK.findall((ROOT / "docs" / "README.md").read_text()))


@functools.cache
def sources():
    """Returns the paths of the code and the documents."""
    return [path.relative_to(ROOT) for folder in
            ("ondemand", "engine", "api", "remote", "threads", "judges", "daemon", "cli", "docs",
             "tests/e2e")
            for path in (ROOT / folder).rglob("*.*")]


@functools.cache
def functions():
    """Returns the names of the functions in C that the code calls or defines."""
    return {name for path in sources() if path.suffix in (".c", ".h")
            for name in re.findall(r"\w+(?=\()", (ROOT / path).read_text())}


MAPS = [ROOT / "ARCHITECTURE.md",
        *(ROOT / "docs" / "inside" / name for name in ("where-to-look.md", "processes.md", "stored-data.md"))]


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.name)
def test_pages_about_the_code_name_what_is_there(page):
    """Files that the page names exist, and functions occur in the code."""
    text = text_of(page)
    missing = [name for name in re.findall(r"`([\w/-]+\.(?:c|h|css|js|md|py|yaml))`", text)
               if not any(f"/{source}".endswith(f"/{name}") for source in sources())]
    missing += set(re.findall(r"`(\w+)\(\)`", text)) - functions()
    assert not missing


# Paths from the root, and files that the pages of docs/extend invent.
CODE = re.compile(r"`((?:api|bench|cli|daemon|engine|judges|ondemand|remote|runners|tests|threads|tools)/[\w./*-]+)`")
INVENTED = {"NAME.lua", "chip.c", "spark.c", "three_sigma.c"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_of_the_code_are_there(page):
    missing = [path for path in CODE.findall(text_of(page))
               if Path(path).name not in INVENTED and not list(ROOT.glob(path))]
    assert not missing


PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")


def test_pictures():
    """Each picture says in words what it shows, is small, and is used."""
    used = set()
    for page in PAGES:
        for words, path in PICTURE.findall(page.read_text()):
            used.add((page.parent / path).resolve())
            assert len(words.split()) >= 5, (page, path)
    there = set((ROOT / "docs" / "start" / "images").iterdir())
    assert used == there
    assert all(0 < picture.stat().st_size < 100_000 for picture in there)


# A file, and the pattern of the version in it.
STATED = [("api/openapi.yaml", r"^  version: (.*)$"), ("deploy/kubernetes/base/kustomization.yaml", r'newTag: "(.*)"'),
          ("deploy/kubernetes/overlays/cluster/kustomization.yaml", r'newTag: "(.*)"'),
          ("clients/python/qdqd/__init__.py", r'^__version__ = "(.*)"$'),
          ("examples/kfp/pipeline.py", r"/qdqd-(.*)-py3"), ("examples/kfp/README.md", r"/qdqd-(.*)-py3"),
          ("docs/operate/operations.md", r"qdqd_(.*)_amd64\.deb")]


@pytest.mark.parametrize("path, pattern", STATED, ids=[path for path, _ in STATED])
def test_the_version_is_the_same_everywhere(path, pattern):
    assert set(re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE)) == {VERSION}


def test_the_version_has_a_section_among_the_changes():
    sections = re.findall(r"^## (.*)$", (ROOT / "docs" / "changes.md").read_text(), re.MULTILINE)
    dated = [title for title in sections if title != "Next version"]
    assert re.fullmatch(rf"{re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)", dated[0])
