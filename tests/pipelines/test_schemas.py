# SPDX-License-Identifier: Apache-2.0
"""The examples for GitHub, GitLab and Argo against the schemas of these programs."""

import pipelines
from pipelines import EXAMPLES, execute
from service import ROOT


def test_schemas(record_property):
    """The files for GitHub, GitLab and Argo have no member that their schemas lack."""
    python = pipelines.python_with("schemas")
    for schema, path in (("github-actions", "github-action/action.yml"),
                         ("gitlab-ci", "gitlab-ci/quantize.yml")):
        done = execute(EXAMPLES, [python, "-m", "check_jsonschema", "--builtin-schema",
                                  f"vendor.{schema}", path])
        assert done.returncode == 0, done.stdout
    done = execute(EXAMPLES, [python, ROOT / "tests" / "pipelines" / "check_argo.py",
                              "argo/workflow-template.yaml"])
    assert done.returncode == 0, done.stdout
    for line in done.stdout.splitlines():
        record_property("version", line)
