# SPDX-License-Identifier: Apache-2.0
"""qdqd --check-store on files: beside a daemon, and after files came and went by themselves."""

import hashlib
import subprocess

from service import DATA, INSTALLED


def check(one, *words):
    return subprocess.run([INSTALLED / "sbin" / "qdqd", "--state-dir", one.state, *words],
                          capture_output=True, text=True, timeout=60, env=one.environment)


def test_rows_and_files(service):
    one = service()
    job = one.submit_glyphs()
    one.succeeded(job)
    done = check(one, "--check-store")
    n = len(one.stored_files())
    assert (done.returncode, done.stdout) == (0, f"{n} stored files, 0 missing, 0 without a row\n")
    report = f"{one.job(job)['id']}"
    lost = one.upload("models", DATA / "glyph_se.onnx")
    hexes = lost.split(":")[1]
    (one.state / "blobs" / hexes[:2] / hexes).unlink()
    foreign = hashlib.sha256(report.encode()).hexdigest()
    (one.state / "blobs" / foreign[:2] / foreign).write_text(report)
    done = check(one, "--check-store")
    assert done.returncode == 1
    assert done.stdout == (f"missing - {lost}\norphan - sha256:{foreign}\n"
                           f"{n + 1} stored files, 1 missing, 1 without a row\n")
    assert not (one.state / "check-store.sqlite3").exists()


def test_no_state_folder(service, tmp_path):
    one = service()
    done = check(one, "--check-store", "--state-dir", tmp_path / "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("qdqd: ")
