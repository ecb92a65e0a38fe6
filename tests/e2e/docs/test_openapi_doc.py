# SPDX-License-Identifier: Apache-2.0
"""api/openapi.yaml is consistent: its references resolve, its examples match their
schemas, and each error code is listed with its status for every operation that can answer
with it."""

import re

import pytest
from jsonschema import Draft202012Validator

import contract

DOCUMENT = contract.document()
SCHEMAS = DOCUMENT["components"]["schemas"]


def walk(node, pointer=""):
    """Yields each mapping of the document with its place."""
    if isinstance(node, dict):
        yield pointer, node
        for name, child in node.items():
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield from walk(child, f"{pointer}/{escaped}")
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from walk(child, f"{pointer}/{i}")


MEDIA = {pointer: node for pointer, node in walk(DOCUMENT)
         if "schema" in node and "/content/" in pointer}


def examples():
    for pointer, media in MEDIA.items():
        for name, example in media.get("examples", {}).items():
            yield pytest.param(pointer, contract.follow(example)["value"],
                               id=f"{name} {pointer}")


@pytest.mark.parametrize("pointer, example", list(examples()))
def test_an_example_is_what_its_schema_allows(pointer, example):
    contract.validator(pointer + "/schema").validate(example)


@pytest.mark.parametrize("name", ["Model", "Dataset", "JobRequest", "Job", "Plan", "Report",
                                  "Spec", "Problem"])
def test_what_is_sent_and_answered_has_an_example(name):
    """Request bodies and answers have examples."""
    shown = [media["schema"] for media in MEDIA.values() if "examples" in media]
    assert {"$ref": f"#/components/schemas/{name}"} in shown


def test_references_lead_somewhere():
    used = set()
    for _, node in walk(DOCUMENT):
        if isinstance(node.get("$ref"), str):
            contract.follow(node)
            used.add(node["$ref"])
    for requirement in DOCUMENT["security"]:
        used.update(f"#/components/securitySchemes/{name}" for name in requirement)
    for kind, members in DOCUMENT["components"].items():
        for name in members:
            assert f"#/components/{kind}/{name}" in used, f"{kind}/{name} is not used"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name):
    Draft202012Validator.check_schema(SCHEMAS[name])


def operations():
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield f"{method} {path}", operation


def documented():
    """Returns the error codes in the document, with their statuses."""
    found = {}
    for _, operation in operations():
        for status, response in operation["responses"].items():
            text = contract.follow(response)["description"] if int(status) >= 400 else ""
            for code in re.findall(r"`(\w+)`", text):
                found.setdefault(code, set()).add(int(status))
    for status, codes in contract.ANYWHERE.items():
        for code in codes:
            found.setdefault(code, set()).add(status)
    return found


def test_each_error_stands_where_it_can_come(daemon):
    statuses = documented()
    for error in daemon.get("/v1/errors").json()["errors"]:
        if error["code"].startswith("remote_") and error["code"] not in statuses:
            continue  # an error of the command alone
        assert statuses.get(error["code"]) == {error["status"]}, error["code"]


def test_what_any_path_answers_is_told_at_the_top():
    """The introduction lists the errors that any path may answer with."""
    text = " ".join(DOCUMENT["info"]["description"].split())
    for status, codes in contract.ANYWHERE.items():
        for code in codes:
            assert f"{status} `{code}`" in text


def test_every_operation_but_health_tells_of_tokens():
    for name, operation in operations():
        open_to_all = name in ("get /", "get /healthz", "get /readyz", "get /ui")
        is_signed = name == "post /v1/hooks/{name}"
        assert (operation.get("security") == []) == (open_to_all or is_signed), name
        assert ({"401", "403"} <= set(operation["responses"])) != open_to_all, name
