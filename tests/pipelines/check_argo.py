# SPDX-License-Identifier: Apache-2.0
"""check_argo.py FILE: checks that a WorkflowTemplate has the types of Argo's API, and no member
that the API lacks. Prints the versions of the schemas."""

import importlib.metadata
import sys

from hera.workflows import models
from ruamel.yaml import YAML


def lost(given, read, place):
    """Returns the places of members that the model did not read."""
    if isinstance(given, dict):
        read = read if isinstance(read, dict) else {}
        return [found for name, value in given.items() for found in (
            lost(value, read[name], f"{place}/{name}") if name in read else [f"{place}/{name}"])]
    if isinstance(given, list):
        return [found for i, value in enumerate(given)
                for found in lost(value, read[i], f"{place}/{i}")]
    return []


with open(sys.argv[1], encoding="utf-8") as file:
    document = YAML(typ="safe").load(file)
template = models.WorkflowTemplate.model_validate(document)
unknown = lost(document, template.model_dump(by_alias=True, exclude_unset=True), "")
if unknown:
    sys.exit(f"the API lacks: {', '.join(unknown)}")
wrong = {**document, "spec": {**document["spec"], "entrypont": "quantize"}}
if lost(wrong, models.WorkflowTemplate.model_validate(wrong).model_dump(
        by_alias=True, exclude_unset=True), "") != ["/spec/entrypont"]:
    sys.exit("this check does not find a member that the API lacks")
for name in ("hera", "check-jsonschema"):
    print(f"{name} {importlib.metadata.version(name)}")
