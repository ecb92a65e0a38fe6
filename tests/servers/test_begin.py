# SPDX-License-Identifier: Apache-2.0
"""How daemons begin on a record in PostgreSQL: several at once on an empty database, on the schema
of each older version, over TLS and with a password."""

import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from database import Server
from pooler import Pooler
from service import DATA, ROOT, Service, eventually
from test_leader import listeners
from test_postgresql import LEASE, database, node, server  # noqa: F401

MODEL = (DATA / "glyph_resnet.onnx").read_bytes()
MODEL_ID = "sha256:" + hashlib.sha256(MODEL).hexdigest()
WAITS, FAILED, MADE = ("j" + 32 * c for c in "abc")


# --- at once ------------------------------------------------------------------------------

@pytest.mark.parametrize("number", range(3))
def test_three_daemons_begin_at_once(database, tmp_path, number):  # noqa: F811
    """One of them makes the schema, and each serves."""
    daemons = [Service(tmp_path / f"node{i}", QDQD_STORE_URL=database.url,
                       QDQD_CLUSTER_LEASE=str(LEASE)) for i in range(3)]
    starters = [threading.Thread(target=one.start) for one in daemons]
    for one in starters:
        one.start()
    for one in starters:
        one.join()
    try:
        assert database.sql('SELECT count(*) FROM "qdqd".version') == "1"
        for one in daemons:
            eventually(lambda: len(one.get("/v1/nodes").json()["nodes"]) == 3)
        ids = {one.upload("models", MODEL) for one in daemons}
        assert ids == {MODEL_ID}
        assert database.sql('SELECT count(*) FROM "qdqd".files') == "1"
    finally:
        for one in daemons:
            one.stop()


def test_behind_a_pooler_without_another_way(server, tmp_path):  # noqa: F811
    """A daemon that has no store.direct_url makes the schema and works through pgbouncer; it does
    not listen for hints."""
    server.empty()
    pooler = Pooler(tmp_path, server)
    one = Service(tmp_path / "node", QDQD_STORE_URL=pooler.url_of("qdqd"))
    try:
        one.start()
        one.succeeded(one.submit_glyphs())
        assert listeners(server) == "0"
    finally:
        one.stop()
        pooler.stop()


# --- older schemas --------------------------------------------------------------------------

STEPS = r"""
#include <stdio.h>
#define STEP(sql) sql,
static const char *const steps[] = {
#include "store/postgres/steps.h"
};
int main(void)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        printf("%s%c", steps[i], i + 1 < sizeof steps / sizeof *steps ? '\f' : ' ');
}
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """The steps of the schema's history. A released one is never changed."""
    folder = tmp_path_factory.mktemp("steps")
    (folder / "steps.c").write_text(STEPS)
    subprocess.run([os.environ.get("CC", "cc"), "-I", ROOT / "daemon", "-o", folder / "steps",
                    folder / "steps.c"], check=True)
    text = subprocess.run([folder / "steps"], check=True, capture_output=True, text=True).stdout
    return text.replace("@", '"qdqd".').split("\f")


def number_of_steps():
    text = (ROOT / "daemon" / "store" / "postgres" / "steps.h").read_text()
    return sum(line.startswith("STEP(") for line in text.splitlines())


RESULT = ("result_model", "result_size", "report", "frozen", "summary")


def state_of_schema(database, steps, version, result):  # noqa: F811
    """Makes the record as a daemon of that schema left it: a model, a queued job, a failed one, and
    one that has this result."""
    spec = json.dumps({"calibration": {"random_samples": 2}})
    database.sql('CREATE SCHEMA "qdqd"; CREATE TABLE "qdqd".version(version INTEGER NOT NULL,'
                 f' number BIGINT NOT NULL); INSERT INTO "qdqd".version VALUES({version}, 7);'
                 + ";".join(steps[:version]))
    database.sql('INSERT INTO "qdqd".files(kind, id, size, created_at)'
                 f" VALUES(0, '{MODEL_ID}', {len(MODEL)}, 1600000000000)")
    for name, state, ended in ((WAITS, "queued", 0), (FAILED, "failed", 16e11),
                               (MADE, "succeeded", 16e11)):
        code = "'nonfinite'" if state == "failed" else "NULL"
        database.sql(
            'INSERT INTO "qdqd".jobs(id, state, priority, attempts, created_at, ended_at, model,'
            " spec, effective_spec, labels, error_code, error_kind, error_where, error_detail)"
            f" VALUES('{name}', '{state}', 0, 0, 1600000000000, {int(ended)}, '{MODEL_ID}',"
            f" '{spec}', '{spec}',"
            f""" '{{"k":"v"}}', {code}, 0, '', 'it did')""")
    values = ", ".join(f"{name} = '{value}'" for name, value in zip(RESULT, result))
    database.sql(f"UPDATE \"qdqd\".jobs SET {values} WHERE id = '{MADE}'")


