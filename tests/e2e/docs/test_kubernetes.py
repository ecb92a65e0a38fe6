# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: kubernetes-validate judges what kubectl builds; the security context and the
settings are those that the daemon runs with."""

import os
import re
import shutil
import subprocess
import tempfile

import pytest

import registry
from service import FEW_SAMPLES, INSTALLED, ROOT, Service

FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(p for p in FOLDER.rglob("*.yaml")
               if p.name not in ("kustomization.yaml", "without-statefulset.yaml"))
VERSIONS = ("1.30", "1.37")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    program = registry.program("kubernetes")

    def judge(text, version=VERSIONS[-1]):
        path = tmp_path_factory.mktemp("manifests") / "all.yaml"
        path.write_text(text)
        return subprocess.run([program, "--strict", "-k", version, path],
                              capture_output=True, text=True, timeout=120)
    return judge


def build(name):
    """Returns the manifests as kubectl builds them."""
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl, which builds what Kustomize describes")
    done = subprocess.run(["kubectl", "kustomize", FOLDER / name], capture_output=True,
                          text=True, timeout=60)
    if "unknown command" in done.stderr:
        pytest.skip("kubectl without kustomize")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name, kinds", [
    ("base", {"Namespace", "ServiceAccount", "Service", "NetworkPolicy", "StatefulSet"}),
    ("overlays/cluster", {"Namespace", "ServiceAccount", "Service", "NetworkPolicy", "ConfigMap",
                          "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"}),
])
def test_what_is_built_is_valid(judge, name, kinds, version):
    text = build(name)
    assert set(re.findall(r"(?m)^kind: (\w+)$", text)) == kinds
    assert text.count("app.kubernetes.io/name: qdqd") > len(kinds)
    done = judge(text, version)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(" passed for resource ") == len(kinds)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_each_file_is_valid(judge, path):
    done = judge(path.read_text())
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_judge_finds_a_mistake(judge):
    text = (FOLDER / "base" / "statefulset.yaml").read_text()
    for wrong in (text.replace("readOnlyRootFilesystem", "readOnlyRoot"),
                  text.replace("replicas: 1", 'replicas: "one"')):
        assert wrong != text
        assert judge(wrong).returncode != 0


@pytest.mark.parametrize("path", [p for p in FILES if p.name in ("statefulset.yaml",
                                                                 "deployment.yaml")],
                         ids=lambda p: p.name)
def test_pods_keep_to_the_restricted_profile(path):
    """The demands of the Pod Security Standard `restricted`, and two more."""
    text = path.read_text()
    for demanded in ("runAsNonRoot: true", "type: RuntimeDefault", "drop: [ALL]",
                     "allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true",
                     "automountServiceAccountToken: false"):
        assert text.count(demanded) == 1, demanded
    for forbidden in ("privileged", "hostPath", "hostNetwork", "hostPID", "hostIPC", "hostPort",
                      "add:", "Unconfined", "procMount", "sysctls"):
        assert forbidden not in text
    volumes = text.split("      volumes:\n")[1].split("volumeClaimTemplates")[0]
    assert set(re.findall(r"(?m)^          (\w+):", volumes)) <= {"secret", "emptyDir"}
    assert (FOLDER / "base" / "namespace.yaml").read_text().count("enforce: restricted") == 1


@pytest.mark.parametrize("folder", ["base", "overlays/cluster"])
def test_settings_are_those_of_the_daemon(folder):
    text = subprocess.run([INSTALLED / "sbin" / "qdqd", "--help"], capture_output=True,
                          text=True, timeout=60).stdout
    known = {"QDQD_" + name.upper().replace(".", "_")
             for name in re.findall(r"(?m)^  (\w+\.\w+) \(", text)}
    used = {name for path in (FOLDER / folder).iterdir()
            for name in re.findall(r"QDQD_[A-Z_]+", path.read_text())}
    assert len(used) >= 7
    if folder != "base" and "QDQD_STORE_URL" not in known:
        pytest.skip("this version has no record that several nodes share")
    assert used <= known


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"),
                    reason="needs root and setpriv, to become the pod's user")
def test_the_cage_stands_without_privileges(tmp_path):
    """As in the pod: user 8383 without a capability, no new privileges, and a complete cage."""
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001 and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(0o755)
    qdqd = tmp_path / "qdqd"
    qdqd.write_text("#!/bin/sh\nexec setpriv --reuid=8383 --regid=8383 --clear-groups "
                    "--no-new-privs --bounding-set=-all --inh-caps=-all "
                    f'{INSTALLED}/sbin/qdqd "$@"\n')
    qdqd.chmod(0o755)
    one = Service(tmp_path / "one", QDQD_WORKERS_CAGE="require")
    one.log.parent.mkdir(mode=0o777)
    one.log.parent.chmod(0o777)
    if subprocess.run([qdqd, "--version"], capture_output=True).returncode:
        pytest.skip("the user 8383 cannot reach the program")
    one.start(program=qdqd)
    one.succeeded(one.submit_glyphs(calibration=FEW_SAMPLES))
    status = open(f"/proc/{one.process.pid}/status", encoding="ascii").read()
    assert re.search(r"CapEff:\s+0+\n", status) and re.search(r"NoNewPrivs:\s+1\n", status)
    assert re.search(r"Uid:\s+8383\s", status)
    one.stop()
    assert "cage_lacking" not in one.log.read_text()
