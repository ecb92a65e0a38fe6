# SPDX-License-Identifier: Apache-2.0
"""Holds what the daemon answers against api/openapi.yaml: Service.request() calls this
for every answer of every test."""

import re
from functools import lru_cache
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

DOCUMENT = Path(__file__).resolve().parents[2] / "api" / "openapi.yaml"
PROBLEM = "application/problem+json"
# Statuses that any path may answer with; the document's introduction lists them.
ANYWHERE = {400: ["bad_request"], 401: ["unauthorized"],
            403: ["host_not_allowed", "forbidden"], 404: ["not_found"],
            405: ["method_not_allowed"], 412: ["precondition_failed"], 413: ["too_large"], 431: ["header_too_large"],
            503: ["busy"]}


@lru_cache
def document():
    return yaml.load(DOCUMENT.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@lru_cache
def validator(pointer):
    registry = Registry().with_resource(
        "urn:contract", Resource(contents=document(), specification=DRAFT202012))
    return Draft202012Validator({"$ref": "urn:contract#" + pointer}, registry=registry)


def follow(node):
    """A node, or what its $ref stands for."""
    while "$ref" in node:
        found = document()
        for name in node["$ref"].removeprefix("#/").split("/"):
            found = found[name.replace("~1", "/").replace("~0", "~")]
        node = found
    return node


def choices(group, member):
    """The values that the document allows for a member of the spec."""
    schema = follow({"$ref": "#/components/schemas/Spec"})
    return schema["properties"][group]["properties"][member]["enum"]


def range_methods():
    """Every range method but output_mse, which looks at more than the tensor itself."""
    return [name for name in choices("calibration", "method") if name != "output_mse"]


def schema_of(media):
    """The pointer of the named schema of a media type."""
    return media["schema"]["$ref"].removeprefix("#")


def operation(method, path):
    """The document's operation for a request; None where there is none."""
    method = "get" if method == "HEAD" else method.lower()
    for template, item in document()["paths"].items():
        if re.fullmatch(re.sub(r"\\?\{\w+\\?\}", "[^/]+", re.escape(template)), path):
            return item.get(method)
    return None


def check_body(answer, content):
    media_type = answer.headers.get("Content-Type", "")
    assert media_type in content, f"{media_type} is not in the contract"
    if media_type.endswith("json"):
        validator(schema_of(content[media_type])).validate(answer.json())


def check(method, path, answer):
    status = answer.status_code
    found = operation(method, path.split("?")[0])
    if status == 304:  # If-None-Match: *, which any path may have
        assert not answer.content and found and method in ("GET", "HEAD")
        return
    if found is None or str(status) not in found["responses"]:
        assert status in ANYWHERE, f"{method} {path} may not answer {status}"
        if method != "HEAD":
            check_body(answer, {PROBLEM: {"schema": {
                "$ref": "#/components/schemas/Problem"}}})
            assert answer.json()["code"] in ANYWHERE[status]
        return
    response = follow(found["responses"][str(status)])
    is_tar = answer.headers.get("Content-Type") == "application/x-tar"
    for name in response.get("headers", {}):
        # Only problems that may pass have Retry-After, a result may have no verdict, and a
        # tar has no digest.
        assert name in answer.headers or name in ("Retry-After", "Qdqd-Verdict") or \
            name == "Repr-Digest" and is_tar, f"no {name}"
    if "content" not in response:
        assert not answer.content
    elif method != "HEAD":
        check_body(answer, response["content"])
        if answer.headers["Content-Type"] == PROBLEM:
            assert f"`{answer.json()['code']}`" in response["description"]