def columns(database):  # noqa: F811
    return database.sql("SELECT table_name, column_name, data_type FROM information_schema.columns"
                        " WHERE table_schema = 'qdqd' ORDER BY 1, 2")


@pytest.mark.parametrize("version", range(1, number_of_steps()))
def test_an_older_schema(database, node, steps, version):  # noqa: F811
    """Its rows are there, a job that waited runs, and the schema is that of a new database."""
    first = node()
    job = first.submit_glyphs()
    first.succeeded(job)
    model, report = first.result(job), first.report(job)
    first.stop()
    new, newest = columns(database), database.sql('SELECT version FROM "qdqd".version')
    result = [database.sql(f'SELECT {name} FROM "qdqd".jobs') for name in RESULT]
    database.empty()
    state_of_schema(database, steps, version, result)
    one = node()
    assert database.sql('SELECT version, number FROM "qdqd".version') == f"{newest}|7"
    assert columns(database) == new
    assert [job["id"] for job in one.get("/v1/jobs").json()["jobs"]] == [MADE, FAILED, WAITS]
    assert one.job(FAILED)["error"]["code"] == "nonfinite"
    assert one.job(FAILED)["labels"] == {"k": "v"}
    assert one.result(MADE) == model and one.report(MADE) == report
    assert one.succeeded(WAITS)["attempts"] == 1
    assert one.get(f"/v1/models/{MODEL_ID}").status_code == 200


# --- TLS and a password -------------------------------------------------------------------------

def make_certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / f"{name}.key",
                    "-out", folder / f"{name}.pem"], check=True, capture_output=True)


@pytest.fixture
def secure(tmp_path, monkeypatch):
    """A server that accepts the user qdqd over TLS alone, with a password. Returns it and the
    folder of the certificate, the one of somebody else, and the file of the password."""
    one = Server(tmp_path)
    for name in ("server", "other"):
        make_certificate(tmp_path, name)
    home = Path(one.sql("SHOW data_directory"))
    for end in ("pem", "key"):
        (home / f"server.{end}").write_bytes((tmp_path / f"server.{end}").read_bytes())
        os.chown(home / f"server.{end}", home.stat().st_uid, home.stat().st_gid)
        (home / f"server.{end}").chmod(0o600)
    one.sql("ALTER USER qdqd PASSWORD 'right'")
    for setting in ("ssl = on", "ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.key'"):
        one.sql(f"ALTER SYSTEM SET {setting}")
    (home / "pg_hba.conf").write_text("hostssl all qdqd 127.0.0.1/32 scram-sha-256\n")
    (tmp_path / "right").write_text("localhost:*:*:qdqd:right\n127.0.0.1:*:*:qdqd:right\n")
    (tmp_path / "wrong").write_text("localhost:*:*:qdqd:wrong\n")
    for name in ("right", "wrong"):
        (tmp_path / name).chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "right"))
    one.stop()
    one.start()
    yield one
    one.close()


def test_tls_and_a_file_of_passwords(secure, tmp_path):
    """The daemon checks the server's certificate and name, and sends the password of the file."""
    url = f"postgresql://qdqd@localhost:{secure.port}/qdqd?sslmode=verify-full&sslrootcert="

    def begin(certificate, password):
        one = Service(tmp_path / f"{certificate}-{password}", PGPASSFILE=str(tmp_path / password),
                      QDQD_STORE_URL=f"{url}{tmp_path}/{certificate}.pem")
        return one.start()

    one = begin("server", "right")
    try:
        one.succeeded(one.submit_glyphs())
        assert secure.sql("SELECT bool_and(ssl), count(*) > 1 FROM pg_stat_ssl JOIN"
                          " pg_stat_activity USING (pid) WHERE backend_type = 'client backend'"
                          ) == "t|t"
    finally:
        one.stop()
    assert "right" not in one.log.read_text().replace(str(tmp_path), "")
    with pytest.raises(AssertionError, match="certificate verify failed"):
        begin("other", "right")
    with pytest.raises(AssertionError, match="password authentication failed"):
        begin("server", "wrong")
